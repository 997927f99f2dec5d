// SPDX-License-Identifier: Apache-2.0
// A server of NFSv4.0 that a test plays with, as strict as RFC 7530 lets it be: the numbers of
// owners and of stateids are checked, the last request of each owner is answered again when it
// comes again (and nothing else is: there is no duplicate request cache), new open-owners have to
// confirm; and errors on purpose. One directory; a file's handle is "f" and a number.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rpcrdma/base/byte_range_locks.h"
#include "tests/unit/client/fake_environment.h"
#include "xdr/nfs4.h"

namespace nfsrdma {

class FakeNfs40Server {
 public:
  using Op = xdr::nfs_opnum4;
  using Stat = xdr::nfsstat4;

  explicit FakeNfs40Server(FakeEnvironment& environment) : environment_(environment) {}

  // --- what the test sets ---
  bool in_grace = false;
  bool delegates = false;  // OPENs give what nobody asked for
  /// What it gives with the OPENs of owners that are confirmed.
  std::optional<xdr::open_delegation_type4> grants;
  bool loses_count = false;  // of the owner that comes next: NFS4ERR_BAD_SEQID
  bool quiet = false;        // what it answered may have been spoilt: it wonders at nothing
  std::deque<Stat> set_errors, confirm_errors, renew_errors, open_errors, lock_errors, putfh_errors;
  std::deque<Stat> read_errors, close_errors;
  /// Of operations of any kind, instead of running them; those in an owner's sequence use its
  /// number up as RFC 7530 says. What tells of the end of the client id is so.
  std::map<Op, std::deque<Stat>> errors;
  /// Handles of what is on another server now. While lease_moved, clients have not heard of it:
  /// what has to do with their state is not done.
  std::set<std::string> moved;
  bool lease_moved = false;
  TimePoint silent_until{};                               // it neither runs nor answers anything
  std::map<std::string, std::string> names{{"f", "f0"}};  // to handles
  static constexpr LockOwnerId kForeign = 1000;

  // --- what it looks at ---
  std::vector<std::vector<Op>> seen;       // operations of each COMPOUND
  std::vector<xdr::OPEN4args> opens_seen;  // their texts are gone
  std::vector<xdr::READ4args> reads;
  std::vector<std::uint32_t> modes_set;
  std::size_t made = 0;
  unsigned delegations = 0;
  std::vector<std::uint64_t> granted, returned;  // delegations
  unsigned lock_reclaims = 0;
  std::map<std::string, ByteRangeLocks> locks;  // by handle
  std::map<std::string, std::string> contents;  // the same

  /// Everything that it knew of clients is gone.
  void restart() {
    ++boot_;
    forget_client();
  }
  /// The lease is over.
  void expire() { forget_client(); }
  std::size_t opens() const { return opens_.size(); }
  std::size_t lock_stateids() const { return locked_.size(); }
  std::size_t open_owners() const { return count_of('o'); }
  std::size_t lock_owners() const { return count_of('l'); }
  std::uint64_t client_id() const { return client_id_; }
  void lock_elsewhere(ByteRange range) { locks["f0"].lock(kForeign, LockKind::kWrite, range); }
  /// Of an owner whose count is lost no request can let go of anything, but the end of the lease.
  void forget_miscounted() {
    for (const std::string& key : miscounted_) {
      std::erase_if(opens_, [&](const auto& one) {
        if (one.second.owner != key) return false;
        drop_locks(one.first);
        return true;
      });
      drop_locks_of(key);
    }
    miscounted_.clear();
  }
  /// As a server may that has not heard of them for long (RFC 7530, 9.1.9).
  void forget_idle_owners() {
    std::erase_if(owners_, [&](const auto& one) {
      const auto uses = [&](const auto& held) { return held.second.owner == one.first; };
      return std::none_of(opens_.begin(), opens_.end(), uses) &&
             std::none_of(locked_.begin(), locked_.end(), uses);
    });
  }
  /// One lock's stateid alone.
  void revoke_locks() {
    for (const auto& [id, lock] : locked_)
      locks[lock.handle].release(lock.number);
    locked_.clear();
  }
  std::size_t times(Op operation) const {
    std::size_t count = 0;
    for (const auto& compound : seen)
      count += static_cast<std::size_t>(std::count(compound.begin(), compound.end(), operation));
    return count;
  }

