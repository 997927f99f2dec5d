// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rpcrdma/iwarp/loopback_capture.h"

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace nfsrdma::iwarp::test {
namespace {

ifreq loopback() {
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  return request;
}

std::string trouble(const char* what) {
  return std::string(what) + ": " + std::strerror(errno);
}

}  // namespace

bool SegmentedStream::starts_segment(std::size_t at) const {
  return std::any_of(segments.begin(), segments.end(),
                     [&](const Segment& segment) { return segment.start == at; });
}

bool SegmentedStream::in_one_segment(std::size_t at, std::size_t size) const {
  return std::any_of(segments.begin(), segments.end(), [&](const Segment& segment) {
    return segment.start <= at && segment.start + segment.size >= at + size;
  });
}

std::string LoopbackCapture::start(unsigned mtu) {
  if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
    return trouble("a network of its own");
  }
  UniqueFd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // Cut by TCP itself, not by a device that could: what comes by is what would be on a wire.
  for (std::uint32_t command : {ETHTOOL_STSO, ETHTOOL_SGSO}) {
    ethtool_value off{command, 0};
    ifreq request = loopback();
    request.ifr_data = reinterpret_cast<char*>(&off);
    if (::ioctl(control.get(), SIOCETHTOOL, &request) != 0) return trouble("ethtool on lo");
  }
  set_mtu(mtu);
  ifreq request = loopback();
  request.ifr_flags = IFF_UP;
  if (::ioctl(control.get(), SIOCSIFFLAGS, &request) != 0) return trouble("lo up");

  socket_.reset(::socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_IP)));
  if (!socket_) return trouble("packet socket");
  const int room = 32 << 20;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  return {};
}

void LoopbackCapture::set_mtu(unsigned mtu) {
  UniqueFd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = loopback();
  request.ifr_mtu = static_cast<int>(mtu);
  ::ioctl(control.get(), SIOCSIFMTU, &request);
}

void LoopbackCapture::look() {
  std::vector<std::byte> packet(70'000);
  for (;;) {
    sockaddr_ll from{};
    socklen_t length = sizeof from;
    const ssize_t n = ::recvfrom(socket_.get(), packet.data(), packet.size(), 0,
                                 reinterpret_cast<sockaddr*>(&from), &length);
    if (n < 0) return;
    // Each passes twice on loopback.
    if (from.sll_pkttype == PACKET_HOST) take(packet.data(), static_cast<std::size_t>(n));
  }
}

void LoopbackCapture::take(const std::byte* packet, std::size_t size) {
  const std::size_t ip_size = (static_cast<unsigned>(packet[0]) & 15) * 4;
  if (size < ip_size + sizeof(tcphdr) || static_cast<unsigned>(packet[9]) != IPPROTO_TCP) return;
  const std::byte* tcp = packet + ip_size;
  const std::size_t end = std::min<std::size_t>(size, load_be16(packet + 2));
  const std::size_t head = ip_size + (static_cast<unsigned>(tcp[12]) >> 4) * 4;
  const bool syn = (static_cast<unsigned>(tcp[13]) & TH_SYN) != 0;
  const std::uint32_t sequence = load_be32(tcp + 4);
  SegmentedStream& stream = streams_[load_be16(tcp)];
  if (syn) {
    stream.first_sequence = sequence + 1;
    stream.known = true;
  }
  if (!stream.known || end <= head || syn) return;
  const std::size_t start = sequence - stream.first_sequence;
  stream.segments.push_back({start, end - head});
  stream.ahead[start].assign(packet + head, packet + end);
  for (auto next = stream.ahead.begin();
       next != stream.ahead.end() && next->first <= stream.bytes.size();
       next = stream.ahead.erase(next)) {
    const std::size_t known = stream.bytes.size() - next->first;
    if (known < next->second.size()) {
      stream.bytes.insert(stream.bytes.end(), next->second.begin() + static_cast<long>(known),
                          next->second.end());
    }
  }
}

}  // namespace nfsrdma::iwarp::test
