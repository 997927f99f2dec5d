// SPDX-License-Identifier: Apache-2.0
#include "client/mount_url.h"

#include <gtest/gtest.h>

#include <array>

namespace nfsrdma {
namespace {

MountSettings parsed(std::string_view url) {
  MountSettings settings;
  std::string error;
  EXPECT_TRUE(parse_mount_url(url, &settings, &error)) << error;
  return settings;
}

std::string refused(std::string_view url) {
  MountSettings settings;
  std::string error;
  EXPECT_FALSE(parse_mount_url(url, &settings, &error)) << url;
  return error;
}

TEST(MountUrl, HostPathAndDefaults) {
  MountSettings s = parsed("nfs://server/export/dir");
  EXPECT_EQ(s.host, "server");
  EXPECT_EQ(s.path, "/export/dir");
  EXPECT_EQ(s.rdma_port, 20049);
  EXPECT_EQ(s.tcp_port, 2049);
  EXPECT_EQ(s.proto, ProtoChoice::kAuto);
  EXPECT_FALSE(s.soft);
}

TEST(MountUrl, PortIsThatOfRdma) {
  MountSettings s = parsed("nfs://server:1234/x");
  EXPECT_EQ(s.rdma_port, 1234);
  EXPECT_EQ(s.tcp_port, 2049);
}

TEST(MountUrl, PortIsThatOfTcpWhenTcpIsAskedFor) {
  EXPECT_EQ(parsed("nfs://server:1234/x?proto=tcp").tcp_port, 1234);
}

TEST(MountUrl, TcpPortBeatsThePortOfTheHost) {
  EXPECT_EQ(parsed("nfs://server:1234/x?proto=tcp&tcpport=99").tcp_port, 99);
}

TEST(MountUrl, ThePortOptionIsAsThePortOfTheHost) {
  EXPECT_EQ(parsed("nfs://server/x?port=1234").rdma_port, 1234);
  EXPECT_EQ(parsed("nfs://server/x?port=1234").tcp_port, 2049);
  EXPECT_EQ(parsed("nfs://server/x?proto=tcp&port=1234").tcp_port, 1234);
  EXPECT_EQ(parsed("nfs://server/x?port=1234&proto=tcp").tcp_port, 1234);
  EXPECT_EQ(parsed("nfs://server/x?proto=tcp&port=1234&tcpport=99").tcp_port, 99);
}

TEST(MountUrl, TwoPortsThatDifferAreRefused) {
  EXPECT_EQ(parsed("nfs://server:77/x?port=77").rdma_port, 77);
  EXPECT_NE(refused("nfs://server:77/x?port=78").find("another port"), std::string::npos);
}

TEST(MountUrl, WhoIsSomebodyElseHasNoGroupsOfThisProcess) {
  const std::array<std::uint32_t, 2> groups{0, 4};
  MountSettings before;
  before.identity.set_groups(groups);
  std::string error;
  MountSettings other = before, same = before;
  EXPECT_TRUE(parse_mount_url("nfs://h/p?uid=1000&gid=1000", &other, &error)) << error;
  EXPECT_EQ(other.identity.group_count, 0u);
  EXPECT_TRUE(parse_mount_url("nfs://h/p?gid=1000", &same, &error)) << error;
  EXPECT_EQ(same.identity.group_count, 2u);
}

TEST(MountUrl, BracketsAroundIpv6) {
  MountSettings s = parsed("nfs://[2001:db8::1]:77/x");
  EXPECT_EQ(s.host, "2001:db8::1");
  EXPECT_EQ(s.rdma_port, 77);
}

TEST(MountUrl, Ipv6WithoutBracketsIsExplained) {
  EXPECT_NE(refused("nfs://2001:db8::1/x").find("brackets"), std::string::npos);
}

TEST(MountUrl, WithoutAPathItIsTheRoot) {
  EXPECT_EQ(parsed("nfs://server").path, "/");
}

TEST(MountUrl, PercentSignsAreDecoded) {
  EXPECT_EQ(parsed("nfs://server/a%20b%3Fc").path, "/a b?c");
}

TEST(MountUrl, BadPercentSignsAreRefused) {
  EXPECT_NE(refused("nfs://server/a%2").find('%'), std::string::npos);
  EXPECT_NE(refused("nfs://server/a%zz").find('%'), std::string::npos);
  EXPECT_NE(refused("nfs://server/a%00b").find('%'), std::string::npos);
}

TEST(MountUrl, AllOptions) {
  MountSettings s = parsed(
      "nfs://h/"
      "p?proto=rdma&fabric=iwarp&crc=require&vers=3&tcpport=1&mountport=2&uid=3&gid=4&rsize=64k"
      "&wsize=1m&timeo=50&retrans=5&soft&nconnect=4&credits=1024&inline=16k");
  EXPECT_EQ(s.proto, ProtoChoice::kRdma);
  EXPECT_EQ(s.fabric, FabricChoice::kIwarp);
  EXPECT_TRUE(s.require_crc);
  EXPECT_EQ(s.tcp_port, 1);
  EXPECT_EQ(s.mount_port, 2);
  EXPECT_EQ(s.identity.uid, 3u);
  EXPECT_EQ(s.identity.gid, 4u);
  EXPECT_EQ(s.rsize, 65536u);
  EXPECT_EQ(s.wsize, 1u << 20);
  EXPECT_EQ(s.timeo, std::chrono::seconds(5));
  EXPECT_EQ(s.retrans, 5u);
  EXPECT_TRUE(s.soft);
  EXPECT_EQ(s.connections, 4u);
  EXPECT_EQ(s.credits, 1024u);
  EXPECT_EQ(s.inline_bytes, 16384u);
}

TEST(MountUrl, UnknownOptionsNameTheKnownOnes) {
  const std::string error = refused("nfs://h/p?rsiz=1");
  EXPECT_NE(error.find("'rsiz'"), std::string::npos);
  EXPECT_NE(error.find("rsize"), std::string::npos);
}

TEST(MountUrl, VersionsAreThoseOfNfs5) {
  EXPECT_EQ(parsed("nfs://h/p").version, kBestVersion);
  EXPECT_EQ(parsed("nfs://h/p?vers=3").version, (NfsVersion{3, 0, false}));
  EXPECT_EQ(parsed("nfs://h/p?vers=4").version, (NfsVersion{4, 2, true}));
  EXPECT_EQ(parsed("nfs://h/p?vers=4.0").version, (NfsVersion{4, 0, false}));
  EXPECT_EQ(parsed("nfs://h/p?vers=4.1").version, (NfsVersion{4, 1, false}));
  EXPECT_EQ(parsed("nfs://h/p?nfsvers=4.2").version, (NfsVersion{4, 2, false}));
}

TEST(MountUrl, OtherVersionsAreRefused) {
  EXPECT_NE(refused("nfs://h/p?vers=3&minorversion=1").find("unknown option 'minorversion'"),
            std::string::npos);
  EXPECT_NE(refused("nfs://h/p?vers=2").find("use 4.2, 4.1, 4.0 or 3"), std::string::npos);
  EXPECT_NE(refused("nfs://h/p?vers=4.3").find("'4.3' is not an NFS version"), std::string::npos);
}

TEST(MountUrl, NumbersOutOfRangeNameTheRange) {
  EXPECT_NE(refused("nfs://h/p?tcpport=70000").find("1 to 65535"), std::string::npos);
  EXPECT_NE(refused("nfs://h/p?rsize=17m").find("16m"), std::string::npos);
  EXPECT_NE(refused("nfs://h/p?nconnect=0").find("1 to 16"), std::string::npos);
  EXPECT_NE(refused("nfs://h/p?credits=0").find("1 to 1024"), std::string::npos);
  EXPECT_NE(refused("nfs://h/p?credits=1025").find("1 to 1024"), std::string::npos);
  EXPECT_NE(refused("nfs://h/p?inline=65k").find("1k to 64k"), std::string::npos);
  EXPECT_NE(refused("nfs://h/p?inline=512").find("1k to 64k"), std::string::npos);
  EXPECT_NE(refused("nfs://h:0/p").find("1 to 65535"), std::string::npos);
}

TEST(MountUrl, CrcIsOneOfTwo) {
  EXPECT_FALSE(parsed("nfs://h/p?crc=auto").require_crc);
  EXPECT_NE(refused("nfs://h/p?crc=off").find("expected auto or require"), std::string::npos);
}

TEST(MountUrl, FabricWithTcpMakesNoSense) {
  EXPECT_NE(refused("nfs://h/p?proto=tcp&fabric=iwarp").find("no fabric"), std::string::npos);
}

TEST(MountUrl, OtherSchemesAreRefused) {
  EXPECT_NE(refused("http://h/p").find("nfs://"), std::string::npos);
}

TEST(MountUrl, TellsUrlsFromPaths) {
  EXPECT_TRUE(looks_like_url("nfs://h/p"));
  EXPECT_FALSE(looks_like_url("/a/b"));
  EXPECT_FALSE(looks_like_url("dir/nfs://h"));
  EXPECT_FALSE(looks_like_url("a:b"));
}

}  // namespace
}  // namespace nfsrdma
