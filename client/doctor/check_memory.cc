// SPDX-License-Identifier: Apache-2.0
// Locked memory: registering memory with an RDMA device pins it, and the kernel counts that.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client/doctor/host_checks.h"
#include "client/doctor/rdma_sysfs.h"

namespace nfsrdma::doctor {

namespace {

constexpr std::uint64_t kComfortable = std::uint64_t{64} << 20;  // what a mount may expose at once
constexpr unsigned kCapIpcLock = 14;

struct Limit {
  bool known = false;
  bool unlimited = false;
  std::uint64_t bytes = 0;

  bool little() const { return known && !unlimited && bytes < kComfortable; }
  std::string text() const {
    if (!known) return "unknown";
    return unlimited ? "unlimited" : fmt::format("{} KiB", bytes >> 10);
  }
};

Limit limit_of(const std::string& text) {
  Limit limit;
  limit.unlimited = text == "unlimited" || text == "infinity";
  const auto bytes = number_of(text);
  limit.known = limit.unlimited || bytes.has_value();
  limit.bytes = bytes.value_or(0);
  return limit;
}

Limit limit_of_process(const HostView& host, const std::string& pid) {
  constexpr std::string_view kRow = "Max locked memory";
  for (const std::string& line : lines_of(host.text("/proc/" + pid + "/limits"))) {
    if (!line.starts_with(kRow)) continue;
    const std::vector<std::string> words = words_of(std::string_view(line).substr(kRow.size()));
    if (!words.empty()) return limit_of(words.front());
  }
  return {};
}

/// CAP_IPC_LOCK: the limit does not bind it.
bool may_lock(const HostView& host, const std::string& pid) {
  constexpr std::string_view kKey = "CapEff:";
  for (const std::string& line : lines_of(host.text("/proc/" + pid + "/status"))) {
    if (!line.starts_with(kKey)) continue;
    const std::string hex = trimmed(std::string_view(line).substr(kKey.size()));
    // The digit with bit 14 is the fourth from the end.
    constexpr std::size_t kDigit = kCapIpcLock / 4;
    if (hex.size() <= kDigit) return false;
    const char c = hex[hex.size() - 1 - kDigit];
    const int value = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    return ((value >> (kCapIpcLock % 4)) & 1) != 0;
  }
  return false;
}

/// What a path of a container's own cgroup or of its root file system gives away.
std::string container_in(const std::string& text) {
  constexpr std::pair<const char*, const char*> kSigns[] = {{"kubepods", "Kubernetes"},
                                                            {"/kubelet/pods/", "Kubernetes"},
                                                            {"crio-", "CRI-O"},
                                                            {"containerd", "containerd"},
                                                            {"/docker", "Docker"},
                                                            {"libpod", "Podman"},
                                                            {"/containers/storage", "Podman"},
                                                            {"/lxc", "LXC"}};
  for (const auto& [sign, name] : kSigns) {
    if (text.find(sign) != std::string::npos) return name;
  }
  return "";
}

/// By the mounts that a runtime makes for a container. Those of others, which the host of
/// containers sees, are elsewhere.
std::string container_by_mounts(const HostView& host) {
  constexpr std::size_t kMountPoint = 4;
  for (const std::string& line : lines_of(host.text("/proc/self/mountinfo"))) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() <= kMountPoint) continue;
    const std::string& at = words[kMountPoint];
    if (at != "/" && at != "/etc/hosts" && at != "/etc/hostname" && at != "/etc/resolv.conf") {
      continue;
    }
    if (std::string name = container_in(line); !name.empty()) return name;
  }
  return "";
}

bool in_pod(const HostView& host) {
  return host.exists("/run/secrets/kubernetes.io") ||
         host.exists("/var/run/secrets/kubernetes.io") ||
         host.text("/proc/self/environ").find("KUBERNETES_SERVICE_HOST=") != std::string::npos;
}

