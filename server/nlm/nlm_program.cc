// SPDX-License-Identifier: Apache-2.0
// The procedures. Those that end in _MSG do what the others do; their results go to the host as a
// call of the procedure that ends in _RES.
#include "server/nlm/nlm_program.h"

#include <array>

#include "server/nlm/lock_call.h"
#include "server/nsm/status_monitor.h"
#include "server/server_context.h"
#include "xdr/nsm1.h"

namespace nfsrdma {

namespace {

using nlm::LockCall;
using nlm::LockResult;
using nlm::LockService;
using xdr::Decoder;
using xdr::Encoder;
using xdr::nlm4_stats;
using xdr::nlmproc4;
using enum xdr::nlm4_stats;

constexpr std::size_t kLongestResult = 4096;  // a cookie, an owner and some words

/// Calls of strangers are answered, but leave no trace: no call is made to where they say that they
/// come from, and no answer to a client is forgotten for theirs.
bool is_known(const LockCall& call) {
  return call.admitted() || call.wish().client != 0;
}

xdr::nlm4_testres do_test(ServerContext& server, Request& request, const xdr::nlm4_testargs& args,
                          LockResult* found) {
  xdr::nlm4_testres res;
  res.cookie = args.cookie;
  LockCall call(server, request);
  res.test_stat.stat = call.find(args.alock, args.exclusive, LockCall::Use::kTest);
  request.remember = is_known(call);
  if (res.test_stat.stat != NLM4_GRANTED) return res;
  nfs4::ServerState& state = server.nlm->state();
  *found = nlm::test_lock(state, call.file(), call.wish());
  res.test_stat.stat = found->stat;
  if (!found->holder) return res;
  const nfs4::OpenStates::Holder& holder = *found->holder;
  xdr::nlm4_holder& out = res.test_stat.holder;
  out.exclusive = holder.held.kind == LockKind::kWrite;
  out.l_offset = holder.held.range.first;
  out.l_len = nlm::wire_length(holder.held.range);
  std::lock_guard guard(state.mutex);
  nlm::split_owner(state.clients.find(holder.client), holder.owner, &out.svid, &out.oh);
  return res;
}

/// `monitored`: LOCK; else NM_LOCK, whose caller does not wait either.
xdr::nlm4_res do_lock(ServerContext& server, Request& request, const xdr::nlm4_lockargs& args,
                      bool monitored) {
  LockCall call(server, request);
  nlm4_stats stat = call.find(args.alock, args.exclusive, LockCall::Use::kTake, args.state);
  request.remember = is_known(call);
  if (stat == NLM4_GRANTED) {
    const LockService::Request wanted{{call.wish(), args.reclaim, monitored},
                                      args.block && monitored,
                                      call.host(),
                                      args.alock.fh};
    stat = server.nlm->lock(call.take_file(), wanted).stat;
  }
  return {args.cookie, stat};
}

xdr::nlm4_res do_cancel(ServerContext& server, Request& request, const xdr::nlm4_cancargs& args) {
  LockCall call(server, request);
  nlm4_stats stat = call.find(args.alock, args.exclusive, LockCall::Use::kRelease);
  request.remember = is_known(call);
  if (stat == NLM4_GRANTED) stat = server.nlm->cancel(call.file(), call.wish());
  return {args.cookie, stat};
}

xdr::nlm4_res do_unlock(ServerContext& server, Request& request, const xdr::nlm4_unlockargs& args) {
  LockCall call(server, request);
  nlm4_stats stat = call.find(args.alock, false, LockCall::Use::kRelease);
  request.remember = is_known(call);
  if (stat == NLM4_GRANTED && call.wish().client != 0) {
    stat = server.nlm->unlock(call.file(), call.wish());
  }
  return {args.cookie, stat};
}

// --- with a reply ---

Outcome proc_test(ServerContext& server, Request& request, Decoder& decoder, Encoder& result) {
  xdr::nlm4_testargs args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  LockResult found;
  xdr::encode(result, do_test(server, request, args, &found));
  return Outcome::kReply;
}

template <bool kMonitored>
Outcome proc_lock(ServerContext& server, Request& request, Decoder& decoder, Encoder& result) {
  xdr::nlm4_lockargs args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  xdr::encode(result, do_lock(server, request, args, kMonitored));
  return Outcome::kReply;
}

Outcome proc_cancel(ServerContext& server, Request& request, Decoder& decoder, Encoder& result) {
  xdr::nlm4_cancargs args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  xdr::encode(result, do_cancel(server, request, args));
  return Outcome::kReply;
}

Outcome proc_unlock(ServerContext& server, Request& request, Decoder& decoder, Encoder& result) {
  xdr::nlm4_unlockargs args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  xdr::encode(result, do_unlock(server, request, args));
  return Outcome::kReply;
}

// --- with a call instead ---

template <typename Res>
Outcome send_back(ServerContext& server, const Request& request, std::string_view name,
                  nlmproc4 procedure, const Res& res) {
  if (!request.remember) return Outcome::kReply;
  std::array<std::byte, kLongestResult> room;
  Encoder out(room);
  xdr::encode(out, res);
  const ByteSpan bytes = out.bytes();
  server.nlm->answer(nlm::caller_of(request, name), procedure, {bytes.begin(), bytes.end()});
  return Outcome::kReply;
}

Outcome proc_test_msg(ServerContext& server, Request& request, Decoder& decoder, Encoder&) {
  xdr::nlm4_testargs args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  LockResult found;
  return send_back(server, request, args.alock.caller_name, nlmproc4::NLMPROC4_TEST_RES,
                   do_test(server, request, args, &found));
}

Outcome proc_lock_msg(ServerContext& server, Request& request, Decoder& decoder, Encoder&) {
  xdr::nlm4_lockargs args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  return send_back(server, request, args.alock.caller_name, nlmproc4::NLMPROC4_LOCK_RES,
                   do_lock(server, request, args, true));
}

Outcome proc_cancel_msg(ServerContext& server, Request& request, Decoder& decoder, Encoder&) {
  xdr::nlm4_cancargs args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  return send_back(server, request, args.alock.caller_name, nlmproc4::NLMPROC4_CANCEL_RES,
                   do_cancel(server, request, args));
}

Outcome proc_unlock_msg(ServerContext& server, Request& request, Decoder& decoder, Encoder&) {
  xdr::nlm4_unlockargs args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  return send_back(server, request, args.alock.caller_name, nlmproc4::NLMPROC4_UNLOCK_RES,
                   do_unlock(server, request, args));
}

// --- shares, and the end of all ---

Outcome proc_share(ServerContext& server, Request& request, Decoder& decoder, Encoder& result) {
  xdr::nlm4_shareargs args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  xdr::nlm4_shareres res;
  res.cookie = args.cookie;
  const auto access = static_cast<std::uint32_t>(args.share.access);
  const auto deny = static_cast<std::uint32_t>(args.share.mode);
  if (access > 3 || deny > 3) {
    res.stat = NLM4_FAILED;
  } else {
    LockCall call(server, request);
    const nfs4::Share share{static_cast<std::uint8_t>(access), static_cast<std::uint8_t>(deny)};
    res.stat = call.find(args.share, LockCall::Use::kTake);
    request.remember = is_known(call);
    if (res.stat == NLM4_GRANTED) {
      res.stat = nlm::take_share(server.nlm->state(), call.file(), call.wish().client,
                                 call.wish().owner, share, args.reclaim);
    }
  }
  xdr::encode(result, res);
  return Outcome::kReply;
}

Outcome proc_unshare(ServerContext& server, Request& request, Decoder& decoder, Encoder& result) {
  xdr::nlm4_shareargs args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  xdr::nlm4_shareres res;
  res.cookie = args.cookie;
  LockCall call(server, request);
  res.stat = call.find(args.share, LockCall::Use::kRelease);
  request.remember = is_known(call);
  if (res.stat == NLM4_GRANTED && call.wish().client != 0) {
    nlm::release_share(server.nlm->state(), call.file(), call.wish().client, call.wish().owner);
  }
  xdr::encode(result, res);
  return Outcome::kReply;
}

Outcome proc_free_all(ServerContext& server, Request& request, Decoder& decoder, Encoder&) {
  xdr::nlm4_notify args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  // It ends all that a host holds, without a state by which a repetition could be told: not for who
  // sends datagrams in another's name, nor for ordinary users of that host.
  const ServerConnection& connection = request.call->connection();
  const bool believed =
      is_rdma(connection.transport()) ||
      (connection.transport() == TransportKind::kTcp && connection.peer().has_reserved_port());
  if (believed && args.name != nlm::LockService::kEveryName) {
    server.nlm->host_restarted(connection.peer(), args.name, 0);
  }
  return Outcome::kReply;
}

/// By the status monitor of this machine, where that is not this server's own.
Outcome proc_sm_notify(ServerContext& server, Request& request, Decoder& decoder, Encoder&) {
  xdr::sm_status args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  const SocketAddress& peer = request.call->connection().peer();
  if (peer.is_loopback() && peer.has_reserved_port()) server.nsm->told_by_other(args);
  return Outcome::kReply;
}

constexpr Replay kAgain = Replay::kIdempotent;
constexpr Replay kOnce = Replay::kCached;
constexpr Placement kWorker = Placement::kWorker;
constexpr ProcedureRow kNone{};

/// GRANTED and the results are for hosts that ask others for locks, which this one does not. What
/// ends in _MSG is run again when it comes again: its result was a call, which may be lost.
const ProcedureRow kRows[] = {
    {"NULL", null_procedure, kAgain, Placement::kInline},
    {"TEST", proc_test, kAgain, kWorker},
    {"LOCK", proc_lock<true>, kOnce, kWorker},
    {"CANCEL", proc_cancel, kOnce, kWorker},
    {"UNLOCK", proc_unlock, kOnce, kWorker},
    kNone,
    {"TEST_MSG", proc_test_msg, kAgain, kWorker},
    {"LOCK_MSG", proc_lock_msg, kAgain, kWorker},
    {"CANCEL_MSG", proc_cancel_msg, kAgain, kWorker},
    {"UNLOCK_MSG", proc_unlock_msg, kAgain, kWorker},
    kNone,
    kNone,
    kNone,
    kNone,
    kNone,
    kNone,
    {"SM_NOTIFY", proc_sm_notify, kAgain, kWorker},
    kNone,
    kNone,
    kNone,
    {"SHARE", proc_share, kOnce, kWorker},
    {"UNSHARE", proc_unshare, kOnce, kWorker},
    {"NM_LOCK", proc_lock<false>, kOnce, kWorker},
    {"FREE_ALL", proc_free_all, kOnce, kWorker},
};
static_assert(std::size(kRows) == xdr::kNlm4ProcedureCount);

}  // namespace

ProgramTable nlm4_program() {
  return {xdr::kNlmProgram, xdr::kNlmV4, "NLMv4", kRows};
}

}  // namespace nfsrdma
