// SPDX-License-Identifier: Apache-2.0
// nfs-rdma doctor: memory, modules, ports, services and configuration of a host.
#include "tests/unit/client/doctor_fixture.h"

namespace nfsrdma::doctor {
namespace {

using Host = DoctorTest;

const char* const kLimits8M =
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max locked memory         8388608              8388608              bytes     \n";

// --- locked memory ---

TEST_F(Host, UnlimitedMemlockIsOk) {
  port({});
  EXPECT_EQ(check_memlock(host_).verdict(), Verdict::kOk);
}

TEST_F(Host, LittleMemlockIsAProblemWithADevice) {
  port({});
  rdma_.verbs.memlock_unlimited = false;
  rdma_.verbs.memlock_limit = 65536;
  EXPECT_TRUE(says(check_memlock(host_), Verdict::kProblem, "this user: 64 KiB",
                   "ulimit -l $(ulimit -H -l) "));
}

TEST_F(Host, LittleMemlockInAContainerHasAnotherRemedy) {
  port({});
  file("/.dockerenv", "");
  rdma_.verbs.memlock_unlimited = false;
  rdma_.verbs.memlock_limit = 65536;
  EXPECT_TRUE(says(check_memlock(host_), Verdict::kProblem, "in a container (Docker): 64 KiB",
                   "--ulimit memlock=-1"));
}

TEST_F(Host, ContainersAreRecognisedAndHaveTheirOwnRemedies) {
  port({});
  rdma_.verbs.memlock_unlimited = false;
  rdma_.verbs.memlock_limit = 65536;
  struct Sign {
    const char* path;
    const char* text;
    const char* name;
    const char* remedy;
  };
  const char* const node = "/etc/systemd/system/containerd.service.d/memlock.conf";
  for (const Sign& sign : {
           Sign{"/run/.containerenv", "", "Podman", "podman run --ulimit memlock=-1:-1"},
           {"/run/systemd/container", "systemd-nspawn\n", "systemd-nspawn", "MACHINE.nspawn"},
           {"/run/host/container-manager", "systemd-nspawn\n", "systemd-nspawn", "MACHINE.nspawn"},
           {"/run/systemd/container", "lxc\n", "lxc", "in the configuration of lxc"},
           {"/run/secrets/kubernetes.io/serviceaccount/token", "", "Kubernetes", "IPC_LOCK"},
           {"/proc/self/environ", "PATH=/bin\nKUBERNETES_SERVICE_HOST=192.0.2.1", "Kubernetes",
            node},
           {"/proc/1/cgroup", "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope\n",
            "Kubernetes", node},
           {"/proc/1/cgroup", "0::/system.slice/containerd.service/x\n", "containerd", node},
           {"/proc/1/cgroup", "0::/machine.slice/crio-1.scope\n", "CRI-O", "crio.service"},
           {"/proc/self/mountinfo",
            "1 2 8:1 /var/lib/kubelet/pods/1/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n",
            "Kubernetes", node},
           {"/proc/self/mountinfo",
            "1 2 0:9 / / rw - overlay overlay rw,lowerdir=/var/lib/containerd/s/1/fs\n",
            "containerd", node},
       }) {
    file(sign.path, sign.text);
    EXPECT_TRUE(says(check_memlock(host_), Verdict::kProblem,
                     std::string("in a container (") + sign.name + "): 64 KiB", sign.remedy))
        << sign.path;
    std::filesystem::remove_all(root_ + sign.path);
    if (std::string(sign.path).starts_with("/run/secrets")) {
      std::filesystem::remove_all(root_ + "/run/secrets");
    }
  }
}

TEST_F(Host, SiwBindsRootByTheLimitBeforeLinux68) {
  Port siw;
  siw.device = "siw0";
  port(siw);
  file("/sys/class/infiniband/siw0/node_desc", "Software iWARP stack\n");
  rdma_.verbs.memlock_unlimited = false;
  rdma_.verbs.memlock_limit = 65536;
  rdma_.verbs.memlock_exempt = true;
  host_.kernel_release = "6.1.0-56-amd64";
  EXPECT_TRUE(says(check_memlock(host_), Verdict::kProblem, "siw counts root's", "ulimit -l"));
  for (const char* release : {"6.8.0", "6.10.2-generic", "7.0", ""}) {
    host_.kernel_release = release;
    EXPECT_TRUE(says(check_memlock(host_), Verdict::kOk, "CAP_IPC_LOCK lifts", "")) << release;
  }
  // Another device is there as well, which does not.
  host_.kernel_release = "6.1.0-56-amd64";
  port({});
  EXPECT_TRUE(says(check_memlock(host_), Verdict::kOk, "CAP_IPC_LOCK lifts", ""));
}

TEST_F(Host, HostOfContainersIsNone) {
  port({});
  rdma_.verbs.memlock_unlimited = false;
  rdma_.verbs.memlock_limit = 65536;
  file("/proc/1/cgroup", "0::/init.scope\n");
  file("/proc/self/mountinfo",
       "1 2 8:1 / / rw - ext4 /dev/sda1 rw\n"
       "3 1 0:9 / /run/containerd/io.containerd.runtime.v2.task/k8s.io/1/rootfs rw - overlay "
       "overlay rw,lowerdir=/var/lib/containerd/s/1/fs\n");
  EXPECT_TRUE(says(check_memlock(host_), Verdict::kProblem, "this user: 64 KiB"));
}

TEST_F(Host, LittleMemlockIsANoteWithoutDeviceAndOkWithTheCapability) {
  rdma_.verbs.memlock_unlimited = false;
  rdma_.verbs.memlock_limit = 65536;
  EXPECT_EQ(check_memlock(host_).verdict(), Verdict::kNote);
  port({});
  rdma_.verbs.memlock_exempt = true;
  EXPECT_TRUE(says(check_memlock(host_), Verdict::kOk, "CAP_IPC_LOCK"));
}

TEST_F(Host, DaemonWithLittleMemlockIsAProblem) {
  port({});
  process("77", "nfs-rdmad");
  file("/proc/77/limits", kLimits8M);
  file("/proc/77/status", "CapEff:\t0000000000000000\n");
  EXPECT_TRUE(says(check_memlock(host_), Verdict::kProblem, "nfs-rdmad (process 77): 8192 KiB",
                   "prlimit --pid 77 --memlock=unlimited"));
}

TEST_F(Host, DaemonWithTheCapabilityOrWithoutLimitIsOk) {
  port({});
  process("77", "nfs-rdmad");
  file("/proc/77/limits", kLimits8M);
  file("/proc/77/status", "CapEff:\t0000000000004000\n");
  process("78", "mount.nfs-rdma");
  file("/proc/78/limits", "Max locked memory   unlimited   unlimited   bytes\n");
  const CheckResult result = check_memlock(host_);
  EXPECT_EQ(result.verdict(), Verdict::kOk);
  EXPECT_TRUE(
      says(result, Verdict::kOk, "nfs-rdmad (process 77): 8192 KiB, which CAP_IPC_LOCK lifts"));
  EXPECT_TRUE(says(result, Verdict::kOk, "mount.nfs-rdma (process 78): unlimited"));
}

TEST_F(Host, LimitOfTheUnitIsLookedAt) {
  port({});
  const std::string ask = "systemctl show nfs-rdma.service -p LoadState -p LimitMEMLOCK";
  command(ask, "LimitMEMLOCK=65536\nLoadState=loaded\n");
  EXPECT_TRUE(says(check_memlock(host_), Verdict::kProblem, "LimitMEMLOCK is 64 KiB",
                   "systemctl daemon-reload"));
  command(ask, "LimitMEMLOCK=infinity\nLoadState=loaded\n");
  EXPECT_TRUE(says(check_memlock(host_), Verdict::kOk, "LimitMEMLOCK is unlimited"));
  command(ask, "LimitMEMLOCK=65536\nLoadState=not-found\n");
  EXPECT_EQ(check_memlock(host_).verdict(), Verdict::kOk);
}

TEST_F(Host, CgroupThatLimitsRdmaIsANote) {
  file("/proc/self/cgroup", "0::/system.slice/x.service\n");
  file("/sys/fs/cgroup/system.slice/x.service/rdma.max",
       "mlx5_0 hca_handle=max hca_object=max\nmlx5_1 hca_handle=2 hca_object=max\n");
  const CheckResult result = check_memlock(host_);
  EXPECT_TRUE(says(result, Verdict::kNote, "mlx5_1 hca_handle=2",
                   "> /sys/fs/cgroup/system.slice/x.service/rdma.max"));
  EXPECT_FALSE(says(result, Verdict::kNote, "mlx5_0"));
}

TEST_F(Host, CgroupAboveThatLimitsRdmaIsANoteToo) {
  file("/proc/self/cgroup", "5:rdma:/pods/one\n0::/a.slice/b.slice/x.service\n");
  file("/sys/fs/cgroup/a.slice/b.slice/x.service/rdma.max",
       "mlx5_0 hca_handle=max hca_object=max\n");
  file("/sys/fs/cgroup/a.slice/rdma.max", "mlx5_0 hca_handle=max hca_object=9\n");
  file("/sys/fs/cgroup/rdma/pods/rdma.max", "mlx5_2 hca_handle=3 hca_object=max\n");
  const CheckResult result = check_memlock(host_);
  EXPECT_TRUE(says(result, Verdict::kNote, "mlx5_0 hca_handle=max hca_object=9",
                   "> /sys/fs/cgroup/a.slice/rdma.max"));
  EXPECT_TRUE(
      says(result, Verdict::kNote, "mlx5_2 hca_handle=3", "> /sys/fs/cgroup/rdma/pods/rdma.max"));
}

// --- modules ---

TEST_F(Host, KernelsOwnModuleIsOk) {
  file("/lib/modules/6.1.0-test/kernel/net/sunrpc/xprtrdma/rpcrdma.ko.xz", "");
  EXPECT_TRUE(says(check_modules(host_), Verdict::kOk, "nfs-rdma itself needs no such module"));
  directory("/sys/module/rpcrdma");
  EXPECT_TRUE(says(check_modules(host_), Verdict::kOk, "rpcrdma is loaded"));
}

TEST_F(Host, KernelWithoutModuleIsANoteSinceWeNeedNone) {
  EXPECT_TRUE(says(check_modules(host_), Verdict::kSkipped, "no /lib/modules/6.1.0-test"));
  directory("/lib/modules/6.1.0-test");
  const CheckResult result = check_modules(host_);
  EXPECT_EQ(result.verdict(), Verdict::kNote);
  EXPECT_TRUE(
      says(result, Verdict::kNote, "kernel 6.1.0-test has no rpcrdma", "kernel-modules-extra"));
}

TEST_F(Host, BuiltInModuleCounts) {
  file("/lib/modules/6.1.0-test/modules.builtin", "kernel/net/sunrpc/xprtrdma/rpcrdma.ko\n");
  EXPECT_EQ(check_modules(host_).verdict(), Verdict::kOk);
}

TEST_F(Host, VendorStackWithoutItsModuleIsAWarning) {
  file("/lib/modules/6.1.0-test/updates/dkms/ib_core.ko", "");
  file("/lib/modules/6.1.0-test/kernel/net/sunrpc/xprtrdma/rpcrdma.ko.xz", "");
  EXPECT_TRUE(
      says(check_modules(host_), Verdict::kWarning, "updates/dkms/ib_core.ko", "--with-nfsrdma"));
}

TEST_F(Host, VendorStackIsKnownByItsLoadedModule) {
  directory("/sys/module/mlx_compat");
  EXPECT_TRUE(says(check_modules(host_), Verdict::kWarning, "mlx_compat", "mlnx-nfsrdma-dkms"));
}

TEST_F(Host, EmptyModuleOfAVendorsPackageIsAWarning) {
  const std::string base = "/lib/modules/6.1.0-test/";
  file(base + "updates/dkms/rpcrdma.ko", "");
  file(base + "modules.dep",
       "kernel/net/sunrpc/xprtrdma/rpcrdma.ko.xz: kernel/net/sunrpc/sunrpc.ko\n"
       "updates/dkms/rpcrdma.ko: updates/dkms/mlx_compat.ko\n");
  EXPECT_TRUE(says(check_modules(host_), Verdict::kWarning,
                   "an empty one of a vendor's package, /lib/modules/6.1.0-test/updates/dkms",
                   "mlnx-nfsrdma-dkms"));
  // One that gives NFS its transport.
  file(base + "modules.dep", "updates/dkms/rpcrdma.ko: kernel/net/sunrpc/sunrpc.ko\n");
  EXPECT_EQ(check_modules(host_).verdict(), Verdict::kNote);
  // What a kernel has built in, no module depends on.
  file(base + "modules.dep", "updates/dkms/rpcrdma.ko:\n");
  file(base + "modules.builtin", "kernel/net/sunrpc/sunrpc.ko\n");
  EXPECT_EQ(check_modules(host_).verdict(), Verdict::kNote);
}
TEST_F(Host, EmptyModuleThatIsLoadedIsAWarning) {
  file("/sys/module/rpcrdma/initstate", "live\n");
  file("/sys/module/sunrpc/initstate", "live\n");
  const CheckResult result = check_modules(host_);
  EXPECT_TRUE(says(result, Verdict::kWarning, "rpcrdma for this kernel is an empty one"));
  EXPECT_FALSE(says(result, Verdict::kOk, "rpcrdma is loaded"));
  directory("/sys/module/sunrpc/holders/rpcrdma");
  EXPECT_EQ(check_modules(host_).verdict(), Verdict::kOk);
}
TEST_F(Host, ForeignModuleIsNamed) {
  file("/lib/modules/6.1.0-test/extra/mlnx-nfsrdma/rpcrdma.ko", "");
  const CheckResult result = check_modules(host_);
  EXPECT_EQ(result.verdict(), Verdict::kNote);
  EXPECT_TRUE(says(result, Verdict::kNote, "extra/mlnx-nfsrdma/rpcrdma.ko", "modinfo rpcrdma"));
}

TEST_F(Host, LoadedModuleFromOutsideIsANote) {
  file("/sys/module/rpcrdma/taint", "OE\n");
  EXPECT_TRUE(says(check_modules(host_), Verdict::kNote, "from outside of the kernel's tree"));
}

TEST_F(Host, KernelMountsByRdmaAreTold) {
  directory("/sys/module/rpcrdma");
  file("/proc/self/mounts",
       "srv:/a /mnt/a nfs4 rw,vers=4.2,proto=rdma,port=20049 0 0\nsrv:/b /mnt/b nfs rw,proto=tcp 0 "
       "0\n");
  EXPECT_TRUE(says(check_modules(host_), Verdict::kOk, "mounted by RDMA: /mnt/a"));
  EXPECT_FALSE(says(check_modules(host_), Verdict::kOk, "/mnt/b"));
}

// --- ports ---

TEST_F(Host, NobodyOnThePortsIsOk) {
  EXPECT_EQ(check_listeners(host_).verdict(), Verdict::kOk);
  EXPECT_EQ(check_kernel_server(host_).verdict(), Verdict::kOk);
}

TEST_F(Host, OurServerOnThePortsIsOk) {
  process("50", "nfs-rdmad");
  listener(20049, "1001", "50");
  listener(2049, "1002", "50");
  const CheckResult result = check_listeners(host_);
  EXPECT_EQ(result.verdict(), Verdict::kOk);
  EXPECT_TRUE(says(result, Verdict::kOk, "TCP port 20049: nfs-rdmad (process 50)"));
}

TEST_F(Host, AnotherProgramOnThePortIsAProblemForAConfiguredServer) {
  server_configured();
  process("51", "ganesha.nfsd");
  listener(20049, "1001", "51");
  EXPECT_TRUE(says(check_listeners(host_), Verdict::kProblem,
                   "TCP port 20049: process 51 (ganesha.nfsd) listens", "NFSoRDMA_PORT=N"));
}

TEST_F(Host, AnotherProgramOnThePortIsANoteWhereNothingIsServed) {
  process("51", "ganesha.nfsd");
  listener(2049, "1001", "51");
  EXPECT_EQ(check_listeners(host_).verdict(), Verdict::kNote);
}

TEST_F(Host, ListenerInsideTheKernelIsThatOfADeviceOrOfTheKernelsList) {
  server_configured();
  process("51", "sshd");
  directory("/proc/51/fd");
  listener(20049, "1001", "");
  port({.device = "siw0", .node_type = "4: RNIC"});
  EXPECT_TRUE(says(check_listeners(host_), Verdict::kProblem,
                   "a listener inside the kernel, of siw", "rdma resource show cm_id"));
  std::filesystem::remove_all(root_ + "/sys/class/infiniband");
  command("rdma resource show cm_id",
          "link siw0/- cm-idn 4 state LISTEN ps-type TCP src-addr 0.0.0.0:20049 dst-addr "
          "0.0.0.0:0 \n");
  EXPECT_TRUE(
      says(check_listeners(host_), Verdict::kProblem, "a listener inside the kernel, of siw"));
}

TEST_F(Host, ListenerOfAModuleOfTheKernelIsNamed) {
  server_configured();
  listener(20049, "1001", "");
  command("rdma resource show cm_id",
          "link siw0/- cm-idn 4 state LISTEN ps-type TCP comm [rpcrdma] src-addr 0.0.0.0:20049 "
          "dst-addr 0.0.0.0:0 \n");
  EXPECT_TRUE(says(check_listeners(host_), Verdict::kProblem,
                   "RDMA port 20049: a listener inside the kernel, of [rpcrdma]",
                   "systemctl disable --now nfs-server"));
}

TEST_F(Host, TcpPortIsNotHeldByADeviceButMayBeByTheKernelsServer) {
  server_configured();
  listener(2049, "1001", "");
  port({.device = "siw0", .node_type = "4: RNIC"});
  EXPECT_TRUE(says(check_listeners(host_), Verdict::kProblem,
                   "TCP port 2049: a process that cannot be seen from here listens"));
  // Its list of ports may be that of another namespace.
  process("9", "nfsd");
  EXPECT_TRUE(says(check_listeners(host_), Verdict::kProblem,
                   "TCP port 2049: no process that is seen from here listens; threads of the "
                   "kernel's NFS server run",
                   "systemctl disable --now nfs-server"));
}

TEST_F(Host, ListenerWhoseProcessIsOfAnotherContainerIsNotTheKernels) {
  server_configured();
  process("51", "sshd");
  directory("/proc/51/fd");
  listener(20049, "1001", "");
  port({});  // RoCE: nothing of that listens with TCP
  const CheckResult result = check_listeners(host_);
  EXPECT_TRUE(says(result, Verdict::kProblem, "a process that cannot be seen from here listens",
                   "ss -ltnp 'sport = :20049'"));
  EXPECT_FALSE(says(result, Verdict::kProblem, "inside the kernel"));
}

/// Whoever reads the tree is nobody for a while.
class AsNobody {
 public:
  explicit AsNobody(const std::string& root) : was_(::geteuid()) {
    constexpr uid_t kNobody = 65534;
    EXPECT_EQ(::chmod(root.c_str(), 0755), 0);
    if (was_ == 0) {
      EXPECT_EQ(::seteuid(kNobody), 0);
    }
  }
  ~AsNobody() { EXPECT_EQ(::seteuid(was_), 0); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  uid_t was_;
};

TEST_F(Host, ProcessWhoseDescriptorsMayBeListedAndNotReadIsHidden) {
  server_configured();
  process("51", "squatter");
  listener(20049, "1001", "51");
  port({.device = "siw0", .node_type = "4: RNIC"});
  const std::string folder = root_ + "/proc/51/fd";
  ASSERT_EQ(::chmod(folder.c_str(), 0444), 0);
  {
    const AsNobody nobody(root_);
    EXPECT_TRUE(
        says(check_listeners(host_), Verdict::kNote, "only root sees who", "sudo ss -ltnp"));
    // Root of a container may not look either.
    host_.privileged = true;
    EXPECT_TRUE(says(check_listeners(host_), Verdict::kProblem, "cannot be seen from here"));
  }
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
}

TEST_F(Host, ListenersOfRdmaAreThoseOfTheirProcesses) {
  server_configured();
  const std::string shown =
      "link siw_eth0/- cm-idn 4 state LISTEN ps-type TCP pid 60 comm nfs-rdmad src-addr "
      "0.0.0.0:20049 dst-addr 0.0.0.0:0 \n"
      "link rxe_eth0/1 cm-idn 5 lqpn 17 state CONNECT ps-type TCP pid 61 comm client src-addr "
      "192.0.2.1:2049 dst-addr 192.0.2.2:20049 \n";
  command("rdma resource show cm_id", shown);
  listener(20049, "1001", "");  // siw's, inside the kernel
  const CheckResult ours = check_listeners(host_);
  EXPECT_EQ(ours.verdict(), Verdict::kOk);
  EXPECT_TRUE(says(ours, Verdict::kOk, "RDMA port 20049: nfs-rdmad (process 60)"));
  EXPECT_TRUE(says(ours, Verdict::kOk, "port 2049: nobody listens"));
  command("rdma resource show cm_id",
          "link rxe_eth0/- cm-idn 4 state LISTEN ps-type TCP pid 60 comm ganesha.nfsd src-addr "
          "[::]:20049 dst-addr [::]:0 \n");
  EXPECT_TRUE(says(check_listeners(host_), Verdict::kProblem,
                   "RDMA port 20049: ganesha.nfsd (process 60) listens", "kill 60"));
}

TEST_F(Host, PortsAreThoseOfTheConfigurationAndOfTheCommandLine) {
  server_configured();
  file("/etc/rdma/rdma.conf", "NFSoRDMA_PORT=2050\nNFSoRDMA_TCP_PORT=off\n");
  process("51", "squatter");
  listener(2050, "1001", "51");
  const CheckResult configured = check_listeners(host_);
  EXPECT_TRUE(says(configured, Verdict::kProblem, "TCP port 2050"));
  EXPECT_EQ(configured.findings.size(), 1u);  // TCP is off
  process("52", "nfs-rdmad", {"--foreground", "--port", "31000", "--tcp-port=31001"});
  listener(31000, "1002", "52");
  listener(31001, "1003", "52");
  const CheckResult running = check_listeners(host_);
  EXPECT_TRUE(says(running, Verdict::kOk, "TCP port 31000: nfs-rdmad (process 52)"));
  EXPECT_TRUE(says(running, Verdict::kOk, "TCP port 31001: nfs-rdmad (process 52)"));
}

TEST_F(Host, KernelServerInTheWayIsAProblemForAConfiguredServer) {
  server_configured();
  file("/proc/fs/nfsd/threads", "8\n");
  file("/proc/fs/nfsd/portlist", "rdma 20049\nrdma 20049\ntcp 2049\ntcp 2049\n");
  EXPECT_TRUE(says(check_kernel_server(host_), Verdict::kProblem,
                   "8 threads, on rdma 20049, tcp 2049", "systemctl disable --now nfs-server"));
}

TEST_F(Host, KernelServerAloneIsANote) {
  file("/proc/fs/nfsd/threads", "8\n");
  file("/proc/fs/nfsd/portlist", "tcp 2049\n");
  EXPECT_EQ(check_kernel_server(host_).verdict(), Verdict::kNote);
}

// --- rpcbind ---

TEST_F(Host, RpcbindThatKnowsNfsIsOk) {
  rpcbind_ = {{100003, 3, "tcp"}, {100003, 3, "rdma"}, {100003, 4, "tcp"}, {100000, 4, "tcp"}};
  EXPECT_TRUE(says(check_rpcbind(host_), Verdict::kOk, "rpcbind knows NFS by rdma, tcp"));
}

TEST_F(Host, RpcbindsEntriesOfAnotherServerAreToldByTheirPort) {
  rpcbind_ = {{100003, 3, "tcp", 2049}, {100003, 3, "rdma6", 20049}, {100003, 3, "rdma", 20049}};
  EXPECT_TRUE(says(check_rpcbind(host_), Verdict::kOk,
                   "rpcbind knows NFS by rdma, rdma6, tcp (ports 2049, 20049)"));
  process("50", "nfs-rdmad");
  file("/etc/rdma/rdma.conf", "NFSoRDMA_TCP_PORT=2050\n");
  const CheckResult result = check_rpcbind(host_);
  EXPECT_TRUE(says(result, Verdict::kOk, "rpcbind knows NFS of nfs-rdmad by rdma, rdma6"));
  EXPECT_TRUE(says(result, Verdict::kNote,
                   "rpcbind knows NFS by tcp as another server's (port 2049): clients without"));
}

TEST_F(Host, RpcbindWithoutOurEntriesIsAWarningWhileTheServerRuns) {
  rpcbind_ = {{100000, 4, "tcp"}};
  EXPECT_EQ(check_rpcbind(host_).verdict(), Verdict::kOk);
  process("50", "nfs-rdmad");
  EXPECT_TRUE(says(check_rpcbind(host_), Verdict::kWarning, "knows no NFS server",
                   "systemctl restart nfs-rdma"));
  file("/etc/rdma/rdma.conf", "NFSoRDMA_RPCBIND=no\n");
  EXPECT_EQ(check_rpcbind(host_).verdict(), Verdict::kOk);
}

TEST_F(Host, NoRpcbindIsANoteForAServer) {
  EXPECT_EQ(check_rpcbind(host_).verdict(), Verdict::kOk);
  server_configured();
  EXPECT_TRUE(says(check_rpcbind(host_), Verdict::kNote, "rpcbind does not run",
                   "systemctl enable --now rpcbind"));
}

// --- FUSE ---

TEST_F(Host, FuseInGoodState) {
  file("/dev/fuse", "", 0666);
  file("/usr/bin/fusermount3", "", 04755);
  file("/etc/fuse.conf", "# mount_max = 1000\nuser_allow_other\n");
  EXPECT_EQ(check_fuse(host_).verdict(), Verdict::kOk);
}

TEST_F(Host, NoFuseDeviceIsAProblem) {
  EXPECT_TRUE(says(check_fuse(host_), Verdict::kProblem, "/dev/fuse is missing", "modprobe fuse"));
}

TEST_F(Host, FuseDeviceForRootAloneIsAWarning) {
  file("/dev/fuse", "", 0600);
  EXPECT_TRUE(says(check_fuse(host_), Verdict::kWarning, "mode 0600", "chmod 0666 /dev/fuse"));
}

TEST_F(Host, FusermountWithoutItsBitIsAWarningForOrdinaryUsers) {
  file("/dev/fuse", "", 0666);
  EXPECT_TRUE(says(check_fuse(host_), Verdict::kWarning, "not installed", "install fuse3"));
  file("/usr/bin/fusermount3", "", 0755);
  EXPECT_TRUE(says(check_fuse(host_), Verdict::kWarning, "is not set-user-ID",
                   "chmod u+s /usr/bin/fusermount3"));
  host_.privileged = true;
  EXPECT_EQ(check_fuse(host_).verdict(), Verdict::kNote);
}

TEST_F(Host, UserAllowOtherThatIsACommentDoesNotCount) {
  file("/dev/fuse", "", 0666);
  file("/usr/bin/fusermount3", "", 04755);
  file("/etc/fuse.conf", "#user_allow_other\n");
  EXPECT_TRUE(
      says(check_fuse(host_), Verdict::kNote, "for that user alone", "user_allow_other >>"));
}

// --- clock ---

TEST_F(Host, ClockStates) {
  EXPECT_EQ(check_clock(host_).verdict(), Verdict::kOk);
  clock_.synchronised = false;
  EXPECT_TRUE(says(check_clock(host_), Verdict::kWarning, "nothing synchronises", "chrony"));
  clock_.known = false;
  EXPECT_EQ(check_clock(host_).verdict(), Verdict::kSkipped);
}

// --- configuration ---

TEST_F(Host, NoConfigurationIsSkipped) {
  EXPECT_EQ(check_configuration(host_).verdict(), Verdict::kSkipped);
}

TEST_F(Host, MistakesOfTheConfigurationBeginWithTheirPlace) {
  file("/etc/rdma/rdma.conf", "NFSoRDMA_PROT=2050\n");
  const CheckResult result = check_configuration(host_);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_TRUE(result.findings[0].seen.starts_with("/etc/rdma/rdma.conf:1: unknown key"))
      << result.findings[0].seen;
}

TEST_F(Host, OnePortForRdmaAndTcpIsAProblem) {
  file("/etc/rdma/rdma.conf", "NFSoRDMA_PORT=2049\n");
  EXPECT_TRUE(says(check_configuration(host_), Verdict::kProblem,
                   "NFSoRDMA_PORT and NFSoRDMA_TCP_PORT are both 2049", "set another"));
  file("/etc/rdma/rdma.conf", "NFSoRDMA_PORT=2049\nNFSoRDMA_FABRIC=verbs\n");
  EXPECT_EQ(check_configuration(host_).verdict(), Verdict::kOk);
}

TEST_F(Host, GoodConfigurationIsOk) {
  directory("/srv/data");
  file("/etc/rdma/rdma.conf", "NFSoRDMA_LOAD=yes\nNFSoRDMA_PORT=2050\n");
  file("/etc/nfs-rdma.exports", "/srv/data *(rw)\n");
  const CheckResult result = check_configuration(host_);
  EXPECT_EQ(result.verdict(), Verdict::kOk);
  EXPECT_TRUE(says(result, Verdict::kOk, "/etc/nfs-rdma.exports is in order: 1 directory"));
}

TEST_F(Host, WrongKeyIsAProblemWithItsLine) {
  file("/etc/rdma/rdma.conf", "# mine\nNFSoRDMA_PRT=2050\n");
  EXPECT_TRUE(says(check_configuration(host_), Verdict::kProblem, "/etc/rdma/rdma.conf:2",
                   "--check-config"));
  EXPECT_FALSE(says(check_configuration(host_), Verdict::kProblem, root_));
}

TEST_F(Host, ExportsOfTheDirectoryCountToo) {
  directory("/srv/a");
  file("/etc/nfs-rdma.exports.d/a.exports", "/srv/a *(ro)\n");
  EXPECT_TRUE(local_server(host_).configured);
  EXPECT_TRUE(says(check_configuration(host_), Verdict::kOk, "in order: 1 directory"));
  file("/etc/nfs-rdma.exports.d/b.exports", "/srv/a *(nonsense)\n");
  EXPECT_TRUE(says(check_configuration(host_), Verdict::kProblem,
                   "/etc/nfs-rdma.exports.d/b.exports:1", "--check-config"));
}

TEST_F(Host, ExportsFileThatSaysNothingDoesNotHideThoseBesideIt) {
  file("/etc/nfs-rdma.exports", "# none here\n");
  EXPECT_FALSE(local_server(host_).configured);
  file("/etc/nfs-rdma.exports.d/.hidden.exports", "/srv/h *(ro)\n");
  file("/etc/nfs-rdma.exports.d/empty.exports", "\n");
  EXPECT_FALSE(local_server(host_).configured);
  directory("/srv/a");
  file("/etc/nfs-rdma.exports.d/a.exports", "/srv/a *(ro)\n");
  EXPECT_TRUE(local_server(host_).configured);
  EXPECT_TRUE(says(check_configuration(host_), Verdict::kOk, "in order: 1 directory"));
}

TEST_F(Host, WrongExportsAreAProblem) {
  file("/etc/nfs-rdma.exports", "/srv/data *(rw,no_such_option)\n");
  EXPECT_TRUE(says(check_configuration(host_), Verdict::kProblem, "no_such_option"));
}

TEST_F(Host, ExportedDirectoryThatIsMissingIsAWarning) {
  file("/etc/nfs-rdma.exports", "/srv/gone *(rw)\n");
  EXPECT_TRUE(
      says(check_configuration(host_), Verdict::kWarning, "/srv/gone", "mkdir -p /srv/gone"));
}

TEST_F(Host, LinesToPasteTakeAPathAsItIs) {
  file("/etc/nfs-rdma.exports", "\"/srv/with space\" *(rw)\n");
  EXPECT_TRUE(says(check_configuration(host_), Verdict::kWarning, "/srv/with space",
                   "mkdir -p '/srv/with space'"));
}

TEST_F(Host, LoadNoIsANote) {
  file("/etc/rdma/rdma.conf", "NFSoRDMA_LOAD=no\n");
  EXPECT_TRUE(says(check_configuration(host_), Verdict::kNote, "NFSoRDMA_LOAD=no"));
  // Where somebody counts on a server there is none at all.
  file("/etc/systemd/system/multi-user.target.wants/nfs-rdma.service", "");
  EXPECT_TRUE(says(check_configuration(host_), Verdict::kWarning, "the server does not start"));
}

TEST_F(Host, EnabledUnitWithoutExportsIsAProblem) {
  file("/etc/systemd/system/multi-user.target.wants/nfs-rdma.service", "");
  EXPECT_TRUE(
      says(check_configuration(host_), Verdict::kProblem, "/etc/nfs-rdma.exports is missing"));
}

// --- what the checks stand on ---

TEST(DoctorCommand, OutputAndStatusOfAProgram) {
  const CommandOutput out =
      run_command({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, std::chrono::seconds(60));
  EXPECT_TRUE(out.found);
  EXPECT_EQ(out.status, 3);
  EXPECT_EQ(out.out, "out\n");
  EXPECT_EQ(out.err, "err\n");
  EXPECT_FALSE(out.good());
}

TEST(DoctorCommand, ProgramThatIsMissing) {
  EXPECT_FALSE(run_command({"no-such-program-at-all"}, std::chrono::seconds(60)).found);
}

TEST(DoctorCommand, ProgramThatDoesNotEndIsEnded) {
  // Closing its streams does not make it look done.
  for (const char* script : {"kill -STOP $$", "exec >&- 2>&-; kill -STOP $$"}) {
    const CommandOutput out = run_command({"/bin/sh", "-c", script}, std::chrono::milliseconds(50));
    EXPECT_TRUE(out.timed_out) << script;
    EXPECT_FALSE(out.good()) << script;
  }
}

TEST(DoctorHost, ThisHostHasAnswers) {
  const HostView host = real_host();
  EXPECT_FALSE(host.kernel_release.empty());
  EXPECT_FALSE(host.names("/proc").empty());
  for (const CheckResult& result : run_checks(host, nullptr, {}, {}))
    EXPECT_FALSE(result.findings.empty()) << result.id;
}

}  // namespace
}  // namespace nfsrdma::doctor
