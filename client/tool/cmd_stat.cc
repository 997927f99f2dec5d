// SPDX-License-Identifier: Apache-2.0
// nfs-rdma stat.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "client/tool/arguments.h"
#include "client/tool/commands.h"
#include "client/tool/format.h"
#include "client/tool/side.h"
#include "rpcrdma/base/json_writer.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma::tool {
namespace {

void print_text(const std::string& name, const struct stat& st, const std::string& target,
                bool referral) {
  std::string arrow = target.empty() ? "" : " -> " + terminal_text(target);
  if (referral) arrow += " (referral)";
  std::fputs(
      fmt::format("  File: {}{}\n  Size: {}\tBlocks: {}\t{}\nFileid: {}\tFsid: {:x}\tLinks: {}\n"
                  "Access: ({:04o}/{})  Uid: ({}/{})  Gid: ({}/{})\n"
                  "Access: {}\nModify: {}\nChange: {}\n",
                  terminal_text(name), arrow, st.st_size, st.st_blocks, type_text(st.st_mode),
                  st.st_ino, st.st_dev, st.st_nlink, st.st_mode & 07777, mode_text(st.st_mode),
                  st.st_uid, user_text(st.st_uid), st.st_gid, group_text(st.st_gid),
                  exact_time_text(st.st_atim), exact_time_text(st.st_mtim),
                  exact_time_text(st.st_ctim))
          .c_str(),
      stdout);
}

void print_json(const std::string& name, const struct stat& st, const std::string& target,
                bool referral) {
  auto seconds = [](const timespec& time) {
    return fmt::format("{}.{:09}", time.tv_sec, time.tv_nsec);
  };
  JsonWriter json;
  json.begin_object();
  json.field("name", name);
  json.field("type", type_text(st.st_mode));
  json.field("mode", st.st_mode & 07777);
  json.field("size", st.st_size);
  json.field("blocks", st.st_blocks);
  json.field("fileid", st.st_ino);
  json.field("fsid", st.st_dev);
  json.field("nlink", st.st_nlink);
  json.field("uid", st.st_uid);
  json.field("gid", st.st_gid);
  json.field("atime", seconds(st.st_atim));
  json.field("mtime", seconds(st.st_mtim));
  json.field("ctime", seconds(st.st_ctim));
  if (!target.empty()) json.field(referral ? "referral" : "target", target);
  json.end_object();
  std::printf("%s\n", json.text().c_str());
}

Task<Result<void>> show(Place place, bool follow, bool as_json) {
  std::string target;
  NFSRDMA_CO_TRY(struct stat st, co_await place.side->status(place.path, follow, &target));
  const bool referral = !target.empty();
  if (S_ISLNK(st.st_mode)) {
    auto text = co_await place.side->readlink(place.path);
    if (text.ok()) target = *text;
  }
  as_json ? print_json(place.shown, st, target, referral)
          : print_text(place.shown, st, target, referral);
  co_return Result<void>();
}

}  // namespace

int run_stat(const Words& words) {
  Arguments arguments("stat", "[-L] [--json] URL|PATH...", "Shows what is known of files.");
  arguments.add()("dereference,L", "follow a symbolic link, or a referral")(
      "json", "one JSON object per line");
  if (auto code = arguments.parse(words, 1, 1000)) return *code;
  auto driver = LoopDriver::create();
  if (!driver.ok()) {
    complain("stat", driver.error().message());
    return kExitFailure;
  }
  std::shared_ptr<LoopDriver> shared = std::move(*driver);
  int code = kExitOk;
  for (const std::string& operand : arguments.operands()) {
    Place place;
    std::string error;
    const auto open = arguments.has("dereference") ? open_place : open_place_itself;
    if (!open(operand, shared, &place, &error)) {
      complain("stat", error);
      code = kExitFailure;
      continue;
    }
    Result<void> done =
        shared->run(show(place, arguments.has("dereference"), arguments.has("json")));
    if (!done.ok()) {
      complain("stat", place.shown + ": " + std::strerror(errno_of(done.error())));
      code = kExitFailure;
    }
  }
  return code;
}

}  // namespace nfsrdma::tool
