// SPDX-License-Identifier: Apache-2.0
#include "server/capture/capture_buffer.h"

#include <chrono>
#include <utility>

#include "server/capture/pcapng_writer.h"

namespace nfsrdma {

CaptureBuffer::CaptureBuffer(EventLoop& loop, std::shared_ptr<CaptureRoom> under_way, Sink sink)
    : loop_(loop),
      under_way_(std::move(under_way)),
      sink_(std::move(sink)),
      timer_([this] { flush(); }) {}

void CaptureBuffer::begin_message() {
  keeps_ = under_way_->load(std::memory_order_acquire) < kMostUnderWay;
  time_ns_ = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                            std::chrono::system_clock::now().time_since_epoch())
                                            .count());
}

void CaptureBuffer::packet(bool outbound, std::span<const ByteSpan> pieces,
                           std::size_t original_length, std::string_view comment) {
  if (!timer_.armed()) timer_.arm_after(loop_, kDelay);
  if (!keeps_) {
    ++batch_.lost;
    return;
  }
  if (batch_.blocks.empty()) batch_.blocks.reserve(kBatch + kBatch / 4);
  pcapng::append_packet(batch_.blocks, {time_ns_, pieces, original_length, outbound, comment});
  ++batch_.packets;
  if (batch_.blocks.size() >= kBatch) flush();
}

void CaptureBuffer::flush() {
  timer_.cancel();
  if (batch_.packets == 0 && batch_.lost == 0) return;
  // What waits for a reader shall not keep the room of a full batch each.
  if (batch_.blocks.size() < kBatch / 2) batch_.blocks.shrink_to_fit();
  const std::size_t bytes = sizeof batch_ + batch_.blocks.capacity();
  under_way_->fetch_add(bytes, std::memory_order_relaxed);
  sink_(std::shared_ptr<const CaptureBatch>(
      new CaptureBatch(std::exchange(batch_, {})),
      [under_way = under_way_, bytes](const CaptureBatch* batch) {
        delete batch;
        under_way->fetch_sub(bytes, std::memory_order_release);
      }));
}

}  // namespace nfsrdma
