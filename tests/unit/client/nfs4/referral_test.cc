// SPDX-License-Identifier: Apache-2.0
// NFS4ERR_MOVED with a server that answers it on purpose (RFC 8881 11.4, RFC 7530 8), and what it
// says of where to go: as it should, and as it should not.
#include <random>

#include "client/nfs4/recovery.h"
#include "client/nfs4/referral_decode.h"
#include "tests/unit/client/nfs4/session_fixture.h"

namespace nfsrdma {
namespace {

using Op = xdr::nfs_opnum4;

/// attr_vals of FakeNfs4Server::kAbsent.
class Locations {
 public:
  using Path = std::vector<std::string>;
  struct Location {
    std::vector<std::string> servers;
    Path path;
  };

  static std::string encoded(const Path& root, const std::vector<Location>& locations) {
    std::vector<std::byte> room(1u << 20);
    xdr::Encoder out(room);
    out.u64(3);  // fsid
    out.u64(4);
    out.u32(0);  // rdattr_error
    names(root, out);
    out.u32(static_cast<std::uint32_t>(locations.size()));
    for (const Location& location : locations) {
      names(location.servers, out);
      names(location.path, out);
    }
    out.u64(99);  // mounted_on_fileid
    return std::string(as_text(out.bytes()));
  }

 private:
  static void names(const std::vector<std::string>& all, xdr::Encoder& out) {
    out.u32(static_cast<std::uint32_t>(all.size()));
    for (const std::string& name : all)
      xdr::encode(out, xdr::component4{name});
  }
};

class ReferralTest : public SessionTest {
 protected:
  Error look() {
    auto found = finish(nfs_->lookup(op_, file_, "away", nullptr));
    return found.ok() ? Error{} : found.error();
  }
  Result<Referral> ask() { return finish(nfs_->referral(op_, file_, "away")); }
  void say(const Locations::Path& root, const std::vector<Locations::Location>& locations) {
    server_->locations = Locations::encoded(root, locations);
  }
  int error_of_ask() {
    auto found = ask();
    return found.ok() ? 0 : found.error().sys;
  }
};

TEST_F(ReferralTest, ANameWhoseObjectIsElsewhereIsAReferral) {
  ASSERT_TRUE(begin().ok());
  server_->refers = true;
  EXPECT_TRUE(is_referral_met(look()));
  EXPECT_EQ(look().sys, EREMOTE);
  EXPECT_NE(look().message().find("NFS4ERR_MOVED"), std::string::npos);
}

/// RFC 8881 18.35.3: a client says that it can follow referrals, and so could move file systems.
TEST_F(ReferralTest, TheServerIsToldThatTheyAreFollowed) {
  ASSERT_TRUE(begin().ok());
  EXPECT_NE(server_->exchange_flags & xdr::EXCHGID4_FLAG_SUPP_MOVED_REFER, 0u);
  EXPECT_NE(server_->exchange_flags & xdr::EXCHGID4_FLAG_SUPP_MOVED_MIGR, 0u);
}

/// A directory that has moved itself is none: there is nothing to be found in it any more.
TEST_F(ReferralTest, ADirectoryThatMovedIsNoReferral) {
  ASSERT_TRUE(begin().ok());
  server_->moved = true;
  EXPECT_FALSE(is_referral_met(look()));
  EXPECT_TRUE(is_moved_away(look()));
  EXPECT_EQ(look().sys, EREMOTE);
  EXPECT_NE(look().message().find("NFS4ERR_MOVED"), std::string::npos);
}

TEST_F(ReferralTest, WhatMovedIsNamedByEachOperation) {
  ASSERT_TRUE(begin().ok());
  server_->moved = true;
  const auto got = finish(nfs_->getattr(op_, file_));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().sys, EREMOTE);
  EXPECT_NE(got.error().message().find("NFS4ERR_MOVED"), std::string::npos);
  EXPECT_EQ(nfs4::remedy_of(xdr::nfsstat4::NFS4ERR_MOVED, false), nfs4::Remedy::kNone);
}

TEST_F(ReferralTest, LocationsAreAskedForWhereTheyAre) {
  ASSERT_TRUE(begin().ok());
  server_->refers = true;
  say({"srv", "away"}, {{{"one.example.org", "192.0.2.9.78.82"}, {"export", "x"}}, {{""}, {}}});
  auto found = ask();
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(found->root, "/srv/away");
  const std::vector<ReferralTarget> wanted{
      {"one.example.org", 0, "/export/x"}, {"192.0.2.9", 20050, "/export/x"}, {"", 0, "/"}};
  EXPECT_EQ(found->targets, wanted);
  EXPECT_EQ(found->mounted_on, 99u);
  const std::vector<Op> asked{Op::OP_SEQUENCE, Op::OP_PUTFH, Op::OP_LOOKUP, Op::OP_GETATTR};
  EXPECT_EQ(server_->seen.back(), asked);
}

TEST_F(ReferralTest, AnObjectThatMovedCanBeAskedAbout) {
  ASSERT_TRUE(begin().ok());
  server_->moved = true;
  say({"a"}, {{{"h"}, {"b"}}});
  auto found = finish(nfs_->referral(op_, file_, ""));
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(found->text(), "h:/b");
}

TEST_F(ReferralTest, WhatCannotBeUsedIsLeftOut) {
  ASSERT_TRUE(begin().ok());
  server_->refers = true;
  say({"a"}, {{{"h", "h i", "-x"}, {"ok"}},
              {{"up"}, {"..", "etc"}},
              {{"slash"}, {"a/b"}},
              {{"nul"}, {std::string("a\0b", 3)}},
              {{"long"}, Locations::Path(20, std::string(255, 'x'))},
              {{}, {"nobody"}}});
  auto found = ask();
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(found->text(), "h:/ok");
}

TEST_F(ReferralTest, NothingThatCanBeUsedIsEnoent) {
  ASSERT_TRUE(begin().ok());
  server_->refers = true;
  say({"a"}, {{{"h"}, {".."}}});
  EXPECT_EQ(error_of_ask(), ENOENT);
  say({"a"}, {});
  EXPECT_EQ(error_of_ask(), ENOENT);
}

TEST_F(ReferralTest, ARootThatIsNoPathIsAnErrorOfTheServer) {
  ASSERT_TRUE(begin().ok());
  server_->refers = true;
  say({".."}, {{{"h"}, {"x"}}});
  EXPECT_EQ(error_of_ask(), EIO);
}

TEST_F(ReferralTest, NoAttributesAreAnErrorOfTheServer) {
  ASSERT_TRUE(begin().ok());
  server_->refers = true;
  EXPECT_EQ(error_of_ask(), ENOENT) << "attributes without fs_locations";
  server_->locations = "";
  EXPECT_EQ(error_of_ask(), EIO);
  server_->locations = Locations::encoded({"a"}, {{{"h"}, {"x"}}}).substr(0, 40);
  EXPECT_EQ(error_of_ask(), EIO);
}

TEST_F(ReferralTest, HostsAreCountedOverAllLocations) {
  xdr::FileAttributes4 values;
  const std::string text = Locations::encoded(
      {"a"}, std::vector<Locations::Location>(8, {std::vector<std::string>(100, "h"), {"x"}}));
  const xdr::fattr4 wire{FakeNfs4Server::kAbsent, as_bytes(text)};
  ASSERT_EQ(xdr::decode_attributes(wire, values).outcome, xdr::AttributeDecoding::kOk);
  const auto found = nfs4::referral_of(values);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found.value().targets.size(), kMostReferralTargets);
}

