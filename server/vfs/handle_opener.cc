// SPDX-License-Identifier: Apache-2.0
// Handles to objects: with the kernel's open_by_handle_at, or by walking down from the root of the
// file system along the path table. Part of Resolver.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "server/vfs/kernel_handle.h"
#include "server/vfs/object_identity.h"

namespace nfsrdma {

namespace {

constexpr int kMaxDepth = 512;  // of directories, for handles of scheme kInode

int statx_identity(int fd, const char* name, std::uint64_t* inode, std::uint64_t* birth,
                   int* mount_id) {
  struct statx stx;
  const int flags = AT_SYMLINK_NOFOLLOW | (*name == '\0' ? AT_EMPTY_PATH : 0);
  if (::statx(fd, name, flags, STATX_INO | STATX_BTIME | STATX_MNT_ID, &stx) != 0) return errno;
  *inode = stx.stx_ino;
  *birth = (stx.stx_mask & STATX_BTIME) == 0
               ? 0
               : static_cast<std::uint64_t>(stx.stx_btime.tv_sec) << 30 | stx.stx_btime.tv_nsec;
  *mount_id = (stx.stx_mask & STATX_MNT_ID) != 0 ? static_cast<int>(stx.stx_mnt_id) : -1;
  return 0;
}

/// On overlayfs a file's time of birth changes when it is first written: not part of its identity.
bool birth_counts(int fd) {
  constexpr decltype(statfs::f_type) kOverlayfs = 0x794c7630;
  struct statfs fs;
  return ::fstatfs(fd, &fs) != 0 || fs.f_type != kOverlayfs;
}

}  // namespace

int Resolver::identify(int directory_fd, const char* name, HandleScheme scheme,
                       Identity* identity) {
  identity->scheme = scheme;
  if (scheme == HandleScheme::kKernel) {
    KernelHandle handle;
    handle.header.handle_bytes = HandleParts::kMaxBody;
    const int flags = *name == '\0' ? AT_EMPTY_PATH : 0;
    if (::name_to_handle_at(directory_fd, name, &handle.header, &identity->mount_id, flags) == 0) {
      identity->kernel_type = static_cast<std::uint8_t>(handle.header.handle_type);
      identity->body_size = static_cast<std::uint8_t>(handle.header.handle_bytes);
      std::memcpy(identity->body.data(), handle.header.f_handle, handle.header.handle_bytes);
      return 0;
    }
    // A file system below with no handles, or too long ones, gets the other scheme.
    if (errno != EOVERFLOW && errno != EOPNOTSUPP) return errno;
    identity->scheme = HandleScheme::kInode;
  }
  identity->kernel_type = 0;
  std::uint64_t inode = 0;
  std::uint64_t birth = 0;
  if (const int error = statx_identity(directory_fd, name, &inode, &birth, &identity->mount_id)) {
    return error;
  }
  identity->set_inode(inode, birth_counts(directory_fd) ? birth : 0);
  return 0;
}

int Resolver::open_by_table(const Export& entry, const MountPoint& mount, std::uint64_t inode,
                            std::uint64_t birth, int depth, UniqueFd* fd) {
  Identity found;
  if (inode == mount.root_inode) {
    fd->reset(::fcntl(mount.root.get(), F_DUPFD_CLOEXEC, 0));
    return *fd ? 0 : errno;
  }
  if (depth >= kMaxDepth) return ESTALE;
  PathTable::Place place;
  if (!paths_.find({entry.id, inode, birth, mount.key}, &place)) return ESTALE;
  UniqueFd parent;
  if (const int error =
          open_by_table(entry, mount, place.parent_inode, place.parent_birth, depth + 1, &parent)) {
    return error;
  }
  fd->reset(::openat(parent.get(), place.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!*fd) return errno == ENOENT || errno == ENOTDIR ? ESTALE : errno;
  if (const int error = identify(fd->get(), "", HandleScheme::kInode, &found)) return error;
  const bool same =
      found.inode() == inode && found.birth() == birth && found.mount_id == mount.mount_id;
  return same ? 0 : ESTALE;
}

int Resolver::open_uncached(const Export& entry, const FileHandle& handle, const HandleParts& parts,
                            bool keep, Resolved* out) {
  const std::shared_ptr<MountPoint> mount = entry.mount(parts.mount_key);
  if (!mount) return ESTALE;
  FdCache::Opened opened;
  int error;
  if (parts.scheme == HandleScheme::kKernel) {
    error = open_kernel_handle(mount->handle_base.get(), parts, &opened.path_fd);
  } else {
    AsServer privileged;
    error = parts.body_size != 16
                ? ESTALE
                : open_by_table(entry, *mount, load_be64(parts.body.data()),
                                load_be64(parts.body.data() + 8), 0, &opened.path_fd);
  }
  if (error != 0) return error;
  if (::fstat(opened.path_fd.get(), &opened.attributes) != 0) return errno;
  opened.handle = handle;
  opened.parts = parts;
  opened.fsid = fsid_on(*mount, opened.attributes);
  out->attributes = opened.attributes;
  // A removed object that only some local process still holds open is served but not kept.
  keep = keep && opened.attributes.st_nlink != 0;
  out->file = keep ? files_.insert(std::move(opened)) : FdCache::make_private(std::move(opened));
  return 0;
}

int Resolver::open(const Export& entry, const FileHandle& handle, const HandleParts& parts,
                   Resolved* out) {
  if (parts.scheme == HandleScheme::kPseudo) return ESTALE;  // above all exports
  if (!out->file) out->file = files_.find(handle);
  if (!out->file) {
    if (const int error = open_uncached(entry, handle, parts, true, out)) return error;
  } else {
    out->seen = changes_.seen(out->file->device(), out->file->inode());
    out->read_after = counter_.now(out->file->device(), out->file->inode());
    if (::fstat(out->file->path_fd(), &out->attributes) != 0) return errno;
    if (out->attributes.st_nlink == 0) {
      // Removed, and it is our own descriptor that keeps it: give that up and see whether the file
      // still exists without it.
      out->file.reset();
      out->seen.reset();
      out->read_after.reset();
      files_.forget(handle);
      if (const int error = open_uncached(entry, handle, parts, false, out)) return error;
    }
  }
  return entry.subtree_check && !entry.contains(out->file->path_fd()) ? ESTALE : 0;
}

}  // namespace nfsrdma
