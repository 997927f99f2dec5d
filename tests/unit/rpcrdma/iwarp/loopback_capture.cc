// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rpcrdma/iwarp/loopback_capture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
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
  before_.reset(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
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
  const int version = TPACKET_V2;
  tpacket_req request_ring{};
  request_ring.tp_block_size = 1u << 20;
  request_ring.tp_block_nr = kFrames * kFrame >> 20;
  request_ring.tp_frame_size = kFrame;
  request_ring.tp_frame_nr = kFrames;
  if (::setsockopt(socket_.get(), SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
      ::setsockopt(socket_.get(), SOL_PACKET, PACKET_RX_RING, &request_ring, sizeof request_ring) !=
          0) {
    return trouble("packet ring");
  }
  void* ring = ::mmap(nullptr, std::size_t{kFrames} * kFrame, PROT_READ | PROT_WRITE, MAP_SHARED,
                      socket_.get(), 0);
  if (ring == MAP_FAILED) return trouble("packet ring");
  ring_ = static_cast<std::byte*>(ring);
  return {};
}

LoopbackCapture::~LoopbackCapture() {
  // Below 1280 there is no IPv6, which others may want.
  if (!before_ || ::setns(before_.get(), CLONE_NEWNET) != 0) set_mtu(65536);
  if (ring_ != nullptr) ::munmap(ring_, std::size_t{kFrames} * kFrame);
}

void LoopbackCapture::set_mtu(unsigned mtu) {
  UniqueFd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = loopback();
  request.ifr_mtu = static_cast<int>(mtu);
  ::ioctl(control.get(), SIOCSIFMTU, &request);
}

void LoopbackCapture::look() {
  for (;; next_ = (next_ + 1) % kFrames) {
    std::byte* frame = ring_ + std::size_t{next_} * kFrame;
    auto* header = reinterpret_cast<tpacket2_hdr*>(frame);
    if ((__atomic_load_n(&header->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER) == 0) return;
    sockaddr_ll from{};
    std::memcpy(&from, frame + TPACKET_ALIGN(sizeof(tpacket2_hdr)), sizeof from);
    // Each passes twice on loopback.
    if (from.sll_pkttype == PACKET_HOST) take(frame + header->tp_net, header->tp_snaplen);
    __atomic_store_n(&header->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
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
