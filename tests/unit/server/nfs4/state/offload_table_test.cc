// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/offload_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace nfsrdma::nfs4 {
namespace {

constexpr std::array<ClientId, 2> kClients{1, 2};
constexpr OffloadTable::Limits kLimits{3, 2};
constexpr std::array<std::byte, 2> kFile{std::byte{1}, std::byte{2}}, kOther{std::byte{3}};
constexpr Verifier kVerifier{std::byte{9}};
constexpr int kError = 5;
const std::string kWho = "sys:1000";

/// What a copy should look like, kept the plain way: in order of their beginnings, ended ones too.
struct Expected {
  ClientId client = 0;
  OffloadNumber number = 0;
  Stateid stateid;
  std::uint64_t copied = 0;
  bool known = true, ended = false;
  int error = 0;
};

/// All that can be done to a table with copies 0, 1, ... so far.
enum class Do : std::uint8_t { kAdvance, kEnd, kFail, kAcknowledge, kCancel };
constexpr std::array kAll{Do::kAdvance, Do::kEnd, Do::kFail, Do::kAcknowledge, Do::kCancel};

TEST(OffloadStateids, AreTestedAndFreed) {
  OffloadTable table(7, kLimits);
  const Offload& made = table.begin(1, kWho, kFile, kVerifier);
  const Stateid stateid = table.stateid_of(made);
  EXPECT_TRUE(OffloadTable::is_one(stateid));
  EXPECT_FALSE(OffloadTable::is_one(Stateid{}));
  Stateid ones{UINT32_MAX, {}};
  ones.other.fill(std::byte{0xff});
  EXPECT_FALSE(OffloadTable::is_one(ones));
  using Status = OffloadTable::Status;
  EXPECT_EQ(table.test(1, stateid), Status::kOk);
  EXPECT_EQ(table.test(2, stateid), Status::kBadStateid);
  EXPECT_EQ(OffloadTable(8, kLimits).test(1, stateid), Status::kBadStateid);
  EXPECT_EQ(table.free(1, stateid), Status::kLocksHeld);
  table.end(made.number, 0);
  EXPECT_EQ(table.free(2, stateid), Status::kBadStateid);
  EXPECT_EQ(table.free(1, stateid), Status::kOk);
  EXPECT_TRUE(table.ended().empty());
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.test(1, stateid), Status::kBadStateid);
}

class Walk {
 public:
  void begin(ClientId client) {
    const auto of_client = std::ranges::count_if(
        copies_, [client](const Expected& one) { return one.known && one.client == client; });
    const auto known = std::ranges::count_if(copies_, &Expected::known);
    const bool may = known < 3 && of_client < 2;
    ASSERT_EQ(table_.may_begin(client), may);
    if (!may) return;
    const Offload& made = table_.begin(client, kWho, kFile, kVerifier);
    copies_.push_back({client, made.number, table_.stateid_of(made)});
  }
  void act(Do what, std::size_t which) {
    Expected& copy = copies_.at(which);
    switch (what) {
      case Do::kAdvance:
        // Its caller never goes on after the end.
        if (copy.ended) return;
        ASSERT_EQ(table_.advance(copy.number, 7), copy.known);
        copy.copied += 7;
        break;
      case Do::kEnd:
      case Do::kFail:
        if (copy.ended) return;
        table_.end(copy.number, what == Do::kFail ? kError : 0);
        if (copy.known) copy.error = what == Do::kFail ? kError : 0;
        copy.ended = copy.known;
        break;
      case Do::kAcknowledge:
        table_.acknowledged(copy.number);
        if (copy.ended) copy.known = false;
        break;
      case Do::kCancel:
        ASSERT_EQ(table_.cancel(copy.client, "somebody", copy.stateid, kFile), 0u);
        ASSERT_EQ(table_.cancel(copy.client, kWho, copy.stateid, kFile),
                  copy.known ? copy.number : 0);
        copy.known = false;
        break;
    }
  }
  void end_client(ClientId client) {
    table_.end_client(client);
    for (Expected& copy : copies_)
      copy.known = copy.known && copy.client != client;
  }
  void check() const {
    std::set<OffloadNumber> ended;
    for (const Expected& copy : copies_) {
      const Offload* found = table_.find(copy.client, copy.stateid, kFile);
      ASSERT_EQ(found != nullptr, copy.known);
      ASSERT_EQ(table_.find(copy.number), found);
      if (found == nullptr) continue;
      ASSERT_EQ(found->copied, copy.copied);
      ASSERT_EQ(found->ended, copy.ended);
      ASSERT_EQ(found->error, copy.error);
      ASSERT_EQ(found->verifier, kVerifier);
      if (copy.ended) ended.insert(copy.number);
    }
    ASSERT_EQ(table_.ended(), ended);
    ASSERT_EQ(table_.size(),
              static_cast<std::size_t>(std::ranges::count_if(copies_, &Expected::known)));
  }
  std::size_t copies() const { return copies_.size(); }

 private:
  OffloadTable table_{7, kLimits};
  std::vector<Expected> copies_;
};

/// Every sequence of `left` steps behind those of `walk`.
void run_all(const Walk& walk, int left) {
  if (::testing::Test::HasFatalFailure()) return;
  walk.check();
  if (left == 0) return;
  for (const ClientId client : kClients) {
    Walk begun = walk;
    begun.begin(client);
    run_all(begun, left - 1);
    Walk gone = walk;
    gone.end_client(client);
    run_all(gone, left - 1);
  }
  for (std::size_t which = 0; which < walk.copies(); ++which) {
    for (const Do what : kAll) {
      Walk next = walk;
      next.act(what, which);
      run_all(next, left - 1);
    }
  }
}

TEST(OffloadTable, EverySequenceOfSteps) {
  run_all(Walk(), 6);
}

TEST(OffloadTable, AStateidIsOfOneClientOneFileOneStart) {
  OffloadTable table(7, kLimits);
  const Stateid stateid = table.stateid_of(table.begin(1, kWho, kFile, kVerifier));
  ASSERT_NE(table.find(1, stateid, kFile), nullptr);
  EXPECT_EQ(table.find(2, stateid, kFile), nullptr);
  EXPECT_EQ(table.find(1, stateid, kOther), nullptr);
  Stateid last = stateid;
  last.seqid = 0;
  EXPECT_EQ(table.find(1, last, kFile), nullptr) << "there is no last one (RFC 7862 4.8)";
  OffloadTable later(8, kLimits);
  later.begin(1, kWho, kFile, kVerifier);
  EXPECT_EQ(later.find(1, stateid, kFile), nullptr);
  EXPECT_EQ(later.cancel(1, kWho, stateid, kFile), 0u);
}

TEST(OffloadTable, StateidsAreOrdinaryAndDiffer) {
  OffloadTable table(7, kLimits);
  const Stateid first = table.stateid_of(table.begin(1, kWho, kFile, kVerifier));
  const Stateid second = table.stateid_of(table.begin(1, kWho, kFile, kVerifier));
  EXPECT_NE(first, second);
  EXPECT_EQ(kind_of(first, 2), StateidKind::kOrdinary);
  EXPECT_NE(first.seqid, 0u);
}

}  // namespace
}  // namespace nfsrdma::nfs4
