// SPDX-License-Identifier: Apache-2.0
// A server of NFSv4.1 and 4.2 that a test plays with: one client id, one session, a reply cache for
// each slot as RFC 8881 2.10.6 wants it, one file that can be locked, and one directory; and errors
// on purpose.
//
// It answers what is out on the newest transport of a FakeEnvironment.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "client/nfs4/callbacks.h"
#include "tests/unit/client/fake_environment.h"
#include "tests/unit/client/nfs4/fake_delegations.h"
#include "xdr/nfs4.h"

namespace nfsrdma {

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): by what it is about
class FakeNfs4Server {
 public:
  using Op = xdr::nfs_opnum4;
  using Stat = xdr::nfsstat4;

  explicit FakeNfs4Server(FakeEnvironment& environment) : environment_(environment) {}

  // --- what the test sets ---
  std::uint32_t newest_minor = 2;
  std::uint32_t slots = 8;
  std::deque<Stat> exchange_errors, create_errors, sequence_errors;
  std::deque<Stat> getattr_errors;
  std::uint32_t target_highest = 1000;
  std::uint64_t file_size = 4711;
  std::string file_owner = "1000";  // of every object but what is in the directory:
  std::vector<std::pair<std::string, std::string>> entries;  // names and owners
  xdr::SEEK4res seek;
  std::deque<xdr::COPY4res> copies;
  std::deque<Stat> clones;     // answers; none left: it cannot clone
  std::uint64_t verifier = 1;  // of WRITE and COMMIT
  std::deque<Stat> write_errors;
  std::size_t most_written = SIZE_MAX;  // by one WRITE
  xdr::stable_how4 committed = xdr::stable_how4::FILE_SYNC4;
  std::string content;  // of the file, as far as it was written
  std::uint32_t most_operations = 1000;
  xdr::bitmap4 supported = xdr::bitmap4::of({xdr::fattr4_number::FATTR4_ACL});
  std::uint32_t aclsupport = xdr::ACL4_SUPPORT_ALLOW_ACL;
  std::optional<std::string> acl;                    // XDR; none: GETATTR leaves it out
  std::optional<xdr::bitmap4> exclusive_attributes;  // suppattr_exclcreat
  std::deque<Stat> setattr_errors, mkdir_errors;
  Stat setxattr = Stat::NFS4_OK;
  std::string xattr;          // the value that there is
  std::optional<Op> unknown;  // what it has never heard of
  /// Pages of LISTXATTRS: the cookies are their places.
  std::vector<std::vector<std::string>> xattr_pages;

  /// What every name stands for is elsewhere, or so is every object.
  bool refers = false, moved = false;
  unsigned refuse_locations = 0;  // so many times
  /// The XDR of attr_vals of kAbsent, without which there are none; it outlives the answer.
  std::optional<std::string> locations;
  static constexpr xdr::bitmap4 kAbsent = xdr::bitmap4::of(
      {xdr::fattr4_number::FATTR4_FSID, xdr::fattr4_number::FATTR4_RDATTR_ERROR,
       xdr::fattr4_number::FATTR4_FS_LOCATIONS, xdr::fattr4_number::FATTR4_MOUNTED_ON_FILEID});

  /// GETATTR tells times, if there is one: as of now, but for the access time, which is kept in
  /// such a unit.
  std::optional<timespec> clock;
  timespec atime{};
  std::int64_t atime_unit = 1;  // nanoseconds

  bool knows_client = false;  // EXCHANGE_ID of the client that it has is answered with the same id
  std::string major_id = "this one";  // of the server
  bool makes_callbacks = true;  // CREATE_SESSION and BIND_CONN_TO_SESSION may give a back channel
  bool notifies_locks = false;  // OPEN says so
  bool file_there = true;
  bool in_grace = false;
  bool further_sessions = false;  // CREATE_SESSION makes one more, else another
  bool keeps_sessions = false;    // that CREATE_SESSION makes others of, until they are destroyed
  bool clientid_busy = false;     // at the last DESTROY_CLIENTID, to look at

  std::deque<Stat> open_errors, close_errors, lock_errors, unlock_errors, downgrade_errors;
  std::uint32_t status_flags = 0;  // of SEQUENCE
  /// What is not the request's in the results of SEQUENCE to come.
  enum class WrongId : std::uint8_t { kSession, kSequence, kSlot };
  std::deque<WrongId> wrong_ids;
  ByteRangeLocks locks;  // owners from kForeign on are another client's
  static constexpr LockOwnerId kForeign = 1000;
  FakeDelegations delegations;

  // --- what it looks at ---
  std::vector<std::vector<Op>> seen;                               // operations of each COMPOUND
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sequences;  // slot, sequence id
  std::uint32_t minor_seen = 0;
  std::uint32_t exchange_flags = 0;
  unsigned removed = 0;
  unsigned sessions = 0;
  unsigned reclaims_complete = 0;
  unsigned binds = 0;
  std::set<std::uint64_t> further;  // sessions of the client id besides the first
  std::vector<std::uint32_t> create_sequences;
  std::vector<xdr::COPY4args> copy_calls;
  std::vector<xdr::CLONE4args> clone_calls;
  struct Setting {  // what a SETATTR, OPEN or CREATE sets
    Op by;
    xdr::bitmap4 mask;
    std::string owner, owner_group;
  };
  std::vector<Setting> settings;
  std::vector<std::uint64_t> data_stateids;  // of READ and WRITE; 0: the anonymous one
  std::vector<std::pair<std::uint64_t, xdr::stable_how4>> writes_seen;  // offsets
  std::vector<xdr::OPEN4args> opens_seen;                               // their texts are gone
  unsigned lock_reclaims = 0;
  std::set<std::uint64_t> stateids;  // that stand
  std::set<std::uint64_t> revoked;   // of those that stood
  /// For what each OPEN stands, by its stateid, and what has been asked for in it.
  struct Share {
    std::uint32_t access = 0;
    std::uint32_t deny = 0;
    std::set<std::uint32_t> asked;
  };
  std::map<std::uint64_t, Share> shares;

