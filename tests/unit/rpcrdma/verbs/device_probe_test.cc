// SPDX-License-Identifier: Apache-2.0
// What is told of devices that no lab has: descriptions are made up.
#include "rpcrdma/verbs/device_probe.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "rpcrdma/verbs/device_vendor.h"

namespace nfsrdma::verbs {
namespace {

const DeviceFeature& feature_of(const DeviceReport& report, const std::string& key) {
  for (const DeviceFeature& feature : report.features) {
    if (feature.key == key) return feature;
  }
  static const DeviceFeature none;
  ADD_FAILURE() << "no feature " << key;
  return none;
}

DeviceTrials everything_works() {
  DeviceTrials trials;
  trials.extended_qp = trials.extended_cq = trials.memory_window = 0;
  trials.shared_receive_queue = trials.srq_limit = 0;
  trials.huge_page_memory = trials.huge_pages = trials.inline_send = trials.relaxed_ordering = 0;
  trials.max_inline = 60;
  return trials;
}

ibv_device_attr_ex adapter() {
  ibv_device_attr_ex attr{};
  std::strncpy(attr.orig_attr.fw_ver, "20.31.1014", sizeof attr.orig_attr.fw_ver - 1);
  attr.orig_attr.max_sge = 30;
  attr.orig_attr.max_sge_rd = 30;
  attr.orig_attr.max_qp_rd_atom = 16;
  attr.orig_attr.max_qp_init_rd_atom = 8;
  attr.orig_attr.max_mr_size = ~std::uint64_t{0};
  attr.orig_attr.device_cap_flags = IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
  attr.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
  attr.odp_caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_READ;
  return attr;
}

TEST(DeviceProbe, WindowsThatPeersLeaveAreNotUsed) {
  ibv_device_attr_ex attr = adapter();
  attr.orig_attr.vendor_id = kRxeVendor;
  const DeviceReport report = describe_device("rxe0", IBV_TRANSPORT_IB, attr, everything_works());
  const DeviceFeature& windows = feature_of(report, "memory_windows_type_2");
  EXPECT_EQ(windows.there, Probed::kYes);
  EXPECT_FALSE(windows.used);
  EXPECT_NE(windows.note.find("lets peers go beyond"), std::string::npos) << windows.note;
}

TEST(DeviceProbe, TellsWhatAnAdapterHas) {
  const DeviceReport report =
      describe_device("mlx5_0", IBV_TRANSPORT_IB, adapter(), everything_works());
  EXPECT_EQ(report.name, "mlx5_0");
  EXPECT_EQ(report.kind, "InfiniBand or RoCE");
  EXPECT_EQ(report.firmware, "20.31.1014");
  EXPECT_EQ(report.max_sge_read, 30U);
  EXPECT_EQ(report.max_qp_rd_atom, 16U);
  EXPECT_EQ(report.max_qp_init_rd_atom, 8U);
  for (const DeviceFeature& feature : report.features)
    EXPECT_EQ(feature.there, Probed::kYes) << feature.key;
  EXPECT_EQ(feature_of(report, "memory_windows_type_2").note.substr(0, 7), "type 2B");
  EXPECT_NE(feature_of(report, "odp").note.find("RC: Send, Read; implicit"), std::string::npos);
  EXPECT_TRUE(feature_of(report, "memory_windows_type_2").used);
  EXPECT_TRUE(feature_of(report, "inline_send").used);
  EXPECT_TRUE(feature_of(report, "srq").used);
  EXPECT_FALSE(feature_of(report, "extended_qp").used);
}

TEST(DeviceProbe, AFeatureThatFailsIsNotThereAndNotUsed) {
  DeviceTrials trials = everything_works();
  trials.extended_qp = EOPNOTSUPP;
  trials.shared_receive_queue = trials.srq_limit = ENOSYS;
  trials.inline_send = EINVAL;
  const DeviceReport report = describe_device("x", IBV_TRANSPORT_IB, adapter(), trials);
  for (const char* key : {"extended_qp", "srq", "srq_limit_event", "inline_send"}) {
    EXPECT_EQ(feature_of(report, key).there, Probed::kNo) << key;
    EXPECT_FALSE(feature_of(report, key).used) << key;
  }
}

TEST(DeviceProbe, AnUnexpectedFailureIsNamed) {
  DeviceTrials trials = everything_works();
  trials.extended_cq = ENOMEM;
  const DeviceReport report = describe_device("x", IBV_TRANSPORT_IB, adapter(), trials);
  EXPECT_EQ(feature_of(report, "extended_cq").there, Probed::kNo);
  EXPECT_NE(feature_of(report, "extended_cq").note.find(std::strerror(ENOMEM)), std::string::npos);
}

TEST(DeviceProbe, AWindowOfTypeOneIsNotOneOfTypeTwo) {
  ibv_device_attr_ex attr = adapter();
  attr.orig_attr.device_cap_flags = IBV_DEVICE_MEM_WINDOW;
  const DeviceReport report = describe_device("x", IBV_TRANSPORT_IB, attr, everything_works());
  EXPECT_EQ(feature_of(report, "memory_windows_type_2").there, Probed::kNo);
}

TEST(DeviceProbe, WithoutHugePagesNobodyKnows) {
  DeviceTrials trials = everything_works();
  trials.huge_page_memory = ENOMEM;
  trials.huge_pages = -1;
  const DeviceReport report = describe_device("x", IBV_TRANSPORT_IB, adapter(), trials);
  EXPECT_EQ(feature_of(report, "huge_pages").there, Probed::kUnknown);
  EXPECT_NE(feature_of(report, "huge_pages").note.find("vm.nr_hugepages"), std::string::npos);
}

TEST(DeviceProbe, AnIwarpReadHasOneSink) {
  ibv_device_attr_ex attr = adapter();
  attr.orig_attr.vendor_id = kSiwVendor;
  const DeviceReport report =
      describe_device("siw0", IBV_TRANSPORT_IWARP, attr, everything_works());
  EXPECT_EQ(report.kind, "iWARP in software (siw)");
  EXPECT_EQ(report.max_sge_read, 1U);
}

ibv_gid_entry gid(unsigned port, ibv_gid_type type) {
  ibv_gid_entry entry{};
  entry.port_num = port;
  entry.gid_type = type;
  return entry;
}

TEST(DeviceProbe, CountsTheGidTypesOfThePortAlone) {
  ibv_port_attr attr{};
  attr.state = IBV_PORT_ACTIVE;
  attr.active_mtu = IBV_MTU_1024;
  attr.max_mtu = IBV_MTU_4096;
  attr.link_layer = IBV_LINK_LAYER_ETHERNET;
  const ibv_gid_entry gids[] = {gid(1, IBV_GID_TYPE_ROCE_V1), gid(1, IBV_GID_TYPE_ROCE_V2),
                                gid(2, IBV_GID_TYPE_ROCE_V2), gid(1, IBV_GID_TYPE_ROCE_V2)};
  const DevicePort port = describe_port(1, IBV_TRANSPORT_IB, attr, gids);
  EXPECT_TRUE(port.active);
  EXPECT_EQ(port.state, "ACTIVE");
  EXPECT_EQ(port.link_layer, "Ethernet");
  EXPECT_EQ(port.mtu, 1024U);
  EXPECT_EQ(port.max_mtu, 4096U);
  ASSERT_EQ(port.gid_types.size(), 2U);
  EXPECT_EQ(port.gid_types[0].name, "RoCE v1");
  EXPECT_EQ(port.gid_types[0].count, 1U);
  EXPECT_EQ(port.gid_types[1].name, "RoCE v2");
  EXPECT_EQ(port.gid_types[1].count, 2U);
}

TEST(DeviceProbe, APortThatIsDownMakesNoDeviceUsable) {
  ibv_port_attr attr{};
  attr.state = IBV_PORT_DOWN;
  attr.active_mtu = static_cast<ibv_mtu>(0);  // siw before its first packet
  const ibv_gid_entry gids[] = {gid(1, IBV_GID_TYPE_IB)};
  DeviceReport report = describe_device("siw0", IBV_TRANSPORT_IWARP, adapter(), {});
  report.ports = {describe_port(1, IBV_TRANSPORT_IWARP, attr, gids)};
  EXPECT_FALSE(report.usable());
  EXPECT_EQ(report.ports[0].mtu, 0U);
  EXPECT_EQ(report.ports[0].gid_types[0].name, "iWARP");
  EXPECT_EQ(report.ports[0].link_layer, "Ethernet");
  report.ports[0].active = true;
  EXPECT_TRUE(report.usable());
  report.problem = "cannot be opened";
  EXPECT_FALSE(report.usable());
}

TEST(DeviceProbe, AHostThatCannotUseVerbsIsToldWhatToDo) {
  const VerbsHostReport host = probe_host();
  EXPECT_EQ(host.problem.empty(), host.remedies.empty());
  EXPECT_FALSE(host.devices.empty() && host.problem.empty());
  for (const DeviceReport& device : host.devices)
    EXPECT_FALSE(device.name.empty());
}

}  // namespace
}  // namespace nfsrdma::verbs
