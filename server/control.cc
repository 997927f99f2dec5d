// SPDX-License-Identifier: Apache-2.0
#include "server/control.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "rpcrdma/base/json_writer.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma {

/// One asker. Shared with the making of its answer, which may come after it went away.
class ControlSocket::Client final : public FdWatcher, public std::enable_shared_from_this<Client> {
 public:
  Client(ControlSocket& owner, UniqueFd fd)
      : owner_(&owner), fd_(std::move(fd)), patience_([this] { end(); }) {}
  ~Client() override { close(); }

  bool start() {
    if (!owner_->loop_.add(fd_.get(), EPOLLIN, *this).ok()) return false;
    watched_ = true;
    patience_.arm_after(owner_->loop_, kPatience);
    return true;
  }
  void close() {
    if (watched_) owner_->loop_.remove(fd_.get(), *this);
    watched_ = false;
    patience_.cancel();
    fd_.reset();
  }
  void detach() {
    close();
    owner_ = nullptr;
  }
  void send(std::string document) {
    if (owner_ == nullptr || !fd_) return;
    out_ = std::move(document);
    out_ += '\n';
    if (!owner_->loop_.modify(fd_.get(), EPOLLOUT, *this).ok()) end();
  }

 private:
  void on_fd_ready(std::uint32_t) override {
    const std::shared_ptr<Client> self = shared_from_this();  // end() drops the owner's hold
    if (!out_.empty()) return write_some();
    if (!asked_) read_some();
  }
  void read_some() {
    char chunk[1024];
    const ssize_t n = ::recv(fd_.get(), chunk, sizeof chunk, 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? void() : end();
    request_.append(chunk, static_cast<std::size_t>(n));
    const bool complete = n == 0 || request_.find('\n') != std::string::npos;
    if (!complete && request_.size() < kMaxRequest) return;
    asked_ = true;
    // Nothing to wait for until the answer is there (a hang-up is found out then).
    if (!owner_->loop_.modify(fd_.get(), 0, *this).ok()) return end();
    owner_->answer(shared_from_this(), request_);
  }
  void write_some() {
    const ssize_t n = ::send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? void() : end();
    sent_ += static_cast<std::size_t>(n);
    if (sent_ == out_.size()) end();
  }
  void end() {
    close();
    if (owner_ != nullptr) owner_->remove(*this);
  }

  ControlSocket* owner_;
  UniqueFd fd_;
  bool watched_ = false;
  bool asked_ = false;
  std::string request_;
  std::string out_;
  std::size_t sent_ = 0;
  Timer patience_;
};

Result<std::unique_ptr<ControlSocket>> ControlSocket::listen(EventLoop& loop,
                                                             const std::string& path,
                                                             MakeStatus make_status) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error{Errc::kInvalid, ENAMETOOLONG, "control socket"};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return system_error("control socket");
  if (::connect(fd.get(), generic, sizeof address) == 0) {
    return Error{Errc::kRefused, EADDRINUSE, "control socket: another server answers there"};
  }
  if (errno == ECONNREFUSED) ::unlink(path.c_str());
  fd.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Clients of the server learn nothing here that others should: owner and group only.
  ::fchmod(fd.get(), 0660);
  if (::bind(fd.get(), generic, sizeof address) != 0) return system_error("control socket: bind");
  ::chmod(path.c_str(), 0660);
  if (::listen(fd.get(), 16) != 0) return system_error("control socket: listen");
  std::unique_ptr<ControlSocket> socket(
      new ControlSocket(loop, std::move(fd), path, std::move(make_status)));
  NFSRDMA_CHECK_OK(loop.add(socket->fd_.get(), EPOLLIN, *socket));
  return socket;
}

ControlSocket::ControlSocket(EventLoop& loop, UniqueFd fd, std::string path, MakeStatus make_status)
    : loop_(loop),
      fd_(std::move(fd)),
      path_(std::move(path)),
      make_status_(std::move(make_status)) {}

ControlSocket::~ControlSocket() {
  for (const std::shared_ptr<Client>& client : clients_)
    client->detach();
  loop_.remove(fd_.get(), *this);
  ::unlink(path_.c_str());
}

void ControlSocket::on_fd_ready(std::uint32_t) {
  UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd || clients_.size() >= kMaxClients) return;
  auto client = std::make_shared<Client>(*this, std::move(fd));
  if (client->start()) clients_.push_back(std::move(client));
}

void ControlSocket::answer(const std::shared_ptr<Client>& client, std::string_view request) {
  if (request.find("status") != std::string_view::npos) {
    make_status_([weak = std::weak_ptr<Client>(client)](std::string json) {
      if (std::shared_ptr<Client> asker = weak.lock()) asker->send(std::move(json));
    });
    return;
  }
  JsonWriter json;
  json.begin_object();
  json.field("version", 1);
  json.field("error", "unknown request, expected status");
  json.end_object();
  client->send(json.take());
}

void ControlSocket::remove(Client& client) {
  std::erase_if(clients_, [&client](const auto& held) { return held.get() == &client; });
}

}  // namespace nfsrdma
