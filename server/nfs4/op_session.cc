// SPDX-License-Identifier: Apache-2.0
// SEQUENCE and what makes, binds and ends sessions (RFC 8881 18.33, 18.34, 18.36, 18.37, 18.46).
#include <algorithm>
#include <vector>

#include "server/nfs4/callback.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/status.h"

namespace nfsrdma::nfs4 {

namespace {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

ChannelAttributes from_wire(const xdr::channel_attrs4& attrs) {
  return {attrs.ca_headerpadsize,          attrs.ca_maxrequestsize, attrs.ca_maxresponsesize,
          attrs.ca_maxresponsesize_cached, attrs.ca_maxoperations,  attrs.ca_maxrequests};
}

xdr::channel_attrs4 to_wire(const ChannelAttributes& attrs) {
  return {attrs.header_pad,
          attrs.max_request,
          attrs.max_response,
          attrs.max_response_cached,
          attrs.max_operations,
          attrs.max_requests,
          {}};
}

constexpr std::uint32_t kSessionFlags = xdr::CREATE_SESSION4_FLAG_PERSIST |
                                        xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN |
                                        xdr::CREATE_SESSION4_FLAG_CONN_RDMA;

/// A recall with a handle of 128 bytes and a credential of usual length.
constexpr std::uint32_t kSmallestCallback = 512;
/// CB_SEQUENCE and what is asked.
constexpr std::uint32_t kCallbackOperations = 2;

/// Nothing when the client takes no messages of that length, or offers no security that we have.
std::optional<BackChannel> make_back_channel(
    const Compound& compound, std::uint32_t program,
    const xdr::EncodedArray<xdr::callback_sec_parms4>& security, const ChannelAttributes& back) {
  if (back.max_request < kSmallestCallback || back.max_operations < kCallbackOperations) {
    return std::nullopt;
  }
  BackChannel out{{}, CallbackSlots(back.max_requests)};
  out.target.program = program;
  out.target.minor_version = compound.minor_version();
  if (!choose_callback_security(security, &out.target)) return std::nullopt;
  return out;
}

bool can_call_back(Compound& compound) {
  return compound.request().call->connection().max_backward_call() >= kSmallestCallback;
}

/// Makes the session of a confirmed client; res.status says whether.
void make_session(Compound& compound, Client& client, const xdr::CREATE_SESSION4args& args,
                  const ChannelAttributes& fore, const ChannelAttributes& back,
                  xdr::CREATE_SESSION4res& res) {
  ServerState& state = compound.state();
  std::optional<BackChannel> back_channel =
      make_back_channel(compound, args.csa_cb_program, args.csa_sec_parms, back);
  const bool call_back_here = (args.csa_flags & xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN) != 0 &&
                              back_channel && can_call_back(compound);
  const Session* session = state.sessions.create(client, fore, back, compound.connection(),
                                                 call_back_here, std::move(back_channel));
  if (session == nullptr) {
    const Limit met = state.sessions.check_room(client.id, fore.max_requests);
    state.refusals.refused(met, &client, client.address, state.now());
    res.status = NFS4ERR_NOSPC;
    return;
  }
  res.resok4.csr_sessionid = session->id;
  res.resok4.csr_sequence = args.csa_sequence;
  // Replies do not survive a restart, and a connection is in RDMA mode from its start or never.
  res.resok4.csr_flags = 0;
  if (call_back_here) {
    res.resok4.csr_flags = xdr::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
  }
  res.resok4.csr_fore_chan_attrs = to_wire(fore);
  res.resok4.csr_back_chan_attrs = to_wire(back);
}

/// Of SEQUENCE4res: the status, the session, and five words.
constexpr std::size_t kSequenceResult = 4 + sizeof(xdr::sessionid4) + 5 * 4;

/// Fills the SEQUENCE result of a request that is accepted.
void accept(ServerState& state, const Session& session, const xdr::SEQUENCE4args& args,
            xdr::SEQUENCE4resok& res) {
  const std::uint32_t highest = session.slots.size() - 1;
  res.sr_sessionid = args.sa_sessionid;
  res.sr_sequenceid = args.sa_sequenceid;
  res.sr_slotid = args.sa_slotid;
  res.sr_highest_slotid = highest;
  res.sr_target_highest_slotid = highest;
  // Not to clients that never wanted to be called.
  if (session.was_called_back && (session.backchannel.empty() || session.back_channel->failed)) {
    res.sr_status_flags |= xdr::SEQ4_STATUS_CB_PATH_DOWN_SESSION;
    if (state.sessions.to_call_back(session.client->id) == nullptr) {
      res.sr_status_flags |= xdr::SEQ4_STATUS_CB_PATH_DOWN;
    }
  }
  if (state.delegations.table().has_revoked(session.client->id, state.now())) {
    res.sr_status_flags |= xdr::SEQ4_STATUS_RECALLABLE_STATE_REVOKED;
  }
  if (state.opens.revoked().to_be_told(session.client->id, state.now()) ||
      state.delegations.table().has_revoked_by_administrator(session.client->id, state.now())) {
    res.sr_status_flags |= xdr::SEQ4_STATUS_ADMIN_STATE_REVOKED;
  }
  if (state.moved_exports.to_be_told(session.client->id, state.now())) {
    res.sr_status_flags |= xdr::SEQ4_STATUS_LEASE_MOVED;
  }
}

/// Of a connection in a session.
struct Channels {
  bool fore = false;
  bool back = false;
};

/// What a connection that is in `has` is in after BIND_CONN_TO_SESSION, which can make it a back
/// channel if `can_back`. Nothing: NFS4ERR_INVAL. What is bound stays bound as it is, and who
/// insists on something else is refused (RFC 8881 18.34.3); CDFC4_FORE_OR_BOTH does not insist, and
/// Linux's client asks so for the back channel on a connection that its SEQUENCE has bound.
std::optional<Channels> channels_after(Channels has, xdr::channel_dir_from_client4 asked,
                                       bool can_back) {
  const bool bound = has.fore || has.back;
  switch (asked) {
    case xdr::channel_dir_from_client4::CDFC4_FORE:
      if (has.back) return std::nullopt;
      return Channels{true, false};
    case xdr::channel_dir_from_client4::CDFC4_BACK:
      if (has.fore || !can_back) return std::nullopt;
      return Channels{false, true};
    case xdr::channel_dir_from_client4::CDFC4_FORE_OR_BOTH:
      if (bound && !has.fore) return std::nullopt;
      return Channels{true, can_back};
    case xdr::channel_dir_from_client4::CDFC4_BACK_OR_BOTH:
      // No security for callbacks in this session, or no callbacks over such a connection.
      if ((bound && !has.back) || !can_back) return std::nullopt;
      return Channels{!bound || has.fore, true};
  }
  return std::nullopt;
}

}  // namespace

nfsstat4 create_session(Compound& compound, const xdr::CREATE_SESSION4args& args,
                        xdr::Encoder& result) {
  if ((args.csa_flags & ~kSessionFlags) != 0) return NFS4ERR_INVAL;
  ServerState& state = compound.state();
  // Before the sequence id is looked at, as in Linux's server: the client may ask for more under
  // the same one.
  ChannelAttributes fore = from_wire(args.csa_fore_chan_attrs);
  ChannelAttributes back = from_wire(args.csa_back_chan_attrs);
  if (!negotiate(state.most_fore(), &fore) || !negotiate(state.most_back(), &back)) {
    return NFS4ERR_TOOSMALL;
  }
  // How much the client takes at a time is for itself to say (RFC 8881 18.36.3); we ask for less.
  back.max_operations = args.csa_back_chan_attrs.ca_maxoperations;
  back.max_requests = args.csa_back_chan_attrs.ca_maxrequests;
  // Linux's client does not take less than a page of its own (nfs4_verify_back_channel_attrs(),
  // before 6.18), which may be 64 KiB.
  back.max_response = args.csa_back_chan_attrs.ca_maxresponsesize;
  std::lock_guard lock(state.mutex);
  // A session must not begin on a connection that is gone; nobody hears this.
  if (!state.caller.is_open(compound.connection())) return NFS4ERR_DELAY;
  const Client* client = state.clients.find_any(args.csa_clientid);
  if (client != nullptr && client->has_sessions) {
    if (const nfsstat4 bad = compound.check_minor_version(*client); bad != NFS4_OK) return bad;
  }
  state.sweep_locked();
  const std::uint32_t wanted = fore.max_requests;
  // As many as there would be if nobody else were here.
  const std::uint32_t most = state.sessions.most_slots_for(wanted);
  for (int i = 0; i < ServerState::kMostGiveWay && state.sessions.slots_for(wanted) < most; ++i) {
    if (!state.make_room(Limit::kSlots, args.csa_clientid)) break;
  }
  fore.max_requests = std::max(1u, state.sessions.slots_for(wanted));
  // A retry is known by its sequence id alone: it may come by another session, or by none.
  ClientTable::Answer answer = state.clients.create_session(args.csa_clientid, args.csa_sequence, 0,
                                                            compound.principal(), state.now());
  state.end_clients(std::move(answer.ended));
  if (answer.status == ClientTable::Status::kRetry) {
    if (answer.verdict != SlotTable::Verdict::kReplay) {
      // A retry while the first runs cannot be told from one out of order by the client.
      return answer.verdict == SlotTable::Verdict::kInProgress ? NFS4ERR_DELAY
                                                               : NFS4ERR_SEQ_MISORDERED;
    }
    const auto kept = answer.client->create_session.reply(0);
    result.fixed_opaque(kept);
    xdr::Decoder decoder(kept);
    const auto status = static_cast<nfsstat4>(decoder.u32());
    return status;
  }
  if (answer.status != ClientTable::Status::kOk) return status_of(answer.status);
  state.came_from(*answer.client, compound.peer_text());
  xdr::CREATE_SESSION4res res;
  make_session(compound, *answer.client, args, fore, back, res);
  const std::size_t mark = result.mark();
  xdr::encode(result, res);
  answer.client->create_session.finish(0, result.bytes().subspan(mark));
  return res.status;
}

nfsstat4 destroy_session(Compound& compound, const xdr::DESTROY_SESSION4args& args,
                         xdr::DESTROY_SESSION4res&) {
  const bool own = compound.in_session() && compound.session() == args.dsa_sessionid;
  // Nothing can follow in a session that is no more (RFC 8881 18.37.3).
  if (own && compound.index() + 1 != compound.count()) return NFS4ERR_NOT_ONLY_OP;
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  return status_of(state.sessions.destroy(args.dsa_sessionid, compound.connection(), own));
}

nfsstat4 sequence(Compound& compound, const xdr::SEQUENCE4args& args, xdr::SEQUENCE4res& res) {
  ServerState& state = compound.state();
  state.moved_exports.look(compound.server().exports.current());
  std::lock_guard lock(state.mutex);
  Session* session = state.sessions.find(args.sa_sessionid);
  if (session == nullptr) return NFS4ERR_BADSESSION;
  if (const nfsstat4 bad = compound.check_minor_version(*session->client); bad != NFS4_OK) {
    return bad;
  }
  if (args.sa_slotid >= session->slots.size()) return NFS4ERR_BADSLOT;
  if (args.sa_highest_slotid < args.sa_slotid) return NFS4ERR_BAD_HIGH_SLOT;
  if (compound.count() > session->fore.max_operations) return NFS4ERR_TOO_MANY_OPS;
  if (compound.request().call->request_bytes() > session->fore.max_request) {
    return NFS4ERR_REQ_TOO_BIG;
  }
  const nfsstat4 too_long = compound.check_reply(*session, args.sa_cachethis, kSequenceResult);
  if (too_long != NFS4_OK) return too_long;
  const SlotTable::Verdict verdict =
      session->slots.begin(args.sa_slotid, args.sa_sequenceid, compound.fingerprint());
  switch (verdict) {
    case SlotTable::Verdict::kNew:
      compound.runs_in(*session, args.sa_slotid, args.sa_cachethis);
      break;
    case SlotTable::Verdict::kReplay:
      state.clients.renew(*session->client, state.now());
      // Where it is not to be had yet, it is asked for again, unless there is no memory for it.
      return compound.reply_with(session->slots.reply(args.sa_slotid)) ? NFS4_OK : NFS4ERR_DELAY;
    case SlotTable::Verdict::kUncached:
      compound.goes_by(*session);
      compound.reply_uncached();
      break;
    case SlotTable::Verdict::kInProgress:
    case SlotTable::Verdict::kFalseRetry:
    case SlotTable::Verdict::kMisordered:
    case SlotTable::Verdict::kBadSlot:
      return status_of(verdict);
  }
  state.clients.renew(*session->client, state.now());
  if (!session->connections.contains(compound.connection()) &&
      state.caller.is_open(compound.connection())) {
    state.sessions.use(*session, compound.connection());
  }
  accept(state, *session, args, res.resok4);
  compound.note_status_flags(res.resok4.sr_status_flags);
  return NFS4_OK;
}

nfsstat4 bind_conn_to_session(Compound& compound, const xdr::BIND_CONN_TO_SESSION4args& args,
                              xdr::BIND_CONN_TO_SESSION4res& res) {
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  Session* session = state.sessions.find(args.bctsa_sessid);
  if (session == nullptr) return NFS4ERR_BADSESSION;
  if (!state.caller.is_open(compound.connection())) return NFS4ERR_DELAY;
  const bool can_back = session->back_channel && can_call_back(compound);
  const std::vector<ConnectionId>& backward = session->backchannel;
  const Channels has{
      session->connections.contains(compound.connection()),
      std::find(backward.begin(), backward.end(), compound.connection()) != backward.end()};
  const std::optional<Channels> channels = channels_after(has, args.bctsa_dir, can_back);
  if (!channels) return NFS4ERR_INVAL;
  const auto [fore, back] = *channels;
  state.sessions.bind(*session, compound.connection(), fore, back);
  state.clients.renew(*session->client, state.now());
  res.resok4.bctsr_sessid = session->id;
  res.resok4.bctsr_dir = !back  ? xdr::channel_dir_from_server4::CDFS4_FORE
                         : fore ? xdr::channel_dir_from_server4::CDFS4_BOTH
                                : xdr::channel_dir_from_server4::CDFS4_BACK;
  return NFS4_OK;
}

nfsstat4 backchannel_ctl(Compound& compound, const xdr::BACKCHANNEL_CTL4args& args,
                         xdr::BACKCHANNEL_CTL4res&) {
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  Session* session = state.sessions.find(compound.session());
  if (session == nullptr) return NFS4ERR_BADSESSION;
  std::optional<BackChannel> wanted =
      make_back_channel(compound, args.bca_cb_program, args.bca_sec_parms, session->back);
  if (!wanted) return NFS4ERR_INVAL;
  if (session->back_channel) {
    session->back_channel->target = std::move(wanted->target);
  } else {
    session->back_channel = std::move(wanted);
  }
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
