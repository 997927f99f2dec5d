// SPDX-License-Identifier: Apache-2.0
#include "client/tool/device_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/tool/format.h"
#include "client/tool/status_verdict.h"
#include "rpcrdma/base/json_writer.h"

namespace nfsrdma::tool {
namespace {

constexpr const char* kEngine =
    "iWARP in this process, over any TCP route: no device, no privilege; talks to itself, to siw "
    "and to iWARP adapters";

const char* probed_text(Probed probed) {
  switch (probed) {
    case Probed::kYes:
      return "yes";
    case Probed::kNo:
      return "no";
    case Probed::kUnknown:
      break;
  }
  return "unknown";
}

std::string joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Devices say 2^64 - 1 and the like when there is no limit.
std::string size_text(std::uint64_t bytes) {
  return bytes >= std::uint64_t{1} << 60 ? "unlimited" : bytes_text(static_cast<double>(bytes));
}

std::string memlock_text(const VerbsHostReport& verbs) {
  if (verbs.memlock_unlimited) return "unlimited";
  const std::string limit = size_text(verbs.memlock_limit);
  return verbs.memlock_exempt
             ? limit + ", which binds this user with siw before Linux 6.8 only (CAP_IPC_LOCK)"
             : limit;
}

std::string port_text(const DevicePort& port) {
  std::vector<std::string> gids;
  for (const DevicePort::GidType& type : port.gid_types)
    gids.push_back(fmt::format("{} {}", type.count, type.name));
  std::string text = fmt::format("  port {}: {}", port.number, port.state);
  if (!port.link_layer.empty()) text += ", " + port.link_layer;
  if (port.mtu != 0) text += fmt::format(", MTU {} of {}", port.mtu, port.max_mtu);
  text += ", GIDs: " + (gids.empty() ? "none" : joined(gids));
  if (!port.networks.empty()) text += ", on " + joined(port.networks);
  return text + "\n";
}

std::string device_text(const DeviceReport& device) {
  if (!device.problem.empty()) return fmt::format("{}: {}\n", device.name, device.problem);
  std::string text = fmt::format("{}: {}", device.name, device.kind);
  if (!device.firmware.empty()) text += ", firmware " + device.firmware;
  text += "\n";
  for (const DevicePort& port : device.ports)
    text += port_text(port);
  text += fmt::format(
      "  RDMA Reads: {} from a peer, {} of ours at a time; SGEs: {}, in a Read {}\n",
      device.max_qp_rd_atom, device.max_qp_init_rd_atom, device.max_sge, device.max_sge_read);
  text += fmt::format(
      "  regions: {} of at most {}; work requests: {}, completions: {}, shared receives: {}\n",
      device.max_mr, size_text(device.max_mr_size), device.max_qp_wr, device.max_cqe,
      device.max_srq_wr);
  text += fmt::format("  {:<24}{:<9}{:<6}{}\n", "feature", "there", "used", "note");
  for (const DeviceFeature& feature : device.features) {
    text += fmt::format("  {:<24}{:<9}{:<6}{}\n", feature.title, probed_text(feature.there),
                        feature.used ? "yes" : "no", feature.note);
  }
  return text;
}

void write_port(JsonWriter& json, const DevicePort& port) {
  json.begin_object();
  json.field("port", port.number);
  json.field("state", port.state);
  json.field("active", port.active);
  json.field("link_layer", port.link_layer);
  json.field("mtu", port.mtu);
  json.field("max_mtu", port.max_mtu);
  json.key("gid_types");
  json.begin_object();
  for (const DevicePort::GidType& type : port.gid_types)
    json.field(type.name, type.count);
  json.end_object();
  json.list("networks", port.networks);
  json.end_object();
}

void write_device(JsonWriter& json, const DeviceReport& device) {
  json.begin_object();
  json.field("name", device.name);
  json.field("usable", device.usable());
  if (!device.problem.empty()) {
    json.field("problem", device.problem);
    json.end_object();
    return;
  }
  json.field("kind", device.kind);
  json.field("firmware", device.firmware);
  json.field("max_sge", device.max_sge);
  json.field("max_sge_read", device.max_sge_read);
  json.field("max_qp_rd_atom", device.max_qp_rd_atom);
  json.field("max_qp_init_rd_atom", device.max_qp_init_rd_atom);
  json.field("max_mr_size", device.max_mr_size);
  json.field("max_mr", device.max_mr);
  json.field("max_qp_wr", device.max_qp_wr);
  json.field("max_cqe", device.max_cqe);
  json.field("max_srq_wr", device.max_srq_wr);
  json.field("max_inline", device.max_inline);
  json.key("features");
  json.begin_object();
  for (const DeviceFeature& feature : device.features) {
    json.key(feature.key);
    json.begin_object();
    json.key("there");
    if (feature.there == Probed::kUnknown) {
      json.null();
    } else {
      json.value(feature.there == Probed::kYes);
    }
    json.field("used", feature.used);
    json.field("note", feature.note);
    json.end_object();
  }
  json.end_object();
  json.key("ports");
  json.begin_array();
  for (const DevicePort& port : device.ports)
    write_port(json, port);
  json.end_array();
  json.end_object();
}

}  // namespace

int devices_verdict(const RdmaHostReport& host) {
  if (!host.verbs.problem.empty()) return kNoConnection;
  const bool any = std::any_of(host.verbs.devices.begin(), host.verbs.devices.end(),
                               [](const DeviceReport& device) { return device.usable(); });
  return any ? kAllRdma : kNoConnection;
}

std::string devices_text(const RdmaHostReport& host) {
  std::string text;
  for (const DeviceReport& device : host.verbs.devices)
    text += device_text(device);
  if (!host.verbs.problem.empty()) {
    text += fmt::format("RDMA adapters (verbs) cannot be used: {}.\n", host.verbs.problem);
    for (const std::string& remedy : host.verbs.remedies)
      text += fmt::format("  {}\n", remedy);
  } else if (devices_verdict(host) != kAllRdma) {
    text += "No device has an active port: is the network interface up?\n";
  }
  text += fmt::format("Locked memory: {}.\n", memlock_text(host.verbs));
  if (!host.verbs.memlock_remedy.empty()) {
    text += fmt::format("  That is little: {}.\n", host.verbs.memlock_remedy);
  }
  text += fmt::format("iwarp engine: {}; {} RDMA Reads at a time.\n", kEngine,
                      host.iwarp_inbound_reads);
  return text;
}

std::string devices_json(const RdmaHostReport& host) {
  JsonWriter json;
  json.begin_object();
  json.field("version", 1);
  json.key("devices");
  json.begin_array();
  for (const DeviceReport& device : host.verbs.devices)
    write_device(json, device);
  json.end_array();
  json.key("verbs");
  json.begin_object();
  json.field("usable", devices_verdict(host) == kAllRdma);
  json.field("problem", host.verbs.problem);
  json.list("remedies", host.verbs.remedies);
  json.key("memlock_bytes");
  if (host.verbs.memlock_unlimited) {
    json.null();
  } else {
    json.value(host.verbs.memlock_limit);
  }
  json.field("memlock_exempt", host.verbs.memlock_exempt);
  json.field("memlock_remedy", host.verbs.memlock_remedy);
  json.end_object();
  json.key("iwarp_engine");
  json.begin_object();
  json.field("usable", true);
  json.field("max_inbound_reads", host.iwarp_inbound_reads);
  json.field("about", kEngine);
  json.end_object();
  json.end_object();
  return json.take();
}

}  // namespace nfsrdma::tool
