// SPDX-License-Identifier: Apache-2.0
// The receiving half of the engine: what each FPDU's header allows and what its end brings about.
// Everything here comes from the peer; nothing is trusted before it is checked.
#include <fmt/format.h>

#include "rpcrdma/iwarp/engine.h"

namespace nfsrdma::iwarp {
namespace {

RdmapOpcode opcode_of(const FpduHeader& header) {
  return static_cast<RdmapOpcode>(header.rdmap_control & kRdmapOpcodeMask);
}

TerminateCode ddp_code(StagFault fault) {
  switch (fault) {
    case StagFault::kStream:
      return kTermDdpStream;
    case StagFault::kAccess:
      return kTermRdmapAccess;
    case StagFault::kWrap:
      return kTermDdpOffsetWrap;
    case StagFault::kBounds:
      return kTermDdpBounds;
    case StagFault::kNone:
    case StagFault::kInvalid:
      break;
  }
  return kTermDdpInvalidStag;
}

Placement place(std::byte* target, std::uint64_t beyond = 0) {
  return {Placement::Action::kPlace, target, beyond};
}

}  // namespace

Placement Engine::fail_segment(TerminateCode code, const FpduHeader& header) {
  fail_with(code, &header, nullptr);
  return {Placement::Action::kFail, nullptr, 0};
}

void Engine::fpdu_error(TerminateCode code) {
  fail_with(code, nullptr, nullptr);
}

Placement Engine::begin_fpdu(const FpduHeader& header) {
  if (failed_) return {Placement::Action::kFail, nullptr, 0};
  current_ = header;
  placing_tagged_ = false;
  if (header.ddp_version() != kDdpVersion) {
    return fail_segment(header.tagged() ? kTermDdpTaggedVersion : kTermDdpUntaggedVersion, header);
  }
  if ((header.rdmap_control & kRdmapVersionMask) != kRdmapVersion) {
    return fail_segment(kTermRdmapVersion, header);
  }
  const RdmapOpcode opcode = opcode_of(header);
  if (header.tagged()) {
    if (opcode == RdmapOpcode::kWrite) return begin_write(header);
    if (opcode == RdmapOpcode::kReadResponse) return begin_read_response(header);
    return fail_segment(kTermRdmapOpcode, header);
  }
  if (header.queue > kQueueTerminate) return fail_segment(kTermDdpInvalidQueue, header);
  if (is_send(opcode) && header.queue == kQueueSend) return begin_send(header);
  if (opcode == RdmapOpcode::kReadRequest && header.queue == kQueueReadRequest) {
    return begin_read_request(header);
  }
  if (opcode == RdmapOpcode::kTerminate && header.queue == kQueueTerminate) {
    return begin_terminate(header);
  }
  const bool known =
      is_send(opcode) || opcode == RdmapOpcode::kReadRequest || opcode == RdmapOpcode::kTerminate;
  return fail_segment(known ? kTermDdpInvalidQueue : kTermRdmapOpcode, header);
}

Placement Engine::begin_write(const FpduHeader& header) {
  const std::uint32_t size = header.payload();
  if (size == 0) return place(nullptr);  // RTR or nudge: nothing is checked
  const StagAccess access =
      stags_.check(header.stag, header.offset, size, options_.scope, Access::kRemoteWrite);
  if (access.fault != StagFault::kNone) return fail_segment(ddp_code(access.fault), header);
  StagEntry& entry = *access.entry;
  const std::uint64_t end = access.position + size;
  std::uint64_t beyond = 0;
  if (end >= entry.placed_end) {
    entry.placed_end = end;
    beyond = entry.size - end;
  }
  placing_tagged_ = true;
  return place(entry.base + access.position, beyond);
}

Placement Engine::begin_read_response(const FpduHeader& header) {
  if (open_reads_.empty()) return fail_segment(kTermRdmapOpcode, header);
  WorkEntry& read = *open_reads_.front();
  const std::uint32_t size = header.payload();
  const std::uint32_t left = read.length - read.received;
  TerminateCode code = kTermDdpBounds;
  if (header.stag != read.sink_stag) {
    code = kTermDdpInvalidStag;
  } else if (header.offset == read.sink_offset + read.received && size <= left &&
             (!header.last() || size == left)) {
    if (size == 0) return place(nullptr);
    const StagAccess access =
        stags_.check(header.stag, header.offset, size, options_.scope, Access::kReadSink);
    if (access.fault == StagFault::kNone) {
      placing_tagged_ = true;
      return place(access.entry->base + access.position, left - size);
    }
    code = ddp_code(access.fault);
  }
  read.status = WorkStatus::kFailed;
  return fail_segment(code, header);
}

Placement Engine::begin_send(const FpduHeader& header) {
  if (header.msn != expected_send_msn_) return fail_segment(kTermDdpMsn, header);
  const std::uint32_t so_far = send_active_ ? send_received_ : 0;
  if (header.message_offset != so_far) return fail_segment(kTermDdpMessageOffset, header);
  const auto opcode = static_cast<std::uint8_t>(opcode_of(header));
  if (!send_active_) {
    if (!start_send(header)) return {Placement::Action::kWait, nullptr, 0};
    send_opcode_ = opcode;
  } else if (send_opcode_ != opcode) {
    return fail_segment(kTermRdmapOpcode, header);
  }
  const std::uint32_t size = header.payload();
  if (!range_inside(send_received_, size, send_buffer_.length)) {
    return fail_segment(kTermDdpTooLong, header);
  }
  if (size == 0) return place(nullptr);
  return place(send_buffer_.address + send_received_);
}

/// Finds the buffer for a message that starts; false when there is none.
bool Engine::start_send(const FpduHeader& header) {
  // The zero-length Send that was announced as RTR uses up a sequence number and nothing else.
  send_is_rtr_ = options_.expected_rtr == RtrKind::kSend && header.msn == 1 && header.last() &&
                 header.payload() == 0;
  send_buffer_ = {};
  if (!send_is_rtr_ && !events_.take_receive(&send_wr_id_, &send_buffer_)) return false;
  send_active_ = true;
  send_received_ = 0;
  return true;
}

Placement Engine::begin_read_request(const FpduHeader& header) {
  if (header.msn != expected_read_msn_) return fail_segment(kTermDdpMsn, header);
  if (header.message_offset != 0) return fail_segment(kTermDdpMessageOffset, header);
  if (!header.last() || header.payload() != kReadRequestBody) {
    return fail_segment(kTermDdpTooLong, header);
  }
  if (response_count_ == responses_.size()) return fail_segment(kTermRdmapStreamFatal, header);
  return place(control_.data());
}

Placement Engine::begin_terminate(const FpduHeader& header) {
  if (header.payload() > control_.size()) return {Placement::Action::kDiscard, nullptr, 0};
  return place(control_.data());
}

bool Engine::end_fpdu() {
  placing_tagged_ = false;
  bool good = true;
  switch (opcode_of(current_)) {
    case RdmapOpcode::kWrite:
      break;
    case RdmapOpcode::kReadResponse:
      good = end_read_response();
      break;
    case RdmapOpcode::kReadRequest:
      good = end_read_request();
      break;
    case RdmapOpcode::kTerminate:
      return end_terminate();
    default:
      good = end_send();
      break;
  }
  if (good && receiver_.fpdus() == 0) {
    started_ = true;
    events_.on_first_fpdu();
  }
  return good && !failed_;
}

bool Engine::end_send() {
  send_received_ += current_.payload();
  if (!current_.last()) return true;
  ++expected_send_msn_;
  const bool invalidate = invalidates(opcode_of(current_));
  // Withdrawn first, so that nothing reaches the memory once the message is seen.
  if (invalidate && !stags_.invalidate(current_.rsvd_ulp, options_.scope)) {
    fail_with(kTermRdmapInvalidate, &current_, nullptr);
    return false;  // flush() or the destructor gives the buffer back
  }
  send_active_ = false;
  if (send_is_rtr_) return true;
  WorkCompletion completion;
  completion.wr_id = send_wr_id_;
  completion.opcode = WorkOpcode::kReceive;
  completion.byte_count = send_received_;
  completion.invalidated = invalidate;
  completion.invalidated_handle = invalidate ? current_.rsvd_ulp : 0;
  events_.on_completion(completion);
  return true;
}

bool Engine::end_read_response() {
  WorkEntry& read = *open_reads_.front();
  read.received += current_.payload();
  if (!current_.last()) return true;
  open_reads_.pop();
  --reads_under_way_;
  read.done = true;
  retire();
  return true;
}

bool Engine::end_read_request() {
  ++expected_read_msn_;
  ReadResponse& response = responses_[(response_first_ + response_count_) % responses_.size()];
  response.request = load_read_request(control_.data());
  response.header = current_;
  ++response_count_;
  return true;
}

bool Engine::end_terminate() {
  const std::size_t size = std::min<std::size_t>(current_.payload(), control_.size());
  const bool kept = current_.payload() <= control_.size();
  terminate_received_ = describe_terminate(kept ? ByteSpan{control_.data(), size} : ByteSpan{});
  fail(Error{Errc::kProtocol, 0, "the peer terminated the connection"});
  return false;
}

}  // namespace nfsrdma::iwarp
