// SPDX-License-Identifier: Apache-2.0
#include "server/export_overlay.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "config/export_host.h"
#include "config/export_text.h"

namespace nfsrdma {

namespace {

using Entries = std::vector<ExportEntry>;

Entries::iterator find_path(Entries& exports, const std::string& path) {
  return std::ranges::find(exports, path, &ExportEntry::path);
}

std::vector<ExportClient>::iterator find_client(ExportEntry& entry, const ExportClient& like) {
  return std::ranges::find_if(entry.clients,
                              [&](const ExportClient& client) { return client.is_same_as(like); });
}

/// The first problem of one that was written by hand.
std::string first_problem(const ParsedExports& parsed) {
  return parsed.problems.empty() ? "expected CLIENT:/PATH" : parsed.problems.front().message;
}

std::string called(const std::string& fsid) {
  return fsid.empty() ? "their path" : "fsid=" + fsid;
}

enum class Change : std::uint8_t { kAdd, kRemove };

std::string remedy(Change change, const std::string& fsid) {
  if (change == Change::kRemove) return "give another of its clients " + called(fsid) + " first";
  return fsid.empty() ? "leave fsid= out" : "write " + called(fsid);
}

/// Handles that clients have are to stay good: false with *problem when one of `before` that is
/// still there would be called something else.
bool keeps_handles(const Entries& before, Entries& after, Change change, std::string* problem) {
  for (const ExportEntry& entry : before) {
    const auto now = find_path(after, entry.path);
    if (now == after.end() || fsid_of(*now) == fsid_of(entry)) continue;
    *problem = fmt::format(
        "{}: file handles that clients have go by {} and would be stale, since the export would "
        "get {}: {}; or change it for all of its clients in the exports file, and reload",
        entry.path, called(fsid_of(entry)),
        fsid_of(*now).empty() ? "no fsid=" : called(fsid_of(*now)), remedy(change, fsid_of(entry)));
    return false;
  }
  return true;
}

/// Nor two of them be called the same; it is the one at `path` that would have to be another.
bool has_fsid_of_its_own(Entries exports, const std::string& path, std::string* problem) {
  std::rotate(exports.begin(), std::next(find_path(exports, path)), exports.end());
  const ConfigProblems wrong = fsid_problems(exports);
  if (!wrong.empty()) *problem = wrong.front().message;
  return wrong.empty();
}

/// Puts `fresh`, which has one client, into `exports`.
void merge_export(Entries& exports, ExportEntry fresh, ConfigProblems* notices) {
  const auto known = find_path(exports, fresh.path);
  if (known == exports.end()) {
    exports.push_back(std::move(fresh));
    return;
  }
  const auto same = find_client(*known, fresh.clients.front());
  note_covered(std::span(known->clients.begin(), same), fresh.clients.front(), notices);
  if (same == known->clients.end()) {
    known->clients.push_back(std::move(fresh.clients.front()));
  } else {
    *same = std::move(fresh.clients.front());
  }
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
  Entries after = exports;
  const std::string where = parsed.entries.front().path;
  merge_export(after, std::move(parsed.entries.front()), &parsed.notices);
  if (!has_fsid_of_its_own(after, where, problem) ||
      !keeps_handles(exports, after, Change::kAdd, problem))
    return false;
  notices->insert(notices->end(), parsed.notices.begin(), parsed.notices.end());
  exports = std::move(after);
  return true;
}

bool remove_export(Entries& exports, const std::string& client, const std::string& path,
                   std::string* problem) {
  ExportClient like;
  if (!parse_export_host(client, like, problem)) return false;
  Entries after = exports;
  const auto entry = find_path(after, normal_path(path));
  if (entry == after.end()) {
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
  if (entry->clients.empty()) after.erase(entry);
  if (!keeps_handles(exports, after, Change::kRemove, problem)) return false;
  exports = std::move(after);
  return true;
}

}  // namespace nfsrdma
