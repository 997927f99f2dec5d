// SPDX-License-Identifier: Apache-2.0
#include "server/listener_cgroup.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostProcesses = 4;
constexpr int kMostMessages = 1000;  // of many sockets each
constexpr int kDeepest = 16;

struct Question {
  nlmsghdr header;
  inet_diag_req_v2 request;
};

bool ask(int socket, std::uint8_t family) {
  Question question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  question.request.sdiag_family = family;
  question.request.sdiag_protocol = IPPROTO_TCP;
  question.request.idiag_states = 1u << TCP_LISTEN;
  return ::send(socket, &question, sizeof question, 0) == static_cast<ssize_t>(sizeof question);
}

void read_socket(const nlmsghdr* message, std::uint16_t port, std::set<std::uint64_t>* ids) {
  inet_diag_msg found{};
  if (message->nlmsg_len < NLMSG_LENGTH(sizeof found)) return;
  const char* data = static_cast<const char*>(NLMSG_DATA(message));
  std::memcpy(&found, data, sizeof found);
  if (ntohs(found.id.idiag_sport) != port) return;
  const std::size_t size = message->nlmsg_len - NLMSG_LENGTH(0);
  for (std::size_t at = NLMSG_ALIGN(sizeof found); at + sizeof(rtattr) <= size;) {
    rtattr attribute{};
    std::memcpy(&attribute, data + at, sizeof attribute);
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > size - at) return;
    std::uint64_t id = 0;
    if (attribute.rta_type == INET_DIAG_CGROUP_ID && attribute.rta_len == RTA_LENGTH(sizeof id)) {
      std::memcpy(&id, data + at + RTA_LENGTH(0), sizeof id);
      ids->insert(id);
    }
    at += RTA_ALIGN(attribute.rta_len);
  }
}

std::optional<fs::path> directory_of(const fs::path& root, std::uint64_t id) {
  const auto is_it = [id](const fs::path& path) {
    struct stat st {};
    return ::stat(path.c_str(), &st) == 0 && st.st_ino == id;
  };
  if (is_it(root)) return root;
  std::error_code error;
  for (fs::recursive_directory_iterator
           it(root, fs::directory_options::skip_permission_denied, error),
       end;
       !error && it != end; it.increment(error)) {
    std::error_code unread;
    if (it->is_symlink(unread) || !it->is_directory(unread)) continue;
    if (is_it(it->path())) return it->path();
    if (it.depth() >= kDeepest) it.disable_recursion_pending();
  }
  return {};
}

}  // namespace

void read_listeners(int socket, std::uint16_t port, std::set<std::uint64_t>* ids) {
  alignas(nlmsghdr) std::array<char, 32768> buffer;
  for (int i = 0; i < kMostMessages; ++i) {
    const ssize_t n = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (n <= 0) return;
    auto left = static_cast<unsigned>(n);
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR) return;
      read_socket(message, port, ids);
    }
  }
}

std::set<std::uint64_t> cgroups_of_listeners(std::uint16_t port) {
  std::set<std::uint64_t> ids;
  const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!socket) return ids;
  timeval patience{1, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  for (const std::uint8_t family : {AF_INET, AF_INET6}) {
    if (ask(socket.get(), family)) read_listeners(socket.get(), port, &ids);
  }
  return ids;
}

std::optional<Cgroup> find_cgroup(const std::string& root, const std::string& proc,
                                  std::uint64_t id) {
  const auto directory = directory_of(root, id);
  // Of the root nobody learns anything.
  if (!directory || *directory == fs::path(root)) return {};
  Cgroup out;
  out.name = directory->filename().string();
  std::ifstream members(*directory / "cgroup.procs");
  for (std::string pid; std::getline(members, pid);) {
    if (out.processes.size() == kMostProcesses) {
      out.more = true;
      break;
    }
    std::ifstream comm(fs::path(proc) / pid / "comm");
    std::string name;
    if (!std::getline(comm, name)) name = "?";
    out.processes.push_back(fmt::format("{} ({})", pid, name));
  }
  if (out.processes.empty()) return {};
  return out;
}

}  // namespace nfsrdma
