// SPDX-License-Identifier: Apache-2.0
// ClientRecords: what is left wherever the server or the machine stopped and whatever the storage
// refused.
#include <vector>

#include "tests/unit/server/nfs4/simulated_disk.h"

namespace nfsrdma::nfs4::test {
namespace {

// --- The server or the machine stops, at each byte of each change ---

struct Step {
  enum Kind { kStart, kAdd, kRemove, kLose, kEndGrace } kind;
  std::string owner;
};

/// What the next life reads: who may reclaim, and who of them no delegations.
struct Left {
  Owners before, lost;
  bool operator==(const Left&) const = default;
};

/// The rules once more, on plain sets.
struct Model {
  Owners previous, current, lost_before, lost;
  void take(const Step& step) {
    switch (step.kind) {
      case Step::kStart:
        previous.merge(current);
        current.clear();
        lost_before.merge(lost);
        lost.clear();
        break;
      case Step::kAdd:
        previous.erase(step.owner);
        current.insert(step.owner);
        break;
      case Step::kRemove:
        for (Owners* owners : {&previous, &current, &lost_before, &lost})
          owners->erase(step.owner);
        break;
      case Step::kLose:
        if (previous.contains(step.owner) || current.contains(step.owner)) lost.insert(step.owner);
        break;
      case Step::kEndGrace:
        for (const std::string& owner : previous)
          lost.erase(owner);
        previous.clear();
        lost_before.clear();
        break;
    }
  }
  Left after_restart() const {
    Left out{previous, lost_before};
    out.before.insert(current.begin(), current.end());
    out.lost.insert(lost.begin(), lost.end());
    return out;
  }
};

Left left_of(const ClientRecords& records) {
  return {records.before(), records.lost_before()};
}

const std::vector<Step>& three_lives() {
  static const std::vector<Step> steps = {
      {Step::kStart, ""},    {Step::kAdd, "a"},    {Step::kAdd, std::string(1024, 'b')},
      {Step::kAdd, "c"},     {Step::kLose, "c"},   {Step::kRemove, "c"},
      {Step::kLose, "c"},    {Step::kAdd, "d"},    {Step::kLose, "a"},
      {Step::kLose, "d"},    {Step::kStart, ""},   {Step::kAdd, "a"},
      {Step::kRemove, "d"},  {Step::kStart, ""},   {Step::kAdd, "a"},
      {Step::kAdd, "f"},     {Step::kLose, "f"},   {Step::kLose, std::string(1024, 'b')},
      {Step::kStart, ""},    {Step::kAdd, "a"},    {Step::kAdd, "f"},
      {Step::kEndGrace, ""}, {Step::kLose, "f"},   {Step::kAdd, std::string("\nP\0e", 4)},
      {Step::kAdd, ""},      {Step::kRemove, "a"}, {Step::kStart, ""},
      {Step::kEndGrace, ""}};
  return steps;
}

/// Runs the steps until one fails; returns how many succeeded.
std::size_t run(Disk& disk, std::uint32_t* boot) {
  std::unique_ptr<ClientRecords> records;
  std::size_t done = 0;
  for (const Step& step : three_lives()) {
    Result<void> result;
    switch (step.kind) {
      case Step::kStart:
        records = start(disk);
        if (records == nullptr) return done;
        EXPECT_GT(records->boot(), *boot);
        *boot = records->boot();
        break;
      case Step::kAdd:
        result = records->add(step.owner);
        break;
      case Step::kRemove:
        result = records->remove(step.owner);
        break;
      case Step::kLose:
        result = records->lose_delegation(step.owner);
        break;
      case Step::kEndGrace:
        result = records->end_grace();
        break;
    }
    if (!result.ok()) return done;
    ++done;
  }
  return done;
}

using Ending = std::function<std::string(const std::string& before, std::string_view change,
                                         bool append, std::size_t cut)>;

/// Stops at each change, with `ending` for what is on the disk then, for each number of bytes that
/// got there. What was acknowledged must hold, the change under way may or may not.
void stop_everywhere(const Ending& ending) {
  Disk whole;
  std::uint32_t boot = 0;
  ASSERT_EQ(run(whole, &boot), three_lives().size());
  ASSERT_GT(whole.changes, 12);
  for (int change = 0; change < whole.changes; ++change) {
    std::size_t length = 1;
    for (std::size_t cut = 0; cut <= length; ++cut) {
      Disk disk;
      disk.fatal_change = change;
      disk.failures = 1 << 20;  // the server is gone
      disk.at_end = [&](Disk& at, const std::string& before, std::string_view bytes, bool append) {
        if (at.changes != change + 1) return;
        length = append ? bytes.size() : 1;
        at.content = ending(before, bytes, append, cut);
        if (at.content->empty()) at.content.reset();
      };
      boot = 0;
      const std::size_t done = run(disk, &boot);
      ASSERT_LT(done, three_lives().size());
      Model acknowledged;
      for (std::size_t i = 0; i < done; ++i)
        acknowledged.take(three_lives()[i]);
      Model both = acknowledged;
      both.take(three_lives()[done]);

      disk.fatal_change = -1;
      auto next = start(disk);
      ASSERT_NE(next, nullptr) << "change " << change << " cut " << cut;
      EXPECT_GT(next->boot(), boot);
      EXPECT_THAT(left_of(*next),
                  ::testing::AnyOf(acknowledged.after_restart(), both.after_restart()))
          << "change " << change << " cut " << cut;
      // And life goes on.
      const Owners expected = [&] {
        Owners out = next->before();
        out.insert("next");
        return out;
      }();
      ASSERT_TRUE(next->add("next").ok());
      EXPECT_EQ(left_on(disk), expected);
    }
  }
}

std::string replaced_or_not(const std::string& before, std::string_view change, std::size_t cut) {
  return cut == 0 ? before : std::string(change);
}

TEST(ClientRecordsCrash, AtEachByteWritten) {
  stop_everywhere(
      [](const std::string& before, std::string_view change, bool append, std::size_t cut) {
        return append ? before + std::string(change.substr(0, cut))
                      : replaced_or_not(before, change, cut);
      });
}

TEST(ClientRecordsCrash, WithZerosInPlaceOfTheRest) {
  stop_everywhere(
      [](const std::string& before, std::string_view change, bool append, std::size_t cut) {
        if (!append) return replaced_or_not(before, change, cut);
        return before + std::string(change.substr(0, cut)) + std::string(change.size() - cut, '\0');
      });
}

TEST(ClientRecordsCrash, WithOldBytesInPlaceOfTheRest) {
  stop_everywhere(
      [](const std::string& before, std::string_view change, bool append, std::size_t cut) {
        if (!append) return replaced_or_not(before, change, cut);
        // What an earlier file had there: the sharpest case is records, of another place.
        const std::size_t rest = change.size() - cut;
        std::string old = before.substr(before.size() - std::min(before.size(), rest));
        old.resize(rest, 'x');
        return before + std::string(change.substr(0, cut)) + old;
      });
}

// --- The storage refuses ---

TEST(ClientRecordsFailure, WhatWasAcknowledgedHoldsAndTheNextChangeWorks) {
  Disk whole;
  std::uint32_t boot = 0;
  ASSERT_EQ(run(whole, &boot), three_lives().size());
  for (int failures = 1; failures <= 3; ++failures) {
    for (int change = 0; change < whole.changes; ++change) {
      for (const bool half_there : {false, true}) {
        Disk disk;
        disk.fatal_change = change;
        disk.failures = failures;
        disk.at_end = [&](Disk& at, const std::string& before, std::string_view bytes,
                          bool append) {
          if (!half_there) return;
          at.content =
              append ? before + std::string(bytes.substr(0, bytes.size() / 2)) : std::string(bytes);
        };
        Model model;
        std::unique_ptr<ClientRecords> records;
        for (const Step& step : three_lives()) {
          // A caller tries again until it works.
          for (int attempt = 0;; ++attempt) {
            ASSERT_LE(attempt, failures);
            Result<void> result;
            if (step.kind == Step::kStart) {
              records = start(disk);
              if (records != nullptr) break;
              continue;
            }
            const std::size_t size = records->size();
            if (step.kind == Step::kAdd) result = records->add(step.owner);
            if (step.kind == Step::kRemove) result = records->remove(step.owner);
            if (step.kind == Step::kLose) result = records->lose_delegation(step.owner);
            if (step.kind == Step::kEndGrace) result = records->end_grace();
            if (result.ok()) break;
            EXPECT_EQ(records->size(), size);
          }
          model.take(step);
          EXPECT_EQ(records->size(), model.current.size());
          if (disk.changes >= change + failures) {
            Disk copy = disk;
            copy.fatal_change = -1;
            const auto next = start(copy);
            ASSERT_NE(next, nullptr);
            EXPECT_EQ(left_of(*next), model.after_restart()) << "change " << change;
          }
        }
      }
    }
  }
}

TEST(ClientRecordsFailure, ARefusedGraceEndKeepsThoseWaitedFor) {
  Disk disk;
  ASSERT_TRUE(start(disk)->add("waited for").ok());
  auto records = start(disk);
  disk.fatal_change = disk.changes;
  disk.failures = 2;  // the record, and the new file in its place
  EXPECT_FALSE(records->end_grace().ok());
  EXPECT_EQ(left_on(disk), Owners{"waited for"});
  EXPECT_TRUE(records->end_grace().ok());
  EXPECT_EQ(left_on(disk), Owners{});
}

}  // namespace
}  // namespace nfsrdma::nfs4::test
