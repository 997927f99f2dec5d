// SPDX-License-Identifier: Apache-2.0
// A lock manager of NLM version 4 that a test plays with: it tells owners apart by their svid
// alone, as Linux's does, and has one file. It answers what is out on the newest transport of each
// FakeEnvironment that it serves.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "rpcrdma/base/byte_range_locks.h"
#include "tests/unit/client/fake_environment.h"
#include "xdr/nfs3.h"
#include "xdr/nlm4.h"

namespace nfsrdma {

class FakeLockManager {
 public:
  using Proc = xdr::nlmproc4;
  using Stat = xdr::nlm4_stats;
  static constexpr LockOwnerId kForeign = 1ull << 40;

  // --- what the test sets ---
  ByteRangeLocks locks;  // by svid
  bool in_grace = false;
  bool monitors = true;  // else LOCK is refused for want of a status monitor
  bool has_nm_lock = true;
  bool has_free_all = true;
  bool silent = false;  // what it is asked it neither does nor answers
  std::deque<Stat> lock_statuses, unlock_statuses, test_statuses;  // instead of doing it
  /// After this many LOCKs and UNLOCKs the next is done, and neither it nor what follows is
  /// answered.
  std::optional<unsigned> silent_behind;

  // --- what it looks at ---
  struct Seen {
    Proc procedure;
    std::uint32_t uid = 0;
    std::string caller, owner, file;
    std::uint32_t svid = 0;
    std::uint64_t offset = 0, length = 0;
    bool exclusive = false, block = false, reclaim = false;
  };
  std::vector<Seen> seen;
  std::vector<std::string> freed;  // callers
  unsigned reads = 0, writes = 0;

  std::size_t times(Proc procedure) const {
    std::size_t count = 0;
    for (const Seen& one : seen)
      count += one.procedure == procedure ? 1 : 0;
    return count;
  }
  void lock_elsewhere(LockKind kind, ByteRange range) {
    EXPECT_EQ(locks.lock(kForeign, kind, range), ByteRangeLocks::Outcome::kDone);
  }
  void unlock_elsewhere() { locks.release(kForeign); }

  /// Answers the oldest call that is out there. `has_nlm`: it is served on this way. False: there
  /// is none.
  bool serve_one(FakeEnvironment& environment, bool has_nlm) {
    FakeTransport* transport = environment.transport();
    if (transport == nullptr) return false;
    if (!transport->accepted()) transport->accept();
    if (silent || transport->out().empty()) return false;
    const ClientCall& call = *transport->out().front();
    std::vector<std::byte> message(call.head.begin(), call.head.end());
    message.insert(message.end(), call.payload.begin(), call.payload.end());
    message.resize((message.size() + 3) & ~std::size_t{3});
    xdr::Decoder in(message);
    xdr::rpc_msg header;
    EXPECT_TRUE(xdr::decode(in, header));
    if (header.cbody.prog == xdr::kNfsProgram) {
      answer_nfs(*transport, header.cbody.proc);
      return true;
    }
    EXPECT_EQ(header.cbody.prog, xdr::kNlmProgram);
    EXPECT_EQ(header.cbody.vers, xdr::kNlmV4);
    if (!has_nlm) {
      transport->answer({}, xdr::accept_stat::PROG_UNAVAIL);
      return true;
    }
    Seen one;
    one.procedure = static_cast<Proc>(header.cbody.proc);
    xdr::Decoder credential(header.cbody.cred.body);
    xdr::authsys_parms parms;
    if (xdr::decode(credential, parms)) one.uid = parms.uid;
    answer_nlm(*transport, in, std::move(one));
    return true;
  }

 private:
  static ByteRange range_of(const xdr::nlm4_lock& lock) {
    return {lock.l_offset, lock.l_len == 0 ? UINT64_MAX : lock.l_offset + lock.l_len - 1};
  }
  void note(Seen& one, const xdr::nlm4_lock& lock) {
    one.caller = lock.caller_name;
    one.owner = as_text(lock.oh);
    one.file = as_text(lock.fh);
    one.svid = lock.svid;
    one.offset = lock.l_offset;
    one.length = lock.l_len;
    seen.push_back(one);
  }
  static Stat next(std::deque<Stat>& statuses, Stat otherwise) {
    if (statuses.empty()) return otherwise;
    const Stat status = statuses.front();
    statuses.pop_front();
    return status;
  }

  void answer_nfs(FakeTransport& transport, std::uint32_t procedure) {
    const auto what = static_cast<xdr::nfsproc3>(procedure);
    transport.answer([&](xdr::Encoder& out) {
      if (what == xdr::nfsproc3::NFSPROC3_READ) {
        ++reads;
        xdr::READ3res res;
        res.status = xdr::nfsstat3::NFS3_OK;
        res.resok.eof = true;
        xdr::encode(out, res);
      } else if (what == xdr::nfsproc3::NFSPROC3_WRITE) {
        ++writes;
        xdr::WRITE3res res;
        res.status = xdr::nfsstat3::NFS3_OK;
        res.resok.count = 1;
        xdr::encode(out, res);
      }
    });
  }

