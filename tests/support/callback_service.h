// SPDX-License-Identifier: Apache-2.0
// CallbackService: the callback service of a client of minor version 0, by TCP, with a thread of
// its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "rpcrdma/base/bytes.h"
#include "tests/support/holder_answer.h"
#include "tests/support/loopback_listener.h"
#include "tests/support/xdr_bytes.h"
#include "xdr/nfs4_callback.h"
#include "xdr/rpc.h"

namespace nfsrdma::test {

/// A client's callback service: takes connections and calls, and answers what it is told to.
class CallbackService {
 public:
  static constexpr std::uint32_t kProgram = 0x40000001;
  static constexpr std::uint32_t kIdent = 77;

  CallbackService() : listener_(listen_on_loopback(&address_)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~CallbackService() {
    ending_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    hang_up();
    thread_.join();
  }
  std::uint16_t port() const { return address_.port(); }
  /// False: a call ends its connection instead.
  std::atomic<bool> answers{true};
  /// Ends the connection that it has.
  void hang_up() {
    const std::lock_guard lock(mutex_);
    if (connection_) ::shutdown(connection_.get(), SHUT_RDWR);
  }
  int connections() const { return connections_.load(); }
  /// What it says of its files when it is asked.
  void say(std::uint64_t change, std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    attributes_ = holder_answer(change, size);
  }
  /// How many CB_COMPOUNDs have come that next() has not told of.
  std::size_t waiting() {
    const std::lock_guard lock(mutex_);
    return seen_.size();
  }
  /// The next CB_COMPOUND: its operation's arguments, behind the operation's number.
  std::vector<std::byte> next() {
    std::unique_lock lock(mutex_);
    if (!came_.wait_for(lock, std::chrono::seconds(10), [&] { return !seen_.empty(); })) return {};
    auto out = std::move(seen_.front());
    seen_.pop_front();
    return out;
  }

 private:
  void serve() {
    while (!ending_) {
      UniqueFd accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!accepted) return;
      const int fd = accepted.get();
      ++connections_;
      {
        const std::lock_guard lock(mutex_);
        connection_ = std::move(accepted);
      }
      while (answer_one(fd)) {
      }
      const std::lock_guard lock(mutex_);
      connection_.reset();
    }
  }
  static bool read_all(int fd, MutableByteSpan to) {
    return ::recv(fd, to.data(), to.size(), MSG_WAITALL) == static_cast<ssize_t>(to.size());
  }
  bool answer_one(int fd) {
    std::array<std::byte, 4> mark;
    if (!read_all(fd, mark)) return false;
    std::vector<std::byte> call(load_be32(mark.data()) & 0x7fffffff);
    if (!read_all(fd, call) || !answers) return false;
    answer(fd, call);
    return true;
  }
  void answer(int fd, const std::vector<std::byte>& call) {
    xdr::Decoder in(call);
    xdr::rpc_msg header;
    ASSERT_TRUE(xdr::decode(in, header));
    EXPECT_EQ(header.cbody.prog, kProgram);
    EXPECT_EQ(header.cbody.cred.flavor, xdr::auth_flavor::AUTH_SYS);
    std::vector<std::byte> reply = testing::words({header.xid, 1, 0, 0, 0, 0});
    if (header.cbody.proc == xdr::CB_COMPOUND) {
      xdr::CB_COMPOUND4args head;
      ASSERT_TRUE(xdr::decode(in, head));
      EXPECT_EQ(head.minorversion, 0u);
      EXPECT_EQ(head.callback_ident, kIdent);
      ASSERT_EQ(head.argarray_len, 1u);
      const std::uint32_t operation = in.u32();
      auto more = testing::words({0, 0, 1, operation, 0});
      const std::lock_guard lock(mutex_);
      if (operation == static_cast<std::uint32_t>(xdr::nfs_cb_opnum4::OP_CB_GETATTR))
        more.insert(more.end(), attributes_.begin(), attributes_.end());
      reply.insert(reply.end(), more.begin(), more.end());
      seen_.emplace_back(call.end() - static_cast<std::ptrdiff_t>(in.remaining()), call.end());
      came_.notify_all();
    }
    std::vector<std::byte> record(4);
    store_be32(record.data(), 0x80000000u | static_cast<std::uint32_t>(reply.size()));
    record.insert(record.end(), reply.begin(), reply.end());
    EXPECT_EQ(::send(fd, record.data(), record.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(record.size()));
  }

  SocketAddress address_;
  UniqueFd listener_;
  std::atomic<bool> ending_{false};
  std::atomic<int> connections_{0};
  std::mutex mutex_;
  UniqueFd connection_;
  std::condition_variable came_;
  std::deque<std::vector<std::byte>> seen_;
  std::vector<std::byte> attributes_;
  std::thread thread_;
};

}  // namespace nfsrdma::test
