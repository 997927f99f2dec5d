// SPDX-License-Identifier: Apache-2.0
// What tests of any NFS version need around a directory that is exported: callers, the directory
// itself, and how it looks from the server's side.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "server/server_context.h"
#include "tests/support/temporary_directory.h"

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

/// Tests of other users' rights need root.
#define NFSRDMA_NEEDS_ROOT()                                                       \
  if (!::nfsrdma::can_switch_identity()) {                                         \
    GTEST_SKIP() << "an ordinary user cannot act as others; run as root for this"; \
  }

}  // namespace nfsrdma::test
