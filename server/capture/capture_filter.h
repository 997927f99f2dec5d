// SPDX-License-Identifier: Apache-2.0
// What somebody wants to capture.
#pragma once

#include <cstdint>
#include <string>

#include "rpcrdma/base/json_value.h"
#include "rpcrdma/call.h"

namespace nfsrdma {

struct CaptureFilter {
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};

  std::string client;         // host address; empty: any
  std::string fabric;         // "iwarp", "verbs", "tcp"; empty: any
  std::uint64_t snap = kAll;  // bytes that are kept of what an RDMA Write or Read moves

  bool matches(const ServerConnection& connection) const;
  /// From a request's members client, fabric, snap. False with *problem.
  static bool parse(const JsonValue& request, CaptureFilter* out, std::string* problem);
};

}  // namespace nfsrdma
