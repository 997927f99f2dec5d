// SPDX-License-Identifier: Apache-2.0
// The results of the checks as a table for people and as a document for programs.
#pragma once

#include <string>
#include <vector>

#include "client/doctor/check.h"
#include "client/doctor/host_view.h"

namespace nfsrdma::doctor {

struct ReportStyle {
  bool verbose = false;
  std::size_t columns = 0;  // 0: lines as long as they are
};

/// Warnings and problems last, with what to do.
std::string report_text(const std::vector<CheckResult>& results, const ReportStyle& style);

/// Version 1: {"version", "host", "server", "verdict", "checks": [{"id", "area", "verdict",
/// "findings": [{"verdict", "seen", "remedy": []}]}], "roce_ports": [{"port",
/// "interface", "addresses": [], "default_roce_mode", "gid_types": []}]}.
/// `server`: "" without one.
std::string report_json(const std::vector<CheckResult>& results, const HostView& host,
                        const std::string& server);

/// The list of all checks (--list).
std::string list_text();

/// The gravest verdict of all.
Verdict overall(const std::vector<CheckResult>& results);
/// 1 when there is a problem, or with `strict` a warning; else 0.
int exit_code(const std::vector<CheckResult>& results, bool strict);

}  // namespace nfsrdma::doctor
