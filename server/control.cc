// SPDX-License-Identifier: Apache-2.0
#include "server/control.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "rpcrdma/base/json_writer.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma {

namespace {
constexpr std::chrono::milliseconds kRetry{100};

void refuse(int fd, bool http) {
  static RateLimit limit(1, std::chrono::seconds(10));
  if (limit.allow()) {
    log_warning("{} ask for status and the like at a time: no more are answered",
                ControlSocket::kMaxClients);
  }
  if (http) return;
  // Closed with its request unread it would hear of nothing but the end.
  char request[ControlSocket::kMaxRequest];
  if (::recv(fd, request, sizeof request, MSG_DONTWAIT) < 0 && errno != EAGAIN) return;
  const std::string why = control_error("too many ask at a time, try again later") + "\n";
  ::send(fd, why.data(), why.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}
}  // namespace

/// One asker. Shared with the making of its answer, which may come after it went away.
class ControlSocket::Client final : public FdWatcher,
                                    public ControlStream,
                                    public std::enable_shared_from_this<Client> {
 public:
  Client(ControlSocket& owner, UniqueFd fd)
      : owner_(&owner), fd_(std::move(fd)), patience_([this] { lose_patience(); }) {}
  ~Client() override { close(); }

  bool start() {
    if (!owner_->loop_.add(fd_.get(), EPOLLIN, *this).ok()) return false;
    watched_ = true;
    be_patient();
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
    tell_gone();
  }
  /// The whole answer.
  void reply(std::string document) {
    if (owner_ == nullptr || !fd_) return;
    out_ = std::move(document);
    if (!owner_->http_) out_ += '\n';
    finishing_ = true;
    be_patient();
    watch();
  }
  /// From now on a stream: what the reader says means nothing any more, but that it goes counts.
  void become_stream() {
    streaming_ = true;
    patience_.cancel();
    watch();
  }

  bool is_stream() const { return streaming_; }

  // --- ControlStream ---
  bool send(std::string_view bytes) override {
    if (owner_ == nullptr || !fd_ || out_.size() - sent_ + bytes.size() > kMostUnread) return false;
    if (sent_ > 0 && sent_ * 2 >= out_.size()) {
      out_.erase(0, sent_);
      sent_ = 0;
    }
    const bool idle = out_.size() == sent_;
    out_ += bytes;
    if (idle) watch();
    return true;
  }
  bool open() const override { return owner_ != nullptr && fd_; }
  void finish() override {
    if (!open()) return;
    finishing_ = true;
    gone_ = nullptr;
    if (out_.size() == sent_) return end();
    be_patient();
  }
  void on_gone(std::function<void()> gone) override { gone_ = std::move(gone); }

 private:
  /// A timer must not end in its own call.
  void lose_patience() {
    owner_->loop_.post([self = shared_from_this()] { self->end(); });
  }
  void be_patient() { patience_.arm_after(owner_->loop_, kPatience); }
  void on_fd_ready(std::uint32_t events) override {
    const std::shared_ptr<Client> self = shared_from_this();  // end() drops the owner's hold
    if (streaming_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !drain()) return end();
    if (out_.size() > sent_) return write_some();
    if (!asked_) return read_some();
    // Gone before the answer was there.
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) end();
  }
  void read_some() {
    char chunk[1024];
    const ssize_t n = ::recv(fd_.get(), chunk, sizeof chunk, 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? void() : end();
    request_.append(chunk, static_cast<std::size_t>(n));
    // All of it: what stays unread would reset the connection under the answer.
    const char* mark = owner_->http_ ? "\r\n\r\n" : "\n";
    const bool complete = n == 0 || request_.find(mark) != std::string::npos;
    if (!complete && request_.size() < kMaxRequest) return;
    asked_ = true;
    // Nothing to wait for until the answer is there, however long that takes, but that the asker
    // goes.
    patience_.cancel();
    if (!owner_->loop_.modify(fd_.get(), 0, *this).ok()) return end();
    owner_->answer(shared_from_this(), request_);
  }
  /// False: the reader is gone.
  bool drain() {
    char chunk[256];
    const ssize_t n = ::recv(fd_.get(), chunk, sizeof chunk, 0);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
  }
  void write_some() {
    const ssize_t n = ::send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? void() : end();
    sent_ += static_cast<std::size_t>(n);
    if (sent_ < out_.size()) {
      if (finishing_) be_patient();  // with a slow reader, as long as it reads
      return;
    }
    if (finishing_) return end();
    out_.clear();
    sent_ = 0;
    watch();
  }
  void watch() {
    std::uint32_t events = streaming_ ? EPOLLIN : 0u;
    if (out_.size() > sent_) events |= EPOLLOUT;
    if (!owner_->loop_.modify(fd_.get(), events, *this).ok()) end();
  }
  void end() {
    close();
    if (owner_ != nullptr) owner_->remove(*this);
    tell_gone();
  }
  void tell_gone() {
    if (auto gone = std::exchange(gone_, nullptr)) gone();
  }

  ControlSocket* owner_;
  UniqueFd fd_;
  bool watched_ = false;
  bool asked_ = false;
  bool streaming_ = false;
  bool finishing_ = false;
  std::string request_;
  std::string out_;
  std::size_t sent_ = 0;
  std::function<void()> gone_;
  Timer patience_;
};

Result<std::unique_ptr<ControlSocket>> ControlSocket::listen(EventLoop& loop,
                                                             const std::string& path) {
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
  if (errno == ECONNREFUSED) {
    // Of a server that is gone. A file of another kind refuses as well, and is somebody's.
    struct stat found {};
    if (::stat(path.c_str(), &found) == 0 && !S_ISSOCK(found.st_mode)) {
      return Error{Errc::kInvalid, EEXIST, "control socket: what is there is no socket"};
    }
    ::unlink(path.c_str());
  }
  fd.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Clients of the server learn nothing here that others should: owner and group only.
  ::fchmod(fd.get(), 0660);
  if (::bind(fd.get(), generic, sizeof address) != 0) return system_error("control socket: bind");
  ::chmod(path.c_str(), 0660);
  if (::listen(fd.get(), 16) != 0) return system_error("control socket: listen");
  std::unique_ptr<ControlSocket> socket(new ControlSocket(loop, std::move(fd), path));
  NFSRDMA_CHECK_OK(loop.add(socket->fd_.get(), EPOLLIN, *socket));
  return socket;
}

Result<std::unique_ptr<ControlSocket>> ControlSocket::listen(EventLoop& loop,
                                                             const SocketAddress& address) {
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return system_error("socket");
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), address.data(), address.length()) != 0) return system_error("bind");
  if (::listen(fd.get(), 16) != 0) return system_error("listen");
  std::unique_ptr<ControlSocket> socket(new ControlSocket(loop, std::move(fd), {}));
  NFSRDMA_CHECK_OK(loop.add(socket->fd_.get(), EPOLLIN, *socket));
  return socket;
}

