// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/engine.h"

#include <algorithm>

namespace nfsrdma::iwarp {
namespace {

constexpr std::uint64_t kRtrId = 1;

std::uint64_t sge_total(std::span<const Sge> sges) {
  std::uint64_t total = 0;
  for (const Sge& sge : sges)
    total += sge.length;
  return total;
}

bool inside(const MemoryRegion& region, const Sge& sge) {
  // Compared as numbers: the addresses may belong to different objects.
  const auto base = reinterpret_cast<std::uintptr_t>(region.bytes().data());
  const auto at = reinterpret_cast<std::uintptr_t>(sge.address);
  return at >= base && range_inside<std::uint64_t>(at - base, sge.length, region.bytes().size());
}

}  // namespace

Engine::Engine(EngineEvents& events, StagDirectory& stags, WorkPool& pool,
               const EngineOptions& options)
    : events_(events), stags_(stags), pool_(pool), options_(options), receiver_(*this) {
  receiver_.set_crc(options.crc);
  responses_.resize(options.ird);
  // The initiator speaks first; the responder is silent until it did.
  started_ = options.initiator;
}

Engine::~Engine() {
  while (!posted_.empty())
    pool_.give(posted_.pop());
  if (send_active_ && !send_is_rtr_) events_.return_receive(send_wr_id_, send_buffer_);
}

Result<void> Engine::check_request(const WorkRequest& request) const {
  if (request.sges.size() > kMaxSge) return Error{Errc::kInvalid, 0, "too many SGEs"};
  const std::uint64_t total = sge_total(request.sges);
  if (total > 0x7fffffff) return Error{Errc::kInvalid, 0, "message too long"};
  switch (request.opcode) {
    case WorkOpcode::kReceive:
      return Error{Errc::kInvalid, 0, "receives go to the shared receive queue"};
    case WorkOpcode::kRead:
      if (options_.ord == 0) return Error{Errc::kUnsupported, 0, "the peer admits no RDMA Read"};
      if (total == 0) break;
      if (request.sges.size() != 1 || request.read_sink == nullptr ||
          !inside(*request.read_sink, request.sges[0])) {
        return Error{Errc::kInvalid, 0, "RDMA Read without a registered sink"};
      }
      break;
    case WorkOpcode::kSend:
    case WorkOpcode::kSendWithInvalidate:
    case WorkOpcode::kWrite:
      break;
  }
  return {};
}

Result<void> Engine::post(std::span<const WorkRequest> requests, std::size_t* posted) {
  *posted = 0;
  if (failed_) return Error{Errc::kClosed, 0, "queue pair"};
  for (const WorkRequest& request : requests) {
    if (posted_count_ >= options_.send_depth) return Error{Errc::kExhausted, 0, "send queue full"};
    NFSRDMA_CHECK_OK(check_request(request));
    add_work(request);
    ++*posted;
  }
  return {};
}

void Engine::add_work(const WorkRequest& request) {
  WorkEntry* work = pool_.take();
  work->wr_id = request.wr_id;
  work->opcode = request.opcode;
  work->status = WorkStatus::kFlushed;
  work->signaled = request.signaled;
  work->fence = request.fence;
  work->done = false;
  work->internal = false;
  work->remote_handle = request.remote_handle;
  work->remote_offset = request.remote_offset;
  work->cut = work->received = 0;
  work->sge_count = static_cast<std::uint8_t>(request.sges.size());
  std::copy(request.sges.begin(), request.sges.end(), work->sges.begin());
  work->length = static_cast<std::uint32_t>(sge_total(request.sges));
  work->sink_stag = 0;
  work->sink_offset = 0;
  switch (request.opcode) {
    case WorkOpcode::kRead:
      work->msn = next_read_msn_++;
      if (work->length > 0) {
        NFSRDMA_CHECK(request.read_sink != nullptr);
        work->sink_stag = request.read_sink->handle();
        work->sink_offset =
            request.read_sink->remote_offset() +
            static_cast<std::uint64_t>(work->sges[0].address - request.read_sink->bytes().data());
      }
      break;
    case WorkOpcode::kSend:
    case WorkOpcode::kSendWithInvalidate:
      work->msn = next_send_msn_++;
      break;
    default:
      work->msn = 0;
      break;
  }
  if (work->opcode != WorkOpcode::kRead) queued_bytes_ += work->length;
  posted_.push(work);
  ready_.push(work);
  ++posted_count_;
}

WorkEntry* Engine::add_internal(WorkOpcode opcode) {
  WorkRequest request;
  request.opcode = opcode;
  request.signaled = false;
  add_work(request);
  WorkEntry* work = posted_.front();
  while (work->next_posted != nullptr)
    work = work->next_posted;
  work->internal = true;
  return work;
}

void Engine::post_nudge() {
  if (!failed_) add_internal(WorkOpcode::kWrite);
}

void Engine::post_rtr(RtrKind kind) {
  switch (kind) {
    case RtrKind::kNone:
      break;
    case RtrKind::kSend:
      add_internal(WorkOpcode::kSend)->wr_id = kRtrId;
      break;
    case RtrKind::kWrite:
      add_internal(WorkOpcode::kWrite)->wr_id = kRtrId;
      break;
    case RtrKind::kRead:
      add_internal(WorkOpcode::kRead)->wr_id = kRtrId;
      break;
  }
}

/// Reports what is complete, in posting order.
void Engine::retire() {
  while (!posted_.empty() && posted_.front()->done) {
    WorkEntry* work = posted_.pop();
    --posted_count_;
    if (work->internal) {
      if (work->wr_id == kRtrId) events_.on_rtr_done();
    } else if (work->signaled) {
      WorkCompletion completion;
      completion.wr_id = work->wr_id;
      completion.opcode = work->opcode;
      completion.byte_count = work->length;
      events_.on_completion(completion);
    }
    pool_.give(work);
  }
}

void Engine::set_payload_sizes(std::uint32_t tagged, std::uint32_t untagged) {
  options_.tagged_payload = tagged;
  options_.untagged_payload = untagged;
}

void Engine::fail(Error why, const TerminateCode* code) {
  if (failed_) return;
  if (code != nullptr) {
    fail_with(*code, nullptr, nullptr);
    failure_ = why;
    return;
  }
  failed_ = true;
  failure_ = why;
  events_.on_engine_failed();
}

void Engine::fail_with(TerminateCode code, const FpduHeader* header,
                       const ReadRequestBody* request) {
  if (failed_) return;
  failed_ = true;
  failure_ = Error{Errc::kProtocol, 0, terminate_text(code)};
  terminate_size_ =
      static_cast<std::uint8_t>(store_terminate(terminate_, code, header, request, options_.crc));
  events_.on_engine_failed();
}

ByteSpan Engine::terminate() const {
  // Not in the middle of an FPDU, and not before we may speak.
  if (terminate_size_ == 0 || front_sent_ != 0 || !started_) return {};
  return {terminate_.data(), terminate_size_};
}

void Engine::flush() {
  failed_ = true;
  pending_count_ = response_count_ = responses_cut_ = 0;
  cutting_work_ = nullptr;
  cutting_response_ = false;
  ready_.clear();
  blocked_reads_.clear();
  open_reads_.clear();
  receiver_.discard_payload();
  if (send_active_) {
    send_active_ = false;
    if (!send_is_rtr_) events_.return_receive(send_wr_id_, send_buffer_);
  }
  while (!posted_.empty()) {
    WorkEntry* work = posted_.pop();
    if (!work->internal) {
      WorkCompletion completion;
      completion.wr_id = work->wr_id;
      completion.opcode = work->opcode;
      completion.status =
          work->status == WorkStatus::kFailed ? WorkStatus::kFailed : WorkStatus::kFlushed;
      events_.on_completion(completion);
    }
    pool_.give(work);
  }
  posted_count_ = 0;
  queued_bytes_ = 0;
}

void Engine::region_gone(std::uint32_t stag) {
  if (placing_tagged_ && current_.stag == stag) receiver_.discard_payload();
  const std::uint32_t begun = responses_cut_ + (cutting_response_ ? 1 : 0);
  for (std::uint32_t i = 0; i < begun; ++i) {
    const ReadResponse& response = responses_[(response_first_ + i) % responses_.size()];
    if (response.request.size > 0 && response.request.source_stag == stag) {
      // Its bytes cannot be sent any more and nothing else may stand in for them.
      fail(Error{Errc::kClosed, 0, "memory withdrawn while the peer read it"});
      pending_count_ = 0;
      front_sent_ = 1;  // the stream ends inside an FPDU: no Terminate either
      return;
    }
  }
}

}  // namespace nfsrdma::iwarp
