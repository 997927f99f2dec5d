// SPDX-License-Identifier: Apache-2.0
// FileSystem: POSIX ACLs, and the modes of what is made beside them.
#include "tests/unit/client/fuse/file_system_fixture.h"

namespace nfsrdma {
namespace {

class FileSystemPosixAclTest : public FileSystemTest {
 protected:
  void SetUp() override {
    FileSystemTest::SetUp();
    remote_.posix_acls = true;
  }
  mode_t masked(const NodeRef& directory, mode_t umask, mode_t mode) {
    EXPECT_EQ(run(fs_->mask_mode(me_, directory, umask, &mode)), 0);
    return mode;
  }
  int asked() { return std::exchange(remote_.calls["get_posix_acls"], 0); }
  NodeRef make_directory(const std::string& name) {
    NodeRef made;
    const SetAttributes set;
    auto maker = [&](Remote& remote) { return remote.mkdir(me_, fs_->root->handle, name, set); };
    EXPECT_EQ(run(fs_->make(me_, fs_->root, name, maker, &made)), 0);
    return made;
  }
  int set_initial(const NodeRef& node, std::optional<PosixAcl> acl) {
    return run(fs_->set_posix_acl(me_, node, true, std::move(acl)));
  }
  static PosixAcl acl_of(mode_t mode, std::uint8_t mask) {
    PosixAcl acl = PosixAcl::of_mode(mode);
    acl.users = {{1000, 7}};
    acl.mask = mask;
    return acl;
  }
};

TEST_F(FileSystemPosixAclTest, SettingOneTellsTheServerWhoseItIs) {
  auto file = remote_.add_file("a");
  file->attributes.uid = 7;
  file->attributes.gid = 8;
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(run(fs_->set_posix_acl(me_, node, false, acl_of(0640, 4))), 0);
  EXPECT_FALSE(remote_.last_acl_change.of_directory);
  EXPECT_EQ(remote_.last_acl_change.uid, 7u);
  EXPECT_EQ(remote_.last_acl_change.gid, 8u);
  FoundPosixAcls found;
  ASSERT_EQ(run(fs_->get_posix_acls(me_, node, true, false, &found)), 0);
  EXPECT_EQ(found.access, acl_of(0640, 4));
  ASSERT_EQ(set_initial(fs_->root, acl_of(0750, 5)), 0);
  EXPECT_TRUE(remote_.last_acl_change.of_directory);
}

TEST_F(FileSystemPosixAclTest, RightsAndModeAreThoseOfAfterwards) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  EXPECT_EQ(run(fs_->permit(other_, node, access_bits::kRead, false)), 0);
  file->denied[1000] = access_bits::kRead;
  ASSERT_EQ(write(node, 0, "data"), 0);
  remote_.log.clear();
  ASSERT_EQ(run(fs_->set_posix_acl(me_, node, false, acl_of(0640, 6))), 0);
  EXPECT_EQ(remote_.log, (std::vector<std::string>{"write 0+4 as 0 sync", "set_posix_acl"}));
  EXPECT_EQ(run(fs_->permit(other_, node, access_bits::kRead, false)), EACCES);
  EXPECT_EQ(node->attributes.mode, 0660u);
  EXPECT_EQ(outdated_, std::vector<std::uint64_t>{node->id}) << "the kernel has the old mode";
  // Also after an error: it may have happened all the same.
  file->denied.clear();
  remote_.fail_acls_with = EIO;
  EXPECT_EQ(run(fs_->set_posix_acl(me_, node, false, {})), EIO);
  EXPECT_EQ(run(fs_->permit(other_, node, access_bits::kRead, false)), 0);
}

TEST_F(FileSystemPosixAclTest, WithoutADefaultAclTheUmaskCounts) {
  EXPECT_EQ(masked(fs_->root, 022, 0666), 0644u);
  EXPECT_EQ(masked(fs_->root, 077, 04777), 04700u);
  EXPECT_EQ(masked(fs_->root, 0, 01777), 01777u);
  EXPECT_EQ(asked(), 1) << "it is known then";
}

TEST_F(FileSystemPosixAclTest, WithOneItAloneCounts) {
  remote_.root_object()->posix_acls.initial = acl_of(0750, 6);
  EXPECT_EQ(masked(fs_->root, 077, 0666), 0660u);
  EXPECT_EQ(masked(fs_->root, 077, 02777), 02760u);
  EXPECT_EQ(masked(fs_->root, 0, 0644), 0640u);
  EXPECT_EQ(asked(), 1);
}

TEST_F(FileSystemPosixAclTest, OurChangeOfItCountsAtOnce) {
  EXPECT_EQ(masked(fs_->root, 077, 0666), 0600u);
  ASSERT_EQ(set_initial(fs_->root, acl_of(0777, 7)), 0);
  EXPECT_EQ(masked(fs_->root, 077, 0666), 0666u);
  ASSERT_EQ(set_initial(fs_->root, {}), 0);
  EXPECT_EQ(masked(fs_->root, 077, 0666), 0600u);
}

TEST_F(FileSystemPosixAclTest, NamesThatWeMakeDoNotMakeItUnknown) {
  EXPECT_EQ(masked(fs_->root, 077, 0666), 0600u);
  asked();
  NodeRef made;
  // What the Task refers to outlives it.
  const std::string name = "new";
  const SetAttributes set;
  auto maker = [&](Remote& remote) {
    return remote.create(me_, fs_->root->handle, name, CreateMode::kGuarded, set);
  };
  ASSERT_EQ(run(fs_->make(me_, fs_->root, name, maker, &made)), 0);
  EXPECT_EQ(masked(fs_->root, 077, 0666), 0600u);
  EXPECT_EQ(asked(), 0);
}

TEST_F(FileSystemPosixAclTest, ADirectoryThatWeMakeHasInheritedThatThereIsNone) {
  EXPECT_EQ(masked(fs_->root, 077, 0666), 0600u);
  asked();
  const NodeRef made = make_directory("new");
  EXPECT_EQ(masked(made, 077, 0666), 0600u);
  EXPECT_EQ(asked(), 0);
  // Not when somebody else has changed the directory above meanwhile, or there is one.
  remote_.add_file("by somebody else");
  const NodeRef unknown = make_directory("unknown");
  remote_.root_object()->names["unknown"]->posix_acls.initial = acl_of(0777, 7);
  EXPECT_EQ(masked(unknown, 077, 0666), 0666u);
  ASSERT_EQ(set_initial(fs_->root, acl_of(0777, 7)), 0);
  EXPECT_EQ(masked(fs_->root, 077, 0666), 0666u);
  asked();
  masked(make_directory("with one"), 077, 0666);
  EXPECT_EQ(asked(), 1);
}

TEST_F(FileSystemPosixAclTest, AForeignChangeOrOldAttributesAskAgain) {
  EXPECT_EQ(masked(fs_->root, 077, 0666), 0600u);
  remote_.root_object()->posix_acls.initial = acl_of(0777, 7);
  age(fs_->root);
  EXPECT_EQ(masked(fs_->root, 077, 0666), 0666u);
  asked();
  remote_.add_file("by somebody else");
  age(fs_->root);
  ASSERT_EQ(run(fs_->getattr(me_, fs_->root)), 0);
  remote_.root_object()->posix_acls.initial.reset();
  EXPECT_EQ(masked(fs_->root, 077, 0666), 0600u);
  EXPECT_EQ(asked(), 1);
}

TEST_F(FileSystemPosixAclTest, WhereThereAreNoAclsTheUmaskCounts) {
  remote_.fail_acls_with = EOPNOTSUPP;
  EXPECT_EQ(masked(fs_->root, 022, 0666), 0644u);
  EXPECT_EQ(masked(fs_->root, 022, 0777), 0755u);
  EXPECT_EQ(asked(), 1);
  remote_.posix_acls = false;
  age(fs_->root);
  EXPECT_EQ(masked(fs_->root, 027, 0666), 0640u);
  EXPECT_EQ(asked(), 0);
}

TEST_F(FileSystemPosixAclTest, AnswersThatDoNotComeAreErrors) {
  remote_.fail_acls_with = EIO;
  mode_t mode = 0666;
  EXPECT_EQ(run(fs_->mask_mode(me_, fs_->root, 022, &mode)), EIO);
  remote_.fail_acls_with = 0;
  EXPECT_EQ(masked(fs_->root, 022, 0666), 0644u) << "and are asked for again";
}

}  // namespace
}  // namespace nfsrdma
