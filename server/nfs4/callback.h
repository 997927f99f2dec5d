// SPDX-License-Identifier: Apache-2.0
// Callbacks of NFSv4 as RPC messages (RFC 7530 16, RFC 8881 20): one operation of the server's,
// behind CB_SEQUENCE from minor version 1 on, and what came back. The messages go out as
// BackwardCall (rpcrdma/backward_call.h) or, of minor version 0, over a connection of the server's
// own; either sets the xid, the first word.
//
// Pure: bytes in and out.
#pragma once

#include <cstdint>
#include <span>

#include "rpcrdma/base/bytes.h"
#include "server/nfs4/state/back_channel.h"
#include "xdr/nfs4_callback.h"
#include "xdr/nfs4_session.h"

namespace nfsrdma::nfs4 {

/// AUTH_SYS as root of `machine`: for minor version 0, whose clients do not say how they want to be
/// called. (Linux takes AUTH_NONE for CB_NULL alone.)
void use_sys_credential(CallbackTarget* target, std::string_view machine);
/// One of those that CREATE_SESSION or BACKCHANNEL_CTL offers: the first AUTH_SYS, else AUTH_NONE.
/// False, and nothing changed, when neither is there: the client cannot be called.
bool choose_callback_security(const xdr::EncodedArray<xdr::callback_sec_parms4>& offered,
                              CallbackTarget* target);

/// Each gives the message at the beginning of `room`; empty when that is too small. `sequence` is
/// for minor versions from 1 on, and null for 0.
ByteSpan encode_cb_null(MutableByteSpan room, const CallbackTarget& target);
ByteSpan encode_callback(MutableByteSpan room, const CallbackTarget& target,
                         const xdr::CB_SEQUENCE4args* sequence, const xdr::CB_RECALL4args& args);
ByteSpan encode_callback(MutableByteSpan room, const CallbackTarget& target,
                         const xdr::CB_SEQUENCE4args* sequence, const xdr::CB_GETATTR4args& args);
ByteSpan encode_callback(MutableByteSpan room, const CallbackTarget& target,
                         const xdr::CB_SEQUENCE4args* sequence,
                         const xdr::CB_NOTIFY_LOCK4args& args);
ByteSpan encode_callback(MutableByteSpan room, const CallbackTarget& target,
                         const xdr::CB_SEQUENCE4args* sequence,
                         const xdr::CB_RECALL_ANY4args& args);
ByteSpan encode_callback(MutableByteSpan room, const CallbackTarget& target,
                         const xdr::CB_SEQUENCE4args* sequence,
                         const xdr::CB_RECALL_SLOT4args& args);
ByteSpan encode_callback(MutableByteSpan room, const CallbackTarget& target,
                         const xdr::CB_SEQUENCE4args* sequence, const xdr::CB_OFFLOAD4args& args);

/// The CB_SEQUENCE of a ticket. Nothing is kept by the client for a retry: all that we ask may be
/// asked twice.
xdr::CB_SEQUENCE4args callback_sequence(const xdr::sessionid4& session,
                                        const CallbackSlots::Ticket& ticket);

/// For csa_referring_call_lists; refers to `scratch`.
inline constexpr std::size_t kReferringBytes = 64;
xdr::EncodedArray<xdr::referring_call_list4> encode_referring(const ReferringCall& request,
                                                              MutableByteSpan scratch);

struct CallbackReply {
  enum class Kind : std::uint8_t {
    kDone,        // `status` is the operation's
    kSequence,    // refused by CB_SEQUENCE with `status`; the operation did not run
    kCompound,    // refused as a whole with `status` (NFS4ERR_MINOR_VERS_MISMATCH, ...)
    kDenied,      // by RPC: the credential
    kNoCallback,  // by RPC: no such program, version or procedure there
    kFailed,      // by RPC: GARBAGE_ARGS, SYSTEM_ERR
    kUnreadable,  // or an answer to another callback
  };
  Kind kind = Kind::kUnreadable;
  xdr::nfsstat4 status = xdr::nfsstat4::NFS4_OK;
  /// CB_SEQUENCE succeeded: the slot is done, whatever the kind.
  bool sequence_done = false;
  std::uint32_t target_highest_slot = 0;  // with sequence_done
  xdr::fattr4 attributes{};               // of CB_GETATTR; in the reply's bytes
};

CallbackReply read_cb_null_reply(ByteSpan reply);
/// The reply to encode_callback() of `operation` with `sequence`.
CallbackReply read_callback_reply(ByteSpan reply, const xdr::CB_SEQUENCE4args* sequence,
                                  xdr::nfs_cb_opnum4 operation);
/// For CallbackSlots, of a reply of kSequence.
CallbackSlots::Refusal sequence_refusal(xdr::nfsstat4 status);

}  // namespace nfsrdma::nfs4
