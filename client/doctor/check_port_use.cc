// SPDX-License-Identifier: Apache-2.0
// Who has the ports of NFS on this host. Matters where nfs-rdmad runs or is to run; elsewhere it is
// only told. The server's own start says the same (server/port_holder.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "client/doctor/host_checks.h"
#include "client/doctor/rdma_sysfs.h"

namespace nfsrdma::doctor {

namespace {

namespace fs = std::filesystem;

struct Listener {
  std::uint16_t port = 0;
  std::string inode;
};

/// TCP sockets that listen, by /proc/net/tcp and tcp6.
std::vector<Listener> tcp_listeners(const HostView& host) {
  constexpr std::string_view kListen = "0A";
  constexpr std::size_t kLocal = 1, kState = 3, kInode = 9;
  std::vector<Listener> listeners;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    for (const std::string& line : lines_of(host.text(table))) {
      const std::vector<std::string> column = words_of(line);
      if (column.size() <= kInode || column[kState] != kListen) continue;
      const std::size_t colon = column[kLocal].rfind(':');
      if (colon == std::string::npos) continue;
      Listener listener;
      const char* end = column[kLocal].data() + column[kLocal].size();
      if (std::from_chars(column[kLocal].data() + colon + 1, end, listener.port, 16).ptr != end) {
        continue;
      }
      listener.inode = column[kInode];
      listeners.push_back(std::move(listener));
    }
  }
  return listeners;
}

struct Holder {
  std::string pid, name;  // empty: none was found
  bool hidden = false;    // some process would not let us look
  bool listed = false;    // rdma_cm has such a listener, whoever made it
};

bool holds(const HostView& host, const std::string& pid, const std::set<std::string>& inodes,
           bool* hidden) {
  std::error_code error;
  for (fs::directory_iterator it(host.path("/proc/" + pid + "/fd"), error), end;
       !error && it != end; it.increment(error)) {
    std::error_code unread;
    const std::string target = fs::read_symlink(it->path(), unread).string();
    // What may be listed may still not be read: that takes the right to trace the process.
    if (unread == std::errc::permission_denied || unread == std::errc::operation_not_permitted) {
      *hidden = true;
    }
    if (target.starts_with("socket:[") && inodes.contains(target.substr(8, target.size() - 9))) {
      return true;
    }
  }
  if (error == std::errc::permission_denied) *hidden = true;
  return false;
}

Holder holder_of(const HostView& host, const std::set<std::string>& inodes) {
  Holder holder;
  for (const std::string& pid : host.names("/proc")) {
    if (!number_of(pid) || !holds(host, pid, inodes, &holder.hidden)) continue;
    holder.pid = pid;
    holder.name = host.line("/proc/" + pid + "/comm");
    return holder;
  }
  return holder;
}

/// Who listens on a port with rdma_cm; empty: nobody, or it cannot be told.
Holder rdma_holder_of(const HostView& host, std::uint16_t port) {
  const CommandOutput shown = host.command({"rdma", "resource", "show", "cm_id"});
  const std::string wanted = ":" + std::to_string(port);
  for (const std::string& line : lines_of(shown.out)) {
    const std::vector<std::string> words = words_of(line);
    std::map<std::string, std::string> values;
    // "link LINK cm-idn N state LISTEN ps-type TCP pid N comm NAME src-addr ADDRESS ..."
    for (std::size_t i = 0; i + 1 < words.size(); i += 2)
      values[words[i]] = words[i + 1];
    if (values["state"] != "LISTEN" || !values["src-addr"].ends_with(wanted)) continue;
    return {values["pid"], values["comm"], false, true};
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

Remedy end_or_move(const Holder& holder, const char* key) {
  Remedy remedy;
  if (!holder.pid.empty()) {
    remedy.push_back(fmt::format("kill {}    # or systemctl stop its unit", holder.pid));
  }
  remedy.push_back(fmt::format("or set {}=N in /etc/rdma/rdma.conf", key));
  return remedy;
}

bool has_iwarp_device(const HostView& host) {
  const std::vector<SysDevice> devices = sys_devices(host);
  return std::any_of(devices.begin(), devices.end(),
                     [](const SysDevice& device) { return device.iwarp; });
}

/// Of another container, or one that does not let this user look; or a plain socket of the kernel.
void tell_unseen(const HostView& host, const LocalServer& server, std::uint16_t port,
                 const char* key, CheckResult* result) {
  if (!processes_named(host, "nfsd").empty()) {
    result->add(server.running ? Verdict::kNote : gravity(server),
                fmt::format("TCP port {}: no process that is seen from here listens; threads of "
                            "the kernel's NFS server run",
                            port),
                {"systemctl disable --now nfs-server",
                 fmt::format("or set {}=N in /etc/rdma/rdma.conf", key)});
    return;
  }
  result->add(
      server.running ? Verdict::kNote : gravity(server),
      fmt::format("TCP port {}: a process that cannot be seen from here listens", port),
      {fmt::format("ss -ltnp 'sport = :{}'    # as root, on the host of this container", port),
       fmt::format("end that, or set {}=N in /etc/rdma/rdma.conf", key)});
}

/// A listener that has no TCP socket of a process that is seen, or none at all.
void look_at_rdma_listener(const HostView& host, const LocalServer& server, std::uint16_t port,
                           const char* key, bool tcp_socket, CheckResult* result) {
  const Holder holder = rdma_holder_of(host, port);
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
                end_or_move(holder, key));
  } else if (tcp_socket && !holder.listed &&
             (port != server.rdma_port || !has_iwarp_device(host))) {
    // That of NFS over TCP is none of a device's.
    tell_unseen(host, server, port, key, result);
  } else if (tcp_socket) {
    // Such a socket has an inode that no process holds.
    result->add(server.running ? Verdict::kNote : gravity(server),
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
  std::set<std::string> inodes;
  for (const Listener& listener : tcp_listeners(host)) {
    if (listener.port == port) inodes.insert(listener.inode);
  }
  const Holder holder = inodes.empty() ? Holder{} : holder_of(host, inodes);
  if (holder.name == "nfs-rdmad") {
    result->ok(fmt::format("TCP port {}: nfs-rdmad (process {})", port, holder.pid));
  } else if (!holder.pid.empty()) {
    result->add(gravity(server),
                fmt::format("TCP port {}: process {} ({}) listens", port, holder.pid, holder.name),
                end_or_move(holder, key));
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
