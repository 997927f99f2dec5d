// SPDX-License-Identifier: Apache-2.0
// How the simulated fabric runs work requests. Sends and Writes happen one by one in the order
// posted, each after a random delay; Reads happen in order among themselves, beside the others.
// Completions are reported in the order of posting whatever finished first.
#include <algorithm>
#include <cstring>
#include <utility>

#include "rpcrdma/sim/sim_fabric.h"

namespace nfsrdma {

SimQueuePair::SimQueuePair(SimFabric& fabric, const QueuePairOptions& options,
                           const QueuePairInfo& info)
    : fabric_(fabric),
      domain_(static_cast<SimDomain&>(*options.domain)),
      completions_(static_cast<SimCompletionQueue&>(*options.completions)),
      receives_(static_cast<SimReceiveQueue&>(*options.receives)),
      handler_(*options.handler),
      info_(info),
      send_depth_(options.send_depth),
      id_(fabric.next_id_++) {
  fabric_.queue_pairs_[id_] = this;
}

SimQueuePair::~SimQueuePair() {
  fabric_.queue_pairs_.erase(id_);
  if (!broken_) fail_peer();
}

void SimQueuePair::connect_to(SimQueuePair& peer) {
  peer_id_ = peer.id_;
}

SimQueuePair* SimQueuePair::peer() {
  auto found = fabric_.queue_pairs_.find(peer_id_);
  return found == fabric_.queue_pairs_.end() ? nullptr : found->second;
}

Result<void> SimQueuePair::post(std::span<const WorkRequest> requests, std::size_t* posted) {
  *posted = 0;
  if (broken_) return Error{Errc::kClosed, 0, "simulated post"};
  const bool partial = fabric_.network().count_post();
  const std::size_t room = send_depth_ - std::min<std::size_t>(send_depth_, works_.size());
  const bool overflow = requests.size() > room;
  if (overflow) fabric_.violation("send queue overflow");
  const std::size_t take = std::min(partial ? requests.size() / 2 : requests.size(), room);
  for (std::size_t i = 0; i < take; ++i) {
    Work work{requests[i], {requests[i].sges.begin(), requests[i].sges.end()}, {}};
    for (const Sge& sge : work.sges) {
      if (!domain_.covers_locally(sge)) fabric_.violation("SGE outside of registered memory");
    }
    work.request.sges = {};
    works_.push_back(std::move(work));
  }
  *posted = take;
  if (partial) {
    break_down(Errc::kSystem);
    return Error{Errc::kSystem, EIO, "simulated post"};
  }
  pump();
  if (overflow) return Error{Errc::kExhausted, 0, "simulated post"};
  return {};
}

void SimQueuePair::pump() {
  if (pump_scheduled_ || broken_ || started_ == works_.size()) return;
  pump_scheduled_ = true;
  fabric_.network().schedule(fabric_.network().jitter(), [&fabric = fabric_, id = id_] {
    auto found = fabric.queue_pairs_.find(id);
    if (found != fabric.queue_pairs_.end()) found->second->execute();
  });
}

/// The next work request leaves.
void SimQueuePair::execute() {
  pump_scheduled_ = false;
  if (broken_ || started_ == works_.size()) return;
  Work& work = works_[started_++];
  if (work.request.opcode == WorkOpcode::kRead) {
    reads_.push_back(retired_ + started_ - 1);
    if (reads_.size() > info_.max_outbound_reads) fabric_.violation("more Reads than ORD");
    fabric_.network().schedule(fabric_.network().jitter(), [&fabric = fabric_, id = id_] {
      auto found = fabric.queue_pairs_.find(id);
      if (found != fabric.queue_pairs_.end()) found->second->execute_read();
    });
  } else {
    finish(work, run(work));
  }
  pump();
}

void SimQueuePair::execute_read() {
  if (broken_ || reads_.empty()) return;
  Work& work = works_[reads_.front() - retired_];
  reads_.pop_front();
  finish(work, run(work));
}

WorkStatus SimQueuePair::run(Work& work) {
  if (fabric_.network().count_work() || peer() == nullptr) return WorkStatus::kFailed;
  if (std::exchange(peer()->awaits_first_message_, false)) peer()->handler_.on_established();
  if (peer() == nullptr) return WorkStatus::kFailed;
  switch (work.request.opcode) {
    case WorkOpcode::kSend:
    case WorkOpcode::kSendWithInvalidate:
      return run_send(work);
    case WorkOpcode::kWrite:
      return run_write(work);
    case WorkOpcode::kRead:
      return run_read(work);
    case WorkOpcode::kReceive:
      break;
  }
  fabric_.violation("bad opcode");
  return WorkStatus::kFailed;
}

WorkStatus SimQueuePair::run_send(Work& work) {
  SimQueuePair& other = *peer();
  if (other.receives_.queue.empty()) {
    fabric_.violation("Send without a receive posted");
    return WorkStatus::kFailed;
  }
  SimReceiveQueue::Posted receive = other.receives_.queue.front();
  other.receives_.queue.pop_front();
  WorkCompletion completion;
  completion.wr_id = receive.wr_id;
  completion.opcode = WorkOpcode::kReceive;
  completion.queue_pair = &other;
  for (const Sge& sge : work.sges) {
    if (completion.byte_count + sge.length > receive.buffer.length) {
      fabric_.violation("Send longer than the receive");
      other.receives_.queue.push_front(receive);
      return WorkStatus::kFailed;
    }
    if (sge.length > 0) {
      std::memcpy(receive.buffer.address + completion.byte_count, sge.address, sge.length);
    }
    completion.byte_count += sge.length;
  }
  if (work.request.opcode == WorkOpcode::kSendWithInvalidate) {
    completion.invalidated = true;
    completion.invalidated_handle = work.request.remote_handle;
    other.domain_.invalidate(work.request.remote_handle);
  }
  other.completions_.push(completion);
  return WorkStatus::kSuccess;
}

WorkStatus SimQueuePair::run_write(Work& work) {
  SimQueuePair& other = *peer();
  std::uint64_t length = 0;
  for (const Sge& sge : work.sges)
    length += sge.length;
  std::byte* target = other.domain_.find(work.request.remote_handle, work.request.remote_offset,
                                         length, Access::kRemoteWrite, &other);
  if (target == nullptr) return WorkStatus::kFailed;
  for (const Sge& sge : work.sges) {
    std::memcpy(target, sge.address, sge.length);
    target += sge.length;
  }
  return WorkStatus::kSuccess;
}

WorkStatus SimQueuePair::run_read(Work& work) {
  SimQueuePair& other = *peer();
  std::uint64_t length = 0;
  for (const Sge& sge : work.sges)
    length += sge.length;
  if (work.request.read_sink == nullptr) {
    fabric_.violation("Read without a sink region");
    return WorkStatus::kFailed;
  }
  const std::byte* source = other.domain_.find(
      work.request.remote_handle, work.request.remote_offset, length, Access::kRemoteRead, &other);
  if (source == nullptr) return WorkStatus::kFailed;
  for (const Sge& sge : work.sges) {
    std::memcpy(sge.address, source, sge.length);
    source += sge.length;
  }
  return WorkStatus::kSuccess;
}

void SimQueuePair::finish(Work& work, WorkStatus status) {
  work.done = status;
  if (status == WorkStatus::kFailed) {
    break_down(Errc::kProtocol);
    return;
  }
  report();
}

/// Completions in the order of posting: the oldest unfinished work holds back all behind it.
void SimQueuePair::report() {
  while (!works_.empty() && works_.front().done) {
    const Work& work = works_.front();
    if (work.request.signaled || *work.done != WorkStatus::kSuccess) {
      WorkCompletion completion;
      completion.wr_id = work.request.wr_id;
      completion.opcode = work.request.opcode;
      completion.status = *work.done;
      completion.queue_pair = this;
      completions_.push(completion);
    }
    works_.pop_front();
    ++retired_;
    if (started_ > 0) --started_;
  }
}

void SimQueuePair::break_down(Errc why) {
  if (broken_) return;
  broken_ = true;
  for (Work& work : works_) {
    if (!work.done) work.done = WorkStatus::kFlushed;
  }
  reads_.clear();
  report();
  fail_peer();
  fabric_.network().schedule(fabric_.network().jitter(), [&fabric = fabric_, id = id_, why] {
    auto found = fabric.queue_pairs_.find(id);
    if (found == fabric.queue_pairs_.end()) return;
    found->second->completions_.notify();  // first what was flushed, then the end
    found = fabric.queue_pairs_.find(id);
    if (found == fabric.queue_pairs_.end()) return;
    found->second->handler_.on_disconnected(Error{why, 0, "simulated connection"});
  });
}

void SimQueuePair::fail_peer() {
  fabric_.network().schedule(fabric_.network().jitter(), [&fabric = fabric_, id = peer_id_] {
    auto found = fabric.queue_pairs_.find(id);
    if (found != fabric.queue_pairs_.end()) found->second->break_down(Errc::kClosed);
  });
}

void SimQueuePair::disconnect() {
  break_down(Errc::kClosed);
}

}  // namespace nfsrdma
