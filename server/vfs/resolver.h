// SPDX-License-Identifier: Apache-2.0
// Resolver: from file handles to open objects and from directory entries to file handles, without
// ever leaving the export:
//   - a handle is opened relative to the file system of its export (by the kernel's handle, or by
//     walking the path table and checking what is found);
//   - a name is one component; symbolic links are never followed (O_PATH | O_NOFOLLOW);
//   - ".." of the export's directory is itself, and elsewhere must end up inside the export;
//   - a mount point is crossed only where the caller's client has crossmnt. Without it the entry
//     answers EXDEV: what lies hidden under a mount cannot be reached from user space. Handles of
//     what is mounted below are for FileCall::admit() to refuse.
//
// Functions return 0 or an errno. Threads: any; those that say so need the thread to act as the
// caller already.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string_view>

#include "server/export_table.h"
#include "server/vfs/change_counter.h"
#include "server/vfs/change_witness.h"
#include "server/vfs/fd_cache.h"
#include "server/vfs/path_table.h"

namespace nfsrdma {

/// An object with attributes as fresh as can be had.
struct Resolved {
  FilePin file;
  struct stat attributes {};
  /// The state of the ChangeWitness before the attributes were read, when it was asked.
  std::optional<ChangeWitness::Seen> seen{};
  /// That of the ChangeCounter, likewise.
  std::optional<ChangeCounter::Moment> read_after{};
  /// It was just made or linked, and not changed since: the sync of its directory covers it.
  bool covered_by_directory = false;
};

/// An entry that was looked at and not opened.
struct SeenEntry {
  FileHandle handle;
  struct stat attributes {};
  std::uint64_t fsid = 0;
};

class Resolver {
 public:
  Resolver(const HandleCodec& codec, FdCache& files, PathTable& paths, const ChangeWitness& changes,
           const ChangeCounter& counter)
      : codec_(codec), files_(files), paths_(paths), changes_(changes), counter_(counter) {}

  /// The object of an authenticated handle, its attributes read now. ESTALE when it is gone. The
  /// entry of the handle may be in `out` already.
  int open(const Export& entry, const FileHandle& handle, const HandleParts& parts, Resolved* out);
  /// The export's own directory.
  int open_root(const Export& entry, Resolved* out);
  /// The entry `name` of `directory`; "." and ".." included. As the caller, whose client may do
  /// with the export what `access` says.
  int lookup(const Export& entry, const ExportAccess& access, FileEntry& directory,
             std::string_view name, Resolved* out);
  /// The same without opening the object, where its handle can do that later (kernel handles): for
  /// LOOKUP, most of whose objects are only looked at.
  int look(const Export& entry, const ExportAccess& access, FileEntry& directory,
           std::string_view name, SeenEntry* out);
  /// Enters a file that was just created in `directory` with its descriptor (reading and writing).
  int adopt_created(const Export& entry, FileEntry& directory, std::string_view name, UniqueFd fd,
                    Resolved* out);
  /// Handle and attributes of an entry without opening it, for READDIRPLUS. `inode` is the one that
  /// the directory gives. As the caller.
  int peek(const Export& entry, FileEntry& directory, const char* name, std::uint64_t inode,
           FileHandle* handle, struct stat* attributes, std::uint64_t* fsid);
  /// `name` in `directory` is where its object can be found from now on. Nothing to do with kernel
  /// handles.
  void note_moved(const Export& entry, FileEntry& directory, std::string_view name);
  /// The object has lost its last name.
  void forget_place(const Export& entry, const FileEntry& gone);
  /// The handle of an entry, or false: to forget what is about to be removed. As the caller.
  bool handle_of(const Export& entry, FileEntry& directory, const char* name, FileHandle* handle);

 private:
  struct Identity;  // what there is to know of an object before it has a handle
  int identify(int directory_fd, const char* name, HandleScheme scheme, Identity* identity);
  int open_entry(const Export& entry, const ExportAccess& access, FileEntry& directory,
                 const char* name, Resolved* out);
  int open_parent(const Export& entry, const ExportAccess& access, FileEntry& directory,
                  Resolved* out);
  int enter(const Export& entry, const MountPoint& mount, UniqueFd fd, const Identity& identity,
            std::uint8_t path_rights, Resolved* out);
  int open_by_table(const Export& entry, const MountPoint& mount, std::uint64_t inode,
                    std::uint64_t birth, int depth, UniqueFd* fd);
  int open_uncached(const Export& entry, const FileHandle& handle, const HandleParts& parts,
                    bool keep, Resolved* out);
  FileHandle seal(const Export& entry, const MountPoint& mount, const Identity& identity,
                  HandleParts* parts) const;
  void note_place(const Export& entry, const MountPoint& mount, const Identity& child,
                  FileEntry& directory, std::string_view name);

  const HandleCodec& codec_;
  FdCache& files_;
  PathTable& paths_;
  const ChangeWitness& changes_;
  const ChangeCounter& counter_;
};

}  // namespace nfsrdma
