// SPDX-License-Identifier: Apache-2.0
// Copies that go on behind their replies: the reply, OFFLOAD_STATUS, OFFLOAD_CANCEL and CB_OFFLOAD
// as a client sees them, and what ends a copy. A gate holds the copying threads where a test wants
// them to be.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <thread>

#include "tests/support/nfs4_harness.h"
#include "tests/support/xdr_bytes.h"
#include "xdr/nfs4_callback.h"

namespace nfsrdma::test {
namespace {

using nfsrdma::testing::words;

constexpr std::uint64_t kPiece = nfs4::kCopyPiece;
constexpr std::uint64_t kSize = 5 * kPiece + 3;  // not to be done at once

/// Lets as many pieces pass as it was told to.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return tickets_ > 0; });
    --waiting_;
    if (!open_) --tickets_;
  }
  void let_pass(int pieces) {
    std::lock_guard lock(mutex_);
    tickets_ += pieces;
    changed_.notify_all();
  }
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    tickets_ = 1;
    changed_.notify_all();
  }
  void wait_for(int waiting) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ == waiting; });
  }
  /// All tickets are used up and somebody waits for the next one.
  void wait_until_used() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tickets_ == 0 && waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int tickets_ = 0, waiting_ = 0;
  bool open_ = false;
};

/// A CB_OFFLOAD as the client sees it.
struct Told {
  xdr::CB_SEQUENCE4args sequence;
  xdr::CB_OFFLOAD4args offload;
};

class OffloadsTest : public ::testing::Test {
 protected:
  OffloadsTest() {
    nfs.connection().max_backward = 1000;
    nfs.session = nfs.connect("client");
    std::string content(kSize, 'x');
    for (std::size_t i = 0; i < content.size(); i += 1000)
      content[i] = static_cast<char>('a' + i / 1000 % 26);
    put_file(nfs.path("from"), content);
    from = nfs.open(nfs.root(), "from");
    to = nfs.open(nfs.root(), "to");
    nfs.state().offloads.before_piece = [this] { gate.pass(); };
  }
  ~OffloadsTest() override { gate.open(); }

