// SPDX-License-Identifier: Apache-2.0
// What every RDMA device of this host can do: its limits from queries, its optional features by
// trying each on throw-away objects. Needs no privilege, no server and no connection.
#pragma once

#include <infiniband/verbs.h>

#include <span>
#include <string>

#include "rpcrdma/base/device_report.h"

namespace nfsrdma::verbs {

/// What trying brought to light; errno of what failed, 0 when it worked, -1 when it was not tried.
struct DeviceTrials {
  int extended_qp = -1;
  int extended_cq = -1;
  int memory_window = -1;
  int shared_receive_queue = -1;
  int srq_limit = -1;
  int huge_page_memory = -1;  // the host could give us huge pages
  int huge_pages = -1;        // and the device took them
  int inline_send = -1;
  std::uint32_t max_inline = 0;
  int relaxed_ordering = -1;
};

/// Limits and features of a device from what it said and what was tried. Pure: tests describe
/// devices that no lab has.
DeviceReport describe_device(const std::string& name, ibv_transport_type transport,
                             const ibv_device_attr_ex& attr, const DeviceTrials& trials);
/// A port and its GIDs, as queried.
DevicePort describe_port(unsigned number, ibv_transport_type transport, const ibv_port_attr& attr,
                         std::span<const ibv_gid_entry> gids);

/// All devices of this host. Runs on the process's command thread. Takes some milliseconds.
VerbsHostReport probe_host();

}  // namespace nfsrdma::verbs
