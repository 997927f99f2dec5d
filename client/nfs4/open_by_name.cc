// SPDX-License-Identifier: Apache-2.0
// FileLocks: OPEN in minor version 0, which has no claim by handle outside of the time of grace
// (RFC 7530, 16.16). The place where the file was found last has to do. Others may have given the
// name to another file since then, which must not be locked in its stead: such an OPEN is closed
// again. Without a name there is no lock.
#include "client/nfs4/convert.h"
#include "client/nfs4/file_locks.h"
#include "client/nfs4/stateid_check.h"

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfs_opnum4;
using xdr::nfsstat4;
using xdr::stateid4;

/// Before something must be wrong. Most often it is another name of the open-owner that is tried.
constexpr int kTries = 3;

const Error kNoName{Errc::kSystem, ENOLCK,
                    "the file is not found any more where it was: NFSv4.0 cannot open it"};

/// Of the name, not of the file that is to be opened.
bool leads_nowhere(nfsstat4 status) {
  switch (status) {
    case nfsstat4::NFS4ERR_NOENT:
    case nfsstat4::NFS4ERR_NOTDIR:
    case nfsstat4::NFS4ERR_ISDIR:
    case nfsstat4::NFS4ERR_SYMLINK:
    case nfsstat4::NFS4ERR_STALE:
      return true;
    default:
      return false;
  }
}

}  // namespace

Task<Result<void>> FileLocks::open_by_name(File& file, const OpContext& op, Open& open,
                                           std::uint32_t wanted) {
  for (int tried = 0; tried < kTries; ++tried) {
    NFSRDMA_CO_TRY(const bool opened, co_await try_by_name(file, op, open, wanted));
    if (opened) co_return Result<void>();
  }
  co_return status_error(nfsstat4::NFS4ERR_BAD_SEQID, "OPEN");
}

Task<Result<bool>> FileLocks::try_by_name(File& file, const OpContext& op, Open& open,
                                          std::uint32_t wanted) {
  if (!file.place) co_return kNoName;
  const FilePlace place = *file.place;
  std::optional<Opened> opened;
  FileHandle found;
  bool reached = false;
  const OwnerBytes owner(open.owner);
  auto build = [&](CompoundWriter& out) {
    xdr::OPEN4args args;
    args.seqid = open.sequence.send(session_);
    args.share_access = wanted;
    args.share_deny = share_deny(open.deny);
    args.owner = owner.of(session_);
    args.claim.claim = xdr::open_claim_type4::CLAIM_NULL;
    args.claim.file = place.name;
    out.op(nfs_opnum4::OP_PUTFH, put(place.directory));
    out.op(nfs_opnum4::OP_OPEN, args);
    out.op(nfs_opnum4::OP_GETFH);
  };
  auto parse = [&](CompoundReader& in) {
    xdr::OPEN4res got;
    xdr::GETFH4res object;
    reached = in.next(nfs_opnum4::OP_PUTFH);
    if (!reached) return;
    if (!next_in_sequence(in, nfs_opnum4::OP_OPEN, got, open.sequence)) return;
    opened.emplace(got.resok4);
    if (in.next(nfs_opnum4::OP_GETFH, object)) found = FileHandle(object.resok4.object.data);
  };
  Result<Ending> end =
      co_await call_in_sequence(session_, op, {.max_results = 2048}, open.sequence, build, parse);
  // What a second run says says nothing of the first, unless it came to the OPEN.
  open.doubtful = end.ok() && (reached || !end->resent) ? 0 : wanted;
  if (!end.ok()) co_return end.error();
  if (!opened) {
    if (leads_nowhere(end->status)) co_return kNoName;
    if (end->status != nfsstat4::NFS4ERR_BAD_SEQID) co_return status_error(end->status, "OPEN");
    lose(file, open);
    co_return false;
  }
  if (found.empty()) {
    // It is open, and cannot be closed.
    lose(file, open);
    co_return Error{Errc::kProtocol, EIO, "OPEN: empty file handle"};
  }
  if (found != file.handle) co_return co_await met_another(file, op, open, found, *opened);
  const std::optional<stateid4> before = open.stateid;
  Result<nfsstat4> said = co_await settle_open(session_, op, found, open.sequence, *opened);
  // The server has restarted in between, or has not waited for the confirmation.
  if (said.ok() && state_is_gone(*said)) co_return false;
  // What the owner had before was reclaimed meanwhile, or lost: this one is gone with it.
  const bool gone = before && !(open.stateid && open.stateid->other == before->other);
  if (gone) co_return false;
  // Without an answer, too: it is to be closed.
  open.stateid = opened->stateid;
  open.access = wanted;
  if (said.ok() && *said == nfsstat4::NFS4_OK) co_return true;
  open.unsettled = opened;
  if (!said.ok()) co_return said.error();
  co_return status_error(*said, "OPEN_CONFIRM");
}

Task<Error> FileLocks::met_another(File& file, const OpContext& op, Open& open, FileHandle found,
                                   Opened opened) {
  file.place.reset();
  if (!open.stateid) {
    tasks_.spawn(close_stray(op.identity, found, opened, open.sequence));
    rename(open);
    co_return kNoName;
  }
  // The owner has the right file open as well, and is not to be given another name.
  Result<nfsstat4> said = co_await settle_open(session_, op, found, open.sequence, opened);
  if (said.ok() && *said == nfsstat4::NFS4_OK)
    said = co_await close_open(session_, op, found, open.sequence, opened.stateid);
  co_return said.ok() ? kNoName : said.error();
}

Task<Result<nfsstat4>> FileLocks::settle(File& file, const OpContext& op, Open& open) {
  const stateid4 was = *open.stateid;
  Opened opened = *open.unsettled;
  Result<nfsstat4> said = co_await settle_open(session_, op, file.handle, open.sequence, opened);
  // Reclaimed meanwhile, or lost.
  if (!open.unsettled || !open.stateid || open.stateid->other != was.other) co_return said;
  if (said.ok() && state_is_gone(*said)) {
    lose(file, open);
    co_return said;
  }
  open.stateid = opened.stateid;
  open.unsettled = opened;
  if (said.ok() && *said == nfsstat4::NFS4_OK) open.unsettled.reset();
  co_return said;
}

Task<void> FileLocks::close_stray(AuthSys identity, FileHandle file, Opened opened,
                                  OwnerSequence sequence) {
  OpContext op;
  op.identity = identity;
  op.cancel = &stopping_;
  co_await close_for_good(session_, op, file, sequence, opened);
}

}  // namespace nfsrdma::nfs4
