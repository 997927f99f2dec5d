// SPDX-License-Identifier: Apache-2.0
// WireTap: is told what crosses a server's connection while somebody captures it (`nfs-rdma
// capture`): whole messages, and the data that RDMA Reads and Writes move, whatever fabric carries
// them. A connection without one pays for a null pointer.
//
// On the loop's thread; its connection owns it. Bytes are valid during the call only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma {

class WireTap {
 public:
  virtual ~WireTap() = default;
  /// A Send, or over TCP a record, of the peer.
  virtual void on_receive(ByteSpan message) = 0;
  /// One of ours, made of `pieces`; with the handle that it invalidates.
  virtual void on_send(std::span<const ByteSpan> pieces,
                       std::optional<std::uint32_t> invalidated) = 0;
  /// An RDMA Write into the peer's memory.
  virtual void on_write(std::uint32_t handle, std::uint64_t offset,
                        std::span<const ByteSpan> pieces) = 0;
  /// An RDMA Read of the peer's memory into ours at `sink` begins.
  virtual void on_read(const std::byte* sink, std::uint32_t handle, std::uint64_t offset,
                       std::uint32_t length) = 0;
  /// Everything that on_read() told of and that lies in `data` has come. Also for what was asked
  /// for before there was a tap.
  virtual void on_read_done(ByteSpan data) = 0;
};

}  // namespace nfsrdma
