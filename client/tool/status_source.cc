// SPDX-License-Identifier: Apache-2.0
#include "client/status_source.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "client/mount/mount_point.h"
#include "client/mount/status_socket.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {
namespace {

constexpr std::size_t kMaxDocument = 64 << 20;
constexpr timeval kPatience{10, 0};

Error explain(const char* step, const std::string& path, std::string* why) {
  const Error error = system_error(step);
  *why = path + ": " + std::strerror(error.sys);
  if (error.sys == ENOENT || error.sys == ECONNREFUSED) *why += " (is it running?)";
  if (error.sys == EACCES) *why += " (it belongs to another user)";
  if (error.sys == EAGAIN) *why = path + ": no answer";
  return error;
}

}  // namespace

Result<std::string> fetch_status(const std::string& socket_path, std::string* why) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) {
    *why = socket_path + ": too long for a socket";
    return Error{Errc::kInvalid, ENAMETOOLONG, "socket"};
  }
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return explain("socket", socket_path, why);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return explain("connect", socket_path, why);
  }
  constexpr std::string_view kRequest = "status\n";
  if (::send(fd.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(kRequest.size())) {
    return explain("send", socket_path, why);
  }
  std::string document;
  char piece[16384];
  for (;;) {
    const ssize_t n = ::recv(fd.get(), piece, sizeof piece, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return explain("receive", socket_path, why);
    if (n == 0) break;
    document.append(piece, static_cast<std::size_t>(n));
    if (document.size() > kMaxDocument) {
      *why = socket_path + ": the answer does not end";
      return Error{Errc::kProtocol, EMSGSIZE, "status"};
    }
  }
  return document;
}

std::vector<std::string> mount_status_sockets(const std::string& directory, std::string* why) {
  Result<std::string> mount_point = resolve_mount_point(directory, why);
  if (!mount_point.ok()) return {};
  std::optional<DeviceNumber> device = device_of_mount(*mount_point);
  if (!device) {
    *why = directory + ": nothing is mounted there";
    return {};
  }
  std::vector<uid_t> users = {::geteuid(), 0};
  if (const char* behind_sudo = std::getenv("SUDO_UID")) {
    users.push_back(static_cast<uid_t>(std::strtoul(behind_sudo, nullptr, 10)));
  }
  std::vector<std::string> paths;
  for (uid_t user : users) {
    std::string path = mount_socket_path(*device, user);
    if (paths.empty() || paths.back() != path) paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace nfsrdma
