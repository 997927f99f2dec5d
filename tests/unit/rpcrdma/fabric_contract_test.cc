// SPDX-License-Identifier: Apache-2.0
// The simulator keeps the contract of the seam like the real fabrics, or tests on it mean nothing.
#include "tests/support/fabric_contract.h"

#include "rpcrdma/sim/sim_fabric.h"

namespace nfsrdma::test {
namespace {

class SimWorld final : public ContractWorld {
 public:
  SimWorld() : loop_(std::move(EventLoop::create()).value()), network_(1), fabric_(network_) {}
  EventLoop& loop() override { return *loop_; }
  Fabric& fabric() override { return fabric_; }
  SocketAddress listen_address() override { return SocketAddress::any_v4(20049); }
  bool step() override { return network_.run(*loop_, 1) > 0; }

 private:
  std::unique_ptr<EventLoop> loop_;
  SimNetwork network_;
  SimFabric fabric_;
};

INSTANTIATE_TEST_SUITE_P(Sim, FabricContract,
                         testing::Values(ContractFabric{
                             "sim", [] { return std::make_unique<SimWorld>(); }}),
                         contract_name);

}  // namespace
}  // namespace nfsrdma::test
