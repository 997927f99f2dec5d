// SPDX-License-Identifier: Apache-2.0
// The table of all checks: what runs, in which order, and what --list and the man page name.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "client/doctor/host_checks.h"
#include "client/doctor/server_visit.h"

namespace nfsrdma::doctor {

struct CheckRow {
  const char* id;
  const char* area;
  const char* about;  // one line
  // One of them:
  CheckResult (*of_host)(const HostView& host);
  CheckResult (*of_server)(ServerVisit& visit);
};

std::span<const CheckRow> check_rows();
/// Null: there is none of that name.
const CheckRow* find_row(std::string_view id);

/// Runs the rows of `host`, and with `visit` (may be null) those of the server. `only` empty: all.
/// `begin` is told what comes next and may be empty.
std::vector<CheckResult> run_checks(const HostView& host, ServerVisit* visit,
                                    const std::vector<std::string>& only,
                                    const std::function<void(const CheckRow&)>& begin);

}  // namespace nfsrdma::doctor
