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

/// Operations that only look, whose second run does no harm.
constexpr bool only_looks(xdr::nfs_opnum4 number) {
  using enum xdr::nfs_opnum4;
  switch (number) {
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
      return true;
    default:
      return false;
  }
}

/// Sessions see to exactly-once themselves; minor version 0 leaves it to the duplicate request
/// cache, but for opens and locks. What only looks does not go there: it would cost more than
/// looking twice.
Replay replay_of(xdr::Decoder args) {
  xdr::COMPOUND4args head;
  if (!xdr::decode(args, head) || head.minorversion != 0) return Replay::kIdempotent;
  if (head.argarray_len > kMostLookedAt) return Replay::kCached;
  for (std::uint32_t i = 0; i < head.argarray_len; ++i) {
    const auto number = static_cast<xdr::nfs_opnum4>(args.u32());
    if (!only_looks(number)) return Replay::kCached;
    bool good = false;
    xdr::with_operation(number, [&](auto row) {
      if constexpr (only_looks(decltype(row)::number)) {
        typename decltype(row)::Args skipped;
        good = xdr::decode(args, skipped);
      }
    });
    if (!good) return Replay::kIdempotent;  // it ends there
  }
  return Replay::kIdempotent;
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
