// SPDX-License-Identifier: Apache-2.0
// nfs-rdma release: takes from clients what they hold of a file or of a file system.
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <string>
#include <vector>

#include "client/counted.h"
#include "client/tool/commands.h"
#include "client/tool/control.h"
#include "client/tool/format.h"
#include "client/tool/release_text.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma::tool {

namespace {

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts)
    text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string paths(const JsonValue& list) {
  std::vector<std::string> out;
  for (const JsonValue& path : list.items())
    out.push_back(terminal_text(path.text()));
  return joined(out);
}

std::string client_text(const JsonValue& client) {
  const bool nlm = client["protocol"].text() == "NLM";
  std::vector<std::string> lost;
  const auto add = [&lost](std::uint64_t count, const char* noun) {
    if (count != 0) lost.push_back(counted(count, noun));
  };
  add(client["opens"].count(), nlm ? "share" : "open");
  add(client["locks"].count(), "lock");
  add(client["delegations"].count(), "delegation");
  const std::string& address = client["address"].text();
  return fmt::format("  {} ({}{}): {}\n", address.empty() ? "a client that is gone" : address,
                     nlm ? "" : "NFS ", client["protocol"].text(), joined(lost));
}

/// What stands against unmounting it.
std::string busy_text(const JsonValue& document) {
  std::string text;
  if (!document["exports"].items().empty()) {
    text += fmt::format(
        "Exported still: {}. Clients may come back at once, and it cannot be unmounted: take that\n"
        "out of the exports first (nfs-rdma exports remove), then release it again.\n",
        paths(document["exports"]));
  }
  if (!document["reached_by"].items().empty()) {
    text += fmt::format(
        "Part of an export with crossmnt: {}. It can be unmounted until a client comes there.\n",
        paths(document["reached_by"]));
  }
  if (!document["mounted_below"].items().empty())
    text += fmt::format("Mounted below it: {}.\n", paths(document["mounted_below"]));
  if (const auto files = document["files_in_use"].count(); files != 0)
    text += fmt::format("Calls under way use {}.\n", counted(files, "file"));
  if (document["has_state_directory"].truth())
    text += "The server's own state directory is on it.\n";
  if (const auto silent = document["silent_threads"].count(); silent != 0) {
    text += fmt::format("{} of the server's threads {} not answer, a file system hangs.\n", silent,
                        silent == 1 ? "does" : "do");
  }
  return text;
}

/// The server has a working directory of its own.
std::string whole_path(const std::string& path) {
  char here[PATH_MAX];
  if (path.starts_with('/') || ::getcwd(here, sizeof here) == nullptr) return path;
  return std::string(here) + "/" + path;
}

}  // namespace

std::string release_text(const JsonValue& document) {
  std::string text = fmt::format("{}: what clients held of {} was revoked\n",
                                 terminal_text(document["path"].text()),
                                 counted(document["files"].count(), "file"));
  for (const JsonValue& client : document["clients"].items())
    text += client_text(client);
  if (const auto copies = document["copies"].count(); copies != 0)
    text += fmt::format("  {} ended\n", counted(copies, "asynchronous COPY"));
  if (!document["whole_file_system"].truth()) return text;
  const std::string busy = busy_text(document);
  return text + (busy.empty() ? "The server keeps nothing of it open.\n" : busy);
}

int run_release(const Words& words) {
  Arguments arguments(
      "release", "[--server SOCKET] PATH",
      "Takes from all clients what they hold of a file, or, where PATH is a mounted file system, "
      "of\n"
      "all files in it: opens, locks, delegations, by NFSv4 and by the lock manager of version 3.\n"
      "Then the server keeps none of them open, and what else it has of a file system that is not\n"
      "exported any more it has closed as well: it can be unmounted. To do that:\n"
      "  nfs-rdma exports remove CLIENT:PATH     (or in /etc/nfs-rdma.exports, and nfs-rdma "
      "reload)\n"
      "  nfs-rdma release PATH\n"
      "  umount PATH\n"
      "What is released is lost to the clients, also after a restart of the server. PATH is the\n"
      "server's own.");
  add_server_option(arguments);
  arguments.add()("json", "the answer as a document");
  if (auto code = arguments.parse(words, 1, 1)) return *code;
  const auto answer = ask_server(
      "release", server_socket(arguments),
      request_text("release", "path", whole_path(arguments.operands().front())), kWorkPatience);
  if (!answer) return kExitFailure;
  const std::string text = arguments.has("json") ? answer->text : release_text(answer->value);
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

}  // namespace nfsrdma::tool
