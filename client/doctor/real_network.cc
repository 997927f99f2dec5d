// SPDX-License-Identifier: Apache-2.0
// Names, routes and TCP ports of the real network. What only blocks (getaddrinfo) runs on a thread
// that is left behind when time is up; it touches nothing but what it shares with the waiter.
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "client/doctor/end_to_end.h"
#include "client/doctor/server_visit.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma::doctor {

namespace {

using std::chrono::milliseconds;

/// Runs `work` on a thread of its own; nothing when it takes longer than `patience`.
template <typename Work>
auto within(milliseconds patience, Work work) -> std::optional<decltype(work())> {
  struct Shared {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<decltype(work())> result;
  };
  auto shared = std::make_shared<Shared>();
  std::thread([shared, work = std::move(work)] {
    auto result = work();
    const std::lock_guard<std::mutex> lock(shared->mutex);
    shared->result = std::move(result);
    shared->done.notify_one();
  }).detach();
  std::unique_lock<std::mutex> lock(shared->mutex);
  shared->done.wait_for(lock, patience, [&] { return shared->result.has_value(); });
  return std::move(shared->result);
}

Lookup look_up(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  Lookup found;
  if (error != 0) {
    found.how = error == EAI_AGAIN ? Lookup::How::kTimedOut : Lookup::How::kUnknown;
    found.error = ::gai_strerror(error);
    return found;
  }
  found.how = Lookup::How::kFound;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next)
    found.addresses.emplace_back(one->ai_addr, one->ai_addrlen);
  ::freeaddrinfo(list);
  return found;
}

std::string name_of(const SocketAddress& address) {
  std::array<char, NI_MAXHOST> name{};
  const int error = ::getnameinfo(address.data(), address.length(), name.data(), name.size(),
                                  nullptr, 0, NI_NAMEREQD);
  return error == 0 ? name.data() : "";
}

Reached ended_with(int error) {
  switch (error) {
    case 0:
      return {Reached::How::kOpen};
    case ECONNREFUSED:
      return {Reached::How::kRefused};
    case ETIMEDOUT:
      return {Reached::How::kTimedOut};
    default:
      return {Reached::How::kUnreachable, std::strerror(error)};
  }
}

Reached connect_within(const SocketAddress& address, milliseconds patience) {
  const UniqueFd fd(
      ::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!fd) return ended_with(errno);
  if (::connect(fd.get(), address.data(), address.length()) == 0) return ended_with(0);
  if (errno != EINPROGRESS) return ended_with(errno);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto left =
        std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return ended_with(ETIMEDOUT);
    pollfd one{fd.get(), POLLOUT, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return ended_with(errno);
    if (ready <= 0) continue;
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    return ended_with(error);
  }
}

/// The address that this host would use, which connecting a datagram socket tells without a packet.
std::optional<SocketAddress> local_address(SocketAddress to) {
  constexpr std::uint16_t kDiscard = 9;
  if (to.port() == 0) to.set_port(kDiscard);
  const UniqueFd fd(::socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), to.data(), to.length()) != 0) return std::nullopt;
  auto local = SocketAddress::local_of(fd.get());
  if (!local.ok()) return std::nullopt;
  return *local;
}

std::string interface_with(const SocketAddress& address) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "";
  std::string found;
  for (const ifaddrs* one = list; one != nullptr && found.empty(); one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != address.family()) continue;
    const SocketAddress theirs(one->ifa_addr,
                               address.is_v6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    if (theirs.same_host(address)) found = one->ifa_name;
  }
  ::freeifaddrs(list);
  return found;
}

struct KernelRoute {
  std::string interface;
  bool by_gateway = false;
};

/// RTM_GETROUTE for one address.
struct RouteRequest {
  nlmsghdr header{};
  rtmsg route{};
  rtattr attribute{};
  std::array<unsigned char, 16> address{};
};

RouteRequest route_request(const SocketAddress& to) {
  RouteRequest request;
  const bool v6 = to.is_v6();
  const std::size_t bytes = v6 ? 16 : 4;
  request.header.nlmsg_type = RTM_GETROUTE;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.header.nlmsg_len = static_cast<std::uint32_t>(offsetof(RouteRequest, address) + bytes);
  request.route.rtm_family = static_cast<unsigned char>(to.family());
  request.route.rtm_dst_len = static_cast<unsigned char>(8 * bytes);
  request.attribute.rta_type = RTA_DST;
  request.attribute.rta_len = static_cast<unsigned short>(RTA_LENGTH(bytes));
  if (v6) {
    std::memcpy(request.address.data(),
                &reinterpret_cast<const sockaddr_in6*>(to.data())->sin6_addr, bytes);
  } else {
    std::memcpy(request.address.data(), &reinterpret_cast<const sockaddr_in*>(to.data())->sin_addr,
                bytes);
  }
  return request;
}