/// Whatever bytes a server sends: an error, or something that keeps all promises of referral.h.
TEST_F(ReferralTest, NoBytesMakeAReferralThatIsNone) {
  const std::string good = Locations::encoded(
      {"srv", "away"},
      {{{"one.example.org", "192.0.2.9.78.82", "2001:db8::1"}, {"export", "x"}}, {{"two"}, {"y"}}});
  std::mt19937 dice(20'260'713);
  unsigned usable = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (unsigned changes = dice() % 4; changes > 0; --changes)
      bytes[dice() % bytes.size()] = static_cast<char>(dice());
    if (dice() % 4 == 0) bytes.resize(dice() % bytes.size());
    xdr::FileAttributes4 values;
    const xdr::fattr4 wire{FakeNfs4Server::kAbsent, as_bytes(bytes)};
    if (xdr::decode_attributes(wire, values).outcome != xdr::AttributeDecoding::kOk) continue;
    const auto found = nfs4::referral_of(values);
    if (!found.ok()) continue;
    ++usable;
    const Referral& referral = found.value();
    ASSERT_FALSE(referral.targets.empty());
    ASSERT_LE(referral.targets.size(), kMostReferralTargets);
    for (const ReferralTarget& target : referral.targets) {
      ASSERT_EQ(target.path.front(), '/');
      ASSERT_EQ((target.path + "/").find("/../"), std::string::npos);
      ASSERT_EQ(target.path.find('\0'), std::string::npos);
      ASSERT_LE(target.path.size(), kLongestReferralPath);
      ASSERT_LE(target.host.size(), kLongestReferralHost);
      ASSERT_EQ(target.host.find_first_of(std::string(" /\n,;[]\0", 8)), std::string::npos);
    }
  }
  EXPECT_GT(usable, 1000u);
}

}  // namespace
}  // namespace nfsrdma
