// SPDX-License-Identifier: Apache-2.0
// The mapping of ACLs against the two algorithms that it goes between, for all small ACLs: that of
// RFC 8881 6.2.1 (ACEs in their order, a bit is decided by the first that has it) and that of
// acl(5), "Access check algorithm".
#include "server/nfs4/acl_mapping.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace nfsrdma::nfs4 {
namespace {

using Who = Ace::Who;
using enum xdr::nfsstat4;

constexpr std::uint32_t kRead = xdr::ACE4_READ_DATA;
constexpr std::uint32_t kWrite = xdr::ACE4_WRITE_DATA | xdr::ACE4_APPEND_DATA;
constexpr std::uint32_t kChild = xdr::ACE4_DELETE_CHILD;
constexpr std::uint32_t kExecute = xdr::ACE4_EXECUTE;
constexpr std::uint32_t kAllow = xdr::ACE4_ACCESS_ALLOWED_ACE_TYPE;
constexpr std::uint32_t kDeny = xdr::ACE4_ACCESS_DENIED_ACE_TYPE;
constexpr std::uint32_t kBoth = xdr::ACE4_FILE_INHERIT_ACE | xdr::ACE4_DIRECTORY_INHERIT_ACE;
constexpr std::uint32_t kOnly = xdr::ACE4_INHERIT_ONLY_ACE;
constexpr std::uint32_t kUid = 1000, kGid = 50, kOtherGid = 60;

/// Somebody who asks for access.
struct Person {
  bool owner = false;     // of the object
  bool is_user = false;   // kUid
  bool in_group = false;  // the object's
  bool in_named = false;  // kGid
  bool in_other = false;  // kOtherGid

