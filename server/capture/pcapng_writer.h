// SPDX-License-Identifier: Apache-2.0
// The blocks of a pcapng file, appended to a string: one section, one interface of Ethernet frames
// with times in nanoseconds, packets, and the interface's statistics. Little-endian, as the
// section's byte-order magic says.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma::pcapng {

/// Begins a file. `application` made it; `comment` is for whoever opens it.
void append_section(std::string& out, std::string_view application, std::string_view comment);

void append_interface(std::string& out, std::string_view name, std::string_view description);

struct Packet {
  std::uint64_t time_ns = 0;         // since 1970
  std::span<const ByteSpan> pieces;  // what is kept of it, from its start
  std::size_t original_length = 0;   // what it had
  bool outbound = false;             // of this machine
  std::string_view comment;          // empty: none
};
/// Returns how many bytes were appended.
std::size_t append_packet(std::string& out, const Packet& packet);

struct Statistics {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t received = 0;  // packets, with those that were dropped
  std::uint64_t dropped = 0;
};
void append_statistics(std::string& out, const Statistics& statistics);

}  // namespace nfsrdma::pcapng
