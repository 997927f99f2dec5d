// SPDX-License-Identifier: Apache-2.0
#include "server/export_overlay.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/export_host.h"
#include "config/export_text.h"

namespace nfsrdma {

namespace {

using Entries = std::vector<ExportEntry>;

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  return path;
}

Entries::iterator find_path(Entries& exports, const std::string& path) {
  return std::ranges::find(exports, path, &ExportEntry::path);
}

std::vector<ExportClient>::iterator find_client(ExportEntry& entry, const ExportClient& like) {
  return std::ranges::find_if(entry.clients, [&](const ExportClient& client) {
    return client.kind == like.kind && client.text == like.text;
  });
}

/// The first problem of one that was written by hand.
std::string first_problem(const ParsedExports& parsed) {
  return parsed.problems.empty() ? "expected CLIENT:/PATH" : parsed.problems.front().message;
}

}  // namespace

bool add_export(Entries& exports, const std::string& client, const std::string& path,
                const std::string& options, std::string* problem, ConfigProblems* notices) {
  // As a line of a file would say it, by the same parser.
  const std::string who = client.empty() ? "*" : client;
  if (who.find_first_of("\n(\"\\# \t") != std::string::npos ||
      options.find_first_of("\n() \t") != std::string::npos) {
    *problem = fmt::format("'{}({})' is no client with options", who, options);
    return false;
  }
  ParsedExports parsed = parse_exports(fmt::format("{} {}({})\n", escaped_path(path), who, options),
                                       std::string(kTemporaryExport));
  if (!parsed.ok() || parsed.entries.size() != 1) {
    *problem = first_problem(parsed);
    return false;
  }
  notices->insert(notices->end(), parsed.notices.begin(), parsed.notices.end());
  ExportEntry& fresh = parsed.entries.front();
  const auto known = find_path(exports, fresh.path);
  if (known == exports.end()) {
    exports.push_back(std::move(fresh));
    return true;
  }
  const auto same = find_client(*known, fresh.clients.front());
  if (same == known->clients.end()) {
    known->clients.push_back(std::move(fresh.clients.front()));
  } else {
    *same = std::move(fresh.clients.front());
  }
  return true;
}

bool remove_export(Entries& exports, const std::string& client, const std::string& path,
                   std::string* problem) {
  ExportClient like;
  if (!parse_export_host(client, like, problem)) return false;
  const auto entry = find_path(exports, without_trailing_slashes(path));
  if (entry == exports.end()) {
    *problem = fmt::format("{} is not exported", path);
    return false;
  }
  const auto found = find_client(*entry, like);
  if (found == entry->clients.end()) {
    *problem = fmt::format("{} is not exported to {}, but to", entry->path, like.text);
    for (const ExportClient& other : entry->clients)
      *problem += " " + other.text;
    return false;
  }
  entry->clients.erase(found);
  if (entry->clients.empty()) exports.erase(entry);
  return true;
}

}  // namespace nfsrdma