  xdr::COPY4args args(std::uint64_t count = 0) const {
    xdr::COPY4args out;
    out.ca_src_stateid = from.stateid;
    out.ca_dst_stateid = to.stateid;
    out.ca_count = count;
    out.ca_consecutive = true;
    return out;
  }
  xdr::COPY4resok copy(const xdr::COPY4args& what) {
    const Reply4 reply = nfs.run(
        Operations4().putfh(from.handle).add<OP_SAVEFH>().putfh(to.handle).add<OP_COPY>(what));
    EXPECT_EQ(reply.status, NFS4_OK);
    return reply.get<OP_COPY>().resok4;
  }
  /// One that goes on behind its reply.
  xdr::stateid4 begin() {
    const xdr::COPY4resok res = copy(args());
    EXPECT_EQ(res.cr_response.wr_callback_id.count, 1u);
    return res.cr_response.wr_callback_id.items[0];
  }
  Reply4 status(const xdr::stateid4& stateid) {
    return nfs.on<OP_OFFLOAD_STATUS>(to.handle, {stateid});
  }
  nfsstat4 cancel(const xdr::stateid4& stateid) {
    return nfs.on<OP_OFFLOAD_CANCEL>(to.handle, {stateid}).status;
  }
  std::size_t known() {
    std::lock_guard lock(nfs.state().mutex);
    return nfs.state().offloads.table().size();
  }
  std::size_t ended() {
    std::lock_guard lock(nfs.state().mutex);
    return nfs.state().offloads.table().ended().size();
  }
  template <typename Predicate>
  bool soon(Predicate predicate) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!predicate()) {
      if (std::chrono::steady_clock::now() > end) return false;
      nfs.connection().loop().turn(std::chrono::milliseconds(1));
    }
    return true;
  }

  /// The calls to the client that have come; waits for the first.
  std::vector<BackwardCall*>& calls() {
    auto& calls = nfs.connection().backward;
    soon([&] { return !calls.empty(); });
    return calls;
  }
  bool is_quiet() {
    tick();
    nfs.connection().loop().turn(Duration::zero());
    return nfs.connection().backward.empty();
  }
  static Told read(const BackwardCall& call) {
    Told out;
    xdr::Decoder decoder(call.message);
    xdr::rpc_msg header;
    xdr::CB_COMPOUND4args head;
    EXPECT_TRUE(xdr::decode(decoder, header) && xdr::decode(decoder, head));
    EXPECT_EQ(head.minorversion, 2u);
    EXPECT_EQ(head.argarray_len, 2u);
    EXPECT_EQ(decoder.u32(), static_cast<std::uint32_t>(xdr::nfs_cb_opnum4::OP_CB_SEQUENCE));
    EXPECT_TRUE(xdr::decode(decoder, out.sequence));
    EXPECT_EQ(decoder.u32(), static_cast<std::uint32_t>(xdr::nfs_cb_opnum4::OP_CB_OFFLOAD));
    EXPECT_TRUE(xdr::decode(decoder, out.offload) && decoder.at_end());
    return out;
  }
  BackwardCall& take_call() {
    auto& waiting = calls();
    EXPECT_FALSE(waiting.empty());
    BackwardCall& call = *waiting.at(0);
    waiting.erase(waiting.begin());
    return call;
  }
  /// The client answers the oldest call: CB_SEQUENCE, and CB_OFFLOAD with `status`.
  void answer(nfsstat4 status = NFS4_OK) {
    BackwardCall& call = take_call();
    const xdr::CB_SEQUENCE4args sequence = read(call).sequence;
    std::vector<std::byte> reply = words({5, 1, 0, 0, 0, 0});
    const auto add = [&reply](const std::vector<std::byte>& more) {
      reply.insert(reply.end(), more.begin(), more.end());
    };
    add(words({static_cast<std::uint32_t>(status), 0, 2, 11, 0}));
    add({sequence.csa_sessionid.begin(), sequence.csa_sessionid.end()});
    add(words({sequence.csa_sequenceid, sequence.csa_slotid, 3, 3}));
    add(words({15, static_cast<std::uint32_t>(status)}));
    call.ok = true;
    call.reply = reply;
    call.on_complete();
  }
  void fail(Errc code) {
    BackwardCall& call = take_call();
    call.ok = false;
    call.error = Error{code, 0, "the test"};
    call.on_complete();
  }
  /// As the threads do each second.
  void tick(Duration later = Duration::zero()) {
    std::lock_guard lock(nfs.state().mutex);
    nfs.clock.move(later);
    nfs.state().offloads.tick();
  }

  Gate gate;
  Nfs4Harness nfs;
  Open4 from, to;
};

TEST_F(OffloadsTest, ALongCopyGoesOnBehindItsReply) {
  const xdr::COPY4resok res = copy(args());
  ASSERT_EQ(res.cr_response.wr_callback_id.count, 1u);
  const xdr::stateid4 stateid = res.cr_response.wr_callback_id.items[0];
  EXPECT_NE(stateid.seqid, 0u);
  EXPECT_EQ(res.cr_response.wr_count, 0u);
  EXPECT_TRUE(res.cr_requirements.cr_consecutive);
  EXPECT_FALSE(res.cr_requirements.cr_synchronous);
  gate.open();
  const Told told = read(*calls().at(0));
  EXPECT_EQ(told.sequence.csa_sessionid, nfs.session.id);
  EXPECT_EQ(told.offload.coa_fh.data.size(), to.handle.bytes().size());
  EXPECT_EQ(told.offload.coa_stateid.seqid, stateid.seqid);
  EXPECT_EQ(told.offload.coa_stateid.other, stateid.other);
  EXPECT_EQ(told.offload.coa_offload_info.coa_status, NFS4_OK);
  const xdr::write_response4& done = told.offload.coa_offload_info.coa_resok4;
  EXPECT_EQ(done.wr_callback_id.count, 0u);
  EXPECT_EQ(done.wr_count, kSize);
  EXPECT_EQ(done.wr_committed, xdr::stable_how4::UNSTABLE4);
  EXPECT_TRUE(content_of(nfs.path("to")) == content_of(nfs.path("from")));
  const Reply4 committed = nfs.on<OP_COMMIT>(to.handle);
  EXPECT_TRUE(committed.waited_for_disk);
  EXPECT_EQ(committed.get<OP_COMMIT>().resok4.writeverf, done.wr_writeverf);
  EXPECT_EQ(done.wr_writeverf, res.cr_response.wr_writeverf);
  // Known until the client has answered.
  const auto known_now = status(stateid).get<OP_OFFLOAD_STATUS>().resok4;
  EXPECT_EQ(known_now.osr_count, kSize);
  ASSERT_EQ(known_now.osr_complete.count, 1u);
  EXPECT_EQ(known_now.osr_complete.items[0], NFS4_OK);
  answer();
  EXPECT_EQ(status(stateid).status, NFS4ERR_BAD_STATEID);
  EXPECT_EQ(known(), 0u);
  EXPECT_TRUE(is_quiet());
}

