// SPDX-License-Identifier: Apache-2.0
// What reading the configuration and the exports again changes: a comparison of two states, without
// touching anything. server/main.cc puts the result in force.
//
//   ReloadPlan plan = plan_reload(running_settings, fresh_settings);
//   for (line : plan.lines) log_notice(line);          "NFSoRDMA_LOG_LEVEL: info -> debug"
//   running_settings = plan.settings;                  and act upon each of plan.apply
//   for (line : export_changes(before, after)) ...     "export /srv/a: added"
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/exports_file.h"
#include "server/command_line.h"

namespace nfsrdma {

struct ReloadPlan {
  /// To run with from now on: those that run, with what may change meanwhile taken over.
  Settings settings;
  /// What changed, for people; empty: nothing did. Keys that wait for the next start are among
  /// them, and say so.
  std::vector<std::string> lines;
  /// Keys of rdma.conf whose new value (in `settings`) counts from now on.
  std::vector<std::string_view> apply;
  /// Keys whose new value waits for the next start.
  std::vector<std::string_view> later;

  bool applies(std::string_view key) const;
};

/// `fresh` must be good (no problems).
ReloadPlan plan_reload(const Settings& running, const Settings& fresh);

/// How `after` differs from `before`, for people: exports and clients that came, went or have other
/// options. Empty: not at all. The order of lines and of clients counts where it decides who gets
/// what, and is then said.
std::vector<std::string> export_changes(const std::vector<ExportEntry>& before,
                                        const std::vector<ExportEntry>& after);

}  // namespace nfsrdma
