// SPDX-License-Identifier: Apache-2.0
// Local files. A side of a tree holds its directory open and goes down from there one component at
// a time: what stands where a name of the tree should be, a link of a copy before or of somebody
// else's, leads nowhere.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "client/tool/side.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma::tool {
namespace {

Result<struct stat> status_of(int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return system_error("fstat");
  return st;
}

/// A file, in the words of fchownat(2).
struct Named {
  int directory;
  const char* name;
  int flags;
};

/// False: the owner, or the group, is another one.
bool give(const Named& file, const struct stat& from) {
  if (::fchownat(file.directory, file.name, from.st_uid, from.st_gid, file.flags) == 0) return true;
  // Giving files away is root's privilege, and so the copy is ours; its group may still be right.
  constexpr auto kAsItIs = static_cast<uid_t>(-1);
  [[maybe_unused]] const int group =
      ::fchownat(file.directory, file.name, kAsItIs, from.st_gid, file.flags);
  return false;
}

class LocalFile final : public SideFile {
 public:
  LocalFile(UniqueFd fd, const struct stat& found, CloseFile close_file)
      : SideFile(FileIdentity{found}), fd_(std::move(fd)), close_file_(close_file) {}

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
  Task<Result<void>> truncate(std::uint64_t size) override {
    if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) co_return system_error("truncate");
    co_return Result<void>();
  }
  Task<Result<std::uint64_t>> finish() override {
    NFSRDMA_CO_CHECK_OK(hand_over(fd_.get(), close_file_));
    NFSRDMA_CO_TRY(const struct stat st, status_of(fd_.get()));
    co_return static_cast<std::uint64_t>(st.st_size);
  }
  Task<Result<void>> set_metadata(struct stat from) override {
    const bool given = give({fd_.get(), "", AT_EMPTY_PATH}, from);
    if (::fchmod(fd_.get(), mode_to_keep(from.st_mode, given)) != 0)
      co_return system_error("chmod");
    const struct timespec times[2] = {from.st_atim, from.st_mtim};
    if (::futimens(fd_.get(), times) != 0) co_return system_error("utimensat");
    co_return Result<void>();
  }

 private:
  UniqueFd fd_;
  CloseFile close_file_;
};

class LocalSide final : public Side {
 public:
  explicit LocalSide(CloseFile close_file) : close_file_(close_file) {}
  /// Of the tree in the directory that `root` is open on.
  LocalSide(UniqueFd root, CloseFile close_file)
      : close_file_(close_file), root_(std::move(root)) {}

  bool remote() const override { return false; }

  Task<Result<struct stat>> status(std::string path, bool follow, std::string* referral) override {
    if (referral != nullptr) referral->clear();
    NFSRDMA_CO_TRY(const At at, locate(path));
    struct stat st {};
    if (::fstatat(at.directory, at.name.c_str(), &st, flags_of(follow)) != 0) {
      co_return system_error("stat");
    }
    co_return st;
  }

  Task<Result<FileIdentity>> identity(std::string path) override {
    NFSRDMA_CO_TRY(const struct stat st, co_await status(std::move(path), true, nullptr));
    co_return FileIdentity{st};
  }

  Task<Result<std::shared_ptr<Side>>> below(std::string path) override {
    NFSRDMA_CO_TRY(const At at, locate(path));
    UniqueFd fd(::openat(at.directory, at.name.c_str(), kPassing | never_follow()));
    if (!fd) co_return system_error("open");
    co_return std::shared_ptr<Side>(std::make_shared<LocalSide>(std::move(fd), close_file_));
  }

