// SPDX-License-Identifier: Apache-2.0
// Whether the place of an export is such that it can be served: a directory that is there, and a
// file system that is mounted where the option mountpoint asks for one.
#pragma once

#include <set>
#include <string>

#include "config/exports_file.h"
#include "rpcrdma/base/result.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

struct ExportPlace {
  UniqueFd root;                    // the exported directory, O_PATH
  std::set<std::string> unmounted;  // of mount_wanted_by() its clients: nothing is mounted there
};

/// Where something has to be mounted for that client of the export `path` (option mountpoint);
/// empty: nowhere.
std::string mount_wanted_by(const ExportClient& client, const std::string& path);

/// The exported directory, or why it is not served now to anybody. May block.
Result<ExportPlace> open_export_place(const ExportEntry& entry);

/// An error of that: the directory or the mount is not there. Others (EIO, a stale handle of a soft
/// mount, no descriptors left) only say that nobody could look.
bool is_absent(const Error& error);

/// Is `place`, the root of an ExportPlace, in that mount of the file system on that device?
bool is_same_mount(int place, std::uint64_t device, int mount_id);

}  // namespace nfsrdma
