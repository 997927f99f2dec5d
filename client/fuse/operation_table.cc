// SPDX-License-Identifier: Apache-2.0
// The C functions that libfuse calls: each copies its arguments, which live in the request's
// buffer, and starts the coroutine.
#include <cerrno>

#include "client/fuse/fuse_operations.h"

namespace nfsrdma {
namespace {

FuseOperations& self(fuse_req_t req) {
  return *static_cast<FuseOperations*>(::fuse_req_userdata(req));
}
OpenFile* file_of(const fuse_file_info* info) {
  return info == nullptr ? nullptr : reinterpret_cast<OpenFile*>(info->fh);
}
OpenDirectory* directory_of(const fuse_file_info* info) {
  return reinterpret_cast<OpenDirectory*>(info->fh);
}

void on_init(void* userdata, fuse_conn_info* connection) {
  static_cast<FuseOperations*>(userdata)->init(connection);
}
void on_lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  self(req).spawn(self(req).lookup(req, parent, name));
}
void on_forget(fuse_req_t req, fuse_ino_t ino, std::uint64_t count) {
  self(req).fs.nodes.forget(ino, count);
  ::fuse_reply_none(req);
}
void on_forget_multi(fuse_req_t req, std::size_t count, fuse_forget_data* forgets) {
  FuseOperations& operations = self(req);
  for (std::size_t i = 0; i < count; ++i) {
    operations.fs.nodes.forget(forgets[i].ino, forgets[i].nlookup);
  }
  ::fuse_reply_none(req);
}
void on_getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  self(req).spawn(self(req).getattr(req, ino));
}
void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat* wanted, int which,
                fuse_file_info* info) {
  self(req).spawn(self(req).setattr(req, ino, *wanted, which, file_of(info)));
}
void on_readlink(fuse_req_t req, fuse_ino_t ino) {
  self(req).spawn(self(req).readlink(req, ino));
}
void on_mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  self(req).spawn(self(req).mknod(req, parent, name, mode, device));
}
void on_mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  self(req).spawn(self(req).mkdir(req, parent, name, mode));
}
void on_unlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  self(req).spawn(self(req).unlink(req, parent, name));
}
void on_rmdir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  self(req).spawn(self(req).rmdir(req, parent, name));
}
void on_symlink(fuse_req_t req, const char* text, fuse_ino_t parent, const char* name) {
  self(req).spawn(self(req).symlink(req, text, parent, name));
}
void on_rename(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
               const char* new_name, unsigned flags) {
  self(req).spawn(self(req).rename(req, parent, name, new_parent, new_name, flags));
}
void on_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char* name) {
  self(req).spawn(self(req).link(req, ino, parent, name));
}
void on_open(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info) {
  self(req).spawn(self(req).open(req, ino, *info));
}
void on_create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
               fuse_file_info* info) {
  self(req).spawn(self(req).create(req, parent, name, mode, *info));
}
void on_read(fuse_req_t req, fuse_ino_t, std::size_t size, off_t offset, fuse_file_info* info) {
  self(req).spawn(
      self(req).read(req, file_of(info), size, static_cast<std::uint64_t>(offset), *info));
}
void on_write(fuse_req_t req, fuse_ino_t, const char* data, std::size_t size, off_t offset,
              fuse_file_info* info) {
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  self(req).spawn(self(req).write(req, file_of(info), bytes, static_cast<std::uint64_t>(offset),
                                  *info, self(req).request_block()));
}
void on_flush(fuse_req_t req, fuse_ino_t, fuse_file_info* info) {
  self(req).spawn(self(req).flush(req, file_of(info), info->lock_owner));
}
void on_fsync(fuse_req_t req, fuse_ino_t, int, fuse_file_info* info) {
  self(req).spawn(self(req).fsync(req, file_of(info)));
}
void on_lseek(fuse_req_t req, fuse_ino_t, off_t offset, int whence, fuse_file_info* info) {
  self(req).spawn(self(req).lseek(req, file_of(info), static_cast<std::uint64_t>(offset), whence));
}
void on_fallocate(fuse_req_t req, fuse_ino_t, int mode, off_t offset, off_t length,
                  fuse_file_info* info) {
  self(req).spawn(self(req).fallocate(req, file_of(info), mode, static_cast<std::uint64_t>(offset),
                                      static_cast<std::uint64_t>(length)));
}
void on_copy_file_range(fuse_req_t req, fuse_ino_t, off_t from_offset, fuse_file_info* from,
                        fuse_ino_t, off_t to_offset, fuse_file_info* to, std::size_t size, int) {
  self(req).spawn(self(req).copy_file_range(req, file_of(from),
                                            static_cast<std::uint64_t>(from_offset), file_of(to),
                                            static_cast<std::uint64_t>(to_offset), size));
}
void on_release(fuse_req_t req, fuse_ino_t, fuse_file_info* info) {
  self(req).release(req, file_of(info));
}
void on_getlk(fuse_req_t req, fuse_ino_t, fuse_file_info* info, struct flock* asked) {
  self(req).spawn(self(req).getlk(req, file_of(info), info->lock_owner, *asked));
}
void on_setlk(fuse_req_t req, fuse_ino_t, fuse_file_info* info, struct flock* asked, int sleep) {
  const LockWait wait = sleep != 0 ? LockWait::kYes : LockWait::kNo;
  self(req).spawn(self(req).setlk(req, file_of(info), info->lock_owner, *asked, wait));
}
void on_flock(fuse_req_t req, fuse_ino_t, fuse_file_info* info, int operation) {
  self(req).spawn(self(req).flock(req, file_of(info), info->lock_owner, operation));
}
void on_opendir(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info) {
  self(req).spawn(self(req).opendir(req, ino, *info));
}
void on_readdir(fuse_req_t req, fuse_ino_t, std::size_t size, off_t offset, fuse_file_info* info) {
  self(req).spawn(
      self(req).readdir(req, directory_of(info), size, static_cast<std::uint64_t>(offset), false));
}
void on_readdirplus(fuse_req_t req, fuse_ino_t, std::size_t size, off_t offset,
                    fuse_file_info* info) {
  self(req).spawn(
      self(req).readdir(req, directory_of(info), size, static_cast<std::uint64_t>(offset), true));
}
void on_releasedir(fuse_req_t req, fuse_ino_t, fuse_file_info* info) {
  delete directory_of(info);
  ::fuse_reply_err(req, 0);
}
void on_fsyncdir(fuse_req_t req, fuse_ino_t, int, fuse_file_info*) {
  // Changes of names are stable when the server answers them (RFC 1813, 4.8, under sync).
  ::fuse_reply_err(req, 0);
}
void on_statfs(fuse_req_t req, fuse_ino_t ino) {
  self(req).spawn(self(req).statfs(req, ino));
}
void on_access(fuse_req_t req, fuse_ino_t ino, int mask) {
  self(req).spawn(self(req).access(req, ino, mask));
}

