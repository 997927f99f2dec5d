// SPDX-License-Identifier: Apache-2.0
// The iWARP fabric on loopback: towards itself, towards a stranger (one FPDU per segment), with CRC
// and with small FPDUs.
#include "rpcrdma/iwarp/iwarp_fabric.h"
#include "tests/support/fabric_contract.h"

namespace nfsrdma::test {
namespace {

class IwarpWorld final : public ContractWorld {
 public:
  explicit IwarpWorld(const iwarp::IwarpOptions& options, bool v6)
      : loop_(std::move(EventLoop::create()).value()),
        fabric_(iwarp::make_fabric(options)),
        v6_(v6) {}
  EventLoop& loop() override { return *loop_; }
  Fabric& fabric() override { return *fabric_; }
  SocketAddress listen_address() override {
    return SocketAddress::parse(v6_ ? "::1" : "127.0.0.1", 0).value();
  }
  bool step() override { return loop_->turn(std::chrono::seconds(3)); }

 private:
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Fabric> fabric_;
  bool v6_;
};

ContractFabric variant(const std::string& name, const iwarp::IwarpOptions& options,
                       bool v6 = false) {
  return {name, [=]() -> std::unique_ptr<ContractWorld> {
            return std::make_unique<IwarpWorld>(options, v6);
          }};
}

iwarp::IwarpOptions options_with(bool crc, bool stranger, std::uint32_t max_fpdu) {
  iwarp::IwarpOptions options;
  options.require_crc = crc;
  options.hide_own_peer = stranger;
  options.max_fpdu = max_fpdu;
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    Iwarp, FabricContract,
    testing::Values(variant("own", options_with(false, false, 0)),
                    variant("own_v6", options_with(false, false, 0), true),
                    variant("own_crc", options_with(true, false, 0)),
                    variant("own_small_fpdus", options_with(false, false, 256)),
                    variant("stranger", options_with(false, true, 0)),
                    variant("stranger_crc", options_with(true, true, 0)),
                    variant("stranger_small_fpdus", options_with(false, true, 1448))),
    contract_name);

}  // namespace
}  // namespace nfsrdma::test
