// SPDX-License-Identifier: Apache-2.0
#include "server/kept_random.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "config/default_paths.h"
#include "rpcrdma/base/unique_fd.h"
#include "server/vfs/proc_path.h"

namespace nfsrdma {

namespace {

Result<KeptRandom> read_from(int fd, const KeptFile& file) {
  KeptRandom drawn;
  // One more than there may be.
  std::string bytes(file.magic.size() + drawn.size() + 1, '\0');
  const ssize_t n = ::pread(fd, bytes.data(), bytes.size(), 0);
  if (n < 0) return system_error(file.name);
  if (static_cast<std::size_t>(n) != bytes.size() - 1 || !bytes.starts_with(file.magic)) {
    return Error{Errc::kUnsupported, 0, file.not_known};
  }
  std::copy_n(bytes.data() + file.magic.size(), drawn.size(),
              reinterpret_cast<char*>(drawn.data()));
  return drawn;
}

/// A complete file, to be given its name.
class DrawnFile {
 public:
  DrawnFile(int directory, const KeptFile& file) : directory_(directory), file_(file) {}
  DrawnFile(const DrawnFile&) = delete;
  DrawnFile& operator=(const DrawnFile&) = delete;
  ~DrawnFile() {
    if (!aside_.empty()) ::unlinkat(directory_, aside_.c_str(), 0);
  }

  Result<void> draw() {
    if (!open()) return system_error(file_.name);
    std::string content(file_.magic);
    content.resize(file_.magic.size() + sizeof(KeptRandom));
    randombytes_buf(content.data() + file_.magic.size(), sizeof(KeptRandom));
    if (::fchmod(fd_.get(), 0600) != 0 ||
        ::write(fd_.get(), content.data(), content.size()) !=
            static_cast<ssize_t>(content.size()) ||
        ::fsync(fd_.get()) != 0) {
      return system_error(file_.name);
    }
    return {};
  }

  /// False with errno; EEXIST: somebody else was faster.
  bool link() {
    if (aside_.empty()) {
      return ::linkat(AT_FDCWD, ProcPath(fd_.get()).c_str(), directory_, file_.name,
                      AT_SYMLINK_FOLLOW) == 0;
    }
    if (::linkat(directory_, aside_.c_str(), directory_, file_.name, 0) == 0) return true;
    if (errno == EEXIST) return false;
    // No hard links, as on FAT: a name that replaces none.
    if (::renameat2(directory_, aside_.c_str(), directory_, file_.name, RENAME_NOREPLACE) != 0)
      return false;
    aside_.clear();
    return true;
  }

 private:
  /// Without a name, or, where the file system has no such files (NFS, some of FUSE's), with one of
  /// its own.
  bool open() {
    fd_.reset(::openat(directory_, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd_) return true;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL) return false;
    std::array<std::uint8_t, 8> random;
    randombytes_buf(random.data(), random.size());
    aside_ = fmt::format(".{}.{:02x}", file_.name, fmt::join(random, ""));
    fd_.reset(::openat(directory_, aside_.c_str(),
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd_) aside_.clear();
    return static_cast<bool>(fd_);
  }

  const int directory_;
  const KeptFile& file_;
  UniqueFd fd_;
  std::string aside_;  // its name until it has the right one; empty: none
};

}  // namespace

Result<KeptRandom> load_or_draw(const std::string& state_dir, const KeptFile& file) {
  if (sodium_init() < 0) return Error{Errc::kUnsupported, 0, "libsodium does not start"};
  // With its parents: a new user has no ~/.local/state.
  if (!make_directories(state_dir, 0700)) {
    return system_error("make the state directory");
  }
  UniqueFd directory(::open(state_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return system_error("open the state directory");
  for (int attempt = 0; attempt < 2; ++attempt) {
    UniqueFd fd(
        ::openat(directory.get(), file.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (fd) {
      NFSRDMA_TRY(const KeptRandom drawn, read_from(fd.get(), file));
      // Whoever linked it may have been killed before this.
      if (::fsync(directory.get()) != 0) return system_error("sync the state directory");
      return drawn;
    }
    if (errno != ENOENT) return system_error(file.name);
    DrawnFile fresh(directory.get(), file);
    NFSRDMA_CHECK_OK(fresh.draw());
    // Whoever links first wins; the other reads the winner's in the second round.
    if (!fresh.link() && errno != EEXIST) return system_error(file.name);
  }
  return Error{Errc::kSystem, ENOENT, file.name};
}

}  // namespace nfsrdma
