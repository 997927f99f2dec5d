// SPDX-License-Identifier: Apache-2.0
// Names to objects. Handles to objects are in handle_opener.cc. See resolver.h.
#include "server/vfs/resolver.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "server/vfs/object_identity.h"

namespace nfsrdma {

namespace {

constexpr int kOpenEntry = O_PATH | O_NOFOLLOW | O_CLOEXEC;

/// A name as the system calls want it.
class CName {
 public:
  explicit CName(std::string_view name) {
    std::memcpy(text_, name.data(), name.size());
    text_[name.size()] = '\0';
  }
  const char* c_str() const { return text_; }

 private:
  char text_[NAME_MAX + 1];
};

int check_name(std::string_view name) {
  if (name.empty()) return EACCES;
  if (name.size() > NAME_MAX) return ENAMETOOLONG;
  if (name.find('/') != name.npos || name.find('\0') != name.npos) return EINVAL;
  return 0;
}

}  // namespace

FileHandle Resolver::seal(const Export& entry, const MountPoint& mount, const Identity& identity,
                          HandleParts* parts) const {
  *parts = {};
  parts->scheme = identity.scheme;
  parts->kernel_type = identity.kernel_type;
  parts->body_size = identity.body_size;
  parts->body = identity.body;
  parts->export_id = entry.id;
  parts->mount_key = mount.key;
  return codec_.seal(*parts);
}

int Resolver::enter(const Export& entry, const MountPoint& mount, UniqueFd fd,
                    const Identity& identity, std::uint8_t path_rights, Resolved* out) {
  FdCache::Opened opened;
  if (::fstat(fd.get(), &opened.attributes) != 0) return errno;
  opened.handle = seal(entry, mount, identity, &opened.parts);
  opened.path_fd = std::move(fd);
  opened.path_rights = path_rights;
  opened.fsid = fsid_on(mount, opened.attributes);
  out->attributes = opened.attributes;
  out->file = files_.insert(std::move(opened));
  return 0;
}

int Resolver::open_root(const Export& entry, Resolved* out) {
  const MountPoint& mount = *entry.top;
  UniqueFd fd(::fcntl(mount.root.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd) return errno;
  Identity identity;
  if (const int error = identify(fd.get(), "", mount.scheme, &identity)) return error;
  return enter(entry, mount, std::move(fd), identity, 0, out);
}

void Resolver::note_place(const Export& entry, const MountPoint& mount, const Identity& child,
                          FileEntry& directory, std::string_view name) {
  if (child.scheme != HandleScheme::kInode) return;
  Identity parent;
  if (identify(directory.path_fd(), "", HandleScheme::kInode, &parent) != 0) return;
  if (parent.mount_id != child.mount_id) return;  // the root of a mount is found as such
  paths_.note({entry.id, child.inode(), child.birth(), mount.key}, parent.inode(), parent.birth(),
              name);
}

void Resolver::forget_place(const Export& entry, const FileEntry& gone) {
  const HandleParts& parts = gone.parts();
  if (parts.scheme != HandleScheme::kInode || parts.body_size != 16) return;
  paths_.forget(
      {entry.id, load_be64(parts.body.data()), load_be64(parts.body.data() + 8), parts.mount_key});
}

int Resolver::lookup(const Export& entry, const ExportAccess& access, FileEntry& directory,
                     std::string_view name, Resolved* out) {
  if (!directory.is_directory()) return ENOTDIR;
  if (const int error = check_name(name)) return error;
  if (name == "..") return open_parent(entry, access, directory, out);
  return open_entry(entry, access, directory, CName(name).c_str(), out);
}

int Resolver::look(const Export& entry, const ExportAccess& access, FileEntry& directory,
                   std::string_view name, SeenEntry* out) {
  if (!directory.is_directory()) return ENOTDIR;
  if (const int error = check_name(name)) return error;
  const std::shared_ptr<MountPoint> mount = entry.mount(directory.parts().mount_key);
  if (!mount) return ESTALE;
  if (mount->scheme == HandleScheme::kKernel && name != "." && name != "..") {
    const CName text(name);
    Identity identity;
    if (const int error = identify(directory.path_fd(), text.c_str(), mount->scheme, &identity)) {
      return error;
    }
    if (identity.mount_id == mount->mount_id && identity.scheme == HandleScheme::kKernel) {
      HandleParts parts;
      out->handle = seal(entry, *mount, identity, &parts);
      FilePin open = files_.find(out->handle);
      if (open) {
        out->fsid = open->fsid();
        if (::fstat(open->path_fd(), &out->attributes) == 0 && out->attributes.st_nlink != 0)
          return 0;
      } else if (::fstatat(directory.path_fd(), text.c_str(), &out->attributes,
                           AT_SYMLINK_NOFOLLOW) == 0) {
        // Were those the attributes of the object that the handle is of? It was there before and is
        // there after, so nobody else had its inode number.
        Identity after;
        out->fsid = fsid_on(*mount, out->attributes);
        if (identify(directory.path_fd(), text.c_str(), mount->scheme, &after) == 0 &&
            identity.same_as(after) && identity.may_be_inode(out->attributes.st_ino)) {
          return 0;
        }
      }
    }
  }
  Resolved opened;
  if (const int error = lookup(entry, access, directory, name, &opened)) return error;
  out->handle = opened.file->handle();
  out->attributes = opened.attributes;
  out->fsid = opened.file->fsid();
  return 0;
}

int Resolver::open_parent(const Export& entry, const ExportAccess& access, FileEntry& directory,
                          Resolved* out) {
  if (directory.inode() == entry.top->root_inode && directory.device() == entry.top->device) {
    return open_entry(entry, access, directory, ".", out);
  }
  UniqueFd fd(::openat(directory.path_fd(), "..", kOpenEntry | O_DIRECTORY));
  if (!fd) return errno;
  // The directory may have been moved out of the export.
  if (!entry.contains(fd.get())) return EACCES;
  Identity identity;
  const std::shared_ptr<MountPoint> below = entry.mount(directory.parts().mount_key);
  if (!below) return ESTALE;
  if (const int error = identify(fd.get(), "", below->scheme, &identity)) return error;
  if (identity.mount_id == below->mount_id) {
    return enter(entry, *below, std::move(fd), identity, 0, out);
  }
  if (!access.crossmnt) return EXDEV;
  if (identity.mount_id == entry.top->mount_id) {
    return enter(entry, *entry.top, std::move(fd), identity, 0, out);
  }
  // From the root of a mount into another one below the export: known by the way down.
  return EACCES;
}

int Resolver::open_entry(const Export& entry, const ExportAccess& access, FileEntry& directory,
                         const char* name, Resolved* out) {
  const std::shared_ptr<MountPoint> found =
      directory.parts().mount_key == 0 ? entry.top : entry.mount(directory.parts().mount_key);
  if (!found) return ESTALE;
  const MountPoint* mount = found.get();
  std::shared_ptr<MountPoint> crossed;
  Identity identity;
  if (const int error = identify(directory.path_fd(), name, mount->scheme, &identity)) return error;
  if (identity.mount_id == mount->mount_id) {
    HandleParts parts;
    out->file = files_.find(seal(entry, *mount, identity, &parts));
    if (out->file && ::fstat(out->file->path_fd(), &out->attributes) == 0 &&
        out->attributes.st_nlink != 0) {
      if (std::strcmp(name, ".") != 0) note_place(entry, *mount, identity, directory, name);
      return 0;
    }
    out->file.reset();
  }
  UniqueFd fd(::openat(directory.path_fd(), name, kOpenEntry));
  if (!fd) return errno;
  if (identity.mount_id != mount->mount_id) {
    if (!access.crossmnt) return EXDEV;
    auto adopted = entry.adopt_mount(fd.get());
    if (!adopted.ok()) return adopted.error().sys != 0 ? adopted.error().sys : EXDEV;
    crossed = std::move(*adopted);
    mount = crossed.get();
  }
  // Again from the descriptor: the name may mean something else by now.
  if (const int error = identify(fd.get(), "", mount->scheme, &identity)) return error;
  if (identity.mount_id != mount->mount_id) return ESTALE;
  if (std::strcmp(name, ".") != 0) note_place(entry, *mount, identity, directory, name);
  return enter(entry, *mount, std::move(fd), identity, 0, out);
}

int Resolver::adopt_created(const Export& entry, FileEntry& directory, std::string_view name,
                            UniqueFd fd, Resolved* out) {
  const std::shared_ptr<MountPoint> mount = entry.mount(directory.parts().mount_key);
  if (!mount) return ESTALE;
  Identity identity;
  if (const int error = identify(fd.get(), "", mount->scheme, &identity)) return error;
  note_place(entry, *mount, identity, directory, name);
  return enter(entry, *mount, std::move(fd), identity, kRightRead | kRightWrite, out);
}

int Resolver::peek(const Export& entry, FileEntry& directory, const char* name, std::uint64_t inode,
                   FileHandle* handle, struct stat* attributes, std::uint64_t* fsid) {
  const std::shared_ptr<MountPoint> mount =
      directory.parts().mount_key == 0 ? entry.top : entry.mount(directory.parts().mount_key);
  if (!mount) return ESTALE;
  Identity identity;
  // First: a new object may have the inode number of one that is removed meanwhile. Then it is the
  // attributes that are the new one's, beside a handle that nobody gets anything by any more; the
  // other way round a client would believe the old ones' size. look() is exact, at a call more.
  const int unidentified = identify(directory.path_fd(), name, mount->scheme, &identity);
  if (::fstatat(directory.path_fd(), name, attributes, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  // Another object has come between listing and looking, or a file system is mounted there: the
  // client will look it up.
  if (attributes->st_ino != inode || attributes->st_dev != directory.device()) return EXDEV;
  if (unidentified != 0) return unidentified;
  if (identity.mount_id != mount->mount_id || !identity.may_be_inode(inode)) return EXDEV;
  HandleParts parts;
  *handle = seal(entry, *mount, identity, &parts);
  *fsid = fsid_on(*mount, *attributes);
  note_place(entry, *mount, identity, directory, name);
  return 0;
}

void Resolver::note_moved(const Export& entry, FileEntry& directory, std::string_view name) {
  const std::shared_ptr<MountPoint> mount = entry.mount(directory.parts().mount_key);
  Identity identity;
  if (!mount || mount->scheme != HandleScheme::kInode || check_name(name) != 0 ||
      identify(directory.path_fd(), CName(name).c_str(), HandleScheme::kInode, &identity) != 0) {
    return;
  }
  note_place(entry, *mount, identity, directory, name);
}

bool Resolver::handle_of(const Export& entry, FileEntry& directory, const char* name,
                         FileHandle* handle) {
  const std::shared_ptr<MountPoint> mount = entry.mount(directory.parts().mount_key);
  Identity identity;
  if (!mount || identify(directory.path_fd(), name, mount->scheme, &identity) != 0 ||
      identity.mount_id != mount->mount_id) {
    return false;
  }
  HandleParts parts;
  *handle = seal(entry, *mount, identity, &parts);
  return true;
}

}  // namespace nfsrdma
