// SPDX-License-Identifier: Apache-2.0
// CaptureBuffer: takes down the frames that a shard's connections make, as pcapng blocks, and hands
// them over in batches. What has not been taken away yet is bounded, for all shards together:
// messages that come beyond it are counted, not kept.
//
// On the shard's thread; `sink` is called there and passes batches on.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "rpcrdma/base/event_loop.h"
#include "server/capture/packet_sink.h"

namespace nfsrdma {

/// Some frames, and how many before the last of them were not kept.
struct CaptureBatch {
  std::string blocks;
  std::uint64_t packets = 0;
  std::uint64_t lost = 0;
};

/// How many bytes of batches somebody has.
using CaptureRoom = std::atomic<std::size_t>;

class CaptureBuffer final : public PacketSink {
 public:
  static constexpr std::size_t kBatch = std::size_t{256} << 10;
  static constexpr std::size_t kMostUnderWay = std::size_t{32} << 20;
  static constexpr std::chrono::milliseconds kDelay{50};
  /// Gets a batch, whose bytes count as under way for as long as anybody has it.
  using Sink = std::function<void(std::shared_ptr<const CaptureBatch>)>;

  CaptureBuffer(EventLoop& loop, std::shared_ptr<CaptureRoom> under_way, Sink sink);

  /// All packets until the next call belong to one message, of which either all are kept or none.
  void begin_message();
  void packet(bool outbound, std::span<const ByteSpan> pieces, std::size_t original_length,
              std::string_view comment) override;
  /// Hands over what there is.
  void flush();

 private:
  EventLoop& loop_;
  std::shared_ptr<CaptureRoom> under_way_;
  Sink sink_;
  bool keeps_ = true;          // the message that began last
  std::uint64_t time_ns_ = 0;  // of that message
  CaptureBatch batch_;
  Timer timer_;
};

}  // namespace nfsrdma
