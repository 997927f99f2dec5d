// SPDX-License-Identifier: Apache-2.0
// SimDisk: what of the exported files would outlive a loss of power. In place of fsync(2) it keeps
// what the file has in it; lose_power() leaves of everything newer whatever chance leaves. Names
// count as durable.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <string>

#include "rpcrdma/base/unique_fd.h"
#include "server/vfs/committer.h"
#include "tests/support/exported_directory.h"

namespace nfsrdma::test {

class SimDisk {
 public:
  SimDisk() { current_ = this; }
  ~SimDisk() { current_ = nullptr; }
  SimDisk(const SimDisk&) = delete;
  SimDisk& operator=(const SimDisk&) = delete;

  /// For HarnessOptions; of the one disk that there is.
  static Committer::Calls calls() { return {&SimDisk::sync}; }

  /// Between two lives of the server.
  void lose_power(const std::string& directory, std::mt19937_64& random) {
    std::lock_guard lock(mutex_);
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = entry.path().string();
      const std::string now = content_of(path);
      const auto kept = kept_.find(stat_of(path).st_ino);
      const std::string before = kept == kept_.end() ? std::string() : kept->second;
      std::string after = before;
      if (random() % 2 == 0) after.resize(std::max(before.size(), now.size()));
      for (std::size_t at = 0; at < std::min(now.size(), after.size()); at += kBlock) {
        if (random() % 2 == 0) continue;
        const std::size_t length = std::min({kBlock, now.size() - at, after.size() - at});
        after.replace(at, length, now, at, length);
      }
      put_back(path, after);
    }
  }

 private:
  static constexpr std::size_t kBlock = 16;

  static int sync(int fd, bool) {
    struct stat st {};
    if (::fstat(fd, &st) != 0) return -1;
    if (!S_ISREG(st.st_mode) || current_ == nullptr) return 0;
    std::string content(static_cast<std::size_t>(st.st_size), '\0');
    // With a write delegation of the file no other descriptor could be had.
    ssize_t n = ::pread(fd, content.data(), content.size(), 0);
    if (n < 0) {
      const std::string path = "/proc/self/fd/" + std::to_string(fd);
      const UniqueFd readable(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
      n = ::pread(readable.get(), content.data(), content.size(), 0);
    }
    if (n < 0) return -1;
    content.resize(static_cast<std::size_t>(n));
    std::lock_guard lock(current_->mutex_);
    current_->kept_[st.st_ino] = std::move(content);
    return 0;
  }
  /// The same inode, whatever is in it.
  static void put_back(const std::string& path, const std::string& content) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    EXPECT_EQ(::pwrite(fd.get(), content.data(), content.size(), 0),
              static_cast<ssize_t>(content.size()));
  }

  static inline SimDisk* current_ = nullptr;  // a system call has no object
  std::mutex mutex_;                          // the committer has threads of its own
  std::map<ino_t, std::string> kept_;
};

}  // namespace nfsrdma::test
