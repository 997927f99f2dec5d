// SPDX-License-Identifier: Apache-2.0
// READ without a copy of ours: the reply refers to the file's own pages in the page cache
// (rpcrdma/base/file_window.h), and the socket takes them from there.
//
// Whether that is cheaper than a copy is for read_costs.h to find out.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "server/files/file_data.h"
#include "server/files/read_costs.h"

namespace nfsrdma {

/// Less is copied: the system calls for showing pages cost as much.
inline constexpr std::size_t kFewestShown = 128 << 10;

/// Makes request.payload a window that shows `size` bytes of the file from `offset` on. False:
/// nothing was done, and read_data() into memory is the way. On the shard's thread; `size` bytes
/// lie before the end of the file as `attributes` say.
bool show_pages(Request& request, ReadCosts& costs, int fd, const struct stat& attributes,
                std::uint64_t offset, std::size_t size);

/// read_data() into memory, measured for `costs`.
Got copy_data(ReadCosts& costs, int fd, bool may_block, MutableByteSpan room, std::uint64_t offset,
              std::size_t* size, int* error);

}  // namespace nfsrdma
