// SPDX-License-Identifier: Apache-2.0
#include "server/kept_random.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

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

/// A complete file without a name yet.
Result<UniqueFd> draw(int directory, const KeptFile& file) {
  UniqueFd fd(::openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) return system_error(file.name);
  std::string content(file.magic);
  content.resize(file.magic.size() + sizeof(KeptRandom));
  randombytes_buf(content.data() + file.magic.size(), sizeof(KeptRandom));
  if (::fchmod(fd.get(), 0600) != 0 ||
      ::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
      ::fsync(fd.get()) != 0) {
    return system_error(file.name);
  }
  return fd;
}

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
    NFSRDMA_TRY(UniqueFd fresh, draw(directory.get(), file));
    // Whoever links first wins; the other reads the winner's in the second round.
    if (::linkat(AT_FDCWD, ProcPath(fresh.get()).c_str(), directory.get(), file.name,
                 AT_SYMLINK_FOLLOW) != 0 &&
        errno != EEXIST) {
      return system_error(file.name);
    }
  }
  return Error{Errc::kSystem, ENOENT, file.name};
}

}  // namespace nfsrdma