  // --- its own calls, over a connection that it makes ---
  using Writer = std::function<void(xdr::Encoder&)>;
  struct Said {
    xdr::rpc_msg header;
    Stat status = Stat::NFS4_OK;  // of a CB_COMPOUND that was accepted
  };
  std::uint32_t callback_program = 0;
  std::uint32_t callback_ident = 0;
  std::string callback_address;  // netid and universal address
  bool can_call() const { return environment_.endpoint() != nullptr; }
  Said call_back(std::uint32_t procedure, std::uint32_t operations, const Writer& body) {
    std::vector<std::byte> call(1024), room(4096);
    xdr::Encoder out(call);
    xdr::rpc_msg header;
    header.xid = 4711;
    header.cbody.rpcvers = xdr::kRpcVersion;
    header.cbody.prog = callback_program;
    header.cbody.vers = xdr::kNfs4CallbackVersion;
    header.cbody.proc = procedure;
    xdr::encode(out, header);
    if (procedure == xdr::CB_COMPOUND) {
      xdr::encode(out, xdr::CB_COMPOUND4args{"", 0, callback_ident, operations});
      body(out);
    }
    Said said;
    const std::size_t bytes = environment_.endpoint()->answer(out.bytes(), room);
    xdr::Decoder in(ByteSpan(room).first(bytes));
    EXPECT_TRUE(xdr::decode(in, said.header));
    if (procedure != xdr::CB_COMPOUND) return said;
    if (said.header.rbody.stat != xdr::reply_stat::MSG_ACCEPTED) return said;
    xdr::CB_COMPOUND4res res;
    EXPECT_TRUE(xdr::decode(in, res));
    said.status = res.status;
    return said;
  }
  /// As servers do before they grant anything. False: the client will not hear of it.
  bool probe() {
    const xdr::rpc_msg said = call_back(xdr::CB_NULL, 0, {}).header;
    return said.rbody.stat == xdr::reply_stat::MSG_ACCEPTED &&
           said.rbody.areply.stat == xdr::accept_stat::SUCCESS;
  }
  Said recall(std::string_view handle, std::uint64_t id) {
    return call_back(xdr::CB_COMPOUND, 1, [&](xdr::Encoder& out) {
      out.u32(static_cast<std::uint32_t>(xdr::nfs_cb_opnum4::OP_CB_RECALL));
      xdr::encode(out, xdr::CB_RECALL4args{stateid_of(id, 1), false, {as_bytes(handle)}});
    });
  }

  std::size_t standing() const { return delegated_.size(); }
  /// All that it has granted, where the client can be called.
  void recall_all() {
    const auto all = delegated_;
    for (const auto& [id, handle] : all)
      if (can_call()) (void)recall(handle, id);
  }

  /// Asked with a call at the front. True: it has dealt with it.
  std::function<bool()> instead_of_answering;
  bool serve_one() {
    FakeTransport* transport = connected();
    if (transport == nullptr || transport->out().empty()) return false;
    if (environment_.now() < silent_until) return false;
    if (instead_of_answering && instead_of_answering()) return true;
    const std::vector<std::byte> reply = reply_to(*transport->out().front());
    transport->answer([&](xdr::Encoder& out) { out.fixed_opaque(reply); });
    return true;
  }
  /// Runs the oldest call without answering it. If it does that again on the same connection, then
  /// as a whole: a client could not tell that the first run got further.
  void run_unanswered() {
    ran_ = {connected(), connected()->out().front()};
    (void)reply_to(*ran_.second);
  }
  void serve_all() {
    for (int i = 0; i < 1000; ++i) {
      environment_.settle();
      if (!serve_one()) return;
    }
    FAIL() << "the client asks without end";
  }
  void serve_for(Duration time) {
    const TimePoint end = environment_.now() + time;
    while (environment_.now() < end) {
      serve_all();
      environment_.advance(std::chrono::milliseconds(50));
    }
    serve_all();
  }
  FakeTransport* connected() {
    FakeTransport* transport = environment_.transport();
    if (transport != nullptr && !transport->accepted()) transport->accept();
    return transport;
  }

