// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/channel.h"

#include <fcntl.h>

#include <cerrno>

#include "rpcrdma/base/log.h"

namespace nfsrdma {
namespace {

// Requests taken per turn of the loop, so that the network gets its turn too.
constexpr int kMostPerTurn = 16;

}  // namespace

Channel::Channel(EventLoop& loop, fuse_session* session, BlockPool& pool,
                 std::function<void()> ended)
    : loop_(loop), session_(session), pool_(pool), ended_(std::move(ended)) {}

Channel::~Channel() {
  stop();
}

Result<void> Channel::start() {
  const int fd = ::fuse_session_fd(session_);
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return system_error("fcntl");
  NFSRDMA_CHECK_OK(loop_.add(fd, EPOLLIN, *this));
  fd_ = fd;
  return {};
}

void Channel::stop() {
  if (fd_ < 0) return;
  loop_.remove(fd_, *this);
  fd_ = -1;
}

void Channel::end() {
  stop();
  ended_();
}

void Channel::on_fd_ready(std::uint32_t) {
  for (int i = 0; i < kMostPerTurn && fd_ >= 0; ++i) {
    if (!receive_one()) return;
  }
}

bool Channel::receive_one() {
  // Somebody kept the last one.
  if (block_ == nullptr || block_.use_count() > 1) block_ = pool_.take();
  fuse_buf buffer{};
  buffer.mem = block_->data();
  buffer.size = block_->capacity();
  const int n = ::fuse_session_receive_buf(session_, &buffer);
  if (n == -EAGAIN || n == -EINTR) return false;
  if (n <= 0) {
    if (n != 0 && n != -ENODEV) log_error("/dev/fuse: {}", std::strerror(-n));
    end();
    return false;
  }
  ::fuse_session_process_buf(session_, &buffer);
  if (::fuse_session_exited(session_)) {
    end();
    return false;
  }
  return true;
}

}  // namespace nfsrdma
