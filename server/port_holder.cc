// SPDX-License-Identifier: Apache-2.0
#include "server/port_holder.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>

#include "rpcrdma/base/listening_sockets.h"

namespace nfsrdma {

namespace {

std::optional<std::string> nfsd_line(const PortQuestion& question) {
  std::ifstream list(question.proc + "/fs/nfsd/portlist");
  const std::string wanted = " " + std::to_string(question.port);
  std::string line;
  while (std::getline(list, line)) {
    if (line.ends_with(wanted)) return line;
  }
  return {};
}

std::string choose_another(const PortQuestion& question) {
  return "choose another with " + question.option;
}

}  // namespace

std::string port_holder(const PortQuestion& question) {
  if (auto line = nfsd_line(question)) {
    return fmt::format(
        "the kernel's NFS server has it ('{}' in /proc/fs/nfsd/portlist): stop that (systemctl "
        "stop "
        "nfs-server) or {}",
        *line, choose_another(question));
  }
  if (!question.tcp_socket && question.our_iwarp_engine) {
    return "our own iwarp engine listens there and serves iWARP peers; siw and other iWARP devices "
           "would need the same TCP port. To use the devices instead: --fabric verbs";
  }
  const std::set<std::string> inodes = listening_inodes(question.proc, question.port);
  if (!inodes.empty()) {
    const SocketHolder holder = holder_of_sockets(question.proc, inodes);
    if (!holder.pid.empty()) {
      return fmt::format("process {} ({}) has it: end that or {}", holder.pid, holder.name,
                         choose_another(question));
    }
    if (!holder.hidden) {
      return fmt::format(
          "a listener inside the kernel has it, of siw or another iWARP device ('rdma resource "
          "show "
          "cm_id' says for whom): end that or {}",
          choose_another(question));
    }
    return fmt::format(
        "who has it cannot be seen from here (as root: 'ss -ltnp'; 'rdma resource show cm_id'); {}",
        choose_another(question));
  }
  if (!question.tcp_socket) {
    return fmt::format("another RDMA server has it ('rdma resource show cm_id' says which); {}",
                       choose_another(question));
  }
  return "nothing is seen to listen there; " + choose_another(question);
}

}  // namespace nfsrdma
