// SPDX-License-Identifier: Apache-2.0
#include "client/doctor/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "client/counted.h"
#include "client/doctor/rdma_sysfs.h"
#include "client/doctor/table.h"
#include "rpcrdma/base/json_writer.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma::doctor {

namespace {

constexpr std::size_t kVerdictWidth = 9;  // "problem" and some air
constexpr std::size_t kLeastText = 30;

std::size_t id_width() {
  std::size_t width = 0;
  for (const CheckRow& row : check_rows())
    width = std::max(width, std::string_view(row.id).size());
  return width + 2;
}

/// `text` behind `head`, in lines of at most `columns` where that is not 0; later lines are set in.
std::string hanging(const std::string& head, const std::string& text, std::size_t columns) {
  const std::size_t room =
      columns == 0 ? text.size() : std::max(kLeastText, columns - std::min(columns, head.size()));
  std::string out = head, line;
  const std::string indent(head.size(), ' ');
  bool first = true;
  const auto put = [&] {
    if (!first) out += indent;
    out += line + "\n";
    line.clear();
    first = false;
  };
  for (const std::string& word : words_of(text)) {
    if (!line.empty() && line.size() + 1 + word.size() > room) put();
    line += (line.empty() ? "" : " ") + word;
  }
  put();
  return out;
}

bool in_table(const Finding& finding, const ReportStyle& style) {
  return style.verbose || finding.verdict != Verdict::kSkipped;
}

std::string table(const std::vector<CheckResult>& results, const ReportStyle& style) {
  std::string text, area;
  std::vector<std::string> skipped;
  for (const CheckResult& result : results) {
    if (!style.verbose && result.verdict() == Verdict::kSkipped) {
      skipped.push_back(result.id);
      continue;
    }
    if (result.area != area) {
      area = result.area;
      text += fmt::format("{}{}:\n", text.empty() ? "" : "\n", area);
    }
    std::string id = result.id;
    for (const Finding& finding : result.findings) {
      if (!in_table(finding, style)) continue;
      const std::string head = fmt::format("  {:<{}}{:<{}}", verdict_name(finding.verdict),
                                           kVerdictWidth, id, id_width());
      text += hanging(head, terminal_text(finding.seen), style.columns);
      id.clear();  // once
    }
  }
  if (!skipped.empty()) {
    text += "\n" +
            hanging("Not looked at: ", joined(skipped) + " (--verbose says why).", style.columns);
  }
  return text;
}

/// What is to be done, of one gravity.
std::string remedies(const std::vector<CheckResult>& results, Verdict verdict, const char* title,
                     const ReportStyle& style) {
  std::string text;
  Remedy last;
  for (const CheckResult& result : results) {
    for (const Finding& finding : result.findings) {
      if (finding.verdict != verdict || finding.remedy.empty()) continue;
      // Several checks that lack the same say so once.
      if (verdict == Verdict::kSkipped && finding.remedy == last) continue;
      last = finding.remedy;
      text += hanging(fmt::format("  {}: ", result.id), terminal_text(finding.seen), style.columns);
      for (const std::string& line : finding.remedy)
        text += "      " + terminal_text(line) + "\n";
    }
  }
  return text.empty() ? "" : fmt::format("\n{}\n{}", title, text);
}

std::string summary(const std::vector<CheckResult>& results) {
  std::array<std::size_t, 5> counts{};
  for (const CheckResult& result : results)
    ++counts[static_cast<std::size_t>(result.verdict())];
  const auto count = [&](Verdict verdict) { return counts[static_cast<std::size_t>(verdict)]; };
  return fmt::format("{}: {} ok, {}, {}, {}; {} not looked at.", counted(results.size(), "check"),
                     count(Verdict::kOk), counted(count(Verdict::kNote), "note"),
                     counted(count(Verdict::kWarning), "warning"),
                     counted(count(Verdict::kProblem), "problem"), count(Verdict::kSkipped));
}

void write_result(JsonWriter& json, const CheckResult& result) {
  json.begin_object();
  json.field("id", result.id);
  json.field("area", result.area);
  json.field("verdict", verdict_name(result.verdict()));
  json.key("findings");
  json.begin_array();
  for (const Finding& finding : result.findings) {
    json.begin_object();
    json.field("verdict", verdict_name(finding.verdict));
    json.field("seen", finding.seen);
    json.list("remedy", finding.remedy);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

/// For the doctor at the other end (--other-end).
void write_roce_ports(JsonWriter& json, const HostView& host) {
  const std::vector<HostAddress> addresses = host.addresses();
  json.key("roce_ports");
  json.begin_array();
  for (const SysDevice& device : sys_devices(host)) {
    for (const SysPort& port : device.ports) {
      if (device.kind(port) != SysDevice::Kind::kRoce || !port.active()) continue;
      json.begin_object();
      json.field("port", port_name(device, port));
      json.field("interface", joined(port.interfaces));
      json.key("addresses");
      json.begin_array();
      for (const HostAddress& one : addresses) {
        const auto& all = port.interfaces;
        if (std::find(all.begin(), all.end(), one.interface) != all.end()) {
          json.value(one.address.host_text());
        }
      }
      json.end_array();
      json.field("default_roce_mode", port.connects_with());
      json.key("gid_types");
      json.begin_array();
      for (const auto& [type, count] : port.gid_types)
        json.value(type);
      json.end_array();
      json.end_object();
    }
  }
  json.end_array();
}

}  // namespace

Verdict overall(const std::vector<CheckResult>& results) {
  Verdict worst = Verdict::kSkipped;
  for (const CheckResult& result : results)
    worst = std::max(worst, result.verdict());
  return worst;
}

int exit_code(const std::vector<CheckResult>& results, bool strict) {
  return overall(results) < (strict ? Verdict::kWarning : Verdict::kProblem) ? 0 : 1;
}

std::string report_text(const std::vector<CheckResult>& results, const ReportStyle& style) {
  std::string text = table(results, style);
  text += remedies(results, Verdict::kSkipped, "Left out, and how to have it:", style);
  if (style.verbose) text += remedies(results, Verdict::kNote, "For those who want it:", style);
  text += remedies(results, Verdict::kWarning, "Warnings, and what helps:", style);
  text += remedies(results, Verdict::kProblem, "Problems, and what helps:", style);
  return text + "\n" + hanging("", summary(results), style.columns);
}

std::string report_json(const std::vector<CheckResult>& results, const HostView& host,
                        const std::string& server) {
  JsonWriter json;
  json.begin_object();
  json.field("version", 1);
  json.field("host", host.host_name);
  json.key("server");
  if (server.empty()) {
    json.null();
  } else {
    json.value(server);
  }
  json.field("verdict", verdict_name(overall(results)));
  json.key("checks");
  json.begin_array();
  for (const CheckResult& result : results)
    write_result(json, result);
  json.end_array();
  write_roce_ports(json, host);
  json.end_object();
  return json.take();
}

std::string list_text() {
  std::string text;
  for (const CheckRow& row : check_rows()) {
    text += fmt::format("{:<{}}{:<8}{}\n", row.id, id_width(),
                        row.of_host != nullptr ? "host" : "server", row.about);
  }
  return text;
}

}  // namespace nfsrdma::doctor
