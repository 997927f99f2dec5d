// SPDX-License-Identifier: Apache-2.0
// Who has a port that we cannot listen on, for the message about it. The service may not look into
// other processes: then what can be seen without that is told, and how to see the rest.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "rpcrdma/base/listening_sockets.h"
#include "server/listener_cgroup.h"
#include "server/other_servers.h"

namespace nfsrdma {

struct PortQuestion {
  std::uint16_t port = 0;
  bool tcp_socket = true;             // a TCP socket of ours, or a listener of rdma_cm
  bool our_iwarp_engine = false;      // listens on the port already
  std::string option = "--port";      // that chooses another; empty: none does
  std::string key = "NFSoRDMA_PORT";  // of rdma.conf, that does
  std::string proc = "/proc";
  std::string cgroups = "/sys/fs/cgroup";
};

/// What can be seen from here.
struct PortFacts {
  bool kernel_ports_known = false;         // /proc/fs/nfsd/portlist can be read
  std::optional<std::string> kernel_line;  // of that, with the port
  std::set<std::string> inodes, users;     // of TCP sockets that listen there
  SocketHolder holder;
  std::optional<Cgroup> cgroup;  // where that may not be looked at: in which it is
  OtherServers others;
  bool as_root = false;
};
PortFacts port_facts(const PortQuestion& question);

/// One clause: who has it, and what to do.
std::string port_holder(const PortQuestion& question, const PortFacts& facts);
inline std::string port_holder(const PortQuestion& question) {
  return port_holder(question, port_facts(question));
}

}  // namespace nfsrdma
