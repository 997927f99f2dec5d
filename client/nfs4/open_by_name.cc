// SPDX-License-Identifier: Apache-2.0
// FileLocks: OPEN in minor version 0, which has no claim by handle outside of the time of grace
// (RFC 7530, 16.16). The place where the file was found last has to do. Others may have given the
// name to another file since then, which must not be locked in its stead: such an OPEN is closed
// again. Without a name there is no lock.
#include "client/nfs4/convert.h"
#include "client/nfs4/file_locks.h"

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfs_opnum4;
using xdr::nfsstat4;

/// Names of the open-owner that are tried, before something must be wrong.
constexpr int kOwners = 3;

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
  if (!file.place) co_return kNoName;
  const FilePlace place = *file.place;
  std::optional<Opened> opened;
  FileHandle found;
  nfsstat4 status = nfsstat4::NFS4ERR_BAD_SEQID;
  for (int tried = 0; status == nfsstat4::NFS4ERR_BAD_SEQID && tried < kOwners; ++tried) {
    if (tried > 0) lose(file, open);
    const OwnerBytes owner(open.owner);
    auto build = [&](CompoundWriter& out) {
      xdr::OPEN4args args;
      args.seqid = open.sequence.send(session_);
      args.share_access = wanted;
      args.share_deny = xdr::OPEN4_SHARE_DENY_NONE;
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
      if (!in.next(nfs_opnum4::OP_PUTFH)) return;
      if (!next_in_sequence(in, nfs_opnum4::OP_OPEN, got, open.sequence)) return;
      opened.emplace(got.resok4);
      if (in.next(nfs_opnum4::OP_GETFH, object)) found = FileHandle(object.resok4.object.data);
    };
    Result<Ending> end =
        co_await call_in_sequence(session_, op, {.max_results = 2048}, open.sequence, build, parse);
    open.doubtful = end.ok() ? 0 : wanted;
    if (!end.ok()) co_return end.error();
    status = end->status;
  }
  if (!opened) {
    if (leads_nowhere(status)) co_return kNoName;
    co_return status_error(status, "OPEN");
  }
  if (found.empty()) {
    // It is open, and cannot be closed.
    lose(file, open);
    co_return Error{Errc::kProtocol, EIO, "OPEN: empty file handle"};
  }
  if (found != file.handle) {
    file.place.reset();
    if (open.stateid) {
      // The owner has the right file open as well, and is not to be given another name.
      NFSRDMA_CO_CHECK_OK(co_await settle_open(session_, op, found, open.sequence, *opened));
      Result<void> closed =
          co_await close_open(session_, op, found, open.sequence, opened->stateid);
      if (!closed.ok()) co_return closed.error();
    } else {
      tasks_.spawn(close_stray(op.identity, found, *opened, open.sequence));
      rename(open);
    }
    co_return kNoName;
  }
  Result<void> settled = co_await settle_open(session_, op, found, open.sequence, *opened);
  // Without an answer, too: it is to be closed.
  open.stateid = opened->stateid;
  open.access = wanted;
  co_return settled;
}

Task<void> FileLocks::close_stray(AuthSys identity, FileHandle file, Opened opened,
                                  OwnerSequence sequence) {
  OpContext op;
  op.identity = identity;
  op.cancel = &stopping_;
  co_await close_for_good(session_, op, file, sequence, opened);
}

}  // namespace nfsrdma::nfs4
