// SPDX-License-Identifier: Apache-2.0
// Any bytes as an exports file and as an -e argument: no crash, problems inside of the file, paths
// absolute and each there once, matching that ends, and options that are read again as they were
// written.
#include <algorithm>
#include <set>

#include "config/export_text.h"
#include "config/exports_file.h"
#include "rpcrdma/base/check.h"

namespace {

void check_rewritten(const nfsrdma::ExportEntry& entry, const nfsrdma::ExportClient& client) {
  const nfsrdma::ParsedExports again = nfsrdma::parse_exports(
      nfsrdma::escaped_path(entry.path) + " *(" + nfsrdma::options_text(client.options) + ")\n",
      "f");
  NFSRDMA_CHECK(again.ok() && again.entries.size() == 1);
  NFSRDMA_CHECK(again.entries[0].path == entry.path);
  NFSRDMA_CHECK(again.entries[0].clients[0].options == client.options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lines = static_cast<unsigned>(std::count(text.begin(), text.end(), '\n') + 1);
  const nfsrdma::ParsedExports parsed = nfsrdma::parse_exports(text, "f");
  for (const auto& problem : parsed.problems) {
    NFSRDMA_CHECK(problem.line >= 1 && problem.line <= lines && problem.column >= 1);
  }
  const auto peer = nfsrdma::SocketAddress::any_v6(1);
  std::set<std::string> paths;
  for (const auto& entry : parsed.entries) {
    NFSRDMA_CHECK(paths.insert(entry.path).second);
    NFSRDMA_CHECK(entry.path.starts_with('/') && !entry.clients.empty());
    for (const auto& client : entry.clients) {
      NFSRDMA_CHECK(client.prefix <= 128);
      (void)client.matches_address(peer);
      (void)client.matches_name("host.example.org");
      check_rewritten(entry, client);
    }
  }
  (void)nfsrdma::parse_export_argument(text);
  return 0;
}
