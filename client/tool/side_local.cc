// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "client/tool/side.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma::tool {
namespace {

class LocalFile final : public SideFile {
 public:
  explicit LocalFile(UniqueFd fd) : fd_(std::move(fd)) {}

  Task<Result<std::size_t>> read(std::span<std::byte> into, std::uint64_t offset) override {
    std::size_t done = 0;
    while (done < into.size()) {
      const ssize_t n = ::pread(fd_.get(), into.data() + done, into.size() - done,
                                static_cast<off_t>(offset + done));
      if (n < 0) {
        if (errno == EINTR) continue;
        co_return system_error("read");
      }
      if (n == 0) break;
      done += static_cast<std::size_t>(n);
    }
    co_return done;
  }
  Task<Result<void>> write(std::span<const std::byte> data, std::uint64_t offset) override {
    std::size_t done = 0;
    while (done < data.size()) {
      const ssize_t n = ::pwrite(fd_.get(), data.data() + done, data.size() - done,
                                 static_cast<off_t>(offset + done));
      if (n < 0) {
        if (errno == EINTR) continue;
        co_return system_error("write");
      }
      done += static_cast<std::size_t>(n);
    }
    co_return Result<void>();
  }
  Task<Result<std::uint64_t>> finish() override {
    struct stat st {};
    if (::fstat(fd_.get(), &st) != 0) co_return system_error("fstat");
    co_return static_cast<std::uint64_t>(st.st_size);
  }

 private:
  UniqueFd fd_;
};

class LocalSide final : public Side {
 public:
  bool remote() const override { return false; }

  Task<Result<struct stat>> status(std::string path, bool follow, std::string* referral) override {
    if (referral != nullptr) referral->clear();
    struct stat st {};
    const int result = follow ? ::stat(path.c_str(), &st) : ::lstat(path.c_str(), &st);
    if (result != 0) co_return system_error("stat");
    co_return st;
  }

  Task<Result<std::vector<SideEntry>>> list(std::string path) override {
    std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
    if (!directory) co_return system_error("opendir");
    std::vector<SideEntry> entries;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(directory.get());
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      SideEntry& mine = entries.emplace_back();
      mine.name = name;
      if (::fstatat(::dirfd(directory.get()), entry->d_name, &mine.status, AT_SYMLINK_NOFOLLOW) !=
          0) {
        entries.pop_back();  // removed meanwhile
      }
    }
    if (errno != 0) co_return system_error("readdir");
    co_return std::move(entries);
  }

  Task<Result<std::unique_ptr<SideFile>>> open(std::string path) override {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) co_return system_error("open");
    co_return std::unique_ptr<SideFile>(std::make_unique<LocalFile>(std::move(fd)));
  }

  Task<Result<std::unique_ptr<SideFile>>> create(std::string path, mode_t mode) override {
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode & 0777));
    if (!fd) co_return system_error("open");
    co_return std::unique_ptr<SideFile>(std::make_unique<LocalFile>(std::move(fd)));
  }

  Task<Result<std::string>> readlink(std::string path) override {
    std::array<char, 4096> text;
    const ssize_t n = ::readlink(path.c_str(), text.data(), text.size());
    if (n < 0) co_return system_error("readlink");
    co_return std::string(text.data(), static_cast<std::size_t>(n));
  }

  Task<Result<void>> symlink(std::string target, std::string path) override {
    if (::symlink(target.c_str(), path.c_str()) != 0) co_return system_error("symlink");
    co_return Result<void>();
  }

  Task<Result<void>> mkdir(std::string path, mode_t mode) override {
    if (::mkdir(path.c_str(), mode & 0777) != 0) co_return system_error("mkdir");
    co_return Result<void>();
  }

  Task<Result<void>> remove(std::string path) override {
    if (::unlink(path.c_str()) != 0) co_return system_error("unlink");
    co_return Result<void>();
  }

  Task<Result<void>> set_metadata(std::string path, struct stat from) override {
    // Giving files away is root's privilege; without it the copy is ours.
    [[maybe_unused]] int owner = ::lchown(path.c_str(), from.st_uid, from.st_gid);
    if (!S_ISLNK(from.st_mode) && ::chmod(path.c_str(), from.st_mode & 07777) != 0) {
      co_return system_error("chmod");
    }
    const struct timespec times[2] = {from.st_atim, from.st_mtim};
    if (::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0) {
      co_return system_error("utimensat");
    }
    co_return Result<void>();
  }
};

}  // namespace

std::shared_ptr<Side> make_local_side() {
  return std::make_shared<LocalSide>();
}

}  // namespace nfsrdma::tool
