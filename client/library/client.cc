// SPDX-License-Identifier: Apache-2.0
// The public classes: each call runs one coroutine on the mount's loop, on the caller's own thread.
#include "nfsrdma/client.h"

#include "client/library/referred_trees.h"

namespace nfsrdma::client {
namespace {

std::uint32_t denied(ShareDeny deny) {
  switch (deny) {
    case ShareDeny::kNone:
      return 0;
    case ShareDeny::kRead:
      return access_bits::kRead;
    case ShareDeny::kWrite:
      return access_bits::kModify;
    case ShareDeny::kBoth:
      break;
  }
  return access_bits::kRead | access_bits::kModify;
}

std::optional<SetAttributes::Time> to_set_time(const FileTime& time) {
  if (time.kind == FileTime::Kind::kOmit) return std::nullopt;
  return SetAttributes::Time{time.kind == FileTime::Kind::kNow, time.value};
}

SetAttributes owner(uid_t uid, gid_t gid) {
  SetAttributes set;
  if (uid != static_cast<uid_t>(-1)) set.uid = uid;
  if (gid != static_cast<gid_t>(-1)) set.gid = gid;
  return set;
}

}  // namespace

std::error_code to_error_code(const Error& error) {
  return {errno_of(error), std::generic_category()};
}

Result<Mount> Mount::open(std::string_view url, std::string* detail) {
  std::string ignored;
  if (detail == nullptr) detail = &ignored;
  auto driver = LoopDriver::create();
  if (!driver.ok()) {
    *detail = driver.error().message();
    return to_error_code(driver.error());
  }
  auto impl = open_impl(url, std::move(*driver), LastReferral::kFollow, detail);
  if (!impl.ok()) return to_error_code(impl.error());
  return Mount(std::move(*impl));
}

Mount::Mount(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Mount::Mount(Mount&&) noexcept = default;
Mount& Mount::operator=(Mount&&) noexcept = default;
Mount::~Mount() = default;

Result<struct stat> Mount::stat(std::string_view path) {
  return impl_->run(stat_path(*impl_, std::string(path), true));
}
Result<struct stat> Mount::lstat(std::string_view path) {
  return impl_->run(stat_path(*impl_, std::string(path), false));
}

Result<File> Mount::open(std::string_view path, int flags, mode_t mode) {
  return open(path, flags, mode, ShareDeny::kNone);
}

Result<File> Mount::open(std::string_view path, int flags, mode_t mode, ShareDeny deny) {
  auto opened = impl_->run(open_path(*impl_, std::string(path), flags, mode, denied(deny)));
  if (!opened) return opened.error();
  auto file = std::make_unique<File::Impl>();
  file->mount = std::move(opened->mount);
  file->state = std::move(opened->state);
  file->readable = (flags & O_ACCMODE) != O_WRONLY;
  file->writable = (flags & O_ACCMODE) != O_RDONLY;
  return File(std::move(file));
}

Result<void> Mount::write_file(std::string_view path, std::span<const std::byte> data,
                               mode_t mode) {
  auto size = impl_->run(write_path(*impl_, std::string(path), data, mode));
  if (!size) return size.error();
  return {};
}

Result<std::vector<DirectoryEntry>> Mount::readdir(std::string_view path) {
  return impl_->run(list_path(*impl_, std::string(path), false));
}
Result<std::vector<DirectoryEntry>> Mount::readdirplus(std::string_view path) {
  return impl_->run(list_path(*impl_, std::string(path), true));
}
Result<void> Mount::rename(std::string_view from, std::string_view to) {
  return impl_->run(rename_path(*impl_, std::string(from), std::string(to)));
}
Result<void> Mount::unlink(std::string_view path) {
  return impl_->run(unlink_path(*impl_, std::string(path)));
}
Result<void> Mount::mkdir(std::string_view path, mode_t mode) {
  return impl_->run(mkdir_path(*impl_, std::string(path), mode));
}
Result<void> Mount::rmdir(std::string_view path) {
  return impl_->run(rmdir_path(*impl_, std::string(path)));
}
Result<void> Mount::symlink(std::string_view target, std::string_view path) {
  return impl_->run(symlink_path(*impl_, std::string(target), std::string(path)));
}
Result<void> Mount::link(std::string_view existing, std::string_view path) {
  return impl_->run(link_path(*impl_, std::string(existing), std::string(path)));
}
Result<std::string> Mount::readlink(std::string_view path) {
  return impl_->run(readlink_path(*impl_, std::string(path)));
}

Result<void> Mount::truncate(std::string_view path, std::uint64_t size) {
  SetAttributes set;
  set.size = size;
  return impl_->run(setattr_path(*impl_, std::string(path), set, true));
}
Result<void> Mount::chmod(std::string_view path, mode_t mode) {
  SetAttributes set;
  set.mode = mode & 07777;
  return impl_->run(setattr_path(*impl_, std::string(path), set, true));
}
Result<void> Mount::chown(std::string_view path, uid_t uid, gid_t gid) {
  return impl_->run(setattr_path(*impl_, std::string(path), owner(uid, gid), true));
}
Result<void> Mount::lchown(std::string_view path, uid_t uid, gid_t gid) {
  return impl_->run(setattr_path(*impl_, std::string(path), owner(uid, gid), false));
}
Result<void> Mount::utimens(std::string_view path, FileTime access, FileTime modification,
                            bool follow) {
  SetAttributes set;
  set.atime = to_set_time(access);
  set.mtime = to_set_time(modification);
  return impl_->run(setattr_path(*impl_, std::string(path), set, follow));
}
Result<std::vector<ReferralTarget>> Mount::referral(std::string_view path) {
  return impl_->run(referral_path(*impl_, std::string(path)));
}
Result<FileSystemInfo> Mount::statfs(std::string_view path) {
  return impl_->run(statfs_path(*impl_, std::string(path)));
}

namespace {

/// The mount's own, and those that its referrals have led to.
void for_each_tree(Mount::Impl& impl, const std::function<void(Mount::Impl&)>& act) {
  act(impl);
  impl.referred->each([&act](const std::shared_ptr<Mount::Impl>& tree) { act(*tree); });
}

Task<nfsrdma::Result<void>> set_limit(Mount::Impl& impl, std::size_t bytes) {
  for_each_tree(impl, [bytes](Mount::Impl& tree) { tree.budget.limit = bytes; });
  co_return nfsrdma::Result<void>();
}

Task<nfsrdma::Result<std::vector<ConnectionInfo>>> list_connections(Mount::Impl& impl) {
  std::vector<ConnectionInfo> all;
  for_each_tree(impl, [&all](Mount::Impl& tree) {
    for (ConnectionInfo& one : tree.mount->connections())
      all.push_back(std::move(one));
  });
  co_return std::move(all);
}

Task<nfsrdma::Result<struct stat>> stat_file(File::Impl& file) {
  NFSRDMA_CO_TRY(Attributes attributes, co_await file.state->getattr(file.mount->op));
  co_return to_stat(attributes);
}

}  // namespace

void Mount::set_unstable_limit(std::size_t bytes) {
  static_cast<void>(impl_->run(set_limit(*impl_, bytes)));
}

std::vector<ConnectionStatus> Mount::connections() {
  auto all = impl_->run(list_connections(*impl_));
  std::vector<ConnectionStatus> out;
  for (const ConnectionInfo& info : *all) {
    out.push_back({transport_name(info.transport), info.device, info.peer.text(), info.inline_send,
                   info.inline_recv, info.credits, info.stats.rdma_write_bytes,
                   info.stats.rdma_read_bytes, info.stats.inline_bytes, info.fallback_reason});
  }
  return out;
}

File::File(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    if (impl_) static_cast<void>(close());
    impl_ = std::move(other.impl_);
  }
  return *this;
}
File::~File() {
  if (impl_) static_cast<void>(close());
}

Result<std::size_t> File::pread(std::span<std::byte> buffer, std::uint64_t offset) {
  if (!impl_ || !impl_->readable) return std::make_error_code(std::errc::bad_file_descriptor);
  Mount::Impl& mount = *impl_->mount;
  return mount.run(impl_->state->read(mount.op, buffer, offset));
}

Result<std::size_t> File::pwrite(std::span<const std::byte> data, std::uint64_t offset) {
  if (!impl_ || !impl_->writable) return std::make_error_code(std::errc::bad_file_descriptor);
  Mount::Impl& mount = *impl_->mount;
  return mount.run(impl_->state->write(mount.op, data, offset));
}

Result<void> File::fsync() {
  if (!impl_) return std::make_error_code(std::errc::bad_file_descriptor);
  return impl_->mount->run(impl_->state->flush(impl_->mount->op));
}

Result<struct stat> File::stat() {
  if (!impl_) return std::make_error_code(std::errc::bad_file_descriptor);
  return impl_->mount->run(stat_file(*impl_));
}

Result<void> File::truncate(std::uint64_t size) {
  if (!impl_ || !impl_->writable) return std::make_error_code(std::errc::bad_file_descriptor);
  return impl_->mount->run(impl_->state->truncate(impl_->mount->op, size));
}

namespace {

/// Flushes and drops the state where no other coroutine runs.
Task<nfsrdma::Result<void>> close_state(File::Impl& file) {
  nfsrdma::Result<void> result = co_await file.state->flush(file.mount->op);
  if (OpenFile* opened = file.state->opened()) {
    const nfsrdma::Result<void> unlocked = co_await opened->unlock_all();
    if (result.ok() && !unlocked.ok()) result = unlocked.error();
    co_await opened->end_denial();
  }
  file.state.reset();
  co_return std::move(result);
}

}  // namespace

Result<void> File::close() {
  if (!impl_) return std::make_error_code(std::errc::bad_file_descriptor);
  Result<void> result = impl_->mount->run(close_state(*impl_));
  impl_.reset();
  return result;
}

}  // namespace nfsrdma::client
