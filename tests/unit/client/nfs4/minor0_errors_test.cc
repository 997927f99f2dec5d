// SPDX-License-Identifier: Apache-2.0
// A client of NFSv4.0 with a server that answers with errors of all kinds, in all places, once or
// for ever, and with replies that are no replies to what was asked. Whatever it says: each
// operation ends, and once the server behaves all goes on as before, the owners' sequence ids
// included.
#include <gmock/gmock.h>

#include <random>

#include "client/nfs4/recovery.h"
#include "rpcrdma/base/log.h"
#include "tests/unit/client/nfs4/minor0_life.h"

namespace nfsrdma {
namespace {

using std::chrono::seconds;
using testing::IsEmpty;
using Op = xdr::nfs_opnum4;
using Stat = xdr::nfsstat4;

class QuietLog {
 public:
  QuietLog() { set_log_level(LogLevel::kError); }
  ~QuietLog() { set_log_level(before_); }

 private:
  const LogLevel before_ = log_level();
};

/// What the server says is gone stands there all the same, or it has told no way to close it.
bool is_a_lie(Op op, Stat status) {
  switch (status) {
    case Stat::NFS4ERR_BAD_STATEID:
    case Stat::NFS4ERR_ADMIN_REVOKED:
    case Stat::NFS4ERR_DELEG_REVOKED:
    case Stat::NFS4ERR_OLD_STATEID:
    case Stat::NFS4ERR_BAD_SEQID:
    case Stat::NFS4ERR_STALE:
    case Stat::NFS4ERR_BADHANDLE:
    case Stat::NFS4ERR_FHEXPIRED:
      return true;
    default:
      return op == Op::OP_GETFH;
  }
}

struct Refusing {
  Op op;
  bool for_ever;
};

class Refused : public Minor0Life {
 public:
  explicit Refused(const Refusing& how) : Minor0Life(how.for_ever), how_(how) {
    server_->quiet = true;
    // Else there is nothing to be asked about the client id.
    const bool of_client = how.op == Op::OP_SETCLIENTID || how.op == Op::OP_SETCLIENTID_CONFIRM;
    if (!of_client) return;
    bool gone = false;
    server_->instead_of_answering = [this, gone]() mutable {
      if (!gone && server_->times(Op::OP_LOCK) == 1) {
        gone = true;
        server_->restart();
        plan();
      }
      return false;
    };
  }
  void TestBody() override {}

  void run(Stat status) {
    status_ = status;
    if (!server_->instead_of_answering) plan();
    live();
    server_->errors.clear();
    expect_nothing_left_here();
    clear_up();
    const bool lie = is_a_lie(how_.op, status) || how_.for_ever;
    if (!lie) expect_nothing_left_there();
    const std::size_t before = server_->opens();
    EXPECT_THAT(live(), IsEmpty());
    expect_nothing_left_here();
    EXPECT_EQ(server_->opens(), before);
  }

