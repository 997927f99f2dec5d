// SPDX-License-Identifier: Apache-2.0
// A Call without a transport, for tests of the dispatcher and of procedures.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/call.h"
#include "xdr/rpc.h"

namespace nfsrdma::test {

class FakeConnection final : public ServerConnection {
 public:
  FakeConnection(EventLoop& loop, BufferPool& pool, const std::string& host, std::uint16_t port)
      : loop_(loop), pool_(pool), peer_(SocketAddress::parse(host, port).value()) {
    static std::uint64_t last_id = 0;
    id = ++last_id;
  }
  const SocketAddress& peer() const override { return peer_; }
  TransportKind transport() const override { return kind; }
  EventLoop& loop() override { return loop_; }
  BufferPool& buffers() override { return pool_; }
  ConnectionInfo describe() const override { return {}; }
  void close() override {}
  TransportKind kind = TransportKind::kTcp;

 private:
  EventLoop& loop_;
  BufferPool& pool_;
  SocketAddress peer_;
};

class FakeCall final : public Call {
 public:
  FakeCall(ServerConnection& connection, std::vector<std::byte> bytes)
      : bytes_(std::move(bytes)), room_(kInlineReply) {
    connection_ = &connection;
    message_ = bytes_;
    if (bytes_.size() >= 4) xid_ = load_be32(bytes_.data());
    request_bytes_ = bytes_.size();
  }
  bool reserve_reply(std::size_t bytes) override {
    if (!may_reserve) return false;
    room_.resize(std::max(room_.size(), bytes));
    return true;
  }
  MutableByteSpan reply_room() override { return room_; }
  void reply(const xdr::Encoder& encoder, Buffer) override {
    EXPECT_FALSE(encoder.overflowed());
    answer.assign(encoder.bytes().begin(), encoder.bytes().end());
    ++replies;
  }
  void drop() override { ++drops; }
  bool over() const { return replies + drops > 0; }

  /// The reply's header; `results` gets what follows.
  xdr::rpc_msg header(xdr::Decoder* results = nullptr) const {
    xdr::Decoder decoder{ByteSpan(answer)};
    xdr::rpc_msg message;
    EXPECT_TRUE(xdr::decode(decoder, message));
    if (results != nullptr) *results = decoder;
    return message;
  }

  bool may_reserve = true;
  std::vector<std::byte> answer;
  int replies = 0;
  int drops = 0;

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::byte> room_;
};

/// An RPC call message: header with AUTH_SYS (or none), then `arguments`.
inline std::vector<std::byte> call_message(std::uint32_t xid, std::uint32_t program,
                                           std::uint32_t version, std::uint32_t procedure,
                                           ByteSpan arguments = {}, std::uint32_t rpcvers = 2) {
  std::vector<std::byte> bytes(1024 + arguments.size());
  xdr::Encoder encoder{MutableByteSpan(bytes)};
  xdr::rpc_msg message;
  message.xid = xid;
  message.cbody.rpcvers = rpcvers;
  message.cbody.prog = program;
  message.cbody.vers = version;
  message.cbody.proc = procedure;
  std::byte credential[64];
  xdr::Encoder body{MutableByteSpan(credential)};
  xdr::authsys_parms parms;
  parms.machinename = "client";
  parms.uid = 1000;
  parms.gid = 100;
  parms.gids.push_back(27);
  xdr::encode(body, parms);
  message.cbody.cred = {xdr::auth_flavor::AUTH_SYS, body.bytes()};
  xdr::encode(encoder, message);
  encoder.fixed_opaque(arguments);
  bytes.resize(encoder.size());
  return bytes;
}

}  // namespace nfsrdma::test
