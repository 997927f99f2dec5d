// SPDX-License-Identifier: Apache-2.0
// What tests of any NFS version need around a directory that is exported: callers, the directory
// itself, and how it looks from the server's side.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "server/server_context.h"

namespace nfsrdma::test {

inline RpcCredentials user(std::uint32_t uid, std::uint32_t gid,
                           std::vector<std::uint32_t> groups = {}) {
  RpcCredentials out;
  out.flavor = RpcCredentials::Flavor::kSys;
  out.uid = uid;
  out.gid = gid;
  out.group_count = static_cast<std::uint32_t>(groups.size());
  std::copy(groups.begin(), groups.end(), out.groups.begin());
  return out;
}

/// A directory that is gone with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char name[] = "/tmp/nfsrdma-test-XXXXXX";
    path_ = ::mkdtemp(name);
    ::chmod(path_.c_str(), 0777);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct HarnessOptions {
  ExportOptions exported = writable();
  SchemeChoice scheme = SchemeChoice::kBest;
  std::string directory;  // to be exported; empty: a fresh one
  Committer::Calls committer_calls = Committer::system_calls();
  std::string peer = "192.0.2.7";  // whom the calls come from
  bool local_locks = true;         // NFSv4's locks and those of local processes are one
  bool sync_names = true;          // false: NFSoRDMA_FSYNC=never

  static ExportOptions writable() {
    ExportOptions out;
    out.read_only = false;
    out.root_squash = false;
    return out;
  }
};

inline FileHandle to_handle(ByteSpan bytes) {
  FileHandle out;
  out.size = static_cast<std::uint8_t>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), out.data.begin());
  return out;
}

/// Content of a local file.
inline std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}
inline void put_file(const std::string& path, std::string_view content, mode_t mode = 0644) {
  std::ofstream(path, std::ios::binary) << content;
  ::chmod(path.c_str(), mode);
}
inline struct stat stat_of(const std::string& path) {
  struct stat st {};
  EXPECT_EQ(::lstat(path.c_str(), &st), 0) << path;
  return st;
}

/// Tests of other users' rights need root.
#define NFSRDMA_NEEDS_ROOT()                                                       \
  if (!::nfsrdma::can_switch_identity()) {                                         \
    GTEST_SKIP() << "an ordinary user cannot act as others; run as root for this"; \
  }

}  // namespace nfsrdma::test
