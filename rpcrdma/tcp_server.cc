// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/tcp_server.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>

#include "rpcrdma/base/log.h"
#include "rpcrdma/tcp_connection.h"

namespace nfsrdma {

namespace {
constexpr int kBacklog = 1024;
// Calls that are kept for what comes next, or a 64th of the pool.
constexpr std::size_t kWarmCalls = 128;
constexpr int kAcceptsPerEvent = 64;
constexpr Duration kSweepInterval = std::chrono::seconds(10);
constexpr Duration kRetryAccept = std::chrono::milliseconds(100);
constexpr Duration kLookAtLeaving =
    std::chrono::milliseconds(100);  // an acknowledgement waits for 40

UniqueFd spare_descriptor() {
  return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}
}  // namespace

// --- TcpListener ---

Result<std::unique_ptr<TcpListener>> TcpListener::listen(EventLoop& loop,
                                                         const SocketAddress& address,
                                                         Accepted accepted) {
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return system_error("socket");
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // IPv4 gets a listener of its own.
  if (address.is_v6()) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(fd.get(), address.data(), address.length()) != 0) return system_error("bind");
  if (::listen(fd.get(), kBacklog) != 0) return system_error("listen");
  NFSRDMA_TRY(SocketAddress bound, SocketAddress::local_of(fd.get()));
  std::unique_ptr<TcpListener> made(
      new TcpListener(loop, std::move(fd), bound, std::move(accepted)));
  NFSRDMA_CHECK_OK(loop.add(made->fd_.get(), EPOLLIN, *made));
  return made;
}

TcpListener::TcpListener(EventLoop& loop, UniqueFd fd, const SocketAddress& address,
                         Accepted accepted)
    : loop_(loop),
      fd_(std::move(fd)),
      spare_(spare_descriptor()),
      address_(address),
      accepted_(std::move(accepted)),
      retry_([this] { watch(); }) {}

TcpListener::~TcpListener() {
  loop_.remove(fd_.get(), *this);
}

void TcpListener::on_fd_ready(std::uint32_t) {
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    UniqueFd socket(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      accepted_(std::move(socket));
      continue;
    }
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
    const bool no_descriptors = errno == EMFILE || errno == ENFILE;
    if (no_descriptors && refuse_one()) return;
    // The connection stays in the backlog: asking again at once would only spin.
    loop_.remove(fd_.get(), *this);
    retry_.arm_after(loop_, kRetryAccept);
    return;
  }
}

