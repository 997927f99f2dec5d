// SPDX-License-Identifier: Apache-2.0
// nfs-rdma status --devices: what is said of made-up hosts.
#include "client/tool/device_text.h"

#include <gtest/gtest.h>

#include "client/tool/status_verdict.h"
#include "rpcrdma/base/json_value.h"

namespace nfsrdma::tool {
namespace {

RdmaHostReport host_with_device() {
  DevicePort port;
  port.number = 1;
  port.state = "ACTIVE";
  port.active = true;
  port.link_layer = "Ethernet";
  port.mtu = 1024;
  port.max_mtu = 4096;
  port.gid_types = {{"RoCE v1", 1}, {"RoCE v2", 2}};
  port.networks = {"eth0"};
  DeviceReport device;
  device.name = "rxe0";
  device.kind = "RoCE in software (rxe)";
  device.max_sge = 32;
  device.max_sge_read = 32;
  device.max_qp_rd_atom = 128;
  device.max_mr_size = ~std::uint64_t{0};
  device.features = {{"odp", "on-demand paging", Probed::kNo, false, "memory is pinned"},
                     {"srq", "shared receive queue", Probed::kYes, true, ""},
                     {"huge_pages", "huge pages", Probed::kUnknown, false, "none free"}};
  device.ports = {port};
  RdmaHostReport host;
  host.verbs.devices = {device};
  host.verbs.memlock_limit = 8 << 20;
  host.verbs.memlock_remedy = "raise it";
  host.iwarp_inbound_reads = 32;
  return host;
}

RdmaHostReport host_without_device() {
  RdmaHostReport host;
  host.verbs.problem = "no RDMA device on this host";
  host.verbs.remedies = {"load the driver", "or rdma link add"};
  host.verbs.memlock_unlimited = true;
  host.iwarp_inbound_reads = 32;
  return host;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(DeviceText, TableNamesPortsLimitsAndFeatures) {
  const std::string text = devices_text(host_with_device());
  for (const char* part :
       {"rxe0: RoCE in software (rxe)", "port 1: ACTIVE, Ethernet, MTU 1024 of 4096",
        "GIDs: 1 RoCE v1, 2 RoCE v2, on eth0", "128 from a peer", "in a Read 32", "unlimited",
        "on-demand paging        no       no    memory is pinned",
        "shared receive queue    yes      yes", "huge pages              unknown  no    none free",
        "Locked memory: 8.0 MiB", "raise it", "iwarp engine"}) {
    EXPECT_TRUE(contains(text, part)) << part << " in\n" << text;
  }
}

TEST(DeviceText, WithoutDeviceItSaysWhatHelpsAndWhatWorksAnyway) {
  const RdmaHostReport host = host_without_device();
  const std::string text = devices_text(host);
  for (const char* part : {"no RDMA device on this host", "  load the driver\n",
                           "  or rdma link add\n", "Locked memory: unlimited",
                           "iwarp engine: iWARP in this process", "no device, no privilege"}) {
    EXPECT_TRUE(contains(text, part)) << part << " in\n" << text;
  }
  EXPECT_EQ(devices_verdict(host), kNoConnection);
}

TEST(DeviceText, ADeviceThatCannotBeOpenedSaysWhy) {
  RdmaHostReport host = host_with_device();
  host.verbs.devices[0].problem = "cannot be opened: Permission denied; let users";
  EXPECT_TRUE(contains(devices_text(host), "rxe0: cannot be opened: Permission denied; let users"));
  EXPECT_EQ(devices_verdict(host), kNoConnection);
  const auto document = JsonValue::parse(devices_json(host));
  ASSERT_TRUE(document);
  EXPECT_FALSE((*document)["devices"].items().at(0)["usable"].truth());
}

TEST(DeviceText, APortThatIsDownIsNotEnough) {
  RdmaHostReport host = host_with_device();
  EXPECT_EQ(devices_verdict(host), kAllRdma);
  host.verbs.devices[0].ports[0].active = false;
  EXPECT_EQ(devices_verdict(host), kNoConnection);
  EXPECT_TRUE(contains(devices_text(host), "No device has an active port"));
}

TEST(DeviceText, DocumentSaysTheSame) {
  const auto document = JsonValue::parse(devices_json(host_with_device()));
  ASSERT_TRUE(document);
  EXPECT_EQ((*document)["version"].count(), 1U);
  EXPECT_TRUE((*document)["verbs"]["usable"].truth());
  EXPECT_EQ((*document)["verbs"]["memlock_bytes"].count(), 8U << 20);
  const JsonValue& device = (*document)["devices"].items().at(0);
  EXPECT_EQ(device["name"].text(), "rxe0");
  EXPECT_EQ(device["max_qp_rd_atom"].count(), 128U);
  EXPECT_TRUE(device["features"]["srq"]["used"].truth());
  EXPECT_EQ(device["features"]["odp"]["there"].kind(), JsonValue::Kind::kBool);
  EXPECT_FALSE(device["features"]["odp"]["there"].truth());
  EXPECT_EQ(device["features"]["huge_pages"]["there"].kind(), JsonValue::Kind::kNull);
  const JsonValue& port = device["ports"].items().at(0);
  EXPECT_EQ(port["gid_types"]["RoCE v2"].count(), 2U);
  EXPECT_EQ(port["networks"].items().at(0).text(), "eth0");
}

TEST(DeviceText, DocumentWithoutDeviceIsADocument) {
  const auto document = JsonValue::parse(devices_json(host_without_device()));
  ASSERT_TRUE(document);
  EXPECT_TRUE((*document)["devices"].items().empty());
  EXPECT_EQ((*document)["verbs"]["remedies"].items().size(), 2U);
  EXPECT_EQ((*document)["verbs"]["memlock_bytes"].kind(), JsonValue::Kind::kNull);
  EXPECT_TRUE((*document)["iwarp_engine"]["usable"].truth());
}

}  // namespace
}  // namespace nfsrdma::tool
