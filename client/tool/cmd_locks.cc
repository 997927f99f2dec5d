// SPDX-License-Identifier: Apache-2.0
// nfs-rdma locks: what clients of NFSv4 have open, locked and delegated.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "client/tool/commands.h"
#include "client/tool/control.h"
#include "client/tool/format.h"
#include "client/tool/locks_text.h"
#include "rpcrdma/base/json_writer.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma::tool {

namespace {

std::string range_text(const JsonValue& lock) {
  const std::uint64_t offset = lock["offset"].count(), length = lock["length"].count();
  if (length == 0) return fmt::format("{}-end", offset);
  return fmt::format("{}-{}", offset, offset + length - 1);
}

std::string share_text(const JsonValue& open) {
  std::string text = open["access"].text();
  if (open["deny"].text() != "none") text += ", denies " + open["deny"].text();
  return text;
}

}  // namespace

std::string locks_text(const JsonValue& document, bool with_opens) {
  std::string text;
  const auto add = [&text](const std::string& path, const std::string& what, const JsonValue& row,
                           const std::string& how) {
    text += fmt::format("{:<10} {:<22} {:<24} {}\n", what, how, row["address"].text(),
                        terminal_text(path));
  };
  for (const JsonValue& file : document["files"].items()) {
    const std::string& path = file["path"].text();
    for (const JsonValue& lock : file["locks"].items())
      add(path, lock["kind"].text() + " lock", lock, range_text(lock));
    if (file["more"].truth()) text += fmt::format("... and more of {}\n", terminal_text(path));
    for (const JsonValue& delegation : file["delegations"].items()) {
      const std::string& state = delegation["state"].text();
      add(path, "delegation", delegation,
          delegation["kind"].text() + (state == "held" ? "" : ", " + state));
    }
    if (!with_opens) continue;
    for (const JsonValue& open : file["opens"].items())
      add(path, "open", open, share_text(open));
  }
  if (!text.empty()) {
    text = fmt::format("{:<10} {:<22} {:<24} {}\n", "WHAT", "HOW", "CLIENT", "FILE") + text;
  }
  if (document["more"].truth()) text += "... and more files (--most N)\n";
  return text;
}

int run_locks(const Words& words) {
  Arguments arguments("locks", "[--opens] [--most N] [--server SOCKET] [--json]",
                      "Lists the byte-range locks and delegations that clients of NFSv4 hold, file "
                      "by file.");
  namespace po = boost::program_options;
  add_server_option(arguments);
  arguments.add()("opens", "also what is open, and what that denies others")(
      "most", po::value<std::uint32_t>()->value_name("N")->default_value(1000),
      "of so many files at most (up to 100000)")("json", "the whole document");
  if (auto code = arguments.parse(words, 0, 0)) return *code;
  JsonWriter request;
  request.begin_object();
  request.field("request", "locks");
  request.field("most", arguments.get<std::uint32_t>("most"));
  request.end_object();
  const auto answer = ask_server("locks", server_socket(arguments), request.text());
  if (!answer) return kExitFailure;
  if (arguments.has("json")) {
    std::fputs(answer->text.c_str(), stdout);
    return kExitOk;
  }
  const std::string text = locks_text(answer->value, arguments.has("opens"));
  std::fputs(text.empty() ? "Nothing is locked or delegated.\n" : text.c_str(), stdout);
  return kExitOk;
}

}  // namespace nfsrdma::tool
