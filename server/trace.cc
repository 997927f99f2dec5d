// SPDX-License-Identifier: Apache-2.0
#include "server/trace.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "config/edit_distance.h"
#include "rpcrdma/base/json_writer.h"
#include "server/fabric_filter.h"
#include "server/shard.h"
#include "xdr/nfs4_operations.h"

namespace nfsrdma {

namespace {

constexpr std::string_view kOperationPrefix = "OP_";

bool has_operation(const CallRecord& record, std::string_view wanted) {
  if (record.procedure == wanted) return true;
  for (std::size_t i = 0; i < record.operation_count; ++i) {
    const std::string_view name =
        xdr::enum_name(static_cast<xdr::nfs_opnum4>(record.operations[i]));
    if (name.size() > kOperationPrefix.size() && name.substr(kOperationPrefix.size()) == wanted)
      return true;
  }
  return false;
}

}  // namespace

bool TraceFilter::names_one_of(std::span<const ProgramTable> programs, std::string* problem) const {
  if (operation.empty()) return true;
  std::vector<std::string_view> known;
  for (const ProgramTable& table : programs) {
    for (const ProcedureRow& row : table.procedures)
      known.push_back(row.name);
  }
  for (const xdr::EnumName& entry : xdr::enum_names(xdr::nfs_opnum4{}))
    known.push_back(entry.name.substr(kOperationPrefix.size()));
  if (std::ranges::find(known, operation) != known.end()) return true;
  *problem = "operation: '" + operation + "' is no procedure or operation of this server";
  const std::string_view nearest = nearest_word(operation, known);
  if (!nearest.empty()) *problem += ", did you mean " + std::string(nearest) + "?";
  return false;
}

bool TraceFilter::matches(const CallRecord& record) const {
  if (only_errors && (!record.has_status || record.status == 0)) return false;
  if (record.total_ns() < slower_than_ns) return false;
  if (!fabric.empty() && fabric != transport_name(record.transport)) return false;
  if (!operation.empty() && !has_operation(record, operation)) return false;
  return client.empty() || client == record.peer.host_text();
}

bool TraceFilter::parse(const JsonValue& request, TraceFilter* out, std::string* problem) {
  out->client = request["client"].text();
  if (!out->client.empty()) {
    auto address = SocketAddress::parse(out->client, 0);
    if (!address.ok()) {
      *problem = "client: '" + out->client + "' is no numeric address";
      return false;
    }
    out->client = address->host_text();
  }
  out->operation = request["operation"].text();
  std::ranges::transform(out->operation, out->operation.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (!parse_fabric(request, &out->fabric, problem)) return false;
  constexpr std::uint64_t kNsOfUs = 1000;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / kNsOfUs;
  out->slower_than_ns = std::min(request["slower_than_us"].count(), kMost) * kNsOfUs;
  out->only_errors = request["errors"].truth();
  return true;
}

Trace::~Trace() {
  *alive_ = false;
  if (!watchers_.empty()) tap(false);
  for (Watcher& watcher : watchers_)
    watcher.stream->finish();
}

void Trace::watch(const JsonValue& request, std::shared_ptr<ControlStream> stream) {
  TraceFilter filter;
  std::string problem;
  if (watchers_.size() >= kMostWatchers) problem = "as many watch as may";
  if (!problem.empty() || !TraceFilter::parse(request, &filter, &problem) ||
      !filter.names_one_of(programs_, &problem)) {
    stream->send(control_error(problem) + "\n");
    stream->finish();
    return;
  }
  stream->on_gone([this, raw = stream.get(), alive = alive_] {
    if (*alive) forget(raw);
  });
  watchers_.push_back({std::move(stream), std::move(filter)});
  if (watchers_.size() == 1) tap(true);
}

void Trace::forget(const ControlStream* stream) {
  std::erase_if(watchers_, [stream](const Watcher& w) { return w.stream.get() == stream; });
  if (watchers_.empty()) tap(false);
}

void Trace::tap(bool on) {
  for (const auto& shard : shards_) {
    if (!on) {
      shard->tap(nullptr);
      continue;
    }
    shard->tap([this, alive = alive_, &loop = loop_](std::shared_ptr<const CallBatch> batch) {
      loop.post([this, alive, batch = std::move(batch)] {
        if (*alive) take(*batch);
      });
    });
  }
}

void Trace::take(const CallBatch& batch) {
  for (Watcher& watcher : watchers_) {
    watcher.lost += batch.lost;
    for (const CallRecord& record : batch.calls) {
      if (watcher.filter.matches(record)) tell(watcher, record);
    }
  }
}

/// Who reads too slowly is told how many calls it did not see.
void Trace::tell(Watcher& watcher, const CallRecord& record) {
  if (watcher.lost > 0) {
    JsonWriter json;
    json.begin_object();
    json.field("lost", watcher.lost);
    json.end_object();
    if (watcher.stream->send(json.take() + "\n")) watcher.lost = 0;
  }
  if (!watcher.stream->send(call_json(record) + "\n")) ++watcher.lost;
}

}  // namespace nfsrdma
