// SPDX-License-Identifier: Apache-2.0
// File systems that move to another server while a mount uses them: what is the same before and
// behind that, what is handed over, and what happens when it cannot be followed.
#include "tests/unit/client/fuse/memory_trees.h"

namespace nfsrdma {
namespace {

constexpr std::uint64_t kHere = 5;   // the fsid of what moves
constexpr std::uint64_t kThere = 9;  // the same, on the other server

class MovedTreesTest : public MemoryTreesTest {
 protected:
  MovedTreesTest() {
    for (MemoryRemote* server : {&a_, &b_, &c_}) {
      server->add_file("file", server == &a_ ? "here" : "there");
      server->keeps_open = true;
    }
    a_.number_file_system(kHere);
    b_.number_file_system(kThere);
    c_.number_file_system(kThere + 1);
    a_.referrals[""] = to("b");
    b_.referrals[""] = to("c");
  }
  std::string text(const NodeRef& file) {
    std::array<std::byte, 16> room;
    auto got = run(remote_->read(me_, file->handle, 0, room));
    if (!got.ok()) return "error " + std::to_string(errno_of(got.error()));
    return std::string(as_text(std::span(room).first(got->count)));
  }
  int stat(const NodeRef& file) {
    file->timer.expire();
    return run(fs().getattr(me_, file));
  }
  std::size_t opens_of(const MemoryRemote& server, const std::string& how) {
    return static_cast<std::size_t>(std::count(server.log.begin(), server.log.end(), how));
  }
};

TEST_F(MovedTreesTest, FilesAreTheSameForWhoeverUsesThem) {
  const NodeRef file = node(fs().root, "file");
  const std::uint64_t fileid = file->attributes.fileid;
  a_.move_away(kHere);
  EXPECT_EQ(text(file), "there");
  EXPECT_EQ(stat(file), 0);
  EXPECT_EQ(file->attributes.fsid, kHere) << "the kernel would see another inode";
  EXPECT_EQ(file->attributes.fileid, fileid);
  fs().root->timer.expire();
  EXPECT_EQ(node(fs().root, "file"), file);
  EXPECT_EQ(ways_.opened(), 1u);
  EXPECT_EQ(ways_.log.front(), "open b:/x from a");
}

/// The one that was left may be gone for good by then.
TEST_F(MovedTreesTest, TheServerThatWasLeftIsNotAskedAnyMore) {
  const NodeRef file = node(fs().root, "file");
  a_.move_away(kHere);
  EXPECT_EQ(stat(file), 0);
  const std::map<std::string, int> before = a_.calls;
  EXPECT_EQ(stat(file), 0);
  EXPECT_EQ(stat(fs().root), 0);
  EXPECT_EQ(text(file), "there");
  const NodeRef made = node(fs().root, "file");
  EXPECT_EQ(run(fs().remove(me_, fs().root, "file")), 0);
  EXPECT_EQ(a_.calls, before);
}

TEST_F(MovedTreesTest, WhatIsOpenIsHandedOver) {
  const NodeRef file = node(fs().root, "file");
  bool keep = false;
  ASSERT_EQ(run(fs().open(me_, file, O_RDWR, &keep)), 0);
  a_.move_away(kHere);
  EXPECT_EQ(stat(file), 0);
  EXPECT_EQ(opens_of(a_, "hand over 1"), 1u);
  EXPECT_EQ(opens_of(b_, "take over"), 1u);
  EXPECT_TRUE(remote_->holds(file->handle));
  fs().close(file, me_.caller, O_RDWR);
  EXPECT_FALSE(remote_->holds(file->handle)) << "closed where it is open";
}

/// The server has said that something has moved, and that it is this when it was asked: nobody here
/// has used it since.
TEST_F(MovedTreesTest, IsFollowedBeforeAnybodyUsesIt) {
  const NodeRef file = node(fs().root, "file");
  bool keep = false;
  ASSERT_EQ(run(fs().open(me_, file, O_RDWR, &keep)), 0);
  a_.move_away(kHere);
  const int before = a_.calls["getattr"];
  ways_.holding = true;
  a_.holder->has_moved(file->handle);
  a_.holder->has_moved(fs().root->handle);  // in it as well, while it is being followed
  EXPECT_EQ(a_.calls["getattr"], before + 2) << "asked for, and whether it has moved indeed";
  ways_.holding = false;
  ways_.gate.wake_all();
  EXPECT_EQ(opens_of(b_, "take over"), 1u);
  EXPECT_EQ(opens_of(a_, "hand over 1"), 1u);
  EXPECT_EQ(a_.calls["getattr"], before + 2);
  b_.move_away(kThere);
  b_.holder->has_moved(file->handle.in_tree(0));
  EXPECT_EQ(opens_of(b_, "hand over 1"), 1u) << "and so on, from where it is";
  EXPECT_EQ(opens_of(c_, "take over"), 1u);
  fs().close(file, me_.caller, O_RDWR);
}

TEST_F(MovedTreesTest, WhatNobodyKnowsIsNotFollowed) {
  fs();
  a_.holder->has_moved(FileHandle(as_bytes("unknown")));
  EXPECT_EQ(ways_.opened(), 0u);
}

TEST_F(MovedTreesTest, DelegationsEndAndWhatTheyKeptBackIsWrittenThere) {
  a_.delegates = true;
  a_.may_keep_back = 1 << 20;
  const NodeRef file = node(fs().root, "file");
  bool keep = false;
  ASSERT_EQ(run(fs().open(me_, file, O_RDWR, &keep)), 0);
  ASSERT_EQ(run(fs().open(me_, file, O_RDWR, &keep)), 0);
  ASSERT_EQ(remote_->delegation(file->handle), DelegationKind::kWrite);
  ASSERT_EQ(run(fs().writer_of(*file).write(me_, file, 0, as_bytes("kept back"), nullptr)), 0);
  a_.move_away(kHere);
  EXPECT_EQ(run(fs().writer_of(*file).flush(me_, file, true)), 0);
  EXPECT_EQ(b_.root_object()->names.at("file")->stable_data, "kept back");
  EXPECT_EQ(a_.root_object()->names.at("file")->data, "here");
  EXPECT_EQ(remote_->delegation(file->handle), DelegationKind::kNone);
}

TEST_F(MovedTreesTest, OtherFileSystemsOfTheServerStay) {
  const MemoryRemote::ObjectRef other = a_.add_file("other", "stays");
  other->attributes.fsid = kHere + 1;
  const NodeRef file = node(fs().root, "file"), stays = node(fs().root, "other");
  bool keep = false;
  ASSERT_EQ(run(fs().open(me_, stays, O_RDONLY, &keep)), 0);
  a_.move_away(kHere);
  EXPECT_EQ(text(file), "there");
  EXPECT_EQ(text(stays), "stays");
  EXPECT_EQ(opens_of(a_, "hand over 0"), 1u);
  fs().close(stays, me_.caller, O_RDONLY);
}

/// Below what moved, another file system of that server's.
TEST_F(MovedTreesTest, FileSystemsThatAreThereAloneHaveNumbersOfTheirOwn) {
  const MemoryRemote::ObjectRef below = b_.add_directory(*b_.root_object(), "below");
  below->attributes.fsid = kHere;  // by chance
  const NodeRef file = node(fs().root, "file");
  a_.move_away(kHere);
  EXPECT_EQ(stat(file), 0);
  const NodeRef there = node(fs().root, "below");
  EXPECT_NE(there->attributes.fsid, kHere);
  EXPECT_NE(there->handle.tree(), 0);
  EXPECT_EQ(stat(there), 0);
  EXPECT_EQ(error_of(run(
                remote_->rename(me_, fs().root->handle, "file", there->handle, "file", nullptr))),
            0)
      << "the server that has both decides";
}

TEST_F(MovedTreesTest, ItMovesOnFromThere) {
  const NodeRef file = node(fs().root, "file");
  bool keep = false;
  ASSERT_EQ(run(fs().open(me_, file, O_RDONLY, &keep)), 0);
  a_.move_away(kHere);
  EXPECT_EQ(stat(file), 0);
  b_.move_away(kThere);
  EXPECT_EQ(text(file), "there");
  EXPECT_EQ(file->attributes.fsid, kHere);
  EXPECT_EQ(ways_.log.back(), "open c:/x from b");
  EXPECT_EQ(opens_of(b_, "hand over 1"), 1u);
  EXPECT_EQ(opens_of(c_, "take over"), 1u);
  fs().close(file, me_.caller, O_RDONLY);
}

/// As behind maintenance.
TEST_F(MovedTreesTest, ItMovesBack) {
  ways_.servers["a"] = &a_;
  b_.referrals[""] = to("a");
  const NodeRef file = node(fs().root, "file");
  a_.move_away(kHere);
  EXPECT_EQ(text(file), "there");
  a_.come_back(kHere);
  b_.move_away(kThere);
  EXPECT_EQ(text(file), "here");
  EXPECT_EQ(file->attributes.fsid, kHere);
}

TEST_F(MovedTreesTest, ByItsNameItIsTheSameDirectory) {
  const auto exported = a_.add_directory(*a_.root_object(), "exported");
  a_.number_file_system(1);
  exported->attributes.fsid = kHere;
  b_.root_object()->attributes.fileid = exported->attributes.fileid;
  // The handle of the directory is that of the other server's root.
  exported->handle = b_.root_object()->handle;
  a_.root_object()->handle = FileHandle(as_bytes("the root of all"));
  const NodeRef before = node(fs().root, "exported");
  a_.move_away(kHere);
  a_.referrals["exported"] = to("b");
  fs().root->timer.expire();
  EXPECT_EQ(node(fs().root, "exported"), before);
  EXPECT_EQ(before->attributes.fsid, kHere);
  EXPECT_NE(node(before, "file"), nullptr);
  EXPECT_EQ(ways_.opened(), 1u);
  fs().root->timer.expire();
  EXPECT_EQ(node(fs().root, "exported"), before);
  EXPECT_EQ(ways_.opened(), 1u);
}

/// As a server does that exports two directories of one file system.
TEST_F(MovedTreesTest, AnotherDirectoryOfTheSameFileSystemStays) {
  const auto exported = a_.add_directory(*a_.root_object(), "exported");
  const auto stays = a_.add_directory(*a_.root_object(), "stays");
  const auto near = a_.add_file_in(*stays, "near", "here");
  const auto far = a_.add_file_in(*exported, "file", "here");
  a_.number_file_system(kHere + 1);
  for (const auto& object : {exported, stays, near, far})
    object->attributes.fsid = kHere;
  a_.root_object()->handle = FileHandle(as_bytes("the root of all"));
  exported->handle = b_.root_object()->handle;
  b_.root_object()->attributes.fileid = exported->attributes.fileid;
  far->handle = b_.root_object()->names.at("file")->handle;
  far->attributes.fileid = b_.root_object()->names.at("file")->attributes.fileid;
  const NodeRef moves = node(node(fs().root, "exported"), "file");
  const NodeRef remains = node(node(fs().root, "stays"), "near");
  bool keep = false;
  ASSERT_EQ(run(fs().open(me_, remains, O_RDONLY, &keep)), 0);
  ASSERT_EQ(run(fs().open(me_, moves, O_RDONLY, &keep)), 0);
  a_.move_away_alone({exported->handle, far->handle});
  EXPECT_EQ(text(moves), "there");
  EXPECT_EQ(text(remains), "here");
  EXPECT_EQ(opens_of(a_, "hand over 1"), 1u);
  EXPECT_TRUE(near->held);
  // It may move as well, to somewhere else.
  c_.root_object()->handle = stays->handle;
  c_.root_object()->names.at("file")->handle = near->handle;
  c_.root_object()->names.at("file")->attributes.fileid = near->attributes.fileid;
  a_.referrals[""] = to("c");
  a_.move_away_alone({stays->handle, near->handle});
  EXPECT_EQ(stat(remains), 0);
  EXPECT_EQ(ways_.log.back(), "open c:/x from a");
  EXPECT_EQ(opens_of(c_, "take over"), 1u);
  EXPECT_EQ(stat(moves), 0);
  EXPECT_EQ(ways_.opened(), 2u);
  fs().close(moves, me_.caller, O_RDONLY);
  fs().close(remains, me_.caller, O_RDONLY);
}

TEST_F(MovedTreesTest, OfTwoDirectoriesEitherMayHaveMoved) {
  const auto other = a_.add_directory(*a_.root_object(), "other");
  other->attributes.fsid = kHere + 1;
  const NodeRef second = node(fs().root, "other");
  a_.move_away(kHere);
  EXPECT_EQ(
      error_of(run(remote_->rename(me_, second->handle, "x", fs().root->handle, "y", nullptr))),
      EXDEV);
  EXPECT_EQ(ways_.opened(), 1u);
}

TEST_F(MovedTreesTest, AServerWithOtherHandlesIsNotBelieved) {
  const NodeRef file = node(fs().root, "file");
  b_.root_object()->names.at("file")->attributes.fileid += 1;
  a_.move_away(kHere);
  EXPECT_EQ(text(file), "error " + std::to_string(EREMOTE));
  EXPECT_EQ(text(file), "error " + std::to_string(EREMOTE));
  EXPECT_EQ(ways_.opened(), 1u) << "not for each call";
  EXPECT_EQ(ways_.log.back(), "end b");
  EXPECT_EQ(opens_of(a_, "hand over 0"), 0u);
}

TEST_F(MovedTreesTest, AHardMountWaitsForAServerThatCannotBeReached) {
  const NodeRef file = node(fs().root, "file");
  ways_.servers.erase("b");
  a_.move_away(kHere);
  Interrupt interrupt;
  std::optional<Result<Attributes>> patient, killed;
  group_.spawn(keep(remote_->getattr(me_, file->handle), &patient));
  group_.spawn(keep(remote_->getattr({me_.caller, &interrupt}, file->handle), &killed));
  interrupt.token->cancel();
  ASSERT_TRUE(killed.has_value());
  EXPECT_EQ(error_of(*killed), EINTR);
  EXPECT_FALSE(patient.has_value());
  ways_.servers["b"] = &b_;
  while (!patient)
    loop_->turn(std::chrono::nanoseconds(-1));
  EXPECT_TRUE(patient->ok());
  EXPECT_EQ(ways_.opened(), 2u);
}

TEST_F(MovedTreesTest, TheEndOfTheMountEndsThatPatience) {
  const NodeRef file = node(fs().root, "file");
  ways_.servers.erase("b");
  a_.move_away(kHere);
  std::optional<Result<Attributes>> patient;
  group_.spawn(keep(remote_->getattr(me_, file->handle), &patient));
  EXPECT_FALSE(patient.has_value());
  remote_->stop();
  ASSERT_TRUE(patient.has_value());
  EXPECT_EQ(error_of(*patient), EIO);
  a_.come_back(kHere);
}

TEST_F(MovedTreesTest, ASoftOneDoesNot) {
  build(true, true);
  const NodeRef file = node(fs().root, "file");
  ways_.servers.erase("b");
  a_.move_away(kHere);
  EXPECT_EQ(text(file), "error " + std::to_string(EREMOTE));
  EXPECT_EQ(text(file), "error " + std::to_string(EREMOTE));
  EXPECT_EQ(ways_.opened(), 1u);
}

/// Its root there is a directory which the file does not lie in.
TEST_F(MovedTreesTest, AnotherDirectoryOfThatServerIsNotBelieved) {
  const auto sub = a_.add_directory(*a_.root_object(), "sub");
  a_.number_file_system(kHere);
  const NodeRef file = node(fs().root, "file"), beside = node(fs().root, "sub");
  b_.root_object()->handle = sub->handle;
  a_.move_away(kHere);
  EXPECT_EQ(text(file), "error " + std::to_string(EREMOTE));
  EXPECT_EQ(text(file), "error " + std::to_string(EREMOTE));
  EXPECT_EQ(ways_.opened(), 1u);
}

/// A server that sends everybody on for ever, and still answers when it is looked at.
TEST_F(MovedTreesTest, MovingAgainAndAgainEnds) {
  ways_.servers["a"] = &a_;
  b_.referrals[""] = to("a");
  const NodeRef file = node(fs().root, "file");
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    a_.come_back(kHere);
    b_.come_back(kThere);
    (i % 2 == 0 ? a_ : b_).move_away(i % 2 == 0 ? kHere : kThere);
    if (text(file).starts_with("error")) ++refused;
  }
  EXPECT_GE(refused, 1);
  EXPECT_LE(ways_.opened(), kMostReferrals);
  a_.come_back(kHere);
  b_.come_back(kThere);
}

/// A server may number file systems as it likes, and send everybody away from all of them.
TEST_F(MovedTreesTest, FileSystemsThatLeadNowhereAreForgotten) {
  build(false);
  const NodeRef file = node(fs().root, "file");
  const MemoryRemote::ObjectRef object = a_.root_object()->names.at("file");
  for (std::uint64_t fsid = 100; fsid < 100 + 2 * ReferringRemote::kMostMoves; ++fsid) {
    a_.come_back(object->attributes.fsid);
    object->attributes.fsid = fsid;
    ASSERT_EQ(stat(file), 0);
    a_.move_away(fsid);
    ASSERT_EQ(text(file), "error " + std::to_string(EREMOTE));
  }
  EXPECT_LE(remote_->moves_known(), ReferringRemote::kMostMoves);
  EXPECT_GT(remote_->moves_known(), 0u);
}

/// What B says of A's other file system, which has stayed, is about a file of B's.
TEST_F(MovedTreesTest, HandlesOfWhatStaysAreNotTakenOver) {
  const MemoryRemote::ObjectRef other = a_.add_file("other", "stays");
  other->attributes.fsid = kHere + 1;
  const NodeRef file = node(fs().root, "file"), stays = node(fs().root, "other");
  a_.move_away(kHere);
  EXPECT_EQ(stat(file), 0);
  const MemoryRemote::ObjectRef theirs = b_.add_file("theirs", "B's");
  theirs->handle = other->handle;
  theirs->attributes.fsid = kThere;
  const NodeRef found = node(fs().root, "theirs");
  EXPECT_NE(found, stays);
  EXPECT_EQ(text(found), "B's");
  EXPECT_EQ(text(stays), "stays");
}

/// Referrals within it are the other server's, by its options and from where it stands.
TEST_F(MovedTreesTest, ReferralsWithinItGoOnFromThere) {
  b_.referrals["further"] = to("c", "/y");
  const NodeRef file = node(fs().root, "file");
  a_.move_away(kHere);
  EXPECT_EQ(stat(file), 0);
  NodeRef found;
  const NodeRef further = node(fs().root, "further");
  EXPECT_EQ(run(fs().lookup(me_, further, "file", &found)), 0);
  EXPECT_EQ(ways_.log.back(), "open c:/y from b");
}

TEST_F(MovedTreesTest, WithoutTheOptionItIsNotFollowed) {
  build(false);
  const NodeRef file = node(fs().root, "file");
  a_.move_away(kHere);
  EXPECT_EQ(text(file), "error " + std::to_string(EREMOTE));
  EXPECT_EQ(ways_.opened(), 0u);
}

TEST_F(MovedTreesTest, CallsMeanwhileWaitForItAndCanBeKilled) {
  const NodeRef file = node(fs().root, "file");
  a_.move_away(kHere);
  ways_.holding = true;
  Interrupt interrupt;
  std::optional<Result<Attributes>> first, second, killed;
  group_.spawn(keep(remote_->getattr(me_, file->handle), &first));
  group_.spawn(keep(remote_->getattr(me_, fs().root->handle), &second));
  group_.spawn(keep(remote_->getattr({me_.caller, &interrupt}, file->handle), &killed));
  EXPECT_FALSE(first.has_value());
  interrupt.token->cancel();
  ASSERT_TRUE(killed.has_value());
  EXPECT_EQ(error_of(*killed), EINTR);
  ways_.holding = false;
  ways_.gate.wake_all();
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_TRUE(first->ok() && second->ok());
  EXPECT_EQ(ways_.opened(), 1u);
}

TEST_F(MovedTreesTest, TheEndOfTheMountEndsWaiting) {
  const NodeRef file = node(fs().root, "file");
  a_.move_away(kHere);
  ways_.holding = true;
  std::optional<Result<Attributes>> waiting;
  group_.spawn(keep(remote_->getattr(me_, file->handle), &waiting));
  remote_->stop();
  ASSERT_TRUE(waiting.has_value());
  EXPECT_EQ(error_of(*waiting), EIO);
  ways_.holding = false;
  ways_.gate.wake_all();
  EXPECT_EQ(ways_.log.back(), "end b") << "nobody will";
  a_.come_back(kHere);
}

}  // namespace
}  // namespace nfsrdma