  std::vector<std::byte> reply_to(const ClientCall& call) {
    // The data of a WRITE stands where it belongs.
    std::vector<std::byte> message(call.head.begin(), call.head.end());
    message.insert(message.end(), call.payload.begin(), call.payload.end());
    message.resize((message.size() + 3) & ~std::size_t{3});
    message.insert(message.end(), call.tail.begin(), call.tail.end());
    xdr::Decoder in(message);
    xdr::rpc_msg header;
    xdr::COMPOUND4args head;
    EXPECT_TRUE(xdr::decode(in, header));
    EXPECT_TRUE(xdr::decode(in, head));
    std::deque<Stat> put_off;
    const bool again = ran_ == std::pair{environment_.transport(), &call};
    if (again) put_off.swap(errors[Op::OP_PUTFH]);
    results_.assign(8192, std::byte{});
    xdr::Encoder out(results_);
    asked_where_to_ = false;
    status_ = head.minorversion == 0 ? Stat::NFS4_OK : Stat::NFS4ERR_MINOR_VERS_MISMATCH;
    count_ = 0;
    if (status_ == Stat::NFS4_OK) seen.emplace_back();
    for (std::uint32_t i = 0; i < head.argarray_len && status_ == Stat::NFS4_OK; ++i) {
      const auto number = static_cast<Op>(in.u32());
      seen.back().push_back(number);
      run(number, in, out);
    }
    if (again) put_off.swap(errors[Op::OP_PUTFH]);
    std::vector<std::byte> whole(8192 + 64);
    xdr::Encoder reply(whole);
    xdr::encode(reply, xdr::COMPOUND4res{status_, {}, count_});
    reply.fixed_opaque(out.bytes());
    whole.resize(reply.size());
    return whole;
  }

 private:
  struct Owner {
    bool used = false;
    bool confirmed = false;
    std::uint32_t last = 0;
    Op operation{};
    std::vector<std::byte> reply;
    std::string handle;  // the current one behind it
  };
  struct Open {
    std::string owner, handle;
    std::uint32_t seqid = 1;
  };
  struct Locked {
    std::string owner, handle;
    LockOwnerId number = 0;
    std::uint64_t open = 0;
    std::uint32_t seqid = 1;
  };

  void forget_client() {
    client_id_ = 0;
    owners_.clear();
    opens_.clear();
    locked_.clear();
    miscounted_.clear();
    delegated_.clear();
    for (auto& [handle, held] : locks) {
      const auto all = held.held();
      for (const auto& one : all) {
        if (one.owner != kForeign) held.release(one.owner);
      }
    }
  }
  void drop_locks(std::uint64_t open) {
    std::erase_if(locked_, [&](const auto& one) {
      if (one.second.open == open) locks[one.second.handle].release(one.second.number);
      return one.second.open == open;
    });
  }
  void drop_locks_of(const std::string& owner) {
    std::erase_if(locked_, [&](const auto& one) {
      if (one.second.owner == owner) locks[one.second.handle].release(one.second.number);
      return one.second.owner == owner;
    });
  }
  std::size_t count_of(char kind) const {
    std::size_t count = 0;
    for (const auto& [name, owner] : owners_)
      count += name[0] == kind ? 1 : 0;
    return count;
  }
  static Stat next(std::deque<Stat>& errors) {
    if (errors.empty()) return Stat::NFS4_OK;
    const Stat status = errors.front();
    errors.pop_front();
    return status;
  }
  static bool needs_state(Op number) {
    return in_sequence(number) || number == Op::OP_READ || number == Op::OP_WRITE ||
           number == Op::OP_RENEW;
  }
  Stat planned(Op number) {
    // RFC 7931: known to have heard of it is who asks where to, and says who he is.
    if (number == Op::OP_RENEW && asked_where_to_) lease_moved = false;
    if (lease_moved && needs_state(number)) return Stat::NFS4ERR_LEASE_MOVED;
    if (moved.contains(handle_) && needs_state(number) && number != Op::OP_RENEW) {
      return Stat::NFS4ERR_MOVED;
    }
    const Stat status = next(errors[number]);
    if (status == Stat::NFS4ERR_STALE_STATEID) ++boot_;
    const bool gone = status == Stat::NFS4ERR_STALE_STATEID || status == Stat::NFS4ERR_EXPIRED ||
                      status == Stat::NFS4ERR_STALE_CLIENTID;
    if (gone) forget_client();
    return status;
  }
  static std::string key_of(char kind, ByteSpan owner) {
    return kind + std::string(as_text(owner));
  }
  template <typename Res>
  void answer(Op number, const Res& result, xdr::Encoder& out) {
    out.u32(static_cast<std::uint32_t>(number));
    xdr::encode(out, result);
    status_ = result.status;
    ++count_;
  }
  template <typename Args>
  static Args args(xdr::Decoder& in) {
    Args value;
    EXPECT_TRUE(xdr::decode(in, value));
    return value;
  }
  void plain(Op number, Stat status, xdr::Encoder& out) {
    answer(number, xdr::Nfs4Result<xdr::Void>{status, {}}, out);
  }
  Stat grace(bool reclaim) const {
    if (reclaim) return in_grace ? Stat::NFS4_OK : Stat::NFS4ERR_NO_GRACE;
    return in_grace ? Stat::NFS4ERR_GRACE : Stat::NFS4_OK;
  }
  static bool counts(Stat status) {
    const std::set<Stat> not_these{Stat::NFS4ERR_STALE_CLIENTID, Stat::NFS4ERR_STALE_STATEID,
                                   Stat::NFS4ERR_BAD_STATEID,    Stat::NFS4ERR_BAD_SEQID,
                                   Stat::NFS4ERR_BADXDR,         Stat::NFS4ERR_RESOURCE,
                                   Stat::NFS4ERR_NOFILEHANDLE,   Stat::NFS4ERR_MOVED};
    return !not_these.contains(status);
  }
  xdr::stateid4 stateid_of(std::uint64_t id, std::uint32_t seqid) const {
    xdr::stateid4 stateid{seqid, {}};
    store_be32(stateid.other.data(), boot_);
    store_be64(stateid.other.data() + 4, id);
    return stateid;
  }
  static std::uint64_t id_of(const xdr::stateid4& stateid) {
    return load_be64(stateid.other.data() + 4);
  }
  template <typename Table>
  Stat check(const Table& table, const xdr::stateid4& stateid) const {
    if (load_be32(stateid.other.data()) != boot_) return Stat::NFS4ERR_STALE_STATEID;
    const auto found = table.find(id_of(stateid));
    if (found == table.end()) {
      return client_id_ == 0 ? Stat::NFS4ERR_EXPIRED : Stat::NFS4ERR_BAD_STATEID;
    }
    return Stat::NFS4_OK;
  }
  /// Of a stateid that stands. A retry, which has an older one, is known by then.
  static Stat age(const xdr::stateid4& stateid, std::uint32_t seqid) {
    if (stateid.seqid == seqid) return Stat::NFS4_OK;
    return stateid.seqid < seqid ? Stat::NFS4ERR_OLD_STATEID : Stat::NFS4ERR_BAD_STATEID;
  }
  /// `run` gives the result, in the turn of the owner.
  template <typename Run>
  void in_turn(Op number, const std::string& key, std::uint32_t seqid, xdr::Encoder& out, Run run) {
    using Res = decltype(run());
    Owner& owner = owners_[key];
    if (std::exchange(loses_count, false)) {
      owner.last += 100;
      miscounted_.insert(key);
    }
    Res res;
    if (owner.used && seqid == owner.last && number == owner.operation) {
      out.fixed_opaque(owner.reply);
      xdr::Decoder reply(owner.reply);
      (void)reply.u32();
      status_ = static_cast<Stat>(reply.u32());
      handle_ = owner.handle;
      ++count_;
      return;
    }
    if (owner.used && seqid != owner.last + 1) {
      res.status = Stat::NFS4ERR_BAD_SEQID;
      return answer(number, res, out);
    }
    const std::size_t from = out.size();
    res.status = planned(number);
    if (res.status == Stat::NFS4_OK) res = run();
    answer(number, res, out);
    // RELEASE_LOCKOWNER and the like may have taken it.
    if (!counts(res.status) || client_id_ == 0) return;
    Owner& now = owners_[key];
    now.used = true;
    now.last = seqid;
    now.operation = number;
    const ByteSpan bytes = out.bytes().subspan(from);
    now.reply.assign(bytes.begin(), bytes.end());
    now.handle = handle_;
  }

