// SPDX-License-Identifier: Apache-2.0
// The backward direction of one ResponderConnection (RFC 8167): calls go out as RDMA_MSG without
// chunks, within the inline threshold, behind all replies that were submitted before them. Each
// has a receive of the shared queue set aside for its reply until that comes, as each call of the
// client has.
#pragma once

#include <array>

#include "rpcrdma/backward_calls.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/work_table.h"

namespace nfsrdma {

class ResponderConnection;

class ResponderBackward final : public BackwardLink {
 public:
  /// Outstanding calls at most, whatever the client grants. Linux grants 16.
  static constexpr std::uint32_t kMost = 4;
  /// Linux takes no larger call whatever its inline threshold (a page), header included.
  static constexpr std::uint32_t kMaxMessage = 4096;

  explicit ResponderBackward(ResponderConnection& connection);
  ~ResponderBackward() override;

  BackwardCalls& calls() { return calls_; }
  /// The queue pair is gone.
  void tear_down();

  bool transmit(std::uint32_t xid, ByteSpan message) override;
  void on_answered() override;

 private:
  // A reply may be here before the completion of the Send that it answers.
  static constexpr std::size_t kSends = 2 * kMost;
  struct Send final : WorkOwner {
    void on_work_done(std::uint32_t tag, WorkStatus status) override;
    ResponderBackward* owner = nullptr;
    Buffer buffer;  // while it is posted
  };

  ResponderConnection& connection_;
  BackwardCalls calls_;
  std::array<Send, kSends> sends_;
  std::uint32_t receives_ = 0;  // taken from the ledger
};

}  // namespace nfsrdma
