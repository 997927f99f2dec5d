// SPDX-License-Identifier: Apache-2.0
// What else this host has to do with it: rpcbind, FUSE, the clock, the server's configuration.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "client/doctor/host_checks.h"
#include "config/config.h"
#include "config/default_paths.h"
#include "config/exports_file.h"

namespace nfsrdma::doctor {

namespace {

constexpr std::uint32_t kNfsProgram = 100003;
constexpr std::size_t kMostProblems = 10;
constexpr std::chrono::milliseconds kPatience{5000};

/// Is that where nfs-rdmad listens?
bool is_ours(const LocalServer& server, const RpcbindEntry& entry) {
  if (!server.running) return false;
  return entry.port != 0 &&
         entry.port == (entry.netid.starts_with("rdma") ? server.rdma_port : server.tcp_port);
}

void add_once(std::vector<std::string>* words, const std::string& word) {
  if (std::find(words->begin(), words->end(), word) == words->end()) words->push_back(word);
}

void look_at_entries(const LocalServer& server, const std::vector<RpcbindEntry>& entries,
                     CheckResult* result) {
  std::vector<std::string> ours, others, ports;
  for (const RpcbindEntry& entry : entries) {
    if (entry.program != kNfsProgram) continue;
    const bool own = is_ours(server, entry);
    add_once(own ? &ours : &others, entry.netid);
    if (!own && entry.port != 0) add_once(&ports, std::to_string(entry.port));
  }
  std::sort(ours.begin(), ours.end());
  std::sort(others.begin(), others.end());
  const std::string at =
      ports.empty() ? "" : fmt::format(" (port{} {})", ports.size() == 1 ? "" : "s", joined(ports));
  if (!server.running && !others.empty()) {
    result->ok("rpcbind knows NFS by " + joined(others) + at);
    return;
  }
  if (!ours.empty()) result->ok("rpcbind knows NFS of nfs-rdmad by " + joined(ours));
  if (!others.empty()) {
    result->note(
        fmt::format("rpcbind knows NFS by {} as another server's{}: clients without port= go there",
                    joined(others), at),
        {"rpcinfo    # says who registered it"});
  }
  if (!ours.empty() || !others.empty()) return;
  if (server.running && server.wants_rpcbind) {
    result->warning(
        "rpcbind runs, and knows no NFS server, though nfs-rdmad runs: it registers when "
        "it starts, and only root may",
        {"systemctl restart nfs-rdma"});
  } else {
    result->ok("rpcbind runs; no NFS server is registered");
  }
}

void look_at_device(const HostView& host, CheckResult* result) {
  struct stat st {};
  if (::stat(host.path("/dev/fuse").c_str(), &st) != 0) {
    const bool known = host.text("/proc/filesystems").find("\tfuse\n") != std::string::npos;
    result->problem(
        known ? "/dev/fuse is missing, though the kernel has FUSE: mount.nfs-rdma cannot mount"
              : "/dev/fuse is missing: mount.nfs-rdma cannot mount",
        {"modprobe fuse", "in a container: --device /dev/fuse --cap-add SYS_ADMIN"});
    return;
  }
  constexpr mode_t kForAll = S_IROTH | S_IWOTH;
  if ((st.st_mode & kForAll) == kForAll) {
    result->ok("/dev/fuse is there for everyone");
  } else {
    result->warning(fmt::format("/dev/fuse has mode {:04o}: only root can mount",
                                static_cast<unsigned>(st.st_mode & 07777)),
                    {"chmod 0666 /dev/fuse    # udev's rule 50-udev-default.rules keeps it so"});
  }
}

void look_at_fusermount(const HostView& host, CheckResult* result) {
  const std::string program = host.program("fusermount3");
  struct stat st {};
  if (program.empty() || ::stat(host.path(program).c_str(), &st) != 0) {
    result->add(host.privileged ? Verdict::kNote : Verdict::kWarning,
                "fusermount3 is not installed: only root can mount",
                {"apt install fuse3    # dnf install fuse3"});
  } else if ((st.st_mode & S_ISUID) == 0) {
    result->add(host.privileged ? Verdict::kNote : Verdict::kWarning,
                program + " is not set-user-ID root: only root can mount",
                {"chmod u+s " + program});
  } else {
    result->ok(program + " lets ordinary users mount");
  }
}

void look_at_allow_other(const HostView& host, CheckResult* result) {
  for (const std::string& line : lines_of(host.text("/etc/fuse.conf"))) {
    if (trimmed(line) == "user_allow_other") {
      result->ok("ordinary users may open their mounts to others (user_allow_other)");
      return;
    }
  }
  result->note("a mount of an ordinary user is for that user alone",
               {"echo user_allow_other >> /etc/fuse.conf    # to let them use -o allow_other"});
}

/// Each begins with its file.
void look_at_problems(const ConfigProblems& problems, const std::string& root,
                      CheckResult* result) {
  for (std::size_t i = 0; i < problems.size() && i < kMostProblems; ++i) {
    std::string text = problems[i].text();
    if (!root.empty() && text.starts_with(root)) text.erase(0, root.size());
    result->problem(text, {"nfs-rdmad --check-config"});
  }
}

}  // namespace

CheckResult check_rpcbind(const HostView& host) {
  CheckResult result;
  const LocalServer server = local_server(host);
  if (const auto entries = host.rpcbind()) {
    look_at_entries(server, *entries, &result);
    return result;
  }
  const std::string seen = host.exists("/run/rpcbind.sock")
                               ? "rpcbind's socket is there, and nobody answers"
                               : "rpcbind does not run";
  if (!server.expected()) return result.ok(seen + "; only an NFSv3 server wants it");
  return result.note(
      seen +
          ": clients of NFSv3 find nfs-rdmad with port= and mountport= only, those of NFSv4 need "
          "nothing",
      {"apt install rpcbind    # dnf install rpcbind", "systemctl enable --now rpcbind",
       "systemctl restart nfs-rdma"});
}

CheckResult check_fuse(const HostView& host) {
  CheckResult result;
  look_at_device(host, &result);
  look_at_fusermount(host, &result);
  look_at_allow_other(host, &result);
  return result;
}

CheckResult check_clock(const HostView& host) {
  CheckResult result;
  const ClockState clock = host.clock();
  if (!clock.known) return result.skipped("adjtimex(2) is not allowed here");
  if (clock.synchronised) {
    return result.ok(
        fmt::format("synchronised, within {:.3f} s by its own estimate", clock.estimated_error));
  }
  return result.warning(
      "nothing synchronises this host's clock: times of files and of logs differ between hosts, "
      "and "
      "Kerberos fails beyond five minutes",
      {"apt install chrony    # dnf install chrony", "systemctl enable --now chrony    # chronyd",
       "chronyc tracking"});
}

CheckResult check_configuration(const HostView& host) {
  CheckResult result;
  const LocalServer server = local_server(host);
  std::string exports_file = Config{}.exports_file;
  if (host.exists(kDefaultConfigFile)) {
    const ParsedConfig parsed = read_config_file(host.path(kDefaultConfigFile));
    look_at_problems(parsed.problems, host.root, &result);
    if (parsed.ok()) {
      exports_file = parsed.config.exports_file;
      if (ports_collide(parsed.config)) {
        result.problem(fmt::format("NFSoRDMA_PORT and NFSoRDMA_TCP_PORT are both {}: iWARP listens "
                                   "on a TCP port of its own",
                                   parsed.config.port),
                       {fmt::format("set another for one of them in {}", kDefaultConfigFile)});
      } else {
        result.ok(std::string(kDefaultConfigFile) + " is in order");
      }
      if (!parsed.config.load) {
        result.add(server.configured ? Verdict::kWarning : Verdict::kNote,
                   "NFSoRDMA_LOAD=no: the server does not start, by TCP neither",
                   {"set NFSoRDMA_LOAD=yes in /etc/rdma/rdma.conf and restart nfs-rdma"});
      }
    }
  }
  if (has_exports(host, exports_file)) {
    const ParsedExports parsed = read_exports_files(host.path(exports_file));
    look_at_problems(parsed.problems, host.root, &result);
    if (parsed.ok()) {
      const std::size_t count = parsed.entries.size();
      result.ok(fmt::format("{} is in order: {} director{}", exports_file, count,
                            count == 1 ? "y" : "ies"));
      for (const ExportEntry& entry : parsed.entries) {
        const std::optional<bool> there = host.exists_within(entry.path, kPatience);
        if (!there) {
          result.problem(
              fmt::format("{} exports {}, whose file system does not answer", exports_file,
                          entry.path),
              {"findmnt -T " + shell_quoted(entry.path) + "    # and bring back what that needs"});
          break;  // others may hang as well, and take as long
        }
        if (*there) continue;
        result.warning(
            fmt::format("{} exports {}, which is not there", exports_file, entry.path),
            {"mkdir -p " + shell_quoted(entry.path) + "    # or mount what belongs there"});
      }
    }
  } else if (server.configured) {
    result.problem(fmt::format("nfs-rdma.service is enabled, and {} is missing", exports_file),
                   {fmt::format("echo '/srv/data 192.0.2.0/24(rw)' > {}    # your own directory",
                                exports_file)});
  }
  if (result.findings.empty()) result.skipped("no server is configured on this host");
  return result;
}

}  // namespace nfsrdma::doctor