  bool in(std::uint32_t gid) const { return gid == kGid ? in_named : in_other; }
};

std::vector<Person> everybody() {
  std::vector<Person> out;
  for (unsigned i = 0; i < 32; ++i) {
    out.push_back({(i & 1) != 0, (i & 2) != 0, (i & 4) != 0, (i & 8) != 0, (i & 16) != 0});
  }
  return out;
}

bool fits(const Ace& ace, const Person& person) {
  switch (ace.who) {
    case Who::kOwner:
      return person.owner;
    case Who::kOwningGroup:
      return person.in_group;
    case Who::kEveryone:
      return true;
    case Who::kUser:
      return person.is_user && ace.id == kUid;
    case Who::kGroup:
      return person.in(ace.id);
  }
  return false;
}

/// RFC 8881 6.2.1: are all of these bits allowed?
bool ace_access(const std::vector<Ace>& aces, const Person& person, std::uint32_t bits,
                bool inherited = false) {
  for (const Ace& ace : aces) {
    const bool counts = inherited ? (ace.flags & kBoth) != 0 : (ace.flags & kOnly) == 0;
    if (!counts || !fits(ace, person)) continue;
    if (ace.type == kDeny && (ace.mask & bits) != 0) return false;
    if (ace.type == kAllow) bits &= ~ace.mask;
  }
  return bits == 0;
}

/// acl(5): are all of these rights granted?
bool posix_access(const PosixAcl& acl, const Person& person, unsigned rights) {
  const unsigned mask = acl.mask.value_or(7);
  const auto grants = [&](unsigned entry) { return (entry & rights) == rights; };
  if (person.owner) return grants(acl.owner);
  for (const PosixAcl::Named& user : acl.users) {
    if (person.is_user && user.id == kUid) return grants(user.rights & mask);
  }
  bool found = false;
  if (person.in_group) {
    found = true;
    if (grants(acl.group & mask)) return true;
  }
  for (const PosixAcl::Named& group : acl.groups) {
    if (!person.in(group.id)) continue;
    found = true;
    if (grants(group.rights & mask)) return true;
  }
  return !found && grants(acl.other);
}

std::uint32_t bits_of(unsigned right, bool is_directory) {
  if (right == kAclRead) return kRead;
  if (right == kAclExecute) return kExecute;
  return is_directory ? kWrite | kChild : kWrite;
}

std::string text(const std::vector<Ace>& aces) {
  std::string out;
  for (const Ace& ace : aces) {
    constexpr const char* kNames[] = {"OWNER@", "GROUP@", "EVERYONE@", "user", "group"};
    out += std::string(ace.type == kAllow ? "A" : "D") + ":" + std::to_string(ace.flags) + ":" +
           kNames[static_cast<int>(ace.who)] + std::to_string(ace.id) + ":" +
           std::to_string(ace.mask) + " ";
  }
  return out;
}

/// All lists of up to `length` of them.
void for_all_lists(const std::vector<Ace>& kinds, std::size_t length,
                   const std::function<void(const std::vector<Ace>&)>& check) {
  std::vector<Ace> list;
  const std::function<void()> extend = [&] {
    check(list);
    if (list.size() == length) return;
    for (const Ace& kind : kinds) {
      list.push_back(kind);
      extend();
      list.pop_back();
    }
  };
  extend();
}

std::vector<Ace> kinds(const std::vector<Ace>& names, const std::vector<std::uint32_t>& masks,
                       const std::vector<std::uint32_t>& flags = {0}) {
  std::vector<Ace> out;
  for (const Ace& who : names) {
    for (std::uint32_t mask : masks) {
      for (std::uint32_t flag : flags) {
        out.push_back({kAllow, flag, mask, who.who, who.id});
        out.push_back({kDeny, flag, mask, who.who, who.id});
      }
    }
  }
  return out;
}

Ace of(Who who, std::uint32_t id = 0) {
  return {kAllow, 0, 0, who, id};
}
const std::vector<Ace> kFew = {of(Who::kOwner), of(Who::kOwningGroup), of(Who::kEveryone),
                               of(Who::kUser, kUid), of(Who::kGroup, kGid)};
const std::vector<Ace> kMany = [] {
  std::vector<Ace> out = kFew;
  out.push_back(of(Who::kGroup, kOtherGid));
  return out;
}();

/// Nobody has a right that the ACEs do not give him.
void expect_not_wider(const std::vector<Ace>& aces, bool is_directory,
                      std::initializer_list<unsigned> rights) {
  static const std::vector<Person> kPeople = everybody();
  PosixAcls acls;
  ASSERT_EQ(from_aces(aces, is_directory, &acls), NFS4_OK) << text(aces);
  for (const Person& person : kPeople) {
    for (unsigned right : rights) {
      if (!posix_access(acls.access, person, right)) continue;
      ASSERT_TRUE(ace_access(aces, person, bits_of(right, is_directory)))
          << text(aces) << " right " << right << " owner " << person.owner << " user "
          << person.is_user << " group " << person.in_group << person.in_named << person.in_other;
    }
  }
}

TEST(AclMapping, NoListOfAcesComesOutWider) {
  for_all_lists(kinds(kFew, {kRead}), 5,
                [](const auto& aces) { expect_not_wider(aces, false, {kAclRead}); });
  for_all_lists(kinds(kMany, {kRead}), 4,
                [](const auto& aces) { expect_not_wider(aces, false, {kAclRead}); });
}

TEST(AclMapping, RightsDoNotMix) {
  for_all_lists(kinds(kFew, {kRead, kExecute, kRead | kExecute}), 3, [](const auto& aces) {
    expect_not_wider(aces, false, {kAclRead, kAclExecute});
  });
}

TEST(AclMapping, WritingTakesAllThatBelongsToIt) {
  constexpr std::uint32_t kData = xdr::ACE4_WRITE_DATA, kAppend = xdr::ACE4_APPEND_DATA;
  for_all_lists(kinds(kFew, {kData, kAppend, kWrite}), 3,
                [](const auto& aces) { expect_not_wider(aces, false, {kAclWrite}); });
  for_all_lists(kinds(kFew, {kWrite, kChild, kWrite | kChild}), 3,
                [](const auto& aces) { expect_not_wider(aces, true, {kAclWrite}); });
}

/// What inheritable ACEs do not speak of may come from the directory's own ACL, and from nowhere
/// else.
TEST(AclMapping, NoDefaultAclComesOutWider) {
  const std::vector<Person> people = everybody();
  for_all_lists(kinds(kFew, {kRead}, {0, kBoth, kBoth | kOnly}), 3, [&](const auto& aces) {
    PosixAcls acls;
    ASSERT_EQ(from_aces(aces, true, &acls), NFS4_OK);
    expect_not_wider(aces, true, {kAclRead});
    bool owner = false, group = false, everyone = false, any = false;
    for (const Ace& ace : aces) {
      if ((ace.flags & kBoth) == 0) continue;
      any = true;
      owner |= ace.who == Who::kOwner;
      group |= ace.who == Who::kOwningGroup;
      everyone |= ace.who == Who::kEveryone;
    }
    ASSERT_EQ(acls.initial.has_value(), any) << text(aces);
    if (!any) return;
    for (const Person& person : people) {
      if (!posix_access(*acls.initial, person, kAclRead)) continue;
      const bool asked = ace_access(aces, person, kRead, true);
      // From the directory's own ACL, only where no inheritable ACE denies it.
      std::vector<Ace> both;
      for (const Ace& ace : aces) {
        if ((ace.flags & kBoth) != 0) both.push_back(ace);
      }
      both.push_back({kAllow, kBoth, kRead, Who::kEveryone, 0});
      const bool silent = !everyone &&
                          (person.owner      ? !owner
                           : person.in_group ? !group
                                             : true) &&
                          ace_access(both, person, kRead, true);
      ASSERT_TRUE(asked || (silent && posix_access(acls.access, person, kAclRead))) << text(aces);
    }
  });
}

std::vector<PosixAcl> small_posix_acls() {
  std::vector<PosixAcl> out;
  for (unsigned mode = 0; mode < 0777; ++mode)
    out.push_back(PosixAcl::of_mode(mode));
  constexpr std::uint8_t kSome[] = {0, kAclRead, kAclWrite, kAclRead | kAclWrite};
  for (unsigned i = 0; i < 4096; ++i) {
    const auto digit = [&](unsigned place) { return kSome[i >> (2 * place) & 3]; };
    PosixAcl acl;
    acl.owner = digit(0);
    acl.group = digit(1);
    acl.other = digit(2);
    acl.mask = digit(3);
    out.push_back(acl);  // a mask needs no named entries
    acl.users = {{kUid, digit(4)}};
    acl.groups = {{kGid, digit(5)}};
    out.push_back(acl);
    acl.groups.push_back({kOtherGid, digit(4)});
    out.push_back(acl);
    acl.users.clear();
    out.push_back(acl);
  }
  return out;
}

TEST(AclMapping, AcesSayWhatThePosixAclSays) {
  const std::vector<Person> people = everybody();
  for (const PosixAcl& acl : small_posix_acls()) {
    for (bool is_directory : {false, true}) {
      const std::vector<Ace> aces = to_aces({acl, {}}, is_directory);
      for (const Person& person : people) {
        for (unsigned right : {kAclRead, kAclWrite, kAclExecute}) {
          ASSERT_EQ(posix_access(acl, person, right),
                    ace_access(aces, person, bits_of(right, is_directory)))
              << text(aces);
        }
      }
    }
  }
}

TEST(AclMapping, WhatWasReadCanBeSetAgain) {
  const std::vector<Person> people = everybody();
  for (const PosixAcl& acl : small_posix_acls()) {
    PosixAcls back;
    ASSERT_EQ(from_aces(to_aces({acl, acl}, true), true, &back), NFS4_OK);
    ASSERT_TRUE(back.initial);
    ASSERT_EQ(back.access, *back.initial);
    for (const Person& person : people) {
      for (unsigned rights = 1; rights < 8; ++rights)
        ASSERT_EQ(posix_access(acl, person, rights), posix_access(back.access, person, rights));
    }
  }
}

TEST(AclMapping, AModeIsThreeAces) {
  constexpr std::uint32_t kAnyone = 0x00120080;  // READ_ATTRIBUTES, READ_ACL, SYNCHRONIZE
  constexpr std::uint32_t kOwners = 0x00040100;  // WRITE_ATTRIBUTES, WRITE_ACL
  const std::vector<Ace> wanted = {
      {kAllow, 0, kAnyone | kOwners | kRead | kWrite, Who::kOwner, 0},
      {kAllow, 0, kAnyone | kRead, Who::kOwningGroup, 0},
      {kAllow, 0, kAnyone, Who::kEveryone, 0},
  };
  EXPECT_EQ(to_aces({PosixAcl::of_mode(0640), {}}, false), wanted);
  // DENY only where something behind gives more.
  EXPECT_EQ(text(to_aces({PosixAcl::of_mode(0046), {}}, false)),
            "D:0:OWNER@0:7 A:0:OWNER@0:1442176 A:0:GROUP@0:1179777 D:0:GROUP@0:6 "
            "A:0:EVERYONE@0:1179783 ");
}

TEST(AclMapping, NamedEntriesComeInOrderAndOnce) {
  const std::vector<Ace> aces = {
      {kAllow, 0, kRead, Who::kUser, 30},    {kAllow, 0, kRead, Who::kUser, 10},
      {kAllow, 0, kWrite, Who::kUser, 30},   {kAllow, 0, kRead, Who::kGroup, 7},
      {kAllow, 0, kExecute, Who::kGroup, 5},
  };
  PosixAcls acls;
  ASSERT_EQ(from_aces(aces, false, &acls), NFS4_OK);
  EXPECT_EQ(acls.access.users, (std::vector<PosixAcl::Named>{{10, 4}, {30, 6}}));
  EXPECT_EQ(acls.access.groups, (std::vector<PosixAcl::Named>{{5, 1}, {7, 4}}));
  EXPECT_EQ(acls.access.mask, 7);
  EXPECT_FALSE(acls.initial);
}

TEST(AclMapping, ADefaultAclTakesWhatIsMissingFromTheDirectory) {
  const std::vector<Ace> aces = {
      {kAllow, kBoth | kOnly, kRead, Who::kUser, kUid},
      {kAllow, 0, kRead | kWrite | kChild | kExecute, Who::kOwner, 0},
      {kAllow, 0, kRead | kExecute, Who::kOwningGroup, 0},
  };
  PosixAcls acls;
  ASSERT_EQ(from_aces(aces, true, &acls), NFS4_OK);
  ASSERT_TRUE(acls.initial);
  EXPECT_EQ(acls.initial->owner, 7);
  EXPECT_EQ(acls.initial->group, 5);
  EXPECT_EQ(acls.initial->other, 0);
  EXPECT_EQ(acls.initial->users, (std::vector<PosixAcl::Named>{{kUid, 4}}));
  EXPECT_EQ(acls.initial->mask, 5);
  EXPECT_TRUE(acls.access.users.empty());
}

TEST(AclMapping, WhatPosixDoesNotHaveIsRefused) {
  PosixAcls acls;
  for (std::uint32_t type : {xdr::ACE4_SYSTEM_AUDIT_ACE_TYPE, xdr::ACE4_SYSTEM_ALARM_ACE_TYPE, 9u})
    EXPECT_EQ(from_aces({{{type, 0, kRead, Who::kEveryone, 0}}}, false, &acls),
              NFS4ERR_ATTRNOTSUPP);
  const auto with_flags = [&](std::uint32_t flags, bool is_directory) {
    return from_aces({{{kAllow, flags, kRead, Who::kEveryone, 0}}}, is_directory, &acls);
  };
  EXPECT_EQ(with_flags(kBoth, true), NFS4_OK);
  EXPECT_EQ(with_flags(xdr::ACE4_DIRECTORY_INHERIT_ACE, true), NFS4_OK);
  EXPECT_EQ(with_flags(xdr::ACE4_FILE_INHERIT_ACE, false), NFS4ERR_ATTRNOTSUPP);
  EXPECT_EQ(with_flags(kOnly, true), NFS4ERR_ATTRNOTSUPP);  // and nobody to inherit it
  EXPECT_EQ(with_flags(kBoth | xdr::ACE4_NO_PROPAGATE_INHERIT_ACE, true), NFS4ERR_ATTRNOTSUPP);
  EXPECT_EQ(with_flags(xdr::ACE4_INHERITED_ACE, false), NFS4ERR_ATTRNOTSUPP);
  EXPECT_EQ(with_flags(xdr::ACE4_SUCCESSFUL_ACCESS_ACE_FLAG, false), NFS4ERR_ATTRNOTSUPP);
}

/// RFC 8881 6.4.3.1: it would have to be INHERIT_ONLY on directories that inherit it, and a default
/// ACL is in effect there.
TEST(AclMapping, WhatOnlyFilesAreToInheritIsRefused) {
  PosixAcls acls;
  const auto set = [&](std::uint32_t flags) {
    return from_aces(
        {{{kAllow, flags, kRead, Who::kEveryone, 0}, {kAllow, kBoth, kRead, Who::kOwner, 0}}}, true,
        &acls);
  };
  EXPECT_EQ(set(xdr::ACE4_FILE_INHERIT_ACE), NFS4ERR_ATTRNOTSUPP);
  EXPECT_EQ(set(xdr::ACE4_FILE_INHERIT_ACE | xdr::ACE4_INHERIT_ONLY_ACE), NFS4ERR_ATTRNOTSUPP);
  EXPECT_EQ(set(kBoth | xdr::ACE4_INHERIT_ONLY_ACE), NFS4_OK);
}

TEST(AclMapping, NoAcesGiveNothing) {
  PosixAcls acls;
  ASSERT_EQ(from_aces({}, true, &acls), NFS4_OK);
  EXPECT_EQ(acls.access, PosixAcl::of_mode(0));
  EXPECT_FALSE(acls.initial);
}

TEST(PosixAclBytes, AreThoseOfTheKernel) {
  PosixAcl acl = PosixAcl::of_mode(0751);
  acl.users = {{0x01020304, 6}};
  acl.mask = 7;
  const std::vector<std::byte> bytes = encode_posix_acl(acl);
  ASSERT_EQ(bytes.size(), 4u + 5 * 8);
  constexpr unsigned char kUserEntry[] = {0x02, 0, 6, 0, 4, 3, 2, 1};
  EXPECT_EQ(bytes[0], std::byte{2});
  EXPECT_TRUE(std::equal(std::begin(kUserEntry), std::end(kUserEntry), bytes.begin() + 12,
                         [](unsigned char a, std::byte b) { return std::byte{a} == b; }));
  PosixAcl back;
  EXPECT_TRUE(decode_posix_acl(bytes, &back));
  EXPECT_EQ(back, acl);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_posix_acl(ByteSpan(bytes).first(size), &back)) << size;
}

}  // namespace
}  // namespace nfsrdma::nfs4
