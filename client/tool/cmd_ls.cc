// SPDX-License-Identifier: Apache-2.0
// nfs-rdma ls.
#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "client/tool/arguments.h"
#include "client/tool/commands.h"
#include "client/tool/format.h"
#include "client/tool/side.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma::tool {
namespace {

/// Names as they are into pipes, harmless on a terminal.
std::string shown_name(const std::string& name) {
  return ::isatty(STDOUT_FILENO) ? terminal_text(name) : name;
}

struct Column {
  std::size_t links = 1, user = 1, group = 1, size = 1;
};

/// What `entry` has of it; "?" where that cannot be known.
std::string known(const SideEntry& entry, const std::string& text) {
  return entry.error ? "?" : text;
}

std::string size_text(const struct stat& st) {
  if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) {
    return fmt::format("{}, {}", major(st.st_rdev), minor(st.st_rdev));
  }
  return std::to_string(st.st_size);
}

struct Row {
  std::string links, user, group, size;
};

Row row_of(const SideEntry& entry) {
  const struct stat& st = entry.status;
  return {known(entry, std::to_string(st.st_nlink)), known(entry, user_text(st.st_uid)),
          known(entry, group_text(st.st_gid)), known(entry, size_text(st))};
}

void print_long(const std::vector<SideEntry>& entries, const std::vector<std::string>& targets) {
  Column width;
  std::vector<Row> rows;
  for (const SideEntry& entry : entries) {
    const Row& row = rows.emplace_back(row_of(entry));
    width.links = std::max(width.links, row.links.size());
    width.user = std::max(width.user, row.user.size());
    width.group = std::max(width.group, row.group.size());
    width.size = std::max(width.size, row.size.size());
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const SideEntry& entry = entries[i];
    const std::string mode = entry.error ? "??????????" : mode_text(entry.status.st_mode);
    const std::string target = targets[i].empty() ? "" : " -> " + shown_name(targets[i]);
    std::fputs(
        fmt::format("{} {:>{}} {:<{}} {:<{}} {:>{}} {} {}{}\n", mode, rows[i].links, width.links,
                    rows[i].user, width.user, rows[i].group, width.group, rows[i].size, width.size,
                    known(entry, minute_text(entry.status.st_mtim)), shown_name(entry.name), target)
            .c_str(),
        stdout);
  }
}

/// Of what is there and cannot be looked at. False: there is some.
bool complain_of(const std::string& directory, const std::vector<SideEntry>& entries) {
  bool all_well = true;
  for (const SideEntry& entry : entries) {
    if (!entry.error) continue;
    complain("ls", join(directory, entry.name) + ": " + std::strerror(errno_of(*entry.error)));
    all_well = false;
  }
  return all_well;
}

/// False: some of it was not to be had, and that was said.
Task<Result<bool>> list_place(Place place, bool details, bool all, bool itself) {
  std::string referral;
  NFSRDMA_CO_TRY(struct stat st,
                 co_await place.side->status(place.path, !itself && !details, &referral));
  if (S_ISLNK(st.st_mode) && !itself) {
    auto target = co_await place.side->status(place.path, true);
    if (target.ok() && S_ISDIR(target->st_mode)) st = *target;
  }
  std::vector<SideEntry> entries;
  std::string directory;
  if (S_ISDIR(st.st_mode) && !itself) {
    NFSRDMA_CO_TRY(std::vector<SideEntry> listed, co_await place.side->list(place.path));
    entries = std::move(listed);
    directory = place.path;
    // What the user names is shown whatever its name.
    if (!all) std::erase_if(entries, [](const SideEntry& e) { return e.name.starts_with("."); });
  } else {
    entries.push_back({place.shown, st, referral, {}});
  }
  std::sort(entries.begin(), entries.end(),
            [](const SideEntry& a, const SideEntry& b) { return a.name < b.name; });
  const bool all_well = complain_of(place.shown, entries);
  if (!details) {
    for (const SideEntry& entry : entries)
      std::puts(shown_name(entry.name).c_str());
    co_return all_well;
  }
  std::vector<std::string> targets(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].referral.empty()) targets[i] = entries[i].referral + " (referral)";
    if (!S_ISLNK(entries[i].status.st_mode)) continue;
    const bool single = directory.empty() && entries.size() == 1 && entries[i].name == place.shown;
    // Not inside of the co_await: g++ 12 copies the result of ?: bytewise there.
    std::string path = single ? place.path : join(place.path, entries[i].name);
    auto text = co_await place.side->readlink(std::move(path));
    if (text.ok()) targets[i] = *text;
  }
  print_long(entries, targets);
  co_return all_well;
}

}  // namespace

int run_ls(const Words& words) {
  Arguments arguments("ls", "[-l] [-a] [-d] URL|PATH...", "Lists directories and files.");
  arguments.add()("long,l", "mode, links, owner, size and time as well")(
      "all,a", "also names that begin with a dot")("directory,d", "directories themselves");
  if (auto code = arguments.parse(words, 1, 1000)) return *code;
  auto driver = LoopDriver::create();
  if (!driver.ok()) {
    complain("ls", driver.error().message());
    return kExitFailure;
  }
  std::shared_ptr<LoopDriver> shared = std::move(*driver);
  int code = kExitOk;
  for (const std::string& operand : arguments.operands()) {
    Place place;
    std::string error;
    const auto open = arguments.has("directory") ? open_place_itself : open_place;
    if (!open(operand, shared, &place, &error)) {
      complain("ls", error);
      code = kExitFailure;
      continue;
    }
    if (arguments.operands().size() > 1) std::printf("%s:\n", place.shown.c_str());
    Result<bool> done = shared->run(
        list_place(place, arguments.has("long"), arguments.has("all"), arguments.has("directory")));
    if (!done.ok()) {
      complain("ls", place.shown + ": " + std::strerror(errno_of(done.error())));
    }
    if (!done.ok() || !*done) code = kExitFailure;
  }
  return code;
}

}  // namespace nfsrdma::tool
