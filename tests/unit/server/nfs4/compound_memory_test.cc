// SPDX-License-Identifier: Apache-2.0
// COMPOUNDs that want more memory while they hold some: with a small pool they must not wait for
// each other.
#include <gtest/gtest.h>

#include <memory>

#include "server/dispatch.h"
#include "server/worker_pool.h"
#include "tests/support/nfs4_harness.h"
#include "tests/unit/server/fake_call.h"

namespace nfsrdma::test {
namespace {

/// Room for a longer reply comes from the pool, as TCP's calls have it.
class PooledCall final : public Call {
 public:
  PooledCall(ServerConnection& connection, std::vector<std::byte> bytes)
      : bytes_(std::move(bytes)), room_(kInlineReply) {
    connection_ = &connection;
    message_ = bytes_;
    xid_ = load_be32(bytes_.data());
    request_bytes_ = bytes_.size();
  }
  bool reserve_reply(std::size_t bytes) override {
    if (bytes <= reply_room().size()) return true;
    Buffer larger = connection_->buffers().acquire(bytes);
    if (!larger) return false;
    long_ = std::move(larger);
    return true;
  }
  MutableByteSpan reply_room() override { return long_ ? long_.bytes() : MutableByteSpan(room_); }
  void reply(const xdr::Encoder& encoder, Buffer) override {
    xdr::Decoder decoder(encoder.bytes());
    xdr::rpc_msg header;
    if (xdr::decode(decoder, header)) status = static_cast<nfsstat4>(decoder.u32());
    long_.reset();
    answered = true;
  }
  void drop() override { ADD_FAILURE() << "dropped"; }

  bool answered = false;
  nfsstat4 status = NFS4ERR_SERVERFAULT;

 private:
  std::vector<std::byte> bytes_, room_;
  Buffer long_;
};

std::vector<std::byte> message(std::uint32_t xid, const Operations4& operations) {
  std::vector<std::byte> bytes(1024 + operations.bytes().size());
  std::array<std::byte, 64> credential;
  xdr::Encoder body{MutableByteSpan(credential)};
  xdr::authsys_parms parms;
  parms.machinename = "client";
  xdr::encode(body, parms);
  xdr::rpc_msg header;
  header.xid = xid;
  header.cbody.prog = 100003;
  header.cbody.vers = 4;
  header.cbody.proc = 1;
  header.cbody.cred = {xdr::auth_flavor::AUTH_SYS, body.bytes()};
  xdr::Encoder encoder{MutableByteSpan(bytes)};
  xdr::encode(encoder, header);
  xdr::encode(encoder, xdr::COMPOUND4args{"", 2, operations.count()});
  encoder.fixed_opaque(operations.bytes());
  bytes.resize(encoder.size());
  return bytes;
}

TEST(CompoundMemory, ThoseThatHoldSomeDoNotWaitForMore) {
  Nfs4Harness nfs;
  std::vector<Session4> sessions;
  sessions.reserve(5);
  for (int i = 0; i < 5; ++i)
    sessions.push_back(nfs.connect("client " + std::to_string(i)));
  const Open4 file = nfs.open(nfs.root(), "file");
  const Open4 other = nfs.open(nfs.root(), "other");
  ASSERT_TRUE(file.status == NFS4_OK && other.status == NFS4_OK);
  for (std::uint64_t at = 0; at < (1u << 20); at += 1u << 18)
    ASSERT_EQ(nfs.write(file, at, std::string(1u << 18, 'x')), NFS4_OK);

  auto loop = std::move(EventLoop::create()).value();
  BufferPool pool{*loop, BufferPool::kLeastBudget};
  std::vector<Buffer> rest;
  while (pool.budget() - pool.in_use() > 2 * BufferPool::kMaxBuffer)
    rest.push_back(pool.acquire(BufferPool::kMaxBuffer));
  WorkerPool workers{2};
  const ProgramTable tables[] = {nfs4::program_table()};
  Dispatcher::Shared shared;
  shared.server = &nfs.server();
  shared.workers = &workers;
  shared.committer = &nfs.server().committer;
  shared.programs = tables;
  Dispatcher dispatcher(*loop, shared);
  FakeConnection connection(*loop, pool, "192.0.2.7", 700);
  // READs that together take the whole pool; then each wants room for a directory as well. COPY
  // sends them to a worker in between, so that all hold their buffers by then.
  const std::uint32_t sizes[] = {983040,   983040,   983040,   983040,   983040,   983040,  983040,
                                 1u << 18, 1u << 18, 1u << 18, 1u << 16, 1u << 16, 1u << 16};
  std::vector<std::unique_ptr<PooledCall>> calls;
  for (std::uint32_t i = 0; i < std::size(sizes); ++i) {
    xdr::COPY4args copy;
    copy.ca_dst_offset = 4u << 20;
    copy.ca_count = 1;
    copy.ca_consecutive = copy.ca_synchronous = true;
    xdr::READDIR4args list;
    list.dircount = list.maxcount = 32768;
    Operations4 operations;
    operations.add<OP_SEQUENCE>({sessions[i / 3].id, 1, 1 + i % 3, 3, false})
        .putfh(file.handle)
        .add<OP_READ>({xdr::stateid4{}, 0, sizes[i]})
        .add<OP_SAVEFH>()
        .putfh(other.handle)
        .add<OP_COPY>(copy)
        .putfh(nfs.root())
        .add<OP_READDIR>(list);
    calls.push_back(std::make_unique<PooledCall>(connection, message(i + 1, operations)));
    dispatcher.on_call(*calls.back());
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto all_answered = [&calls] {
    return std::all_of(calls.begin(), calls.end(), [](const auto& call) { return call->answered; });
  };
  while (!all_answered() && std::chrono::steady_clock::now() < end)
    loop->turn(std::chrono::milliseconds(10));
  ASSERT_TRUE(all_answered());
  for (const auto& call : calls)
    EXPECT_TRUE(call->status == NFS4_OK || call->status == NFS4ERR_DELAY)
        << static_cast<std::uint32_t>(call->status);
  EXPECT_EQ(dispatcher.outstanding(), 0u);
}

}  // namespace
}  // namespace nfsrdma::test
