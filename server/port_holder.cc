// SPDX-License-Identifier: Apache-2.0
#include "server/port_holder.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <charconv>
#include <fstream>

namespace nfsrdma {

namespace {

constexpr std::uint16_t kNfsPort = 2049, kNfsRdmaPort = 20049;

std::string choose_another(const PortQuestion& question) {
  return fmt::format("choose another with {}{} in rdma.conf",
                     question.option.empty() ? "" : question.option + " or ", question.key);
}

/// "root", "user 1000", "user nobody".
std::string user_text(const std::set<std::string>& users) {
  if (users.size() != 1) return "a user";
  const std::string& number = *users.begin();
  if (number == "0") return "root";
  uid_t uid = 0;
  std::from_chars(number.data(), number.data() + number.size(), uid);
  passwd entry{}, *found = nullptr;
  char text[4096];
  const bool known = ::getpwuid_r(uid, &entry, text, sizeof text, &found) == 0 && found != nullptr;
  return "user " + (known ? std::string(entry.pw_name) : number);
}

/// Linux's server runs, where it listens is not shown, and this is where it usually does.
bool may_be_kernels(const PortQuestion& question, const PortFacts& facts) {
  const bool usual =
      question.port == kNfsRdmaPort || (question.tcp_socket && question.port == kNfsPort);
  return usual && facts.others.kernel && !facts.kernel_ports_known;
}

std::string most_likely_kernels(const PortQuestion& question) {
  return "the kernel's NFS server runs here and has it, most likely: stop that (systemctl stop "
         "nfs-server) or " +
         choose_another(question);
}

/// Somebody listens whose descriptors may not be looked at.
std::string hidden_holder(const PortQuestion& question, const PortFacts& facts) {
  const std::string look =
      facts.as_root ? fmt::format(
                          "this service may not look which one, 'ss -ltnp sport = :{}' in "
                          "a shell of root does",
                          question.port)
                    : fmt::format("as root 'ss -ltnp sport = :{}' tells which one", question.port);
  const bool of_root = facts.users.empty() || facts.users.contains("0");
  if (of_root && may_be_kernels(question, facts)) {
    return most_likely_kernels(question) +
           fmt::format(
               "; 'ss -ltnp sport = :{}' in a shell of root names a process, should one "
               "have it",
               question.port);
  }
  if (facts.cgroup && facts.cgroup->processes.size() == 1 && !facts.cgroup->more) {
    return fmt::format("process {}, the one of {}, has it: end that or {}",
                       facts.cgroup->processes.front(), facts.cgroup->name,
                       choose_another(question));
  }
  if (facts.cgroup) {
    return fmt::format("a process of {} in {} has it, one of {}{} ({}): end that or {}",
                       user_text(facts.users), facts.cgroup->name,
                       fmt::join(facts.cgroup->processes, ", "),
                       facts.cgroup->more ? " and others" : "", look, choose_another(question));
  }
  if (of_root && !facts.others.daemons.empty()) {
    return fmt::format(
        "a process of root has it, most likely the other nfs-rdmad that runs (process {}; {}): end "
        "that or {}",
        facts.others.daemons.front(), look, choose_another(question));
  }
  return fmt::format("a process of {} has it ({}): end that or {}", user_text(facts.users), look,
                     choose_another(question));
}

}  // namespace

PortFacts port_facts(const PortQuestion& question) {
  PortFacts facts;
  std::ifstream list(question.proc + "/fs/nfsd/portlist");
  facts.kernel_ports_known = list.is_open();
  const std::string wanted = " " + std::to_string(question.port);
  for (std::string line; !facts.kernel_line && std::getline(list, line);) {
    if (line.ends_with(wanted)) facts.kernel_line = line;
  }
  facts.inodes = listening_inodes(question.proc, question.port);
  facts.users = listening_users(question.proc, question.port);
  facts.holder = holder_of_sockets(question.proc, facts.inodes);
  if (facts.holder.hidden && facts.holder.pid.empty()) {
    for (const std::uint64_t id : cgroups_of_listeners(question.port)) {
      if (!facts.cgroup) facts.cgroup = find_cgroup(question.cgroups, question.proc, id);
    }
  }
  facts.others = other_servers(question.proc);
  facts.as_root = ::geteuid() == 0;
  return facts;
}

std::string port_holder(const PortQuestion& question, const PortFacts& facts) {
  if (facts.kernel_line) {
    return fmt::format(
        "the kernel's NFS server has it ('{}' in /proc/fs/nfsd/portlist): stop that (systemctl "
        "stop "
        "nfs-server) or {}",
        *facts.kernel_line, choose_another(question));
  }
  if (!question.tcp_socket && question.our_iwarp_engine) {
    return "our own iwarp engine listens there and serves iWARP peers; siw and other iWARP devices "
           "would need the same TCP port. To use the devices instead: --fabric verbs";
  }
  if (!facts.holder.pid.empty()) {
    return fmt::format("process {} ({}) has it: end that or {}", facts.holder.pid,
                       facts.holder.name, choose_another(question));
  }
  if (!facts.inodes.empty()) {
    if (facts.holder.hidden) return hidden_holder(question, facts);
    if (may_be_kernels(question, facts)) return most_likely_kernels(question);
    return fmt::format(
        "a listener inside the kernel has it, of siw or another iWARP device ('rdma resource "
        "show "
        "cm_id' says for whom): end that or {}",
        choose_another(question));
  }
  if (!question.tcp_socket) {
    if (may_be_kernels(question, facts)) {
      return most_likely_kernels(question) + "; 'rdma resource show cm_id' tells for certain";
    }
    return fmt::format("another RDMA server has it ('rdma resource show cm_id' says which); {}",
                       choose_another(question));
  }
  return "nothing is seen to listen there; " + choose_another(question);
}

}  // namespace nfsrdma
