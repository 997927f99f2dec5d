// SPDX-License-Identifier: Apache-2.0
// NewFiles: files that are created, and stay open (they are FileLocks' then) or are closed at once:
// OPEN, perhaps SETATTR or WRITE, and CLOSE in one COMPOUND. Minor version 0 has no current stateid
// by which one COMPOUND could close them: OPEN with creation in one, OPEN_CONFIRM where the server
// wants it, and CLOSE in another.
//
// A COMPOUND ends at what fails, and a CLOSE behind it is not done: then, too, it is done in
// another one. OPEN is not repeated for the sake of what comes behind it: the file is there.
//
// All of that runs in a task that is never cut short. Who asked has the answer as soon as OPEN has,
// and may be interrupted: the file is closed then.
//
// What a soft mount does not wait for any more may be open all the same, and so may what an answer
// said that went with its session: it is opened once more, not made, so that it can be closed.
//
// On the session's thread. stop() before destroying; nothing may be awaited then.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "client/nfs4/file_locks.h"
#include "client/nfs4/id_names.h"
#include "client/nfs4/lasting_tasks.h"
#include "client/nfs4/open_owners.h"
#include "client/nfs4/session.h"
#include "client/nfs_types.h"

namespace nfsrdma::nfs4 {

class NewFiles {
 public:
  /// All outlive this.
  NewFiles(Session& session, IdNames& names, FileLocks& locks, OpenOwners& owners)
      : session_(session), names_(names), locks_(locks), owners_(owners) {}

  /// What a new file is used for at once. Not in minor version 0.
  struct FirstUse {
    /// access_bits::kRead, kModify: it stays open until FileLocks::close(). None: it is closed.
    std::uint32_t open_for = 0;
    ShareDenial deny{};                  // where it stays open
    ByteSpan data{};                     // that it begins with; a copy is made
    std::size_t* written = nullptr;      // set to how many bytes of `data` are in it, and stable
    const xdr::fattr4* later = nullptr;  // for a SETATTR behind OPEN; a copy is made
    bool* finished = nullptr;            // where there is `later`: set to whether it was done
  };
  /// Operations of the COMPOUND that makes a file with data, or with a SETATTR.
  static constexpr std::uint32_t kOperationsWithData = 10;

  /// OPEN with `how`. An error, too, sets *resent.
  Task<Result<CreateResult>> make(const OpContext& op, const FileHandle& directory,
                                  std::string_view name, const xdr::createhow4& how, FirstUse use,
                                  bool* resent);
  /// Until everything that was made is closed, or `op` cancelled.
  Task<void> wait(const OpContext& op) { return tasks_.wait(op); }
  /// Everything fails with EIO from now on.
  void stop() { tasks_.stop(); }

 private:
  using Owner = OpenOwners::Owner;
  struct Request;
  using RequestRef = std::shared_ptr<Request>;

  Task<void> carry_out(RequestRef request);
  /// None: *file is what was made.
  static std::optional<Errc> failure_of(Request& request, FileHandle* file);
  /// OPEN was done without a handle coming back, or its answer was lost with its session.
  static bool perhaps_open(const Request& request, const Session& session);
  /// A server in trouble, not one that knows that the file is not open.
  static bool says_nothing(const Request& request, const Session& session);
  /// True: with another owner once more.
  Task<bool> open(Request& request, const OpContext& op, Owner& owner);

  Session& session_;
  IdNames& names_;
  FileLocks& locks_;
  OpenOwners& owners_;
  LastingTasks tasks_;
};

}  // namespace nfsrdma::nfs4