  void answer_nlm(FakeTransport& transport, xdr::Decoder& in, Seen one) {
    Stat status = Stat::NLM4_GRANTED;
    std::vector<std::byte> cookie;
    switch (one.procedure) {
      case Proc::NLMPROC4_NULL:
        seen.push_back(one);
        return transport.answer({});
      case Proc::NLMPROC4_TEST:
        return answer_test(transport, in, one);
      case Proc::NLMPROC4_FREE_ALL: {
        xdr::nlm4_notify args;
        EXPECT_TRUE(xdr::decode(in, args));
        seen.push_back(one);
        if (!has_free_all) return transport.answer({}, xdr::accept_stat::PROC_UNAVAIL);
        freed.emplace_back(args.name);
        return transport.answer({});
      }
      case Proc::NLMPROC4_LOCK:
      case Proc::NLMPROC4_NM_LOCK: {
        xdr::nlm4_lockargs args;
        EXPECT_TRUE(xdr::decode(in, args) && in.at_end());
        cookie.assign(args.cookie.begin(), args.cookie.end());
        one.exclusive = args.exclusive;
        one.block = args.block;
        one.reclaim = args.reclaim;
        note(one, args.alock);
        if (one.procedure == Proc::NLMPROC4_NM_LOCK && !has_nm_lock) {
          return transport.answer({}, xdr::accept_stat::PROC_UNAVAIL);
        }
        status = lock(one, range_of(args.alock));
        break;
      }
      case Proc::NLMPROC4_UNLOCK: {
        xdr::nlm4_unlockargs args;
        EXPECT_TRUE(xdr::decode(in, args) && in.at_end());
        cookie.assign(args.cookie.begin(), args.cookie.end());
        note(one, args.alock);
        status = in_grace ? Stat::NLM4_DENIED_GRACE_PERIOD : Stat::NLM4_GRANTED;
        status = next(unlock_statuses, status);
        if (status == Stat::NLM4_GRANTED) locks.unlock(one.svid, range_of(args.alock));
        break;
      }
      default:
        ADD_FAILURE() << "procedure " << static_cast<std::uint32_t>(one.procedure);
        return transport.answer({}, xdr::accept_stat::PROC_UNAVAIL);
    }
    if (silent_behind && (*silent_behind)-- == 0) {
      silent_behind.reset();
      silent = true;
      return;
    }
    const xdr::nlm4_res res{cookie, status};
    transport.answer([&](xdr::Encoder& out) { xdr::encode(out, res); });
  }

  Stat lock(const Seen& one, ByteRange range) {
    if (one.procedure == Proc::NLMPROC4_LOCK && !monitors) return Stat::NLM4_DENIED_NOLOCKS;
    if (!lock_statuses.empty()) return next(lock_statuses, Stat::NLM4_GRANTED);
    if (in_grace != one.reclaim) return Stat::NLM4_DENIED_GRACE_PERIOD;
    const LockKind kind = one.exclusive ? LockKind::kWrite : LockKind::kRead;
    const bool done = locks.lock(one.svid, kind, range) == ByteRangeLocks::Outcome::kDone;
    return done ? Stat::NLM4_GRANTED : Stat::NLM4_DENIED;
  }

  void answer_test(FakeTransport& transport, xdr::Decoder& in, Seen& one) {
    xdr::nlm4_testargs args;
    EXPECT_TRUE(xdr::decode(in, args) && in.at_end());
    one.exclusive = args.exclusive;
    note(one, args.alock);
    const LockKind kind = args.exclusive ? LockKind::kWrite : LockKind::kRead;
    xdr::nlm4_testres res;
    res.cookie = args.cookie;
    const auto* held = locks.conflict(one.svid, kind, range_of(args.alock));
    res.test_stat.stat = held == nullptr ? Stat::NLM4_GRANTED : Stat::NLM4_DENIED;
    if (in_grace) res.test_stat.stat = Stat::NLM4_DENIED_GRACE_PERIOD;
    res.test_stat.stat = next(test_statuses, res.test_stat.stat);
    if (held != nullptr && res.test_stat.stat == Stat::NLM4_DENIED) {
      res.test_stat.holder.exclusive = held->kind == LockKind::kWrite;
      res.test_stat.holder.svid = 77;
      res.test_stat.holder.l_offset = held->range.first;
      const bool to_the_end = held->range.last == UINT64_MAX;
      res.test_stat.holder.l_len = to_the_end ? 0 : length_of(held->range);
    }
    transport.answer([&](xdr::Encoder& out) { xdr::encode(out, res); });
  }
};

}  // namespace nfsrdma