  Task<Result<std::vector<SideEntry>>> list(std::string path) override {
    NFSRDMA_CO_TRY(const At at, locate(path));
    UniqueFd fd(::openat(at.directory, at.name.c_str(),
                         O_RDONLY | O_DIRECTORY | O_CLOEXEC | never_follow()));
    if (!fd) co_return system_error("opendir");
    std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(fd.get()), ::closedir);
    if (!directory) co_return system_error("opendir");
    fd.release();
    std::vector<SideEntry> entries;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(directory.get());
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      SideEntry mine{name};
      if (::fstatat(::dirfd(directory.get()), entry->d_name, &mine.status, AT_SYMLINK_NOFOLLOW) !=
          0) {
        mine.error = system_error("stat");
        if (is_gone(*mine.error)) continue;
      }
      entries.push_back(std::move(mine));
    }
    if (errno != 0) co_return system_error("readdir");
    co_return std::move(entries);
  }

  Task<Result<std::unique_ptr<SideFile>>> open(std::string path) override {
    return opened(std::move(path), O_RDONLY, 0);
  }
  Task<Result<std::unique_ptr<SideFile>>> create(std::string path, mode_t mode) override {
    return opened(std::move(path), O_WRONLY | O_CREAT, mode & 0777);
  }

  Task<Result<std::string>> readlink(std::string path) override {
    NFSRDMA_CO_TRY(const At at, locate(path));
    std::array<char, 4096> text;
    const ssize_t n = ::readlinkat(at.directory, at.name.c_str(), text.data(), text.size());
    if (n < 0) co_return system_error("readlink");
    co_return std::string(text.data(), static_cast<std::size_t>(n));
  }

  Task<Result<void>> symlink(std::string target, std::string path) override {
    NFSRDMA_CO_TRY(const At at, locate(path));
    if (::symlinkat(target.c_str(), at.directory, at.name.c_str()) != 0) {
      co_return system_error("symlink");
    }
    co_return Result<void>();
  }

  Task<Result<void>> mkdir(std::string path, mode_t mode) override {
    NFSRDMA_CO_TRY(const At at, locate(path));
    if (::mkdirat(at.directory, at.name.c_str(), mode & 0777) != 0) co_return system_error("mkdir");
    co_return Result<void>();
  }

  Task<Result<void>> remove(std::string path) override {
    NFSRDMA_CO_TRY(const At at, locate(path));
    if (::unlinkat(at.directory, at.name.c_str(), 0) != 0) co_return system_error("unlink");
    co_return Result<void>();
  }

  Task<Result<void>> rmdir(std::string path) override {
    NFSRDMA_CO_TRY(const At at, locate(path));
    if (::unlinkat(at.directory, at.name.c_str(), AT_REMOVEDIR) != 0) {
      co_return system_error("rmdir");
    }
    co_return Result<void>();
  }

  Task<Result<void>> set_metadata(std::string path, struct stat from, bool follow) override {
    NFSRDMA_CO_TRY(const At at, locate(path));
    const int flags = flags_of(follow);
    const bool given = give({at.directory, at.name.c_str(), flags}, from);
    if (!S_ISLNK(from.st_mode) &&
        ::fchmodat(at.directory, at.name.c_str(), mode_to_keep(from.st_mode, given), flags) != 0) {
      co_return system_error("chmod");
    }
    const struct timespec times[2] = {from.st_atim, from.st_mtim};
    if (::utimensat(at.directory, at.name.c_str(), times, flags) != 0) {
      co_return system_error("utimensat");
    }
    co_return Result<void>();
  }

 private:
  /// To go on from it, readable or not.
  static constexpr int kPassing = O_PATH | O_DIRECTORY | O_CLOEXEC;

  struct At {
    int directory;  // until the next locate()
    std::string name;
  };

  bool is_tree() const { return static_cast<bool>(root_); }
  int never_follow() const { return is_tree() ? O_NOFOLLOW : 0; }
  int flags_of(bool follow) const { return follow && !is_tree() ? 0 : AT_SYMLINK_NOFOLLOW; }

  /// The directory that has the last component of `path`, and that component.
  Result<At> locate(const std::string& path) {
    if (!is_tree()) return At{AT_FDCWD, path};
    if (path.empty()) return At{root_.get(), "."};
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return At{root_.get(), path};
    // Files come directory by directory.
    if (passed_ != path.substr(0, slash)) NFSRDMA_CHECK_OK(pass(path.substr(0, slash)));
    return At{passed_fd_.get(), path.substr(slash + 1)};
  }

  Result<void> pass(const std::string& path) {
    UniqueFd here;
    for (std::size_t begin = 0; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const std::string name = path.substr(begin, end - begin);
      UniqueFd next(::openat(here ? here.get() : root_.get(), name.c_str(), kPassing | O_NOFOLLOW));
      if (!next) return system_error("open");
      here = std::move(next);
      begin = end + 1;
    }
    passed_fd_ = std::move(here);
    passed_ = path;
    return {};
  }

  Task<Result<std::unique_ptr<SideFile>>> opened(std::string path, int flags, mode_t mode) {
    NFSRDMA_CO_TRY(const At at, locate(path));
    // What waits for somebody to read a FIFO that stands in the place of a file waits for long.
    if (is_tree()) flags |= O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    UniqueFd fd(::openat(at.directory, at.name.c_str(), flags | O_CLOEXEC, mode));
    if (!fd && errno == ELOOP && is_tree()) co_return kLinkInTheWay;
    if (!fd) co_return system_error("open");
    NFSRDMA_CO_TRY(const struct stat st, status_of(fd.get()));
    if (is_tree() && !S_ISREG(st.st_mode)) co_return kNoFile;
    co_return std::unique_ptr<SideFile>(
        std::make_unique<LocalFile>(std::move(fd), st, close_file_));
  }

  CloseFile close_file_;
  UniqueFd root_;  // of a tree
  UniqueFd passed_fd_;
  std::string passed_;  // where that is, below the root
};

}  // namespace

std::shared_ptr<Side> make_local_side(CloseFile close_file) {
  return std::make_shared<LocalSide>(close_file);
}

}  // namespace nfsrdma::tool
