// SPDX-License-Identifier: Apache-2.0
// Result, IntrusiveList, SocketAddress, bytes, UniqueFd.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <memory>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/intrusive_list.h"
#include "rpcrdma/base/mountinfo.h"
#include "rpcrdma/base/result.h"
#include "rpcrdma/base/socket_address.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {
namespace {

Result<std::unique_ptr<int>> make(int v) {
  if (v < 0) return Error{Errc::kInvalid, 0, "make"};
  return std::make_unique<int>(v);
}
Result<int> twice(int v) {
  NFSRDMA_TRY(std::unique_ptr<int> p, make(v));
  return *p * 2;
}

TEST(Result, CarriesAMoveOnlyValueThroughTry) {
  auto result = twice(21);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, 42);
}
TEST(Result, TryReturnsTheError) {
  auto result = twice(-1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Errc::kInvalid);
  EXPECT_EQ(result.error().message(), "make: invalid argument");
}
TEST(Result, AssignmentReplacesErrorByValue) {
  Result<std::unique_ptr<int>> result = make(-1);
  result = make(5);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(**result, 5);
}

struct Item : ListNode<Item> {
  explicit Item(int v) : value(v) {}
  int value;
};

TEST(IntrusiveList, KeepsOrder) {
  Item a(1), b(2), c(3);
  IntrusiveList<Item> list;
  list.push_back(b);
  list.push_back(c);
  list.push_front(a);
  int sum = 0;
  list.for_each([&](Item& item) { sum = sum * 10 + item.value; });
  EXPECT_EQ(sum, 123);
}
TEST(IntrusiveList, DestroyedItemLeavesTheList) {
  IntrusiveList<Item> list;
  {
    Item a(1);
    list.push_back(a);
    EXPECT_FALSE(list.empty());
  }
  EXPECT_TRUE(list.empty());
}
TEST(IntrusiveList, PushingALinkedItemMovesIt) {
  Item a(1), b(2);
  IntrusiveList<Item> one, two;
  one.push_back(a);
  one.push_back(b);
  two.push_back(a);
  EXPECT_EQ(one.front(), &b);
  EXPECT_EQ(two.front(), &a);
}
TEST(IntrusiveList, ForEachMayUnlinkTheItemItIsGiven) {
  Item a(1), b(2), c(3);
  IntrusiveList<Item> list;
  list.push_back(a);
  list.push_back(b);
  list.push_back(c);
  int seen = 0;
  list.for_each([&](Item& item) {
    ++seen;
    item.unlink();
  });
  EXPECT_EQ(seen, 3);
  EXPECT_TRUE(list.empty());
}
TEST(IntrusiveList, SpliceAppendsInOrder) {
  Item a(1), b(2);
  IntrusiveList<Item> one, two;
  one.push_back(a);
  two.push_back(b);
  one.splice_back(two);
  EXPECT_EQ(one.back(), &b);
  EXPECT_TRUE(two.empty());
}

TEST(SocketAddress, ParsesNumericForms) {
  for (const char* text : {"192.0.2.1", "::1", "[::1]"}) {
    EXPECT_TRUE(SocketAddress::parse(text, 1).ok()) << text;
  }
}
TEST(SocketAddress, RefusesNamesWhereOnlyNumbersAreExpected) {
  EXPECT_FALSE(SocketAddress::parse("localhost", 1).ok());
}
/// getaddrinfo() of glibc takes it for loopback: a server told to listen on "*" would not be
/// reached.
TEST(SocketAddress, AStarIsNoAddress) {
  EXPECT_FALSE(SocketAddress::parse("*", 1).ok());
  EXPECT_FALSE(SocketAddress::parse("[*]", 1).ok());
  EXPECT_FALSE(SocketAddress::resolve("*", 1).ok());
}
TEST(SocketAddress, PrintsBracketsAroundV6) {
  EXPECT_EQ(std::move(SocketAddress::parse("::1", 20049)).value().text(), "[::1]:20049");
  EXPECT_EQ(std::move(SocketAddress::parse("192.0.2.1", 20049)).value().text(), "192.0.2.1:20049");
}
TEST(SocketAddress, MappedV4IsTheSameHost) {
  auto mapped = std::move(SocketAddress::parse("::ffff:192.0.2.1", 1)).value();
  auto plain = std::move(SocketAddress::parse("192.0.2.1", 2)).value();
  auto other = std::move(SocketAddress::parse("192.0.2.2", 1)).value();
  EXPECT_TRUE(mapped.same_host(plain));
  EXPECT_FALSE(other.same_host(plain));
}
TEST(SocketAddress, KnowsLoopback) {
  EXPECT_TRUE(std::move(SocketAddress::parse("127.0.0.5", 1)).value().is_loopback());
  EXPECT_TRUE(std::move(SocketAddress::parse("::1", 1)).value().is_loopback());
  EXPECT_TRUE(std::move(SocketAddress::parse("::ffff:127.0.0.1", 1)).value().is_loopback());
  EXPECT_FALSE(std::move(SocketAddress::parse("192.0.2.1", 1)).value().is_loopback());
}

TEST(Bytes, RangeInsideNeverWraps) {
  EXPECT_TRUE(range_inside<std::uint64_t>(10, 0, 10));
  EXPECT_FALSE(range_inside<std::uint64_t>(UINT64_MAX, 2, 10));
  EXPECT_FALSE(range_inside<std::uint64_t>(2, UINT64_MAX, 10));
}
TEST(Bytes, BigEndianRoundTrip) {
  std::byte b[8];
  store_be64(b, 0x0102030405060708);
  EXPECT_EQ(b[0], std::byte{1});
  EXPECT_EQ(load_be64(b), 0x0102030405060708u);
  EXPECT_EQ(load_be32(b), 0x01020304u);
  EXPECT_EQ(load_be16(b), 0x0102u);
}

TEST(Mountinfo, PathsAreUnescaped) {
  EXPECT_EQ(unescape_mountinfo("/srv/a\\040b\\011c\\012d\\134e"), "/srv/a b\tc\nd\\e");
  EXPECT_EQ(unescape_mountinfo("\\377"), "\xff");
  EXPECT_EQ(mount_point_in("22 1 8:1 /sub /srv/a\\040b rw - ext4 /dev/x rw"), "/srv/a b");
  EXPECT_EQ(mount_point_in("22 1 8:1 /sub"), "");
  EXPECT_EQ(mount_point_in(""), "");
}
TEST(Mountinfo, WhatIsNoEscapeStays) {
  for (const char* text : {"", "/srv", "/a\\", "/a\\0", "/a\\04", "/a\\09x", "/a\\400", "/a\\x41"})
    EXPECT_EQ(unescape_mountinfo(text), text);
}

TEST(UniqueFd, ClosesOnDestruction) {
  int raw;
  {
    UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    raw = fd.get();
  }
  EXPECT_EQ(::fcntl(raw, F_GETFD), -1);
}

}  // namespace
}  // namespace nfsrdma
