// SPDX-License-Identifier: Apache-2.0
// Who has the ports of NFS on this host. Matters where nfs-rdmad runs or is to run; elsewhere it is
// only told. The server's own start says the same (server/port_holder.h).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "client/doctor/host_checks.h"
#include "client/doctor/rdma_sysfs.h"
#include "rpcrdma/base/listening_sockets.h"

namespace nfsrdma::doctor {

namespace {

/// Of a listener of rdma_cm.
struct RdmaHolder {
  std::string pid, name;  // empty: it has none, or there is no listener
  bool listed = false;    // there is one
};

/// Who listens on a port with rdma_cm; empty: nobody, or it cannot be told.
RdmaHolder rdma_holder_of(const HostView& host, std::uint16_t port) {
  const CommandOutput shown = host.command({"rdma", "resource", "show", "cm_id"});
  const std::string wanted = ":" + std::to_string(port);
  for (const std::string& line : lines_of(shown.out)) {
    const std::vector<std::string> words = words_of(line);
    std::map<std::string, std::string> values;
    // "link LINK cm-idn N state LISTEN ps-type TCP pid N comm NAME src-addr ADDRESS ..."
    for (std::size_t i = 0; i + 1 < words.size(); i += 2)
      values[words[i]] = words[i + 1];
    if (values["state"] != "LISTEN" || !values["src-addr"].ends_with(wanted)) continue;
    return {values["pid"], values["comm"], true};
  }
  return {};
}

/// Lines of the kernel's NFS server: "rdma 20049", "tcp 2049". It has each for both families.
std::vector<std::string> kernel_ports(const HostView& host) {
  std::vector<std::string> ports;
  for (std::string& line : lines_of(host.text("/proc/fs/nfsd/portlist"))) {
    if (std::find(ports.begin(), ports.end(), line) == ports.end())
      ports.push_back(std::move(line));
  }
  return ports;
}

bool kernel_has(const HostView& host, std::uint16_t port) {
  const std::vector<std::string> ports = kernel_ports(host);
  const std::string wanted = " " + std::to_string(port);
  return std::any_of(ports.begin(), ports.end(),
                     [&](const std::string& line) { return line.ends_with(wanted); });
}

/// The verdict on a port that somebody else has.
Verdict gravity(const LocalServer& server) {
  if (server.running) return Verdict::kWarning;
  return server.configured ? Verdict::kProblem : Verdict::kNote;
}

Remedy end_or_move(const std::string& pid, const char* key) {
  Remedy remedy;
  if (!pid.empty()) {
    remedy.push_back(fmt::format("kill {}    # or systemctl stop its unit", pid));
  }
  remedy.push_back(fmt::format("or set {}=N in /etc/rdma/rdma.conf", key));
  return remedy;
}

bool has_iwarp_device(const HostView& host) {
  const std::vector<SysDevice> devices = sys_devices(host);
  return std::any_of(devices.begin(), devices.end(),
                     [](const SysDevice& device) { return device.iwarp; });
}

/// The verdict on a port that somebody has who is not known: beside a server that runs it may be
/// that one's.
Verdict gravity_of_unknown(const LocalServer& server) {
  return server.running ? Verdict::kNote : gravity(server);
}

/// Of another container, or one that does not let this user look; or a plain socket of the kernel.
void tell_unseen(const HostView& host, const LocalServer& server, std::uint16_t port,
                 const char* key, CheckResult* result) {
  const bool nfsd = !processes_named(host, "nfsd").empty();
  const std::string move = fmt::format("set {}=N in /etc/rdma/rdma.conf", key);
  result->add(
      gravity_of_unknown(server),
      nfsd ? fmt::format("TCP port {}: no process that is seen from here listens; threads of the "
                         "kernel's NFS server run",
                         port)
           : fmt::format("TCP port {}: a process that cannot be seen from here listens", port),
      nfsd ? Remedy{"systemctl disable --now nfs-server", "or " + move}
           : Remedy{fmt::format(
                        "ss -ltnp 'sport = :{}'    # as root, on the host of this container", port),
                    "end that, or " + move});
}

/// A listener that has no TCP socket of a process that is seen, or none at all.
void look_at_rdma_listener(const HostView& host, const LocalServer& server, std::uint16_t port,
                           const char* key, bool tcp_socket, CheckResult* result) {
  const RdmaHolder holder = rdma_holder_of(host, port);
  if (kernel_has(host, port)) {
    // check_kernel_server() tells of RDMA alone.
    if (tcp_socket) {
      result->add(gravity(server),
                  fmt::format("TCP port {}: the kernel's NFS server listens", port),
                  {"systemctl disable --now nfs-server"});
    }
  } else if (holder.name == "nfs-rdmad") {
    result->ok(fmt::format("RDMA port {}: nfs-rdmad (process {})", port, holder.pid));
  } else if (holder.name.starts_with('[')) {  // a module
    result->add(gravity(server),
                fmt::format("RDMA port {}: a listener inside the kernel, of {}", port, holder.name),
                {holder.name == "[rpcrdma]" ? "systemctl disable --now nfs-server"
                                            : "rdma resource show cm_id    # says on which device",
                 fmt::format("or set {}=N in /etc/rdma/rdma.conf", key)});
  } else if (!holder.name.empty()) {
    result->add(gravity(server),
                fmt::format("RDMA port {}: {}{} listens", port, holder.name,
                            holder.pid.empty() ? "" : " (process " + holder.pid + ")"),
                end_or_move(holder.pid, key));
  } else if (tcp_socket && !holder.listed &&
             (port != server.rdma_port || !has_iwarp_device(host))) {
    // That of NFS over TCP is none of a device's.
    tell_unseen(host, server, port, key, result);
  } else if (tcp_socket) {
    // Such a socket has an inode that no process holds.
    result->add(gravity_of_unknown(server),
                fmt::format("TCP port {}: a listener inside the kernel, of siw or of another iWARP "
                            "device",
                            port),
                {"rdma resource show cm_id    # says for whom",
                 fmt::format("end that, or set {}=N in /etc/rdma/rdma.conf", key)});
  } else {
    const std::string seen = fmt::format("port {}: nobody listens", port);
    server.running ? result->note(seen + ": nfs-rdmad serves without it") : result->ok(seen);
  }
}

void look_at_port(const HostView& host, const LocalServer& server, std::uint16_t port,
                  const char* key, CheckResult* result) {
  const std::set<std::string> inodes = listening_inodes(host.path("/proc"), port);
  const SocketHolder holder = holder_of_sockets(host.path("/proc"), inodes);
  if (holder.name == "nfs-rdmad") {
    result->ok(fmt::format("TCP port {}: nfs-rdmad (process {})", port, holder.pid));
  } else if (!holder.pid.empty()) {
    result->add(gravity(server),
                fmt::format("TCP port {}: process {} ({}) listens", port, holder.pid, holder.name),
                end_or_move(holder.pid, key));
  } else if (holder.hidden && host.privileged && !kernel_has(host, port)) {
    tell_unseen(host, server, port, key, result);
  } else if (holder.hidden && !kernel_has(host, port)) {
    result->note(fmt::format("TCP port {}: somebody listens; only root sees who", port),
                 {fmt::format("sudo ss -ltnp 'sport = :{}'", port)});
  } else {
    look_at_rdma_listener(host, server, port, key, !inodes.empty(), result);
  }
}

}  // namespace

CheckResult check_kernel_server(const HostView& host) {
  CheckResult result;
  const std::vector<std::string> ports = kernel_ports(host);
  const std::uint64_t threads = number_of(host.line("/proc/fs/nfsd/threads")).value_or(0);
  if (threads == 0 && ports.empty()) return result.ok("the kernel's NFS server does not run");
  const LocalServer server = local_server(host);
  std::string seen = fmt::format("the kernel's NFS server runs: {} threads, on {}", threads,
                                 ports.empty() ? "no port" : joined(ports));
  const bool in_the_way = kernel_has(host, server.rdma_port) ||
                          (server.tcp_port != 0 && kernel_has(host, server.tcp_port));
  if (in_the_way && !server.running && server.configured) {
    result.problem(seen + ": nfs-rdmad is configured for a port of these",
                   {"systemctl disable --now nfs-server",
                    "or set NFSoRDMA_PORT=N and NFSoRDMA_TCP_PORT=N in /etc/rdma/rdma.conf"});
  } else {
    result.note(seen);
  }
  return result;
}

CheckResult check_listeners(const HostView& host) {
  CheckResult result;
  const LocalServer server = local_server(host);
  look_at_port(host, server, server.rdma_port, "NFSoRDMA_PORT", &result);
  if (server.tcp_port != 0) {
    look_at_port(host, server, server.tcp_port, "NFSoRDMA_TCP_PORT", &result);
  }
  return result;
}

}  // namespace nfsrdma::doctor