  /// Everything that it knew of clients is gone.
  void restart() {
    client_id_ = 0;
    lose_session();
    lose_state();
    locks = {};
  }
  /// Another client's.
  void lock_elsewhere(LockKind kind, ByteRange range) { locks.lock(kForeign, kind, range); }
  void unlock_elsewhere() { locks.release(kForeign); }
  void revoke_everything() {
    revoked.merge(stateids);
    stateids.clear();
    locks = {};
    status_flags = xdr::SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED;
  }
  /// One alone; what is said of that is `flags`.
  void revoke(std::uint64_t stateid, std::uint32_t flags) {
    stateids.erase(stateid);
    revoked.insert(stateid);
    status_flags = flags;
  }
  std::uint64_t session() const { return session_; }
  /// One that another client has made.
  std::uint64_t give_session() {
    cached_.clear();
    return session_ = ++last_id_;
  }
  /// Of the client that it knows.
  void lose_state() {
    stateids.clear();
    shares.clear();
    revoked.clear();
    for (const auto& [stateid, owner] : owners_)
      locks.release(owner);
  }
  /// The sequence ids of all of them.
  void forget_slots() { cached_.clear(); }
  /// Sessions that were kept.
  std::size_t replaced() const { return kept_.size(); }
  void lose_session() {
    session_ = 0;
    cached_.clear();
    kept_.clear();
    further.clear();
  }

  /// The message of a callback with its CB_SEQUENCE, and one operation behind it.
  template <typename Args>
  std::vector<std::byte> callback(xdr::nfs_cb_opnum4 number, const Args& args) {
    std::vector<std::byte> message(1024);
    xdr::Encoder out(message);
    xdr::rpc_msg header;
    header.cbody.prog = nfs4::Callbacks::kProgram;
    header.cbody.vers = xdr::kNfs4CallbackVersion;
    header.cbody.proc = xdr::CB_COMPOUND;
    xdr::encode(out, header);
    xdr::encode(out, xdr::CB_COMPOUND4args{{}, minor_seen, 0, 2});
    xdr::CB_SEQUENCE4args sequence;
    store_be64(sequence.csa_sessionid.data(), session_);
    sequence.csa_sequenceid = ++callback_sequence_;
    out.u32(static_cast<std::uint32_t>(xdr::nfs_cb_opnum4::OP_CB_SEQUENCE));
    xdr::encode(out, sequence);
    out.u32(static_cast<std::uint32_t>(number));
    xdr::encode(out, args);
    message.resize(out.size());
    return message;
  }
  /// CB_NOTIFY_LOCK for the file; its status, or that of what was in front of it.
  Stat notify_lock(ByteSpan file) {
    return call_back(xdr::nfs_cb_opnum4::OP_CB_NOTIFY_LOCK,
                     xdr::CB_NOTIFY_LOCK4args{{file}, {client_id_, as_bytes("anybody")}});
  }
  /// CB_RECALL of the delegation with that number.
  Stat recall(ByteSpan file, std::uint64_t number) {
    xdr::stateid4 stateid{1, {}};
    store_be64(stateid.other.data(), number);
    return call_back(xdr::nfs_cb_opnum4::OP_CB_RECALL, xdr::CB_RECALL4args{stateid, false, {file}});
  }
  template <typename Args>
  Stat call_back(xdr::nfs_cb_opnum4 number, const Args& args) {
    const auto reply = connected()->call_back(callback(number, args));
    xdr::Decoder in(reply);
    xdr::rpc_msg header;
    xdr::CB_COMPOUND4res head;
    EXPECT_TRUE(xdr::decode(in, header) && xdr::decode(in, head));
    EXPECT_EQ(header.rbody.areply.stat, xdr::accept_stat::SUCCESS);
    return head.status;
  }

  /// Asked with a call at the front. True: it has dealt with it.
  std::function<bool()> instead_of_answering;
  /// Answers the oldest call. False: there is none.
  bool serve_one() {
    FakeTransport* transport = connected();
    if (transport == nullptr || transport->out().empty()) return false;
    if (instead_of_answering && instead_of_answering()) return true;
    const std::vector<std::byte> reply = reply_to(*transport->out().front());
    transport->answer([&](xdr::Encoder& out) { out.fixed_opaque(reply); });
    return true;
  }
  /// Runs the oldest call without answering it.
  void run_unanswered() { (void)reply_to(*connected()->out().front()); }
  void serve_all() {
    for (int i = 0; i < 1000; ++i) {
      environment_.settle();
      if (!serve_one()) return;
    }
    FAIL() << "the client asks without end";
  }
  /// For as long as `time`, in small steps.
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