std::string container_of(const HostView& host) {
  if (in_pod(host)) return "Kubernetes";
  if (host.exists("/.dockerenv")) return "Docker";
  if (host.exists("/run/.containerenv")) return "Podman";
  // What systemd found as process 1, and what systemd-nspawn says where that runs something else.
  for (const char* file : {"/run/systemd/container", "/run/host/container-manager"}) {
    if (std::string name = host.line(file); !name.empty()) return name;
  }
  if (std::string name = container_in(host.text("/proc/1/cgroup")); !name.empty()) return name;
  return container_by_mounts(host);
}

Remedy user_remedy(const std::string& container) {
  if (container.empty()) {
    return {"ulimit -l $(ulimit -H -l)    # in a shell, as far as the hard limit goes",
            "for logins, as root:",
            "echo '* - memlock unlimited' > /etc/security/limits.d/90-nfs-rdma.conf"};
  }
  const std::string start = "start the container with a higher limit:";
  if (container == "Docker") return {start, "docker run --ulimit memlock=-1 ..."};
  if (container == "Podman" || container == "podman") {
    return {start, "podman run --ulimit memlock=-1:-1 ..."};
  }
  if (container == "systemd-nspawn") {
    return {start,
            "printf '[Exec]\\nLimitMEMLOCK=infinity\\n' >> /etc/systemd/nspawn/MACHINE.nspawn    "
            "# on its host"};
  }
  if (container == "Kubernetes" || container == "containerd" || container == "CRI-O") {
    const char* unit = container == "CRI-O" ? "crio.service" : "containerd.service";
    return {
        "give the pod the capability IPC_LOCK (securityContext.capabilities.add), or on the "
        "node:",
        fmt::format("mkdir -p /etc/systemd/system/{}.d", unit),
        fmt::format("printf '[Service]\\nLimitMEMLOCK=infinity\\n' > "
                    "/etc/systemd/system/{}.d/memlock.conf",
                    unit),
        fmt::format("systemctl daemon-reload && systemctl restart {}", unit)};
  }
  return {start + " RLIMIT_MEMLOCK, in the configuration of " + container};
}

/// siw counts what root locks, too, before Linux 6.8.
bool binds_root(const HostView& host) {
  const std::vector<SysDevice> devices = sys_devices(host);
  if (devices.empty() || !std::ranges::all_of(devices, [](const SysDevice& device) {
        return device.driver == "siw";
      })) {
    return false;
  }
  constexpr std::uint64_t kMajor = 6, kMinor = 8;
  const std::string& release = host.kernel_release;  // "6.1.0-56-amd64"
  const std::size_t first = release.find('.');
  if (first == std::string::npos) return false;
  const std::size_t second = release.find_first_not_of("0123456789", first + 1);
  const auto major = number_of(release.substr(0, first));
  const auto minor = number_of(release.substr(first + 1, second - first - 1));
  return major && minor && std::pair(*major, *minor) < std::pair(kMajor, kMinor);
}

void look_at_processes(const HostView& host, const char* name, bool devices, CheckResult* result) {
  for (const Process& process : processes_named(host, name)) {
    const Limit limit = limit_of_process(host, process.pid);
    const std::string seen = fmt::format("{} (process {}): {}", name, process.pid, limit.text());
    if (!limit.known) {
      result->note(seen + ": only root may look");
    } else if (!limit.little() || may_lock(host, process.pid)) {
      result->ok(seen + (limit.little() ? ", which CAP_IPC_LOCK lifts" : ""));
    } else {
      result->add(
          devices ? Verdict::kProblem : Verdict::kNote, seen + " may be locked",
          {fmt::format("prlimit --pid {} --memlock=unlimited    # until it ends", process.pid),
           "and raise the limit where it is started from (LimitMEMLOCK= of a unit)"});
    }
  }
}