std::optional<KernelRoute> parse_route(const nlmsghdr* header) {
  if (header->nlmsg_type != RTM_NEWROUTE) return std::nullopt;
  const auto* route = static_cast<const rtmsg*>(NLMSG_DATA(header));
  KernelRoute found;
  int left = static_cast<int>(RTM_PAYLOAD(header));
  for (const rtattr* a = RTM_RTA(route); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
    if (a->rta_type == RTA_GATEWAY || a->rta_type == RTA_VIA) found.by_gateway = true;
    if (a->rta_type != RTA_OIF) continue;
    unsigned index = 0;
    std::memcpy(&index, RTA_DATA(a), sizeof index);
    std::array<char, IF_NAMESIZE> name{};
    if (::if_indextoname(index, name.data()) != nullptr) found.interface = name.data();
  }
  return found;
}

std::optional<KernelRoute> kernel_route(const SocketAddress& to) {
  constexpr int kPatience = 1000;  // the kernel answers at once
  const UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  const RouteRequest request = route_request(to);
  if (!fd || ::send(fd.get(), &request, request.header.nlmsg_len, 0) < 0) return std::nullopt;
  pollfd one{fd.get(), POLLIN, 0};
  if (::poll(&one, 1, kPatience) != 1) return std::nullopt;
  alignas(nlmsghdr) std::array<char, 8192> answer;
  const ssize_t n = ::recv(fd.get(), answer.data(), answer.size(), 0);
  if (n < static_cast<ssize_t>(sizeof(nlmsghdr))) return std::nullopt;
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer.data());
  if (!NLMSG_OK(header, static_cast<std::size_t>(n))) return std::nullopt;
  return parse_route(header);
}

class RealNetwork final : public Network {
 public:
  Lookup resolve(const std::string& host, milliseconds patience) override {
    std::string bare = host;
    if (bare.size() > 2 && bare.front() == '[') bare = bare.substr(1, bare.size() - 2);
    auto found = within(patience, [bare] { return look_up(bare); });
    return found ? std::move(*found) : Lookup{Lookup::How::kTimedOut};
  }
  std::string reverse(const SocketAddress& address, milliseconds patience) override {
    return within(patience, [address] { return name_of(address); }).value_or("");
  }
  Reached reach(const SocketAddress& address, milliseconds patience) override {
    return connect_within(address, patience);
  }
  std::optional<Route> route(const SocketAddress& address) override {
    const std::optional<SocketAddress> local = local_address(address);
    if (!local) return std::nullopt;
    Route found{*local, interface_with(*local)};
    // What leads to an address of this host itself is said to go by lo.
    if (const auto kernel = kernel_route(address)) {
      found.by_gateway = kernel->by_gateway;
      if (found.interface.empty() || (kernel->interface != "lo" && !kernel->interface.empty())) {
        found.interface = kernel->interface;
      }
    }
    return found;
  }
  NullAnswer null_call(const MountSettings& settings, TransportKind kind,
                       milliseconds patience) override {
    if (!start()) return NullAnswer{.tried = false, .error = "no event loop"};
    return call_null(*driver_, settings, kind, patience);
  }
  DataAnswer exchange(const MountSettings& settings, TransportKind kind,
                      milliseconds patience) override {
    if (!start()) {
      DataAnswer answer;
      answer.failed = DataAnswer::Failed::kMount;
      answer.error = "no event loop";
      return answer;
    }
    return exchange_data(*driver_, settings, kind, patience);
  }

 private:
  bool start() {
    if (driver_) return true;
    auto made = LoopDriver::create();
    if (made.ok()) driver_ = std::move(*made);
    return driver_ != nullptr;
  }

  std::unique_ptr<LoopDriver> driver_;
};

}  // namespace

std::unique_ptr<Network> real_network() {
  return std::make_unique<RealNetwork>();
}

}  // namespace nfsrdma::doctor
