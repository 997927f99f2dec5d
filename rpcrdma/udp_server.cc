// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/udp_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>

#include "xdr/rpc.h"

namespace nfsrdma {

namespace {

constexpr int kDatagramsPerEvent = 64;
constexpr std::size_t kControlBytes = 128;
constexpr std::size_t kWarmCalls = 8;

constexpr std::size_t kTypeAt = 4, kProgramAt = 12, kHeaderBytes = 24;  // in a call

}  // namespace

Result<UniqueFd> bind_udp(const SocketAddress& address) {
  UniqueFd fd(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return system_error("socket");
  const int on = 1;
  // The address that a call was sent to is the one that its reply has to come from.
  if (address.is_v6()) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
  } else {
    ::setsockopt(fd.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
  }
  if (::bind(fd.get(), address.data(), address.length()) != 0) return system_error("bind");
  return fd;
}

/// Whoever sent a datagram, while it is being served.
class UdpPeer final : public ServerConnection {
 public:
  UdpPeer(EventLoop& loop, BufferPool& pool) : loop_(loop), pool_(pool) {}

  const SocketAddress& peer() const override { return peer_; }
  const SocketAddress& local() const override { return local_; }
  TransportKind transport() const override { return TransportKind::kUdp; }
  EventLoop& loop() override { return loop_; }
  BufferPool& buffers() override { return pool_; }
  ConnectionInfo describe() const override {
    ConnectionInfo info;
    info.transport = TransportKind::kUdp;
    info.peer = peer_;
    info.local = local_;
    return info;
  }
  void close() override {}

 private:
  friend class UdpCall;
  friend class UdpSocket;
  EventLoop& loop_;
  BufferPool& pool_;
  SocketAddress peer_, local_;
};

class UdpCall final : public Call {
 public:
  explicit UdpCall(UdpServer& server) : server_(server), peer_(server.loop_, server.pool_) {
    connection_ = &peer_;
    reply_.resize(UdpServer::kMaxReply);
  }

  /// There is no more than that: lists are cut.
  bool reserve_reply(std::size_t) override { return true; }
  MutableByteSpan reply_room() override { return reply_; }
  void reply(const xdr::Encoder& encoder, Buffer payload) override;
  void drop() override { server_.finished(*this); }

 private:
  friend class UdpServer;
  friend class UdpSocket;

  UdpServer& server_;
  UdpPeer peer_;
  UdpSocket* socket_ = nullptr;
  std::vector<std::byte> request_;
  std::vector<std::byte> reply_;
};

class UdpSocket final : private FdWatcher {
 public:
  UdpSocket(UdpServer& server, UniqueFd fd) : server_(server), fd_(std::move(fd)) {
    if (auto bound = SocketAddress::local_of(fd_.get()); bound.ok()) bound_ = *bound;
    NFSRDMA_CHECK(server_.loop_.add(fd_.get(), EPOLLIN, *this).ok());
  }
  ~UdpSocket() override { server_.loop_.remove(fd_.get(), *this); }

  void stop() { server_.loop_.remove(fd_.get(), *this); }
  void send(const UdpCall& call, ByteSpan reply);

 private:
  void on_fd_ready(std::uint32_t) override;
  /// False: nothing more to read.
  bool receive();
  void deliver(std::unique_ptr<UdpCall> call);
  SocketAddress address_in(msghdr& message) const;

  UdpServer& server_;
  UniqueFd fd_;
  SocketAddress bound_;
  std::array<std::byte, UdpServer::kMaxRequest + 1> room_;
};

/// Tells that the last call is over, outside of that call.
class UdpServer::Drain final : public Deferred {
 public:
  explicit Drain(UdpServer& server) : server_(server) {}
  void run_deferred() override { server_.check_drained(); }

 private:
  UdpServer& server_;
};

// --- sockets ---

void UdpSocket::on_fd_ready(std::uint32_t) {
  for (int i = 0; i < kDatagramsPerEvent && receive(); ++i) {
  }
}

SocketAddress UdpSocket::address_in(msghdr& message) const {
  SocketAddress local = bound_;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      in_pktinfo info{};
      std::memcpy(&info, CMSG_DATA(c), sizeof info);
      reinterpret_cast<sockaddr_in*>(local.data())->sin_addr = info.ipi_addr;
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info{};
      std::memcpy(&info, CMSG_DATA(c), sizeof info);
      auto* address = reinterpret_cast<sockaddr_in6*>(local.data());
      address->sin6_addr = info.ipi6_addr;
      if (IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr)) address->sin6_scope_id = info.ipi6_ifindex;
    }
  }
  return local;
}

