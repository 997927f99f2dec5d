// SPDX-License-Identifier: Apache-2.0
// See device_probe.h. Probing tries the very calls that a user of the feature would make:
// capability flags promise what some drivers do not keep.
#include "rpcrdma/verbs/device_probe.h"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>

#include "rpcrdma/verbs/command_thread.h"
#include "rpcrdma/verbs/device_vendor.h"
#include "rpcrdma/verbs/memlock.h"

namespace nfsrdma::verbs {

namespace {

constexpr std::uint32_t kWantedInline = 64;  // queue_pair.cc asks for as much
constexpr std::size_t kHugePage = std::size_t{2} << 20;

// --- from what was found to what is told ---

DeviceFeature feature(std::string key, std::string title, int trial, bool used, std::string note) {
  DeviceFeature made{std::move(key), std::move(title), Probed::kUnknown, used, std::move(note)};
  if (trial >= 0) made.there = trial == 0 ? Probed::kYes : Probed::kNo;
  made.used = used && made.there == Probed::kYes;
  if (trial > 0 && trial != EOPNOTSUPP && trial != ENOSYS && trial != EINVAL) {
    made.note = fmt::format("tried: {}; {}", std::strerror(trial), made.note);
  }
  return made;
}

DeviceFeature windows(const ibv_device_attr& attr, int trial) {
  const bool a = (attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A) != 0;
  const bool b = (attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0;
  const bool safe = windows_are_safe(attr.vendor_id);
  DeviceFeature made =
      feature("memory_windows_type_2", "memory windows type 2", a || b ? trial : EOPNOTSUPP, safe,
              safe ? "clients expose memory by them; without, by registration"
                   : "this driver lets peers go beyond them: exposure is by registration");
  if (made.there == Probed::kYes)
    made.note = fmt::format("type {}; {}", b ? "2B" : "2A", made.note);
  return made;
}

DeviceFeature on_demand_paging(const ibv_device_attr_ex& attr) {
  const bool there = (attr.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0;
  std::string operations;
  const auto add = [&](std::uint32_t bit, const char* name) {
    if ((attr.odp_caps.per_transport_caps.rc_odp_caps & bit) != 0) {
      operations += (operations.empty() ? "" : ", ") + std::string(name);
    }
  };
  add(IBV_ODP_SUPPORT_SEND, "Send");
  add(IBV_ODP_SUPPORT_RECV, "Receive");
  add(IBV_ODP_SUPPORT_WRITE, "Write");
  add(IBV_ODP_SUPPORT_READ, "Read");
  std::string note = "memory is pinned";
  if (there) {
    note = fmt::format(
        "RC: {}{}; {}", operations.empty() ? "none" : operations,
        (attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT) != 0 ? "; implicit" : "", note);
  }
  return feature("odp", "on-demand paging", there ? 0 : EOPNOTSUPP, false, std::move(note));
}

DeviceFeature huge_pages(const DeviceTrials& trials) {
  if (trials.huge_page_memory > 0) {
    return feature("huge_pages", "huge pages", -1, false,
                   "this host has none free to try with (sysctl vm.nr_hugepages)");
  }
  return feature("huge_pages", "huge pages", trials.huge_pages, false,
                 "buffers of ours are in ordinary pages; an application's own may be in huge ones");
}

const char* gid_type_name(const ibv_gid_entry& gid, ibv_transport_type transport) {
  if (transport == IBV_TRANSPORT_IWARP) return "iWARP";
  switch (gid.gid_type) {
    case IBV_GID_TYPE_IB:
      return "IB";
    case IBV_GID_TYPE_ROCE_V1:
      return "RoCE v1";
    case IBV_GID_TYPE_ROCE_V2:
      return "RoCE v2";
    default:
      return "unknown";
  }
}

const char* link_layer_name(std::uint8_t link_layer) {
  switch (link_layer) {
    case IBV_LINK_LAYER_INFINIBAND:
      return "InfiniBand";
    case IBV_LINK_LAYER_ETHERNET:
      return "Ethernet";
    default:
      return "";
  }
}

const char* port_state_name(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    case IBV_PORT_ACTIVE_DEFER:
      return "ACTIVE_DEFER";
    default:
      return "NOP";
  }
}

std::uint32_t mtu_bytes(ibv_mtu mtu) {
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128U << mtu : 0;
}

std::uint32_t positive(int value) {
  return static_cast<std::uint32_t>(std::max(value, 0));
}

std::string kind_of(ibv_transport_type transport, const ibv_device_attr& attr) {
  if (transport == IBV_TRANSPORT_IWARP) {
    return attr.vendor_id == kSiwVendor ? "iWARP in software (siw)" : "iWARP";
  }
  return attr.vendor_id == kRxeVendor ? "RoCE in software (rxe)" : "InfiniBand or RoCE";
}

// --- trying ---

/// errno after `made` came out null.
template <typename T>
int outcome(T* made) {
  return made != nullptr ? 0 : errno != 0 ? errno : EIO;
}

class Trial {
 public:
  Trial(ibv_context* context, const ibv_device_attr& attr) : context_(context), attr_(attr) {}

  DeviceTrials run() {
    pd_ = ::ibv_alloc_pd(context_);
    if (pd_ == nullptr) return trials_;
    try_extended_cq();
    try_memory_window();
    try_shared_receive_queue();
    try_queue_pairs();
    try_registrations();
    ::ibv_dealloc_pd(pd_);
    return trials_;
  }

 private:
  void try_extended_cq() {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 4;
    attr.wc_flags = IBV_WC_STANDARD_FLAGS;
    errno = 0;
    ibv_cq_ex* cq = ::ibv_create_cq_ex(context_, &attr);
    trials_.extended_cq = outcome(cq);
    if (cq != nullptr) ::ibv_destroy_cq(::ibv_cq_ex_to_cq(cq));
  }
  void try_memory_window() {
    errno = 0;
    ibv_mw* window = ::ibv_alloc_mw(pd_, IBV_MW_TYPE_2);
    trials_.memory_window = outcome(window);
    if (window != nullptr) ::ibv_dealloc_mw(window);
  }
  void try_shared_receive_queue() {
    if (attr_.max_srq <= 0) {
      trials_.shared_receive_queue = trials_.srq_limit = EOPNOTSUPP;
      return;
    }
    ibv_srq_init_attr init{};
    init.attr.max_wr = 8;
    init.attr.max_sge = 1;
    errno = 0;
    ibv_srq* srq = ::ibv_create_srq(pd_, &init);
    trials_.shared_receive_queue = trials_.srq_limit = outcome(srq);
    if (srq == nullptr) return;
    ibv_srq_attr limit{};
    limit.srq_limit = 2;
    trials_.srq_limit = ::ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT);
    ::ibv_destroy_srq(srq);
  }
  void try_queue_pairs() {
    errno = 0;
    ibv_cq* cq = ::ibv_create_cq(context_, 8, nullptr, nullptr, 0);
    if (cq == nullptr) return;
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {4, 4, 1, 1, kWantedInline};
    errno = 0;
    ibv_qp* plain = ::ibv_create_qp(pd_, &attr);
    trials_.inline_send = outcome(plain);
    if (plain != nullptr) {
      trials_.max_inline = attr.cap.max_inline_data;
      ::ibv_destroy_qp(plain);
    }
    try_extended_qp(cq);
    ::ibv_destroy_cq(cq);
  }
  void try_extended_qp(ibv_cq* cq) {
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {4, 4, 1, 1, 0};
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = pd_;
    attr.send_ops_flags =
        IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ;
    errno = 0;
    ibv_qp* qp = ::ibv_create_qp_ex(context_, &attr);
    trials_.extended_qp = outcome(qp);
    if (qp != nullptr) ::ibv_destroy_qp(qp);
  }
  int registers(void* memory, std::size_t bytes, int flags) {
    errno = 0;
    ibv_mr* mr = ::ibv_reg_mr(pd_, memory, bytes, flags);
    const int result = outcome(mr);
    if (mr != nullptr) ::ibv_dereg_mr(mr);
    return result;
  }
  void try_registrations() {
    alignas(64) std::array<std::byte, 64> little{};
    trials_.relaxed_ordering = registers(little.data(), little.size(),
                                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
    void* huge = ::mmap(nullptr, kHugePage, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    trials_.huge_page_memory = huge == MAP_FAILED ? errno : 0;
    if (huge == MAP_FAILED) return;
    trials_.huge_pages = registers(huge, kHugePage, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_HUGETLB);
    ::munmap(huge, kHugePage);
  }

  ibv_context* context_;
  const ibv_device_attr& attr_;
  ibv_pd* pd_ = nullptr;
  DeviceTrials trials_;
};

void add_ports(ibv_context* context, const ibv_device_attr& attr, DeviceReport* report) {
  const ibv_transport_type transport = context->device->transport_type;
  std::vector<ibv_gid_entry> gids(256);
  const ssize_t found = ::ibv_query_gid_table(context, gids.data(), gids.size(), 0);
  gids.resize(found > 0 ? static_cast<std::size_t>(found) : 0);
  for (unsigned number = 1; number <= attr.phys_port_cnt; ++number) {
    ibv_port_attr port{};
    if (::ibv_query_port(context, static_cast<std::uint8_t>(number), &port) != 0) continue;
    report->ports.push_back(describe_port(number, transport, port, gids));
  }
}

DeviceReport probe_device(ibv_device* device) {
  DeviceReport report;
  report.name = ::ibv_get_device_name(device);
  errno = 0;
  ibv_context* context = ::ibv_open_device(device);
  if (context == nullptr) {
    const int err = errno;
    report.problem = fmt::format("cannot be opened: {}", std::strerror(err));
    if (err == EACCES || err == EPERM) {
      report.problem += fmt::format(
          "; let users open /dev/infiniband/{} (rdma-core's udev rules give it mode 0666)",
          device->dev_name);
    }
    return report;
  }
  ibv_device_attr_ex attr{};
  if (const int err = ::ibv_query_device_ex(context, nullptr, &attr); err != 0) {
    report.problem = fmt::format("cannot be queried: {}", std::strerror(err));
  } else {
    const DeviceTrials trials = Trial(context, attr.orig_attr).run();
    report = describe_device(report.name, device->transport_type, attr, trials);
    add_ports(context, attr.orig_attr, &report);
  }
  ::ibv_close_device(context);
  return report;
}

void explain_missing(VerbsHostReport* host) {
  std::error_code ignored;
  const std::filesystem::path known("/sys/class/infiniband");
  const bool kernel_knows_some =
      std::filesystem::exists(known, ignored) && !std::filesystem::is_empty(known, ignored);
  if (kernel_knows_some) {
    host->problem = "the kernel has RDMA devices, but user space cannot reach them";
    host->remedies = {"modprobe ib_uverbs", "install the package ibverbs-providers (rdma-core)"};
    return;
  }
  host->problem = "no RDMA device on this host";
  host->remedies = {"load the adapter's driver (mlx5_ib, irdma, bnxt_re, cxgb4, ...)",
                    "or make a device in software on a network interface:",
                    "  modprobe siw && rdma link add siw0 type siw netdev eth0        (iWARP)",
                    "  modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0   (RoCE)"};
}

void probe(VerbsHostReport* host) {
  const MemlockLimit limit = memlock_limit();
  host->memlock_limit = limit.bytes;
  host->memlock_unlimited = limit.unlimited;
  host->memlock_exempt = limit.exempt;
  if (limit.is_little()) host->memlock_remedy = memlock_remedy();
  int count = 0;
  ibv_device** list = ::ibv_get_device_list(&count);
  for (int i = 0; list != nullptr && i < count; ++i)
    host->devices.push_back(probe_device(list[i]));
  if (list != nullptr) ::ibv_free_device_list(list);
  if (host->devices.empty()) return explain_missing(host);
  if (::access("/dev/infiniband/rdma_cm", R_OK | W_OK) == 0) return;
  host->problem =
      fmt::format("no connection manager: /dev/infiniband/rdma_cm: {}", std::strerror(errno));
  host->remedies = {errno == ENOENT
                        ? "modprobe rdma_ucm"
                        : "let users open it (rdma-core's udev rules give it mode 0666)"};
}

}  // namespace

DeviceReport describe_device(const std::string& name, ibv_transport_type transport,
                             const ibv_device_attr_ex& attr, const DeviceTrials& trials) {
  const ibv_device_attr& base = attr.orig_attr;
  DeviceReport report;
  report.name = name;
  report.kind = kind_of(transport, base);
  report.firmware = base.fw_ver;
  report.max_sge = positive(base.max_sge);
  // iWARP Reads have one sink (wire.md 6.5); some drivers say more.
  report.max_sge_read = transport == IBV_TRANSPORT_IWARP ? 1 : positive(base.max_sge_rd);
  report.max_qp_rd_atom = positive(base.max_qp_rd_atom);
  report.max_qp_init_rd_atom = positive(base.max_qp_init_rd_atom);
  report.max_mr_size = base.max_mr_size;
  report.max_mr = positive(base.max_mr);
  report.max_qp_wr = positive(base.max_qp_wr);
  report.max_cqe = positive(base.max_cqe);
  report.max_srq_wr = positive(base.max_srq_wr);
  report.max_inline = trials.max_inline;
  const bool invalidates = (base.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS) != 0;
  report.features = {
      feature("extended_qp", "extended QP", trials.extended_qp, false,
              "work is posted with plain ibv_post_send"),
      feature("extended_cq", "extended CQ", trials.extended_cq, false,
              "completions are taken with plain ibv_poll_cq"),
      windows(base, trials.memory_window),
      on_demand_paging(attr),
      feature("srq", "shared receive queue", trials.shared_receive_queue, true,
              "without it each connection holds up to 64 receives"),
      feature("srq_limit_event", "SRQ limit event", trials.srq_limit, false,
              "receives are posted for every credit granted, so it never runs low"),
      huge_pages(trials),
      feature("inline_send", "inline send", trials.inline_send, true,
              fmt::format("{} bytes", trials.max_inline)),
      feature("relaxed_ordering", "relaxed ordering", trials.relaxed_ordering, false,
              "accepted as a hint, which a driver may ignore"),
      feature("send_with_invalidate", "Send with Invalidate", invalidates ? 0 : EOPNOTSUPP, true,
              "of the memory of clients that ask for it"),
  };
  return report;
}

DevicePort describe_port(unsigned number, ibv_transport_type transport, const ibv_port_attr& attr,
                         std::span<const ibv_gid_entry> gids) {
  DevicePort port;
  port.number = number;
  port.state = port_state_name(attr.state);
  port.active = attr.state == IBV_PORT_ACTIVE || attr.state == IBV_PORT_ACTIVE_DEFER;
  port.link_layer = link_layer_name(attr.link_layer);
  if (port.link_layer.empty() && transport == IBV_TRANSPORT_IWARP) port.link_layer = "Ethernet";
  port.mtu = mtu_bytes(attr.active_mtu);
  port.max_mtu = mtu_bytes(attr.max_mtu);
  for (const ibv_gid_entry& gid : gids) {
    if (gid.port_num != number) continue;
    const std::string type = gid_type_name(gid, transport);
    auto known = std::find_if(port.gid_types.begin(), port.gid_types.end(),
                              [&](const DevicePort::GidType& t) { return t.name == type; });
    if (known == port.gid_types.end()) known = port.gid_types.insert(known, {type, 0});
    ++known->count;
    std::array<char, IF_NAMESIZE> network{};
    if (gid.ndev_ifindex == 0 || ::if_indextoname(gid.ndev_ifindex, network.data()) == nullptr) {
      continue;
    }
    if (std::find(port.networks.begin(), port.networks.end(), network.data()) ==
        port.networks.end()) {
      port.networks.emplace_back(network.data());
    }
  }
  return port;
}

VerbsHostReport probe_host() {
  VerbsHostReport host;
  CommandThread::of_process().run([&] { probe(&host); });
  return host;
}

}  // namespace nfsrdma::verbs
