// SPDX-License-Identifier: Apache-2.0
// How long the fabric keeps what it has for a loop.
#include <gtest/gtest.h>

#include "rpcrdma/iwarp/fabric_impl.h"

namespace nfsrdma::iwarp {
namespace {

struct Marker final : DeviceOwned {
  explicit Marker(bool& gone) : gone_(gone) {}
  ~Marker() override { gone_ = true; }
  bool& gone_;
};

// The next loop may have the address of one that is gone.
TEST(IwarpFabricLoops, KeepsNothingOfALoopThatEnds) {
  IwarpFabric fabric({});
  auto loop = std::move(EventLoop::create()).value();
  bool gone = false;
  fabric.device_for(*loop).adopt(std::make_unique<Marker>(gone));
  loop.reset();
  EXPECT_TRUE(gone);
}

TEST(IwarpFabricLoops, ALoopMayOutliveTheFabric) {
  auto loop = std::move(EventLoop::create()).value();
  bool gone = false;
  {
    IwarpFabric fabric({});
    fabric.device_for(*loop).adopt(std::make_unique<Marker>(gone));
  }
  EXPECT_TRUE(gone);
  loop.reset();
}

}  // namespace
}  // namespace nfsrdma::iwarp
