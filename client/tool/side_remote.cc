// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>

#include "client/library/mount_impl.h"
#include "client/mount_url.h"
#include "client/tool/side.h"

namespace nfsrdma::tool {
namespace {

using client::Mount;

FileIdentity identity_of(const Mount::Impl& impl, const struct stat& st) {
  const MountSettings& settings = impl.mount->settings();
  FileIdentity identity{st};
  identity.server = fmt::format("{} {} {}", settings.host, settings.rdma_port, settings.tcp_port);
  const std::vector<ConnectionInfo> connections = impl.mount->connections();
  if (!connections.empty()) identity.peer = connections.front().peer.text();
  return identity;
}

std::optional<FileIdentity> found_by(const client::Opened& file) {
  if (!file.found) return std::nullopt;
  return identity_of(*file.mount, to_stat(*file.found));
}

SetAttributes metadata(const struct stat& from, bool given) {
  SetAttributes set;
  if (!S_ISLNK(from.st_mode)) set.mode = mode_to_keep(from.st_mode, given);
  set.atime = SetAttributes::Time{false, from.st_atim};
  set.mtime = SetAttributes::Time{false, from.st_mtim};
  return set;
}

/// set(SetAttributes), a Task<Result<void>>, of one file: owner, then mode and times.
template <typename Set>
Task<Result<void>> set_all(struct stat from, Set set) {
  SetAttributes owner;
  owner.uid = from.st_uid;
  owner.gid = from.st_gid;
  const Result<void> given = co_await set(owner);
  if (!given.ok()) {
    // Giving files away is root's privilege, and so the copy is ours; its group may still be right.
    owner.uid.reset();
    [[maybe_unused]] const Result<void> group = co_await set(owner);
  }
  co_return co_await set(metadata(from, given.ok()));
}

class RemoteFile final : public SideFile {
 public:
  explicit RemoteFile(client::Opened file)
      : SideFile(found_by(file)), impl_(std::move(file.mount)), state_(std::move(file.state)) {}

  Task<Result<std::size_t>> read(std::span<std::byte> into, std::uint64_t offset) override {
    return state_->read(impl_->op, into, offset);
  }
  Task<Result<void>> write(std::span<const std::byte> data, std::uint64_t offset) override {
    Result<std::size_t> written = co_await state_->write(impl_->op, data, offset);
    if (!written.ok()) co_return written.error();
    co_return Result<void>();
  }
  Task<Result<void>> truncate(std::uint64_t size) override {
    return state_->truncate(impl_->op, size);
  }
  Task<Result<std::uint64_t>> finish() override {
    NFSRDMA_CO_CHECK_OK(co_await state_->flush(impl_->op));
    NFSRDMA_CO_TRY(Attributes now, co_await impl_->mount->getattr(impl_->op, state_->handle()));
    co_return now.size;
  }
  Task<Result<void>> set_metadata(struct stat from) override {
    return set_all(from, [this](SetAttributes what) { return set(what); });
  }

 private:
  Task<Result<void>> set(SetAttributes what) {
    NFSRDMA_CO_CHECK_OK(co_await impl_->mount->setattr(impl_->op, state_->handle(), what));
    co_return Result<void>();
  }

  std::shared_ptr<Mount::Impl> impl_;
  std::shared_ptr<FileState> state_;
};

class RemoteSide final : public Side {
 public:
  explicit RemoteSide(std::shared_ptr<Mount::Impl> impl) : impl_(std::move(impl)) {}
  /// Of the tree in the directory `root`. Nobody goes down to a name of it but by directories that
  /// were made or looked at before; so it is the last component that must be no link.
  RemoteSide(std::shared_ptr<Mount::Impl> impl, std::string root)
      : impl_(std::move(impl)), root_(std::move(root)), is_tree_(true) {}

  bool remote() const override { return true; }
  Task<Result<struct stat>> status(std::string path, bool follow, std::string* referral) override {
    return client::stat_path(*impl_, whole(path), follow && !is_tree_, referral);
  }

  Task<Result<FileIdentity>> identity(std::string path) override {
    if (is_tree_) {
      NFSRDMA_CO_TRY(const struct stat st, co_await client::stat_path(*impl_, whole(path), false));
      if (S_ISLNK(st.st_mode)) co_return kLinkInTheWay;
    }
    NFSRDMA_CO_TRY(client::Looked there, co_await client::look_path(*impl_, whole(path)));
    co_return identity_of(*there.mount, there.status);
  }

  Task<Result<std::shared_ptr<Side>>> below(std::string path) override {
    co_return std::shared_ptr<Side>(std::make_shared<RemoteSide>(impl_, whole(path)));
  }

  Task<Result<std::vector<SideEntry>>> list(std::string path) override {
    auto listed = co_await client::list_path(*impl_, whole(path), true);
    if (!listed.ok()) co_return listed.error();
    std::vector<SideEntry> entries;
    for (client::DirectoryEntry& entry : *listed) {
      SideEntry mine{std::move(entry.name)};
      if (entry.attributes) {
        mine.status = *entry.attributes;
      } else {
        auto status_now = co_await status(join(path, mine.name), false, &mine.referral);
        if (status_now.ok()) {
          mine.status = *status_now;
        } else if (is_gone(status_now.error())) {
          continue;
        } else {
          mine.error = status_now.error();
        }
      }
      entries.push_back(std::move(mine));
    }
    co_return std::move(entries);
  }

