// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/copy_range.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "server/files/change_scope.h"

namespace nfsrdma::nfs4 {

int copy_some(ServerContext& server, const CopyRange& range, std::uint64_t done, std::uint64_t most,
              Resolved& to, std::uint64_t* copied) {
  const struct stat before = to.attributes;
  ChangeScope scope(server, to);
  // A COMMIT since the last time has taken it back.
  to.file->unstable.store(true, std::memory_order_release);
  const std::uint64_t end = done + std::min(most, range.count - done);
  int error = 0;
  *copied = 0;
  for (std::uint64_t at = done; at < end;) {
    auto in = static_cast<off_t>(range.from_offset + at);
    auto out = static_cast<off_t>(range.to_offset + at);
    const ssize_t n =
        ::copy_file_range(range.from, &in, range.to, &out, std::min(kCopyPiece, end - at), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error = errno;
    if (n <= 0) break;  // 0: the source has shrunk meanwhile
    at += static_cast<std::uint64_t>(n);
    *copied += static_cast<std::uint64_t>(n);
  }
  // A COMMIT meanwhile did not have what came after it.
  if (*copied != 0) to.file->unstable.store(true, std::memory_order_release);
  scope.finish();
  server.files.note_own_change(*to.file, before, to.attributes);
  // Should it fail, the verifier tells.
  if (*copied != 0 && to.file->left_out())
    (void)server.committer.commit_now({range.to, -1, -1}, false);
  return error;
}

}  // namespace nfsrdma::nfs4
