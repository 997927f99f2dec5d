// SPDX-License-Identifier: Apache-2.0
#include "server/call_record.h"

#include <fmt/format.h>

#include "rpcrdma/base/json_writer.h"
#include "xdr/nfs3_constants.h"
#include "xdr/nfs4_operations.h"
#include "xdr/nfs4_status.h"

namespace nfsrdma {

namespace {

std::string_view without(std::string_view text, std::string_view prefix) {
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return text;
}

/// Of a stage that was come to at `begin` and left at `end`.
std::uint64_t microseconds(std::uint64_t begin, std::uint64_t end) {
  return begin == 0 || end < begin ? 0 : (end - begin) / 1000;
}

struct StageTimes {
  std::uint64_t receive, wait, run, commit, total;
};

StageTimes times_of(const CallStages& s) {
  StageTimes times{};
  times.receive = microseconds(s.arrived, s.dispatched);
  times.wait = microseconds(s.dispatched, s.begun);
  times.run = microseconds(s.begun, s.ran);
  times.commit = s.committed == 0 ? 0 : microseconds(s.ran, s.committed);
  times.total = microseconds(s.arrived, s.replied);
  return times;
}

}  // namespace

std::string describe_operations(const CallRecord& record) {
  if (record.operation_count == 0) return std::string(record.procedure);
  std::string text;
  for (std::size_t i = 0; i < record.operation_count; ++i) {
    const std::string_view name =
        xdr::enum_name(static_cast<xdr::nfs_opnum4>(record.operations[i]));
    if (!text.empty()) text += ' ';
    text += name.empty() ? "ILLEGAL" : without(name, "OP_");
  }
  if (record.more_operations != 0) text += fmt::format(" and {} more", record.more_operations);
  return text;
}

std::string describe_status(const CallRecord& record) {
  if (!record.has_status) return "-";
  if (record.status == 0) return "OK";
  std::string_view name;
  if (record.program == "NFSv4") {
    name = without(xdr::enum_name(static_cast<xdr::nfsstat4>(record.status)), "NFS4ERR_");
  } else {
    name = without(xdr::enum_name(static_cast<xdr::nfsstat3>(record.status)), "NFS3ERR_");
  }
  return name.empty() ? std::to_string(record.status) : std::string(name);
}

std::string describe_call(const CallRecord& record) {
  const StageTimes t = times_of(record.stages);
  return fmt::format(
      "{} {} of {} over {} by uid {} took {} us: receive {}, wait {}, run {}{}, commit {}; {}",
      record.program, describe_operations(record), record.peer.text(),
      transport_name(record.transport), record.uid, t.total, t.receive, t.wait, t.run,
      record.on_worker ? " (on a worker)" : "", t.commit, describe_status(record));
}

std::string call_json(const CallRecord& record) {
  const StageTimes t = times_of(record.stages);
  JsonWriter json;
  json.begin_object();
  json.field("time_us", record.wall_ns / 1000);  // since 1970
  json.field("client", record.peer.host_text());
  json.field("peer", record.peer.text());
  json.field("connection", record.connection);
  json.field("fabric", transport_name(record.transport));
  json.field("xid", record.xid);
  json.field("program", record.program);
  json.field("procedure", record.procedure);
  json.field("operations", describe_operations(record));
  json.field("uid", record.uid);
  json.field("status", describe_status(record));
  json.field("request_bytes", record.request_bytes);
  json.field("reply_bytes", record.reply_bytes);
  json.field("on_worker", record.on_worker);
  json.field("receive_us", t.receive);
  json.field("wait_us", t.wait);
  json.field("run_us", t.run);
  json.field("commit_us", t.commit);
  json.field("total_us", t.total);
  json.end_object();
  return json.take();
}

}  // namespace nfsrdma
