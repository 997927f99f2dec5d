// SPDX-License-Identifier: Apache-2.0
// A file of records. See record_storage.h.
#include "server/nfs4/record_storage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "config/default_paths.h"

namespace nfsrdma::nfs4 {

namespace {

constexpr const char* kLog = "log";
constexpr const char* kAside = "log.new";
// No server has had this many clients: whatever is larger was not written here.
constexpr off_t kMaxBytes = off_t{256} << 20;

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return system_error("write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace

std::unique_ptr<FileRecordStorage> FileRecordStorage::open(const std::string& directory,
                                                           std::string* why) {
  const auto failed = [&](const char* step) {
    *why = fmt::format("{}: {}", directory, system_error(step).message());
    return nullptr;
  };
  if (!make_directories(directory, 0700)) return failed("make the directory");
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return failed("open");
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed("lock");
    *why = fmt::format(
        "{}: in use by another server; give each server a state directory of its own (--state-dir)",
        directory);
    return nullptr;
  }
  // The directory's own name must last as well.
  UniqueFd parent(::openat(fd.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || ::fsync(parent.get()) != 0) return failed("sync its parent");
  return std::unique_ptr<FileRecordStorage>(
      new FileRecordStorage(std::move(fd), directory + "/" + kLog));
}

Result<std::optional<std::string>> FileRecordStorage::read() {
  // Non-blocking, so that a named pipe in its place does not stop the start for ever.
  UniqueFd fd(::openat(directory_.get(), kLog, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT) return std::optional<std::string>();
    return system_error("open");
  }
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return system_error("stat");
  if (!S_ISREG(st.st_mode)) return Error{Errc::kInvalid, 0, "not a regular file"};
  if (st.st_size > kMaxBytes) return Error{Errc::kInvalid, 0, "too large"};
  std::string content(static_cast<std::size_t>(st.st_size), '\0');
  std::size_t have = 0;
  while (have < content.size()) {
    const ssize_t n = ::read(fd.get(), content.data() + have, content.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("read");
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  content.resize(have);
  return std::optional<std::string>(std::move(content));
}

Result<void> FileRecordStorage::replace(std::string_view content) {
  UniqueFd fd(::openat(directory_.get(), kAside,
                       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_APPEND | O_CLOEXEC, 0600));
  if (!fd) return system_error("create log.new");
  NFSRDMA_CHECK_OK(write_all(fd.get(), content));
  if (::fsync(fd.get()) != 0) return system_error("sync");
  if (::renameat(directory_.get(), kAside, directory_.get(), kLog) != 0) {
    return system_error("rename");
  }
  log_ = std::move(fd);
  if (::fsync(directory_.get()) != 0) return system_error("sync the directory");
  return {};
}

Result<void> FileRecordStorage::append(std::string_view record) {
  NFSRDMA_CHECK_OK(write_all(log_.get(), record));
  if (::fdatasync(log_.get()) != 0) return system_error("sync");
  return {};
}

}  // namespace nfsrdma::nfs4
