// SPDX-License-Identifier: Apache-2.0
// One file, written, read back and removed, over each transport that answers; that the data went by
// RDMA is shown by the connection's counters. And the server's clock, by the time that file got.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "client/doctor/server_visit.h"

namespace nfsrdma::doctor {

namespace {

constexpr double kNoticeable = 2.0;     // seconds
constexpr double kKerberosLimit = 300;  // RFC 4120's usual clock skew

std::size_t index_of(TransportKind kind) {
  const auto at = std::find(kTransports.begin(), kTransports.end(), kind);
  return static_cast<std::size_t>(at - kTransports.begin());
}

Remedy path_remedy(const ServerVisit& visit) {
  return {doctor_command(visit, "--path /EXPORT") +
          "    # an exported directory: it makes a file there and removes it"};
}

void tell_success(const DataAnswer& data, CheckResult* result) {
  const TransferStats& stats = data.connection.stats;
  const double megabytes = static_cast<double>(data.bytes) / 1e6;
  const std::string seen = fmt::format(
      "NFS version {}: {} bytes written ({:.0f} MB/s) and read back ({:.0f} MB/s), checksum "
      "{:016x}; RDMA Read {} bytes, RDMA Write {} bytes, inline {} bytes",
      data.nfs_version, data.bytes, megabytes / std::max(data.write_ms / 1e3, 1e-6),
      megabytes / std::max(data.read_ms / 1e3, 1e-6), data.checksum, stats.rdma_read_bytes,
      stats.rdma_write_bytes, stats.inline_bytes);
  if (!is_rdma(data.connection.transport) ||
      (stats.rdma_read_bytes >= data.bytes && stats.rdma_write_bytes >= data.bytes)) {
    result->ok(seen);
    return;
  }
  result->problem(seen + ": the data did not go by RDMA",
                  {"please report this with the output of nfs-rdma doctor --json"});
}

Remedy failure_remedy(const DataAnswer& data) {
  switch (data.failed) {
    case DataAnswer::Failed::kMount:
      return {"is the path exported to this host? On the server: nfs-rdma.exports(5)"};
    case DataAnswer::Failed::kCreate:
      return {"may this user write there? ls -ld of the directory, root_squash, rw of the export"};
    default:
      return {"on the server: journalctl -u nfs-rdma; on both ends: journalctl -k"};
  }
}

/// After a restart a server lets its clients of NFSv4 reclaim before anybody opens anything new.
bool put_off(const DataAnswer& data) {
  return data.error_number == ETIMEDOUT && data.error.find(": later") != std::string::npos;
}

void tell_failure(const DataAnswer& data, CheckResult* result) {
  if (put_off(data)) {
    result->warning(data.error + ": it was restarted lately and waits for the clients that it had",
                    {"try again in two minutes; vers=3 in a URL does not wait"});
    return;
  }
  switch (data.failed) {
    case DataAnswer::Failed::kCreate:
      if (data.error_number == EROFS || data.error_number == EACCES || data.error_number == EPERM) {
        result->note("READ and WRITE were not tried: " + data.error +
                         "; give a directory that this user may write to",
                     failure_remedy(data));
        return;
      }
      break;
    case DataAnswer::Failed::kRemove:
      result->warning("the file of this test could not be removed: " + data.error,
                      {"remove it: " + data.file});
      return;
    case DataAnswer::Failed::kDiffers:
      result->problem(
          fmt::format("what was read is not what was written (checksum {:016x})", data.checksum),
          {"do not use this connection for data; please report it with the output of "
           "nfs-rdma doctor --json"});
      return;
    default:
      break;
  }
  result->problem(data.error, failure_remedy(data));
}

/// A connection that breaks takes the call that would have removed the file along.
void tell_left_behind(const DataAnswer& data, CheckResult* result) {
  if (!data.left_behind || data.failed == DataAnswer::Failed::kRemove) return;
  result->warning("the file of this test could not be removed", {"remove it: " + data.file});
}

const DataAnswer& data_of(ServerVisit& visit, TransportKind kind) {
  auto& data = visit.data[index_of(kind)];
  if (!data) data = visit.network.exchange(visit.settings, kind, visit.patience);
  return *data;
}

/// False: nothing can be written there, and *result says so, as a problem where no other check
/// does.
bool is_connected(ServerVisit& visit, const NullAnswer& null, TransportKind kind,
                  CheckResult* result) {
  if (null.answered) return true;
  if (visit.transport_is_judged || (!null.tried && any_answer(visit))) {
    result->skipped("no connection that way");
  } else {
    result->problem("no connection that way: " + null.error, silence_remedy(visit, kind));
  }
  return false;
}

CheckResult check_data(ServerVisit& visit, TransportKind kind) {
  CheckResult result;
  if (!has_address(visit, &result)) return result;
  if (!visit.wants(kind)) return result.skipped("not asked for");
  if (!is_connected(visit, null_of(visit, kind), kind, &result)) return result;
  if (!visit.has_path) {
    return result.skipped("no exported directory was given", path_remedy(visit));
  }
  const DataAnswer& data = data_of(visit, kind);
  data.done ? tell_success(data, &result) : tell_failure(data, &result);
  tell_left_behind(data, &result);
  return result;
}

/// Of the exchanges that were made, else of one over the first transport that answers.
const DataAnswer* data_with_time(ServerVisit& visit) {
  for (const auto& data : visit.data) {
    if (data && data->skew) return &*data;
  }
  for (TransportKind kind : kTransports) {
    if (!visit.has_path || visit.data[index_of(kind)] || !null_of(visit, kind).answered) continue;
    if (const DataAnswer& data = data_of(visit, kind); data.skew) return &data;
  }
  return nullptr;
}

}  // namespace

CheckResult check_data_iwarp(ServerVisit& visit) {
  return check_data(visit, TransportKind::kIwarp);
}
CheckResult check_data_verbs(ServerVisit& visit) {
  return check_data(visit, TransportKind::kVerbs);
}
CheckResult check_data_tcp(ServerVisit& visit) {
  return check_data(visit, TransportKind::kTcp);
}

CheckResult check_skew(ServerVisit& visit) {
  CheckResult result;
  if (!has_address(visit, &result)) return result;
  if (!any_answer(visit)) {
    static_cast<void>(is_connected(visit, NullAnswer{.error = "no NFS server answers"},
                                   TransportKind::kIwarp, &result));
    return result;
  }
  const DataAnswer* with_time = data_with_time(visit);
  if (with_time == nullptr) {
    return result.skipped("the server's clock is seen by a file made there, and none was",
                          visit.has_path ? Remedy{} : path_remedy(visit));
  }
  const double skew = *with_time->skew;
  const std::string seen =
      fmt::format("the server's clock is {:.3f} s {} (within {:.3f} s)", std::abs(skew),
                  skew < 0 ? "behind" : "ahead", with_time->skew_uncertainty);
  if (std::abs(skew) <= kNoticeable + with_time->skew_uncertainty) return result.ok(seen);
  const Remedy remedy = {"on both ends: timedatectl; chronyc tracking",
                         "systemctl enable --now chrony    # chronyd"};
  if (std::abs(skew) > kKerberosLimit) {
    return result.problem(seen + ": Kerberos refuses that, make(1) and caches go wrong", remedy);
  }
  return result.warning(seen + ": make(1) and whatever compares times of files goes wrong", remedy);
}

}  // namespace nfsrdma::doctor
