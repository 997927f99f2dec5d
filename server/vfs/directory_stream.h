// SPDX-License-Identifier: Apache-2.0
// DirectoryStream: a directory being listed, kept between two READDIRs: the kernel's position costs
// less to continue than to find again, and what the kernel gave beyond the reply need not be asked
// for twice. A FileEntry holds it; who lists the directory takes it out meanwhile.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

struct DirectoryStream {
  /// More is not kept for one directory: there may be many.
  static constexpr std::size_t kMostAhead = 4096;

  UniqueFd fd;
  /// The kernel's, as lseek knows it; empty when it is not that of any cookie that was given out.
  std::optional<std::int64_t> position = 0;
  /// Entries (dirent64) that no reply has taken yet: those behind `ahead_cookie`, as they were when
  /// the directory's ctime was `ahead_ctime`.
  std::vector<std::byte> ahead{};
  std::uint64_t ahead_cookie = 0;
  timespec ahead_ctime{};
};

}  // namespace nfsrdma
