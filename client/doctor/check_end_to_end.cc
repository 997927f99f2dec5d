// SPDX-License-Identifier: Apache-2.0
// Does the server answer, over which transport, and what was agreed on? All transports are asked
// before the first of them is judged: that one does not answer is no harm where another does RDMA.
#include <fmt/format.h>

#include <algorithm>

#include "client/doctor/rdma_sysfs.h"
#include "client/doctor/server_visit.h"

namespace nfsrdma::doctor {

namespace {

constexpr std::uint32_t kSmallInline = 1024;  // RFC 8166's, of a peer that does not say its own

std::size_t index_of(TransportKind kind) {
  const auto at = std::find(kTransports.begin(), kTransports.end(), kind);
  return static_cast<std::size_t>(at - kTransports.begin());
}

std::string agreed_text(const ConnectionInfo& c) {
  if (!is_rdma(c.transport)) return "";
  return fmt::format("; inline {} out, {} in, credits {}, read depth {} in, {} out{}{}",
                     c.inline_send, c.inline_recv, c.credits, c.ird, c.ord,
                     c.remote_invalidation ? ", remote invalidation" : "", c.crc ? ", CRC" : "");
}

void tell_answer(const NullAnswer& answer, CheckResult* result) {
  const ConnectionInfo& c = answer.connection;
  result->ok(fmt::format(
      "NULL of NFSv{} answered in {:.2f} ms by {}{}{}", answer.nfs_version, answer.milliseconds,
      c.peer.text(),
      c.device.empty() || c.device == transport_name(c.transport) ? "" : " over " + c.device,
      agreed_text(c)));
  if (!is_rdma(c.transport)) return;
  if (c.inline_send <= kSmallInline) {
    result->note(
        fmt::format("the server takes messages of {} bytes only: it does not say more "
                    "(RFC 8797), and longer ones go by RDMA",
                    c.inline_send));
  }
  // The server reads what we write: our IRD is how many of its Reads may be under way.
  if (c.ird == 1) {
    result->note("the server may have one RDMA Read under way: large writes are slow",
                 {"on the server: raise the read depth of its device or its ORD setting"});
  }
}

CheckResult check_null(ServerVisit& visit, TransportKind kind) {
  CheckResult result;
  if (!has_address(visit, &result)) return result;
  if (!visit.wants(kind)) return result.skipped("not asked for");
  const NullAnswer& answer = null_of(visit, kind);
  const bool alone = !visit.transport_is_judged;
  if (answer.answered) {
    tell_answer(answer, &result);
  } else if (!answer.tried) {
    if (alone && !any_answer(visit)) {
      result.problem(
          fmt::format("{}; and no NFS server answers at {}", answer.error, visit.settings.host),
          silence_remedy(visit, TransportKind::kIwarp));
    } else {
      result.skipped(answer.error);
    }
  } else if (any_rdma(visit) && !alone) {
    result.note(answer.error);
  } else {
    result.add(alone ? Verdict::kProblem : Verdict::kWarning, answer.error,
               silence_remedy(visit, kind));
  }
  return result;
}

}  // namespace

const NullAnswer& null_of(ServerVisit& visit, TransportKind kind) {
  for (std::size_t i = 0; i < kTransports.size(); ++i) {
    if (!visit.nulls[i] && visit.wants(kTransports[i])) {
      visit.nulls[i] = visit.network.null_call(visit.settings, kTransports[i], visit.patience);
    }
  }
  static const NullAnswer kNone{.tried = false, .error = "not asked for"};
  const auto& answer = visit.nulls[index_of(kind)];
  return answer ? *answer : kNone;
}

bool any_rdma(ServerVisit& visit) {
  return null_of(visit, TransportKind::kIwarp).answered ||
         null_of(visit, TransportKind::kVerbs).answered;
}

bool any_answer(ServerVisit& visit) {
  return any_rdma(visit) || null_of(visit, TransportKind::kTcp).answered;
}

Remedy silence_remedy(const ServerVisit& visit, TransportKind kind) {
  if (kind == TransportKind::kVerbs) {
    return {"on both ends: nfs-rdma doctor    # ports, GIDs, firewall (4791/udp of RoCE v2)",
            "rdma resource show cm_id    # on the server: is there a listener?"};
  }
  if (kind == TransportKind::kTcp) {
    return {"on the server: NFSoRDMA_TCP_PORT in /etc/rdma/rdma.conf; or give ?tcpport=N here"};
  }
  return {fmt::format("on the server: nfs-rdma status; ss -ltn 'sport = :{}'",
                      visit.settings.rdma_port)};
}

CheckResult check_null_iwarp(ServerVisit& visit) {
  return check_null(visit, TransportKind::kIwarp);
}
CheckResult check_null_verbs(ServerVisit& visit) {
  return check_null(visit, TransportKind::kVerbs);
}
CheckResult check_null_tcp(ServerVisit& visit) {
  return check_null(visit, TransportKind::kTcp);
}

CheckResult check_transport(ServerVisit& visit) {
  CheckResult result;
  if (!has_address(visit, &result)) return result;
  std::vector<std::string> ways;
  for (TransportKind kind : {TransportKind::kVerbs, TransportKind::kIwarp}) {
    if (null_of(visit, kind).answered) ways.emplace_back(transport_name(kind));
  }
  const bool tcp = null_of(visit, TransportKind::kTcp).answered;
  if (!ways.empty()) {
    return result.ok(
        fmt::format("RDMA works, by {}: a mount takes {}", joined(ways, " and "), ways.front()));
  }
  if (tcp && visit.settings.proto == ProtoChoice::kTcp) return result.ok("TCP, as asked for");
  if (tcp) {
    return result.problem(
        "the server answers by TCP only: data would go without RDMA",
        {"on the server: NFSoRDMA_FABRIC=auto in /etc/rdma/rdma.conf, not none, then systemctl "
         "restart nfs-rdma",
         fmt::format("is the RDMA port right ({})? nfs-rdma doctor HOST:PORT",
                     visit.settings.rdma_port),
         "with Linux's server: echo rdma 20049 > /proc/fs/nfsd/portlist"});
  }
  return result.problem(fmt::format("no NFS server answers at {}", visit.settings.host),
                        {"on the server: systemctl status nfs-rdma; nfs-rdma doctor",
                         fmt::format("are host and port right ({})? nfs-rdma doctor HOST:PORT",
                                     visit.settings.rdma_port)});
}

}  // namespace nfsrdma::doctor
