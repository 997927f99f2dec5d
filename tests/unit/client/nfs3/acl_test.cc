// SPDX-License-Identifier: Apache-2.0
// NFSACL of the client: what goes out, and what becomes of answers good and bad.
#include <random>

#include "client/rpc_client.h"
#include "rpcrdma/nfsacl_entries.h"
#include "tests/unit/client/mounted_fixture.h"
#include "xdr/nfsacl3.h"

namespace nfsrdma {
namespace {

using xdr::aclproc3;
using xdr::nfsproc3;
using xdr::nfsstat3;
using Entries = std::vector<xdr::aclent>;

class Nfs3AclTest : public MountedFixture {
 protected:
  void get(bool access, bool initial) {
    got_.reset();
    group_.spawn(keep(mount_->get_posix_acls(op_, file_, access, initial), &got_));
  }
  void set(PosixAclChange change) {
    change_ = std::move(change);
    done_.reset();
    group_.spawn(keep(mount_->set_posix_acl(op_, file_, change_), &done_));
  }
  /// Of the oldest call that is out.
  xdr::rpc_msg header() {
    xdr::Decoder decoder(transport().out().at(0)->head);
    xdr::rpc_msg header;
    EXPECT_TRUE(xdr::decode(decoder, header));
    return header;
  }
  template <typename Args>
  Args next(aclproc3 procedure) {
    EXPECT_EQ(header().cbody.prog, 100227u);
    EXPECT_EQ(header().cbody.vers, 3u);
    return next_call<Args>(static_cast<nfsproc3>(procedure));
  }
  struct Given {
    std::uint32_t mask = 0xf;
    Entries access{};
    Entries initial{};
    int count_off = 0;  // by so much the count is wrong
    std::optional<mode_t> mode{};
  };
  void give(const Given& given) {
    std::vector<std::byte> access(given.access.size() * 12), initial(given.initial.size() * 12);
    xdr::Encoder access_out(access), initial_out(initial);
    xdr::GETACL3res res;
    xdr::secattr& acl = res.resok.acl;
    acl.mask = given.mask;
    acl.aclents = xdr::encode_array<xdr::aclent>(access_out, given.access);
    acl.dfaclents = xdr::encode_array<xdr::aclent>(initial_out, given.initial);
    acl.aclcnt = acl.aclents.count + static_cast<std::uint32_t>(given.count_off);
    acl.dfaclcnt = acl.dfaclents.count;
    res.resok.attr.attributes_follow = given.mode.has_value();
    res.resok.attr.attributes.mode = given.mode.value_or(0);
    answer(res);
  }
  void give_mode(mode_t mode) {
    xdr::GETATTR3res res;
    res.resok.obj_attributes.mode = mode;
    answer(res);
  }
  /// Bytes of arguments and payload that are out.
  std::size_t bytes_out() { return transport().out().at(0)->head.size(); }
  static Entries entries_of(const xdr::EncodedArray<xdr::aclent>& encoded) {
    Entries all;
    for (const xdr::aclent& entry : encoded)
      all.push_back(entry);
    return all;
  }
  static PosixAcl some_acl() {
    PosixAcl acl = PosixAcl::of_mode(0640);
    acl.users = {{1000, 7}, {1001, 4}};
    acl.groups = {{55, 6}};
    acl.mask = 5;
    return acl;
  }
  static Entries some_entries(std::uint32_t flag = 0) {
    return {{1 | flag, 0, 6},  {2 | flag, 1000, 7}, {2 | flag, 1001, 4}, {4 | flag, 0, 4},
            {8 | flag, 55, 6}, {16 | flag, 0, 5},   {32 | flag, 0, 0}};
  }
  /// A mode with the mask that the protocol has beside it.
  static Entries of_mode(mode_t mode) { return to_aclents(PosixAcl::of_mode(mode), {}, 0); }

