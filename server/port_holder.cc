// SPDX-License-Identifier: Apache-2.0
// siw and other iWARP drivers listen with a TCP socket inside the kernel, so an RDMA listener can
// be in the way of a TCP one and the other way round. Such a socket has an inode that no process
// holds.
#include "server/port_holder.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

namespace nfsrdma {

namespace {

namespace fs = std::filesystem;

std::optional<std::string> nfsd_line(const PortQuestion& question) {
  std::ifstream list(question.proc + "/fs/nfsd/portlist");
  const std::string wanted = " " + std::to_string(question.port);
  std::string line;
  while (std::getline(list, line)) {
    if (line.ends_with(wanted)) return line;
  }
  return {};
}

/// Inodes of the TCP sockets that listen on `port`, by /proc/net/tcp and tcp6.
std::set<std::string> listening_inodes(const PortQuestion& question) {
  constexpr std::string_view kListen = "0A";
  std::set<std::string> inodes;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream file(question.proc + table);
    std::string line;
    while (std::getline(file, line)) {
      // sl local_address rem_address st queues timer retransmits uid timeout inode
      std::istringstream words(line);
      std::array<std::string, 10> column;
      for (std::string& word : column)
        words >> word;
      const std::size_t colon = column[1].rfind(':');
      if (!words || colon == std::string::npos || column[3] != kListen) continue;
      const char* end = column[1].data() + column[1].size();
      unsigned port = 0;
      if (std::from_chars(column[1].data() + colon + 1, end, port, 16).ptr != end) continue;
      if (port == question.port) inodes.insert(column[9]);
    }
  }
  return inodes;
}

struct Search {
  std::string holder;        // "process 12 (name)", empty when none was found
  bool saw_everyone = true;  // no process was hidden from us
};

bool holds(const fs::path& descriptors, const std::set<std::string>& inodes, bool* hidden) {
  std::error_code error;
  for (fs::directory_iterator it(descriptors, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code unread;
    const std::string target = fs::read_symlink(it->path(), unread).string();
    // Without CAP_SYS_PTRACE the descriptors of others have names, but nothing behind them.
    if (unread == std::errc::permission_denied || unread == std::errc::operation_not_permitted) {
      *hidden = true;
    }
    if (target.starts_with("socket:[") && inodes.count(target.substr(8, target.size() - 9)) != 0) {
      return true;
    }
  }
  if (error == std::errc::permission_denied) *hidden = true;
  return false;
}

Search find_process(const PortQuestion& question, const std::set<std::string>& inodes) {
  Search search;
  std::error_code error;
  for (fs::directory_iterator it(question.proc, error), end; !error && it != end;
       it.increment(error)) {
    const std::string pid = it->path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    bool hidden = false;
    if (holds(it->path() / "fd", inodes, &hidden)) {
      std::string name = "?";
      std::ifstream comm(it->path() / "comm");
      std::getline(comm, name);
      search.holder = fmt::format("process {} ({})", pid, name);
      return search;
    }
    if (hidden) search.saw_everyone = false;
  }
  return search;
}

std::string choose_another(const PortQuestion& question) {
  return "choose another with " + question.option;
}

}  // namespace

std::string port_holder(const PortQuestion& question) {
  if (auto line = nfsd_line(question)) {
    return fmt::format(
        "the kernel's NFS server has it ('{}' in /proc/fs/nfsd/portlist): stop that (systemctl "
        "stop "
        "nfs-server) or {}",
        *line, choose_another(question));
  }
  if (!question.tcp_socket && question.our_iwarp_engine) {
    return "our own iwarp engine listens there and serves iWARP peers; siw and other iWARP devices "
           "would need the same TCP port. To use the devices instead: --fabric verbs";
  }
  const std::set<std::string> inodes = listening_inodes(question);
  if (!inodes.empty()) {
    const Search search = find_process(question, inodes);
    if (!search.holder.empty()) {
      return fmt::format("{} has it: end that or {}", search.holder, choose_another(question));
    }
    if (search.saw_everyone) {
      return fmt::format(
          "a listener inside the kernel has it, of siw or another iWARP device ('rdma resource "
          "show "
          "cm_id' says for whom): end that or {}",
          choose_another(question));
    }
    return fmt::format(
        "who has it cannot be seen from here (as root: 'ss -ltnp'; 'rdma resource show cm_id'); {}",
        choose_another(question));
  }
  if (!question.tcp_socket) {
    return fmt::format("another RDMA server has it ('rdma resource show cm_id' says which); {}",
                       choose_another(question));
  }
  return "nothing is seen to listen there; " + choose_another(question);
}

}  // namespace nfsrdma
