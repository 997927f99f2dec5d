// SPDX-License-Identifier: Apache-2.0
// The checks of this host: one function each, the rows of table.cc. None changes anything.
#pragma once

#include "client/doctor/check.h"
#include "client/doctor/host_view.h"

namespace nfsrdma::doctor {

// check_devices.cc
CheckResult check_devices(const HostView& host);
CheckResult check_ports(const HostView& host);
CheckResult check_link_layer(const HostView& host);
CheckResult check_gids(const HostView& host);
CheckResult check_software_devices(const HostView& host);
// check_interfaces.cc
CheckResult check_ipoib(const HostView& host);
CheckResult check_mtu(const HostView& host);
CheckResult check_numa(const HostView& host);
// check_memory.cc
CheckResult check_memlock(const HostView& host);
// check_modules.cc
CheckResult check_modules(const HostView& host);
// check_port_use.cc
CheckResult check_kernel_server(const HostView& host);
CheckResult check_listeners(const HostView& host);
// check_firewall.cc
CheckResult check_firewall(const HostView& host);
// check_services.cc
CheckResult check_rpcbind(const HostView& host);
CheckResult check_fuse(const HostView& host);
CheckResult check_clock(const HostView& host);
CheckResult check_configuration(const HostView& host);

}  // namespace nfsrdma::doctor
