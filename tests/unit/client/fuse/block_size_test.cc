// SPDX-License-Identifier: Apache-2.0
// st_blksize of a mount: by it programs choose how much they write at once.
#include <gtest/gtest.h>

#include "client/fuse/fuse_operations.h"

namespace nfsrdma {
namespace {

blksize_t of_file(std::uint32_t write_size) {
  return FuseOperations::block_size(FileType::kRegular, write_size);
}

TEST(BlockSize, OfFilesIsThatOfAWrite) {
  EXPECT_EQ(of_file(1 << 20), 1 << 20);
  EXPECT_EQ(of_file(65536), 65536);
}

/// The kernel takes the logarithm.
TEST(BlockSize, IsAPowerOfTwo) {
  EXPECT_EQ(of_file(1047672), 1 << 19);
  EXPECT_EQ(of_file(5000), 4096);
}

TEST(BlockSize, HasLimits) {
  EXPECT_EQ(of_file(4 << 20), 1 << 20);
  EXPECT_EQ(of_file(1024), 4096);
  EXPECT_EQ(of_file(0), 4096);
}

/// The kernel would ask for as much of a directory at once.
TEST(BlockSize, OfOthersIsAPage) {
  EXPECT_EQ(FuseOperations::block_size(FileType::kDirectory, 1 << 20), 4096);
  EXPECT_EQ(FuseOperations::block_size(FileType::kSymlink, 1 << 20), 4096);
}

}  // namespace
}  // namespace nfsrdma
