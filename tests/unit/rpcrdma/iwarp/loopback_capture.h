// SPDX-License-Identifier: Apache-2.0
// Sees the TCP segments of connections on loopback, as siw's receiver would get them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma::iwarp::test {

/// One direction of a connection.
struct SegmentedStream {
  struct Segment {
    std::size_t start;
    std::size_t size;
  };
  std::vector<std::byte> bytes;   // without gaps from the first byte on
  std::vector<Segment> segments;  // as they came, repetitions too
  std::map<std::size_t, std::vector<std::byte>> ahead;
  std::uint32_t first_sequence = 0;
  bool known = false;

  bool starts_segment(std::size_t at) const;
  /// Is [at, at + size) in one segment?
  bool in_one_segment(std::size_t at, std::size_t size) const;
};

/// A network of this thread's own, with nothing but loopback in it: nobody else's packets, an MTU
/// of our choice, and the right to look. Root is back in the one before when it is destroyed; for
/// others there is no way back, and they keep it with the usual MTU.
class LoopbackCapture {
 public:
  LoopbackCapture() = default;
  ~LoopbackCapture();
  LoopbackCapture(const LoopbackCapture&) = delete;
  /// Empty: done. Otherwise why it cannot be had here.
  std::string start(unsigned mtu);
  void set_mtu(unsigned mtu);
  /// Takes in what has been sent since.
  void look();
  /// What the socket bound to `port` has sent.
  const SegmentedStream& from_port(std::uint16_t port) { return streams_[port]; }

 private:
  void take(const std::byte* packet, std::size_t size);

  // Frames shared with the kernel: a socket's buffer would have room for fewer, unless root asks.
  static constexpr unsigned kFrame = 2048;
  static constexpr unsigned kFrames = 8192;
  UniqueFd before_;
  UniqueFd socket_;
  std::byte* ring_ = nullptr;
  unsigned next_ = 0;
  std::map<std::uint16_t, SegmentedStream> streams_;
};

}  // namespace nfsrdma::iwarp::test