 private:
  void plan() { server_->errors[how_.op].assign(how_.for_ever ? 100'000 : 1, status_); }

  const Refusing how_;
  Stat status_{};
};

class Minor0Errors : public testing::TestWithParam<Refusing> {};

TEST_P(Minor0Errors, EndOrPass) {
  const QuietLog quiet;
  for (const auto& [number, name] : xdr::enum_names(Stat())) {
    if (number == 0) continue;
    SCOPED_TRACE(name);
    Refused(GetParam()).run(static_cast<Stat>(number));
    if (HasFailure()) break;
  }
  SCOPED_TRACE("one that there is not");
  Refused(GetParam()).run(static_cast<Stat>(99'999));
}

std::vector<Refusing> all_refusals() {
  std::vector<Refusing> all;
  for (const Op op : {Op::OP_SETCLIENTID, Op::OP_SETCLIENTID_CONFIRM, Op::OP_RENEW, Op::OP_PUTFH,
                      Op::OP_GETFH, Op::OP_GETATTR, Op::OP_OPEN, Op::OP_OPEN_CONFIRM, Op::OP_CLOSE,
                      Op::OP_LOCK, Op::OP_LOCKU, Op::OP_LOCKT, Op::OP_RELEASE_LOCKOWNER,
                      Op::OP_READ, Op::OP_WRITE, Op::OP_SETATTR, Op::OP_REMOVE}) {
    all.push_back({op, false});
    all.push_back({op, true});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Of, Minor0Errors, testing::ValuesIn(all_refusals()), [](const auto& row) {
  return std::string(xdr::enum_name(row.param.op)) + (row.param.for_ever ? "ForEver" : "Once");
});

// --- replies that are none ---

enum class Wrong : std::uint8_t {
  kCut,
  kEmpty,
  kLong,          // more than the call has room for
  kTrailing,      // as it should be, and something behind it
  kFewerResults,  // than operations, and all is well
  kMoreResults,
  kCountless,   // an absurd number of them
  kFirstOther,  // the first result is that of another operation
  kLastOther,
  kHeadOnly,  // the COMPOUND failed, and no operation of it
  kBefore,    // the one of the call before
  kFlipped,   // a bit of it
};

class Answered : public Minor0Life {
 public:
  Answered(Wrong how, std::size_t at, std::uint32_t seed) : how_(how), at_(at), dice_(seed) {
    server_->quiet = true;
    server_->instead_of_answering = [this] { return answer_perhaps(); };
  }
  void TestBody() override {}

  bool run() {
    live();
    const bool reached = calls_ > at_;
    expect_nothing_left_here();
    clear_up();
    const std::size_t before = server_->opens();
    EXPECT_THAT(live(), IsEmpty());
    expect_nothing_left_here();
    EXPECT_EQ(server_->opens(), before);
    return reached;
  }

 private:
  bool answer_perhaps() {
    FakeTransport& transport = *environment_->transport();
    const bool now = calls_++ == at_;
    std::vector<std::byte> reply = server_->reply_to(*transport.out().front());
    const std::vector<std::byte> right = reply;
    if (now) spoil(reply);
    before_ = right;
    transport.answer([&](xdr::Encoder& out) { out.fixed_opaque(reply); });
    return true;
  }
  void spoil(std::vector<std::byte>& reply) {
    constexpr std::size_t kCount = 8, kFirst = 12;  // behind status and an empty tag
    switch (how_) {
      case Wrong::kCut:
        return reply.resize(dice_() % (reply.size() / 4) * 4);
      case Wrong::kEmpty:
        return reply.clear();
      case Wrong::kLong:
        for (std::byte& byte : reply)
          byte = static_cast<std::byte>(dice_());
        [[fallthrough]];
      case Wrong::kTrailing:
        return reply.resize(60'000, std::byte{0x5a});
      case Wrong::kFewerResults:
        return add(reply, kCount, UINT32_MAX);
      case Wrong::kMoreResults:
        return add(reply, kCount, 1);
      case Wrong::kCountless:
        return store_be32(reply.data() + kCount, UINT32_MAX);
      case Wrong::kFirstOther:
        return add(reply, kFirst, 1);
      case Wrong::kLastOther:
        return last_is_other(reply);
      case Wrong::kHeadOnly:
        store_be32(reply.data(), static_cast<std::uint32_t>(Stat::NFS4ERR_SERVERFAULT));
        store_be32(reply.data() + kCount, 0);
        return reply.resize(kFirst);
      case Wrong::kBefore:
        reply = before_;
        return;
      case Wrong::kFlipped:
        const std::size_t bit = dice_() % (8 * reply.size());
        reply[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
        return;
    }
  }
  static void add(std::vector<std::byte>& reply, std::size_t at, std::uint32_t what) {
    if (reply.size() >= at + 4) store_be32(reply.data() + at, load_be32(reply.data() + at) + what);
  }
  void last_is_other(std::vector<std::byte>& reply) const {
    const auto number = static_cast<std::uint32_t>(server_->seen.back().back());
    for (std::size_t at = reply.size() & ~std::size_t{3}; at >= 16; at -= 4) {
      if (load_be32(reply.data() + at - 4) != number) continue;
      return store_be32(reply.data() + at - 4, static_cast<std::uint32_t>(Op::OP_NVERIFY));
    }
  }

  const Wrong how_;
  const std::size_t at_;
  std::mt19937 dice_;
  std::size_t calls_ = 0;
  std::vector<std::byte> before_ = std::vector<std::byte>(64);
};

class Minor0WrongReply : public testing::TestWithParam<Wrong> {};

TEST_P(Minor0WrongReply, HarmsNobody) {
  const QuietLog quiet;
  const bool by_chance = GetParam() == Wrong::kCut || GetParam() == Wrong::kFlipped;
  for (std::uint32_t seed = 1; seed <= (by_chance ? 25u : 1u) && !HasFailure(); ++seed) {
    std::size_t at = 0;
    for (bool more = true; more && !HasFailure(); ++at) {
      SCOPED_TRACE("call " + std::to_string(at) + ", seed " + std::to_string(seed));
      more = Answered(GetParam(), at, seed).run();
    }
    EXPECT_GT(at, 20u) << "calls of the whole life";
  }
}

std::string name_of(const testing::TestParamInfo<Wrong>& row) {
  constexpr const char* kNames[] = {
      "Cut",       "Empty",          "Long",          "Trailing",  "FewerResults",    "MoreResults",
      "Countless", "FirstOfAnother", "LastOfAnother", "AHeadOnly", "OfTheCallBefore", "Flipped"};
  return kNames[static_cast<std::size_t>(row.param)];
}
INSTANTIATE_TEST_SUITE_P(Being, Minor0WrongReply,
                         testing::Values(Wrong::kCut, Wrong::kEmpty, Wrong::kLong, Wrong::kTrailing,
                                         Wrong::kFewerResults, Wrong::kMoreResults,
                                         Wrong::kCountless, Wrong::kFirstOther, Wrong::kLastOther,
                                         Wrong::kHeadOnly, Wrong::kBefore, Wrong::kFlipped),
                         name_of);

}  // namespace
}  // namespace nfsrdma
