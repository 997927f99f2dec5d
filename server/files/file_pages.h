// SPDX-License-Identifier: Apache-2.0
// READ without a copy of ours: the reply refers to the file's own pages in the page cache
// (rpcrdma/base/file_window.h), and the socket takes them from there.
//
// Whether that is cheaper than a copy is for read_costs.h to find out.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "server/files/file_data.h"

namespace nfsrdma {

/// Less is copied: the system calls for showing pages cost as much.
inline constexpr std::size_t kFewestShown = 128 << 10;

/// Makes the payload of the call's request a window that shows `size` bytes of the file from
/// `offset` on. False: nothing was done, and copy_data() is the way. As the caller; `size` bytes
/// lie before the end of the file as `attributes` say.
bool show_pages(FileCall& call, int fd, const struct stat& attributes, std::uint64_t offset,
                std::size_t size);

/// read_data() into memory, measured.
Got copy_data(FileCall& call, int fd, MutableByteSpan room, std::uint64_t offset, std::size_t* size,
              int* error);

}  // namespace nfsrdma
