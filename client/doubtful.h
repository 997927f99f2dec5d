// SPDX-License-Identifier: Apache-2.0
// Doubtful answers (decisions.md 11). A call that changes something went out twice, because the
// connection broke before it was answered, and the server has forgotten the first run (it
// restarted): then "no such file" for a REMOVE or "exists" for a MKDIR may be the trace of our own
// success. The object itself decides. These are the rules, without any I/O; op_names.cc of nfs3/
// and nfs4/ asks the questions.
//
// Limits, because version 3 tells no more: when another client did the very same thing in between,
// we report success too, and a MKDIR, CREATE or MKNOD cannot be told from an equal one by somebody
// else. Locks made of exclusive names stay right, CREATE EXCLUSIVE carries its own proof.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "client/nfs_types.h"

namespace nfsrdma {

/// Is the answer one that needs a second look?
inline bool doubtful_absence(bool resent, const Error& error) {
  return resent && error.sys == ENOENT;
}
inline bool doubtful_presence(bool resent, const Error& error) {
  return resent && error.sys == EEXIST;
}

/// What a LOOKUP of the name found afterwards; nothing: ENOENT.
struct Found {
  FileHandle handle;
  std::optional<Attributes> attributes;
};

/// REMOVE, RMDIR said ENOENT. Done, unless the object we meant is still (again) there.
bool removal_happened(const std::optional<Found>& name, const FileHandle* known);
/// RENAME said ENOENT: done when the new name is there and the old one is not, and when the object
/// is the known one.
bool rename_happened(const std::optional<Found>& from, const std::optional<Found>& to,
                     const FileHandle* known);
/// MKDIR said EEXIST: done when there is a directory without subdirectories.
bool mkdir_happened(const Found& found);
/// SYMLINK said EEXIST: done when the text is the same.
bool symlink_happened(const Found& found, std::string_view text, std::string_view wanted);
/// LINK said EEXIST: done when the name is the file.
bool link_happened(const Found& found, const FileHandle& file);
/// MKNOD said EEXIST.
bool mknod_happened(const Found& found, FileType type, std::uint32_t rdev_major,
                    std::uint32_t rdev_minor);
/// CREATE GUARDED said EEXIST: done when it looks as if just made with these attributes.
bool create_happened(const Found& found, const SetAttributes& set);
/// The same, of a file that was made with `data` and has `content`: done also when that is how far
/// the server came with it. What was not written yet may read as zeros.
bool create_with_data_happened(const Found& found, const SetAttributes& set, ByteSpan content,
                               ByteSpan data);
/// CREATE EXCLUSIVE said EEXIST: done when the times are the verifier, where servers keep it.
bool exclusive_create_happened(const Found& found, const std::array<std::byte, 8>& verifier);
/// OPEN with a verifier said EEXIST: done when the access time is the one that went with it, which
/// is by lot (client/nfs4/creation_times.h).
bool exclusive_create_happened(const Found& found, const timespec& time);
/// SETATTR with a guard said NOT_SYNC: done when everything is as it was to be.
bool setattr_happened(const Attributes& now, const SetAttributes& set);

}  // namespace nfsrdma