  const FileHandle file_ = test_handle(1);
  PosixAclChange change_;
  std::optional<Result<FoundPosixAcls>> got_;
  std::optional<Result<Wcc>> done_;
};

TEST_F(Nfs3AclTest, AskedForIsWhatIsWanted) {
  for (const auto& [access, initial, mask] :
       {std::tuple(true, false, 0x3u), std::tuple(false, true, 0xcu),
        std::tuple(true, true, 0xfu)}) {
    get(access, initial);
    const auto args = next<xdr::GETACL3args>(aclproc3::ACLPROC3_GETACL);
    EXPECT_EQ(args.mask, mask);
    EXPECT_EQ(FileHandle(args.fh.data), file_);
    // Room for the longest, which over RDMA takes a Reply chunk.
    EXPECT_GE(transport().out().at(0)->max_reply, (access && initial ? 2u : 1u) * 1024 * 12);
    give({.access = some_entries(), .initial = some_entries(0x1000), .mode = 0750});
    ASSERT_TRUE(got_->ok());
    EXPECT_EQ((*got_)->access, access ? std::optional(some_acl()) : std::nullopt);
    EXPECT_EQ((*got_)->initial, initial ? std::optional(some_acl()) : std::nullopt);
    EXPECT_EQ((*got_)->attributes->mode, 0750u);
  }
}

TEST_F(Nfs3AclTest, TheMaskThatTheProtocolAddsIsLeftOut) {
  get(true, true);
  give({.access = of_mode(0640)});
  ASSERT_TRUE(got_->ok());
  EXPECT_EQ((*got_)->access, PosixAcl::of_mode(0640));
  EXPECT_FALSE((*got_)->initial);
  EXPECT_FALSE((*got_)->attributes);
  // One that says something stays.
  Entries entries = of_mode(0640);
  entries[2].perm = 0;
  get(true, false);
  give({.access = entries});
  ASSERT_TRUE(got_->ok());
  EXPECT_EQ((*got_)->access->mask, 0);
}

TEST_F(Nfs3AclTest, EntriesInAnyOrderAndMasksWithMoreBitsAreUnderstood) {
  Entries entries = some_entries();
  std::ranges::reverse(entries);
  entries[1].perm |= 0x10;  // the mask
  get(true, false);
  give({.access = entries});
  ASSERT_TRUE(got_->ok());
  EXPECT_EQ((*got_)->access, some_acl());
}

TEST_F(Nfs3AclTest, NonsenseIsAnErrorOfTheProtocol) {
  auto with = [](std::size_t at, xdr::aclent entry) {
    Entries entries = some_entries();
    entries.at(at) = entry;
    return entries;
  };
  auto without = [](std::size_t at) {
    Entries entries = some_entries();
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(at));
    return entries;
  };
  const std::vector<Given> bad = {
      {.access = without(0)},
      {.access = without(3)},
      {.access = without(5)},
      {.access = without(6)},
      {.access = with(1, {1, 0, 6})},     // the owner twice
      {.access = with(2, {2, 1000, 1})},  // a user twice
      {.access = with(1, {2, ~0u, 7})},   // nobody
      {.access = with(1, {2, 1000, 8})},  // rights
      {.access = with(0, {1, 0, 0x106})},
      {.access = with(4, {64, 55, 6})},  // no such type
      {.access = with(4, {0, 55, 6})},
      {.access = with(4, {8 | 0x2000, 55, 6})},
      {.access = some_entries(), .initial = without(0)},
      {.access = some_entries(), .count_off = 1},
      {.access = some_entries(), .count_off = -1},
      {.access = {}, .count_off = 1},
      {.mask = 0xc, .access = some_entries()},
      {.mask = 0x1, .access = some_entries()},
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    get(true, true);
    give(bad[i]);
    ASSERT_TRUE(got_) << i;
    ASSERT_FALSE(got_->ok()) << i;
    EXPECT_EQ(got_->error().code, Errc::kProtocol) << i;
    EXPECT_EQ(got_->error().sys, EIO) << i;
  }
  get(true, false);
  give({.access = Entries(1025, {2, 1, 1})});
  EXPECT_EQ(got_->error().sys, EIO) << "more than the protocol allows";
  get(true, false);
  transport().answer([](xdr::Encoder& out) { out.u32(0); });
  EXPECT_EQ(got_->error().sys, EIO) << "cut short";
  EXPECT_TRUE(mount_->has_posix_acls()) << "all that is about this object";
}

TEST_F(Nfs3AclTest, OfAFileTheAccessAclIsSentAlone) {
  set({.acl = some_acl(), .uid = 7, .gid = 8});
  const auto args = next<xdr::SETACL3args>(aclproc3::ACLPROC3_SETACL);
  EXPECT_EQ(args.acl.mask, 0x1u);
  Entries wanted = some_entries();
  wanted[0].id = 7;
  wanted[3].id = 8;
  EXPECT_EQ(entries_of(args.acl.aclents), wanted);
  EXPECT_EQ(args.acl.aclcnt, wanted.size());
  EXPECT_EQ(args.acl.dfaclcnt, 0u);
  xdr::SETACL3res res;
  res.resok.attr.attributes_follow = true;
  res.resok.attr.attributes.mode = 0650;
  answer(res);
  ASSERT_TRUE(done_->ok());
  EXPECT_EQ((*done_)->after->mode, 0650u);
}

TEST_F(Nfs3AclTest, WithoutNamesAMaskGoesAlong) {
  set({.acl = PosixAcl::of_mode(0751)});
  const auto args = next<xdr::SETACL3args>(aclproc3::ACLPROC3_SETACL);
  EXPECT_EQ(entries_of(args.acl.aclents), (Entries{{1, 0, 7}, {4, 0, 5}, {16, 0, 5}, {32, 0, 1}}));
  answer(xdr::SETACL3res{});
  EXPECT_TRUE(done_->ok());
}

TEST_F(Nfs3AclTest, WithoutAnAclAFileHasWhatItsModeSays) {
  set({});
  next_call<xdr::GETATTR3args>(nfsproc3::NFSPROC3_GETATTR);
  give_mode(04670);
  const auto args = next<xdr::SETACL3args>(aclproc3::ACLPROC3_SETACL);
  EXPECT_EQ(entries_of(args.acl.aclents), of_mode(0670));
  answer(xdr::SETACL3res{});
  EXPECT_TRUE(done_->ok());
}

TEST_F(Nfs3AclTest, TheOtherAclOfADirectoryStaysAsItIs) {
  set({.acl = some_acl(), .of_directory = true});
  EXPECT_EQ(next<xdr::GETACL3args>(aclproc3::ACLPROC3_GETACL).mask, 0xcu);
  give({.initial = some_entries(0x1000)});
  {
    const auto args = next<xdr::SETACL3args>(aclproc3::ACLPROC3_SETACL);
    EXPECT_EQ(args.acl.mask, 0x5u);
    EXPECT_EQ(entries_of(args.acl.aclents), some_entries());
    EXPECT_EQ(entries_of(args.acl.dfaclents), some_entries(0x1000));
  }
  answer(xdr::SETACL3res{});
  EXPECT_TRUE(done_->ok());

  set({.initial = true, .acl = PosixAcl::of_mode(0700), .of_directory = true});
  EXPECT_EQ(next<xdr::GETACL3args>(aclproc3::ACLPROC3_GETACL).mask, 0x3u);
  give({.access = some_entries()});
  {
    const auto args = next<xdr::SETACL3args>(aclproc3::ACLPROC3_SETACL);
    EXPECT_EQ(args.acl.mask, 0x5u);
    EXPECT_EQ(entries_of(args.acl.aclents), some_entries());
    EXPECT_EQ(entries_of(args.acl.dfaclents),
              (Entries{{0x1001, 0, 7}, {0x1004, 0, 0}, {0x1010, 0, 0}, {0x1020, 0, 0}}));
  }
  answer(xdr::SETACL3res{});
  EXPECT_TRUE(done_->ok());

  // None: the mask says that it is meant.
  set({.initial = true, .acl = std::nullopt, .of_directory = true});
  give({.access = some_entries()});
  const auto args = next<xdr::SETACL3args>(aclproc3::ACLPROC3_SETACL);
  EXPECT_EQ(args.acl.mask, 0x5u);
  EXPECT_EQ(args.acl.dfaclcnt, 0u);
  EXPECT_TRUE(args.acl.dfaclents.empty());
  EXPECT_EQ(entries_of(args.acl.aclents), some_entries());
  answer(xdr::SETACL3res{});
  EXPECT_TRUE(done_->ok());
}

TEST_F(Nfs3AclTest, AllEntriesOfTheLongestOnesFitAndNoMore) {
  PosixAcl acl = PosixAcl::of_mode(0700);
  acl.mask = 7;
  for (std::uint32_t id = 1; acl.entries() < 1024; ++id)
    acl.users.push_back({id, 5});
  const Entries initial = to_aclents(acl, {}, 0x1000);
  set({.acl = acl, .of_directory = true});
  give({.initial = initial});
  const auto args = next<xdr::SETACL3args>(aclproc3::ACLPROC3_SETACL);
  EXPECT_EQ(args.acl.aclcnt, 1024u);
  EXPECT_EQ(entries_of(args.acl.dfaclents), initial);
  EXPECT_GT(bytes_out(), 2u * 1024 * 12);
  answer(xdr::SETACL3res{});
  EXPECT_TRUE(done_->ok());
  acl.users.push_back({5000, 5});
  set({.acl = acl, .of_directory = true});
  EXPECT_EQ(done_->error().sys, ENOSPC);
  EXPECT_TRUE(transport().out().empty());
}

TEST_F(Nfs3AclTest, AServerWithoutTheProgramIsAskedOnce) {
  for (xdr::accept_stat stat : {xdr::accept_stat::PROG_UNAVAIL, xdr::accept_stat::PROG_MISMATCH}) {
    FakeMount fake = make_fake_mount(*loop_, test_handle(0), kTestTransfer);
    EXPECT_TRUE(fake.mount->has_posix_acls());
    group_.spawn(keep(fake.mount->get_posix_acls(op_, file_, true, false), &got_));
    fake.environment->transport()->accept();
    fake.environment->transport()->answer(
        [stat](xdr::Encoder& out) {
          if (stat != xdr::accept_stat::PROG_MISMATCH) return;
          out.u32(2);
          out.u32(2);
        },
        stat);
    EXPECT_EQ(got_->error().sys, EOPNOTSUPP);
    EXPECT_FALSE(fake.mount->has_posix_acls());
    group_.spawn(keep(fake.mount->get_posix_acls(op_, file_, true, true), &got_));
    EXPECT_EQ(got_->error().sys, EOPNOTSUPP);
    group_.spawn(keep(fake.mount->set_posix_acl(op_, file_, change_), &done_));
    EXPECT_EQ(done_->error().sys, EOPNOTSUPP);
    EXPECT_TRUE(fake.environment->transport()->out().empty());
    fake.mount->abort_all();
  }
}

TEST_F(Nfs3AclTest, ARefusalIsAboutThisObject) {
  get(true, false);
  xdr::GETACL3res no;
  no.status = nfsstat3::NFS3ERR_NOTSUPP;
  answer(no);
  EXPECT_EQ(got_->error().sys, EOPNOTSUPP);
  set({.acl = some_acl()});
  xdr::SETACL3res refused;
  refused.status = nfsstat3::NFS3ERR_PERM;
  answer(refused);
  EXPECT_EQ(done_->error().sys, EPERM);
  set({.acl = some_acl()});
  transport().answer([](xdr::Encoder&) {}, xdr::accept_stat::PROC_UNAVAIL);
  EXPECT_EQ(done_->error().sys, EOPNOTSUPP);
  EXPECT_TRUE(mount_->has_posix_acls());
}

TEST_F(Nfs3AclTest, OutOfReachOfTheOtherAclNothingIsSet) {
  set({.acl = some_acl(), .of_directory = true});
  xdr::GETACL3res gone;
  gone.status = nfsstat3::NFS3ERR_STALE;
  answer(gone);
  EXPECT_EQ(done_->error().sys, ESTALE);
  EXPECT_TRUE(transport().out().empty());
}

TEST(Nfs3AclEntries, WhatIsSentComesBack) {
  std::mt19937 random(2);
  auto rights = [&random] { return static_cast<std::uint8_t>(random() % 8); };
  for (int round = 0; round < 500; ++round) {
    PosixAcl acl = PosixAcl::of_mode(random() % 01000);
    std::uint32_t id = 0;
    for (std::uint32_t n = random() % 5; n > 0; --n)
      acl.users.push_back({id += 1 + random() % 1000, rights()});
    for (std::uint32_t n = random() % 5; n > 0; --n)
      acl.groups.push_back({id += 1 + random() % 1000, rights()});
    const bool named = !acl.users.empty() || !acl.groups.empty();
    if (named || random() % 2 == 0) acl.mask = rights();
    const AclOwners owners{static_cast<std::uint32_t>(random()), 100};
    for (std::uint32_t flag : {0u, xdr::NFS_ACL_DEFAULT}) {
      Entries entries = to_aclents(acl, owners, flag);
      std::ranges::shuffle(entries, random);
      std::vector<std::byte> room(entries.size() * 12);
      xdr::Encoder out(room);
      PosixAcl back;
      ASSERT_EQ(from_aclents(xdr::encode_array<xdr::aclent>(out, entries), &back),
                AclVerdict::kGood);
      PosixAcl wanted = acl;
      // There is no telling them apart.
      if (!named && wanted.mask == wanted.group) wanted.mask.reset();
      EXPECT_EQ(back, wanted);
    }
  }
}

}  // namespace
}  // namespace nfsrdma
