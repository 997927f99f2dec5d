// SPDX-License-Identifier: Apache-2.0
#include "client/status_source.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>

#include "client/mount/mount_point.h"
#include "client/mount/status_socket.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {
namespace {

constexpr std::size_t kMaxDocument = 64 << 20;

Error explain(const char* step, const std::string& path, std::string* why) {
  const Error error = system_error(step);
  *why = path + ": " + std::strerror(error.sys);
  if (error.sys == ENOENT || error.sys == ECONNREFUSED) *why += " (is it running?)";
  if (error.sys == EACCES) *why += " (it belongs to another user; ask as root)";
  return error;
}

bool is_known(const std::string& path, int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         is_believed_at(path, peer.uid);
}

/// A socket whose calls together take no longer than `patience`.
class PatientSocket {
 public:
  PatientSocket(std::string path, std::chrono::milliseconds patience,
                const char* silence = kSilence)
      : path_(std::move(path)),
        patience_(patience),
        silence_(silence),
        end_(Clock::now() + patience) {}

  Result<void> connect(const sockaddr_un& address, std::string* why) {
    fd_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd_) return explain("socket", path_, why);
    // Also connecting waits when a daemon that hangs has let its backlog fill up.
    if (!limit(SO_SNDTIMEO)) return silent(why);
    if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      return failed("connect", why);
    }
    if (is_known(path_, fd_.get())) return {};
    *why = path_ + ": another user answers there; nothing that he says is believed";
    return Error{Errc::kRefused, EPERM, "connect"};
  }
  Result<void> send(std::string_view text, std::string* why) {
    if (!limit(SO_SNDTIMEO)) return silent(why);
    const ssize_t n = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (n == static_cast<ssize_t>(text.size())) return {};
    return failed("send", why);
  }
  int fd() const { return fd_.get(); }
  /// 0 bytes: the end.
  Result<std::size_t> receive(std::span<char> room, std::string* why) {
    for (;;) {
      if (!limit(SO_RCVTIMEO)) return silent(why);
      const ssize_t n = ::recv(fd_.get(), room.data(), room.size(), 0);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) return failed("receive", why);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// False: no time is left.
  bool limit(int option) {
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(end_ - Clock::now());
    if (left.count() <= 0) return false;
    timeval value{};
    value.tv_sec = static_cast<time_t>(left.count() / 1'000'000);
    value.tv_usec = static_cast<suseconds_t>(left.count() % 1'000'000);
    ::setsockopt(fd_.get(), SOL_SOCKET, option, &value, sizeof value);
    return true;
  }
  Error failed(const char* step, std::string* why) {
    if (errno == EAGAIN) return silent(why);
    return explain(step, path_, why);
  }
  Error silent(std::string* why) const {
    *why = fmt::format("{}: no answer in {} s; {}", path_,
                       static_cast<double>(patience_.count()) / 1000, silence_);
    return Error{Errc::kTimedOut, ETIMEDOUT, "status"};
  }

  std::string path_;
  std::chrono::milliseconds patience_;
  const char* silence_;
  Clock::time_point end_;
  UniqueFd fd_;
};

bool make_address(const std::string& path, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  if (path.size() >= sizeof address->sun_path) return false;
  std::memcpy(address->sun_path, path.c_str(), path.size() + 1);
  return true;
}

}  // namespace

class ControlLines::Connection {
 public:
  explicit Connection(std::string path) : socket(std::move(path), kStatusPatience) {}
  PatientSocket socket;
  std::string unread;
};

ControlLines::ControlLines() = default;
ControlLines::~ControlLines() = default;

Result<void> ControlLines::open(const std::string& socket_path, std::string_view request,
                                std::string* why) {
  sockaddr_un address{};
  if (!make_address(socket_path, &address)) {
    *why = socket_path + ": too long for a socket";
    return Error{Errc::kInvalid, ENAMETOOLONG, "socket"};
  }
  connection_ = std::make_unique<Connection>(socket_path);
  NFSRDMA_CHECK_OK(connection_->socket.connect(address, why));
  return connection_->socket.send(std::string(request) + "\n", why);
}

int ControlLines::fd() const {
  return connection_->socket.fd();
}

ssize_t ControlLines::read(std::span<char> room) {
  std::string& unread = connection_->unread;
  if (unread.empty()) return ::read(fd(), room.data(), room.size());
  const std::size_t size = unread.copy(room.data(), room.size());
  unread.erase(0, size);
  return static_cast<ssize_t>(size);
}

std::optional<std::string> ControlLines::next() {
  std::string& unread = connection_->unread;
  std::size_t searched = 0;
  for (;;) {
    if (const std::size_t end = unread.find('\n', searched); end != std::string::npos) {
      std::string line = unread.substr(0, end);
      unread.erase(0, end + 1);
      return line;
    }
    searched = unread.size();
    char piece[16384];
    const ssize_t n = ::read(fd(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || unread.size() > kMaxDocument) return std::nullopt;
    unread.append(piece, static_cast<std::size_t>(n));
  }
}

Result<std::string> fetch_status(const std::string& socket_path, std::string* why,
                                 std::chrono::milliseconds patience) {
  return ask_control(socket_path, "status", why, patience);
}

Result<std::string> ask_control(const std::string& socket_path, std::string_view request,
                                std::string* why, std::chrono::milliseconds patience,
                                const char* silence) {
  sockaddr_un address{};
  if (!make_address(socket_path, &address)) {
    *why = socket_path + ": too long for a socket";
    return Error{Errc::kInvalid, ENAMETOOLONG, "socket"};
  }
  PatientSocket socket(socket_path, patience, silence);
  NFSRDMA_CHECK_OK(socket.connect(address, why));
  NFSRDMA_CHECK_OK(socket.send(std::string(request) + "\n", why));
  std::string document;
  std::array<char, 16384> piece;
  for (;;) {
    Result<std::size_t> n = socket.receive(piece, why);
    if (!n.ok()) return n.error();
    if (*n == 0) break;
    document.append(piece.data(), *n);
    if (document.size() > kMaxDocument) {
      *why = socket_path + ": the answer does not end";
      return Error{Errc::kProtocol, EMSGSIZE, "status"};
    }
  }
  return document;
}

bool is_believed_at(const std::string& path, uid_t user) {
  return !path.starts_with("/tmp/nfs-rdma-") || user == 0 || user == ::geteuid() ||
         path.starts_with(fmt::format("/tmp/nfs-rdma-{}/", user));
}

std::vector<std::string> mount_status_sockets(const std::string& directory, std::string* why) {
  const std::optional<OurMount> mount = our_mount(directory, why);
  if (!mount) return {};
  std::vector<std::string> paths;
  for (const uid_t user : {mount->user, ::geteuid(), uid_t{0}}) {
    for (std::string& path : mount_socket_places(mount->device, user)) {
      if (std::find(paths.begin(), paths.end(), path) == paths.end())
        paths.push_back(std::move(path));
    }
  }
  return paths;
}

Result<std::string> fetch_mount_status(const std::string& directory, std::string* why) {
  Result<std::string> document = Error{Errc::kNotFound, ENOENT, "mount"};
  for (const std::string& path : mount_status_sockets(directory, why)) {
    std::string said;
    Result<std::string> told = fetch_status(path, &said);
    if (told.ok()) return told;
    // What is there and cannot be asked tells more than what is not there.
    const bool hangs = told.error().sys == ETIMEDOUT;
    if (hangs || document.error().sys == ENOENT) {
      document = std::move(told);
      *why = std::move(said);
    }
    // Who is there but hangs is not somewhere else.
    if (hangs) break;
  }
  return document;
}

}  // namespace nfsrdma
