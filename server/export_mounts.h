// SPDX-License-Identifier: Apache-2.0
// Whether the place of an export is such that it can be served: a directory that is there, and a
// file system that is mounted where the option mountpoint asks for one.
#pragma once

#include "config/exports_file.h"
#include "rpcrdma/base/result.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

/// The exported directory (O_PATH), or why it is not served now. May block.
Result<UniqueFd> open_export_place(const ExportEntry& entry);

/// An error of that: the directory or the mount is not there. Others (EIO, a stale handle of a soft
/// mount, no descriptors left) only say that nobody could look.
bool is_absent(const Error& error);

/// Is `place`, from open_export_place(), in that mount of the file system on that device?
bool is_same_mount(int place, std::uint64_t device, int mount_id);

}  // namespace nfsrdma