  Task<Result<std::unique_ptr<SideFile>>> open(std::string path) override {
    return opened(std::move(path), O_RDONLY, 0);
  }
  Task<Result<std::unique_ptr<SideFile>>> create(std::string path, mode_t mode) override {
    return opened(std::move(path), O_WRONLY | O_CREAT, mode & 0777);
  }
  std::size_t most_with_create() const override { return impl_->mount->most_with_create(); }
  Task<Result<std::uint64_t>> create_with(std::string path, mode_t mode,
                                          std::span<const std::byte> data) override {
    auto made = co_await client::write_path(*impl_, whole(path), data, mode & 0777, !is_tree_);
    if (!made.ok()) co_return of_link(made.error());
    co_return *made;
  }
  Task<Result<std::string>> readlink(std::string path) override {
    return client::readlink_path(*impl_, whole(path));
  }
  Task<Result<void>> symlink(std::string target, std::string path) override {
    return client::symlink_path(*impl_, std::move(target), whole(path));
  }
  Task<Result<void>> mkdir(std::string path, mode_t mode) override {
    return client::mkdir_path(*impl_, whole(path), mode & 0777);
  }
  Task<Result<void>> remove(std::string path) override {
    return client::unlink_path(*impl_, whole(path));
  }
  Task<Result<void>> rmdir(std::string path) override {
    return client::rmdir_path(*impl_, whole(path));
  }

  Task<Result<void>> set_metadata(std::string path, struct stat from, bool follow) override {
    const bool through = follow && !is_tree_;
    return set_all(from, [this, where = whole(path), through](SetAttributes what) {
      return client::setattr_path(*impl_, where, what, through);
    });
  }

 private:
  std::string whole(const std::string& path) const {
    return path.empty() ? root_ : join(root_, path);
  }
  Error of_link(const Error& error) const {
    return is_tree_ && error.sys == ELOOP ? kLinkInTheWay : error;
  }

  Task<Result<std::unique_ptr<SideFile>>> opened(std::string path, int flags, mode_t mode) {
    if (is_tree_) flags |= O_NOFOLLOW;
    auto file = co_await client::open_path(*impl_, whole(path), flags, mode);
    if (!file.ok()) co_return of_link(file.error());
    if (is_tree_ && file->found && file->found->type != FileType::kRegular) {
      co_return kNoFile;
    }
    co_return std::make_unique<RemoteFile>(std::move(*file));
  }

  std::shared_ptr<Mount::Impl> impl_;
  std::string root_;
  bool is_tree_ = false;
};

bool open_at(const std::string& operand, const std::shared_ptr<LoopDriver>& driver,
             client::LastReferral last, Place* place, std::string* error) {
  place->shown = operand;
  if (!looks_like_url(operand)) {
    place->side = make_local_side();
    place->path = operand;
    place->name = last_component(operand);
    return true;
  }
  auto impl = client::open_impl(operand, driver, last, error);
  if (!impl.ok()) return false;
  place->name = last_component((*impl)->asked.path);
  place->side = std::make_shared<RemoteSide>(std::move(*impl));
  place->path = "";
  const std::size_t query = place->shown.find('?');
  if (query != std::string::npos) place->shown.resize(query);
  return true;
}

}  // namespace

bool open_place(const std::string& operand, const std::shared_ptr<LoopDriver>& driver, Place* place,
                std::string* error) {
  return open_at(operand, driver, client::LastReferral::kFollow, place, error);
}

bool open_place_itself(const std::string& operand, const std::shared_ptr<LoopDriver>& driver,
                       Place* place, std::string* error) {
  return open_at(operand, driver, client::LastReferral::kStay, place, error);
}

Sameness sameness(const FileIdentity& one, const FileIdentity& other) {
  const struct stat &a = one.status, &b = other.status;
  if (a.st_ino != b.st_ino || (a.st_mode & S_IFMT) != (b.st_mode & S_IFMT)) {
    return Sameness::kDifferent;
  }
  // Two names of one server have its port in common only where they lead to the same transport.
  const bool one_server =
      one.server == other.server || (!one.peer.empty() && one.peer == other.peer);
  if (one_server && a.st_dev == b.st_dev) return Sameness::kSame;
  return a.st_size == b.st_size && same_time(a.st_mtim, b.st_mtim) ? Sameness::kPerhaps
                                                                   : Sameness::kDifferent;
}

bool is_gone(const Error& error) {
  const int number = errno_of(error);
  return number == ENOENT || number == ESTALE;
}

std::string join(const std::string& directory, const std::string& name) {
  if (directory.empty() || directory.back() == '/') return directory + name;
  return directory + "/" + name;
}

std::string last_component(const std::string& path) {
  std::size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return "";
  const std::size_t slash = path.rfind('/', end);
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(begin, end - begin + 1);
}

}  // namespace nfsrdma::tool
