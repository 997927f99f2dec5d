// SPDX-License-Identifier: Apache-2.0
// FileSystem: what a changed ACL makes doubtful.
#include "tests/unit/client/fuse/file_system_fixture.h"

namespace nfsrdma {
namespace {

class FileSystemAclTest : public FileSystemTest {
 protected:
  void SetUp() override {
    FileSystemTest::SetUp();
    remote_.speak_version_4();
  }
  int permit(const NodeRef& node) {
    return run(fs_->permit(other_, node, access_bits::kRead, false));
  }
};

TEST_F(FileSystemAclTest, AnAclIsWhatTheServerHas) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(run(fs_->set_acl(me_, node, "bytes")), 0);
  EXPECT_EQ(file->acl, "bytes");
  std::string acl;
  ASSERT_EQ(run(fs_->get_acl(me_, node, &acl)), 0);
  EXPECT_EQ(acl, "bytes");
}

TEST_F(FileSystemAclTest, VerdictsFromBeforeDoNotCount) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  EXPECT_EQ(permit(node), 0);
  file->denied[1000] = access_bits::kRead;
  EXPECT_EQ(permit(node), 0) << "known from before";
  ASSERT_EQ(run(fs_->set_acl(me_, node, "deny")), 0);
  EXPECT_EQ(permit(node), EACCES);
  // Nor after an error: it may have happened all the same.
  file->denied.clear();
  remote_.acls = false;
  EXPECT_EQ(run(fs_->set_acl(me_, node, "allow")), EOPNOTSUPP);
  EXPECT_EQ(permit(node), 0);
}

TEST_F(FileSystemAclTest, AttributesAreThoseOfAfterwards) {
  auto file = remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  file->attributes.mode = 0640;
  ASSERT_EQ(run(fs_->set_acl(me_, node, "bytes")), 0);
  EXPECT_EQ(node->attributes.mode, 0640u);
  EXPECT_EQ(outdated_, std::vector<std::uint64_t>{node->id}) << "the kernel has the old mode";
  EXPECT_TRUE(invalidated_.empty()) << "its data is the same";
}

TEST_F(FileSystemAclTest, NamesInADirectoryAreAskedAgain) {
  auto directory = remote_.add_directory(*remote_.root_object(), "d");
  remote_.add_file_in(*directory, "f", "data");
  age(fs_->root);
  NodeRef node = look("d"), found;
  ASSERT_EQ(run(fs_->lookup(other_, node, "f", &found)), 0);
  ASSERT_EQ(run(fs_->set_acl(me_, node, "deny")), 0);
  EXPECT_EQ(expired_, std::vector<std::string>{"f"});
  remote_.calls["lookup"] = 0;
  ASSERT_EQ(run(fs_->lookup(other_, node, "f", &found)), 0);
  EXPECT_EQ(remote_.calls["lookup"], 1) << "who may search is the server's to say, again";
}

TEST_F(FileSystemAclTest, WhatWasWrittenGoesFirst) {
  remote_.add_file("a");
  age(fs_->root);
  NodeRef node = look("a");
  ASSERT_EQ(write(node, 0, "data"), 0);
  remote_.log.clear();
  ASSERT_EQ(run(fs_->set_acl(me_, node, "deny")), 0);
  EXPECT_EQ(remote_.log, (std::vector<std::string>{"write 0+4 as 0 sync", "set_acl"}));
}

}  // namespace
}  // namespace nfsrdma
