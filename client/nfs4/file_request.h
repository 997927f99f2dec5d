// SPDX-License-Identifier: Apache-2.0
// FileLocks::Request: one change of what is held of a file. Shared: who asked may be gone before it
// is done.
#pragma once

#include <memory>
#include <optional>

#include "client/nfs4/file_locks.h"
#include "client/occasion.h"

namespace nfsrdma::nfs4 {

struct FileLocks::Request {
  enum class What : std::uint8_t {
    kOpen,
    kClaim,
    kLock,
    kUnlock,
    kLetGo,
    kNarrow,
    kEndDenial,
    kClose
  };

  Request(What its_what, FileRef its_file, const AuthSys& its_identity)
      : what(its_what), file(std::move(its_file)), identity(its_identity) {}

  const What what;
  const FileRef file;
  const AuthSys identity;
  FileLock lock{};
  LockWait wait = LockWait::kNo;
  std::uint32_t access = 0;             // OPEN4_SHARE_ACCESS_ bits
  std::shared_ptr<OpenCompanion> with;  // of kOpen
  ShareDenial deny{};                   // of kOpen, and of kEndDenial its owner
  /// Of kClose: File::opens_asked. None: unless some application uses the file, who asks being
  /// FileLocks itself.
  std::optional<std::uint64_t> as_of;
  std::optional<xdr::stateid4> by;  // of kClaim: the delegation that covers it
  Result<void> result = Error{Errc::kSystem, EIO, "aborted"};
  bool abandoned = false;
  Occasion done;
};

}  // namespace nfsrdma::nfs4
