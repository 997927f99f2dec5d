// SPDX-License-Identifier: Apache-2.0
// A file system of its own for a test.
#pragma once

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace nfsrdma::test {

/// A tmpfs that is mounted as long as the object lives. Whatever uses it goes before.
class MountedTmpfs {
 public:
  MountedTmpfs() = default;
  MountedTmpfs(const MountedTmpfs&) = delete;
  MountedTmpfs& operator=(const MountedTmpfs&) = delete;
  ~MountedTmpfs() {
    if (mounted()) ::umount2(where_.c_str(), MNT_DETACH);
  }
  /// On a directory that is there. 0, or an errno.
  int mount(const std::string& where, const char* options) {
    if (::mount("none", where.c_str(), "tmpfs", 0, options) != 0) return errno;
    where_ = where;
    return 0;
  }
  /// False, with errno: it is in use.
  bool unmount() {
    if (::umount(where_.c_str()) != 0) return false;
    where_.clear();
    return true;
  }
  bool mounted() const { return !where_.empty(); }

 private:
  std::string where_;
};

/// In a test or its SetUp(): mounts it. Root has to be able to; for others the test is left out.
#define NFSRDMA_MOUNT(disk, where, options)                                                       \
  do {                                                                                            \
    const int mount_error = (disk).mount(where, options);                                         \
    ASSERT_TRUE(mount_error == 0 || ::geteuid() != 0) << "mount: " << std::strerror(mount_error); \
    if (mount_error != 0) GTEST_SKIP() << "only root may mount";                                  \
  } while (false)

}  // namespace nfsrdma::test
