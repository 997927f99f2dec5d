// SPDX-License-Identifier: Apache-2.0
// Names in directories: what may be one, and what is done with them as the caller.
#pragma once

#include <string_view>

#include "server/files/file_call.h"

namespace nfsrdma {

/// Names for objects to be made or removed: one component, neither "." nor "..". 0 or an errno;
/// `dots` is the one for those two.
int check_new_name(std::string_view name, int dots);

/// A name for system calls.
class EntryName {
 public:
  /// `name` has passed check_new_name().
  explicit EntryName(std::string_view name);
  const char* c_str() const { return text_; }

 private:
  char text_[256];
};

// What follows is done as the caller; 0 or an errno.

/// unlinkat() with `flags`.
int remove_entry(FileCall& call, Resolved& directory, const char* name, int flags);
/// Both directories are of one file system of call.exported(). An open target file lives on for
/// whoever holds it open locally; clients' handles of it become stale, as on a local disk.
int rename_entry(FileCall& call, Resolved& from, std::string_view old_name, Resolved& to,
                 std::string_view new_name);
/// A symbolic link is linked itself, not what it points to.
int link_entry(FileCall& call, const Resolved& file, const Resolved& directory,
               std::string_view name);
/// `text` is kept as it came and never followed here.
int make_symlink(const Resolved& directory, std::string_view name, ByteSpan text);

}  // namespace nfsrdma
