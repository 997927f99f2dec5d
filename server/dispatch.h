// SPDX-License-Identifier: Apache-2.0
// Dispatcher: one shard's way from a Call to its reply. It reads the RPC header (RFC 5531), finds
// the procedure, asks the duplicate request cache, runs the procedure here or on a worker, waits
// for what the procedure needs (buffers, stable storage), and sends the reply.
//
// Threads: everything on the loop's thread, except that a ServedCall visits a worker or the
// committer and comes back through the mailbox: a list that any thread pushes to; the first to
// push onto an empty list wakes the loop, so a batch of results costs one wake-up.
//
// Memory: ServedCalls are recycled; nothing is allocated per call once as many exist as calls were
// ever outstanding (which the transports bound).
//
// Lifetimes: what Shared names outlives the dispatcher. Destroy it when outstanding() is 0, which
// the transports' shutdown() waits for.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/call.h"
#include "server/call_metrics.h"
#include "server/call_record.h"
#include "server/placement.h"
#include "server/procedure.h"
#include "server/reply_cache.h"
#include "server/worker_pool.h"
#include "xdr/rpc.h"

namespace nfsrdma {

class Committer;
class ServedCall;

/// Is told of every call that was answered. On the shard's thread; quick.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  virtual void on_call_answered(const CallRecord& record) = 0;
};

class Dispatcher final : public CallHandler {
 public:
  struct Shared {
    ServerContext* server = nullptr;  // handed to the procedures
    WorkerPool* workers = nullptr;
    Committer* committer = nullptr;  // null: kReplyDurable is answered at once (tests)
    ReplyCache* replies = nullptr;   // null: no duplicate request cache (tests)
    std::span<const ProgramTable> programs;
    std::uint64_t slow_ns = 0;  // calls that take longer are logged; 0: none are
  };
  Dispatcher(EventLoop& loop, const Shared& shared);
  ~Dispatcher() override;

  void on_connection_opened(ServerConnection& connection) override;
  void on_connection_closed(ServerConnection& connection) override;
  void on_call(Call& call) override;

  std::size_t outstanding() const { return outstanding_; }
  std::size_t connections() const { return connections_; }

  struct ProcedureStats {
    std::string_view program;
    std::string_view name;
    std::uint64_t calls = 0;
    std::uint64_t on_workers = 0;
    MeasuredPlacement placement;
  };
  std::span<const ProcedureStats> procedures() const { return stats_; }
  std::vector<CallCounts> counts() const { return metrics_.report(); }
  /// Null: nobody. As long as there is one the stages of calls are timed.
  void observe(CallObserver* observer);
  /// Calls that take longer than `ns` are logged; 0: none.
  void log_slow(std::uint64_t ns);
  std::uint64_t rejected() const { return rejected_; }  // calls answered with an RPC-level error
  std::uint64_t rejected_auth() const { return rejected_auth_; }  // those for their credentials

 private:
  friend class ServedCall;
  struct Target {
    const ProcedureRow* row = nullptr;
    ProcedureStats* stats = nullptr;
  };

  bool find_program(const xdr::call_body& header, Call& call, Target* target);
  void reject(Call& call, const xdr::rpc_msg& message);
  void start(ServedCall& served);
  bool begin_cached(ServedCall& served);
  void begin_reply(ServedCall& served, xdr::accept_stat stat);
  bool reserve(ServedCall& served);
  void run(ServedCall& served);
  void to_worker(ServedCall& served);
  void put_off(ServedCall& served);
  void run_put_off();
  static void came_from_worker(ServedCall& served);
  void conclude(ServedCall& served, Outcome outcome);
  void commit(ServedCall& served);
  void committed(ServedCall& served);
  void lack_buffer(ServedCall& served);
  void find_buffer(ServedCall& served);
  void grow(ServedCall& served);
  static bool must_not_wait(const ServedCall& served);
  void reply_status(ServedCall& served, xdr::accept_stat stat);
  void send(ServedCall& served, bool remember);
  void measure(ServedCall& served);
  CallRecord record_of(const ServedCall& served) const;
  void drop(ServedCall& served);

  ServedCall& take(Call& call);
  void recycle(ServedCall& served);
  void deliver(ServedCall& served);
  void empty_mailbox();

  EventLoop& loop_;
  Shared shared_;
  std::vector<ProcedureStats> stats_;  // of all tables, one after the other
  std::vector<std::size_t> first_of_table_;
  CallMetrics metrics_;
  CallObserver* observer_ = nullptr;
  bool times_stages_ = false;  // somebody wants to know
  RateLimit slow_calls_{20, std::chrono::seconds(10)};
  std::vector<std::unique_ptr<ServedCall>> all_;
  IntrusiveList<ServedCall, ServedCall> free_;
  IntrusiveList<ServedCall, ServedCall> put_off_;  // until again_
  Timer again_{[this] { run_put_off(); }};
  std::size_t outstanding_ = 0;
  std::size_t connections_ = 0;
  std::uint64_t rejected_ = 0;
  std::uint64_t rejected_auth_ = 0;
  std::atomic<ServedCall*> mailbox_{nullptr};
  RateLimit trouble_{10, std::chrono::seconds(10)};
};

}  // namespace nfsrdma
