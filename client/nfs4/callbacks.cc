// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/callbacks.h"

#include <algorithm>
#include <type_traits>

#include "client/nfs4/convert.h"
#include "xdr/rpc.h"

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfs_cb_opnum4;
using xdr::nfsstat4;

/// Tags come back, as long as they leave room for results.
constexpr std::size_t kLongestTag = 128;

template <typename Res>
void put(xdr::Encoder& out, nfs_cb_opnum4 number, const Res& result) {
  out.u32(static_cast<std::uint32_t>(number));
  xdr::encode(out, result);
}

void put_status(xdr::Encoder& out, nfs_cb_opnum4 number, nfsstat4 status) {
  put(out, number, xdr::Nfs4Result<xdr::Void>{status, {}});
}

/// To what concerns something that this client never asks for.
nfsstat4 refusal_of(nfs_cb_opnum4 number) {
  switch (number) {
    case nfs_cb_opnum4::OP_CB_NOTIFY:
      return nfsstat4::NFS4ERR_BADHANDLE;  // no delegation of a directory
    case nfs_cb_opnum4::OP_CB_LAYOUTRECALL:
      return nfsstat4::NFS4ERR_NOMATCHING_LAYOUT;
    case nfs_cb_opnum4::OP_CB_PUSH_DELEG:
      return nfsstat4::NFS4ERR_REJECT_DELEG;
    case nfs_cb_opnum4::OP_CB_OFFLOAD:
      return nfsstat4::NFS4ERR_BAD_STATEID;
    default:
      return nfsstat4::NFS4ERR_NOTSUPP;
  }
}

}  // namespace

void Callbacks::begin_session(std::uint32_t minor, const xdr::sessionid4& session,
                              std::uint32_t slots) {
  minor_ = minor;
  program_ = kProgram;
  session_ = session;
  slots_.assign(std::clamp(slots, 1u, kSlots), {});
}

void Callbacks::begin_client_id(std::uint32_t program, std::uint32_t ident) {
  minor_ = 0;
  program_ = program;
  ident_ = ident;
  slots_.clear();
}

std::size_t Callbacks::answer(ByteSpan message, MutableByteSpan room) {
  xdr::Decoder in(message);
  xdr::Encoder out(room);
  xdr::rpc_msg call;
  const bool readable = xdr::decode(in, call);
  if (message.size() < 8 || call.mtype != xdr::msg_type::CALL) return 0;
  using enum xdr::accept_stat;
  if (!readable) {
    xdr::encode(out, xdr::accepted(call.xid, GARBAGE_ARGS));
  } else if (call.cbody.rpcvers != xdr::kRpcVersion) {
    xdr::encode(out, xdr::denied_version(call.xid));
  } else if (call.cbody.prog != program_) {
    xdr::encode(out, xdr::accepted(call.xid, PROG_UNAVAIL));
  } else if (call.cbody.vers != xdr::kNfs4CallbackVersion) {
    xdr::encode(out, xdr::accepted(call.xid, PROG_MISMATCH,
                                   {xdr::kNfs4CallbackVersion, xdr::kNfs4CallbackVersion}));
  } else if (call.cbody.proc == xdr::CB_NULL) {
    ++called_;
    xdr::encode(out, xdr::accepted(call.xid, SUCCESS));
  } else if (call.cbody.proc != xdr::CB_COMPOUND) {
    xdr::encode(out, xdr::accepted(call.xid, PROC_UNAVAIL));
  } else if (xdr::CB_COMPOUND4args head; !xdr::decode(in, head)) {
    xdr::encode(out, xdr::accepted(call.xid, SUCCESS));
    xdr::encode(out, xdr::CB_COMPOUND4res{nfsstat4::NFS4ERR_BADXDR, {}, 0});
  } else if (minor_ == 0 && head.callback_ident != ident_) {
    // Not who was told.
    xdr::encode(out, xdr::denied_auth(call.xid, xdr::auth_stat::AUTH_BADCRED));
  } else {
    ++called_;
    xdr::encode(out, xdr::accepted(call.xid, SUCCESS));
    compound(head, in, out);
  }
  return out.overflowed() ? 0 : out.size();
}

void Callbacks::compound(const xdr::CB_COMPOUND4args& head, xdr::Decoder& in, xdr::Encoder& out) {
  const std::size_t begin = out.mark();
  const auto tag = head.tag.size() > kLongestTag ? decltype(head.tag){} : head.tag;
  const std::size_t status_mark = out.mark();
  xdr::encode(out, xdr::CB_COMPOUND4res{nfsstat4::NFS4_OK, tag, 0});
  const std::size_t count_mark = out.mark() - 4;  // the last word of it
  Compound now{in, out, begin};
  std::uint32_t count = 0;
  if (head.minorversion != minor_) {
    now.status = nfsstat4::NFS4ERR_MINOR_VERS_MISMATCH;
  } else if (head.argarray_len > kOperations) {
    now.status = nfsstat4::NFS4ERR_TOO_MANY_OPS;
  }
  while (now.status == nfsstat4::NFS4_OK && count < head.argarray_len && !now.replayed) {
    operation(now);
    ++count;
  }
  if (now.replayed) return;
  out.patch_u32(status_mark, static_cast<std::uint32_t>(now.status));
  out.patch_u32(count_mark, count);
  if (now.slot != nullptr) {
    const ByteSpan results = out.bytes().subspan(begin);
    now.slot->results.assign(results.begin(), results.end());
  }
}

bool Callbacks::belongs_to_minor_0(nfs_cb_opnum4 number) {
  return number == nfs_cb_opnum4::OP_CB_GETATTR || number == nfs_cb_opnum4::OP_CB_RECALL;
}

