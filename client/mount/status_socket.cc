// SPDX-License-Identifier: Apache-2.0
#include "client/mount/status_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace nfsrdma {
namespace {

// Who connects and then says nothing is sent away.
constexpr std::chrono::seconds kPatience{10};
// Until it is asked again whether there are descriptors.
constexpr std::chrono::milliseconds kRetry{200};

std::vector<std::string> runtime_directories(uid_t uid) {
  if (uid == 0) return {"/run/nfs-rdma"};
  std::vector<std::string> all;
  const char* given = std::getenv("XDG_RUNTIME_DIR");
  if (given != nullptr && given[0] == '/') all.push_back(std::string(given) + "/nfs-rdma");
  all.push_back(fmt::format("/tmp/nfs-rdma-{}", uid));
  // That of a login, by pam_systemd: what asks need not have come by one.
  all.push_back(fmt::format("/run/user/{}/nfs-rdma", uid));
  return all;
}

}  // namespace

std::vector<std::string> mount_socket_places(DeviceNumber device, uid_t mounted_by) {
  std::vector<std::string> paths;
  for (const std::string& directory : runtime_directories(mounted_by))
    paths.push_back(fmt::format("{}/mount-{}-{}.sock", directory, device.major, device.minor));
  return paths;
}

std::string mount_socket_path(DeviceNumber device, uid_t mounted_by) {
  return mount_socket_places(device, mounted_by).front();
}

/// One connection: reads a line, writes the document, closes.
class StatusSocket::Client final : public FdWatcher {
 public:
  Client(StatusSocket& owner, UniqueFd fd)
      : owner_(owner), fd_(std::move(fd)), timer_([this] { owner_.remove(*this); }) {}
  ~Client() override { owner_.loop_.remove(fd_.get(), *this); }

  Result<void> start() {
    timer_.arm_after(owner_.loop_, kPatience);
    return owner_.loop_.add(fd_.get(), EPOLLIN, *this);
  }
  void on_fd_ready(std::uint32_t) override {
    if (answer_.empty() ? read_request() : write_answer()) return;
    owner_.remove(*this);
  }

 private:
  /// False: done with this client.
  bool read_request() {
    char piece[1024];
    const ssize_t n = ::recv(fd_.get(), piece, sizeof piece, 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    request_.append(piece, static_cast<std::size_t>(n));
    const std::size_t end = request_.find('\n');
    if (end == std::string::npos) return n > 0 && request_.size() < kMostRequestBytes;
    const std::string line = request_.substr(0, end);
    if (line.find("status") != std::string::npos) {
      answer_ = owner_.make_document_() + "\n";
    } else {
      answer_ = "{\"version\":1,\"error\":\"expected the word status\"}\n";
    }
    return write_answer() && owner_.loop_.modify(fd_.get(), EPOLLOUT, *this).ok();
  }
  bool write_answer() {
    while (sent_ < answer_.size()) {
      const ssize_t n =
          ::send(fd_.get(), answer_.data() + sent_, answer_.size() - sent_, MSG_NOSIGNAL);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      sent_ += static_cast<std::size_t>(n);
    }
    return false;
  }

  StatusSocket& owner_;
  UniqueFd fd_;
  Timer timer_;
  std::string request_;
  std::string answer_;
  std::size_t sent_ = 0;
};

StatusSocket::StatusSocket(EventLoop& loop, UniqueFd fd, std::string path,
                           std::function<std::string()> make_document)
    : loop_(loop),
      fd_(std::move(fd)),
      retry_([this] { watch(); }),
      path_(std::move(path)),
      make_document_(std::move(make_document)) {}

StatusSocket::~StatusSocket() {
  clients_.clear();
  loop_.remove(fd_.get(), *this);
  ::unlink(path_.c_str());
}

Result<std::unique_ptr<StatusSocket>> StatusSocket::listen(
    EventLoop& loop, std::string path, std::function<std::string()> make_document) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return system_error("status socket", ENAMETOOLONG);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const std::string directory = path.substr(0, path.rfind('/'));
  // Anybody may look at root's mounts; in /tmp a directory of somebody else's is not used.
  if (::mkdir(directory.c_str(), ::geteuid() == 0 ? 0755 : 0700) != 0 && errno != EEXIST) {
    return system_error("status socket");
  }
  struct stat status {};
  if (::lstat(directory.c_str(), &status) != 0) return system_error("status socket");
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid()) {
    return system_error("status socket", EPERM);
  }
  ::unlink(path.c_str());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return system_error("status socket");
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0666) != 0 || ::listen(fd.get(), 8) != 0) {
    return system_error("status socket");
  }
  std::unique_ptr<StatusSocket> made(
      new StatusSocket(loop, std::move(fd), std::move(path), std::move(make_document)));
  NFSRDMA_CHECK_OK(loop.add(made->fd_.get(), EPOLLIN, *made));
  return made;
}

void StatusSocket::watch() {
  if (!loop_.add(fd_.get(), EPOLLIN, *this).ok()) retry_.arm_after(loop_, kRetry);
}

void StatusSocket::on_fd_ready(std::uint32_t) {
  UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd && (errno == EMFILE || errno == ENFILE)) {
    // The asker waits in the backlog: asking again at once would only spin.
    loop_.remove(fd_.get(), *this);
    retry_.arm_after(loop_, kRetry);
  }
  if (!fd || clients_.size() >= kMostClients) return;
  auto client = std::make_shared<Client>(*this, std::move(fd));
  if (client->start().ok()) clients_.push_back(std::move(client));
}

void StatusSocket::remove(Client& client) {
  auto it = std::find_if(clients_.begin(), clients_.end(),
                         [&client](const auto& row) { return row.get() == &client; });
  if (it == clients_.end()) return;
  // Not inside of its own call.
  std::shared_ptr<Client> dead = std::move(*it);
  clients_.erase(it);
  loop_.post([dead] {});
}

}  // namespace nfsrdma
