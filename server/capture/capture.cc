// SPDX-License-Identifier: Apache-2.0
#include "server/capture/capture.h"

#include <utility>

#include "rpcrdma/base/log.h"
#include "server/capture/pcapng_writer.h"
#include "server/shard.h"

namespace nfsrdma {

namespace {

std::uint64_t wall_clock_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

std::string head_of_file() {
  std::string out;
  pcapng::append_section(
      out, "nfs-rdmad " NFSRDMA_VERSION,
      "What crossed connections of an NFS server. RDMA connections of any fabric are written as "
      "iWARP over TCP: messages, RDMA Reads and Writes are real, the frames around them made up.");
  pcapng::append_interface(out, "nfs-rdma", "connections of nfs-rdmad, as it sees them");
  return out;
}

}  // namespace

Capture::Capture(EventLoop& loop, std::span<const std::unique_ptr<Shard>> shards)
    : loop_(loop),
      shards_(shards),
      retry_([this] { pump(); }),
      tell_([this] { send_statistics(); }) {}

Capture::~Capture() {
  *alive_ = false;
  if (!session_) return;
  for (const auto& shard : shards_)
    shard->capture(nullptr, {});
  for (const auto& batch : session_->waiting)
    session_->stream->send(batch->blocks);
  send_statistics();
  session_->stream->finish();
  log_notice("the capture ended with the server: {} packets, {} lost", session_->packets,
             session_->lost);
}

void Capture::start(const JsonValue& request, std::shared_ptr<ControlStream> stream) {
  CaptureFilter filter;
  std::string problem;
  if (session_) problem = "another capture is under way";
  if (!problem.empty() || !CaptureFilter::parse(request, &filter, &problem)) {
    stream->send(control_error(problem) + "\n");
    stream->finish();
    return;
  }
  log_notice("a capture begins: whoever reads it sees the data of files");
  session_ = std::make_shared<Session>();
  session_->number = ++sessions_;
  session_->id = request["id"].text();
  session_->start_ns = wall_clock_ns();
  session_->stream = std::move(stream);
  session_->stream->send(head_of_file());
  session_->stream->on_gone([this, raw = session_.get(), alive = alive_] {
    if (!*alive || session_.get() != raw) return;
    log_notice("the capture ended, since its reader has gone: {} packets, {} lost", raw->packets,
               raw->lost);
    forget();
  });
  auto order = std::make_shared<ShardCapture::Order>();
  order->filter = std::move(filter);
  order->under_way = session_->under_way;
  order->sink = [this, alive = alive_, &loop = loop_,
                 number = session_->number](std::shared_ptr<const CaptureBatch> batch) {
    loop.post([this, alive, number, batch = std::move(batch)] {
      if (*alive) take(number, batch);
    });
  };
  for (const auto& shard : shards_)
    shard->capture(order, {});
  tell_.arm_after(loop_, kStatistics);
}

std::string Capture::stop(const JsonValue& request) {
  if (!session_ || session_->id != request["id"].text()) return control_error("no such capture");
  if (!session_->stopping) {
    session_->stopping = true;
    session_->shards_left = shards_.size();
    for (const auto& shard : shards_) {
      shard->capture(nullptr, [this, alive = alive_, &loop = loop_, number = session_->number] {
        loop.post([this, alive, number] {
          if (*alive) shard_stopped(number);
        });
      });
    }
    pump();
  }
  return R"({"version":1})";
}

void Capture::shard_stopped(std::uint64_t number) {
  if (!session_ || session_->number != number) return;
  if (session_->shards_left > 0) --session_->shards_left;
  pump();
}

void Capture::end(std::chrono::steady_clock::time_point deadline) {
  if (!session_) return;
  const std::shared_ptr<Session> session = session_;
  session->with_server = true;
  // Behind what the shards have handed over.
  loop_.post([this, alive = alive_, session] {
    if (!*alive || session_ != session) return;
    session->stopping = true;
    session->shards_left = 0;
    pump();
  });
  // At least once: what is there may be all, and the socket have room for it.
  do {
    loop_.turn(kRetry);
  } while (session->stream->open() && std::chrono::steady_clock::now() < deadline);
  if (session_ == session) {
    log_notice("the capture ended with the server: {} packets, {} lost", session->packets,
               session->lost);
    forget();
  }
  if (session->stream->open())
    log_warning(
        "the last packets are missing in the capture: its reader did not take them in time");
}

void Capture::take(std::uint64_t number, std::shared_ptr<const CaptureBatch> batch) {
  if (!session_ || session_->number != number) return;
  session_->packets += batch->packets;
  session_->lost += batch->lost;
  if (!batch->blocks.empty()) session_->waiting.push_back(std::move(batch));
  pump();
}

/// Sends what waits; what the stream has no room for now, later.
void Capture::pump() {
  if (!session_) return;
  // Held here: a stream that finds its reader gone says so in the middle.
  const std::shared_ptr<Session> session = session_;
  while (!session->waiting.empty() && session->stream->send(session->waiting.front()->blocks))
    session->waiting.pop_front();
  if (session != session_) return;
  const bool ends = session->stopping && session->shards_left == 0;
  if (ends && session->waiting.empty() && send_statistics()) {
    if (session != session_) return;
    session->stream->finish();
    log_notice("the capture ended{}: {} packets, {} lost",
               session->with_server ? " with the server" : "", session->packets, session->lost);
    return forget();
  }
  if (ends || !session->waiting.empty()) retry_.arm_after(loop_, kRetry);
}

bool Capture::send_statistics() {
  tell_.arm_after(loop_, kStatistics);
  std::string out;
  pcapng::append_statistics(out, {session_->start_ns, wall_clock_ns(),
                                  session_->packets + session_->lost, session_->lost});
  const std::shared_ptr<ControlStream> stream = session_->stream;
  return stream->send(out);
}

void Capture::forget() {
  if (!session_->stopping) {
    for (const auto& shard : shards_)
      shard->capture(nullptr, {});
  }
  session_.reset();
  retry_.cancel();
  tell_.cancel();
}

}  // namespace nfsrdma
