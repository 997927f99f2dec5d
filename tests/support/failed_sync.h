// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cerrno>

#include "server/server_context.h"

namespace nfsrdma::test {

/// A sync of the file, by somebody else, tells of lost pages: the kernel does so once.
inline void fail_a_sync(ServerContext& server, const FileHandle& file) {
  const FilePin entry = server.files.find(file);
  ASSERT_TRUE(entry);
  EXPECT_EQ(server.syncs.run({entry->path_fd()},
                             [] {
                               errno = EIO;
                               return -1;
                             }),
            EIO);
}

}  // namespace nfsrdma::test