TEST_F(OffloadsTest, OthersAreDoneBeforeTheReply) {
  gate.open();
  auto what = args();
  what.ca_synchronous = true;
  const xdr::COPY4resok asked = copy(what);
  EXPECT_EQ(asked.cr_response.wr_callback_id.count, 0u);
  EXPECT_EQ(asked.cr_response.wr_count, kSize);
  EXPECT_TRUE(asked.cr_requirements.cr_synchronous);
  EXPECT_EQ(copy(args(kPiece)).cr_response.wr_count, kPiece) << "it is short";
  // The client cannot be called.
  nfs.connection().max_backward = 0;
  nfs.session = nfs.connect("deaf");
  from = nfs.open(nfs.root(), "from");
  to = nfs.open(nfs.root(), "to");
  EXPECT_EQ(copy(args()).cr_response.wr_count, kSize);
  EXPECT_TRUE(is_quiet());
}

TEST_F(OffloadsTest, StatusTellsHowFarItIs) {
  const xdr::stateid4 stateid = begin();
  EXPECT_EQ(status(stateid).get<OP_OFFLOAD_STATUS>().resok4.osr_count, 0u);
  gate.let_pass(2);
  gate.wait_until_used();
  const auto half = status(stateid).get<OP_OFFLOAD_STATUS>().resok4;
  EXPECT_EQ(half.osr_count, 2 * kPiece);
  EXPECT_EQ(half.osr_complete.count, 0u);
  EXPECT_TRUE(is_quiet());
}

TEST_F(OffloadsTest, TheStateidIsOfOneClientAndOneFile) {
  const xdr::stateid4 stateid = begin();
  for (const FileHandle& handle : {from.handle, nfs.root()}) {
    EXPECT_EQ(nfs.on<OP_OFFLOAD_STATUS>(handle, {stateid}).status, NFS4ERR_BAD_STATEID);
    EXPECT_EQ(nfs.on<OP_OFFLOAD_CANCEL>(handle, {stateid}).status, NFS4ERR_BAD_STATEID);
  }
  xdr::stateid4 last = stateid;
  last.seqid = 0;
  EXPECT_EQ(status(last).status, NFS4ERR_BAD_STATEID);
  EXPECT_EQ(cancel(last), NFS4ERR_BAD_STATEID);
  EXPECT_EQ(status(to.stateid).status, NFS4ERR_BAD_STATEID);
  EXPECT_EQ(nfs.on<OP_READ>(to.handle, {stateid, 0, 1}).status, NFS4ERR_BAD_STATEID);
  nfs.session = nfs.connect("another");
  EXPECT_EQ(status(stateid).status, NFS4ERR_BAD_STATEID);
  EXPECT_EQ(cancel(stateid), NFS4ERR_BAD_STATEID);
  EXPECT_EQ(known(), 1u);
}

/// RFC 7862 4.1.2: another user of the client leaves it alone.
TEST_F(OffloadsTest, OnlyWhoBeganItCancelsIt) {
  const xdr::stateid4 stateid = begin();
  nfs.set_caller(user(1234, 1234));
  EXPECT_EQ(cancel(stateid), NFS4ERR_BAD_STATEID);
  EXPECT_EQ(known(), 1u);
  nfs.set_caller(user(0, 0));
  gate.open();
  EXPECT_TRUE(soon([this] { return ended() == 1; }));
  EXPECT_TRUE(content_of(nfs.path("to")) == content_of(nfs.path("from")));
  EXPECT_EQ(cancel(stateid), NFS4_OK);
  EXPECT_EQ(known(), 0u);
}

