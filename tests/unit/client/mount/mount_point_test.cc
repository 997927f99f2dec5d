// SPDX-License-Identifier: Apache-2.0
#include "client/mount/mount_point.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

TEST(MountPoint, IsThatOfTheMountThatOneSeesThere) {
  const std::optional<DeviceNumber> device = device_of_mount("/proc");
  ASSERT_TRUE(device.has_value());
  EXPECT_TRUE(is_mounted_at("/proc", *device));
  EXPECT_FALSE(is_mounted_at("/proc", {device->major, device->minor + 1}));
  EXPECT_FALSE(is_mounted_at("/proc/self", *device)) << "no mount point";
}

}  // namespace
}  // namespace nfsrdma
