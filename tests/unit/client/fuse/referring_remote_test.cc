// SPDX-License-Identifier: Apache-2.0
// ReferringRemote with servers in memory, whose handles and numbers are the same: what is of which
// server, when one is asked at all, and what happens when it cannot be.
#include "client/fuse/referring_remote.h"

#include "tests/unit/client/fuse/memory_trees.h"

namespace nfsrdma {
namespace {

class ReferringRemoteTest : public MemoryTreesTest {
 protected:
  ReferringRemoteTest() { a_.referrals["away"] = to("b"); }
};

TEST_F(ReferringRemoteTest, LookingAtAReferralAsksNobodyElse) {
  const LookupResult away = look(a_.root(), "away");
  ASSERT_TRUE(away.attributes.has_value());
  EXPECT_EQ(away.attributes->type, FileType::kDirectory);
  EXPECT_EQ(away.attributes->mode, 0555u);
  EXPECT_EQ(away.attributes->fileid, 4242u);
  const auto again = run(remote_->getattr(me_, away.handle));
  EXPECT_EQ(again.value().mode, 0555u);
  EXPECT_EQ(ways_.opened(), 0u);
}

TEST_F(ReferringRemoteTest, WhatIsInItIsTheOtherServers) {
  a_.add_file("file", "here");
  b_.add_file("file", "there");
  const LookupResult away = look(a_.root(), "away");
  const LookupResult near = look(a_.root(), "file");
  const LookupResult far = look(away.handle, "file");
  std::array<std::byte, 16> room;
  EXPECT_EQ(run(remote_->read(me_, near.handle, 0, room)).value().count, 4u);
  EXPECT_EQ(run(remote_->read(me_, far.handle, 0, room)).value().count, 5u);
  EXPECT_EQ(as_text(std::span(room).first(5)), "there");
  EXPECT_EQ(ways_.opened(), 1u);
}

/// Both servers number their objects alike.
TEST_F(ReferringRemoteTest, HandlesAndNumbersOfTwoServersNeverMeet) {
  a_.add_file("file", "here");
  b_.add_file("file", "there");
  const LookupResult away = look(a_.root(), "away");
  const LookupResult near = look(a_.root(), "file");
  const LookupResult far = look(away.handle, "file");
  EXPECT_EQ(as_text(near.handle.bytes()), as_text(far.handle.bytes()))
      << "as the servers know them";
  EXPECT_FALSE(near.handle == far.handle);
  EXPECT_EQ(near.attributes->fileid, far.attributes->fileid);
  EXPECT_NE(near.attributes->fsid, far.attributes->fsid);
  EXPECT_FALSE(away.handle == near.handle);
  EXPECT_NE(away.attributes->fsid, near.attributes->fsid);
}

TEST_F(ReferringRemoteTest, TheDirectoryIsOneObjectBeforeAndAfter) {
  const NodeRef before = node(fs().root, "away");
  b_.root_object()->attributes.mode = 0700;
  b_.add_file("file", "x");
  const NodeRef file = node(before, "file");
  before->timer.expire();
  fs().root->timer.expire();
  const NodeRef after = node(fs().root, "away");
  EXPECT_EQ(before, after);
  EXPECT_EQ(after->attributes.mode, 0700u) << "what is mounted there is seen now";
  EXPECT_EQ(fs().nodes.find(file->handle), file);
}

TEST_F(ReferringRemoteTest, AListingTellsTheSameHandlesAsLookup) {
  b_.add_file("file", "x");
  const LookupResult away = look(a_.root(), "away");
  const LookupResult far = look(away.handle, "file");
  struct Names final : DirectoryVisitor {
    bool on_entry(const DirectoryEntry& entry) override {
      if (entry.handle != nullptr) handles.emplace(entry.name, *entry.handle);
      if (entry.attributes != nullptr) fsids.emplace(entry.name, entry.attributes->fsid);
      return true;
    }
    std::map<std::string, FileHandle> handles;
    std::map<std::string, std::uint64_t> fsids;
  } names;
  ASSERT_TRUE(run(remote_->readdir(me_, away.handle, 0, 0, true, names)).ok());
  ASSERT_EQ(names.handles.count("file"), 1u);
  EXPECT_TRUE(names.handles.at("file") == far.handle);
  EXPECT_EQ(names.fsids.at("file"), far.attributes->fsid);
}

TEST_F(ReferringRemoteTest, FilesAreMadeWrittenAndRemovedThere) {
  const NodeRef away = node(fs().root, "away");
  NodeRef made;
  const SetAttributes set;
  const std::string name = "new";  // the task refers to it
  ASSERT_EQ(run(fs().make(
                me_, away, name,
                [&](Remote& remote) {
                  return remote.create(me_, away->handle, name, CreateMode::kUnchecked, set);
                },
                &made)),
            0);
  ASSERT_EQ(run(fs().writer_of(*made).write(me_, made, 0, as_bytes("text"), nullptr)), 0);
  ASSERT_EQ(run(fs().writer_of(*made).flush(me_, made, true)), 0);
  EXPECT_EQ(b_.root_object()->names.at("new")->stable_data, "text");
  EXPECT_EQ(run(fs().remove(me_, away, "new")), 0);
  EXPECT_TRUE(b_.root_object()->names.empty());
  EXPECT_TRUE(a_.root_object()->names.empty());
}

TEST_F(ReferringRemoteTest, NothingGoesFromOneServerToAnother) {
  a_.add_file("file", "here");
  b_.add_file("file", "there");
  const LookupResult away = look(a_.root(), "away");
  const LookupResult near = look(a_.root(), "file");
  const LookupResult far = look(away.handle, "file");
  EXPECT_EQ(error_of(run(remote_->rename(me_, a_.root(), "file", away.handle, "new", nullptr))),
            EXDEV);
  EXPECT_EQ(error_of(run(remote_->link(me_, near.handle, away.handle, "new"))), EXDEV);
  EXPECT_EQ(error_of(run(remote_->copy(me_, far.handle, 0, near.handle, 0, 1))), EXDEV);
  EXPECT_EQ(error_of(run(remote_->rename(me_, away.handle, "file", away.handle, "new", nullptr))),
            0);
}

TEST_F(ReferringRemoteTest, OneThatCannotBeOpenedIsAskedAgainLater) {
  a_.referrals["away"] = to("nobody");
  const LookupResult away = look(a_.root(), "away");
  EXPECT_EQ(error_of(run(remote_->access(me_, away.handle, access_bits::kRead))), EHOSTUNREACH);
  EXPECT_EQ(error_of(run(remote_->access(me_, away.handle, access_bits::kRead))), EHOSTUNREACH);
  EXPECT_EQ(ways_.opened(), 1u) << "not for each operation";
  EXPECT_EQ(run(remote_->getattr(me_, away.handle)).value().mode, 0555u) << "it is still shown";
}

TEST_F(ReferringRemoteTest, WhoeverWaitsForOneCanBeKilled) {
  ways_.holding = true;
  const LookupResult away = look(a_.root(), "away");
  Interrupt interrupt;
  std::optional<Result<AccessResult>> killed, patient;
  group_.spawn(keep(remote_->access({me_.caller, &interrupt}, away.handle, 1), &killed));
  group_.spawn(keep(remote_->access(me_, away.handle, 1), &patient));
  EXPECT_FALSE(killed.has_value());
  interrupt.token->cancel();
  ASSERT_TRUE(killed.has_value());
  EXPECT_EQ(error_of(*killed), EINTR);
  EXPECT_FALSE(patient.has_value());
  ways_.holding = false;
  ways_.gate.wake_all();
  ASSERT_TRUE(patient.has_value());
  EXPECT_TRUE(patient->ok());
  EXPECT_EQ(ways_.opened(), 1u) << "both wait for one";
}

TEST_F(ReferringRemoteTest, TheEndOfTheMountEndsWaiting) {
  ways_.holding = true;
  const LookupResult away = look(a_.root(), "away");
  std::optional<Result<AccessResult>> waiting;
  group_.spawn(keep(remote_->access(me_, away.handle, 1), &waiting));
  remote_->stop();
  ASSERT_TRUE(waiting.has_value());
  EXPECT_EQ(error_of(*waiting), EIO);
  ways_.holding = false;
  ways_.gate.wake_all();
}

TEST_F(ReferringRemoteTest, ServersAreToldGoodbye) {
  b_.add_file("file", "x");
  (void)look(look(a_.root(), "away").handle, "file");
  EXPECT_EQ(remote_->open_trees().size(), 1u);
  remote_->stop();
  run(remote_->end(true));
  EXPECT_EQ(ways_.log.back(), "end b");
}

TEST_F(ReferringRemoteTest, WithoutTheOptionItIsShownAndLeadsNowhere) {
  build(false);
  const LookupResult away = look(a_.root(), "away");
  EXPECT_EQ(away.attributes->mode, 0555u);
  EXPECT_EQ(error_of(run(remote_->access(me_, away.handle, 1))), EREMOTE);
  EXPECT_EQ(ways_.opened(), 0u);
}

TEST_F(ReferringRemoteTest, AReferralBehindAReferralGoesOnFromThere) {
  b_.referrals["further"] = to("c", "/y");
  c_.add_file("file", "last");
  const LookupResult further = look(look(a_.root(), "away").handle, "further");
  EXPECT_TRUE(look(further.handle, "file").attributes.has_value());
  EXPECT_EQ(ways_.log.back(), "open c:/y from b");
}

TEST_F(ReferringRemoteTest, ACircleEndsInEloop) {
  b_.referrals["back"] = to("b", "/x");
  const LookupResult back = look(look(a_.root(), "away").handle, "back");
  EXPECT_EQ(error_of(run(remote_->access(me_, back.handle, 1))), ELOOP);
}

TEST_F(ReferringRemoteTest, AReferralThatChangesLeadsElsewhere) {
  b_.add_file("old", "");
  c_.add_file("new", "");
  const LookupResult before = look(a_.root(), "away");
  (void)look(before.handle, "old");
  a_.referrals["away"] = to("c");
  const LookupResult after = look(a_.root(), "away");
  EXPECT_FALSE(before.handle == after.handle);
  (void)look(after.handle, "new");
  (void)look(before.handle, "old");  // what is open there goes on
  EXPECT_TRUE(look(a_.root(), "away").handle == after.handle);
}

TEST_F(ReferringRemoteTest, NoSuchOperationThereIsNotSoForTheWholeMount) {
  b_.add_file("file", "x");
  b_.fail_acls_with = ENOSYS;
  b_.posix_acls = true;
  const LookupResult far = look(look(a_.root(), "away").handle, "file");
  EXPECT_EQ(error_of(run(remote_->get_posix_acls(me_, far.handle, true, false))), EOPNOTSUPP);
}

TEST_F(ReferringRemoteTest, DelegationsOfBothAreTheMounts) {
  b_.delegates = true;
  b_.keeps_open = true;
  b_.add_file("file", "x");
  const NodeRef far = node(node(fs().root, "away"), "file");
  bool keep = false;
  ASSERT_EQ(run(fs().open(me_, far, O_RDONLY, &keep)), 0);
  ASSERT_EQ(run(fs().open(me_, far, O_RDONLY, &keep)), 0);
  EXPECT_EQ(remote_->delegation(far->handle), DelegationKind::kRead);
  b_.recall(*b_.root_object()->names.at("file"));
  fs().close(far, me_.caller, O_RDONLY);
  fs().close(far, me_.caller, O_RDONLY);
  run(fs().finish());
  EXPECT_EQ(remote_->delegation(far->handle), DelegationKind::kNone);
  EXPECT_NE(std::find_if(b_.log.begin(), b_.log.end(),
                         [](const std::string& line) { return line.starts_with("give back"); }),
            b_.log.end());
}

TEST_F(ReferringRemoteTest, NamesOfTheSameTextInTwoDirectoriesAreTwo) {
  const auto sub = a_.add_directory(*a_.root_object(), "sub");
  const LookupResult first = look(a_.root(), "away");
  const LookupResult second = look(look(a_.root(), "sub").handle, "away");
  EXPECT_FALSE(first.handle == second.handle) << "a directory has one place";
}

TEST_F(ReferringRemoteTest, OneThatIsGoneThereIsOpenedAnew) {
  b_.add_file("file", "x");
  const LookupResult before = look(a_.root(), "away");
  (void)look(before.handle, "file");
  b_.fail_getattrs_with = ESTALE;
  auto found = run(remote_->lookup(me_, a_.root(), "away", nullptr));
  EXPECT_EQ(error_of(found), ESTALE);
  b_.fail_getattrs_with = 0;
  const LookupResult after = look(a_.root(), "away");
  EXPECT_FALSE(before.handle == after.handle);
  (void)look(after.handle, "file");
  EXPECT_EQ(ways_.opened(), 2u);
}

}  // namespace
}  // namespace nfsrdma
