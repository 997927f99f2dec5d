// SPDX-License-Identifier: Apache-2.0
// The bytes of files: reading from the page cache or from the disk, writing, room for what is read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "server/files/file_call.h"

namespace nfsrdma {

/// How reading came out.
enum class Got : std::uint8_t {
  kData,        // *size bytes, less than asked for only at the end of the file
  kSome,        // *size bytes, and an error behind them: whoever asks for the rest meets it
  kWouldBlock,  // not all of it is in the page cache (only when !may_block)
  kError,       // *error is an errno
};

/// `room.size()` bytes at `offset`, or up to the end of the file. Without `may_block` only what the
/// page cache has (RWF_NOWAIT): a file that ends before `room` does has shrunk meanwhile, and a
/// worker finds out.
Got read_data(int fd, bool may_block, MutableByteSpan room, std::uint64_t offset, std::size_t* size,
              int* error);

/// 0 or an errno; *written may be less than the data when the disk got full.
int write_data(int fd, ByteSpan data, std::uint64_t offset, std::size_t* written);

/// Makes request.payload at least `size` long; false: ask for kNeedBuffer.
bool have_buffer(Request& request, std::size_t size);

}  // namespace nfsrdma