ControlSocket::ControlSocket(EventLoop& loop, UniqueFd fd, std::string path)
    : loop_(loop), fd_(std::move(fd)), path_(std::move(path)), retry_([this] { watch(); }) {}

ControlSocket::~ControlSocket() {
  // Who is told that its reader is gone may not find a half of us.
  for (const std::shared_ptr<Client>& client : std::exchange(clients_, {}))
    client->detach();
  stop_listening();
}

void ControlSocket::stop_listening() {
  if (!fd_) return;
  retry_.cancel();
  loop_.remove(fd_.get(), *this);
  fd_.reset();
  if (!path_.empty()) ::unlink(path_.c_str());
}

void ControlSocket::close_to_askers() {
  stop_listening();
  std::vector<std::shared_ptr<Client>> all = std::exchange(clients_, {});
  for (std::shared_ptr<Client>& client : all) {
    if (client->is_stream()) {
      clients_.push_back(std::move(client));
    } else {
      client->detach();
    }
  }
}

void ControlSocket::watch() {
  if (!loop_.add(fd_.get(), EPOLLIN, *this).ok()) retry_.arm_after(loop_, kRetry);
}

void ControlSocket::on_fd_ready(std::uint32_t) {
  UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd && (errno == EMFILE || errno == ENFILE)) {
    // The asker waits in the backlog: asking again at once would only spin.
    loop_.remove(fd_.get(), *this);
    retry_.arm_after(loop_, kRetry);
  }
  if (!fd) return;
  if (clients_.size() >= kMaxClients) return refuse(fd.get(), http_ != nullptr);
  auto client = std::make_shared<Client>(*this, std::move(fd));
  if (client->start()) clients_.push_back(std::move(client));
}

void ControlSocket::on(std::string name, Answer answer) {
  answers_.emplace(std::move(name), std::move(answer));
}
void ControlSocket::on_stream(std::string name, Stream stream) {
  streams_.emplace(std::move(name), std::move(stream));
}

std::string ControlSocket::names() const {
  std::string all;
  for (const auto& [name, unused] : answers_)
    all += (all.empty() ? "" : ", ") + name;
  for (const auto& [name, unused] : streams_)
    all += (all.empty() ? "" : ", ") + name;
  return all;
}

void ControlSocket::answer(const std::shared_ptr<Client>& client, std::string_view text) {
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (http_) {
    std::string_view path = text.starts_with("GET ") ? text.substr(4) : std::string_view("?");
    path = path.substr(0, path.find(' '));
    return http_(path, [weak = std::weak_ptr<Client>(client)](std::string answer) {
      if (std::shared_ptr<Client> asker = weak.lock()) asker->reply(std::move(answer));
    });
  }
  JsonValue request;
  std::string name(text);
  if (text.starts_with('{')) {
    std::optional<JsonValue> parsed = JsonValue::parse(text);
    if (!parsed) return client->reply(control_error("the request is no JSON object"));
    request = std::move(*parsed);
    name = request["request"].text();
  }
  if (const auto found = answers_.find(name); found != answers_.end()) {
    return found->second(request, [weak = std::weak_ptr<Client>(client)](std::string json) {
      if (std::shared_ptr<Client> asker = weak.lock()) asker->reply(std::move(json));
    });
  }
  if (const auto found = streams_.find(name); found != streams_.end()) {
    client->become_stream();
    return found->second(request, client);
  }
  client->reply(
      control_error("unknown request '" + name.substr(0, 64) + "', expected one of " + names()));
}

std::string control_error(std::string_view what) {
  JsonWriter json;
  json.begin_object();
  json.field("version", 1);
  json.field("error", what);
  json.end_object();
  return json.take();
}

void ControlSocket::remove(Client& client) {
  std::erase_if(clients_, [&client](const auto& held) { return held.get() == &client; });
}

}  // namespace nfsrdma