void look_at_unit(const HostView& host, bool devices, CheckResult* result) {
  const CommandOutput shown = host.command(
      {"systemctl", "show", "nfs-rdma.service", "-p", "LoadState", "-p", "LimitMEMLOCK"});
  if (!shown.good()) return;  // no systemd here
  bool loaded = false;
  Limit limit;
  for (const std::string& line : lines_of(shown.out)) {
    if (line == "LoadState=loaded") loaded = true;
    if (line.starts_with("LimitMEMLOCK=")) limit = limit_of(line.substr(line.find('=') + 1));
  }
  if (!loaded || !limit.known) return;
  // systemd has no word of its own for the kernel's "no limit" in some versions: 2^64 - 1.
  if (limit.bytes == UINT64_MAX) limit.unlimited = true;
  const std::string seen = "nfs-rdma.service: LimitMEMLOCK is " + limit.text();
  if (!limit.little()) {
    result->ok(seen);
    return;
  }
  result->add(devices ? Verdict::kProblem : Verdict::kNote, seen,
              {"mkdir -p /etc/systemd/system/nfs-rdma.service.d",
               "printf '[Service]\\nLimitMEMLOCK=infinity\\n' > "
               "/etc/systemd/system/nfs-rdma.service.d/memlock.conf",
               "systemctl daemon-reload && systemctl restart nfs-rdma"});
}

void look_at_limits(const HostView& host, const std::string& file, CheckResult* result) {
  for (const std::string& limit : lines_of(host.text(file))) {
    const std::vector<std::string> words = words_of(limit);
    const bool bounded = std::any_of(words.begin(), words.end(), [](const std::string& word) {
      return word.find('=') != std::string::npos && !word.ends_with("=max");
    });
    if (!bounded) continue;
    result->note(
        fmt::format("the cgroup limits RDMA: {} ({})", limit, file),
        {fmt::format("echo '{} hca_handle=max hca_object=max' > {}", words.front(), file)});
  }
}

/// The RDMA controller of cgroups: how many handles and objects of a device a container may have.
/// What a group above allows counts, too.
void look_at_cgroup(const HostView& host, CheckResult* result) {
  for (const std::string& line : lines_of(host.text("/proc/self/cgroup"))) {
    // "0::/PATH", of version 1 "5:rdma:/PATH".
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers != "rdma") continue;
    const std::string base = controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/rdma";
    for (std::string path = line.substr(second + 1); path.size() > 1; path.erase(path.rfind('/'))) {
      look_at_limits(host, base + path + "/rdma.max", result);
      if (path.find('/') == std::string::npos) break;
    }
  }
}

}  // namespace

CheckResult check_memlock(const HostView& host) {
  CheckResult result;
  const bool devices = !host.names("/sys/class/infiniband").empty();
  const RdmaHostReport report = host.rdma_host();
  const std::string container = container_of(host);
  const Limit mine{true, report.verbs.memlock_unlimited, report.verbs.memlock_limit};
  const std::string seen =
      fmt::format("this user{}: {}",
                  container.empty() ? "" : ", in a container (" + container + ")", mine.text());
  if (!mine.little()) {
    result.ok(seen);
  } else if (report.verbs.memlock_exempt && !binds_root(host)) {
    result.ok(seen + ", which CAP_IPC_LOCK lifts (for siw since Linux 6.8 only)");
  } else if (devices) {
    result.problem(
        seen +
            " may be locked, less than the 64 MiB that a mount over an RDMA device "
            "wants" +
            (report.verbs.memlock_exempt ? "; siw counts root's, too, before Linux 6.8" : ""),
        user_remedy(container));
  } else {
    result.note(seen + "; matters with an RDMA device only, and there is none");
  }
  look_at_processes(host, "nfs-rdmad", devices, &result);
  look_at_processes(host, "mount.nfs-rdma", devices, &result);
  look_at_unit(host, devices, &result);
  look_at_cgroup(host, &result);
  return result;
}

}  // namespace nfsrdma::doctor
