// SPDX-License-Identifier: Apache-2.0
// ShardCapture: a capture as one shard has it: which connections are tapped, and the buffer that
// their frames go to.
//
// On the shard's thread. It outlives its taps: end() takes them away, and connections that the
// shard ends with are gone before it.
#pragma once

#include <memory>

#include "server/capture/capture_buffer.h"
#include "server/capture/capture_filter.h"

namespace nfsrdma {

class ShardCapture {
 public:
  /// What all shards are told.
  struct Order {
    CaptureFilter filter;
    std::shared_ptr<CaptureRoom> under_way;
    CaptureBuffer::Sink sink;
  };

  ShardCapture(EventLoop& loop, const Order& order);

  /// Taps `connection` if it is wanted; `fresh`: it has just been made.
  void add(ServerConnection& connection, bool fresh);
  /// It has ended.
  void closed(ServerConnection& connection);
  void flush() { buffer_.flush(); }

 private:
  CaptureFilter filter_;
  CaptureBuffer buffer_;
};

}  // namespace nfsrdma
