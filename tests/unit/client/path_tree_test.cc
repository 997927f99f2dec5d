// SPDX-License-Identifier: Apache-2.0
#include "client/path_tree.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/unit/client/mounted_fixture.h"
#include "xdr/mount3.h"

namespace nfsrdma {
namespace {

TEST(NormalisedPath, RemovesEmptyDotAndDotDot) {
  EXPECT_EQ(normalised_path("/a//b/./c/../d/"), "/a/b/d");
  EXPECT_EQ(normalised_path("/../.."), "/");
  EXPECT_EQ(normalised_path(""), "/");
}

TEST(LongestPrefix, TakesTheDeepestExportAboveThePath) {
  EXPECT_EQ(longest_prefix({"/", "/srv", "/srv/data"}, "/srv/data/x/y"), "/srv/data");
}

TEST(LongestPrefix, ComparesWholeComponents) {
  EXPECT_EQ(longest_prefix({"/srv/da"}, "/srv/data"), "");
  EXPECT_EQ(longest_prefix({"/srv/data/"}, "/srv/data"), "/srv/data");
}

TEST(LongestPrefix, RootExportCoversEverything) {
  EXPECT_EQ(longest_prefix({"/"}, "/x"), "/");
}

class LongestExport : public MountedFixture {};

/// Else it would be in the server's list of mounts (showmount -a) for ever.
TEST_F(LongestExport, TheServerIsToHearOfItsEnd) {
  std::string rest, detail;
  CancelToken cancel;
  const std::unique_ptr<RootFinder> finder = longest_export_finder(&rest);
  std::optional<Result<void>> found;
  group_.spawn(keep(finder->find_root(*mount_, cancel, &detail), &found));
  transport().answer({});                                     // NULL: MOUNT is here
  transport().answer([](xdr::Encoder& out) { out.u32(0); });  // EXPORT: none
  xdr::mountres3 result;
  result.mountinfo.fhandle = test_handle(3).bytes();
  result.mountinfo.auth_flavors.push_back(1);
  answer(result);
  environment_->settle();
  ASSERT_TRUE(found && found->ok()) << detail;
  EXPECT_EQ(mount_->root().handle, test_handle(3));
  EXPECT_EQ(mount_->root().mount_port, 0);
}

/// A server with /base/sub/file and /beside, and with links in /base.
class InsideTree : public MountedFixture {
 protected:
  InsideTree() : tree_(*mount_, "base") { tree_.keep_inside(); }

  /// The errno of resolve(); 0: it was found.
  int resolve(const std::string& path) {
    std::optional<Result<PathNode>> done;
    group_.spawn(keep(tree_.resolve(op_, path, true), &done));
    while (!done)
      answer_next();
    return done->ok() ? 0 : done->error().sys;
  }
  int parent(const std::string& path) {
    std::optional<Result<PathParent>> done;
    group_.spawn(keep(tree_.parent(op_, path), &done));
    while (!done)
      answer_next();
    return done->ok() ? 0 : done->error().sys;
  }

 private:
  struct Node {
    std::size_t handle;
    xdr::ftype3 type;
    std::string link{};
  };

  void answer_next() {
    xdr::Decoder decoder(transport().out().front()->head);
    xdr::rpc_msg header;
    ASSERT_TRUE(xdr::decode(decoder, header));
    switch (static_cast<xdr::nfsproc3>(header.cbody.proc)) {
      case xdr::nfsproc3::NFSPROC3_LOOKUP:
        return answer_lookup();
      case xdr::nfsproc3::NFSPROC3_READLINK:
        return answer_readlink();
      default: {
        xdr::GETATTR3res res;
        res.resok.obj_attributes.type = xdr::ftype3::NF3DIR;
        return answer(res);
      }
    }
  }
  void answer_lookup() {
    const auto args = next_call<xdr::LOOKUP3args>(xdr::nfsproc3::NFSPROC3_LOOKUP);
    xdr::LOOKUP3res res;
    const auto found = nodes_.find(std::string(args.what.name));
    if (found == nodes_.end()) {
      res.status = xdr::nfsstat3::NFS3ERR_NOENT;
      return answer(res);
    }
    res.resok.object = {test_handle(found->second.handle).bytes()};
    res.resok.obj_attributes.attributes_follow = true;
    res.resok.obj_attributes.attributes.type = found->second.type;
    answer(res);
  }
  void answer_readlink() {
    const auto args = next_call<xdr::READLINK3args>(xdr::nfsproc3::NFSPROC3_READLINK);
    for (const auto& [name, node] : nodes_) {
      const auto bytes = test_handle(node.handle).bytes();
      if (!std::equal(bytes.begin(), bytes.end(), args.symlink.data.begin())) continue;
      xdr::READLINK3res res;
      res.resok.data = {std::as_bytes(std::span<const char>(node.link))};
      return answer(res);
    }
    ADD_FAILURE() << "READLINK of what is no link";
  }

  const std::map<std::string, Node> nodes_{
      {"base", {1, xdr::ftype3::NF3DIR}},
      {"sub", {2, xdr::ftype3::NF3DIR}},
      {"file", {3, xdr::ftype3::NF3REG}},
      {"beside", {4, xdr::ftype3::NF3REG}},
      {"out", {5, xdr::ftype3::NF3LNK, "../beside"}},
      {"far", {6, xdr::ftype3::NF3LNK, "/beside"}},
      {"in", {7, xdr::ftype3::NF3LNK, "/base/sub/../sub/file"}},
  };
  PathTree tree_;
};

TEST_F(InsideTree, WhatLiesInTheBaseIsFound) {
  EXPECT_EQ(resolve("sub/file"), 0);
  EXPECT_EQ(resolve("sub/../sub/file"), 0);
  EXPECT_EQ(resolve("in"), 0);
  EXPECT_EQ(resolve(""), 0);
  EXPECT_EQ(resolve("missing"), ENOENT);
}

TEST_F(InsideTree, NoWayLeadsOut) {
  EXPECT_EQ(resolve(".."), EXDEV);
  EXPECT_EQ(resolve("../beside"), EXDEV);
  EXPECT_EQ(resolve("sub/../../base"), EXDEV);
  EXPECT_EQ(resolve("out"), EXDEV);
  EXPECT_EQ(resolve("sub/../out"), EXDEV);
  EXPECT_EQ(resolve("far"), EXDEV);
  EXPECT_EQ(parent("../beside"), EXDEV);
}

TEST_F(InsideTree, TheBaseItselfIsNoNameInIt) {
  EXPECT_EQ(parent("sub/file"), 0);
  EXPECT_EQ(parent(""), EBUSY);
  EXPECT_EQ(parent("/"), EBUSY);
}

}  // namespace
}  // namespace nfsrdma
