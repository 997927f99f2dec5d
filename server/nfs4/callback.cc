// SPDX-License-Identifier: Apache-2.0
// Callbacks as messages. See callback.h.
#include "server/nfs4/callback.h"

#include <array>

#include "rpcrdma/base/check.h"

namespace nfsrdma::nfs4 {

namespace {

using xdr::nfs_cb_opnum4;
using Kind = CallbackReply::Kind;

constexpr std::uint32_t kCallbackProgramVersion = xdr::kNfs4CallbackVersion;

void encode_header(xdr::Encoder& out, const CallbackTarget& target, std::uint32_t procedure) {
  xdr::rpc_msg call;
  call.mtype = xdr::msg_type::CALL;
  call.cbody.prog = target.program;
  call.cbody.vers = kCallbackProgramVersion;
  call.cbody.proc = procedure;
  call.cbody.cred = {target.flavor, target.credential};
  xdr::encode(out, call);
}

template <typename Args>
ByteSpan encode_one(MutableByteSpan room, const CallbackTarget& target,
                    const xdr::CB_SEQUENCE4args* sequence, nfs_cb_opnum4 operation,
                    const Args& args) {
  NFSRDMA_CHECK((sequence != nullptr) == (target.minor_version > 0));
  xdr::Encoder out(room);
  encode_header(out, target, xdr::CB_COMPOUND);
  xdr::CB_COMPOUND4args head;
  head.minorversion = target.minor_version;
  head.callback_ident = target.ident;
  head.argarray_len = sequence != nullptr ? 2 : 1;
  xdr::encode(out, head);
  if (sequence != nullptr) {
    out.u32(static_cast<std::uint32_t>(nfs_cb_opnum4::OP_CB_SEQUENCE));
    xdr::encode(out, *sequence);
  }
  out.u32(static_cast<std::uint32_t>(operation));
  xdr::encode(out, args);
  return out.overflowed() ? ByteSpan() : out.bytes();
}

/// The header of a reply; kDone when results follow.
Kind read_header(xdr::Decoder& in) {
  xdr::rpc_msg reply;
  if (!xdr::decode(in, reply) || reply.mtype != xdr::msg_type::REPLY) return Kind::kUnreadable;
  if (reply.rbody.stat == xdr::reply_stat::MSG_DENIED) return Kind::kDenied;
  switch (reply.rbody.areply.stat) {
    case xdr::accept_stat::SUCCESS:
      return Kind::kDone;
    case xdr::accept_stat::PROG_UNAVAIL:
    case xdr::accept_stat::PROG_MISMATCH:
    case xdr::accept_stat::PROC_UNAVAIL:
      return Kind::kNoCallback;
    default:
      return Kind::kFailed;
  }
}

/// CB_SEQUENCE's result. False when nothing after it is to be read.
bool read_sequence(xdr::Decoder& in, const xdr::CB_SEQUENCE4args& sent, CallbackReply* out) {
  xdr::CB_SEQUENCE4res sequence;
  if (static_cast<nfs_cb_opnum4>(in.u32()) != nfs_cb_opnum4::OP_CB_SEQUENCE ||
      !xdr::decode(in, sequence)) {
    return false;
  }
  if (sequence.status != xdr::nfsstat4::NFS4_OK) {
    out->kind = Kind::kSequence;
    out->status = sequence.status;
    return false;
  }
  const xdr::CB_SEQUENCE4resok& ok = sequence.resok4;
  if (ok.csr_sessionid != sent.csa_sessionid || ok.csr_sequenceid != sent.csa_sequenceid ||
      ok.csr_slotid != sent.csa_slotid) {
    return false;
  }
  out->sequence_done = true;
  out->target_highest_slot = ok.csr_target_highest_slotid;
  return true;
}

}  // namespace

void use_sys_credential(CallbackTarget* target, std::string_view machine) {
  xdr::authsys_parms parms;
  parms.machinename = machine.substr(0, xdr::kMaxMachineName);
  std::array<std::byte, xdr::kMaxAuthBytes> room;
  xdr::Encoder out(room);
  xdr::encode(out, parms);
  target->flavor = xdr::auth_flavor::AUTH_SYS;
  target->credential.assign(out.bytes().begin(), out.bytes().end());
}

bool choose_callback_security(const xdr::EncodedArray<xdr::callback_sec_parms4>& offered,
                              CallbackTarget* target) {
  bool none = false;
  for (const xdr::callback_sec_parms4& parms : offered) {
    if (parms.cb_secflavor == xdr::cb_secflavor4::AUTH_SYS) {
      std::array<std::byte, xdr::kMaxAuthBytes> room;
      xdr::Encoder out(room);
      xdr::encode(out, parms.cbsp_sys_cred);
      if (out.overflowed()) continue;
      target->flavor = xdr::auth_flavor::AUTH_SYS;
      target->credential.assign(out.bytes().begin(), out.bytes().end());
      return true;
    }
    none = none || parms.cb_secflavor == xdr::cb_secflavor4::AUTH_NONE;
  }
  if (!none) return false;
  target->flavor = xdr::auth_flavor::AUTH_NONE;
  target->credential.clear();
  return true;
}

ByteSpan encode_cb_null(MutableByteSpan room, const CallbackTarget& target) {
  xdr::Encoder out(room);
  encode_header(out, target, xdr::CB_NULL);
  return out.overflowed() ? ByteSpan() : out.bytes();
}

ByteSpan encode_callback(MutableByteSpan room, const CallbackTarget& target,
                         const xdr::CB_SEQUENCE4args* sequence, const xdr::CB_RECALL4args& args) {
  return encode_one(room, target, sequence, nfs_cb_opnum4::OP_CB_RECALL, args);
}
ByteSpan encode_callback(MutableByteSpan room, const CallbackTarget& target,
                         const xdr::CB_SEQUENCE4args* sequence, const xdr::CB_GETATTR4args& args) {
  return encode_one(room, target, sequence, nfs_cb_opnum4::OP_CB_GETATTR, args);
}
ByteSpan encode_callback(MutableByteSpan room, const CallbackTarget& target,
                         const xdr::CB_SEQUENCE4args* sequence,
                         const xdr::CB_NOTIFY_LOCK4args& args) {
  return encode_one(room, target, sequence, nfs_cb_opnum4::OP_CB_NOTIFY_LOCK, args);
}
ByteSpan encode_callback(MutableByteSpan room, const CallbackTarget& target,
                         const xdr::CB_SEQUENCE4args* sequence,
                         const xdr::CB_RECALL_ANY4args& args) {
  return encode_one(room, target, sequence, nfs_cb_opnum4::OP_CB_RECALL_ANY, args);
}
ByteSpan encode_callback(MutableByteSpan room, const CallbackTarget& target,
                         const xdr::CB_SEQUENCE4args* sequence,
                         const xdr::CB_RECALL_SLOT4args& args) {
  return encode_one(room, target, sequence, nfs_cb_opnum4::OP_CB_RECALL_SLOT, args);
}
ByteSpan encode_callback(MutableByteSpan room, const CallbackTarget& target,
                         const xdr::CB_SEQUENCE4args* sequence, const xdr::CB_OFFLOAD4args& args) {
  return encode_one(room, target, sequence, nfs_cb_opnum4::OP_CB_OFFLOAD, args);
}

xdr::CB_SEQUENCE4args callback_sequence(const xdr::sessionid4& session,
                                        const CallbackSlots::Ticket& ticket) {
  xdr::CB_SEQUENCE4args args;
  args.csa_sessionid = session;
  args.csa_sequenceid = ticket.sequence;
  args.csa_slotid = ticket.slot;
  args.csa_highest_slotid = ticket.highest;
  return args;
}

xdr::EncodedArray<xdr::referring_call_list4> encode_referring(const ReferringCall& request,
                                                              MutableByteSpan scratch) {
  xdr::Encoder encoder(scratch);
  const xdr::referring_call4 call{request.sequence, request.slot};
  xdr::referring_call_list4 list;
  list.rcl_sessionid = request.session;
  list.rcl_referring_calls =
      xdr::encode_array(encoder, std::span<const xdr::referring_call4>(&call, 1));
  return xdr::encode_array(encoder, std::span<const xdr::referring_call_list4>(&list, 1));
}

CallbackReply read_cb_null_reply(ByteSpan reply) {
  xdr::Decoder in(reply);
  CallbackReply out;
  out.kind = read_header(in);
  if (out.kind == Kind::kDone && !in.at_end()) out.kind = Kind::kUnreadable;
  return out;
}

CallbackReply read_callback_reply(ByteSpan reply, const xdr::CB_SEQUENCE4args* sequence,
                                  nfs_cb_opnum4 operation) {
  xdr::Decoder in(reply);
  CallbackReply out;
  const Kind header = read_header(in);
  if (header != Kind::kDone) {
    out.kind = header;
    return out;
  }
  xdr::CB_COMPOUND4res head;
  if (!xdr::decode(in, head)) return out;
  if (head.resarray_len == 0) {
    if (head.status == xdr::nfsstat4::NFS4_OK) return out;
    out.kind = Kind::kCompound;
    out.status = head.status;
    return out;
  }
  if (sequence != nullptr && !read_sequence(in, *sequence, &out)) return out;
  const std::uint32_t expected = sequence != nullptr ? 2 : 1;
  if (head.resarray_len != expected) return out;
  // An operation that the client does not know is answered as OP_CB_ILLEGAL, with an error.
  const auto answered = static_cast<nfs_cb_opnum4>(in.u32());
  if (answered != operation && answered != nfs_cb_opnum4::OP_CB_ILLEGAL) return out;
  if (answered == nfs_cb_opnum4::OP_CB_GETATTR) {
    xdr::CB_GETATTR4res result;
    if (!xdr::decode(in, result)) return out;
    out.status = result.status;
    out.attributes = result.resok4.obj_attributes;
  } else {
    xdr::CB_RECALL4res result;  // a status alone, as of all others
    if (!xdr::decode(in, result)) return out;
    out.status = result.status;
  }
  const bool illegal = answered == nfs_cb_opnum4::OP_CB_ILLEGAL;
  if (!in.at_end() || out.status != head.status ||
      (illegal && out.status == xdr::nfsstat4::NFS4_OK)) {
    out.status = xdr::nfsstat4::NFS4_OK;
    return out;
  }
  out.kind = Kind::kDone;
  return out;
}

CallbackSlots::Refusal sequence_refusal(xdr::nfsstat4 status) {
  switch (status) {
    case xdr::nfsstat4::NFS4ERR_DELAY:
      return CallbackSlots::Refusal::kDelay;
    case xdr::nfsstat4::NFS4ERR_SEQ_MISORDERED:
      return CallbackSlots::Refusal::kMisordered;
    case xdr::nfsstat4::NFS4ERR_BADSLOT:
      return CallbackSlots::Refusal::kBadSlot;
    default:
      return CallbackSlots::Refusal::kOther;
  }
}

}  // namespace nfsrdma::nfs4
