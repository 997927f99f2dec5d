// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/verbs/parent_regions.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace nfsrdma::verbs {
namespace {

struct FakeRegistrar final : ParentRegions::Registrar {
  ibv_mr* register_parent(MutableByteSpan bytes) override {
    ++registered;
    if (full) return nullptr;
    auto* region = new ibv_mr{};
    region->addr = bytes.data();
    region->length = bytes.size();
    there.insert(region);
    return region;
  }
  void give_back_parent(ibv_mr* region, MutableByteSpan bytes) override {
    EXPECT_EQ(region->addr, bytes.data());
    EXPECT_EQ(region->length, bytes.size());
    EXPECT_EQ(there.erase(region), 1U);
    delete region;
  }
  int registered = 0;
  bool full = false;
  std::set<ibv_mr*> there;
};

struct Block {
  explicit Block(std::size_t size) : bytes(size), lasting(bytes) {}
  ByteSpan part(std::size_t offset, std::size_t size) {
    return ByteSpan(bytes).subspan(offset, size);
  }
  std::vector<std::byte> bytes;
  LastingMemory lasting;
};

TEST(ParentRegions, OrdinaryMemoryHasNone) {
  FakeRegistrar registrar;
  ParentRegions parents(registrar);
  std::vector<std::byte> memory(100);
  EXPECT_EQ(parents.take(memory), nullptr);
  EXPECT_EQ(registrar.registered, 0);
}

TEST(ParentRegions, LastingMemoryIsRegisteredOnce) {
  FakeRegistrar registrar;
  {
    ParentRegions parents(registrar);
    Block block(4096);
    ParentRegions::Parent* first = parents.take(block.part(0, 100));
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first->region->addr, block.bytes.data());
    EXPECT_EQ(first->region->length, 4096U);
    EXPECT_EQ(parents.take(block.part(4000, 96)), first);
    EXPECT_EQ(first->windows, 2U);
    parents.give(*first);
    parents.give(*first);
    EXPECT_EQ(parents.take(block.part(50, 1)), first);
    EXPECT_EQ(registrar.registered, 1);
    EXPECT_EQ(parents.lasting_bytes(), 4096U);
    parents.give(*first);
  }
  EXPECT_TRUE(registrar.there.empty());
}

TEST(ParentRegions, WhatSticksOutHasNone) {
  FakeRegistrar registrar;
  ParentRegions parents(registrar);
  Block block(4096);
  const MutableByteSpan whole(block.bytes);
  EXPECT_EQ(parents.take({whole.data() + 4000, 97}), nullptr);
  EXPECT_EQ(parents.take({whole.data() + 4096, 1}), nullptr);
}

TEST(ParentRegions, TheDomainsOwnRegionsServeToo) {
  FakeRegistrar registrar;
  ParentRegions parents(registrar);
  std::vector<std::byte> memory(4096);
  ibv_mr region{};
  ibv_mr twin{};
  parents.add(&region, memory);
  parents.add(&twin, memory);
  parents.remove(&twin, memory);
  ParentRegions::Parent* parent = parents.take(ByteSpan(memory).subspan(10, 4086));
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(parent->region, &region);
  EXPECT_EQ(registrar.registered, 0);
  parents.give(*parent);
  parents.remove(&region, memory);
  EXPECT_EQ(parents.take(memory), nullptr);
}

TEST(ParentRegions, MemoryThatIsGoneIsGivenBackAndNeverMistakenForItsSuccessor) {
  FakeRegistrar registrar;
  ParentRegions parents(registrar);
  std::vector<std::byte> memory(4096);
  auto lasting = std::make_optional<LastingMemory>(memory);
  ParentRegions::Parent* before = parents.take(memory);
  ASSERT_NE(before, nullptr);
  ibv_mr* old_region = before->region;
  parents.give(*before);
  lasting.reset();
  EXPECT_EQ(parents.take(memory), nullptr);
  // At the same address.
  lasting.emplace(memory);
  ParentRegions::Parent* after = parents.take(memory);
  ASSERT_NE(after, nullptr);
  EXPECT_EQ(registrar.registered, 2);
  EXPECT_EQ(registrar.there.count(old_region), after->region == old_region ? 1U : 0U);
  EXPECT_EQ(registrar.there.size(), 1U);
  parents.give(*after);
}

TEST(ParentRegions, KeepsSoMuchAndDropsTheLongestIdle) {
  FakeRegistrar registrar;
  ParentRegions parents(registrar);
  constexpr std::size_t kSize = ParentRegions::kKeep / 4;
  std::vector<std::unique_ptr<Block>> blocks;
  for (int i = 0; i < 5; ++i)
    blocks.push_back(std::make_unique<Block>(kSize));
  ParentRegions::Parent* busy = parents.take(blocks[0]->part(0, 1));
  for (int i = 1; i < 4; ++i)
    parents.give(*parents.take(blocks[static_cast<std::size_t>(i)]->part(0, 1)));
  EXPECT_EQ(parents.lasting_bytes(), ParentRegions::kKeep);
  EXPECT_EQ(registrar.registered, 4);
  parents.give(*parents.take(blocks[1]->part(0, 1)));  // now the second is the longest idle
  parents.give(*parents.take(blocks[4]->part(0, 1)));
  EXPECT_EQ(parents.lasting_bytes(), ParentRegions::kKeep);
  EXPECT_EQ(registrar.registered, 5);
  parents.give(*parents.take(blocks[1]->part(0, 1)));
  parents.give(*parents.take(blocks[3]->part(0, 1)));
  EXPECT_EQ(registrar.registered, 5) << "those were kept";
  parents.give(*parents.take(blocks[2]->part(0, 1)));
  EXPECT_EQ(registrar.registered, 6);
  EXPECT_EQ(busy->region->addr, blocks[0]->bytes.data()) << "what is in use stays";
  parents.give(*busy);
}

TEST(ParentRegions, WithoutRoomThereIsNone) {
  FakeRegistrar registrar;
  registrar.full = true;
  ParentRegions parents(registrar);
  Block block(4096);
  EXPECT_EQ(parents.take(block.part(0, 1)), nullptr);
  registrar.full = false;
  ParentRegions::Parent* parent = parents.take(block.part(0, 1));
  EXPECT_NE(parent, nullptr);
}

}  // namespace
}  // namespace nfsrdma::verbs
