// SPDX-License-Identifier: Apache-2.0
// nfs-rdma doctor: devices, ports and interfaces, in good state and in each bad one.
#include "client/doctor/host_ways.h"
#include "client/doctor/rdma_sysfs.h"
#include "tests/unit/client/doctor_fixture.h"

namespace nfsrdma::doctor {
namespace {

using Devices = DoctorTest;

DeviceReport verbs_device(const std::string& name) {
  DevicePort port;
  port.number = 1;
  port.active = true;
  port.link_layer = "Ethernet";
  port.mtu = 1024;
  port.max_mtu = 4096;
  port.networks = {"eth0"};
  DeviceReport device;
  device.name = name;
  device.kind = "RoCE in software (rxe)";
  device.ports = {port};
  return device;
}

TEST_F(Devices, NoDeviceIsANoteBecauseTheEngineNeedsNone) {
  const CheckResult result = check_devices(host_);
  EXPECT_EQ(result.verdict(), Verdict::kNote);
  EXPECT_TRUE(says(result, Verdict::kNote, "iwarp engine"));
}

TEST_F(Devices, DeviceThatUserSpaceReachesIsOk) {
  port({});
  link("/sys/class/infiniband/mlx5_0/device/driver", "../../../bus/pci/drivers/mlx5_core");
  const CheckResult result = check_devices(host_);
  EXPECT_EQ(result.verdict(), Verdict::kOk);
  EXPECT_TRUE(says(result, Verdict::kOk, "mlx5_0: mlx5_core, RoCE"));
}

TEST_F(Devices, DeviceThatUserSpaceDoesNotReachIsAProblem) {
  port({});
  rdma_.verbs.problem = "the kernel has RDMA devices, but user space cannot reach them";
  rdma_.verbs.remedies = {"modprobe ib_uverbs"};
  EXPECT_TRUE(
      says(check_devices(host_), Verdict::kProblem, "user space cannot", "modprobe ib_uverbs"));
}

TEST_F(Devices, DeviceThatCannotBeOpenedIsAProblem) {
  port({});
  DeviceReport device = verbs_device("mlx5_0");
  device.problem = "cannot be opened: Permission denied";
  rdma_.verbs.devices = {device};
  EXPECT_TRUE(says(check_devices(host_), Verdict::kProblem, "mlx5_0 cannot be opened", "udevadm"));
}

TEST_F(Devices, DeviceThatRdmaCoreDoesNotKnowIsAProblemBesideOthers) {
  port({});
  port({.device = "mana_0"});
  link("/sys/class/infiniband/mana_0/device/driver", "../../../bus/pci/drivers/mana");
  file("/sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n");
  file("/sys/class/infiniband_verbs/uverbs1/ibdev", "mana_0\n");
  rdma_.verbs.devices = {verbs_device("mlx5_0")};
  const CheckResult result = check_devices(host_);
  EXPECT_TRUE(says(result, Verdict::kProblem,
                   "mana_0: rdma-core on this host has no driver for it (mana in the kernel)",
                   "ibverbs-providers"));
  EXPECT_FALSE(says(result, Verdict::kProblem, "mlx5_0"));
}

TEST_F(Devices, DeviceThatRdmaCoreDoesNotKnowIsNoMatterOfIbUverbs) {
  port({});
  rdma_.verbs.problem = "the kernel has RDMA devices, but user space cannot reach them";
  rdma_.verbs.remedies = {"modprobe ib_uverbs"};
  file("/sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n");
  const CheckResult result = check_devices(host_);
  EXPECT_TRUE(says(result, Verdict::kProblem, "mlx5_0: rdma-core on this host has no driver"));
  EXPECT_FALSE(says(result, Verdict::kProblem, "", "modprobe ib_uverbs"));
}

TEST_F(Devices, NodesThatOrdinaryUsersMayNotOpenAreNamed) {
  port({});
  file("/dev/infiniband/uverbs0", "", 0666);
  file("/dev/infiniband/issm0", "", 0600);
  EXPECT_EQ(check_devices(host_).verdict(), Verdict::kOk);
  file("/dev/infiniband/uverbs1", "", 0600);
  file("/dev/infiniband/rdma_cm", "", 0660);
  EXPECT_TRUE(says(check_devices(host_), Verdict::kProblem,
                   "may not open /dev/infiniband/rdma_cm /dev/infiniband/uverbs1",
                   "chmod 0666 /dev/infiniband/rdma_cm /dev/infiniband/uverbs1"));
  host_.privileged = true;
  EXPECT_EQ(check_devices(host_).verdict(), Verdict::kWarning);
}

TEST_F(Devices, AdapterWithoutItsRdmaDriverIsNamed) {
  file("/sys/bus/pci/devices/0000:01:00.0/class", "0x020000\n");
  link("/sys/bus/pci/devices/0000:01:00.0/driver", "../../../bus/pci/drivers/mlx5_core");
  file("/sys/bus/pci/devices/0000:02:00.0/class", "0x020700\n");
  const CheckResult result = check_devices(host_);
  EXPECT_TRUE(says(result, Verdict::kWarning, "0000:01:00.0 (mlx5_core)", "modprobe mlx5_ib"));
  EXPECT_TRUE(says(result, Verdict::kWarning, "0000:02:00.0 has no driver", "lspci -nnk -s"));
}

TEST_F(Devices, AdapterWithItsRdmaDeviceIsNotNamed) {
  port({});
  file("/sys/bus/pci/devices/0000:01:00.0/class", "0x020000\n");
  link("/sys/bus/pci/devices/0000:01:00.0/driver", "../../../bus/pci/drivers/mlx5_core");
  link("/sys/class/infiniband/mlx5_0/device", "../../../0000:01:00.0");
  EXPECT_EQ(check_devices(host_).verdict(), Verdict::kOk);
}

TEST_F(Devices, FunctionOfACardWhoseOtherFunctionHasTheDeviceIsNotNamed) {
  // RoCE over a bond: one device for both functions. Chelsio: functions 0 to 3 have none.
  port({.device = "mlx5_bond_0"});
  link("/sys/class/infiniband/mlx5_bond_0/device", "../../../0000:01:00.0");
  for (const char* slot : {"0000:01:00.0", "0000:01:00.1", "0000:02:00.0"}) {
    file(std::string("/sys/bus/pci/devices/") + slot + "/class", "0x020000\n");
    link(std::string("/sys/bus/pci/devices/") + slot + "/driver",
         "../../bus/pci/drivers/mlx5_core");
  }
  // Without the driver that is what is missing.
  EXPECT_TRUE(says(check_devices(host_), Verdict::kWarning, "0000:01:00.1"));
  directory("/sys/module/mlx5_ib");
  const CheckResult result = check_devices(host_);
  EXPECT_FALSE(says(result, Verdict::kWarning, "0000:01:00.1"));
  EXPECT_TRUE(says(result, Verdict::kWarning, "0000:02:00.0"));  // another card
}

TEST_F(Devices, SysfsWithHolesAndGarbageIsTakenAsItIs) {
  const std::string at = "/sys/class/infiniband/odd0";
  const std::string binary("\0\xff\x01:\n\0", 6);
  for (const std::string& text : {std::string(), binary, std::string("4"), std::string("4:"),
                                  std::string(5000, 'A'), std::string(": \n")}) {
    for (const char* name :
         {"/node_type", "/node_desc", "/device/numa_node", "/ports/1/state", "/ports/1/phys_state",
          "/ports/1/link_layer", "/ports/1/rate", "/ports/1/gids/0", "/ports/1/gid_attrs/types/0",
          "/ports/1/gid_attrs/ndevs/0", "/ports/x/state"}) {
      file(at + name, text);
    }
    file("/sys/class/net/eth0/address", text);
    file("/sys/class/net/eth0/flags", text);
    file("/sys/class/net/eth0/mtu", text);
    file("/sys/class/net/eth0/type", text);
    file("/sys/devices/system/node/node0/cpulist", text);
    file("/sys/devices/system/node/node1/cpulist", text);
    ASSERT_EQ(sys_devices(host_).size(), 1u);
    const SysDevice device = sys_devices(host_).front();
    ASSERT_EQ(device.ports.size(), 2u);
    EXPECT_FALSE(device.ports[0].active());
    // A port whose state cannot be read is not taken for a good one.
    EXPECT_EQ(check_ports(host_).verdict(), Verdict::kProblem);
    for (const CheckResult& result : run_checks(host_, nullptr, {}, {}))
      EXPECT_FALSE(result.findings.empty()) << result.id;
  }
}

TEST_F(Devices, DeviceWithoutPortsIsNamed) {
  file("/sys/class/infiniband/odd0/node_type", "1: CA\n");
  EXPECT_TRUE(says(check_devices(host_), Verdict::kOk, "odd0: no ports"));
}

TEST_F(Devices, TwoPortsWithOneListOfInterfaces) {
  // Without a GID nothing says which port an interface belongs to: the device's are named.
  port({.gid_types = {}});
  port({.number = "2", .gid_types = {"RoCE v2"}});
  directory("/sys/class/infiniband/mlx5_0/device/net/eth0");
  directory("/sys/class/infiniband/mlx5_0/device/net/eth1");
  const SysDevice device = sys_devices(host_).front();
  ASSERT_EQ(device.ports.size(), 2u);
  EXPECT_EQ(device.ports[0].interfaces, (std::vector<std::string>{"eth0", "eth1"}));
  EXPECT_EQ(device.ports[1].interfaces, std::vector<std::string>{"eth0"});
}

TEST_F(Devices, InterfacesOfTwoPortsAreToldByTheirPort) {
  // As ib_ipoib has them; its partitions are not below the adapter.
  port({.device = "ibp1", .layer = "InfiniBand", .interface = "", .gid_types = {"IB/RoCE v1"}});
  port({.device = "ibp1",
        .number = "2",
        .layer = "InfiniBand",
        .interface = "",
        .gid_types = {"IB/RoCE v1"}});
  for (const char* name : {"ib0", "ib1", "ib1.8001"}) {
    interface(name, true, 2044, "32");
    if (std::string(name) != "ib1.8001") {
      directory(std::string("/sys/class/infiniband/ibp1/device/net/") + name);
    }
  }
  file("/sys/class/net/ib0/dev_port", "0\n");
  file("/sys/class/net/ib1/dev_port", "1\n");
  file("/sys/class/net/ib1.8001/dev_port", "0\n");
  file("/sys/class/net/ib1.8001/parent", "ib1\n");
  const std::vector<SysDevice> devices = sys_devices(host_);
  ASSERT_EQ(devices.front().ports.size(), 2u);
  EXPECT_EQ(devices.front().ports[0].interfaces, std::vector<std::string>{"ib0"});
  EXPECT_EQ(devices.front().ports[1].interfaces, (std::vector<std::string>{"ib1", "ib1.8001"}));
  EXPECT_EQ(device_at(devices, "ib1.8001").name, "ibp1");
}

TEST_F(Devices, InterfacesOfADriverThatDoesNotCountPortsStayTogether) {
  port({.gid_types = {}});
  port({.number = "2", .gid_types = {}});
  for (const char* name : {"eth0", "eth1"}) {
    directory(std::string("/sys/class/infiniband/mlx5_0/device/net/") + name);
    file(std::string("/sys/class/net/") + name + "/dev_port", "0\n");
  }
  const SysDevice device = sys_devices(host_).front();
  for (const SysPort& port : device.ports)
    EXPECT_EQ(port.interfaces, (std::vector<std::string>{"eth0", "eth1"}));
}

TEST_F(Devices, BridgeWithTheMacAddressOfItsPortIsNotSiws) {
  const std::string mac = "02:11:22:33:44:55";
  for (const char* name : {"br0", "eth5", "xveth1"})
    interface(name, true, 1500, "1", mac);
  directory("/sys/class/net/br0/bridge");
  port({.device = "siw0",
        .interface = "",
        .gid_types = {"IB/RoCE v1"},
        .gid = "0211:2233:4455:0000:0000:0000:0000:0000",
        .node_type = "4: RNIC"});
  const auto found = [&] { return sys_devices(host_).front().ports.front().interfaces; };
  EXPECT_EQ(found(), std::vector<std::string>{"eth5"});  // no bridge
  directory("/sys/class/net/xveth1/device");
  EXPECT_EQ(found(), std::vector<std::string>{"xveth1"});  // an adapter
}

TEST_F(Devices, ActivePortsAreOk) {
  port({});
  port({.number = "2"});
  const CheckResult result = check_ports(host_);
  EXPECT_EQ(result.verdict(), Verdict::kOk);
  EXPECT_EQ(result.findings.size(), 2u);
}

TEST_F(Devices, PortThatIsDownIsAProblemWhereNoneIsActive) {
  port({.state = "1: DOWN", .physical = "3: Disabled"});
  EXPECT_TRUE(says(check_ports(host_), Verdict::kProblem, "mlx5_0 port 1: DOWN (Disabled)",
                   "ip link set eth0 up"));
}

TEST_F(Devices, PortThatIsDownIsAWarningBesideAnActiveOne) {
  port({});
  port({.number = "2", .state = "1: DOWN", .physical = "2: Polling"});
  const CheckResult result = check_ports(host_);
  EXPECT_EQ(result.verdict(), Verdict::kWarning);
  EXPECT_TRUE(says(result, Verdict::kWarning, "port 2: DOWN (Polling)", "cable"));
}

TEST_F(Devices, InitWithoutSubnetManagerIsAProblemEvenBesideAnActivePort) {
  port({});
  port({.device = "ib0", .state = "2: INIT", .layer = "InfiniBand", .gid_types = {"IB/RoCE v1"}});
  const CheckResult result = check_ports(host_);
  EXPECT_TRUE(says(result, Verdict::kProblem, "ib0 port 1: INIT",
                   "modprobe ib_umad && systemctl enable --now opensm"));
  EXPECT_TRUE(says(result, Verdict::kProblem, "ib0 port 1: INIT", "sminfo -C ib0 -P 1"));
}

TEST_F(Devices, InfiniBandPortThatIsDownIsNotHelpedByItsInterface) {
  port({.device = "ibp1",
        .state = "1: DOWN",
        .physical = "2: Polling",
        .layer = "InfiniBand",
        .interface = "",
        .gid_types = {"IB/RoCE v1"}});
  directory("/sys/class/infiniband/ibp1/device/net/ib0");
  const CheckResult result = check_ports(host_);
  EXPECT_TRUE(says(result, Verdict::kProblem, "ibp1 port 1: DOWN (Polling)", "the cable"));
  EXPECT_FALSE(says(result, Verdict::kProblem, "DOWN", "ip link set"));
}

TEST_F(Devices, NoPortsAreSkippedWithReason) {
  EXPECT_TRUE(says(check_ports(host_), Verdict::kSkipped, "no RDMA device"));
  EXPECT_TRUE(says(check_link_layer(host_), Verdict::kSkipped, "no RDMA device"));
  EXPECT_TRUE(says(check_gids(host_), Verdict::kSkipped, "no active RoCE port"));
}

TEST_F(Devices, LinkLayersAreTold) {
  port({});
  port({.device = "ibp1", .layer = "InfiniBand", .interface = "ib0", .gid_types = {"IB/RoCE v1"}});
  port(
      {.device = "siw0", .interface = "eth0", .gid_types = {"IB/RoCE v1"}, .node_type = "4: RNIC"});
  interface("eth0");
  interface("ib0");
  const CheckResult result = check_link_layer(host_);
  EXPECT_EQ(result.verdict(), Verdict::kOk);
  EXPECT_TRUE(says(result, Verdict::kOk, "mlx5_0 port 1: RoCE"));
  EXPECT_TRUE(says(result, Verdict::kOk, "ibp1 port 1: InfiniBand, 100 Gb/sec (4X EDR), on ib0"));
  EXPECT_TRUE(says(result, Verdict::kOk, "siw0 port 1: iWARP"));
}

TEST_F(Devices, InfiniBandPortWithoutIpoibIsAProblem) {
  port({.device = "ibp1", .layer = "InfiniBand", .interface = "", .gid_types = {"IB/RoCE v1"}});
  EXPECT_TRUE(says(check_link_layer(host_), Verdict::kProblem, "no IP address leads to it",
                   "modprobe ib_ipoib"));
}

TEST_F(Devices, InterfaceBelowThatIsDownIsAWarning) {
  port({});
  interface("eth0", false);
  EXPECT_TRUE(
      says(check_link_layer(host_), Verdict::kWarning, "which is down", "ip link set eth0 up"));
}

TEST_F(Devices, UnknownLinkLayerIsAWarning) {
  port({.layer = "Unspecified"});
  EXPECT_TRUE(says(check_link_layer(host_), Verdict::kWarning, "link layer 'Unspecified'"));
}

TEST_F(Devices, RoceV2GidsAreOkAndCounted) {
  port({});
  EXPECT_TRUE(says(check_gids(host_), Verdict::kOk, "mlx5_0 port 1: 1 RoCE v1, 1 RoCE v2"));
}

TEST_F(Devices, RoceV1AloneIsAWarning) {
  port({.gid_types = {"IB/RoCE v1"}});
  EXPECT_TRUE(says(check_gids(host_), Verdict::kWarning,
                   "1 RoCE v1: RoCE v1 does not cross routers", "default_roce_mode"));
}

TEST_F(Devices, NoGidIsAProblem) {
  port({.gid_types = {}});
  link("/sys/class/infiniband/mlx5_0/device/net/eth7", "nowhere");
  EXPECT_TRUE(says(check_gids(host_), Verdict::kProblem, "no GIDs", "dev eth7"));
}

TEST_F(Devices, LinkLocalGidsAloneAreAWarning) {
  port({.gid = "fe80:0000:0000:0000:0000:00ff:fe00:0001"});
  EXPECT_TRUE(says(check_gids(host_), Verdict::kWarning, "no IP address", "ip address add"));
}

TEST_F(Devices, DefaultOfVersion1IsAWarning) {
  port({});
  file("/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode", "IB/RoCE v1\n");
  EXPECT_TRUE(says(check_gids(host_), Verdict::kWarning, "with v1", "echo 'RoCE v2' >"));
}

TEST_F(Devices, SoftwareModulesThatAreThereGiveTheCommandWithThisHostsInterface) {
  file("/lib/modules/6.1.0-test/kernel/drivers/infiniband/sw/siw/siw.ko.xz", "");
  file("/lib/modules/6.1.0-test/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko", "");
  file("/proc/net/route", "Iface\tDestination\tGateway\nens5\t00000000\t010200C0\n");
  file("/usr/sbin/rdma", "", 0755);
  const CheckResult result = check_software_devices(host_);
  EXPECT_EQ(result.verdict(), Verdict::kNote);
  EXPECT_TRUE(says(result, Verdict::kNote, "siw (iWARP in software) is there",
                   "modprobe siw && rdma link add siw0 type siw netdev ens5"));
  EXPECT_TRUE(says(result, Verdict::kNote, "rdma_rxe",
                   "modprobe rdma_rxe && rdma link add rxe0 type rxe netdev ens5"));
}

TEST_F(Devices, ModuleThatIsLoadedWithoutALinkIsAWarning) {
  directory("/sys/module/rdma_rxe");
  interface("lo");
  interface("eth3");
  EXPECT_TRUE(says(check_software_devices(host_), Verdict::kWarning, "rdma_rxe is loaded",
                   "rdma link add rxe0 type rxe netdev eth3"));
}

TEST_F(Devices, SoftwareDevicesThatWereMadeAreOk) {
  port({.device = "rxe0"});
  file("/sys/class/infiniband/rxe0/parent", "eth0\n");
  port({.device = "siw0", .node_type = "4: RNIC"});
  file("/sys/class/infiniband/siw0/node_desc", "Software iWARP stack\n");
  file("/usr/sbin/rdma", "", 0755);
  const CheckResult result = check_software_devices(host_);
  EXPECT_EQ(result.verdict(), Verdict::kOk);
  EXPECT_TRUE(says(result, Verdict::kOk, "siw0"));
  EXPECT_TRUE(says(result, Verdict::kOk, "rxe0"));
}

TEST_F(Devices, KernelWithoutSoftwareDriversIsANote) {
  EXPECT_TRUE(says(check_software_devices(host_), Verdict::kSkipped, "as in containers"));
  directory("/lib/modules/6.1.0-test");
  EXPECT_TRUE(says(check_software_devices(host_), Verdict::kNote, "this kernel has no siw"));
}

TEST_F(Devices, ProgramThatMakesSoftwareDevicesIsMissed) {
  directory("/sys/module/siw");
  EXPECT_TRUE(says(check_software_devices(host_), Verdict::kNote, "the program rdma",
                   "apt install iproute2"));
  file("/usr/sbin/rdma", "", 0755);
  EXPECT_FALSE(says(check_software_devices(host_), Verdict::kNote, "the program rdma"));
}

TEST_F(Devices, SoftwareDevicesAreSkippedBesideAdapters) {
  port({});
  link("/sys/class/infiniband/mlx5_0/device/driver", "mlx5_core");
  EXPECT_EQ(check_software_devices(host_).verdict(), Verdict::kSkipped);
}

class Ipoib : public DoctorTest {
 protected:
  void ipoib(const std::string& name, const std::string& mode, unsigned mtu, bool up = true,
             const char* carrier = "1\n") {
    interface(name, up, mtu, "32");
    file("/sys/class/net/" + name + "/mode", mode + "\n");
    file("/sys/class/net/" + name + "/carrier", carrier);
    addresses_.push_back({name, address("192.0.2.1")});
  }
};

TEST_F(Ipoib, InGoodState) {
  ipoib("ib0", "datagram", 2044);
  ipoib("ib1", "connected", 65520);
  const CheckResult result = check_ipoib(host_);
  EXPECT_EQ(result.verdict(), Verdict::kOk);
  EXPECT_TRUE(says(result, Verdict::kOk, "ib0: datagram mode, MTU 2044"));
  EXPECT_TRUE(says(result, Verdict::kOk, "ib1: connected mode, MTU 65520"));
}

TEST_F(Ipoib, ConnectedWithASmallMtuIsAWarning) {
  ipoib("ib0", "connected", 2044);
  EXPECT_TRUE(says(check_ipoib(host_), Verdict::kWarning, "connected mode", "mtu 65520"));
}

TEST_F(Ipoib, DatagramWithATinyMtuIsAWarning) {
  ipoib("ib0", "datagram", 1500);
  EXPECT_TRUE(says(check_ipoib(host_), Verdict::kWarning, "MTU 1500", "mtu 2044"));
}

TEST_F(Ipoib, DownIsAWarning) {
  ipoib("ib0", "datagram", 2044, false, "");
  EXPECT_TRUE(says(check_ipoib(host_), Verdict::kWarning, "down", "ip link set ib0 up"));
}

TEST_F(Ipoib, UpAndNotOnTheFabricIsAWarning) {
  // The port is in INIT: up, as far as the administrator goes, and MTU of the port.
  ipoib("ib0", "datagram", 4092, true, "0\n");
  EXPECT_TRUE(says(check_ipoib(host_), Verdict::kWarning, "up, and not on the fabric",
                   "/sys/class/net/ib0/pkey"));
}

TEST_F(Ipoib, WithoutAnAddressIsAWarning) {
  ipoib("ib0", "datagram", 2044);
  addresses_ = {{"eth0", address("192.0.2.1")}, {"ib0", address("fe80::200:0:2:1")}};
  EXPECT_TRUE(says(check_ipoib(host_), Verdict::kWarning, "without an IP address",
                   "ip address add ADDRESS/PREFIX dev ib0"));
  addresses_.push_back({"ib0.8001", address("192.0.2.2")});
  EXPECT_EQ(check_ipoib(host_).verdict(), Verdict::kOk);
}

TEST_F(Ipoib, PartOfABondNeedsNoAddress) {
  ipoib("ib0", "datagram", 2044);
  addresses_.clear();
  link("/sys/class/net/ib0/master", "../bond0");
  EXPECT_EQ(check_ipoib(host_).verdict(), Verdict::kOk);
}

TEST_F(Ipoib, PartitionIsAWayToThisHostAsTheAdapterThatItIsOn) {
  addresses_ = {{"ib0.8001", address("192.0.2.9")}, {"docker0", address("172.17.0.1")}};
  directory("/sys/class/net/ib0/device");
  file("/sys/class/net/ib0.8001/parent", "ib0\n");
  const HostWays ways = ways_to(host_, {});
  ASSERT_EQ(ways.ways.size(), 1u);
  EXPECT_EQ(ways.ways.front().interface, "ib0.8001");
}

TEST_F(Devices, EthernetIsNoIpoib) {
  interface("eth0");
  EXPECT_EQ(check_ipoib(host_).verdict(), Verdict::kSkipped);
}

TEST_F(Devices, SmallRocePacketsAreANoteWithTheMtuThatHelps) {
  port({});
  interface("eth0");
  rdma_.verbs.devices = {verbs_device("mlx5_0")};
  EXPECT_TRUE(says(check_mtu(host_), Verdict::kNote,
                   "RDMA packets of 1024 bytes (at most 4096); MTU of eth0: 1500",
                   "ip link set eth0 mtu 4200"));
}

TEST_F(Devices, FullRocePacketsAreOk) {
  port({});
  interface("eth0", true, 9000);
  rdma_.verbs.devices = {verbs_device("mlx5_0")};
  rdma_.verbs.devices[0].ports[0].mtu = 4096;
  EXPECT_EQ(check_mtu(host_).verdict(), Verdict::kOk);
}

TEST_F(Devices, MtuWithoutDeviceIsSkipped) {
  EXPECT_EQ(check_mtu(host_).verdict(), Verdict::kSkipped);
}

class Numa : public DoctorTest {
 protected:
  Numa() {
    file("/sys/devices/system/node/node0/cpulist", "0-7\n");
    file("/sys/devices/system/node/node1/cpulist", "8-15\n");
    port({});
    link("/sys/class/infiniband/mlx5_0/device/driver", "mlx5_core");
    file("/sys/class/infiniband/mlx5_0/device/numa_node", "1\n");
    file("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-15\n");
  }
};

TEST_F(Numa, DeviceWithCpusNearIsOk) {
  const CheckResult result = check_numa(host_);
  EXPECT_EQ(result.verdict(), Verdict::kOk);
  EXPECT_TRUE(says(result, Verdict::kOk, "mlx5_0 is on NUMA node 1 (CPUs 8-15)"));
}

TEST_F(Numa, DaemonFarFromTheDeviceIsAWarning) {
  process("12", "nfs-rdmad");
  file("/proc/12/status", "Cpus_allowed_list:\t0-3,5\n");
  EXPECT_TRUE(says(check_numa(host_), Verdict::kWarning,
                   "nfs-rdmad (process 12) may only run on CPUs 0-3,5",
                   "taskset -a -c -p 8-15 12"));
}

TEST_F(Numa, ShellFarFromTheDeviceIsAWarning) {
  file("/proc/self/status", "Cpus_allowed_list:\t0\n");
  EXPECT_TRUE(says(check_numa(host_), Verdict::kWarning, "this shell", "--cpunodebind=1"));
}

TEST_F(Numa, FirmwareThatDoesNotSayIsANote) {
  file("/sys/class/infiniband/mlx5_0/device/numa_node", "-1\n");
  EXPECT_TRUE(says(check_numa(host_), Verdict::kNote, "does not say"));
}

TEST_F(Devices, OneNodeIsSkipped) {
  file("/sys/devices/system/node/node0/cpulist", "0-7\n");
  EXPECT_TRUE(says(check_numa(host_), Verdict::kSkipped, "one NUMA node"));
}

}  // namespace
}  // namespace nfsrdma::doctor
