// SPDX-License-Identifier: Apache-2.0
// Any bytes as rdma.conf: no crash, and every problem names a line that exists.
#include <algorithm>

#include "config/config.h"
#include "rpcrdma/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lines = static_cast<unsigned>(std::count(text.begin(), text.end(), '\n') + 1);
  const nfsrdma::ParsedConfig parsed = nfsrdma::parse_config(text, "f");
  for (const auto& problem : parsed.problems) {
    NFSRDMA_CHECK(problem.line >= 1 && problem.line <= lines);
    NFSRDMA_CHECK(!problem.message.empty());
  }
  NFSRDMA_CHECK(parsed.config.port >= 1 && parsed.config.port <= 65535);
  return 0;
}
