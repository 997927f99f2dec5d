// SPDX-License-Identifier: Apache-2.0
#include "server/trace.h"

#include <algorithm>
#include <cctype>

#include "rpcrdma/base/json_writer.h"
#include "server/shard.h"
#include "xdr/nfs4_operations.h"

namespace nfsrdma {

namespace {

bool has_operation(const CallRecord& record, std::string_view wanted) {
  if (record.procedure == wanted) return true;
  for (std::size_t i = 0; i < record.operation_count; ++i) {
    const std::string_view name =
        xdr::enum_name(static_cast<xdr::nfs_opnum4>(record.operations[i]));
    if (name.size() > 3 && name.substr(3) == wanted) return true;
  }
  return false;
}

}  // namespace

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
  out->fabric = request["fabric"].text();
  out->slower_than_ns = request["slower_than_us"].count() * 1000;
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
  if (!problem.empty() || !TraceFilter::parse(request, &filter, &problem)) {
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
