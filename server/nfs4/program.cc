// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/program.h"

#include "server/nfs4/compound.h"

namespace nfsrdma::nfs4 {

namespace {

constexpr std::uint32_t kNfsProgram = 100003;

Outcome null(ServerContext&, Request&, xdr::Decoder&, xdr::Encoder&) {
  return Outcome::kReply;
}

/// Sessions see to exactly-once themselves; minor version 0 leaves it to the duplicate request
/// cache, but for opens and locks.
Replay replay_of(xdr::Decoder args) {
  xdr::COMPOUND4args head;
  return xdr::decode(args, head) && head.minorversion == 0 ? Replay::kCached : Replay::kIdempotent;
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
