// SPDX-License-Identifier: Apache-2.0
// Which transports a mount tries, in which order, and what it says about those that it cannot.
#include "client/transport_order.h"

#include <gmock/gmock.h>

namespace nfsrdma {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Works on this host, or does not.
class FakeFabric final : public Fabric {
 public:
  explicit FakeFabric(FabricKind kind) : kind_(kind) {}
  FabricKind kind() const override { return kind_; }
  Result<void> available() const override { return works; }
  Result<std::unique_ptr<Listener>> listen(EventLoop&, const SocketAddress&,
                                           IncomingHandler&) override {
    return Error{Errc::kUnsupported, 0, "not here"};
  }
  Result<std::unique_ptr<Connector>> connect(EventLoop&, const SocketAddress&,
                                             ConnectHandler&) override {
    return Error{Errc::kUnsupported, 0, "not here"};
  }
  void forget(EventLoop&) override {}

  Result<void> works;

 private:
  FabricKind kind_;
};

class TransportOrderTest : public testing::Test {
 protected:
  TransportOrderTest() { settings_.addresses = {address("192.0.2.1")}; }
  static SocketAddress address(const std::string& host) {
    return SocketAddress::parse(host, 7).value();
  }
  TransportOrder order() const { return transport_order(fabrics_, settings_); }
  /// "verbs 192.0.2.1:20049", in order.
  std::vector<std::string> tried() const {
    std::vector<std::string> out;
    for (const TransportCandidate& one : order().candidates)
      out.push_back(std::string(transport_name(one.kind)) + " " + one.address.text());
    return out;
  }

  FakeFabric verbs_{FabricKind::kVerbs}, iwarp_{FabricKind::kIwarp};
  Fabrics fabrics_{&verbs_, &iwarp_, "", ""};
  MountSettings settings_;
};

TEST_F(TransportOrderTest, TheFastestIsFirst) {
  EXPECT_THAT(tried(),
              ElementsAre("verbs 192.0.2.1:20049", "iwarp 192.0.2.1:20049", "tcp 192.0.2.1:2049"));
  EXPECT_EQ(order().left_out, "");
}

TEST_F(TransportOrderTest, EachGoesByItsOwnFabric) {
  const TransportOrder made = order();
  ASSERT_EQ(made.candidates.size(), 3u);
  EXPECT_EQ(made.candidates[0].fabric, &verbs_);
  EXPECT_EQ(made.candidates[1].fabric, &iwarp_);
  EXPECT_EQ(made.candidates[2].fabric, nullptr);
}

TEST_F(TransportOrderTest, PortsAreThoseAskedForAndNotThatOfTheAddress) {
  settings_.rdma_port = 1;
  settings_.tcp_port = 2;
  EXPECT_THAT(tried(), ElementsAre("verbs 192.0.2.1:1", "iwarp 192.0.2.1:1", "tcp 192.0.2.1:2"));
}

/// A slower way to the first address comes after a faster one to the last.
TEST_F(TransportOrderTest, OfOneKindAllAddressesAreTriedAsTheyWereGiven) {
  settings_.addresses = {address("192.0.2.9"), address("2001:db8::1"), address("192.0.2.1")};
  settings_.fabric = FabricChoice::kIwarp;
  EXPECT_THAT(tried(), ElementsAre("iwarp 192.0.2.9:20049", "iwarp [2001:db8::1]:20049",
                                   "iwarp 192.0.2.1:20049", "tcp 192.0.2.9:2049",
                                   "tcp [2001:db8::1]:2049", "tcp 192.0.2.1:2049"));
}

TEST_F(TransportOrderTest, ALinkStaysWithItsAddress) {
  settings_.addresses = {address("fe80::1%lo")};
  settings_.proto = ProtoChoice::kTcp;
  EXPECT_THAT(tried(), ElementsAre("tcp [fe80::1%lo]:2049"));
}

TEST_F(TransportOrderTest, ProtoRdmaNeverFallsBackToTcp) {
  settings_.proto = ProtoChoice::kRdma;
  EXPECT_THAT(tried(), ElementsAre("verbs 192.0.2.1:20049", "iwarp 192.0.2.1:20049"));
}

TEST_F(TransportOrderTest, AFabricThatIsAskedForKeepsTheOtherOut) {
  settings_.fabric = FabricChoice::kVerbs;
  EXPECT_THAT(tried(), ElementsAre("verbs 192.0.2.1:20049", "tcp 192.0.2.1:2049"));
  settings_.fabric = FabricChoice::kIwarp;
  EXPECT_THAT(tried(), ElementsAre("iwarp 192.0.2.1:20049", "tcp 192.0.2.1:2049"));
  EXPECT_EQ(order().left_out, "") << "who did not want it need not read why";
}

TEST_F(TransportOrderTest, WithoutADeviceTheNextIsTriedAndTheReasonIsKept) {
  verbs_.works = Error{Errc::kUnsupported, 0, "no RDMA device"};
  EXPECT_THAT(tried(), ElementsAre("iwarp 192.0.2.1:20049", "tcp 192.0.2.1:2049"));
  EXPECT_EQ(order().left_out, "verbs: " + verbs_.works.error().message());
  EXPECT_THAT(order().left_out, testing::HasSubstr("no RDMA device"));
}

TEST_F(TransportOrderTest, WhatIsNotBuiltInIsSaid) {
  fabrics_ = Fabrics{};
  EXPECT_THAT(tried(), ElementsAre("tcp 192.0.2.1:2049"));
  EXPECT_EQ(order().left_out, "verbs: not built in; iwarp: not built in");
}

TEST_F(TransportOrderTest, EachThatIsMissingHasItsReason) {
  fabrics_.verbs = nullptr;
  fabrics_.no_verbs = "librdmacm is not there";
  iwarp_.works = Error{Errc::kUnsupported, 0, "no sockets"};
  EXPECT_EQ(order().left_out,
            "verbs: librdmacm is not there; iwarp: " + iwarp_.works.error().message());
}

/// A device may be plugged in between two mounts.
TEST_F(TransportOrderTest, AFabricIsAskedAgainEachTime) {
  verbs_.works = Error{Errc::kUnsupported, 0, "no RDMA device"};
  EXPECT_EQ(tried().size(), 2u);
  verbs_.works = {};
  EXPECT_EQ(tried().size(), 3u);
  EXPECT_EQ(order().left_out, "");
}

/// Then the reasons are all that the user gets: they must be there.
TEST_F(TransportOrderTest, NothingMayBeLeft) {
  settings_.proto = ProtoChoice::kRdma;
  settings_.fabric = FabricChoice::kVerbs;
  fabrics_.verbs = nullptr;
  fabrics_.no_verbs = "not built in";
  EXPECT_THAT(tried(), IsEmpty());
  EXPECT_EQ(order().left_out, "verbs: not built in");
}

TEST_F(TransportOrderTest, ProtoTcpAsksNoFabric) {
  settings_.proto = ProtoChoice::kTcp;
  settings_.fabric = FabricChoice::kVerbs;
  fabrics_ = Fabrics{};
  EXPECT_THAT(tried(), ElementsAre("tcp 192.0.2.1:2049"));
  EXPECT_EQ(order().left_out, "");
}

TEST_F(TransportOrderTest, AHostWithoutAddressesHasNoCandidates) {
  settings_.addresses.clear();
  EXPECT_THAT(tried(), IsEmpty());
  EXPECT_EQ(order().left_out, "") << "nothing is wrong with the fabrics";
}

}  // namespace
}  // namespace nfsrdma
