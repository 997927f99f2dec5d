// SPDX-License-Identifier: Apache-2.0
// Where things are when nobody says otherwise: one place for server and tools.
#pragma once

#include <string>

namespace nfsrdma {

inline constexpr const char* kDefaultConfigFile = "/etc/rdma/rdma.conf";
inline constexpr const char* kSystemControlSocket = "/run/nfs-rdma/control.sock";

/// kSystemControlSocket for root; for others $XDG_RUNTIME_DIR/nfs-rdma/control.sock, or
/// /tmp/nfs-rdma-UID/control.sock where there is no such directory.
std::string default_control_socket();

/// $STATE_DIRECTORY (systemd), /var/lib/nfs-rdma for root; for others $XDG_STATE_HOME/nfs-rdma or
/// ~/.local/state/nfs-rdma.
std::string default_state_dir();

/// Makes `directory` and what is missing above it, with `mode` for the last one. False with errno
/// set.
bool make_directories(const std::string& directory, unsigned mode);

}  // namespace nfsrdma
