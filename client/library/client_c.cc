// SPDX-License-Identifier: Apache-2.0
// The C ABI over the C++ classes. Nothing throws; a null path is the empty one.
#include "nfsrdma/client_c.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "client/library/lasting_name.h"
#include "nfsrdma/client.h"

using nfsrdma::client::DirectoryEntry;
using nfsrdma::client::File;
using nfsrdma::client::FileTime;
using nfsrdma::client::LockRange;
using nfsrdma::client::LockType;
using nfsrdma::client::Mount;
using nfsrdma::client::SeekWhat;

struct nfsrdma_mount {
  Mount mount;
};
struct nfsrdma_file {
  File file;
};
struct nfsrdma_dir {
  std::vector<DirectoryEntry> entries;
  std::size_t next = 0;
};

namespace {

std::string_view text(const char* path) {
  return path == nullptr ? std::string_view() : path;
}

template <typename T>
int status(const nfsrdma::client::Result<T>& result) {
  return -result.error_number();
}

int give_stat(nfsrdma::client::Result<struct stat> result, struct stat* out) {
  if (!result) return status(result);
  *out = *result;
  return 0;
}

int give(nfsrdma::client::Result<std::uint64_t> result, uint64_t* out) {
  if (!result) return status(result);
  *out = *result;
  return 0;
}

LockRange range_of(int exclusive, uint64_t offset, uint64_t length) {
  return {exclusive != 0 ? LockType::kExclusive : LockType::kShared, offset, length};
}

struct stat no_attributes() {
  struct stat nothing {};
  return nothing;
}

FileTime to_time(const struct timespec& time) {
  if (time.tv_nsec == UTIME_OMIT) return {};
  if (time.tv_nsec == UTIME_NOW) return {FileTime::Kind::kNow, {}};
  return {FileTime::Kind::kValue, time};
}

}  // namespace