  /// The COMPOUND's results for `call`.
  std::vector<std::byte> reply_to(const ClientCall& call) {
    // The data of a WRITE stands where it belongs, and what comes behind it can be found.
    std::vector<std::byte> message(call.head.begin(), call.head.end());
    message.insert(message.end(), call.payload.begin(), call.payload.end());
    message.resize((message.size() + 3) & ~std::size_t{3});
    message.insert(message.end(), call.tail.begin(), call.tail.end());
    xdr::Decoder in(message);
    xdr::rpc_msg header;
    xdr::COMPOUND4args head;
    EXPECT_TRUE(xdr::decode(in, header));
    EXPECT_EQ(header.cbody.vers, 4u);
    EXPECT_TRUE(xdr::decode(in, head));
    minor_seen = head.minorversion;
    seen.emplace_back();
    results_.assign(8192, std::byte{});
    xdr::Encoder out(results_);
    status_ = Stat::NFS4_OK;
    count_ = 0;
    slot_ = nullptr;
    if (head.minorversion > newest_minor) {
      status_ = Stat::NFS4ERR_MINOR_VERS_MISMATCH;
    } else {
      for (std::uint32_t i = 0; i < head.argarray_len && status_ == Stat::NFS4_OK; ++i) {
        const auto number = static_cast<Op>(in.u32());
        seen.back().push_back(number);
        run(number, in, out);
        if (replayed_) return *std::exchange(replayed_, std::nullopt);
      }
    }
    std::vector<std::byte> whole(8192 + 64);
    xdr::Encoder reply(whole);
    xdr::encode(reply, xdr::COMPOUND4res{status_, {}, count_});
    reply.fixed_opaque(out.bytes());
    whole.resize(reply.size());
    if (slot_ != nullptr && cache_this_) slot_->reply = whole;
    return whole;
  }

 private:
  struct Cached {
    std::uint32_t sequence = 0;
    std::vector<std::byte> reply;
  };
  using Slots = std::map<std::uint32_t, Cached>;