void on_getxattr(fuse_req_t req, fuse_ino_t ino, const char* name, std::size_t size) {
  self(req).spawn(self(req).getxattr(req, ino, name, size));
}
void on_setxattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value,
                 std::size_t size, int flags) {
  self(req).spawn(self(req).setxattr(req, ino, name, std::string(value, size), flags));
}
void on_listxattr(fuse_req_t req, fuse_ino_t ino, std::size_t size) {
  self(req).spawn(self(req).listxattr(req, ino, size));
}
void on_removexattr(fuse_req_t req, fuse_ino_t ino, const char* name) {
  self(req).spawn(self(req).removexattr(req, ino, name));
}

fuse_lowlevel_ops make_table() {
  fuse_lowlevel_ops table{};
  table.init = on_init;
  table.lookup = on_lookup;
  table.forget = on_forget;
  table.forget_multi = on_forget_multi;
  table.getattr = on_getattr;
  table.setattr = on_setattr;
  table.readlink = on_readlink;
  table.mknod = on_mknod;
  table.mkdir = on_mkdir;
  table.unlink = on_unlink;
  table.rmdir = on_rmdir;
  table.symlink = on_symlink;
  table.rename = on_rename;
  table.link = on_link;
  table.open = on_open;
  table.create = on_create;
  table.read = on_read;
  table.write = on_write;
  table.flush = on_flush;
  table.fsync = on_fsync;
  table.getxattr = on_getxattr;
  table.setxattr = on_setxattr;
  table.listxattr = on_listxattr;
  table.removexattr = on_removexattr;
  table.lseek = on_lseek;
  table.fallocate = on_fallocate;
  table.copy_file_range = on_copy_file_range;
  table.release = on_release;
  table.getlk = on_getlk;
  table.setlk = on_setlk;
  table.flock = on_flock;
  table.opendir = on_opendir;
  table.readdir = on_readdir;
  table.readdirplus = on_readdirplus;
  table.releasedir = on_releasedir;
  table.fsyncdir = on_fsyncdir;
  table.statfs = on_statfs;
  table.access = on_access;
  return table;
}

}  // namespace

const fuse_lowlevel_ops& FuseOperations::table() {
  static const fuse_lowlevel_ops kTable = make_table();
  return kTable;
}

}  // namespace nfsrdma
