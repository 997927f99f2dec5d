// SPDX-License-Identifier: Apache-2.0
// One connection's DDP and RDMAP: work requests and received FPDUs in, FPDUs and completions out.
// Pure: no system call, no clock, no thread. The driver (tcp_connection.h) moves bytes between it
// and a socket; tests move them between two engines.
//
// Sending: posted work waits in `ready_`; fill() cuts whole messages into FPDUs (pending_, a short
// ring of descriptions) and lays them out for sendmsg; on_sent() takes off what the socket
// accepted. A description holds everything needed to lay its FPDU out again after a short write.
// Read Responses take turns with our own messages at message boundaries.
//
// RDMA Reads: at most ORD are under way. Those that wait for their turn do not hold up Sends and
// Writes behind them.
//
// After fail() nothing is sent or accepted any more; the driver sends terminate(), if there is one,
// and calls flush(), which completes what is left.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "rpcrdma/fabric.h"
#include "rpcrdma/iwarp/fpdu_receiver.h"
#include "rpcrdma/iwarp/stag_table.h"
#include "rpcrdma/iwarp/terminate.h"
#include "rpcrdma/iwarp/transmit_scratch.h"
#include "rpcrdma/iwarp/work_pool.h"

namespace nfsrdma::iwarp {

/// What the engine needs of the objects around it.
class EngineEvents {
 public:
  virtual ~EngineEvents() = default;
  virtual void on_completion(const WorkCompletion& completion) = 0;
  /// A receive buffer for a Send that starts now; false when none is posted.
  virtual bool take_receive(std::uint64_t* wr_id, Sge* buffer) = 0;
  /// The message broke off: the buffer goes back to where it came from.
  virtual void return_receive(std::uint64_t wr_id, Sge buffer) = 0;
  /// The peer's first FPDU was right (responder: we may send now).
  virtual void on_first_fpdu() = 0;
  /// The initiator's RTR is done.
  virtual void on_rtr_done() = 0;
  /// Asked in front of a Read Request, with `ahead` bytes laid out before it in this batch. False:
  /// it waits, and what was posted behind it too, until fill() is called again.
  virtual bool may_send_read(std::size_t /*ahead*/) { return true; }
  /// The engine failed, see failure(). Called once, from deep inside: only take note.
  virtual void on_engine_failed() = 0;
};

enum class RtrKind : std::uint8_t { kNone, kSend, kWrite, kRead };

struct EngineOptions {
  std::uint64_t scope = 0;  // the connection's number, for STags
  bool initiator = false;
  bool crc = false;
  std::uint32_t ord = 0;
  std::uint32_t ird = 0;
  std::uint32_t send_depth = 256;
  RtrKind expected_rtr = RtrKind::kNone;  // responder
  /// FPDUs share system calls (own peers); otherwise each is its own message.
  bool coalesce = false;
  std::uint32_t tagged_payload = 1428;
  std::uint32_t untagged_payload = 1424;
};

class Engine final : private FpduHandler {
 public:
  Engine(EngineEvents& events, StagDirectory& stags, WorkPool& pool, const EngineOptions& options);
  ~Engine() override;
  Engine(const Engine&) = delete;

  // --- work requests
  Result<void> post(std::span<const WorkRequest> requests, std::size_t* posted);
  /// A zero-length RDMA Write that wakes a peer that overlooked data.
  void post_nudge();
  /// Initiator: the RTR that was agreed on.
  void post_rtr(RtrKind kind);

  // --- receiving: plan() / on_bytes() / resume() of
  FpduReceiver& receiver() { return receiver_; }

  // --- sending
  /// Lays out what can be sent now; 0 FPDUs when there is nothing.
  void fill(TransmitScratch& scratch);
  void on_sent(std::size_t bytes);
  bool has_work() const;
  /// Posted payload bytes that are not laid out and accepted by the socket yet.
  std::uint64_t queued_bytes() const { return queued_bytes_; }
  /// Everything that was posted for sending has been accepted (Reads may be outstanding).
  bool drained() const { return pending_count_ == 0 && !has_work(); }
  void set_payload_sizes(std::uint32_t tagged, std::uint32_t untagged);

  // --- the end
  bool failed() const { return failed_; }
  Error failure() const { return failure_; }
  /// An FPDU to send as the last one; empty when there is none or none can be sent.
  ByteSpan terminate() const;
  void fail(Error why, const TerminateCode* code = nullptr);
  /// The whole of what the peer's Terminate said, when that was the failure.
  const std::string& terminate_received() const { return terminate_received_; }
  /// Completes everything that is posted with kFlushed.
  void flush();
  /// `stag` is withdrawn: nothing is read from or written to its memory from now on.
  void region_gone(std::uint32_t stag);

