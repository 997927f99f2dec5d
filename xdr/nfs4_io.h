// SPDX-License-Identifier: Apache-2.0
// NFS version 4: READ, WRITE and COMMIT. The data of READ and WRITE is DDP-eligible (RFC 8267,
// section 5.1): a Payload, by reference. That of READ_PLUS is not, see nfs4_space.h.
#pragma once

#include <cstdint>

#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

struct READ4args {
  stateid4 stateid{};
  std::uint64_t offset = 0;
  std::uint32_t count = 0;
};
template <typename A, Is<READ4args> V>
void visit(A& ar, V& v) {
  ar("stateid", v.stateid);
  ar("offset", v.offset);
  ar("count", v.count);
}

struct READ4resok {
  bool eof = false;
  Payload data{};
};
template <typename A, Is<READ4resok> V>
void visit(A& ar, V& v) {
  ar("eof", v.eof);
  ar.payload("data", v.data, kNfs4MaxData);
}

using READ4res = Nfs4Result<READ4resok>;

struct WRITE4args {
  stateid4 stateid{};
  std::uint64_t offset = 0;
  stable_how4 stable = stable_how4::UNSTABLE4;
  Payload data{};
};
template <typename A, Is<WRITE4args> V>
void visit(A& ar, V& v) {
  ar("stateid", v.stateid);
  ar("offset", v.offset);
  ar("stable", v.stable);
  ar.payload("data", v.data, kNfs4MaxData);
}

struct WRITE4resok {
  std::uint32_t count = 0;
  stable_how4 committed = stable_how4::UNSTABLE4;
  verifier4 writeverf{};
};
template <typename A, Is<WRITE4resok> V>
void visit(A& ar, V& v) {
  ar("count", v.count);
  ar("committed", v.committed);
  ar("writeverf", v.writeverf);
}

using WRITE4res = Nfs4Result<WRITE4resok>;

struct COMMIT4args {
  std::uint64_t offset = 0;
  std::uint32_t count = 0;
};
template <typename A, Is<COMMIT4args> V>
void visit(A& ar, V& v) {
  ar("offset", v.offset);
  ar("count", v.count);
}

struct COMMIT4resok {
  verifier4 writeverf{};
};
template <typename A, Is<COMMIT4resok> V>
void visit(A& ar, V& v) {
  ar("writeverf", v.writeverf);
}

using COMMIT4res = Nfs4Result<COMMIT4resok>;

}  // namespace nfsrdma::xdr
