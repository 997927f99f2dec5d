// SPDX-License-Identifier: Apache-2.0
// SimLine: where the server calls a simulated client of minor version 0 (RFC 7530 16.33): a service
// on this machine's loopback. CB_NULL is answered at once; CB_RECALL and CB_GETATTR wait until the
// simulation answers them. Without a thread: things come in during turn() and wait_for_more()
// alone.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/loopback_listener.h"
#include "tests/support/xdr_bytes.h"
#include "xdr/nfs4_callback.h"
#include "xdr/universal_address.h"

namespace nfsrdma::test {

class SimLine {
 public:
  static constexpr std::uint32_t kProgram = 0x40000001;
  static constexpr std::uint32_t kIdent = 77;

  explicit SimLine(const std::string& host)
      : host_(host), listener_(listen_on_loopback(&address_, host, SOCK_NONBLOCK)) {}

  /// As SETCLIENTID names it.
  std::string address() const { return xdr::format_universal_address(host_, address_.port()); }
  /// Where nobody listens.
  std::string dead_address() const { return xdr::format_universal_address(host_, 1); }

  struct Call {
    int connection = -1;
    std::uint32_t xid = 0;
    xdr::stateid4 stateid{};
  };
  /// CB_RECALLs that have no answer yet.
  const std::vector<Call>& calls() const { return calls_; }
  /// A CB_GETATTR.
  struct Question {
    int connection = -1;
    std::uint32_t xid = 0;
    std::vector<std::byte> handle;
  };
  const std::vector<Question>& questions() const { return questions_; }
  /// That was recalled, and the client has said that it knows, or has the call before it still.
  bool has_heard_of(const xdr::stateid4& stateid) const { return heard_.contains(stateid.other); }

  void turn() {
    for (;;) {
      UniqueFd one(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!one) break;
      const int fd = one.get();
      connections_[fd].fd = std::move(one);
    }
    std::vector<int> ended;
    for (auto& [fd, connection] : connections_) {
      if (!read_from(connection)) ended.push_back(fd);
    }
    for (const int fd : ended)
      end(fd);
  }
  void wait_for_more() {
    std::vector<pollfd> all{{listener_.get(), POLLIN, 0}};
    for (const auto& [fd, connection] : connections_)
      all.push_back({fd, POLLIN, 0});
    ::poll(all.data(), all.size(), 1);
  }
  void answer(const Call& call, xdr::nfsstat4 status) {
    const auto word = static_cast<std::uint32_t>(status);
    const auto operation = static_cast<std::uint32_t>(xdr::nfs_cb_opnum4::OP_CB_RECALL);
    reply(call.connection, call.xid, testing::words({word, 0, 1, operation, word}));
    if (status != xdr::nfsstat4::NFS4_OK) heard_.erase(call.stateid.other);
    std::erase_if(calls_, [xid = call.xid, fd = call.connection](const Call& one) {
      return one.xid == xid && one.connection == fd;
    });
  }
  /// `attributes`: what is behind the status NFS4_OK.
  void answer(const Question& question, xdr::nfsstat4 status,
              const std::vector<std::byte>& attributes) {
    const auto word = static_cast<std::uint32_t>(status);
    const auto operation = static_cast<std::uint32_t>(xdr::nfs_cb_opnum4::OP_CB_GETATTR);
    std::vector<std::byte> result = testing::words({word, 0, 1, operation, word});
    result.insert(result.end(), attributes.begin(), attributes.end());
    reply(question.connection, question.xid, result);
    std::erase_if(questions_, [xid = question.xid, fd = question.connection](const Question& one) {
      return one.xid == xid && one.connection == fd;
    });
  }
  /// All connections are lost; the server may make others.
  void hang_up() {
    turn();
    while (!connections_.empty())
      end(connections_.begin()->first);
  }
  /// The server is another one.
  void restart() {
    hang_up();
    heard_.clear();
  }

 private:
  struct Connection {
    UniqueFd fd;
    std::vector<std::byte> read;
  };

  /// False: it is at its end.
  bool read_from(Connection& connection) {
    std::array<std::byte, 4096> room;
    for (;;) {
      const ssize_t n = ::recv(connection.fd.get(), room.data(), room.size(), 0);
      if (n < 0) return errno == EAGAIN;
      if (n == 0) return false;
      connection.read.insert(connection.read.end(), room.begin(), room.begin() + n);
      while (take_call(connection)) {
      }
    }
  }
  bool take_call(Connection& connection) {
    std::vector<std::byte>& read = connection.read;
    if (read.size() < 4) return false;
    const std::size_t length = load_be32(read.data()) & 0x7fffffff;
    if (read.size() < 4 + length) return false;
    const auto end = read.begin() + static_cast<std::ptrdiff_t>(4 + length);
    const std::vector<std::byte> message(read.begin() + 4, end);
    read.erase(read.begin(), end);
    called(connection.fd.get(), message);
    return true;
  }
  void called(int connection, const std::vector<std::byte>& message) {
    xdr::Decoder in(message);
    xdr::rpc_msg header;
    ASSERT_TRUE(xdr::decode(in, header));
    EXPECT_EQ(header.cbody.prog, kProgram);
    if (header.cbody.proc == xdr::CB_NULL) return reply(connection, header.xid, {});
    xdr::CB_COMPOUND4args head;
    ASSERT_TRUE(xdr::decode(in, head));
    EXPECT_EQ(head.minorversion, 0u);
    EXPECT_EQ(head.callback_ident, kIdent);
    EXPECT_EQ(head.argarray_len, 1u);
    const auto operation = static_cast<xdr::nfs_cb_opnum4>(in.u32());
    if (operation == xdr::nfs_cb_opnum4::OP_CB_GETATTR) {
      xdr::CB_GETATTR4args asked;
      ASSERT_TRUE(xdr::decode(in, asked) && in.at_end());
      const ByteSpan handle = asked.fh.data;
      questions_.push_back({connection, header.xid, {handle.begin(), handle.end()}});
      return;
    }
    EXPECT_EQ(operation, xdr::nfs_cb_opnum4::OP_CB_RECALL);
    xdr::CB_RECALL4args recall;
    ASSERT_TRUE(xdr::decode(in, recall) && in.at_end());
    calls_.push_back({connection, header.xid, recall.stateid});
    heard_.insert(recall.stateid.other);
  }
  static void reply(int connection, std::uint32_t xid, const std::vector<std::byte>& result) {
    std::vector<std::byte> record = testing::words({0, xid, 1, 0, 0, 0, 0});
    record.insert(record.end(), result.begin(), result.end());
    store_be32(record.data(), 0x80000000u | static_cast<std::uint32_t>(record.size() - 4));
    // The server may have ended the connection.
    (void)::send(connection, record.data(), record.size(), MSG_NOSIGNAL);
  }
  void end(int connection) {
    for (const Call& call : calls_) {
      if (call.connection == connection) heard_.erase(call.stateid.other);
    }
    const auto its = [connection](const auto& one) { return one.connection == connection; };
    std::erase_if(calls_, its);
    std::erase_if(questions_, its);
    connections_.erase(connection);
  }

  const std::string host_;
  SocketAddress address_;
  UniqueFd listener_;
  std::map<int, Connection> connections_;
  std::vector<Call> calls_;
  std::vector<Question> questions_;
  std::set<std::array<std::byte, xdr::kNfs4OtherBytes>> heard_;
};

}  // namespace nfsrdma::test
