// SPDX-License-Identifier: Apache-2.0
// Any bytes as an exports file and as an -e argument: no crash, problems inside of the file, paths
// absolute, and matching that ends.
#include <algorithm>

#include "config/exports_file.h"
#include "rpcrdma/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lines = static_cast<unsigned>(std::count(text.begin(), text.end(), '\n') + 1);
  const nfsrdma::ParsedExports parsed = nfsrdma::parse_exports(text, "f");
  for (const auto& problem : parsed.problems) {
    NFSRDMA_CHECK(problem.line >= 1 && problem.line <= lines && problem.column >= 1);
  }
  const auto peer = nfsrdma::SocketAddress::any_v6(1);
  for (const auto& entry : parsed.entries) {
    NFSRDMA_CHECK(entry.path.starts_with('/') && !entry.clients.empty());
    for (const auto& client : entry.clients) {
      NFSRDMA_CHECK(client.prefix <= 128);
      (void)client.matches_address(peer);
      (void)client.matches_name("host.example.org");
    }
  }
  (void)nfsrdma::parse_export_argument(text);
  return 0;
}
