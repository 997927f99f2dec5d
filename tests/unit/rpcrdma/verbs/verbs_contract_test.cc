// SPDX-License-Identifier: Apache-2.0
// The contract of the seam on verbs, on the device of NFSRDMA_VERBS_ADDR: with a shared receive
// queue and with receives dealt out to the queue pairs.
#include <chrono>
#include <cstdlib>

#include "rpcrdma/verbs/verbs_fabric.h"
#include "tests/support/fabric_contract.h"

namespace nfsrdma::test {
namespace {

using namespace std::chrono_literals;

class VerbsWorld final : public ContractWorld {
 public:
  VerbsWorld(SocketAddress address, const verbs::VerbsOptions& options)
      : address_(address),
        loop_(std::move(EventLoop::create()).value()),
        fabric_(verbs::make_fabric(options)) {}
  EventLoop& loop() override { return *loop_; }
  Fabric& fabric() override { return *fabric_; }
  SocketAddress listen_address() override { return address_; }
  bool step() override {
    // A while: longer than the time in which a broken connection must drain.
    const auto end = std::chrono::steady_clock::now() + 4s;
    while (std::chrono::steady_clock::now() < end) {
      if (loop_->turn(100ms)) return true;
    }
    return false;
  }

 private:
  SocketAddress address_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Fabric> fabric_;
};

ContractFabric fabric_with(const char* name, bool per_queue_pair_receives) {
  return {name, [per_queue_pair_receives]() -> std::unique_ptr<ContractWorld> {
            const char* address = std::getenv("NFSRDMA_VERBS_ADDR");
            if (address == nullptr) return nullptr;
            auto parsed = SocketAddress::parse(address, 0);
            if (!parsed.ok()) return nullptr;
            verbs::VerbsOptions options;
            options.per_queue_pair_receives = per_queue_pair_receives;
            return std::make_unique<VerbsWorld>(*parsed, options);
          }};
}

INSTANTIATE_TEST_SUITE_P(Verbs, FabricContract,
                         testing::Values(fabric_with("shared", false),
                                         fabric_with("per_queue_pair", true)),
                         contract_name);

}  // namespace
}  // namespace nfsrdma::test
