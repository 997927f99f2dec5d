// SPDX-License-Identifier: Apache-2.0
#include "client/mount/options.h"

#include <gtest/gtest.h>

#include "client/mount/settings_of.h"

namespace nfsrdma {
namespace {

std::string effective(std::string_view list) {
  MountOptions options;
  std::string error;
  if (!parse_mount_options(list, false, &options, &error)) return "parse: " + error;
  if (!finish_mount_options(&options, &error)) return "finish: " + error;
  return options.text();
}

constexpr const char* kDefaultTail =
    "hard,timeo=600,retrans=2,nconnect=1,acregmin=3,acregmax=60,acdirmin=30,acdirmax=60,"
    "lookupcache=all,local_lock=none,sec=sys";

struct GoodCase {
  const char* list;
  std::string effective;
};

class GoodOptions : public testing::TestWithParam<GoodCase> {};

TEST_P(GoodOptions, HaveTheEffectiveText) {
  EXPECT_EQ(effective(GetParam().list), GetParam().effective);
}

const std::string kAuto = "proto=auto,fabric=auto,port=20049,tcpport=2049,";
const std::string kTail = kDefaultTail;
/// Up to where locks are local.
const std::string kBeforeLocks = kTail.substr(0, kTail.find("local_lock="));
/// Up to what is said of names, and from there on.
const std::string kBeforeNames = kTail.substr(0, kTail.find("lookupcache="));
const std::string kFromNames = kTail.substr(kBeforeNames.size());
const std::string kLocalLocks = kBeforeLocks + "local_lock=all,sec=sys";

INSTANTIATE_TEST_SUITE_P(
    Table, GoodOptions,
    testing::Values(
        GoodCase{"", "rw," + kAuto + kTail},
        GoodCase{"defaults,_netdev,noauto,user,x-systemd.automount,nofail", "rw," + kAuto + kTail},
        GoodCase{"rdma", "rw,proto=rdma,fabric=auto,port=20049," + kTail},
        GoodCase{"proto=rdma6,port=20050", "rw,proto=rdma6,fabric=auto,port=20050," + kTail},
        GoodCase{"tcp,vers=4",
                 "rw,vers=4,proto=tcp,tcpport=2049," + kBeforeLocks + "local_lock=none,sec=sys"},
        GoodCase{"tcp,v4.1",
                 "rw,vers=4.1,proto=tcp,tcpport=2049," + kBeforeLocks + "local_lock=none,sec=sys"},
        GoodCase{"tcp,vers=4.0",
                 "rw,vers=4.0,proto=tcp,tcpport=2049," + kBeforeLocks + "local_lock=none,sec=sys"},
        GoodCase{"tcp,v4.0",
                 "rw,vers=4.0,proto=tcp,tcpport=2049," + kBeforeLocks + "local_lock=none,sec=sys"},
        GoodCase{"tcp,vers=4,minorversion=0",
                 "rw,vers=4.0,proto=tcp,tcpport=2049," + kBeforeLocks + "local_lock=none,sec=sys"},
        GoodCase{"tcp,vers=4,minorversion=2",
                 "rw,vers=4.2,proto=tcp,tcpport=2049," + kBeforeLocks + "local_lock=none,sec=sys"},
        // In whatever order.
        GoodCase{"minorversion=0,vers=4", "rw,vers=4.0," + kAuto + kTail},
        GoodCase{"vers=4,minorversion=1", "rw,vers=4.1," + kAuto + kTail},
        GoodCase{"minorversion=1,nfsvers=4", "rw,vers=4.1," + kAuto + kTail},
        GoodCase{"minorversion=1,v4", "rw,vers=4.1," + kAuto + kTail},
        GoodCase{"minorversion=2", "rw,vers=4.2," + kAuto + kTail},
        GoodCase{"vers=4.1,minorversion=1", "rw,vers=4.1," + kAuto + kTail},
        GoodCase{"minorversion=0,v4.0", "rw,vers=4.0," + kAuto + kTail},
        GoodCase{"minorversion=1,mountvers=3", "rw,vers=4.1," + kAuto + kTail},
        GoodCase{"vers=3,minorversion=1,vers=4", "rw,vers=4.1," + kAuto + kTail},
        GoodCase{"tcp", "rw,proto=tcp,tcpport=2049," + kTail},
        GoodCase{"proto=tcp6,port=12049", "rw,proto=tcp6,tcpport=12049," + kTail},
        GoodCase{"rdma,crc=require", "rw,proto=rdma,fabric=auto,port=20049,crc=require," + kTail},
        GoodCase{"rdma,crc=auto", "rw,proto=rdma,fabric=auto,port=20049," + kTail},
        GoodCase{"rdma,inline=16384", "rw,proto=rdma,fabric=auto,port=20049,inline=16384," + kTail},
        GoodCase{"rdma,inline=5000", "rw,proto=rdma,fabric=auto,port=20049,inline=4096," + kTail},
        GoodCase{"credits=1024,nconnect=2,actimeo=7",
                 "rw," + kAuto +
                     "hard,timeo=600,retrans=2,nconnect=2,credits=1024,acregmin=7,acregmax=7,"
                     "acdirmin=7,acdirmax=7,lookupcache=all,local_lock=none,sec=sys"},
        GoodCase{"tcpport=12049,fabric=iwarp",
                 "rw,proto=auto,fabric=iwarp,port=20049,tcpport=12049," + kTail},
        GoodCase{"ro,nosuid,dev,noexec,noatime,nodiratime",
                 "ro,nosuid,dev,noexec,noatime,nodiratime," + kAuto + kTail},
        GoodCase{
            "context=system_u:object_r:httpd_sys_content_t:s0,noatime",
            "rw,noatime,context=\"system_u:object_r:httpd_sys_content_t:s0\"," + kAuto + kTail},
        GoodCase{"defcontext=\"a:b:c:s0:c1,c2\",rootcontext=a:b:c,defcontext=\"a:b:d:s0:c1,c3\"",
                 "rw,defcontext=\"a:b:d:s0:c1,c3\",rootcontext=\"a:b:c\"," + kAuto + kTail},
        GoodCase{"fscontext=\"a:b:c\"", "rw,fscontext=\"a:b:c\"," + kAuto + kTail},
        GoodCase{"dev,nodev", "rw," + kAuto + kTail}, GoodCase{"ro,rw", "rw," + kAuto + kTail},
        GoodCase{"nfsvers=3,mountport=2049,mountproto=tcp",
                 "rw,vers=3," + kAuto + "mountport=2049,mountproto=tcp," + kTail},
        // Where MOUNT is says nothing of the version, how to speak to it does.
        GoodCase{"mountport=2049", "rw," + kAuto + "mountport=2049," + kTail},
        GoodCase{"mountproto=rdma", "rw,vers=3," + kAuto + kTail},
        GoodCase{"mountvers=3", "rw,vers=3," + kAuto + kTail},
        GoodCase{"mountvers=3,vers=4.1", "rw,vers=4.1," + kAuto + kTail},
        GoodCase{"v3", "rw,vers=3," + kAuto + kTail},
        GoodCase{"noresvport", "rw," + kAuto + "noresvport," + kTail},
        GoodCase{"noresvport,resvport,nosoftreval,notrunkdiscovery,max_connect=1,nosharecache",
                 "rw," + kAuto + kTail},
        GoodCase{"softreval",
                 "rw," + kAuto +
                     "hard,timeo=600,retrans=2,nconnect=1,acregmin=3,acregmax=60,"
                     "acdirmin=30,acdirmax=60,softreval,lookupcache=all,local_lock=none,"
                     "sec=sys"},
        GoodCase{"softreval,nosoftreval", "rw," + kAuto + kTail},
        GoodCase{"rsize=1048576,wsize=65536", "rw," + kAuto + "rsize=1048576,wsize=65536," + kTail},
        GoodCase{"rsize=5000", "rw," + kAuto + "rsize=4096," + kTail},
        GoodCase{"rsize=1000", "rw," + kAuto + "rsize=4096," + kTail},
        GoodCase{"wsize=99999999", "rw," + kAuto + "wsize=1048576," + kTail},
        GoodCase{"soft,timeo=50,retrans=5,nconnect=4,shards=3,actimeo=7,lookupcache=pos",
                 "rw," + kAuto +
                     "soft,timeo=50,retrans=5,nconnect=4,shards=3,acregmin=7,acregmax=7,"
                     "acdirmin=7,acdirmax=7,lookupcache=positive,local_lock=none,sec=sys"},
        GoodCase{"softerr,noac,nocto,nordirplus,lookupcache=none",
                 "rw,sync," + kAuto +
                     "softerr,timeo=600,retrans=2,nconnect=1,noac,nocto,nordirplus,"
                     "lookupcache=none,local_lock=none,sec=sys"},
        GoodCase{"nordirplus,rdirplus", "rw," + kAuto + kTail},
        GoodCase{"nordirplus,rdirplus=force,xprtsec=none", "rw," + kAuto + kTail},
        GoodCase{"rdirplus=none", "rw," + kAuto + kBeforeNames + "nordirplus," + kFromNames},
        GoodCase{"v3,noacl", "rw,vers=3," + kAuto + kBeforeNames + "noacl," + kFromNames},
        GoodCase{"noacl,v3,acl", "rw,vers=3," + kAuto + kTail},
        GoodCase{"referrals,nomigration", "rw," + kAuto + kTail},
        GoodCase{"acregmin=90", "rw," + kAuto +
                                    "hard,timeo=600,retrans=2,nconnect=1,acregmin=90,acregmax=90,"
                                    "acdirmin=30,acdirmax=60,lookupcache=all,local_lock=none,"
                                    "sec=sys"},
        GoodCase{"tcp,vers=4,nolock", "rw,vers=4,proto=tcp,tcpport=2049," + kLocalLocks},
        GoodCase{"tcp,vers=4,nolock,lock",
                 "rw,vers=4,proto=tcp,tcpport=2049," + kBeforeLocks + "local_lock=none,sec=sys"},
        // nfs(5): lock and nolock override local_lock, wherever they stand.
        GoodCase{"nolock,v3,local_lock=flock", "rw,vers=3," + kAuto + kLocalLocks},
        GoodCase{"v3,lock,local_lock=all", "rw,vers=3," + kAuto + kTail},
        GoodCase{"v3,local_lock=posix",
                 "rw,vers=3," + kAuto + kBeforeLocks + "local_lock=posix,sec=sys"},
        GoodCase{"tcp,local_lock=flock,vers=4",
                 "rw,vers=4,proto=tcp,tcpport=2049," + kBeforeLocks + "local_lock=flock,sec=sys"},
        GoodCase{"tcp,vers=4,local_lock=posix",
                 "rw,vers=4,proto=tcp,tcpport=2049," + kBeforeLocks + "local_lock=posix,sec=sys"},
        GoodCase{"comment=\"a,b\",nolock,sec=sys", "rw," + kAuto + kLocalLocks}));

struct BadCase {
  const char* list;
  const char* message;
};

class BadOptions : public testing::TestWithParam<BadCase> {};

TEST_P(BadOptions, GetOneClearLine) {
  EXPECT_EQ(effective(GetParam().list), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadOptions,
    testing::Values(
        BadCase{"rszie=4096", "parse: unknown mount option 'rszie'; did you mean 'rsize'?"},
        BadCase{"context=\"\"", "parse: mount option 'context=\"\"': that is no label of SELinux"},
        BadCase{"rdirplus=some",
                "parse: mount option 'rdirplus=some': 'some' is not one of none, force"},
        BadCase{
            "xprtsec=tls",
            "parse: mount option 'xprtsec=tls': only none is supported: there is no RPC-with-TLS"},
        BadCase{"frobnicate", "parse: unknown mount option 'frobnicate'"},
        BadCase{"minorversion=3",
                "parse: mount option 'minorversion=3': '3' is not a minor version of NFSv4; use "
                "0, 1 or 2"},
        BadCase{"vers=3,minorversion=1",
                "finish: vers=3 and minorversion=1 exclude each other: NFSv3 has no minor "
                "versions; leave minorversion= out or use vers=4.1"},
        BadCase{"minorversion=0,nfsvers=3",
                "finish: vers=3 and minorversion=0 exclude each other: NFSv3 has no minor "
                "versions; leave minorversion= out or use vers=4.0"},
        BadCase{"vers=4.1,minorversion=2",
                "finish: vers=4.1 and minorversion=2 differ; leave minorversion= out or use "
                "vers=4"},
        BadCase{"minorversion=1,v4.0",
                "finish: vers=4.0 and minorversion=1 differ; leave minorversion= out or use "
                "vers=4"},
        BadCase{"vers=2",
                "parse: mount option 'vers=2': NFSv2 is not supported; use 4.2, 4.1, 4.0 or 3"},
        BadCase{"v2", "parse: mount option 'v2': NFSv2 is not supported; use 4.2, 4.1, 4.0 or 3"},
        BadCase{"vers=x",
                "parse: mount option 'vers=x': 'x' is not an NFS version; use 4.2, 4.1, 4.0 or 3"},
        BadCase{"udp",
                "parse: mount option 'udp': UDP is not supported; use proto=rdma or proto=tcp"},
        BadCase{"proto=sctp",
                "parse: mount option 'proto=sctp': 'sctp' is not one of auto, rdma, rdma6, tcp, "
                "tcp6"},
        BadCase{"crc=yes", "parse: mount option 'crc=yes': 'yes' is not one of auto, require"},
        BadCase{"fabric=ib",
                "parse: mount option 'fabric=ib': 'ib' is not one of auto, verbs, iwarp"},
        BadCase{"port", "parse: mount option 'port' needs a value"},
        BadCase{"port=", "parse: mount option 'port' needs a value"},
        BadCase{"port=65536",
                "parse: mount option 'port=65536': '65536' is not a number from 0 to 65535"},
        BadCase{"port=-1", "parse: mount option 'port=-1': '-1' is not a number from 0 to 65535"},
        BadCase{"hard=1", "parse: mount option 'hard' takes no value"},
        BadCase{"rsize=1M", "parse: mount option 'rsize=1M': '1M' is not a number of bytes"},
        BadCase{"timeo=0", "parse: mount option 'timeo=0': '0' is not a number from 1 to 36000"},
        BadCase{"shards=0", "parse: mount option 'shards=0': '0' is not a number from 1 to 16"},
        BadCase{"shards=17", "parse: mount option 'shards=17': '17' is not a number from 1 to 16"},
        BadCase{"credits=0", "parse: mount option 'credits=0': '0' is not a number from 1 to 1024"},
        BadCase{"credits=1025",
                "parse: mount option 'credits=1025': '1025' is not a number from 1 to 1024"},
        BadCase{"inline=1023",
                "parse: mount option 'inline=1023': '1023' is not a number from 1024 to 65536"},
        BadCase{"inline=4k",
                "parse: mount option 'inline=4k': '4k' is not a number from 1024 to 65536"},
        BadCase{"clientaddr=host.example",
                "parse: mount option 'clientaddr=host.example': 'host.example' is not an IPv4 or "
                "IPv6 address"},
        BadCase{"clientaddr=fe80::1%lo",
                "parse: mount option 'clientaddr=fe80::1%lo': 'fe80::1%lo' means nothing to the "
                "server: it is an address of one link"},
        BadCase{"clientaddr=224.0.0.1",
                "parse: mount option 'clientaddr=224.0.0.1': '224.0.0.1' is an address of many "
                "hosts"},
        BadCase{"clientaddr=ff02::1",
                "parse: mount option 'clientaddr=ff02::1': 'ff02::1' is an address of many hosts"},
        BadCase{"clientaddr=255.255.255.255",
                "parse: mount option 'clientaddr=255.255.255.255': '255.255.255.255' is an address "
                "of many hosts"},
        BadCase{"clientaddr=::ffff:192.0.2.7",
                "parse: mount option 'clientaddr=::ffff:192.0.2.7': '::ffff:192.0.2.7' is an IPv4 "
                "address: write it as one"},
        BadCase{"callbackport=0",
                "parse: mount option 'callbackport=0': '0' is not a number from 1 to 65535"},
        BadCase{"max_connect=17",
                "parse: mount option 'max_connect=17': '17' is not a number from 1 to 16"},
        BadCase{"nconnect=17",
                "parse: mount option 'nconnect=17': '17' is not a number from 1 to 16"},
        BadCase{"sec=krb5p",
                "parse: mount option 'sec=krb5p': 'krb5p' is not supported yet; use sec=sys"},
        BadCase{"lookupcache=some",
                "parse: mount option 'lookupcache=some': 'some' is not one of all, pos, positive, "
                "none"},
        BadCase{"proto=tcp,fabric=iwarp", "finish: fabric=iwarp and proto=tcp exclude each other"},
        BadCase{"proto=tcp,port=1,tcpport=2",
                "finish: port=1 and tcpport=2 differ, and proto=tcp has one port"}));

TEST(MountOptions, SloppyTurnsAnUnknownOptionIntoANotice) {
  MountOptions options;
  std::string error;
  ASSERT_TRUE(parse_mount_options("rszie=1,ro", true, &options, &error)) << error;
  EXPECT_EQ(options.notices,
            std::vector<std::string>{"unknown mount option 'rszie=1' ignored (sloppy)"});
}

TEST(MountOptions, SloppyDoesNotExcuseABadValue) {
  MountOptions options;
  std::string error;
  EXPECT_FALSE(parse_mount_options("sloppy,port=x", false, &options, &error));
  EXPECT_EQ(error, "mount option 'port=x': 'x' is not a number from 0 to 65535");
}

TEST(MountOptions, FscIsAcceptedWithANotice) {
  MountOptions options;
  std::string error;
  ASSERT_TRUE(parse_mount_options("fsc", false, &options, &error)) << error;
  EXPECT_EQ(options.notices, std::vector<std::string>{"fsc: there is no cache on disk; ignored"});
}

TEST(MountOptions, LocksAreTheServersInEveryVersionUnlessSomebodySaysOtherwise) {
  struct Row {
    const char* list;
    bool posix, flock;
  };
  for (const Row& row :
       {Row{"", false, false}, Row{"v3", false, false}, Row{"v3,lock", false, false},
        Row{"v3,nolock", true, true}, Row{"v3,local_lock=all", true, true},
        Row{"v3,local_lock=posix", true, false}, Row{"v3,local_lock=flock", false, true},
        Row{"v3,nolock,local_lock=none", true, true},
        Row{"v3,local_lock=all,lock", false, false}}) {
    MountOptions options;
    std::string error;
    ASSERT_TRUE(parse_mount_options(row.list, false, &options, &error)) << error;
    ASSERT_TRUE(finish_mount_options(&options, &error)) << error;
    EXPECT_EQ(options.local_posix_locks, row.posix) << row.list;
    EXPECT_EQ(options.local_flock, row.flock) << row.list;
    EXPECT_TRUE(options.notices.empty()) << row.list;
  }
}

TEST(MountOptions, WhatHasNoEffectIsAcceptedWithANotice) {
  for (const char* option : {"fsc", "migration"}) {
    MountOptions options;
    std::string error;
    ASSERT_TRUE(parse_mount_options(option, false, &options, &error)) << error;
    ASSERT_EQ(options.notices.size(), 1u) << option;
    EXPECT_NE(options.notices[0].find("; ignored"), std::string::npos);
  }
}

TEST(MountOptions, TrunksAreLookedForWhereThatIsAskedFor) {
  struct Row {
    const char* list;
    bool discover;
    unsigned most;
    const char* notice;  // in it; "": there is none
  };
  for (const Row& row : {
           Row{"trunkdiscovery", true, 0, ""},
           Row{"trunkdiscovery,max_connect=4", true, 4, ""},
           Row{"max_connect=4,trunkdiscovery,vers=4.1", true, 4, ""},
           Row{"trunkdiscovery,vers=4", true, 0, ""},
           Row{"trunkdiscovery,notrunkdiscovery", false, 0, ""},
           Row{"max_connect=4", false, 4, "max_connect: without trunkdiscovery"},
           Row{"trunkdiscovery,vers=3", true, 0, ""},
       }) {
    MountOptions options;
    std::string error;
    ASSERT_TRUE(parse_mount_options(row.list, false, &options, &error)) << error;
    ASSERT_TRUE(finish_mount_options(&options, &error)) << error;
    EXPECT_EQ(options.discover_trunks, row.discover) << row.list;
    EXPECT_EQ(options.max_connect, row.most) << row.list;
    ASSERT_EQ(options.notices.size(), *row.notice != '\0' ? 1u : 0u) << row.list;
    for (const std::string& notice : options.notices)
      EXPECT_NE(notice.find(row.notice), std::string::npos) << notice;
    EXPECT_EQ(options.text().find("trunkdiscovery") != std::string::npos, row.discover);
  }
}

/// As by the kernel's client: else lines of fstab from the days of version 3 exclude nobody.
TEST(MountOptions, LocksAreLocalByVersion3Alone) {
  for (const char* list : {"nolock", "local_lock=all", "local_lock=posix", "local_lock=flock"}) {
    MountOptions options;
    std::string error;
    ASSERT_TRUE(parse_mount_options(list, false, &options, &error)) << error;
    ASSERT_TRUE(finish_mount_options(&options, &error)) << error;
    EXPECT_EQ(options.leave_out_of(3), "");
    EXPECT_TRUE(options.local_posix_locks || options.local_flock) << list;
    EXPECT_NE(options.leave_out_of(4), "") << list;
    EXPECT_FALSE(options.local_posix_locks || options.local_flock) << list;
    EXPECT_NE(options.text().find("local_lock=none"), std::string::npos) << options.text();
    EXPECT_EQ(options.leave_out_of(4), "");
  }
}

TEST(MountOptions, WhereTheServerMayCallIsForVersion40) {
  struct Row {
    const char* list;
    const char* address;  // "": the connection's; null: nowhere
    std::uint16_t port;
  };
  for (const Row& row : {
           Row{"vers=4.0", "", 0},
           Row{"clientaddr=192.0.2.7", "192.0.2.7", 0},
           Row{"clientaddr=2001:db8::7,callbackport=4096", "2001:db8::7", 4096},
           Row{"clientaddr=0.0.0.0", nullptr, 0},
           Row{"clientaddr=::", nullptr, 0},
           Row{"clientaddr=0.0.0.0,clientaddr=192.0.2.7", "192.0.2.7", 0},
       }) {
    MountOptions options;
    std::string error;
    ASSERT_TRUE(parse_mount_options(row.list, false, &options, &error)) << error;
    const std::optional<CalledAt> at = settings_of({"server", "/"}, options).called_at;
    ASSERT_EQ(at.has_value(), row.address != nullptr) << row.list;
    if (!at) continue;
    const bool chosen = at->address.family() != AF_UNSPEC;
    EXPECT_EQ(chosen ? at->address.host_text() : "", row.address) << row.list;
    EXPECT_EQ(at->port, row.port) << row.list;
  }
}

TEST(MountOptions, BackgroundMountsTryForAWeek) {
  MountOptions options;
  std::string error;
  ASSERT_TRUE(parse_mount_options("bg", false, &options, &error)) << error;
  ASSERT_TRUE(finish_mount_options(&options, &error)) << error;
  EXPECT_EQ(options.retry, std::chrono::minutes(10'000));
}

struct SourceCase {
  const char* text;
  const char* host;
  const char* path;
};

class GoodSource : public testing::TestWithParam<SourceCase> {};

TEST_P(GoodSource, IsSplit) {
  MountSource source;
  std::string error;
  ASSERT_TRUE(parse_mount_source(GetParam().text, &source, &error)) << error;
  EXPECT_EQ(source.host, GetParam().host);
  EXPECT_EQ(source.path, GetParam().path);
}

INSTANTIATE_TEST_SUITE_P(Table, GoodSource,
                         testing::Values(SourceCase{"server:/", "server", "/"},
                                         SourceCase{"server:/srv/a:b", "server", "/srv/a:b"},
                                         SourceCase{"192.0.2.1:/srv//", "192.0.2.1", "/srv"},
                                         SourceCase{"[2001:db8::1]:/srv", "2001:db8::1", "/srv"},
                                         SourceCase{"[fe80::1%eth0]:/", "fe80::1%eth0", "/"}));

struct BadSourceCase {
  const char* text;
  const char* message;
};

class BadSource : public testing::TestWithParam<BadSourceCase> {};

TEST_P(BadSource, IsRefused) {
  MountSource source;
  std::string error;
  EXPECT_FALSE(parse_mount_source(GetParam().text, &source, &error));
  EXPECT_EQ(error, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadSource,
    testing::Values(BadSourceCase{"server", "'server' is not of the form SERVER:/PATH"},
                    BadSourceCase{":/srv", "':/srv' is not of the form SERVER:/PATH"},
                    BadSourceCase{"server:srv", "'server:srv' is not of the form SERVER:/PATH"},
                    BadSourceCase{"[::1]/srv", "'[::1]/srv' is not of the form SERVER:/PATH"},
                    BadSourceCase{"[::1", "'[::1' is not of the form SERVER:/PATH"},
                    BadSourceCase{"::1:/srv", "'::1:/srv' is not of the form SERVER:/PATH"},
                    BadSourceCase{"2001:db8::1:/srv",
                                  "'2001:db8::1:/srv' is not of the form SERVER:/PATH; an IPv6 "
                                  "address stands in brackets: [2001:db8::1]:/PATH"}));

}  // namespace
}  // namespace nfsrdma
