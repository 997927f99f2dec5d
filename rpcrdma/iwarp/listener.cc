// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/listener.h"

#include <sys/socket.h>

#include "rpcrdma/iwarp/fabric_impl.h"
#include "rpcrdma/iwarp/responder_handshake.h"

namespace nfsrdma::iwarp {
namespace {

constexpr int kBacklog = 1024;
constexpr int kAcceptsPerEvent = 64;

/// A TCP connection on which nothing was read yet.
class IwarpIncoming final : public Incoming {
 public:
  IwarpIncoming(IwarpFabric& fabric, UniqueFd fd, const SocketAddress& peer,
                HalfOpenLimit::Slot slot)
      : fabric_(fabric), fd_(std::move(fd)), peer_(peer), slot_(std::move(slot)) {}

  void start(EventLoop& loop, AcceptHandler& handler) override {
    if (!fd_) return;
    IwarpDevice& device = fabric_.device_for(loop);
    auto handshake = std::make_unique<ResponderHandshake>(device, std::move(fd_), peer_,
                                                          std::move(slot_), handler);
    ResponderHandshake& started = *handshake;
    device.adopt(std::move(handshake));
    started.start();
  }

 private:
  IwarpFabric& fabric_;
  UniqueFd fd_;
  SocketAddress peer_;
  HalfOpenLimit::Slot slot_;
};

Result<UniqueFd> open_listener(const SocketAddress& address) {
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return system_error("socket");
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // v4 has a listener of its own: a v6 socket that takes both would stand in its way.
  if (address.is_v6()) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(fd.get(), address.data(), address.length()) != 0) return system_error("bind");
  if (::listen(fd.get(), kBacklog) != 0) return system_error("listen");
  return fd;
}

}  // namespace

Result<std::unique_ptr<Listener>> IwarpListener::create(IwarpFabric& fabric, EventLoop& loop,
                                                        const SocketAddress& address,
                                                        IncomingHandler& handler) {
  NFSRDMA_TRY(UniqueFd fd, open_listener(address));
  NFSRDMA_TRY(SocketAddress bound, SocketAddress::local_of(fd.get()));
  const int raw = fd.get();
  std::unique_ptr<IwarpListener> listener(
      new IwarpListener(fabric, loop, std::move(fd), bound, handler));
  NFSRDMA_CHECK_OK(loop.add(raw, EPOLLIN, *listener));
  return listener;
}

IwarpListener::IwarpListener(IwarpFabric& fabric, EventLoop& loop, UniqueFd fd,
                             const SocketAddress& address, IncomingHandler& handler)
    : fabric_(fabric),
      loop_(loop),
      fd_(std::move(fd)),
      address_(address),
      handler_(handler),
      retry_([this] { watch(); }) {}

IwarpListener::~IwarpListener() {
  loop_.remove(fd_.get(), *this);
}

void IwarpListener::watch() {
  if (!loop_.add(fd_.get(), EPOLLIN, *this).ok()) {
    retry_.arm_after(loop_, std::chrono::seconds(1));
  }
}

void IwarpListener::on_fd_ready(std::uint32_t) {
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    sockaddr_storage storage{};
    socklen_t length = sizeof storage;
    UniqueFd fd(::accept4(fd_.get(), reinterpret_cast<sockaddr*>(&storage), &length,
                          SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) return accept_failed(errno);
    const SocketAddress peer(reinterpret_cast<const sockaddr*>(&storage), length);
    HalfOpenLimit::Slot slot = fabric_.state().half_open.enter(peer, fd.get());
    if (!slot) {
      if (log_limit_.allow()) log_warning("{}: too many handshakes under way", peer.text());
      continue;
    }
    handler_.on_incoming(
        std::make_unique<IwarpIncoming>(fabric_, std::move(fd), peer, std::move(slot)));
  }
}

void IwarpListener::accept_failed(int error) {
  if (error == EAGAIN || error == EINTR || error == ECONNABORTED) return;
  if (log_limit_.allow()) log_error("{}", system_error("accept", error).message());
  // The connection stays in the backlog: asking again at once would only spin.
  loop_.remove(fd_.get(), *this);
  retry_.arm_after(loop_, std::chrono::milliseconds(100));
}

}  // namespace nfsrdma::iwarp
