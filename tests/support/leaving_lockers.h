// SPDX-License-Identifier: Apache-2.0
// As one process can do whose waits for a lock signals interrupt, while the server is away: many
// ask for a lock, and give up.
#pragma once

#include <cerrno>
#include <cstddef>

#include "client/nfs_types.h"
#include "client/op_context.h"
#include "rpcrdma/base/task.h"

namespace nfsrdma::test {

inline Task<void> count_if_interrupted(Task<Result<void>> lock, std::size_t* count) {
  const Result<void> done = co_await std::move(lock);
  if (!done.ok() && errno_of(done.error()) == EINTR) ++*count;
}

/// How many have heard that they gave up: none of them asks any more.
template <typename Operations>
std::size_t ask_for_locks_and_leave(TaskGroup& group, Operations& nfs, OpContext op,
                                    const FileHandle& file, std::size_t many) {
  CancelToken cancel;
  op.cancel = &cancel;
  std::size_t left = 0;
  for (std::size_t i = 0; i < many; ++i) {
    const FileLock wanted{1000 + i, LockKind::kWrite, {1, 1}};
    group.spawn(
        count_if_interrupted(nfs.lock(op, file, wanted, LockWait::kNo, access_bits::kRead), &left));
  }
  cancel.cancel();
  return left;
}

}  // namespace nfsrdma::test