// RFC 7862 4.8 has copy stateids end by CB_OFFLOAD's reply and OFFLOAD_CANCEL; TEST_STATEID and
// FREE_STATEID are for all stateids (RFC 8881 18.48, 18.38).
TEST_F(OffloadsTest, TheStateidIsTestedAndFreed) {
  const auto test = [this](const xdr::stateid4& stateid) {
    std::array<std::byte, 16> bytes{};
    xdr::Encoder encoder(bytes);
    xdr::encode(encoder, stateid);
    const Reply4 reply = nfs.run(Operations4().add<OP_TEST_STATEID>({{bytes, 1}}));
    EXPECT_EQ(reply.status, NFS4_OK);
    return static_cast<nfsstat4>(*reply.get<OP_TEST_STATEID>().resok4.tsr_status_codes.begin());
  };
  const auto free = [this](const xdr::stateid4& stateid) {
    return nfs.run(Operations4().add<OP_FREE_STATEID>({stateid})).status;
  };
  const xdr::stateid4 stateid = begin();
  EXPECT_EQ(test(stateid), NFS4_OK);
  EXPECT_EQ(free(stateid), NFS4ERR_LOCKS_HELD) << "it goes on";
  xdr::stateid4 wrong = stateid;
  wrong.seqid = 0;
  EXPECT_EQ(test(wrong), NFS4ERR_BAD_STATEID) << "there is no last one";
  EXPECT_EQ(free(wrong), NFS4ERR_BAD_STATEID);
  const Session4 own = nfs.session;
  nfs.session = nfs.connect("another");
  EXPECT_EQ(test(stateid), NFS4ERR_BAD_STATEID);
  EXPECT_EQ(free(stateid), NFS4ERR_BAD_STATEID);
  nfs.session = own;
  gate.open();
  take_call();  // CB_OFFLOAD, which gets no answer
  EXPECT_EQ(test(stateid), NFS4_OK);
  EXPECT_EQ(free(stateid), NFS4_OK);
  EXPECT_EQ(test(stateid), NFS4ERR_BAD_STATEID);
  EXPECT_EQ(free(stateid), NFS4ERR_BAD_STATEID);
  EXPECT_EQ(known(), 0u);
  EXPECT_TRUE(is_quiet());
}

TEST_F(OffloadsTest, CancelWaitsForThePieceUnderWay) {
  const xdr::stateid4 stateid = begin();
  gate.let_pass(2);
  gate.wait_until_used();
  std::atomic<bool> returned{false};
  nfsstat4 cancelled = NFS4ERR_SERVERFAULT;
  std::thread canceller([&] {
    cancelled = cancel(stateid);
    returned = true;
  });
  EXPECT_TRUE(soon([this] { return known() == 0; }));
  EXPECT_FALSE(returned);
  gate.let_pass(1);
  canceller.join();
  EXPECT_EQ(cancelled, NFS4_OK);
  EXPECT_EQ(stat_of(nfs.path("to")).st_size, static_cast<off_t>(3 * kPiece));
  EXPECT_EQ(cancel(stateid), NFS4ERR_BAD_STATEID);
  gate.open();
  EXPECT_TRUE(is_quiet());
  EXPECT_EQ(stat_of(nfs.path("to")).st_size, static_cast<off_t>(3 * kPiece));
}

TEST_F(OffloadsTest, CloseDoesNotEndIt) {
  begin();
  EXPECT_EQ(nfs.close(from), NFS4_OK);
  EXPECT_EQ(nfs.close(to), NFS4_OK);
  gate.open();
  EXPECT_EQ(read(*calls().at(0)).offload.coa_offload_info.coa_resok4.wr_count, kSize);
  EXPECT_TRUE(content_of(nfs.path("to")) == content_of(nfs.path("from")));
}

