// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/stateid_check.h"

#include <array>

#include "client/nfs4/call.h"

namespace nfsrdma::nfs4 {

using xdr::nfs_opnum4;
using xdr::nfsstat4;
using xdr::stateid4;

bool state_is_gone(nfsstat4 status) {
  switch (status) {
    case nfsstat4::NFS4ERR_BAD_STATEID:
    case nfsstat4::NFS4ERR_STALE_STATEID:
    case nfsstat4::NFS4ERR_EXPIRED:
    case nfsstat4::NFS4ERR_ADMIN_REVOKED:
    case nfsstat4::NFS4ERR_DELEG_REVOKED:
      return true;
    default:
      return false;
  }
}

bool is_revoked(nfsstat4 status) {
  return status == nfsstat4::NFS4ERR_EXPIRED || status == nfsstat4::NFS4ERR_ADMIN_REVOKED ||
         status == nfsstat4::NFS4ERR_DELEG_REVOKED;
}

bool stateid_is_gone(nfsstat4 status) {
  return state_is_gone(status) || status == nfsstat4::NFS4ERR_OLD_STATEID ||
         status == nfsstat4::NFS4ERR_BAD_SEQID;
}

Task<bool> still_valid(Session& session, const OpContext& op, stateid4 stateid) {
  // Minor version 0 has no way to ask, and nothing to be freed.
  if (session.minor() == 0) co_return true;
  std::array<std::byte, 16> room;
  xdr::Encoder encoder(room);
  stateid.seqid = 0;
  const std::array<stateid4, 1> one{stateid};
  const auto list = xdr::encode_array<stateid4>(encoder, one);
  bool tested = false;
  nfsstat4 found = nfsstat4::NFS4_OK;
  auto test = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_TEST_STATEID, xdr::TEST_STATEID4args{list});
  };
  auto read = [&](CompoundReader& in) {
    xdr::TEST_STATEID4res got;
    if (!in.next(nfs_opnum4::OP_TEST_STATEID, got)) return;
    for (const nfsstat4 status : got.resok4.tsr_status_codes) {
      found = status;
      tested = true;
    }
  };
  Result<Ending> end = co_await call(session, op, {}, test, read);
  if (!end.ok() || !tested || !stateid_is_gone(found)) co_return true;
  co_await free_stateid(session, op, stateid);
  co_return false;
}

Task<void> free_stateid(Session& session, const OpContext& op, stateid4 stateid) {
  stateid.seqid = 0;
  auto free = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_FREE_STATEID, xdr::FREE_STATEID4args{stateid});
  };
  auto ignore = [](CompoundReader& in) { static_cast<void>(in); };
  [[maybe_unused]] Result<Ending> freed = co_await call(session, op, {.once = true}, free, ignore);
}

}  // namespace nfsrdma::nfs4
