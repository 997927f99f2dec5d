// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include "client/library/mount_impl.h"
#include "client/mount_url.h"
#include "client/tool/side.h"

namespace nfsrdma::tool {
namespace {

using client::Mount;

class RemoteFile final : public SideFile {
 public:
  RemoteFile(std::shared_ptr<Mount::Impl> impl, std::shared_ptr<FileState> state)
      : impl_(std::move(impl)), state_(std::move(state)) {}

  Task<Result<std::size_t>> read(std::span<std::byte> into, std::uint64_t offset) override {
    return state_->read(impl_->op, into, offset);
  }
  Task<Result<void>> write(std::span<const std::byte> data, std::uint64_t offset) override {
    Result<std::size_t> written = co_await state_->write(impl_->op, data, offset);
    if (!written.ok()) co_return written.error();
    co_return Result<void>();
  }
  Task<Result<std::uint64_t>> finish() override {
    NFSRDMA_CO_CHECK_OK(co_await state_->flush(impl_->op));
    NFSRDMA_CO_TRY(Attributes now, co_await impl_->mount->getattr(impl_->op, state_->handle()));
    co_return now.size;
  }

 private:
  std::shared_ptr<Mount::Impl> impl_;
  std::shared_ptr<FileState> state_;
};

class RemoteSide final : public Side {
 public:
  explicit RemoteSide(std::shared_ptr<Mount::Impl> impl) : impl_(std::move(impl)) {}
  bool remote() const override { return true; }
  Task<Result<struct stat>> status(std::string path, bool follow, std::string* referral) override {
    return client::stat_path(*impl_, std::move(path), follow, referral);
  }

  Task<Result<std::vector<SideEntry>>> list(std::string path) override {
    auto listed = co_await client::list_path(*impl_, path, true);
    if (!listed.ok()) co_return listed.error();
    std::vector<SideEntry> entries;
    for (client::DirectoryEntry& entry : *listed) {
      SideEntry& mine = entries.emplace_back();
      mine.name = std::move(entry.name);
      if (entry.attributes) {
        mine.status = *entry.attributes;
        continue;
      }
      auto status_now =
          co_await client::stat_path(*impl_, join(path, mine.name), false, &mine.referral);
      if (status_now.ok()) {
        mine.status = *status_now;
      } else {
        entries.pop_back();  // removed meanwhile
      }
    }
    co_return std::move(entries);
  }

  Task<Result<std::unique_ptr<SideFile>>> open(std::string path) override {
    return opened(std::move(path), O_RDONLY, 0);
  }
  Task<Result<std::unique_ptr<SideFile>>> create(std::string path, mode_t mode) override {
    return opened(std::move(path), O_WRONLY | O_CREAT | O_TRUNC, mode & 0777);
  }
  std::size_t most_with_create() const override { return impl_->mount->most_with_create(); }
  Task<Result<std::uint64_t>> create_with(std::string path, mode_t mode,
                                          std::span<const std::byte> data) override {
    return client::write_path(*impl_, std::move(path), data, mode & 0777);
  }
  Task<Result<std::string>> readlink(std::string path) override {
    return client::readlink_path(*impl_, std::move(path));
  }
  Task<Result<void>> symlink(std::string target, std::string path) override {
    return client::symlink_path(*impl_, std::move(target), std::move(path));
  }
  Task<Result<void>> mkdir(std::string path, mode_t mode) override {
    return client::mkdir_path(*impl_, std::move(path), mode & 0777);
  }
  Task<Result<void>> remove(std::string path) override {
    return client::unlink_path(*impl_, std::move(path));
  }

  Task<Result<void>> set_metadata(std::string path, struct stat from) override {
    SetAttributes owner;
    owner.uid = from.st_uid;
    owner.gid = from.st_gid;
    // Giving files away is root's privilege; without it the copy is ours.
    auto given = co_await client::setattr_path(*impl_, path, owner, false);
    static_cast<void>(given);
    SetAttributes set;
    if (!S_ISLNK(from.st_mode)) set.mode = from.st_mode & 07777;
    set.atime = SetAttributes::Time{false, from.st_atim};
    set.mtime = SetAttributes::Time{false, from.st_mtim};
    co_return co_await client::setattr_path(*impl_, path, set, false);
  }

 private:
  Task<Result<std::unique_ptr<SideFile>>> opened(std::string path, int flags, mode_t mode) {
    auto file = co_await client::open_path(*impl_, std::move(path), flags, mode);
    if (!file.ok()) co_return file.error();
    co_return std::make_unique<RemoteFile>(std::move(file->mount), std::move(file->state));
  }

  std::shared_ptr<Mount::Impl> impl_;
};

}  // namespace

namespace {

bool open_at(const std::string& operand, const std::shared_ptr<LoopDriver>& driver,
             client::LastReferral last, Place* place, std::string* error) {
  place->shown = operand;
  if (!looks_like_url(operand)) {
    place->side = make_local_side();
    place->path = operand;
    return true;
  }
  auto impl = client::open_impl(operand, driver, last, error);
  if (!impl.ok()) return false;
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