  static bool in_sequence(Op number) {
    return number == Op::OP_OPEN || number == Op::OP_OPEN_CONFIRM || number == Op::OP_CLOSE ||
           number == Op::OP_LOCK || number == Op::OP_LOCKU;
  }
  /// None that anybody could use.
  void tell_locations(xdr::Decoder& in, xdr::Encoder& out) {
    const auto want = args<xdr::GETATTR4args>(in);
    asked_where_to_ = want.attr_request.has(xdr::fattr4_number::FATTR4_FS_LOCATIONS);
    if (!asked_where_to_) return plain(Op::OP_GETATTR, Stat::NFS4ERR_MOVED, out);
    answer(Op::OP_GETATTR, xdr::GETATTR4res{}, out);
  }
  template <typename Res>
  void refuse(Op number, Stat status, xdr::Encoder& out) {
    Res res;
    res.status = status;
    answer(number, res, out);
  }
  /// Those have more in their errors than the status.
  void refuse(Op number, Stat status, xdr::Encoder& out) {
    if (number == Op::OP_SETATTR) return refuse<xdr::SETATTR4res>(number, status, out);
    if (number == Op::OP_LOCKT) return refuse<xdr::LOCKT4res>(number, status, out);
    if (number == Op::OP_SETCLIENTID) return refuse<xdr::SETCLIENTID4res>(number, status, out);
    plain(number, status, out);
  }

