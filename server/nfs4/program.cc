// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/program.h"

#include "server/nfs4/compound.h"
#include "xdr/nfs4.h"

namespace nfsrdma::nfs4 {

namespace {

constexpr std::uint32_t kNfsProgram = 100003;
constexpr std::uint32_t kMostLookedAt = 16;

Outcome null(ServerContext&, Request&, xdr::Decoder&, xdr::Encoder&) {
  return Outcome::kReply;
}

/// Operations that come to no harm by being run again: those that only look, WRITE as in NFSv3, and
/// those that the sequence ids of owners protect, which replay them exactly (owner_turn.h): but for
/// an OPEN that creates, whose replay would not wait until the file is on stable storage.
constexpr bool may_run_again(xdr::nfs_opnum4 number) {
  using enum xdr::nfs_opnum4;
  switch (number) {
    case OP_CLOSE:
    case OP_LOCK:
    case OP_LOCKU:
    case OP_OPEN:
    case OP_OPEN_CONFIRM:
    case OP_OPEN_DOWNGRADE:
    case OP_ACCESS:
    case OP_COMMIT:
    case OP_GETATTR:
    case OP_GETFH:
    case OP_LOOKUP:
    case OP_LOOKUPP:
    case OP_PUTFH:
    case OP_PUTROOTFH:
    case OP_READ:
    case OP_READDIR:
    case OP_READLINK:
    case OP_RENEW:
    case OP_RESTOREFH:
    case OP_SAVEFH:
    case OP_WRITE:
      return true;
    default:
      return false;
  }
}

/// Sessions see to exactly-once themselves; minor version 0 leaves it to the duplicate request
/// cache, but for opens and locks. What needs none does not go there: the cache costs more than
/// looking twice. A LOCK that is sent again waits for the first: its owner's sequence id could not
/// replay it yet, and NFS4ERR_DELAY would use that up (RFC 7530 9.1.7) for a lock that is granted,
/// whose stateid Linux before 6.5 asks for without end then.
Replay replay_of(xdr::Decoder args) {
  xdr::COMPOUND4args head;
  if (!xdr::decode(args, head) || head.minorversion != 0) return Replay::kIdempotent;
  if (head.argarray_len > kMostLookedAt) return Replay::kCached;
  Replay replay = Replay::kIdempotent;
  for (std::uint32_t i = 0; i < head.argarray_len; ++i) {
    const auto number = static_cast<xdr::nfs_opnum4>(args.u32());
    if (!may_run_again(number)) return Replay::kCached;
    if (number == xdr::nfs_opnum4::OP_WRITE) replay = Replay::kCachedBriefly;
    if (number == xdr::nfs_opnum4::OP_LOCK && replay == Replay::kIdempotent) {
      replay = Replay::kOneAtATime;
    }
    bool good = false;
    bool creates = false;
    xdr::with_operation(number, [&](auto row) {
      if constexpr (may_run_again(decltype(row)::number)) {
        typename decltype(row)::Args skipped;
        good = xdr::decode(args, skipped);
        if constexpr (decltype(row)::number == xdr::nfs_opnum4::OP_OPEN) {
          creates = skipped.openhow.opentype == xdr::opentype4::OPEN4_CREATE;
        }
      }
    });
    if (!good) return replay;  // it ends there
    if (creates) return Replay::kCached;
  }
  return replay;
}

// COMPOUND decides for itself, operation by operation, where it runs.
constexpr ProcedureRow kRows[] = {
    {"NULL", null, Replay::kIdempotent, Placement::kInline},
    {"COMPOUND", Compound::serve, Replay::kIdempotent, Placement::kInline, nullptr, replay_of},
};
constexpr ProgramTable kTable{kNfsProgram, xdr::kNfsV4, "NFSv4", kRows};

}  // namespace

const ProgramTable& program_table() {
  return kTable;
}

}  // namespace nfsrdma::nfs4
