// SPDX-License-Identifier: Apache-2.0
// Who has a port that we cannot listen on, for the message about it.
#pragma once

#include <cstdint>
#include <string>

namespace nfsrdma {

struct PortQuestion {
  std::uint16_t port = 0;
  bool tcp_socket = true;         // a TCP socket of ours, or a listener of rdma_cm
  bool our_iwarp_engine = false;  // listens on the port already
  std::string option = "--port";  // that chooses another
  std::string proc = "/proc";
};

/// One clause: who has it, and what to do. Looks at the kernel NFS server's ports, at listening TCP
/// sockets, and at the processes that hold them.
std::string port_holder(const PortQuestion& question);

}  // namespace nfsrdma
