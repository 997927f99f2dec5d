// SPDX-License-Identifier: Apache-2.0
// The iWARP fabric on loopback: towards itself, towards a stranger (one FPDU per segment), with CRC
// and with small FPDUs. With NFSRDMA_PCAP_DIR set every connection is written there as pcap, seen
// from the client, for tests/interop/pcap_check.sh.
#include <cstdlib>

#include "rpcrdma/iwarp/iwarp_fabric.h"
#include "tests/support/fabric_contract.h"

namespace nfsrdma::test {
namespace {

/// Listens on one fabric and connects from another, so that a tap sees one end only.
class TwoFabrics final : public Fabric {
 public:
  TwoFabrics(const iwarp::IwarpOptions& server, const iwarp::IwarpOptions& client)
      : server_(iwarp::make_fabric(server)), client_(iwarp::make_fabric(client)) {}
  FabricKind kind() const override { return FabricKind::kIwarp; }
  Result<void> available() const override { return {}; }
  Result<std::unique_ptr<Listener>> listen(EventLoop& loop, const SocketAddress& address,
                                           IncomingHandler& handler) override {
    return server_->listen(loop, address, handler);
  }
  Result<std::unique_ptr<Connector>> connect(EventLoop& loop, const SocketAddress& peer,
                                             ConnectHandler& handler) override {
    return client_->connect(loop, peer, handler);
  }
  void forget(EventLoop& loop) override {
    client_->forget(loop);
    server_->forget(loop);
  }

 private:
  std::unique_ptr<Fabric> server_;
  std::unique_ptr<Fabric> client_;
};

std::unique_ptr<Fabric> make_fabrics(const iwarp::IwarpOptions& options) {
  iwarp::IwarpOptions client = options;
  if (const char* folder = std::getenv("NFSRDMA_PCAP_DIR")) {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '.');
    client.pcap_path = std::string(folder) + "/" + name + ".pcap";
  }
  return std::make_unique<TwoFabrics>(options, client);
}

class IwarpWorld final : public ContractWorld {
 public:
  explicit IwarpWorld(const iwarp::IwarpOptions& options, bool v6)
      : loop_(std::move(EventLoop::create()).value()), fabric_(make_fabrics(options)), v6_(v6) {}
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