  void run(Op number, xdr::Decoder& in, xdr::Encoder& out) {
    if (!in_sequence(number)) {
      const Stat status = planned(number);
      if (status != Stat::NFS4_OK) return refuse(number, status, out);
    }
    if (number == Op::OP_GETATTR && moved.contains(handle_)) return tell_locations(in, out);
    switch (number) {
      case Op::OP_SETCLIENTID: {
        const auto want = args<xdr::SETCLIENTID4args>(in);
        EXPECT_NE(want.callback.cb_location.na_r_addr.empty(), can_call());
        callback_program = want.callback.cb_program;
        callback_ident = want.callback_ident;
        callback_address = std::string(want.callback.cb_location.na_r_netid) + ' ' +
                           std::string(want.callback.cb_location.na_r_addr);
        xdr::SETCLIENTID4res res;
        res.status = next(set_errors);
        offered_ = client_id_ != 0 ? client_id_ : ++last_id_;
        res.resok4.clientid = offered_;
        store_be64(res.resok4.setclientid_confirm.data(), confirm_ = ++last_id_);
        return answer(number, res, out);
      }
      case Op::OP_SETCLIENTID_CONFIRM: {
        const auto want = args<xdr::SETCLIENTID_CONFIRM4args>(in);
        EXPECT_TRUE(quiet || load_be64(want.setclientid_confirm.data()) == confirm_);
        EXPECT_TRUE(quiet || want.clientid == offered_);
        const Stat status = next(confirm_errors);
        if (status == Stat::NFS4_OK) client_id_ = offered_;
        return plain(number, status, out);
      }
      case Op::OP_RENEW: {
        const auto want = args<xdr::RENEW4args>(in);
        Stat status = next(renew_errors);
        if (want.clientid != client_id_) status = Stat::NFS4ERR_STALE_CLIENTID;
        return plain(number, status, out);
      }
      case Op::OP_PUTFH:
        handle_ = as_text(args<xdr::PUTFH4args>(in).object.data);
        return plain(number, next(putfh_errors), out);
      case Op::OP_SAVEFH:
        saved_ = handle_;
        return plain(number, Stat::NFS4_OK, out);
      case Op::OP_RESTOREFH:
        handle_ = saved_;
        return plain(number, Stat::NFS4_OK, out);
      case Op::OP_GETFH: {
        xdr::GETFH4res res;
        res.resok4.object.data = as_bytes(handle_);
        return answer(number, res, out);
      }
      case Op::OP_LOOKUP: {
        const auto found = names.find(std::string(args<xdr::LOOKUP4args>(in).objname));
        if (found != names.end()) handle_ = found->second;
        return plain(number, found == names.end() ? Stat::NFS4ERR_NOENT : Stat::NFS4_OK, out);
      }
      case Op::OP_NVERIFY:
        (void)args<xdr::NVERIFY4args>(in);
        return plain(number, Stat::NFS4_OK, out);
      case Op::OP_REMOVE: {
        const bool gone = names.erase(std::string(args<xdr::REMOVE4args>(in).target)) != 0;
        xdr::REMOVE4res res;
        if (!gone) res.status = Stat::NFS4ERR_NOENT;
        return answer(number, res, out);
      }
      case Op::OP_GETATTR:
        (void)args<xdr::GETATTR4args>(in);
        return getattr(out);
      case Op::OP_SETATTR: {
        const auto want = args<xdr::SETATTR4args>(in);
        xdr::FileAttributes4 values;
        (void)xdr::decode_attributes(want.obj_attributes, values);
        if (values.attrmask.has(xdr::fattr4_number::FATTR4_MODE)) modes_set.push_back(values.mode);
        xdr::SETATTR4res res;
        if (values.attrmask.has(xdr::fattr4_number::FATTR4_SIZE))
          res.status = of_data(want.stateid);
        return answer(number, res, out);
      }
      case Op::OP_DELEGRETURN: {
        const auto want = args<xdr::DELEGRETURN4args>(in);
        returned.push_back(id_of(want.deleg_stateid));
        if (delegated_.erase(returned.back()) == 0) --delegations;
        return plain(number, Stat::NFS4_OK, out);
      }
      case Op::OP_ACCESS: {
        const auto want = args<xdr::ACCESS4args>(in);
        return answer(number, xdr::ACCESS4res{Stat::NFS4_OK, {want.access, want.access}}, out);
      }
      case Op::OP_OPEN: {
        const auto want = args<xdr::OPEN4args>(in);
        opens_seen.push_back(want);
        const std::string key = key_of('o', want.owner.owner);
        EXPECT_LE(want.share_access, 3u);
        if (want.owner.clientid != client_id_) {
          xdr::OPEN4res res;
          res.status = Stat::NFS4ERR_STALE_CLIENTID;
          return answer(number, res, out);
        }
        return in_turn(number, key, want.seqid, out, [&] { return open(want, key); });
      }
      case Op::OP_OPEN_CONFIRM: {
        const auto want = args<xdr::OPEN_CONFIRM4args>(in);
        xdr::OPEN_CONFIRM4res res;
        res.status = check(opens_, want.open_stateid);
        if (res.status != Stat::NFS4_OK) return answer(number, res, out);
        Open& open = opens_[id_of(want.open_stateid)];
        return in_turn(number, open.owner, want.seqid, out, [&] {
          res.status = age(want.open_stateid, open.seqid);
          if (res.status != Stat::NFS4_OK) return res;
          EXPECT_TRUE(quiet || !owners_[open.owner].confirmed);
          owners_[open.owner].confirmed = true;
          res.resok4.open_stateid = stateid_of(id_of(want.open_stateid), ++open.seqid);
          return res;
        });
      }
      case Op::OP_CLOSE: {
        const auto want = args<xdr::CLOSE4args>(in);
        xdr::CLOSE4res res;
        res.status = check(opens_, want.open_stateid);
        const Stat planned = next(close_errors);
        if (planned == Stat::NFS4ERR_BAD_SEQID) res.status = planned;
        if (res.status != Stat::NFS4_OK) return answer(number, res, out);
        const Open open = opens_[id_of(want.open_stateid)];
        if (!owners_[open.owner].confirmed) return refuse(number, Stat::NFS4ERR_BAD_STATEID, out);
        return in_turn(number, open.owner, want.seqid, out, [&] {
          EXPECT_TRUE(quiet || open.handle == handle_);
          res.status = age(want.open_stateid, open.seqid);
          if (res.status == Stat::NFS4_OK) res.status = planned;
          if (res.status != Stat::NFS4_OK) return res;
          opens_.erase(id_of(want.open_stateid));
          drop_locks(id_of(want.open_stateid));
          return res;
        });
      }
      case Op::OP_LOCK:
        return lock(args<xdr::LOCK4args>(in), out);
      case Op::OP_LOCKT: {
        const auto want = args<xdr::LOCKT4args>(in);
        xdr::LOCKT4res res;
        const auto* held =
            locks[handle_].conflict(load_be64(want.owner.owner.data()), kind_of(want.locktype),
                                    byte_range(want.offset, want.length).value());
        if (held != nullptr) res.status = Stat::NFS4ERR_DENIED;
        return answer(number, res, out);
      }
      case Op::OP_LOCKU: {
        const auto want = args<xdr::LOCKU4args>(in);
        xdr::LOCKU4res res;
        res.status = check(locked_, want.lock_stateid);
        if (res.status != Stat::NFS4_OK) return answer(number, res, out);
        Locked& locked = locked_[id_of(want.lock_stateid)];
        return in_turn(number, locked.owner, want.seqid, out, [&] {
          res.status = age(want.lock_stateid, locked.seqid);
          if (res.status != Stat::NFS4_OK) return res;
          locks[handle_].unlock(locked.number, byte_range(want.offset, want.length).value());
          res.resok4 = stateid_of(id_of(want.lock_stateid), ++locked.seqid);
          return res;
        });
      }
      case Op::OP_RELEASE_LOCKOWNER: {
        const auto want = args<xdr::RELEASE_LOCKOWNER4args>(in);
        const std::string key = key_of('l', want.lock_owner.owner);
        std::erase_if(locked_, [&](const auto& one) { return one.second.owner == key; });
        return plain(number, owners_.erase(key) != 0 ? Stat::NFS4_OK : Stat::NFS4ERR_INVAL, out);
      }
      case Op::OP_READ: {
        reads.push_back(args<xdr::READ4args>(in));
        xdr::READ4res res;
        res.status = next(read_errors);
        if (res.status == Stat::NFS4_OK) res.status = of_data(reads.back().stateid);
        const std::string& content = contents[handle_];
        const std::uint64_t from = std::min<std::uint64_t>(reads.back().offset, content.size());
        res.resok4.data.bytes =
            as_bytes(std::string_view(content).substr(from, reads.back().count));
        res.resok4.eof = from + res.resok4.data.bytes.size() == content.size();
        answer(number, res, out);
        if (res.status == Stat::NFS4_OK) out.fixed_opaque(res.resok4.data.bytes);  // in line
        return;
      }
      case Op::OP_WRITE: {
        const auto want = args<xdr::WRITE4args>(in);
        xdr::WRITE4res res;
        res.status = of_data(want.stateid);
        if (res.status == Stat::NFS4_OK) {
          std::string& content = contents[handle_];
          content.resize(
              std::max<std::size_t>(content.size(), want.offset + want.data.bytes.size()));
          content.replace(want.offset, want.data.bytes.size(), as_text(want.data.bytes));
          res.resok4.count = static_cast<std::uint32_t>(want.data.bytes.size());
          res.resok4.committed = xdr::stable_how4::FILE_SYNC4;
        }
        return answer(number, res, out);
      }
      default:
        ADD_FAILURE() << "operation " << xdr::enum_name(number);
        return plain(Op::OP_ILLEGAL, Stat::NFS4ERR_OP_ILLEGAL, out);
    }
  }

