// SPDX-License-Identifier: Apache-2.0
#include "server/reload.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/export_text.h"

namespace nfsrdma {

namespace {

const ExportEntry* find_path(const std::vector<ExportEntry>& entries, std::string_view path) {
  const auto found = std::ranges::find(entries, path, &ExportEntry::path);
  return found == entries.end() ? nullptr : &*found;
}

const ExportClient* find_client(const ExportEntry& entry, const ExportClient& like) {
  const auto found = std::ranges::find_if(
      entry.clients, [&](const ExportClient& client) { return client.is_same_as(like); });
  return found == entry.clients.end() ? nullptr : &*found;
}

/// The clients of `entry` that the other one has, too, in their order.
std::vector<const ExportClient*> common_order(const ExportEntry& entry, const ExportEntry& other) {
  std::vector<const ExportClient*> out;
  for (const ExportClient& client : entry.clients) {
    if (find_client(other, client) != nullptr) out.push_back(&client);
  }
  return out;
}

void compare_clients(const ExportEntry& before, const ExportEntry& after,
                     std::vector<std::string>* lines) {
  for (const ExportClient& client : after.clients) {
    const ExportClient* old = find_client(before, client);
    if (old == nullptr) {
      lines->push_back(fmt::format("export {}: client {}: added ({})", after.path, client.text,
                                   options_text(client.options)));
    } else if (!(old->options == client.options)) {
      const auto [was, is] = changed_options(old->options, client.options);
      lines->push_back(
          fmt::format("export {}: client {}: {} -> {}", after.path, client.text, was, is));
    }
  }
  for (const ExportClient& client : before.clients) {
    if (find_client(after, client) != nullptr) continue;
    lines->push_back(fmt::format("export {}: client {}: removed", after.path, client.text));
  }
  const auto is_same = [](const ExportClient* one, const ExportClient* other) {
    return one->is_same_as(*other);
  };
  if (!std::ranges::equal(common_order(before, after), common_order(after, before), is_same)) {
    lines->push_back(
        fmt::format("export {}: clients are in another order, which decides between "
                    "those of one kind",
                    after.path));
  }
}

}  // namespace

bool ReloadPlan::applies(std::string_view key) const {
  return std::ranges::find(apply, key) != apply.end();
}

ReloadPlan plan_reload(const Settings& running, const Settings& fresh) {
  ReloadPlan plan;
  plan.settings = running;
  for (const OptionRow& row : option_rows()) {
    const std::string was = option_text(running.config, row.key);
    const std::string is = option_text(fresh.config, row.key);
    if (was == is) continue;
    const bool now = row.when == TakesEffect::kAtReload;
    (now ? plan.apply : plan.later).push_back(row.key);
    if (now) copy_option(plan.settings.config, fresh.config, row.key);
    auto shown = [](const std::string& value) { return value.empty() ? "''" : value; };
    plan.lines.push_back(fmt::format("{}: {} -> {}{}", row.key, shown(was), shown(is),
                                     now ? "" : " takes effect at the next start"));
  }
  plan.settings.exports_file = fresh.exports_file;
  plan.settings.command_line_exports = fresh.command_line_exports;
  plan.settings.notices = fresh.notices;
  return plan;
}

std::vector<std::string> export_changes(const std::vector<ExportEntry>& before,
                                        const std::vector<ExportEntry>& after) {
  std::vector<std::string> lines;
  for (const ExportEntry& entry : after) {
    const ExportEntry* old = find_path(before, entry.path);
    if (old == nullptr) {
      lines.push_back(fmt::format("export {}: added", entry.path));
    } else {
      compare_clients(*old, entry, &lines);
    }
  }
  for (const ExportEntry& entry : before) {
    if (find_path(after, entry.path) == nullptr)
      lines.push_back(fmt::format("export {}: removed", entry.path));
  }
  return lines;
}

}  // namespace nfsrdma
