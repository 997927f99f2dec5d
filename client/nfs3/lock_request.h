// SPDX-License-Identifier: Apache-2.0
// FileLocks::Request: one question about a file's locks, or one change of them. Shared: who asked
// may be gone before it is done.
#pragma once

#include <memory>
#include <optional>

#include "client/nfs3/file_locks.h"
#include "client/occasion.h"

namespace nfsrdma::nfs3 {

struct FileLocks::Request {
  enum class What : std::uint8_t { kTest, kLock, kUnlock, kLetGo, kClose, kAssert };

  Request(What its_what, FileRef its_file, const AuthSys& its_identity)
      : what(its_what), file(std::move(its_file)), identity(its_identity) {}

  const What what;
  const FileRef file;
  const AuthSys identity;
  FileLock lock{};
  std::optional<LockHolder> holder;  // of kTest
  bool grace = false;                // the server waits for its old clients: later
  Result<void> result = Error{Errc::kSystem, EIO, "aborted"};
  bool abandoned = false;
  Occasion done;
};

}  // namespace nfsrdma::nfs3