/// By closing. Another thread may take the descriptor that is spared for it meanwhile.
bool TcpListener::refuse_one() {
  static RateLimit limit(1, std::chrono::seconds(10));
  if (limit.allow()) log_error("out of file descriptors: connections are refused");
  spare_.reset();
  UniqueFd refused(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const bool done = static_cast<bool>(refused);
  refused.reset();
  spare_ = spare_descriptor();
  return done;
}

void TcpListener::watch() {
  if (!spare_) spare_ = spare_descriptor();
  if (!loop_.add(fd_.get(), EPOLLIN, *this).ok()) retry_.arm_after(loop_, kRetryAccept);
}

// --- TcpServer ---

/// Deletes connections outside of their own calls, and tells when the last one is gone.
class TcpServer::Reaper final : public Deferred {
 public:
  explicit Reaper(TcpServer& server) : server_(server) {}
  void run_deferred() override {
    while (TcpServerConnection* connection = server_.dead_.pop_front())
      delete connection;
    server_.check_drained();
  }

 private:
  TcpServer& server_;
};

TcpServer::TcpServer(EventLoop& loop, BufferPool& pool, CallHandler& handler,
                     const TcpServerLimits& limits)
    : loop_(loop),
      pool_(pool),
      handler_(handler),
      limits_(limits),
      scratch_(new std::byte[kScratchBytes]),
      warm_calls_(
          std::min(kWarmCalls, pool.budget() / 64 / (2 * BufferPool::charge(Call::kInlineReply)))),
      patience_([this] { connections_.for_each([](TcpServerConnection& c) { c.fail(); }); }),
      sweep_([this] { sweep(); }),
      leaving_([this] { look_at_leaving(); }),
      reaper_(std::make_unique<Reaper>(*this)) {
  limits_.max_record = std::min(limits_.max_record, BufferPool::kMaxBuffer);
}

TcpServer::~TcpServer() {
  connections_.for_each([](TcpServerConnection& c) { c.tear_down(); });
  NFSRDMA_CHECK(connections_.empty());  // else the handler still has Calls
  while (TcpServerConnection* connection = dead_.pop_front())
    delete connection;
  while (TcpCall* call = free_calls_.pop_front())
    delete call;
}

void TcpServer::adopt(UniqueFd socket) {
  if (stopping_ || !has_room()) return;
  auto connection = std::make_unique<TcpServerConnection>(*this, std::move(socket));
  if (!connection->start().ok()) return;  // gone already
  connections_.push_back(*connection.release());
  ++connection_count_;
}

bool TcpServer::has_room() {
  if (connection_count_ < limits_.max_connections && !limits_.places.are_full()) return true;
  return limits_.places.make_room([this](Silent silent) { return evict(silent); });
}

bool TcpServer::evict(Silent silent) {
  LongestSilent<TcpServerConnection> longest(silent, loop_.now() - limits_.idle_after);
  connections_.for_each([&](TcpServerConnection& c) { longest.consider(c, c.last_progress()); });
  return longest.end();
}

void TcpServer::for_each_connection(const std::function<void(ServerConnection&)>& visit) {
  connections_.for_each([&](TcpServerConnection& c) {
    if (!c.told_closed_) visit(c);
  });
}

TcpCall* TcpServer::take_call(BufferStage stage) {
  TcpCall* call = free_calls_.pop_front();
  if (call != nullptr) {
    --free_call_count_;
  } else {
    call = new TcpCall(*this);
  }
  if (!call->small_request_) call->small_request_ = pool_.acquire(Call::kInlineReply, stage);
  if (!call->reply_buffer_) call->reply_buffer_ = pool_.acquire(Call::kInlineReply, stage);
  if (call->small_request_ && call->reply_buffer_) return call;
  recycle(*call);
  return nullptr;
}

void TcpServer::recycle(TcpCall& call) {
  call.Call::unlink();
  call.payload_.reset();
  call.large_request_.reset();
  call.long_reply_buffer_.reset();
  if (free_call_count_ >= warm_calls_) {
    delete &call;
    return;
  }
  free_calls_.push_front(call);
  ++free_call_count_;
}

void TcpServer::connection_gone(TcpServerConnection& connection) {
  dead_.push_back(connection);
  --connection_count_;
  loop_.defer(*reaper_);
}

void TcpServer::watch_stalls() {
  if (!sweep_.armed()) sweep_.arm(loop_, loop_.now() + kSweepInterval);
}

void TcpServer::sweep() {
  bool any = false;
  const TimePoint long_ago = loop_.now() - limits_.stalled_after;
  connections_.for_each([&](TcpServerConnection& connection) {
    const bool receives = connection.pins_large_buffer();
    const bool stalls = receives && connection.waits_for_record_since() <= long_ago;
    const bool sends = connection.has_output();
    const char* why = nullptr;
    if (stalls) why = "nothing more of a large record for a long time";
    if (sends && connection.last_taken() <= long_ago) {
      why = "none of its replies was taken for a long time";
    }
    if (why == nullptr) {
      any |= receives || sends;
      return;
    }
    connection.cut_off(why);
  });
  if (any) watch_stalls();
}

void TcpServer::watch_leaving() {
  if (!leaving_.armed()) leaving_.arm_after(loop_, kLookAtLeaving);
}

void TcpServer::look_at_leaving() {
  bool any = false;
  connections_.for_each([&any](TcpServerConnection& connection) {
    if (connection.has_left()) return connection.fail();
    any |= connection.is_leaving();
  });
  if (any) watch_leaving();
}

void TcpServer::shutdown(Duration patience, std::function<void()> done) {
  stopping_ = true;
  drained_ = std::move(done);
  connections_.for_each([](TcpServerConnection& c) { c.drain(); });
  patience_.arm_after(loop_, patience);
  loop_.defer(*reaper_);
}

void TcpServer::check_drained() {
  if (!drained_ || connection_count_ > 0) return;
  patience_.cancel();
  std::exchange(drained_, nullptr)();
}

}  // namespace nfsrdma
