// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/node.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

#include "client/fuse/file_writer.h"
#include "client/fuse/names_ahead.h"

namespace nfsrdma {
namespace {

TEST(NodeTable, WhoGoesThroughItMayLetGoOfTheLastReferences) {
  constexpr int kNodes = 100;
  NodeTable table;
  std::vector<NodeRef> held;
  for (int i = 0; i < kNodes; ++i) {
    const std::array<std::byte, 1> bytes{static_cast<std::byte>(i)};
    held.push_back(table.obtain(FileHandle(bytes)));
  }
  std::set<std::uint64_t> seen;
  table.for_each([&](const NodeRef& node) {
    seen.insert(node->id);
    held.clear();
  });
  EXPECT_EQ(seen.size(), std::size_t{kNodes});
  EXPECT_EQ(table.alive(), 0u);
}

}  // namespace
}  // namespace nfsrdma
