// SPDX-License-Identifier: Apache-2.0
// DelegationOpens: asks for delegations in minor version 0, where files without locks are not held
// open. A file is opened by its name (there is no claim by handle), and closed in the next COMPOUND
// (there is no current stateid), whether a delegation came with it or not.
//
// A server gives none with an OPEN that is to be confirmed (RFC 7530, 10.4 and 16.18): open-owners
// are used again (open_owners.h), and one that had to be confirmed opens the file once more.
//
// All of that runs in a task that is never cut short. Who asked has the answer as soon as OPEN has,
// and may be interrupted. What a soft mount does not wait for any more may be open all the same: it
// is opened once more, so that it can be closed.
//
// On the session's thread. stop() before destroying; nothing may be awaited then.
#pragma once

#include <memory>
#include <optional>

#include "client/nfs4/file_locks.h"
#include "client/nfs4/lasting_tasks.h"
#include "client/nfs4/open_owners.h"
#include "client/nfs4/session.h"
#include "client/nfs_types.h"

namespace nfsrdma::nfs4 {

class DelegationOpens {
 public:
  /// Both outlive this.
  DelegationOpens(Session& session, OpenOwners& owners) : session_(session), owners_(owners) {}

  /// Opens what is at `place` for `access` (OPEN4_SHARE_ACCESS_ bits). `with` goes along; it is
  /// told nothing unless that is `file`, and the server opens it. Over within op.cancel->cancel().
  Task<void> open(const OpContext& op, const FileHandle& file, const FilePlace& place,
                  std::uint32_t access, std::shared_ptr<OpenCompanion> with);
  /// Until everything that was opened is closed, or `op` cancelled.
  Task<void> wait(const OpContext& op) { return tasks_.wait(op); }
  void stop() { tasks_.stop(); }

 private:
  using Owner = OpenOwners::Owner;
  struct Request;
  using RequestRef = std::shared_ptr<Request>;
  enum class Step : std::uint8_t {
    kDone,        // opened, or refused
    kOnceMore,    // opened, and to be confirmed, or confirmed
    kOutOfStep,   // another owner is to try
    kTimedOut,    // nobody knows
    kUnreadable,  // the same; or of two runs the second ended in front of OPEN
  };

  Task<void> carry_out(RequestRef request);
  static Step unanswered(const Error& error);
  static bool is_to_be_confirmed(const Request& request);
  static bool is_good(const Request& request);
  static void parse_companion(Request& request, CompoundReader& in);
  Task<Step> open_once(Request& request, const OpContext& op, Owner& owner);
  Task<Step> confirm(Request& request, const OpContext& op, Owner& owner);

  Session& session_;
  OpenOwners& owners_;
  LastingTasks tasks_;
};

}  // namespace nfsrdma::nfs4
