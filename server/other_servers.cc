// SPDX-License-Identifier: Apache-2.0
#include "server/other_servers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace nfsrdma {

namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

/// Of the kernel a thread has no command line.
bool is_kernel_thread(const fs::path& process) {
  std::ifstream command(process / "cmdline");
  return command && command.peek() == std::ifstream::traits_type::eof();
}

/// The line "th N ..." of what the kernel counts, where its threads are not to be seen: in a
/// container, whose network has the server all the same.
bool counts_threads(const std::string& proc) {
  std::ifstream counts(proc + "/net/rpc/nfsd");
  for (std::string line; std::getline(counts, line);) {
    if (line.starts_with("th ")) return std::strtoul(line.c_str() + 3, nullptr, 10) > 0;
  }
  return false;
}

}  // namespace

OtherServers other_servers(const std::string& proc) {
  OtherServers out;
  out.kernel = counts_threads(proc);
  // The parent, too: a program that goes to the background has one that waits for it.
  const std::string us = std::to_string(::getpid()), parent = std::to_string(::getppid());
  std::error_code error;
  for (fs::directory_iterator it(proc, error), end; !error && it != end; it.increment(error)) {
    const std::string pid = it->path().filename().string();
    if (!is_number(pid) || pid == us || pid == parent) continue;
    const std::string name = first_line(it->path() / "comm");
    if (name == "nfs-rdmad") out.daemons.push_back(pid);
    if (name == "nfsd" && is_kernel_thread(it->path())) out.kernel = true;
  }
  return out;
}

std::vector<std::string> kernel_mounts_of_v3(const std::string& proc) {
  std::vector<std::string> places;
  std::ifstream info(proc + "/self/mountinfo");
  for (std::string line; std::getline(info, line);) {
    // id parent device root PLACE options [tags] - TYPE source OPTIONS
    const std::size_t separator = line.find(" - ");
    if (separator == std::string::npos) continue;
    std::istringstream front(line), back(line.substr(separator + 3));
    std::string place, type, source, options;
    for (int field = 0; field < 5; ++field)
      front >> place;
    back >> type >> source >> options;
    if (type == "nfs" && ("," + options + ",").find(",vers=3,") != std::string::npos) {
      places.push_back(place);
    }
  }
  return places;
}

std::string other_lock_manager(const OtherServers& servers,
                               const std::vector<std::string>& mounts) {
  std::vector<std::string> possible;
  if (servers.kernel) {
    possible.emplace_back(
        "that of Linux's NFS server, which runs here (systemctl disable --now nfs-server)");
  }
  if (!servers.daemons.empty()) {
    possible.push_back(
        fmt::format("that of another nfs-rdmad, process {} (one of them can have the locks of "
                    "NFSv3: NFSoRDMA_NLM=no for the other)",
                    fmt::join(servers.daemons, ", ")));
  }
  if (!mounts.empty()) {
    possible.push_back(
        fmt::format("the kernel's, for what is mounted by NFSv3 at {} (mount that by version 4, or "
                    "with nolock)",
                    fmt::join(mounts, ", ")));
  }
  if (possible.empty()) {
    return "one of this machine ('rpcinfo' lists who registered 100021; entries "
           "that a server has left behind go with 'systemctl restart rpcbind', then nfs-rdma)";
  }
  return fmt::format("{}", fmt::join(possible, ", or "));
}

}  // namespace nfsrdma
