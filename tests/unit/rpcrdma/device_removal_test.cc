// SPDX-License-Identifier: Apache-2.0
// A device that is taken away under a server: its objects go with the last call on it, and the
// server goes on with the next device.
#include <gtest/gtest.h>

#include "tests/support/sim_pair.h"

namespace nfsrdma::test {
namespace {

TEST(DeviceRemoval, TheServerGoesOnWithTheNextDevice) {
  SimPair pair;
  pair.connect();
  EXPECT_TRUE(pair.call(kToyRead, 9000).good);
  pair.fabric.remove_server_device(*pair.loop);
  pair.run();
  EXPECT_EQ(pair.log.closed, 1);
  pair.client.reset();
  pair.run();
  EXPECT_EQ(pair.fabric.domains(), 0U) << "an idle server keeps nothing of a device that is gone";
  pair.connect();
  EXPECT_TRUE(pair.call(kToyRead, 9000).good);
  EXPECT_TRUE(pair.call(kToyWrite, 9000).good);
}

TEST(DeviceRemoval, AnIdleServerLetsGoOfItToo) {
  SimPair pair;
  pair.connect();
  EXPECT_TRUE(pair.call(kToyNull, 0).good);
  pair.client.reset();
  pair.run();
  ASSERT_EQ(pair.fabric.domains(), 1U);
  pair.fabric.remove_server_device(*pair.loop);
  pair.run();
  EXPECT_EQ(pair.fabric.domains(), 0U);
}

TEST(DeviceRemoval, ACallThatIsStillServedKeepsItsMemory) {
  SimPair pair;
  pair.connect();
  EXPECT_TRUE(pair.call(kToyNull, 0).good);
  pair.handler.hold = true;
  pair.call(kToyWrite, 9000);
  ASSERT_EQ(pair.handler.held.size(), 1U);
  pair.fabric.remove_server_device(*pair.loop);
  pair.run();
  pair.client.reset();
  pair.run();
  EXPECT_EQ(pair.fabric.domains(), 1U);
  pair.handler.hold = false;
  pair.handler.answer_held();
  pair.run();
  EXPECT_EQ(pair.handler.bad_calls, 0U);
  EXPECT_EQ(pair.fabric.domains(), 0U);
}

}  // namespace
}  // namespace nfsrdma::test