extern "C" {

const char* nfsrdma_version(void) {
  return NFSRDMA_VERSION;
}

int nfsrdma_mount_url(const char* url, nfsrdma_mount** mount, char* detail, size_t detail_size) {
  std::string why;
  auto opened = Mount::open(text(url), &why);
  if (detail != nullptr && detail_size > 0) {
    const size_t length = opened ? 0 : std::min(why.size(), detail_size - 1);
    std::memcpy(detail, why.data(), length);
    detail[length] = 0;
  }
  if (!opened) return status(opened);
  *mount = new nfsrdma_mount{std::move(*opened)};
  return 0;
}

void nfsrdma_unmount(nfsrdma_mount* mount) {
  delete mount;
}

int nfsrdma_stat(nfsrdma_mount* mount, const char* path, struct stat* out) {
  return give_stat(mount->mount.stat(text(path)), out);
}
int nfsrdma_lstat(nfsrdma_mount* mount, const char* path, struct stat* out) {
  return give_stat(mount->mount.lstat(text(path)), out);
}

int nfsrdma_open(nfsrdma_mount* mount, const char* path, int flags, mode_t mode,
                 nfsrdma_file** file) {
  auto opened = mount->mount.open(text(path), flags, mode);
  if (!opened) return status(opened);
  *file = new nfsrdma_file{std::move(*opened)};
  return 0;
}

int nfsrdma_open_deny(nfsrdma_mount* mount, const char* path, int flags, mode_t mode, int deny,
                      nfsrdma_file** file) {
  if ((deny & ~(NFSRDMA_DENY_READ | NFSRDMA_DENY_WRITE)) != 0) return -EINVAL;
  auto opened =
      mount->mount.open(text(path), flags, mode, static_cast<nfsrdma::client::ShareDeny>(deny));
  if (!opened) return status(opened);
  *file = new nfsrdma_file{std::move(*opened)};
  return 0;
}

int nfsrdma_close(nfsrdma_file* file) {
  const int result = status(file->file.close());
  delete file;
  return result;
}

ssize_t nfsrdma_pread(nfsrdma_file* file, void* buffer, size_t size, uint64_t offset) {
  auto count = file->file.pread({static_cast<std::byte*>(buffer), size}, offset);
  return count ? static_cast<ssize_t>(*count) : status(count);
}

ssize_t nfsrdma_pwrite(nfsrdma_file* file, const void* data, size_t size, uint64_t offset) {
  auto count = file->file.pwrite({static_cast<const std::byte*>(data), size}, offset);
  return count ? static_cast<ssize_t>(*count) : status(count);
}

int nfsrdma_fsync(nfsrdma_file* file) {
  return status(file->file.fsync());
}
int nfsrdma_fstat(nfsrdma_file* file, struct stat* out) {
  return give_stat(file->file.stat(), out);
}
int nfsrdma_ftruncate(nfsrdma_file* file, uint64_t size) {
  return status(file->file.truncate(size));
}

int nfsrdma_lock(nfsrdma_file* file, int exclusive, uint64_t offset, uint64_t length,
                 int64_t wait_ms) {
  const auto wait =
      wait_ms < 0 ? std::chrono::milliseconds::max() : std::chrono::milliseconds(wait_ms);
  return status(file->file.lock(range_of(exclusive, offset, length), wait));
}
int nfsrdma_unlock(nfsrdma_file* file, uint64_t offset, uint64_t length) {
  return status(file->file.unlock(offset, length));
}
int nfsrdma_test_lock(nfsrdma_file* file, int wanted_exclusive, uint64_t wanted_offset,
                      uint64_t wanted_length, int* exclusive, uint64_t* offset, uint64_t* length) {
  auto found = file->file.test_lock(range_of(wanted_exclusive, wanted_offset, wanted_length));
  if (!found) return status(found);
  if (!found->has_value()) return 0;
  const LockRange& lock = **found;
  if (exclusive != nullptr) *exclusive = lock.type == LockType::kExclusive;
  if (offset != nullptr) *offset = lock.offset;
  if (length != nullptr) *length = lock.length;
  return 1;
}

int nfsrdma_seek_data(nfsrdma_file* file, uint64_t offset, uint64_t* found) {
  return give(file->file.seek(offset, SeekWhat::kData), found);
}
int nfsrdma_seek_hole(nfsrdma_file* file, uint64_t offset, uint64_t* found) {
  return give(file->file.seek(offset, SeekWhat::kHole), found);
}
int nfsrdma_allocate(nfsrdma_file* file, uint64_t offset, uint64_t length) {
  return status(file->file.allocate(offset, length));
}
int nfsrdma_deallocate(nfsrdma_file* file, uint64_t offset, uint64_t length) {
  return status(file->file.deallocate(offset, length));
}
int nfsrdma_copy_range(nfsrdma_file* from, uint64_t offset, nfsrdma_file* to, uint64_t to_offset,
                       uint64_t length, uint64_t* copied) {
  return give(from->file.copy_range(offset, to->file, to_offset, length), copied);
}

int nfsrdma_write_file(nfsrdma_mount* mount, const char* path, const void* data, size_t size,
                       mode_t mode) {
  return status(
      mount->mount.write_file(text(path), {static_cast<const std::byte*>(data), size}, mode));
}

int nfsrdma_opendir(nfsrdma_mount* mount, const char* path, int plus, nfsrdma_dir** dir) {
  auto entries = plus ? mount->mount.readdirplus(text(path)) : mount->mount.readdir(text(path));
  if (!entries) return status(entries);
  *dir = new nfsrdma_dir{std::move(*entries)};
  return 0;
}

int nfsrdma_readdir(nfsrdma_dir* dir, const char** name, uint64_t* fileid,
                    struct stat* attributes) {
  if (dir->next >= dir->entries.size()) return 0;
  const DirectoryEntry& entry = dir->entries[dir->next++];
  *name = entry.name.c_str();
  if (fileid != nullptr) *fileid = entry.fileid;
  if (attributes != nullptr) *attributes = entry.attributes.value_or(no_attributes());
  return 1;
}

void nfsrdma_closedir(nfsrdma_dir* dir) {
  delete dir;
}

int nfsrdma_rename(nfsrdma_mount* mount, const char* from, const char* to) {
  return status(mount->mount.rename(text(from), text(to)));
}
int nfsrdma_unlink(nfsrdma_mount* mount, const char* path) {
  return status(mount->mount.unlink(text(path)));
}
int nfsrdma_mkdir(nfsrdma_mount* mount, const char* path, mode_t mode) {
  return status(mount->mount.mkdir(text(path), mode));
}
int nfsrdma_rmdir(nfsrdma_mount* mount, const char* path) {
  return status(mount->mount.rmdir(text(path)));
}
int nfsrdma_symlink(nfsrdma_mount* mount, const char* target, const char* path) {
  return status(mount->mount.symlink(text(target), text(path)));
}
int nfsrdma_link(nfsrdma_mount* mount, const char* existing, const char* path) {
  return status(mount->mount.link(text(existing), text(path)));
}

ssize_t nfsrdma_readlink(nfsrdma_mount* mount, const char* path, char* buffer, size_t size) {
  auto target = mount->mount.readlink(text(path));
  if (!target) return status(target);
  if (size > 0) {
    const size_t length = std::min(target->size(), size - 1);
    std::memcpy(buffer, target->data(), length);
    buffer[length] = 0;
  }
  return static_cast<ssize_t>(target->size());
}

int nfsrdma_truncate(nfsrdma_mount* mount, const char* path, uint64_t size) {
  return status(mount->mount.truncate(text(path), size));
}
int nfsrdma_chmod(nfsrdma_mount* mount, const char* path, mode_t mode) {
  return status(mount->mount.chmod(text(path), mode));
}
int nfsrdma_chown(nfsrdma_mount* mount, const char* path, uid_t uid, gid_t gid) {
  return status(mount->mount.chown(text(path), uid, gid));
}
int nfsrdma_lchown(nfsrdma_mount* mount, const char* path, uid_t uid, gid_t gid) {
  return status(mount->mount.lchown(text(path), uid, gid));
}

int nfsrdma_utimens(nfsrdma_mount* mount, const char* path, const struct timespec times[2]) {
  const FileTime now{FileTime::Kind::kNow, {}};
  return status(mount->mount.utimens(text(path), times == nullptr ? now : to_time(times[0]),
                                     times == nullptr ? now : to_time(times[1])));
}

int nfsrdma_statfs(nfsrdma_mount* mount, const char* path, struct nfsrdma_fs_info* out) {
  auto info = mount->mount.statfs(text(path));
  if (!info) return status(info);
  *out = {info->total_bytes, info->free_bytes, info->available_bytes,
          info->total_files, info->free_files, info->available_files,
          info->read_size,   info->write_size, info->name_max};
  return 0;
}

const char* nfsrdma_transport(nfsrdma_mount* mount) {
  const auto connections = mount->mount.connections();
  if (connections.empty()) return nullptr;
  return nfsrdma::client::lasting_name(connections.front().fabric);
}

}  // extern "C"
