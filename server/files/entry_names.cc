// SPDX-License-Identifier: Apache-2.0
#include "server/files/entry_names.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "server/files/victim.h"
#include "server/vfs/proc_path.h"

namespace nfsrdma {

int check_new_name(std::string_view name, int dots) {
  if (name.empty()) return EACCES;
  if (name == "." || name == "..") return dots;
  if (name.size() > NAME_MAX) return ENAMETOOLONG;
  if (name.find('/') != name.npos || name.find('\0') != name.npos) return EINVAL;
  return 0;
}

EntryName::EntryName(std::string_view name) {
  static_assert(sizeof text_ == NAME_MAX + 1);
  const std::size_t size = std::min<std::size_t>(name.size(), NAME_MAX);
  std::memcpy(text_, name.data(), size);
  text_[size] = '\0';
}

int remove_entry(FileCall& call, Resolved& directory, const char* name, int flags) {
  if (const int error = call.may_change(directory, name)) return error;
  Victim victim(call, directory, name);
  if (::unlinkat(directory.file->path_fd(), name, flags) != 0) return errno;
  victim.removed();
  return 0;
}

int rename_entry(FileCall& call, Resolved& from, std::string_view old_name, Resolved& to,
                 std::string_view new_name) {
  if (const int error = check_new_name(old_name, EINVAL)) return error;
  if (const int error = check_new_name(new_name, EINVAL)) return error;
  if (!from.file->is_directory() || !to.file->is_directory()) return ENOTDIR;
  const EntryName old_text(old_name);
  const EntryName new_text(new_name);
  if (const int error = call.may_change(from, old_text.c_str())) return error;
  if (const int error = call.may_change(to, new_text.c_str())) return error;
  Victim target(call, to, new_text.c_str());
  if (::renameat(from.file->path_fd(), old_text.c_str(), to.file->path_fd(), new_text.c_str()) !=
      0) {
    return errno;
  }
  target.removed();
  call.server().resolver.note_moved(call.exported(), *to.file, new_name);
  return 0;
}

// Through /proc/self/fd: AT_EMPTY_PATH would need CAP_DAC_READ_SEARCH, which the caller does not
// have.
int link_entry(FileCall& call, const Resolved& file, const Resolved& directory,
               std::string_view name) {
  if (const int error = check_new_name(name, EEXIST)) return error;
  if (!directory.file->is_directory()) return ENOTDIR;
  if (file.file->is_directory()) return EPERM;
  if (const int error = call.may_change(*file.file)) return error;
  return ::linkat(AT_FDCWD, ProcPath(file.file->path_fd()).c_str(), directory.file->path_fd(),
                  EntryName(name).c_str(), AT_SYMLINK_FOLLOW) == 0
             ? 0
             : errno;
}

int make_symlink(const Resolved& directory, std::string_view name, ByteSpan text) {
  if (text.empty() || std::find(text.begin(), text.end(), std::byte{0}) != text.end()) {
    return EINVAL;
  }
  char target[PATH_MAX];
  if (text.size() >= sizeof target) return ENAMETOOLONG;
  std::memcpy(target, text.data(), text.size());
  target[text.size()] = '\0';
  return ::symlinkat(target, directory.file->path_fd(), EntryName(name).c_str()) == 0 ? 0 : errno;
}

}  // namespace nfsrdma
