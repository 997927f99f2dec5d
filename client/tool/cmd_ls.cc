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

std::string size_text(const struct stat& st) {
  if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) {
    return fmt::format("{}, {}", major(st.st_rdev), minor(st.st_rdev));
  }
  return std::to_string(st.st_size);
}

void print_long(const std::vector<SideEntry>& entries, const std::vector<std::string>& targets) {
  Column width;
  for (const SideEntry& entry : entries) {
    width.links = std::max(width.links, std::to_string(entry.status.st_nlink).size());
    width.user = std::max(width.user, user_text(entry.status.st_uid).size());
    width.group = std::max(width.group, group_text(entry.status.st_gid).size());
    width.size = std::max(width.size, size_text(entry.status).size());
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const struct stat& st = entries[i].status;
    const std::string target = targets[i].empty() ? "" : " -> " + shown_name(targets[i]);
    std::fputs(fmt::format("{} {:>{}} {:<{}} {:<{}} {:>{}} {} {}{}\n", mode_text(st.st_mode),
                           st.st_nlink, width.links, user_text(st.st_uid), width.user,
                           group_text(st.st_gid), width.group, size_text(st), width.size,
                           minute_text(st.st_mtim), shown_name(entries[i].name), target)
                   .c_str(),
               stdout);
  }
}

Task<Result<void>> list_place(Place place, bool details, bool all, bool itself) {
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
  } else {
    entries.push_back({place.shown, st, referral});
  }
  if (!all) {
    std::erase_if(entries, [](const SideEntry& e) { return e.name.starts_with("."); });
  }
  std::sort(entries.begin(), entries.end(),
            [](const SideEntry& a, const SideEntry& b) { return a.name < b.name; });
  if (!details) {
    for (const SideEntry& entry : entries)
      std::puts(shown_name(entry.name).c_str());
    co_return Result<void>();
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
  co_return Result<void>();
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
    Result<void> done = shared->run(
        list_place(place, arguments.has("long"), arguments.has("all"), arguments.has("directory")));
    if (!done.ok()) {
      complain("ls", place.shown + ": " + std::strerror(errno_of(done.error())));
      code = kExitFailure;
    }
  }
  return code;
}

}  // namespace nfsrdma::tool
