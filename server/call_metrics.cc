// SPDX-License-Identifier: Apache-2.0
#include "server/call_metrics.h"

#include <algorithm>

#include "xdr/nfs4_operations.h"

namespace nfsrdma {

CallMetrics::CallMetrics(std::span<const ProgramTable> programs) {
  for (const ProgramTable& table : programs) {
    for (const ProcedureRow& row : table.procedures)
      names_.push_back({table.name, row.name});
  }
  procedures_.resize(names_.size());
  // What no minor version has is counted in place 0.
  operations_.resize(xdr::kNfs4LastOperation + 1);
}

void CallMetrics::add_operation(const OperationTime& operation, TransportKind transport) {
  const std::size_t place = operation.number < operations_.size() ? operation.number : 0;
  count(operations_[place], transport, operation.ns, operation.status != 0);
}

void CallMetrics::report_row(const Row& row, std::string_view program, std::string_view name,
                             std::vector<CallCounts>& out) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] == nullptr) continue;
    out.push_back({program, name, static_cast<TransportKind>(i), row[i]->calls, row[i]->errors,
                   row[i]->latency});
  }
}

std::vector<CallCounts> CallMetrics::report() const {
  std::vector<CallCounts> out;
  for (std::size_t i = 0; i < procedures_.size(); ++i)
    report_row(procedures_[i], names_[i].program, names_[i].name, out);
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    std::string_view name = xdr::enum_name(static_cast<xdr::nfs_opnum4>(i));
    name = name.empty() ? std::string_view("ILLEGAL") : name.substr(3);  // OP_
    report_row(operations_[i], "NFSv4", name, out);
  }
  return out;
}

}  // namespace nfsrdma
