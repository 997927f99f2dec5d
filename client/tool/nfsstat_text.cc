// SPDX-License-Identifier: Apache-2.0
// The layout: a title, lines of five names (17 columns each) with their counts and whole percents
// of the table below, and an empty line. The names are nfsstat's, in the order of the numbers.
#include "client/tool/nfsstat_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "xdr/nfs3_constants.h"
#include "xdr/nfs4_operations.h"

namespace nfsrdma::tool {

namespace {

using Counts = std::map<std::string, std::uint64_t, std::less<>>;

struct Cell {
  std::string name;
  std::uint64_t count = 0;
};

/// nfsstat's names of operations where they are not the RFC's in lower case; 0 to 2 are none.
struct OperationName {
  xdr::nfs_opnum4 operation;
  std::string_view name;
};
using enum xdr::nfs_opnum4;
constexpr OperationName kOperationNames[] = {
    {OP_LOOKUPP, "lookup_root"},
    {OP_OPEN_CONFIRM, "open_conf"},
    {OP_OPEN_DOWNGRADE, "open_dgrd"},
    {OP_SETCLIENTID, "setcltid"},
    {OP_SETCLIENTID_CONFIRM, "setcltidconf"},
    {OP_RELEASE_LOCKOWNER, "rellockowner"},
    {OP_BACKCHANNEL_CTL, "bc_ctl"},
    {OP_BIND_CONN_TO_SESSION, "bind_conn"},
    {OP_CREATE_SESSION, "create_ses"},
    {OP_DESTROY_SESSION, "destroy_ses"},
    {OP_GET_DIR_DELEGATION, "getdirdeleg"},
    {OP_GETDEVICEINFO, "getdevinfo"},
    {OP_GETDEVICELIST, "getdevlist"},
    {OP_SECINFO_NO_NAME, "secinfononam"},
    {OP_WANT_DELEGATION, "want_deleg"},
    {OP_DESTROY_CLIENTID, "destroy_clid"},
    {OP_RECLAIM_COMPLETE, "reclaim_comp"},
    {OP_IO_ADVISE, "ioadvise"},
    {OP_OFFLOAD_CANCEL, "offloadcancel"},
    {OP_OFFLOAD_STATUS, "offloadstatus"},
    {OP_READ_PLUS, "readplus"},
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::string operation_name(xdr::nfs_opnum4 operation, std::string_view rfc_name) {
  for (const OperationName& row : kOperationNames) {
    if (row.operation == operation) return std::string(row.name);
  }
  return lower(rfc_name);
}

/// Calls of a program by name, of all fabrics together.
Counts counts_of(const JsonValue& rows, std::string_view program) {
  Counts out;
  for (const JsonValue& row : rows.items()) {
    if (row["program"].text() == program) out[row["name"].text()] += row["calls"].count();
  }
  return out;
}

std::uint64_t count_of(const Counts& counts, std::string_view name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

/// Nothing when nothing was counted.
void add_table(std::string& out, std::string_view title, const std::vector<Cell>& cells) {
  constexpr std::size_t kPerLine = 5;
  std::uint64_t total = 0;
  for (const Cell& cell : cells)
    total += cell.count;
  if (total == 0) return;
  out += title;
  out += ":\n";
  for (std::span<const Cell> rest = cells; !rest.empty();) {
    const auto line = rest.first(std::min(kPerLine, rest.size()));
    rest = rest.subspan(line.size());
    for (const Cell& cell : line)
      fmt::format_to(std::back_inserter(out), "{:<17}", cell.name);
    out += '\n';
    for (const Cell& cell : line) {
      fmt::format_to(std::back_inserter(out), "{:<8}{:>3}%     ", cell.count,
                     cell.count * 100 / total);
    }
    out += '\n';
  }
  out += '\n';
}

void add_rpc(std::string& out, const JsonValue& totals) {
  const std::uint64_t bad = totals["rejected"].count();
  const std::uint64_t bad_auth = std::min(bad, totals["rejected_auth"].count());
  // Whoever is not in the exports is refused by NFS and MOUNT here, not by RPC.
  constexpr std::uint64_t kBadClients = 0;
  out += "Server rpc stats:\ncalls      badcalls   badfmt     badauth    badclnt\n";
  fmt::format_to(std::back_inserter(out), "{:<8}   {:<8}   {:<8}   {:<8}   {:<8}\n\n",
                 totals["calls"].count(), bad, bad - bad_auth, bad_auth, kBadClients);
}

}  // namespace

std::string nfsstat_text(const JsonValue& document) {
  std::string out;
  add_rpc(out, document["totals"]);

  const Counts v3 = counts_of(document["procedures"], "NFSv3");
  std::vector<Cell> cells;
  for (const xdr::EnumName& procedure : xdr::enum_names(xdr::nfsproc3{})) {
    const std::string_view name = procedure.name.substr(std::string_view("NFSPROC3_").size());
    cells.push_back({lower(name), count_of(v3, name)});
  }
  add_table(out, "Server nfs v3", cells);

  const Counts v4 = counts_of(document["procedures"], "NFSv4");
  add_table(out, "Server nfs v4",
            {{"null", count_of(v4, "NULL")}, {"compound", count_of(v4, "COMPOUND")}});

  const Counts operations = counts_of(document["operations"], "NFSv4");
  cells = {{"op0-unused"}, {"op1-unused"}, {"op2-future"}};
  for (const xdr::EnumName& operation : xdr::enum_names(xdr::nfs_opnum4{})) {
    const auto number = static_cast<xdr::nfs_opnum4>(operation.value);
    if (number == OP_ILLEGAL) continue;
    const std::string_view name = operation.name.substr(std::string_view("OP_").size());
    cells.push_back({operation_name(number, name), count_of(operations, name)});
  }
  add_table(out, "Server nfs v4 operations", cells);
  return out;
}

}  // namespace nfsrdma::tool
