// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/opened.h"

#include <algorithm>

#include "client/nfs4/convert.h"
#include "client/nfs4/stateid_check.h"

namespace nfsrdma::nfs4 {
namespace {

/// Between attempts to close what is not to stay open.
constexpr Duration kRetryFirst = std::chrono::seconds(1);
constexpr Duration kRetryLongest = std::chrono::seconds(15);
/// A server in trouble may mean something else than this CLOSE.
constexpr int kMostRefusals = 8;

}  // namespace

using xdr::nfs_opnum4;
using xdr::nfsstat4;

Opened::Opened(const xdr::OPEN4resok& result)
    : stateid(result.stateid), unconfirmed((result.rflags & xdr::OPEN4_RESULT_CONFIRM) != 0) {
  using enum xdr::open_delegation_type4;
  if (result.delegation.delegation_type == OPEN_DELEGATE_READ) {
    delegation = result.delegation.read.stateid;
  } else if (result.delegation.delegation_type == OPEN_DELEGATE_WRITE) {
    delegation = result.delegation.write.stateid;
  }
}

Task<Result<nfsstat4>> settle_open(Session& session, const OpContext& op, const FileHandle& file,
                                   OwnerSequence& owner, Opened& opened) {
  if (opened.unconfirmed) {
    auto build = [&](CompoundWriter& out) {
      out.op(nfs_opnum4::OP_PUTFH, put(file));
      if (!opened.unconfirmed) return;
      out.op(nfs_opnum4::OP_OPEN_CONFIRM,
             xdr::OPEN_CONFIRM4args{opened.stateid, owner.send(session)});
    };
    auto parse = [&](CompoundReader& in) {
      xdr::OPEN_CONFIRM4res got;
      if (!in.next(nfs_opnum4::OP_PUTFH) || !opened.unconfirmed) return;
      if (next_in_sequence(in, nfs_opnum4::OP_OPEN_CONFIRM, got, owner)) {
        opened.stateid = got.resok4.open_stateid;
        opened.unconfirmed = false;
      } else if (got.status == nfsstat4::NFS4ERR_OLD_STATEID) {
        // It was confirmed by one that was given up.
        ++opened.stateid.seqid;
        opened.unconfirmed = false;
      }
    };
    NFSRDMA_CO_TRY(Ending end, co_await call_in_sequence(session, op, {}, owner, build, parse));
    if (end.status != nfsstat4::NFS4_OK) co_return end.status;
  }
  if (opened.delegation) {
    auto build = [&](CompoundWriter& out) {
      out.op(nfs_opnum4::OP_PUTFH, put(file));
      out.op(nfs_opnum4::OP_DELEGRETURN, xdr::DELEGRETURN4args{*opened.delegation});
    };
    auto parse = [](CompoundReader& in) {
      if (in.next(nfs_opnum4::OP_PUTFH)) in.next(nfs_opnum4::OP_DELEGRETURN);
    };
    // What it says is of no use: the server takes the delegation back sooner or later.
    NFSRDMA_CO_TRY([[maybe_unused]] Ending end, co_await call(session, op, {}, build, parse));
    opened.delegation.reset();
  }
  co_return nfsstat4::NFS4_OK;
}

Task<Result<nfsstat4>> close_open(Session& session, const OpContext& op, const FileHandle& file,
                                  OwnerSequence& owner, xdr::stateid4 stateid) {
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_CLOSE, xdr::CLOSE4args{owner.send(session), stateid});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::CLOSE4res got;
    if (in.next(nfs_opnum4::OP_PUTFH)) next_in_sequence(in, nfs_opnum4::OP_CLOSE, got, owner);
  };
  NFSRDMA_CO_TRY(Ending end, co_await call_in_sequence(session, op, {}, owner, build, parse));
  co_return end.status;
}

Task<bool> close_for_good(Session& session, const OpContext& op, const FileHandle& file,
                          OwnerSequence& owner, Opened& opened) {
  int refusals = 0;
  for (Duration wait = kRetryFirst;; wait = std::min(2 * wait, kRetryLongest)) {
    Result<nfsstat4> said = co_await settle_open(session, op, file, owner, opened);
    const bool settled = said.ok() && *said == nfsstat4::NFS4_OK;
    if (settled) said = co_await close_open(session, op, file, owner, opened.stateid);
    if (said.ok() && *said == nfsstat4::NFS4_OK) co_return true;
    // What is gone with the client id, or was taken away, is not open any more. In minor version 0
    // it may as well be that we have lost count: that owner is not used again.
    const bool slots = session.minor() > 0;
    // An OPEN or OPEN_CONFIRM that nobody heard of has made it another one.
    const bool older = !slots && said.ok() && *said == nfsstat4::NFS4ERR_OLD_STATEID;
    if (older && settled) ++opened.stateid.seqid;
    if (!older && said.ok() && (slots ? state_is_gone(*said) : stateid_is_gone(*said)))
      co_return slots;
    const bool cancelled = op.cancel != nullptr && op.cancel->cancelled();
    const bool refused =
        (said.ok() || said.error().code != Errc::kTimedOut) && ++refusals == kMostRefusals;
    if (refused || cancelled) co_return false;
    co_await session.pause(wait, op.cancel);
  }
}

}  // namespace nfsrdma::nfs4