  /// What a READ or WRITE by that stateid ends with.
  Stat of_data(const xdr::stateid4& stateid) {
    if (stateid.other == xdr::stateid4{}.other) {
      return stateid.seqid == 0 ? Stat::NFS4_OK : Stat::NFS4ERR_BAD_STATEID;
    }
    if (delegated_.contains(id_of(stateid))) return Stat::NFS4_OK;
    const Stat of_open = check(opens_, stateid);
    if (of_open == Stat::NFS4_OK) return age(stateid, opens_[id_of(stateid)].seqid);
    const Stat status = check(locked_, stateid);
    return status == Stat::NFS4_OK ? age(stateid, locked_[id_of(stateid)].seqid) : status;
  }

  static LockKind kind_of(xdr::nfs_lock_type4 type) {
    const bool write =
        type == xdr::nfs_lock_type4::WRITE_LT || type == xdr::nfs_lock_type4::WRITEW_LT;
    return write ? LockKind::kWrite : LockKind::kRead;
  }

  xdr::OPEN4res open(const xdr::OPEN4args& want, const std::string& key) {
    using enum xdr::open_claim_type4;
    xdr::OPEN4res res;
    const bool reclaim = want.claim.claim == CLAIM_PREVIOUS;
    EXPECT_TRUE(reclaim || want.claim.claim == CLAIM_NULL);
    res.status = next(open_errors);
    if (res.status == Stat::NFS4_OK) res.status = grace(reclaim);
    if (res.status != Stat::NFS4_OK) return res;
    if (!reclaim) {
      const std::string name(want.claim.file);
      const bool creates = want.openhow.opentype == xdr::opentype4::OPEN4_CREATE;
      const bool there = names.contains(name);
      if (there && creates && want.openhow.how.mode == xdr::createmode4::GUARDED4) {
        res.status = Stat::NFS4ERR_EXIST;
      } else if (!there && !creates) {
        res.status = Stat::NFS4ERR_NOENT;
      }
      if (res.status != Stat::NFS4_OK) return res;
      if (!there) names[name] = "f" + std::to_string(++made);
      handle_ = names[name];
    }
    Owner& owner = owners_[key];
    if (reclaim) owner.confirmed = true;
    if (!owner.confirmed) res.resok4.rflags = xdr::OPEN4_RESULT_CONFIRM;
    if (grants && owner.confirmed && !reclaim) grant(*grants, res);
    for (auto& [id, known] : opens_) {
      if (known.owner != key || known.handle != handle_) continue;
      res.resok4.stateid = stateid_of(id, ++known.seqid);
      return res;
    }
    opens_[++last_id_] = {key, handle_};
    res.resok4.stateid = stateid_of(last_id_, 1);
    if (delegates) {
      ++delegations;
      res.resok4.delegation.delegation_type = xdr::open_delegation_type4::OPEN_DELEGATE_READ;
      res.resok4.delegation.read.stateid = stateid_of(++last_id_, 1);
    }
    return res;
  }

