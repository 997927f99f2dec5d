// SPDX-License-Identifier: Apache-2.0
// Bytes of one file into another, or into the same one, as the kernel does it: by sharing blocks
// where the file system can, else through the page cache, without coming up here.
#pragma once

#include <cstdint>

#include "server/server_context.h"
#include "server/vfs/resolver.h"

namespace nfsrdma::nfs4 {

/// What is to be copied: descriptors, and bytes from offsets that fit into off_t.
struct CopyRange {
  int from = -1, to = -1;
  std::uint64_t from_offset = 0, to_offset = 0, count = 0;
};

/// One system call copies this much: between two the kernel lets others have the file.
inline constexpr std::uint64_t kCopyPiece = std::uint64_t{4} << 20;

/// Copies what comes behind the first `done` bytes of `range`, at most `most` bytes. The thread
/// acts as the caller. `to` is the file that is written; its attributes are brought up to date.
/// 0 or an errno; *copied is set in either case, and short of `most` without an error when the
/// source has shrunk.
int copy_some(ServerContext& server, const CopyRange& range, std::uint64_t done, std::uint64_t most,
              Resolved& to, std::uint64_t* copied);

}  // namespace nfsrdma::nfs4