TEST_F(OffloadsTest, AnExportThatIsTakenBackEndsIt) {
  const xdr::stateid4 stateid = begin();
  gate.let_pass(1);
  gate.wait_until_used();
  ExportOptions options = HarnessOptions::writable();
  options.read_only = true;
  nfs.export_with(options);
  gate.open();
  const xdr::offload_info4 info = read(*calls().at(0)).offload.coa_offload_info;
  EXPECT_EQ(info.coa_status, NFS4ERR_ROFS);
  EXPECT_EQ(info.coa_bytes_copied, kPiece);
  EXPECT_EQ(status(stateid).get<OP_OFFLOAD_STATUS>().resok4.osr_complete.items[0], NFS4ERR_ROFS);
}

/// What the client would read or write now it finds elsewhere.
TEST_F(OffloadsTest, AnExportThatMovesEndsIt) {
  begin();
  gate.let_pass(1);
  gate.wait_until_used();
  ExportOptions options = HarnessOptions::writable();
  options.referral = true;
  nfs.export_with(options);
  gate.open();
  const xdr::offload_info4 info = read(*calls().at(0)).offload.coa_offload_info;
  EXPECT_EQ(info.coa_status, NFS4ERR_MOVED);
  EXPECT_EQ(info.coa_bytes_copied, kPiece);
  // Nor does another one begin.
  EXPECT_EQ(nfs.run(Operations4().putfh(from.handle).add<OP_SAVEFH>()).status, NFS4ERR_MOVED);
}

TEST_F(OffloadsTest, AnExportThatIsGoneEndsIt) {
  begin();
  gate.let_pass(1);
  gate.wait_until_used();
  ConfigProblems problems;
  nfs.server().exports.reload({}, &problems);
  gate.open();
  const xdr::offload_info4 info = read(*calls().at(0)).offload.coa_offload_info;
  EXPECT_EQ(info.coa_status, NFS4ERR_STALE);
  EXPECT_EQ(info.coa_bytes_copied, kPiece);
}

TEST_F(OffloadsTest, AnAdministratorWhoReleasesAFileEndsThem) {
  // Two threads are at a piece, and one copy waits for them.
  const std::array copies{begin(), begin(), begin()};
  gate.wait_for(2);
  FileScope files;
  {
    std::lock_guard lock(nfs.state().mutex);
    const FilePin held = nfs.state().held_file(from.handle.bytes());
    ASSERT_TRUE(held);
    files = {{held->device()}, held->inode()};
  }
  std::size_t ended_by_it = 0;
  std::thread releasing([&] { ended_by_it = nfs.state().offloads.release(files); });
  // The one that waited ends at once, the others with their pieces.
  EXPECT_TRUE(soon([this] { return ended() == 1; }));
  gate.open();
  releasing.join();
  EXPECT_EQ(ended_by_it, copies.size());
  {
    std::lock_guard lock(nfs.state().mutex);
    EXPECT_FALSE(nfs.state().offloads.any_running());
  }
  for (const xdr::stateid4& copy : copies) {
    const auto complete = status(copy).get<OP_OFFLOAD_STATUS>().resok4.osr_complete;
    ASSERT_EQ(complete.count, 1u);
    EXPECT_EQ(complete.items[0], NFS4ERR_IO);
  }
  EXPECT_EQ(nfs.state().offloads.release(files), 0u);
}

TEST_F(OffloadsTest, ASourceThatShrinksEndsItShort) {
  begin();
  gate.let_pass(1);
  gate.wait_until_used();
  ASSERT_EQ(::truncate(nfs.path("from").c_str(), kPiece + 10), 0);
  gate.open();
  const xdr::offload_info4 info = read(*calls().at(0)).offload.coa_offload_info;
  EXPECT_EQ(info.coa_status, NFS4_OK);
  EXPECT_EQ(info.coa_resok4.wr_count, kPiece + 10);
}

