// SPDX-License-Identifier: Apache-2.0
// ServedCall: what the dispatcher keeps of one call while it is being served. It is what waits, in
// whichever queue the call has to wait in.
#pragma once

#include <optional>

#include "server/auth_flavor.h"
#include "server/dispatch.h"
#include "server/vfs/committer.h"
#include "xdr/rpc.h"

namespace nfsrdma {

class ServedCall final : public ListNode<ServedCall>,
                         public WorkItem,
                         public CommitJob,
                         public BufferWaiter,
                         public ReplayWaiter {
 public:
  /// What to do when it comes out of the mailbox or of the buffer queue.
  enum class Next : std::uint8_t {
    kStart,      // from the beginning (the cache, the reply's room)
    kRun,        // the procedure, once its buffer is there
    kGrow,       // the procedure, once its result has more room
    kConclude,   // a worker ran it: look at `outcome`
    kCommitted,  // its changes are on disk, or `commit_error`; a worker may have run it
    kDrop,       // no answer
  };

  explicit ServedCall(Dispatcher& owner) : dispatcher(owner) {}

  void run_on_worker() override;
  /// Of what its procedure said.
  void wants_commit();
  void finish(int error) override;   // CommitJob
  void on_buffers() override;        // BufferWaiter
  void on_original_done() override;  // ReplayWaiter
  void on_superseded() override;

  Dispatcher& dispatcher;
  Call* call = nullptr;
  Request request;
  CallAuth auth;
  const ProcedureRow* row = nullptr;
  Dispatcher::ProcedureStats* stats = nullptr;
  xdr::Decoder args{ByteSpan()};
  xdr::Encoder encoder{MutableByteSpan()};
  std::size_t results_mark = 0;
  ReplyCache::Entry* entry = nullptr;    // to be finished or abandoned
  std::optional<ReplyCache::Keep> keep;  // how, when its answer is kept at all
  bool cache_asked = false;
  bool reserved = false;
  Next next = Next::kStart;
  Outcome outcome = Outcome::kDrop;
  std::uint64_t elapsed_ns = 0;
  CallStages stages;  // all 0 while nobody wants to know
  bool on_worker = false;
  int commit_error = 0;
  ServedCall* next_in_mailbox = nullptr;

 private:
  void hand_back(Next what);
};

}  // namespace nfsrdma