  static Stat next(std::deque<Stat>& errors) {
    if (errors.empty()) return Stat::NFS4_OK;
    const Stat status = errors.front();
    errors.pop_front();
    return status;
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

  void run(Op number, xdr::Decoder& in, xdr::Encoder& out) {
    if (number == unknown) return plain(Op::OP_ILLEGAL, Stat::NFS4ERR_OP_ILLEGAL, out);
    if (number == Op::OP_SEQUENCE) behind_name_ = false;
    const bool may = number == Op::OP_SEQUENCE || number == Op::OP_PUTFH ||
                     number == Op::OP_PUTROOTFH || number == Op::OP_GETATTR;
    const bool of_absent = moved || (refers && behind_name_);
    if (of_absent && !may) return plain(number, Stat::NFS4ERR_MOVED, out);
    if (number == Op::OP_LOOKUP) behind_name_ = file_there;
    if (of_absent && number == Op::OP_GETATTR) return tell_locations(in, out);
    switch (number) {
      case Op::OP_EXCHANGE_ID: {
        exchange_flags = args<xdr::EXCHANGE_ID4args>(in).eia_flags;
        xdr::EXCHANGE_ID4res res;
        res.status = next(exchange_errors);
        const bool known = knows_client && client_id_ != 0;
        if (known) res.resok4.eir_flags = xdr::EXCHGID4_FLAG_CONFIRMED_R;
        if (res.status == Stat::NFS4_OK && !known) {
          client_id_ = ++last_id_;
          lose_session();
          lose_state();
        }
        res.resok4.eir_server_owner.so_major_id = as_bytes(major_id);
        res.resok4.eir_clientid = client_id_;
        res.resok4.eir_sequenceid = create_sequence_ = 1;
        return answer(number, res, out);
      }
      case Op::OP_CREATE_SESSION: {
        const auto want = args<xdr::CREATE_SESSION4args>(in);
        xdr::CREATE_SESSION4res res;
        res.status = next(create_errors);
        create_sequences.push_back(want.csa_sequence);
        if (res.status == Stat::NFS4_OK) {
          if (client_id_ == 0 || want.csa_clientid != client_id_) {
            res.status = Stat::NFS4ERR_STALE_CLIENTID;
          } else if (want.csa_sequence != create_sequence_) {
            res.status = Stat::NFS4ERR_SEQ_MISORDERED;
          } else {
            ++create_sequence_;
            ++sessions;
            const std::uint64_t made = ++last_id_;
            if (further_sessions && session_ != 0) {
              further.insert(made);
            } else {
              if (keeps_sessions && session_ != 0) kept_[session_] = cached_;
              session_ = made;
              cached_.clear();
            }
            store_be64(res.resok4.csr_sessionid.data(), made);
            res.resok4.csr_fore_chan_attrs = want.csa_fore_chan_attrs;
            res.resok4.csr_fore_chan_attrs.ca_maxrequests = slots;
            std::uint32_t& operations = res.resok4.csr_fore_chan_attrs.ca_maxoperations;
            operations = std::min(operations, most_operations);
            if (makes_callbacks) {
              res.resok4.csr_flags = want.csa_flags & xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
              res.resok4.csr_back_chan_attrs = want.csa_back_chan_attrs;
            }
            callback_sequence_ = 0;
          }
        }
        return answer(number, res, out);
      }
      case Op::OP_BIND_CONN_TO_SESSION: {
        const auto want = args<xdr::BIND_CONN_TO_SESSION4args>(in);
        EXPECT_EQ(want.bctsa_dir, xdr::channel_dir_from_client4::CDFC4_FORE_OR_BOTH);
        ++binds;
        xdr::BIND_CONN_TO_SESSION4res res;
        const bool known = load_be64(want.bctsa_sessid.data()) == session_;
        if (!known) res.status = Stat::NFS4ERR_BADSESSION;
        res.resok4.bctsr_sessid = want.bctsa_sessid;
        if (makes_callbacks) res.resok4.bctsr_dir = xdr::channel_dir_from_server4::CDFS4_BOTH;
        return answer(number, res, out);
      }
      case Op::OP_SEQUENCE:
        return sequence(args<xdr::SEQUENCE4args>(in), out);
      case Op::OP_DESTROY_SESSION:
        return destroy_session(args<xdr::DESTROY_SESSION4args>(in), out);
      case Op::OP_DESTROY_CLIENTID: {
        (void)args<xdr::DESTROY_CLIENTID4args>(in);
        bool busy = !stateids.empty() || session_ != 0 || !further.empty();
        busy |= !kept_.empty();
        clientid_busy = busy;
        return plain(number, busy ? Stat::NFS4ERR_CLIENTID_BUSY : Stat::NFS4_OK, out);
      }
      case Op::OP_RECLAIM_COMPLETE:
        (void)args<xdr::RECLAIM_COMPLETE4args>(in);
        ++reclaims_complete;
        return plain(number, Stat::NFS4_OK, out);
      case Op::OP_PUTFH:
        (void)args<xdr::PUTFH4args>(in);
        return plain(number, Stat::NFS4_OK, out);
      case Op::OP_SAVEFH:
      case Op::OP_RESTOREFH:
        return plain(number, Stat::NFS4_OK, out);
      case Op::OP_LOOKUP:
        (void)args<xdr::LOOKUP4args>(in);
        return plain(number, file_there ? Stat::NFS4_OK : Stat::NFS4ERR_NOENT, out);
      case Op::OP_NVERIFY:
        (void)args<xdr::NVERIFY4args>(in);
        return plain(number, Stat::NFS4_OK, out);
      case Op::OP_REMOVE: {
        (void)args<xdr::REMOVE4args>(in);
        ++removed;
        file_there = false;
        return answer(number, xdr::REMOVE4res{}, out);
      }
      case Op::OP_GETATTR:
        return getattr(args<xdr::GETATTR4args>(in), out);
      case Op::OP_READDIR:
        return readdir(args<xdr::READDIR4args>(in), out);
      case Op::OP_SETATTR:
        return setattr(args<xdr::SETATTR4args>(in), out);
      case Op::OP_SEEK:
        (void)args<xdr::SEEK4args>(in);
        return answer(number, seek, out);
      case Op::OP_COPY: {
        copy_calls.push_back(args<xdr::COPY4args>(in));
        xdr::COPY4res res;
        res.status = Stat::NFS4ERR_SERVERFAULT;
        if (!copies.empty()) {
          res = copies.front();
          copies.pop_front();
        }
        return answer(number, res, out);
      }
      case Op::OP_CLONE: {
        clone_calls.push_back(args<xdr::CLONE4args>(in));
        xdr::CLONE4res res;
        res.status = Stat::NFS4ERR_NOTSUPP;
        if (!clones.empty()) {
          res.status = clones.front();
          clones.pop_front();
        }
        return answer(number, res, out);
      }
      case Op::OP_GETXATTR: {
        (void)args<xdr::GETXATTR4args>(in);
        xdr::GETXATTR4res res;
        res.resok4.gxr_value = as_bytes(xattr);
        return answer(number, res, out);
      }
      case Op::OP_SETXATTR: {
        const auto want = args<xdr::SETXATTR4args>(in);
        xattr = as_text(want.sxa_value);
        return answer(number, xdr::SETXATTR4res{setxattr, {}}, out);
      }
      case Op::OP_LISTXATTRS: {
        const auto want = args<xdr::LISTXATTRS4args>(in);
        xdr::LISTXATTRS4res res;
        std::vector<std::byte> room(4096);
        xdr::Encoder encoder(room);
        if (want.lxa_cookie < xattr_pages.size()) {
          const auto& page = xattr_pages[want.lxa_cookie];
          for (const std::string& name : page)
            xdr::encode(encoder, xdr::xattrkey4{name});
          res.resok4.lxr_names.count = static_cast<std::uint32_t>(page.size());
        }
        res.resok4.lxr_names.encoded = encoder.bytes();
        res.resok4.lxr_cookie = want.lxa_cookie + 1;
        res.resok4.lxr_eof = want.lxa_cookie + 1 >= xattr_pages.size();
        return answer(number, res, out);
      }
      case Op::OP_GETFH: {
        static constexpr std::array<std::byte, 1> kHandle{std::byte{7}};
        xdr::GETFH4res res;
        res.resok4.object.data = kHandle;
        return answer(number, res, out);
      }
      case Op::OP_CREATE: {
        note(number, args<xdr::CREATE4args>(in).createattrs);
        xdr::CREATE4res res;
        res.status = next(mkdir_errors);
        return answer(number, res, out);
      }
      case Op::OP_OPEN:
        return open(args<xdr::OPEN4args>(in), out);
      case Op::OP_CLOSE: {
        const auto want = args<xdr::CLOSE4args>(in);
        xdr::CLOSE4res res;
        res.status = next(close_errors);
        if (res.status == Stat::NFS4_OK) res.status = check(current(want.open_stateid));
        if (res.status == Stat::NFS4_OK) close(number_of(current(want.open_stateid)));
        return answer(number, res, out);
      }
      case Op::OP_OPEN_DOWNGRADE:
        return downgrade(args<xdr::OPEN_DOWNGRADE4args>(in), out);
      case Op::OP_DELEGRETURN: {
        const auto want = args<xdr::DELEGRETURN4args>(in);
        const Stat status = check(want.deleg_stateid);
        delegations.returned.push_back(number_of(want.deleg_stateid));
        stateids.erase(number_of(want.deleg_stateid));
        return plain(number, status, out);
      }
      case Op::OP_ACCESS: {
        xdr::ACCESS4res res;
        res.resok4.supported = res.resok4.access = args<xdr::ACCESS4args>(in).access;
        return answer(number, res, out);
      }
      case Op::OP_LOCK:
        return lock(args<xdr::LOCK4args>(in), out);
      case Op::OP_LOCKT: {
        const auto want = args<xdr::LOCKT4args>(in);
        xdr::LOCKT4res res;
        const LockOwnerId owner = load_be64(want.owner.owner.data());
        const auto* held = locks.conflict(owner, kind_of(want.locktype),
                                          byte_range(want.offset, want.length).value());
        if (held != nullptr) {
          res.status = Stat::NFS4ERR_DENIED;
          res.denied = denial(*held);
        }
        return answer(number, res, out);
      }
      case Op::OP_LOCKU: {
        const auto want = args<xdr::LOCKU4args>(in);
        xdr::LOCKU4res res;
        res.status = next(unlock_errors);
        if (res.status == Stat::NFS4_OK) res.status = check(want.lock_stateid);
        if (res.status == Stat::NFS4_OK) {
          locks.unlock(owners_[number_of(want.lock_stateid)],
                       byte_range(want.offset, want.length).value());
          res.resok4 = want.lock_stateid;
        }
        return answer(number, res, out);
      }
      case Op::OP_TEST_STATEID: {
        const auto want = args<xdr::TEST_STATEID4args>(in);
        xdr::TEST_STATEID4res res;
        std::array<std::byte, 64> room;
        xdr::Encoder encoder(room);
        std::vector<Stat> found;
        for (const xdr::stateid4& stateid : want.ts_stateids)
          found.push_back(check(stateid));
        res.resok4.tsr_status_codes = xdr::encode_array<Stat>(encoder, found);
        return answer(number, res, out);
      }
      case Op::OP_FREE_STATEID: {
        const auto want = args<xdr::FREE_STATEID4args>(in);
        const std::uint64_t id = number_of(want.fsa_stateid);
        const bool there = stateids.erase(id) + revoked.erase(id) != 0;
        if (revoked.empty()) status_flags = 0;
        return plain(number, there ? Stat::NFS4_OK : Stat::NFS4ERR_BAD_STATEID, out);
      }
      case Op::OP_READ: {
        const auto want = args<xdr::READ4args>(in);
        xdr::READ4res res;
        res.status = use(want.stateid);
        res.resok4.eof = true;
        if (want.offset < content.size()) {
          res.resok4.data.bytes = as_bytes(content).subspan(want.offset);
        }
        answer(number, res, out);
        if (res.status == Stat::NFS4_OK) out.fixed_opaque(res.resok4.data.bytes);  // in line
        return;
      }
      case Op::OP_WRITE: {
        const auto want = args<xdr::WRITE4args>(in);
        writes_seen.emplace_back(want.offset, want.stable);
        xdr::WRITE4res res;
        res.status = next(write_errors);
        if (res.status == Stat::NFS4_OK) res.status = use(current(want.stateid));
        const std::string_view data = as_text(want.data.bytes).substr(0, most_written);
        if (res.status == Stat::NFS4_OK) {
          content.resize(std::max<std::size_t>(content.size(), want.offset + data.size()));
          content.replace(want.offset, data.size(), data);
        }
        res.resok4.count = static_cast<std::uint32_t>(data.size());
        res.resok4.committed = committed;
        store_be64(res.resok4.writeverf.data(), verifier);
        return answer(number, res, out);
      }
      case Op::OP_COMMIT: {
        (void)args<xdr::COMMIT4args>(in);
        xdr::COMMIT4res res;
        store_be64(res.resok4.writeverf.data(), verifier);
        return answer(number, res, out);
      }
      default:
        ADD_FAILURE() << "operation " << xdr::enum_name(number);
        return plain(Op::OP_ILLEGAL, Stat::NFS4ERR_OP_ILLEGAL, out);
    }
  }

  void tell_locations(xdr::Decoder& in, xdr::Encoder& out) {
    const auto want = args<xdr::GETATTR4args>(in);
    if (!want.attr_request.has(xdr::fattr4_number::FATTR4_FS_LOCATIONS)) {
      return plain(Op::OP_GETATTR, Stat::NFS4ERR_MOVED, out);
    }
    EXPECT_EQ(want.attr_request, kAbsent);
    if (refuse_locations > 0) {
      --refuse_locations;
      return plain(Op::OP_GETATTR, Stat::NFS4ERR_DELAY, out);
    }
    status_flags &= ~xdr::SEQ4_STATUS_LEASE_MOVED;
    xdr::GETATTR4res res;
    if (locations) res.resok4.obj_attributes = {kAbsent, as_bytes(*locations)};
    answer(Op::OP_GETATTR, res, out);
  }
  void destroy_session(const xdr::DESTROY_SESSION4args& want, xdr::Encoder& out) {
    const std::uint64_t id = load_be64(want.dsa_sessionid.data());
    const bool known = id == session_ || further.erase(id) + kept_.erase(id) != 0;
    if (id == session_) session_ = 0;
    plain(Op::OP_DESTROY_SESSION, known ? Stat::NFS4_OK : Stat::NFS4ERR_BADSESSION, out);
  }
  static std::uint64_t number_of(const xdr::stateid4& stateid) {
    return load_be64(stateid.other.data());
  }
  xdr::stateid4 new_stateid() {
    xdr::stateid4 stateid{1, {}};
    store_be64(stateid.other.data(), ++last_id_);
    stateids.insert(last_id_);
    return stateid;
  }
  Stat check(const xdr::stateid4& stateid) const {
    const std::uint64_t id = number_of(stateid);
    if (stateids.contains(id)) return Stat::NFS4_OK;
    return revoked.contains(id) ? Stat::NFS4ERR_EXPIRED : Stat::NFS4ERR_BAD_STATEID;
  }
  Stat use(const xdr::stateid4& stateid) {
    data_stateids.push_back(number_of(stateid));
    // RFC 8881, 8.2.3: of those without anything else, only the anonymous one is good.
    if (number_of(stateid) != 0) return check(stateid);
    return stateid.seqid == 0 ? Stat::NFS4_OK : Stat::NFS4ERR_BAD_STATEID;
  }
  /// Of the OPEN before, in the same COMPOUND.
  const xdr::stateid4& current(const xdr::stateid4& stateid) const {
    return stateid.seqid == 1 && number_of(stateid) == 0 ? current_ : stateid;
  }
  static LockKind kind_of(xdr::nfs_lock_type4 type) {
    const bool write =
        type == xdr::nfs_lock_type4::WRITE_LT || type == xdr::nfs_lock_type4::WRITEW_LT;
    return write ? LockKind::kWrite : LockKind::kRead;
  }
  xdr::LOCK4denied denial(const ByteRangeLocks::Held& held) {
    store_be64(denied_owner_.data(), held.owner);
    return {held.range.first,
            length_of(held.range),
            held.kind == LockKind::kWrite ? xdr::nfs_lock_type4::WRITE_LT
                                          : xdr::nfs_lock_type4::READ_LT,
            {77, denied_owner_}};
  }
  /// Whether state may be made now.
  Stat grace(bool reclaim) const {
    if (reclaim) return in_grace ? Stat::NFS4_OK : Stat::NFS4ERR_NO_GRACE;
    return in_grace ? Stat::NFS4ERR_GRACE : Stat::NFS4_OK;
  }
  void open(const xdr::OPEN4args& want, xdr::Encoder& out) {
    opens_seen.push_back(want);
    if (want.openhow.opentype == xdr::opentype4::OPEN4_CREATE) {
      const xdr::createhow4& how = want.openhow.how;
      note(Op::OP_OPEN, how.mode == xdr::createmode4::EXCLUSIVE4_1 ? how.ch_createboth.cva_attrs
                                                                   : how.createattrs);
    }
    xdr::OPEN4res res;
    res.status = next(open_errors);
    const bool reclaim = want.claim.claim == xdr::open_claim_type4::CLAIM_PREVIOUS;
    if (res.status == Stat::NFS4_OK) res.status = grace(reclaim);
    const LockOwnerId owner = load_be64(want.owner.owner.data());
    auto known = opened_.find(owner);
    if (res.status == Stat::NFS4_OK &&
        denied(want, known == opened_.end() ? 0 : number_of(known->second)))
      res.status = Stat::NFS4ERR_SHARE_DENIED;
    if (res.status == Stat::NFS4_OK) {
      if (known != opened_.end() && check(known->second) == Stat::NFS4_OK) {
        res.resok4.stateid = known->second;
      } else {
        opened_[owner] = res.resok4.stateid = new_stateid();
      }
      current_ = res.resok4.stateid;
      Share& share = shares[number_of(current_)];
      const std::uint32_t access = want.share_access & xdr::OPEN4_SHARE_ACCESS_BOTH;
      share.access |= access;
      share.deny |= want.share_deny;
      share.asked.insert(access);
      if (delegations.wanted(want.share_access)) {
        const xdr::stateid4 promised = new_stateid();
        delegations.given.push_back(number_of(promised));
        res.resok4.delegation = delegations.of(want.share_access, promised);
      }
      if (notifies_locks) res.resok4.rflags |= xdr::OPEN4_RESULT_MAY_NOTIFY_LOCK;
    }
    answer(Op::OP_OPEN, res, out);
  }
  /// By another of its OPENs than `own`, all of them of one file where one denies something.
  bool denied(const xdr::OPEN4args& want, std::uint64_t own) const {
    return std::any_of(shares.begin(), shares.end(), [&](const auto& one) {
      const Share& share = one.second;
      return one.first != own &&
             ((share.access & want.share_deny) | (share.deny & want.share_access)) != 0;
    });
  }
  void downgrade(const xdr::OPEN_DOWNGRADE4args& want, xdr::Encoder& out) {
    xdr::OPEN_DOWNGRADE4res res;
    const xdr::stateid4 stateid = current(want.open_stateid);
    res.status = next(downgrade_errors);
    if (res.status == Stat::NFS4_OK) res.status = check(stateid);
    if (res.status == Stat::NFS4_OK) {
      // To what some of its OPENs make together (RFC 8881, 18.18.3).
      Share& share = shares[number_of(stateid)];
      std::uint32_t sum = 0;
      std::erase_if(share.asked, [&](std::uint32_t one) { return one & ~want.share_access; });
      for (const std::uint32_t one : share.asked)
        sum |= one;
      if (sum != want.share_access) res.status = Stat::NFS4ERR_INVAL;
      share.access = sum;
      res.resok4.open_stateid = stateid;
    }
    answer(Op::OP_OPEN_DOWNGRADE, res, out);
  }
  /// With the locks that came by it.
  void close(std::uint64_t open) {
    stateids.erase(open);
    shares.erase(open);
    for (const auto& [lock, its] : opened_by_) {
      if (its == open && stateids.erase(lock) != 0) locks.release(owners_[lock]);
    }
  }
  void lock(const xdr::LOCK4args& want, xdr::Encoder& out) {
    xdr::LOCK4res res;
    if (want.reclaim) ++lock_reclaims;
    const bool fresh = want.locker.new_lock_owner;
    const xdr::stateid4& stateid =
        fresh ? want.locker.open_owner.open_stateid : want.locker.lock_owner.lock_stateid;
    res.status = next(lock_errors);
    if (res.status == Stat::NFS4_OK) res.status = grace(want.reclaim);
    if (res.status == Stat::NFS4_OK) res.status = check(stateid);
    if (res.status == Stat::NFS4_OK) {
      const LockOwnerId owner = fresh ? load_be64(want.locker.open_owner.lock_owner.owner.data())
                                      : owners_[number_of(stateid)];
      const auto range = byte_range(want.offset, want.length).value();
      if (const auto* held = locks.conflict(owner, kind_of(want.locktype), range)) {
        res.status = Stat::NFS4ERR_DENIED;
        res.denied = denial(*held);
      } else {
        locks.lock(owner, kind_of(want.locktype), range);
        res.resok4.lock_stateid = fresh ? new_stateid() : stateid;
        owners_[number_of(res.resok4.lock_stateid)] = owner;
        if (fresh) opened_by_[number_of(res.resok4.lock_stateid)] = number_of(stateid);
      }
    }
    answer(Op::OP_LOCK, res, out);
  }

  void sequence(const xdr::SEQUENCE4args& want, xdr::Encoder& out) {
    sequences.emplace_back(want.sa_slotid, want.sa_sequenceid);
    xdr::SEQUENCE4res res;
    res.status = next(sequence_errors);
    if (res.status == Stat::NFS4_OK) res.status = check(want);
    res.resok4 = {want.sa_sessionid, want.sa_sequenceid, want.sa_slotid,
                  slots - 1,         target_highest,     status_flags};
    if (!wrong_ids.empty()) {
      const WrongId wrong = wrong_ids.front();
      wrong_ids.pop_front();
      if (wrong == WrongId::kSession) res.resok4.sr_sessionid[15] ^= std::byte{1};
      if (wrong == WrongId::kSequence) --res.resok4.sr_sequenceid;
      if (wrong == WrongId::kSlot) ++res.resok4.sr_slotid;
    }
    if (!replayed_) answer(Op::OP_SEQUENCE, res, out);
  }

  Stat check(const xdr::SEQUENCE4args& want) {
    const std::uint64_t session = load_be64(want.sa_sessionid.data());
    const auto kept = kept_.find(session);
    if (session == 0 || (session != session_ && kept == kept_.end())) {
      return Stat::NFS4ERR_BADSESSION;
    }
    if (want.sa_slotid >= slots) return Stat::NFS4ERR_BADSLOT;
    EXPECT_GE(want.sa_highest_slotid, want.sa_slotid);
    Cached& cached = (kept == kept_.end() ? cached_ : kept->second)[want.sa_slotid];
    if (want.sa_sequenceid == cached.sequence && cached.sequence != 0) {
      if (cached.reply.empty()) return Stat::NFS4ERR_RETRY_UNCACHED_REP;
      replayed_ = cached.reply;
      return Stat::NFS4_OK;
    }
    if (want.sa_sequenceid != cached.sequence + 1) return Stat::NFS4ERR_SEQ_MISORDERED;
    cached = {want.sa_sequenceid, {}};
    slot_ = &cached;
    cache_this_ = want.sa_cachethis;
    return Stat::NFS4_OK;
  }

  void note(Op by, const xdr::fattr4& attributes) {
    xdr::FileAttributes4 values;
    EXPECT_EQ(xdr::decode_attributes(attributes, values).outcome, xdr::AttributeDecoding::kOk);
    settings.push_back(
        {by, values.attrmask, std::string(values.owner), std::string(values.owner_group)});
  }
  void setattr(const xdr::SETATTR4args& want, xdr::Encoder& out) {
    note(Op::OP_SETATTR, want.obj_attributes);
    xdr::SETATTR4res res;
    res.status = next(setattr_errors);
    // Like those of READ and WRITE, which data_stateids tells of alone.
    if (res.status == Stat::NFS4_OK && number_of(want.stateid) == 0 && want.stateid.seqid != 0)
      res.status = Stat::NFS4ERR_BAD_STATEID;
    if (res.status == Stat::NFS4_OK) {
      if (want.obj_attributes.attrmask.has(xdr::fattr4_number::FATTR4_ACL)) {
        acl = as_text(want.obj_attributes.attr_vals);
      }
      res.attrsset = want.obj_attributes.attrmask;
      set_atime(want.obj_attributes);
    }
    answer(Op::OP_SETATTR, res, out);
  }

  void set_atime(const xdr::fattr4& attributes) {
    xdr::FileAttributes4 values;
    EXPECT_EQ(xdr::decode_attributes(attributes, values).outcome, xdr::AttributeDecoding::kOk);
    if (!clock || !values.attrmask.has(xdr::fattr4_number::FATTR4_TIME_ACCESS_SET)) return;
    const xdr::settime4& wanted = values.time_access_set;
    if (wanted.set_it == xdr::time_how4::SET_TO_SERVER_TIME4) {
      atime = *clock;
    } else {
      const std::int64_t kept = wanted.time.nseconds - wanted.time.nseconds % atime_unit;
      atime = {wanted.time.seconds, kept};
    }
  }

  void getattr(const xdr::GETATTR4args& want, xdr::Encoder& out) {
    using enum xdr::fattr4_number;
    const xdr::bitmap4 kUsual = xdr::bitmap4::of(
        {FATTR4_TYPE, FATTR4_SIZE, FATTR4_FILEID, FATTR4_MODE, FATTR4_NUMLINKS, FATTR4_OWNER});
    xdr::GETATTR4res res;
    res.status = next(getattr_errors);
    if (want.attr_request == xdr::bitmap4::of({FATTR4_ACL})) {
      if (acl) res.resok4.obj_attributes = {want.attr_request, as_bytes(*acl)};
      return answer(Op::OP_GETATTR, res, out);
    }
    std::array<std::byte, 512> room;
    xdr::Encoder encoder(room);
    xdr::FileAttributes4 values;
    values.attrmask = kUsual;
    if (want.attr_request.has(FATTR4_SUPPATTR_EXCLCREAT)) {
      values.attrmask = {};
      if (exclusive_attributes) values.attrmask.set(FATTR4_SUPPATTR_EXCLCREAT);
      values.suppattr_exclcreat = exclusive_attributes.value_or(xdr::bitmap4());
    }
    if (want.attr_request.has(FATTR4_SUPPORTED_ATTRS)) {
      values.attrmask = xdr::bitmap4::of({FATTR4_SUPPORTED_ATTRS});
      if (supported.has(FATTR4_ACL)) values.attrmask.set(FATTR4_ACLSUPPORT);
    }
    values.supported_attrs = supported;
    values.aclsupport = aclsupport;
    values.type = xdr::nfs_ftype4::NF4REG;
    values.size = file_size;
    values.mode = 0600;
    values.numlinks = 1;
    values.fileid = 12;
    values.owner = file_owner;
    if (clock && values.attrmask == kUsual) {
      values.attrmask.set(FATTR4_TIME_ACCESS);
      values.attrmask.set(FATTR4_TIME_METADATA);
      values.time_access = {atime.tv_sec, static_cast<std::uint32_t>(atime.tv_nsec)};
      values.time_metadata = {clock->tv_sec, static_cast<std::uint32_t>(clock->tv_nsec)};
    }
    xdr::detail::EncodeArchive archive(encoder);
    xdr::visit_attribute_values(archive, values);
    res.resok4.obj_attributes = {values.attrmask, encoder.bytes()};
    answer(Op::OP_GETATTR, res, out);
  }

  /// All of it in one page.
  void readdir(const xdr::READDIR4args&, xdr::Encoder& out) {
    using enum xdr::fattr4_number;
    plain(Op::OP_READDIR, Stat::NFS4_OK, out);
    out.u64(0);  // cookieverf
    std::uint64_t cookie = 2;
    for (const auto& [name, its_owner] : entries) {
      std::array<std::byte, 512> room;
      xdr::Encoder encoder(room);
      xdr::FileAttributes4 values;
      values.attrmask = xdr::bitmap4::of({FATTR4_TYPE, FATTR4_SIZE, FATTR4_FILEID, FATTR4_OWNER});
      values.type = xdr::nfs_ftype4::NF4REG;
      values.fileid = ++cookie;
      values.owner = its_owner;
      xdr::detail::EncodeArchive archive(encoder);
      xdr::visit_attribute_values(archive, values);
      out.u32(1);
      xdr::encode(out, xdr::entry4{cookie, name, {values.attrmask, encoder.bytes()}});
    }
    out.u32(0);
    out.u32(1);  // eof
  }

  FakeEnvironment& environment_;
  std::uint64_t last_id_ = 100;
  std::uint64_t client_id_ = 0;
  std::uint64_t session_ = 0;
  std::uint32_t create_sequence_ = 0;
  std::uint32_t callback_sequence_ = 0;
  Slots cached_;
  std::map<std::uint64_t, Slots> kept_;               // by session
  std::map<LockOwnerId, xdr::stateid4> opened_;       // by open-owner
  std::map<std::uint64_t, LockOwnerId> owners_;       // of lock stateids
  std::map<std::uint64_t, std::uint64_t> opened_by_;  // the same: of the OPEN
  std::array<std::byte, 8> denied_owner_{};
  xdr::stateid4 current_{};
  // Of the COMPOUND that is being run:
  std::vector<std::byte> results_;
  Stat status_ = Stat::NFS4_OK;
  std::uint32_t count_ = 0;
  Cached* slot_ = nullptr;
  bool cache_this_ = false;
  bool behind_name_ = false;  // of a LOOKUP in this COMPOUND
  std::optional<std::vector<std::byte>> replayed_;
};

}  // namespace nfsrdma