  void grant(xdr::open_delegation_type4 kind, xdr::OPEN4res& res) {
    const bool writes = kind == xdr::open_delegation_type4::OPEN_DELEGATE_WRITE;
    granted.push_back(++last_id_);
    delegated_[last_id_] = handle_;
    res.resok4.delegation.delegation_type = kind;
    (writes ? res.resok4.delegation.write.stateid : res.resok4.delegation.read.stateid) =
        stateid_of(last_id_, 1);
  }

  void lock(const xdr::LOCK4args& want, xdr::Encoder& out) {
    xdr::LOCK4res res;
    if (want.reclaim) ++lock_reclaims;
    const bool fresh = want.locker.new_lock_owner;
    const auto& first = want.locker.open_owner;
    const auto& more = want.locker.lock_owner;
    res.status = fresh ? check(opens_, first.open_stateid) : check(locked_, more.lock_stateid);
    if (res.status != Stat::NFS4_OK) return answer(Op::OP_LOCK, res, out);
    const std::string key =
        fresh ? opens_[id_of(first.open_stateid)].owner : locked_[id_of(more.lock_stateid)].owner;
    if (fresh && !owners_[key].confirmed)
      return refuse(Op::OP_LOCK, Stat::NFS4ERR_BAD_STATEID, out);
    const std::string name = fresh ? key_of('l', first.lock_owner.owner) : std::string();
    const auto run_it = [&] {
      res.status = next(lock_errors);
      if (res.status == Stat::NFS4_OK) res.status = grace(want.reclaim);
      if (res.status == Stat::NFS4_OK) {
        res.status = fresh ? age(first.open_stateid, opens_[id_of(first.open_stateid)].seqid)
                           : age(more.lock_stateid, locked_[id_of(more.lock_stateid)].seqid);
      }
      if (res.status != Stat::NFS4_OK) return res;
      const LockOwnerId number = fresh ? load_be64(first.lock_owner.owner.data())
                                       : locked_[id_of(more.lock_stateid)].number;
      const auto range = byte_range(want.offset, want.length).value();
      if (locks[handle_].conflict(number, kind_of(want.locktype), range) != nullptr) {
        res.status = Stat::NFS4ERR_DENIED;
        return res;
      }
      locks[handle_].lock(number, kind_of(want.locktype), range);
      if (!fresh) {
        Locked& locked = locked_[id_of(more.lock_stateid)];
        res.resok4.lock_stateid = stateid_of(id_of(more.lock_stateid), ++locked.seqid);
        return res;
      }
      for (auto& [id, known] : locked_) {
        if (known.owner != name || known.handle != handle_) continue;
        res.resok4.lock_stateid = stateid_of(id, ++known.seqid);
        return res;
      }
      const auto elsewhere = [&](const auto& one) { return one.second.owner == name; };
      EXPECT_TRUE(quiet || std::none_of(locked_.begin(), locked_.end(), elsewhere))
          << "that lock-owner is known already, by another file";
      owners_[name].used = true;
      locked_[++last_id_] = {name, handle_, number, id_of(first.open_stateid)};
      res.resok4.lock_stateid = stateid_of(last_id_, 1);
      return res;
    };
    in_turn(Op::OP_LOCK, key, fresh ? first.open_seqid : more.lock_seqid, out, [&] {
      if (!fresh) return run_it();
      // In the lock-owner's turn as well, if there is one.
      if (owners_.contains(name) && first.lock_seqid != owners_[name].last + 1) {
        res.status = Stat::NFS4ERR_BAD_SEQID;
        return res;
      }
      run_it();
      if (owners_.contains(name) && counts(res.status)) owners_[name].last = first.lock_seqid;
      return res;
    });
  }

