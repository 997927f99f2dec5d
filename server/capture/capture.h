// SPDX-License-Identifier: Apache-2.0
// Capture: sends what crosses connections as pcapng to whoever asks for it (`nfs-rdma capture`).
// One at a time. Shards take frames down only meanwhile.
//
// What waits for a slow reader is bounded (CaptureBuffer::kMostUnderWay and what a ControlStream
// holds); what is lost is counted in the statistics block, which the stream has once a second and
// at its end. A reader keeps the last one.
//
// On the accepting loop's thread. Make it after the shards and end it before them.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/json_value.h"
#include "server/capture/shard_capture.h"
#include "server/control.h"

namespace nfsrdma {

class Shard;

class Capture {
 public:
  static constexpr std::chrono::milliseconds kRetry{5};
  static constexpr std::chrono::seconds kStatistics{1};

  Capture(EventLoop& loop, std::span<const std::unique_ptr<Shard>> shards);
  ~Capture();

  /// Begins one, as `request` says (CaptureFilter). Its member "id" names it for stop(). It lasts
  /// until the reader goes or stop().
  void start(const JsonValue& request, std::shared_ptr<ControlStream> stream);
  /// Ends the one of that "id": its stream gets all that has crossed until now, then closes.
  /// Returns what to answer.
  std::string stop(const JsonValue& request);
  /// The server ends, and so does the capture: its stream gets all that has crossed, as far as its
  /// reader takes that until `deadline`. When the shards have ended, and the loop does not run;
  /// turns it meanwhile.
  void end(std::chrono::steady_clock::time_point deadline);

 private:
  /// One capture, from the request to the end of its stream.
  struct Session {
    std::uint64_t number = 0;
    std::string id;
    std::shared_ptr<ControlStream> stream;
    std::shared_ptr<CaptureRoom> under_way = std::make_shared<CaptureRoom>(0);
    std::deque<std::shared_ptr<const CaptureBatch>> waiting;  // for the stream to have room
    std::uint64_t start_ns = 0;
    std::uint64_t packets = 0;
    std::uint64_t lost = 0;
    std::size_t shards_left = 0;  // that have not stopped yet
    bool stopping = false;
    bool with_server = false;  // end() is why
  };
  // Of the session with that number, which may have gone.
  void take(std::uint64_t number, std::shared_ptr<const CaptureBatch> batch);
  void shard_stopped(std::uint64_t number);
  void pump();
  bool send_statistics();
  void forget();

  EventLoop& loop_;
  std::span<const std::unique_ptr<Shard>> shards_;
  std::shared_ptr<Session> session_;  // null: nobody captures
  std::uint64_t sessions_ = 0;
  Timer retry_;
  Timer tell_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace nfsrdma