  const EngineOptions& options() const { return options_; }
  bool started() const { return started_; }

 private:
  struct ReadResponse {
    ReadRequestBody request;
    FpduHeader header;  // of the request, to blame it
    std::uint32_t cut = 0;
    std::uint32_t fpdu_payload = 0;
    const std::byte* data = nullptr;
  };
  /// An FPDU that is cut but not wholly accepted by the socket.
  struct PendingFpdu {
    WorkEntry* work = nullptr;  // null: the oldest Read Response that is still being sent
    std::uint32_t response = 0;
    std::uint32_t offset = 0;
    std::uint32_t payload = 0;
    std::uint32_t total = 0;
    bool last = false;
  };

  // work
  Result<void> check_request(const WorkRequest& request) const;
  void add_work(const WorkRequest& request);
  WorkEntry* add_internal(WorkOpcode opcode);
  void retire();

  // sending (engine_transmit.cc)
  bool cut_next();
  bool pick_response();
  bool pick_work();
  WorkEntry* next_work();
  bool start_response(ReadResponse& response);
  void cut_from_work(WorkEntry& work);
  void cut_from_response(ReadResponse& response);
  void push_pending(const PendingFpdu& fpdu);
  std::uint32_t payload_per_fpdu(std::uint32_t length, std::uint32_t most) const;
  bool lay_out(TransmitScratch& scratch, const PendingFpdu& fpdu);
  std::size_t store_header(std::byte* out, const PendingFpdu& fpdu) const;
  void skip_sent(TransmitScratch& scratch) const;
  void sent(const PendingFpdu& fpdu);

  // receiving (engine_receive.cc)
  Placement begin_fpdu(const FpduHeader& header) override;
  bool end_fpdu() override;
  void fpdu_error(TerminateCode code) override;
  Placement begin_write(const FpduHeader& header);
  Placement begin_read_response(const FpduHeader& header);
  Placement begin_send(const FpduHeader& header);
  Placement begin_read_request(const FpduHeader& header);
  Placement begin_terminate(const FpduHeader& header);
  bool start_send(const FpduHeader& header);
  bool end_send();
  bool end_read_response();
  bool end_read_request();
  bool end_terminate();
  Placement fail_segment(TerminateCode code, const FpduHeader& header);
  void fail_with(TerminateCode code, const FpduHeader* header, const ReadRequestBody* request);

  EngineEvents& events_;
  StagDirectory& stags_;
  WorkPool& pool_;
  EngineOptions options_;
  FpduReceiver receiver_;

  // posted work
  WorkQueue<&WorkEntry::next_posted> posted_;
  WorkQueue<&WorkEntry::next_ready> ready_;
  WorkQueue<&WorkEntry::next_ready> blocked_reads_;  // wait for ORD
  WorkQueue<&WorkEntry::next_ready> open_reads_;     // Read Request sent, response outstanding
  std::uint32_t posted_count_ = 0;
  std::uint32_t reads_under_way_ = 0;
  std::uint64_t queued_bytes_ = 0;
  std::uint32_t next_send_msn_ = 1;
  std::uint32_t next_read_msn_ = 1;

  // being cut
  WorkEntry* cutting_work_ = nullptr;
  bool cutting_response_ = false;
  bool responses_turn_ = true;
  static constexpr std::uint32_t kMaxPending = TransmitScratch::kMaxFpdus;
  std::array<PendingFpdu, kMaxPending> pending_;
  std::uint32_t pending_first_ = 0;
  std::uint32_t pending_count_ = 0;
  std::size_t laid_out_ = 0;      // bytes of the batch that is being filled
  std::uint32_t front_sent_ = 0;  // bytes of the first pending FPDU that are out

  // Read Requests of the peer, a ring of IRD entries
  std::vector<ReadResponse> responses_;
  std::uint32_t response_first_ = 0;  // oldest that is not wholly sent
  std::uint32_t response_count_ = 0;
  std::uint32_t responses_cut_ = 0;  // of those, how many are wholly cut

  // receiving
  bool started_ = false;
  FpduHeader current_;
  std::uint32_t expected_send_msn_ = 1;
  std::uint32_t expected_read_msn_ = 1;
  bool send_active_ = false;
  bool send_is_rtr_ = false;
  bool placing_tagged_ = false;
  std::uint8_t send_opcode_ = 0;
  std::uint32_t send_received_ = 0;
  std::uint64_t send_wr_id_ = 0;
  Sge send_buffer_;
  std::array<std::byte, kMaxTerminateBody> control_;

  bool failed_ = false;
  Error failure_{};
  std::array<std::byte, kMaxTerminateFpdu> terminate_;
  std::uint8_t terminate_size_ = 0;
  std::string terminate_received_;
};

}  // namespace nfsrdma::iwarp
