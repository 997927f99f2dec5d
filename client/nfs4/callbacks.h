// SPDX-License-Identifier: Apache-2.0
// Callbacks: what the server calls this client for (RFC 8881, sections 2.10 and 20; RFC 7862, 16),
// on connections of the client's own (RFC 8167). An RPC call comes in, the reply goes out at once:
// whatever takes longer is begun here and done elsewhere.
//
// Each slot of the back channel keeps its last reply; a call that comes again is answered from
// there, and done once.
//
// Minor version 0 has no back channel: the server calls over a connection of its own, which anybody
// can make (RFC 7530, 10.2.1 and 15.1). So the program's number and callback_ident are chosen at
// random, and told to the server alone; there are two operations, and running them twice does no
// harm.
//
// On the session's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "client/nfs_types.h"
#include "rpcrdma/base/bytes.h"
#include "xdr/decoder.h"
#include "xdr/encoder.h"
#include "xdr/nfs4.h"

namespace nfsrdma::nfs4 {

/// Who is called. The transport is on the stack: nothing of it may be destroyed.
class CallbackHandler {
 public:
  virtual ~CallbackHandler() = default;
  /// CB_NOTIFY_LOCK: a lock on `file` for which one of us waits may be granted now.
  virtual void lock_may_be_free(const xdr::nfs_fh4& file) = 0;
  /// CB_RECALL: what to say to it. The delegation is given back later.
  virtual xdr::nfsstat4 recall(const xdr::stateid4& stateid, const xdr::nfs_fh4& file) = 0;
  /// CB_GETATTR of a file with a write delegation; none: there is no such file here.
  virtual std::optional<HeldAttributes> held_attributes(const xdr::nfs_fh4& file) = 0;
  /// CB_RECALL_ANY: no more than `most` delegations are to be kept.
  virtual void keep_delegations(std::uint32_t most) = 0;
  /// CB_RECALL_SLOT: no slot above `highest` is to be used any more.
  virtual void give_up_slots(std::uint32_t highest) = 0;
};

class Callbacks {
 public:
  /// Of the program that CREATE_SESSION names: any number of our own will do.
  static constexpr std::uint32_t kProgram = 0x40000000;
  /// Programs from kProgram on that are anybody's own (RFC 5531, section 8.1).
  static constexpr std::uint32_t kPrograms = 0x20000000;
  /// Calls at once.
  static constexpr std::uint32_t kSlots = 2;
  /// Operations of one call, CB_SEQUENCE included.
  static constexpr std::uint32_t kOperations = 8;

  explicit Callbacks(CallbackHandler& handler) : handler_(handler) {}

  /// `slots`: what the server makes of kSlots.
  void begin_session(std::uint32_t minor, const xdr::sessionid4& session, std::uint32_t slots);
  /// Minor version 0: what SETCLIENTID names.
  void begin_client_id(std::uint32_t program, std::uint32_t ident);
  /// Encodes the reply to `call`, an RPC message, into `room`; its bytes. 0: that was no call.
  std::size_t answer(ByteSpan call, MutableByteSpan room);
  /// Operations that were done, but for CB_SEQUENCE; for people.
  std::uint64_t done() const { return done_; }
  /// Calls of our program, CB_NULL included.
  std::uint64_t called() const { return called_; }

 private:
  struct Slot {
    std::uint32_t sequence = 0;      // of the last call
    std::vector<std::byte> results;  // of it, from the status on
  };
  /// One CB_COMPOUND being answered.
  struct Compound {
    xdr::Decoder& in;
    xdr::Encoder& out;
    std::size_t begin;  // in `out`
    xdr::nfsstat4 status = xdr::nfsstat4::NFS4_OK;
    Slot* slot = nullptr;  // since CB_SEQUENCE
    bool replayed = false;
  };

  /// `head` is what the COMPOUND begins with.
  void compound(const xdr::CB_COMPOUND4args& head, xdr::Decoder& in, xdr::Encoder& out);
  static bool belongs_to_minor_0(xdr::nfs_cb_opnum4 number);
  void operation(Compound& compound);
  void sequence(Compound& compound);
  /// Done, or refused: the status.
  template <typename Args>
  xdr::nfsstat4 carry_out(xdr::nfs_cb_opnum4 number, const Args& args);
  void getattr(Compound& compound, const xdr::CB_GETATTR4args& args);

  CallbackHandler& handler_;
  std::uint32_t minor_ = 0;
  std::uint32_t program_ = kProgram;
  std::uint32_t ident_ = 0;  // minor version 0
  xdr::sessionid4 session_{};
  std::vector<Slot> slots_;
  std::uint64_t called_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace nfsrdma::nfs4