bool UdpSocket::receive() {
  sockaddr_storage from{};
  alignas(cmsghdr) std::array<char, kControlBytes> control;
  iovec piece{room_.data(), room_.size()};
  msghdr message{};
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = ::recvmsg(fd_.get(), &message, 0);
  // An error that an earlier reply met at the peer's is told here; there may be more to read.
  if (n < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
  const auto bytes = static_cast<std::size_t>(n);
  if (bytes < kHeaderBytes || bytes > UdpServer::kMaxRequest) return true;
  std::unique_ptr<UdpCall> call = server_.take_call();
  if (call == nullptr) return true;
  call->request_.assign(room_.begin(), room_.begin() + n);
  call->peer_.peer_ = SocketAddress(reinterpret_cast<sockaddr*>(&from), message.msg_namelen);
  call->peer_.local_ = address_in(message);
  call->socket_ = this;
  deliver(std::move(call));
  return true;
}

void UdpSocket::deliver(std::unique_ptr<UdpCall> owned) {
  UdpCall& call = *owned.release();  // finished() takes it back
  const ByteSpan message = call.request_;
  call.message_ = message;
  call.xid_ = load_be32(message.data());
  call.request_bytes_ = message.size();
  call.reduced_ = {};
  call.handler_state = nullptr;
  call.arrived = server_.loop_.now();
  const bool is_call =
      load_be32(message.data() + kTypeAt) == static_cast<std::uint32_t>(xdr::msg_type::CALL);
  if (!is_call || !server_.refuses(load_be32(message.data() + kProgramAt))) {
    return server_.handler_.on_call(call);
  }
  xdr::Encoder refusal(call.reply_room());
  xdr::encode(refusal, xdr::accepted(call.xid_, xdr::accept_stat::PROG_UNAVAIL));
  call.reply(refusal, Buffer());
}

void UdpSocket::send(const UdpCall& call, ByteSpan reply) {
  sockaddr_storage to{};
  std::memcpy(&to, call.peer_.peer_.data(), call.peer_.peer_.length());
  alignas(cmsghdr) std::array<char, kControlBytes> control{};
  iovec piece{const_cast<std::byte*>(reply.data()), reply.size()};
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = call.peer_.peer_.length();
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  if (call.peer_.local_.is_v6()) {
    const auto* local = reinterpret_cast<const sockaddr_in6*>(call.peer_.local_.data());
    in6_pktinfo info{};
    info.ipi6_addr = local->sin6_addr;
    info.ipi6_ifindex = local->sin6_scope_id;
    c->cmsg_level = IPPROTO_IPV6;
    c->cmsg_type = IPV6_PKTINFO;
    c->cmsg_len = CMSG_LEN(sizeof info);
    std::memcpy(CMSG_DATA(c), &info, sizeof info);
    message.msg_controllen = CMSG_SPACE(sizeof info);
  } else {
    in_pktinfo info{};
    info.ipi_spec_dst = reinterpret_cast<const sockaddr_in*>(call.peer_.local_.data())->sin_addr;
    c->cmsg_level = IPPROTO_IP;
    c->cmsg_type = IP_PKTINFO;
    c->cmsg_len = CMSG_LEN(sizeof info);
    std::memcpy(CMSG_DATA(c), &info, sizeof info);
    message.msg_controllen = CMSG_SPACE(sizeof info);
  }
  // What does not go out now is lost, as datagrams are; the client asks again.
  static_cast<void>(::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

// --- calls ---

void UdpCall::reply(const xdr::Encoder& encoder, Buffer) {
  // The programs that are served here have no payloads beside the message.
  if (encoder.payloads().empty()) socket_->send(*this, encoder.bytes());
  server_.finished(*this);
}

// --- the server ---

UdpServer::UdpServer(EventLoop& loop, BufferPool& pool, CallHandler& handler,
                     std::vector<std::uint32_t> refused)
    : loop_(loop),
      pool_(pool),
      handler_(handler),
      refused_(std::move(refused)),
      drain_(std::make_unique<Drain>(*this)) {}

UdpServer::~UdpServer() {
  NFSRDMA_CHECK(in_progress_ == 0);  // else the handler still has Calls
}

void UdpServer::adopt(UniqueFd socket) {
  if (!stopping_) sockets_.push_back(std::make_unique<UdpSocket>(*this, std::move(socket)));
}

bool UdpServer::refuses(std::uint32_t program) const {
  return std::ranges::find(refused_, program) != refused_.end();
}

/// Null: as many as may be are in progress.
std::unique_ptr<UdpCall> UdpServer::take_call() {
  if (in_progress_ >= kMaxCalls) return nullptr;
  ++in_progress_;
  if (free_.empty()) return std::make_unique<UdpCall>(*this);
  std::unique_ptr<UdpCall> call = std::move(free_.back());
  free_.pop_back();
  return call;
}

void UdpServer::finished(UdpCall& call) {
  std::unique_ptr<UdpCall> back(&call);
  call.Call::unlink();
  --in_progress_;
  if (free_.size() < kWarmCalls) free_.push_back(std::move(back));
  if (stopping_) loop_.defer(*drain_);
}

void UdpServer::shutdown(std::function<void()> done) {
  stopping_ = true;
  drained_ = std::move(done);
  for (const auto& socket : sockets_)
    socket->stop();
  loop_.defer(*drain_);
}

void UdpServer::check_drained() {
  if (in_progress_ == 0 && drained_) std::exchange(drained_, nullptr)();
}

}  // namespace nfsrdma
