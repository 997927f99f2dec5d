// SPDX-License-Identifier: Apache-2.0
// What the dispatcher counts, times and tells of the calls that it answers.
#include <algorithm>
#include <chrono>

#include "rpcrdma/base/probe.h"
#include "server/dispatch.h"
#include "server/served_call.h"
#include "xdr/flatten.h"
#include "xdr/mount3.h"
#include "xdr/nfs3_constants.h"

namespace nfsrdma {

namespace {

std::uint64_t ns_of(TimePoint when) {
  return static_cast<std::uint64_t>(when.time_since_epoch().count());
}

/// Does the result begin with a status (RFC 1813 2.6, 5.1; RFC 8881 15.2)?
bool has_status(const Request& request) {
  if (request.program == xdr::kMountProgram) {
    return request.procedure == static_cast<std::uint32_t>(xdr::mountproc3::MOUNTPROC3_MNT);
  }
  return request.program == xdr::kNfsProgram && request.procedure != 0;
}

/// That of the encoded result; false when it has none.
bool status_of(const ServedCall& served, std::uint32_t* status) {
  const ByteSpan result = served.encoder.bytes().subspan(served.results_mark);
  if (!has_status(served.request) || result.size() < 4) return false;
  *status = load_be32(result.data());
  return true;
}

}  // namespace

void Dispatcher::observe(CallObserver* observer) {
  observer_ = observer;
  times_stages_ = observer_ != nullptr || shared_.slow_ns != 0;
}

void Dispatcher::log_slow(std::uint64_t ns) {
  shared_.slow_ns = ns;
  observe(observer_);
}

/// The reply is encoded, and about to be given to the transport.
void Dispatcher::measure(ServedCall& served) {
  ServerConnection& connection = served.call->connection();
  const std::uint64_t ended = served.request.ended_ns;
  // A call has arrived when the turn of the loop began that took it in: those that came with it and
  // ran before it have made it wait. Hence the loop's time stays what it was.
  const std::uint64_t now = ended != 0 ? ended : ns_of(std::chrono::steady_clock::now());
  const std::uint64_t arrived = ns_of(served.call->arrived);
  const std::uint64_t ns = now > arrived ? now - arrived : 0;
  std::uint32_t status = 0;
  const bool failed = status_of(served, &status) && status != 0;
  const auto row = static_cast<std::size_t>(served.stats - stats_.data());
  metrics_.add(row, connection.transport(), ns, failed);
  connection.latency.add(ns);
  if (const Progress* progress = served.request.progress) {
    for (const OperationTime& operation : progress->operations())
      metrics_.add_operation(operation, connection.transport());
  }
  NFSRDMA_PROBE(call_end, connection.id, served.call->xid(), status, ns);
  if (!times_stages_) return;
  served.stages.arrived = arrived;
  served.stages.replied = now;
  const bool slow = shared_.slow_ns != 0 && ns >= shared_.slow_ns;
  if (observer_ == nullptr && !slow) return;
  const CallRecord record = record_of(served);
  if (observer_ != nullptr) observer_->on_call_answered(record);
  if (!slow || !slow_calls_.allow()) return;
  const LogField fields[] = {{"NFS_RDMA_CLIENT", record.peer.host_text()},
                             {"NFS_RDMA_FABRIC", transport_name(record.transport)},
                             {"NFS_RDMA_OPERATION", describe_operations(record)},
                             {"NFS_RDMA_DURATION_US", std::to_string(ns / 1000)}};
  log_event(LogLevel::kWarning, fields, "slow: {}", describe_call(record));
}

CallRecord Dispatcher::record_of(const ServedCall& served) const {
  const ServerConnection& connection = served.call->connection();
  CallRecord record;
  record.connection = connection.id;
  record.peer = connection.peer();
  record.transport = connection.transport();
  record.xid = served.call->xid();
  record.program = served.stats->program;
  record.procedure = served.stats->name;
  record.uid = served.request.credentials.uid;
  record.has_status = status_of(served, &record.status);
  record.request_bytes = served.call->request_bytes();
  record.reply_bytes = xdr::flattened_size(served.encoder);
  record.on_worker = served.on_worker;
  if (const Progress* progress = served.request.progress) {
    const auto operations = progress->operations();
    const std::size_t told = std::min(operations.size(), CallRecord::kMostOperations);
    for (std::size_t i = 0; i < told; ++i) {
      record.operations[i] = static_cast<std::uint8_t>(std::min(operations[i].number, 255u));
    }
    record.operation_count = static_cast<std::uint8_t>(told);
    record.more_operations = static_cast<std::uint32_t>(operations.size() - told);
  }
  record.wall_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  record.stages = served.stages;
  return record;
}

}  // namespace nfsrdma