void Callbacks::operation(Compound& now) {
  const auto number = static_cast<nfs_cb_opnum4>(now.in.u32());
  if (minor_ > 0 && number == nfs_cb_opnum4::OP_CB_SEQUENCE) {
    sequence(now);
    return;
  }
  if (minor_ > 0 && now.slot == nullptr) {
    now.status = nfsstat4::NFS4ERR_OP_NOT_IN_SESSION;
    put_status(now.out, number, now.status);
    return;
  }
  const bool exists = minor_ > 0 || belongs_to_minor_0(number);
  const bool known = exists && xdr::with_operation(number, [&](auto row) {
                       using Args = typename decltype(row)::Args;
                       Args args;
                       const bool readable = xdr::decode(now.in, args);
                       if constexpr (std::is_same_v<Args, xdr::CB_GETATTR4args>) {
                         if (readable) return getattr(now, args);
                       }
                       now.status = readable ? carry_out(number, args) : nfsstat4::NFS4ERR_BADXDR;
                       put_status(now.out, number, now.status);
                     });
  if (known) return;
  now.status = nfsstat4::NFS4ERR_OP_ILLEGAL;
  put_status(now.out, nfs_cb_opnum4::OP_CB_ILLEGAL, now.status);
}

template <typename Args>
nfsstat4 Callbacks::carry_out(nfs_cb_opnum4 number, const Args& args) {
  if constexpr (std::is_same_v<Args, xdr::CB_NOTIFY_LOCK4args>) {
    ++done_;
    handler_.lock_may_be_free(args.cnla_fh);
    return nfsstat4::NFS4_OK;
  } else if constexpr (std::is_same_v<Args, xdr::CB_RECALL_SLOT4args>) {
    ++done_;
    handler_.give_up_slots(args.rsa_target_highest_slotid);
    return nfsstat4::NFS4_OK;
  } else if constexpr (std::is_same_v<Args, xdr::CB_RECALL4args>) {
    const nfsstat4 status = handler_.recall(args.stateid, args.fh);
    if (status == nfsstat4::NFS4_OK) ++done_;
    return status;
  } else if constexpr (std::is_same_v<Args, xdr::CB_RECALL_ANY4args>) {
    // CB_RECALLABLE_OBJ_AVAIL has the same arguments, and was not asked for.
    if (number != nfs_cb_opnum4::OP_CB_RECALL_ANY) return refusal_of(number);
    ++done_;
    const bool files = args.craa_type_mask.has(xdr::RCA4_TYPE_MASK_RDATA_DLG) ||
                       args.craa_type_mask.has(xdr::RCA4_TYPE_MASK_WDATA_DLG);
    if (files) handler_.keep_delegations(args.craa_objects_to_keep);
    return nfsstat4::NFS4_OK;
  } else if constexpr (std::is_same_v<Args, xdr::Void>) {
    return nfsstat4::NFS4ERR_OP_ILLEGAL;
  } else {
    return refusal_of(number);
  }
}

void Callbacks::getattr(Compound& now, const xdr::CB_GETATTR4args& args) {
  using xdr::fattr4_number;
  const std::optional<HeldAttributes> held = handler_.held_attributes(args.fh);
  if (!held) {
    now.status = nfsstat4::NFS4ERR_BADHANDLE;
    put_status(now.out, nfs_cb_opnum4::OP_CB_GETATTR, now.status);
    return;
  }
  ++done_;
  // Of all attributes only these two can be another here (RFC 8881, 20.1.3).
  xdr::FileAttributes4 values;
  values.size = held->size;
  values.change = held->change;
  for (const fattr4_number one : {fattr4_number::FATTR4_SIZE, fattr4_number::FATTR4_CHANGE}) {
    if (args.attr_request.has(one)) values.attrmask.set(one);
  }
  const EncodedAttributes encoded(values);
  xdr::CB_GETATTR4res result;
  result.resok4.obj_attributes = encoded.wire();
  put(now.out, nfs_cb_opnum4::OP_CB_GETATTR, result);
}

void Callbacks::sequence(Compound& now) {
  xdr::CB_SEQUENCE4args args;
  xdr::CB_SEQUENCE4res result;
  const bool readable = xdr::decode(now.in, args);
  Slot* slot = readable && args.csa_slotid < slots_.size() ? &slots_[args.csa_slotid] : nullptr;
  if (now.slot != nullptr) {
    result.status = nfsstat4::NFS4ERR_SEQUENCE_POS;
  } else if (!readable) {
    result.status = nfsstat4::NFS4ERR_BADXDR;
  } else if (slots_.empty() || args.csa_sessionid != session_) {
    result.status = nfsstat4::NFS4ERR_BADSESSION;
  } else if (slot == nullptr) {
    result.status = nfsstat4::NFS4ERR_BADSLOT;
  } else if (args.csa_highest_slotid >= slots_.size()) {
    result.status = nfsstat4::NFS4ERR_BAD_HIGH_SLOT;
  } else if (args.csa_sequenceid == slot->sequence && !slot->results.empty()) {
    // The whole reply once more, in place of what has been encoded of this one.
    now.out.rewind(now.begin);
    now.out.fixed_opaque(slot->results);
    now.replayed = true;
    return;
  } else if (args.csa_sequenceid != slot->sequence + 1) {
    result.status = nfsstat4::NFS4ERR_SEQ_MISORDERED;
  } else {
    slot->sequence = args.csa_sequenceid;
    slot->results.clear();
    now.slot = slot;
    const auto highest = static_cast<std::uint32_t>(slots_.size() - 1);
    result.resok4 = {args.csa_sessionid, args.csa_sequenceid, args.csa_slotid, highest, highest};
  }
  now.status = result.status;
  put(now.out, nfs_cb_opnum4::OP_CB_SEQUENCE, result);
}

}  // namespace nfsrdma::nfs4
