// SPDX-License-Identifier: Apache-2.0
// One COMPOUND in a session, sent until it has an answer that is the operation's: SEQUENCE goes in
// front, errors of the session and "later" are dealt with here (recovery.h). In minor version 0
// there is no SEQUENCE, and the errors are those of the client id.
//
//   std::optional<Attributes> attributes;
//   auto build = [&](CompoundWriter& out) { out.op(...); };
//   auto parse = [&](CompoundReader& in) { ... };   // copies what it wants to keep
//   NFSRDMA_CO_TRY(Ending end, co_await call(session, op, {}, build, parse));
//   if (end.status != nfsstat4::NFS4_OK) ...
//
// build and parse run once for each time it is sent, and live in the frame that awaits. parse looks
// at the first result at least. Owners whose names it met for the first time are looked up behind
// it: attributes have their ids when call() is over, and not before.
#pragma once

#include <algorithm>
#include <optional>

#include "client/nfs4/compound.h"
#include "client/nfs4/id_names.h"
#include "client/nfs4/session.h"

namespace nfsrdma::nfs4 {

struct CallShape {
  MutableByteSpan sink{};          // for READ data or a link's text
  std::size_t max_results = 1024;  // bytes of results without what goes into the sink
  bool once = false;               // must not run twice: the server keeps the reply
  std::size_t arguments = 0;       // bytes, when they are more than handles and names
  bool patient = true;             // "later" is waited for; else it is how the call ends
  bool data = false;               // of a file: does not wait for what names of owners mean by now
};

struct Ending {
  xdr::nfsstat4 status = xdr::nfsstat4::NFS4_OK;
  /// It went out in a second session, and may have run in the first; or in minor version 0 over a
  /// second connection: its answer is doubtful (client/doubtful.h).
  bool resent = false;
};

inline constexpr Duration kLaterFirst = std::chrono::milliseconds(100);
inline constexpr Duration kLaterLongest = std::chrono::seconds(5);
/// NFS4ERR_FILE_OPEN is believed from then on, as by Linux's client.
inline constexpr Duration kInUseLongest = std::chrono::seconds(1);
/// Times that a call goes out again without a pause, before something must be wrong.
inline constexpr unsigned kAtOnce = 4;

template <typename Build, typename Parse>
Task<Result<Ending>> call(Session& session, const OpContext& op, CallShape shape, Build& build,
                          Parse& parse) {
  RpcClient& rpc = session.rpc();
  const TimePoint started = rpc.environment().now();
  const Duration limit = rpc.options().timeo * (rpc.options().retrans + 1);
  Ending ending;
  std::optional<Session::Turn> turn;
  Duration wait = kLaterFirst;
  unsigned at_once = 0;
  unsigned newer = 0;
  xdr::nfs_opnum4 operation = xdr::nfs_opnum4::OP_ILLEGAL;
  std::optional<TimePoint> put_off_since;
  for (;;) {
    if (!turn) {
      NFSRDMA_CO_TRY(turn, co_await session.take_turn(op));
    }
    Remedy remedy = Remedy::kNone;
    IdNames::OpenIds open_ids;
    const bool sequenced = session.minor() > 0;
    const Session::Turn was = *turn;
    {
      RpcCallLease rpc_call =
          rpc.prepare(xdr::kNfsProgram, xdr::kNfsV4, xdr::NFSPROC4_COMPOUND, op, shape.arguments);
      CompoundWriter out(rpc_call->encoder(), session.minor());
      xdr::SEQUENCE4args asked;
      if (sequenced) {
        asked = session.sequence(*turn, shape.once);
        out.op(xdr::nfs_opnum4::OP_SEQUENCE, asked);
      }
      build(out);
      out.finish();
      rpc_call->set_sink(shape.sink);
      rpc_call->set_max_results(shape.max_results);
      Result<void> outcome = co_await rpc_call->run();
      if (!outcome.ok()) {
        session.give_up(*turn);
        co_return outcome.error();
      }
      CompoundReader in(rpc_call->results());
      xdr::SEQUENCE4res sequence;
      const bool in_session = !sequenced || in.next(xdr::nfs_opnum4::OP_SEQUENCE, sequence);
      if (in_session && sequenced && !Session::answers(asked, sequence)) {
        session.give_up(*turn);
        co_return Error{Errc::kProtocol, EIO, "SEQUENCE: the result is another request's"};
      }
      if (in_session) parse(in);
      if (session.names() != nullptr) open_ids = session.names()->take_open();
      if (in.taken() == 0) {
        session.give_up(*turn);
        if (in.sound() && in.status() != xdr::nfsstat4::NFS4_OK) {
          co_return status_error(in.status(), "COMPOUND");
        }
        co_return Error{Errc::kProtocol, EIO, "undecodable COMPOUND result"};
      }
      ending.status = in.status();
      operation = in.last();
      remedy = remedy_of_minor_0(ending.status);
      if (sequenced) remedy = remedy_of(ending.status, !in_session);
      if (!sequenced && rpc_call->resent()) ending.resent = true;
      if (remedy == Remedy::kFindMoved) {
        session.lease_moved();
        remedy = Remedy::kLater;
      }
      // A request that SEQUENCE has put off goes out on the same slot again: it may be running.
      const bool put_off = !in_session && (remedy == Remedy::kLater || remedy == Remedy::kBind);
      if (!put_off) {
        turn.reset();
        if (sequenced) session.give_back(was, sequence);
        if (!sequenced) session.give_back(was);
      }
      if (!in.sound()) {
        if (turn) session.give_up(*turn);
        co_return Error{Errc::kProtocol, EIO, "undecodable NFS result"};
      }
      if (remedy == Remedy::kNone && open_ids.empty()) co_return ending;
      if (remedy == Remedy::kLater && in_session && !shape.patient) co_return ending;
      // Somebody has it open, perhaps for long: a mount point of the server's for ever.
      const bool in_use = ending.status == xdr::nfsstat4::NFS4ERR_FILE_OPEN && put_off_since;
      if (in_use && rpc.environment().now() - *put_off_since >= kInUseLongest) co_return ending;
      // Who was given a stateid (a shard) asks for the newest one where it is known.
      const bool given = op.right != nullptr;
      if (remedy == Remedy::kNewer && (given || ++newer > kAtOnce)) co_return ending;
      if (remedy == Remedy::kNewSession || remedy == Remedy::kNewClientId) {
        ending.resent = true;
        session.renew(was, remedy);
      }
    }
    if (remedy == Remedy::kNone) {
      // The slot is free again, and the call too.
      NFSRDMA_CO_CHECK_OK(co_await session.names()->settle(open_ids, shape.data, op.cancel));
      co_return ending;
    }
    Result<void> go_on;
    if (rpc.options().soft && rpc.environment().now() - started >= limit) {
      go_on = Error{Errc::kTimedOut, ETIMEDOUT, "the server keeps saying: later"};
    }
    if (go_on.ok() && remedy == Remedy::kBind) go_on = co_await session.bind(op);
    if (go_on.ok() && remedy == Remedy::kCheckClientId) {
      NFSRDMA_CO_TRY(const bool stands, co_await session.client_id_stands(op, was));
      if (stands) co_return ending;
      ending.resent = true;
    }
    if (go_on.ok() && remedy == Remedy::kLater) {
      const TimePoint now = rpc.environment().now();
      session.put_off(operation, ending.status, now - put_off_since.value_or(now));
      if (!put_off_since) put_off_since = now;
    }
    const bool later = remedy == Remedy::kLater || remedy == Remedy::kNewer;
    if (go_on.ok() && (later || ++at_once > kAtOnce)) {
      co_await session.pause(wait, op.cancel);
      wait = std::min(2 * wait, kLaterLongest);
      if (op.cancel != nullptr && op.cancel->cancelled()) {
        go_on = Error{Errc::kSystem, EINTR, "interrupted"};
      }
    }
    if (!go_on.ok()) {
      if (turn) session.give_up(*turn);
      co_return go_on.error();
    }
    if (turn && turn->epoch != session.epoch()) {
      session.give_up(*turn);
      turn.reset();
      ending.resent = true;
    }
  }
}

}  // namespace nfsrdma::nfs4
