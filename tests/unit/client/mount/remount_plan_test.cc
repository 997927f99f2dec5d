// SPDX-License-Identifier: Apache-2.0
// What mount(8) passes on for a remount, and what comes of it.
#include "client/mount/remount_plan.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include "client/mount/options.h"

namespace nfsrdma {
namespace {

using Words = std::vector<std::string>;

/// As the daemon of a mount with these options says them.
std::string running(const std::string& list) {
  MountOptions options;
  std::string error;
  EXPECT_TRUE(parse_mount_options(list, false, &options, &error)) << error;
  EXPECT_TRUE(finish_mount_options(&options, &error)) << error;
  if (options.version.any) options.version = {4, 2, false, false};
  [[maybe_unused]] const std::string left_out = options.leave_out_of(options.version.major);
  return options.text();
}

RemountPlan plan(const std::string& list, const std::string& mounted_with = "") {
  MountOptions options;
  std::string error;
  EXPECT_TRUE(parse_mount_options(list, false, &options, &error)) << error;
  EXPECT_TRUE(options.remount);
  return plan_remount(options.given, running(mounted_with));
}

TEST(RemountPlan, FlagsAreTakenOnInTheirOrder) {
  EXPECT_EQ(plan("remount,ro").flags, MS_REMOUNT | MS_NODEV | MS_RDONLY);
  EXPECT_EQ(plan("ro,noexec,remount,rw,exec").flags, MS_REMOUNT | MS_NODEV);
  EXPECT_EQ(plan("remount,nosuid,nodev,noexec,nodiratime").flags,
            MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NODIRATIME);
}

TEST(RemountPlan, DevicesStayAwayUnlessSomebodyHasAskedForThem) {
  EXPECT_EQ(plan("remount,ro", "dev").flags, MS_REMOUNT | MS_RDONLY);
  EXPECT_EQ(plan("remount,dev").flags, static_cast<unsigned long>(MS_REMOUNT));
  EXPECT_EQ(plan("remount,dev,nodev", "dev").flags, MS_REMOUNT | MS_NODEV);
  EXPECT_EQ(plan_remount(std::vector<std::string>{"ro"}, "not=to,be=read").flags,
            MS_REMOUNT | MS_NODEV | MS_RDONLY);
}

TEST(RemountPlan, AccessTimesExcludeEachOther) {
  EXPECT_EQ(plan("relatime,remount,noatime").flags, MS_REMOUNT | MS_NODEV | MS_NOATIME);
  EXPECT_EQ(plan("noatime,remount,strictatime").flags, MS_REMOUNT | MS_NODEV | MS_STRICTATIME);
}

TEST(RemountPlan, WhatMountRepeatsOfTheMountSaysNothingNew) {
  const RemountPlan of_kernel =
      plan("rw,nosuid,nodev,relatime,user_id=0,group_id=0,allow_other,max_read=1048576,remount,ro");
  EXPECT_TRUE(of_kernel.refused.empty());
  EXPECT_EQ(of_kernel.flags, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_RELATIME);
}

TEST(RemountPlan, WhatMountRepeatsOfFstabSaysNothingNew) {
  for (const char* fstab :
       {"rdma,port=2050,_netdev", "vers=4.1,soft,timeo=50,retrans=3,nconnect=2,bg,retry=5",
        "vers=4,rsize=65536,wsize=65536,noac,nocto", "vers=3,nolock,mountport=2049,mountproto=tcp",
        "proto=tcp,port=2050,lookupcache=none,nordirplus,sync", "vers=4,minorversion=1", "hard",
        "dirsync,noatime", "local_lock=all", "vers=4.1,nolock", "local_lock=posix,vers=3",
        "context=\"a:b:c:s0:c1,c2\"", "rootcontext=a:b:c"}) {
    EXPECT_EQ(plan(std::string(fstab) + ",remount,ro", fstab).refused, Words()) << fstab;
  }
}

TEST(RemountPlan, WhatWouldChangeTheDaemonIsNamed) {
  EXPECT_EQ(plan("rdma,port=2050,remount,ro,rsize=4096,hard", "rdma,port=2050").refused,
            Words{"rsize=4096"});
  EXPECT_EQ(plan("remount,hard", "soft").refused, Words{"hard"});
  EXPECT_EQ(plan("remount,vers=3").refused, Words{"vers=3"});
  EXPECT_EQ(plan("remount,vers=4.1").refused, Words{"vers=4.1"});
  EXPECT_EQ(plan("remount,nolock,local_lock=none,lock", "vers=3").refused, Words{"nolock"});
  EXPECT_EQ(plan("remount,local_lock=all,local_lock=flock", "vers=3,nolock").refused,
            Words{"local_lock=flock"});
  EXPECT_EQ(plan("remount,sync").refused, Words{"sync"});
  EXPECT_EQ(plan("remount,context=a:b:d", "context=a:b:c").refused, Words{"context=a:b:d"});
  EXPECT_EQ(plan("remount,acl,noacl", "vers=3").refused, Words{"noacl"});
  EXPECT_EQ(plan("remount,port=2050,tcpport=2049").refused, Words{"port=2050"});
}

}  // namespace
}  // namespace nfsrdma