  void getattr(xdr::Encoder& out) {
    std::array<std::byte, 256> room;
    xdr::Encoder encoder(room);
    xdr::FileAttributes4 values;
    values.attrmask =
        xdr::bitmap4::of({xdr::fattr4_number::FATTR4_TYPE, xdr::fattr4_number::FATTR4_SIZE,
                          xdr::fattr4_number::FATTR4_FILEID, xdr::fattr4_number::FATTR4_NUMLINKS,
                          xdr::fattr4_number::FATTR4_OWNER});
    values.type = xdr::nfs_ftype4::NF4REG;
    const auto content = contents.find(handle_);
    if (content != contents.end()) values.size = content->second.size();
    values.numlinks = 1;
    values.fileid = 12;
    values.owner = "1000";
    xdr::detail::EncodeArchive archive(encoder);
    xdr::visit_attribute_values(archive, values);
    xdr::GETATTR4res res;
    res.resok4.obj_attributes = {values.attrmask, encoder.bytes()};
    answer(Op::OP_GETATTR, res, out);
  }

  FakeEnvironment& environment_;
  std::pair<FakeTransport*, const ClientCall*> ran_;  // by run_unanswered()
  std::uint32_t boot_ = 1;
  std::uint64_t last_id_ = 100;
  std::uint64_t client_id_ = 0;
  std::uint64_t offered_ = 0;
  std::uint64_t confirm_ = 0;
  std::map<std::string, Owner> owners_;  // 'o' or 'l', and the name
  std::map<std::uint64_t, Open> opens_;
  std::map<std::uint64_t, Locked> locked_;
  std::set<std::string> miscounted_;                // owners
  std::map<std::uint64_t, std::string> delegated_;  // to handles
  // Of the COMPOUND that is being run:
  std::vector<std::byte> results_;
  Stat status_ = Stat::NFS4_OK;
  std::uint32_t count_ = 0;
  std::string handle_, saved_;
  bool asked_where_to_ = false;
};

}  // namespace nfsrdma