TEST_F(OffloadsTest, ItEndsWithItsClient) {
  begin();
  gate.let_pass(1);
  gate.wait_until_used();
  {
    nfs4::ServerState& state = nfs.state();
    std::lock_guard lock(state.mutex);
    std::vector<std::unique_ptr<nfs4::Client>> gone;
    gone.push_back(state.clients.end(*state.clients.find(nfs.session.client)));
    state.end_clients(std::move(gone));
  }
  EXPECT_EQ(known(), 0u);
  gate.let_pass(1);
  gate.open();
  EXPECT_TRUE(is_quiet());
}

TEST_F(OffloadsTest, TheServersEndDoesNotWaitForAll) {
  constexpr off_t kEndless = off_t{1} << 40;
  ASSERT_EQ(::truncate(nfs.path("from").c_str(), kEndless), 0);
  gate.open();
  const xdr::stateid4 stateid = begin();
  nfs.restart();
  EXPECT_LT(stat_of(nfs.path("to")).st_size, kEndless);
  nfs.session = nfs.connect("client");
  EXPECT_EQ(status(stateid).status, NFS4ERR_BAD_STATEID);
}

TEST_F(OffloadsTest, SoManyOfAClientAndNoMore) {
  for (int i = 0; i < 8; ++i)
    begin();
  EXPECT_EQ(copy(args()).cr_response.wr_count, kSize) << "done before the reply";
  nfs.session = nfs.connect("another");
  from = nfs.open(nfs.root(), "from");
  to = nfs.open(nfs.root(), "to");
  begin();
  EXPECT_EQ(known(), 9u);
  // Those whose end was not acknowledged count as well.
  gate.open();
  EXPECT_TRUE(soon([this] { return ended() == 9; }));
  // As many as there are slots: 4 of each session.
  EXPECT_TRUE(soon([this] {
    nfs.connection().loop().turn(Duration::zero());
    return nfs.connection().backward.size() == 5;
  }));
  for (int i = 0; i < 9; ++i)
    answer();
  EXPECT_EQ(known(), 0u);
}

TEST_F(OffloadsTest, AClientThatIsNotReadyIsToldAgain) {
  begin();
  gate.open();
  answer(NFS4ERR_DELAY);
  EXPECT_TRUE(is_quiet());
  // The reply with the stateid may not have come yet.
  for (int i = 0; i < 9; ++i) {
    tick(std::chrono::seconds(1));
    answer(NFS4ERR_BAD_STATEID);
    EXPECT_EQ(known(), 1u);
    EXPECT_TRUE(is_quiet());
  }
  tick(std::chrono::seconds(1));
  answer(NFS4ERR_BAD_STATEID);
  EXPECT_EQ(known(), 0u);
}

TEST_F(OffloadsTest, ALostCallIsSentAgain) {
  begin();
  gate.open();
  const auto first = read(*calls().at(0)).sequence;
  fail(Errc::kClosed);
  EXPECT_TRUE(is_quiet());
  tick(std::chrono::seconds(1));
  EXPECT_EQ(read(*calls().at(0)).sequence.csa_slotid, first.csa_slotid);
  answer();
  EXPECT_EQ(known(), 0u);
}

TEST_F(OffloadsTest, ADeadBackChannelIsLeftAlone) {
  const xdr::stateid4 stateid = begin();
  gate.open();
  fail(Errc::kTimedOut);
  tick(std::chrono::seconds(10));
  EXPECT_TRUE(is_quiet());
  EXPECT_EQ(status(stateid).get<OP_OFFLOAD_STATUS>().resok4.osr_complete.count, 1u);
  EXPECT_EQ(copy(args()).cr_response.wr_count, kSize) << "done before the reply";
  // It works again once the client has bound a connection to it.
  xdr::BIND_CONN_TO_SESSION4args bind;
  bind.bctsa_sessid = nfs.session.id;
  bind.bctsa_dir = xdr::channel_dir_from_client4::CDFC4_FORE_OR_BOTH;
  EXPECT_EQ(nfs.run_bare(Operations4().add<OP_BIND_CONN_TO_SESSION>(bind)).status, NFS4_OK);
  tick();
  EXPECT_EQ(read(*calls().at(0)).offload.coa_stateid.other, stateid.other);
  answer();
  EXPECT_EQ(known(), 0u);
}

}  // namespace
}  // namespace nfsrdma::test
