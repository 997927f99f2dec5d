// SPDX-License-Identifier: Apache-2.0
// Nfs4Operations: READ, WRITE and COMMIT.
#include "client/nfs4/attributes_result.h"
#include "client/nfs4/call.h"
#include "client/nfs4/operations.h"
#include "client/nfs4/stateid_check.h"

namespace nfsrdma {

using nfs4::call;
using nfs4::CallShape;
using nfs4::CompoundReader;
using nfs4::CompoundWriter;
using nfs4::Ending;
using nfs4::kAttributes;
using nfs4::next_attributes;
using nfs4::put;
using nfs4::status_error;
using xdr::nfs_opnum4;
using xdr::nfsstat4;

xdr::stateid4 Nfs4Operations::stateid_of(const OpContext& op, const FileHandle& file,
                                         std::uint32_t access) const {
  if (op.right != nullptr) return {op.right->seqid, op.right->other};
  return stateid_now(file, access, op.identity);
}

/// By the right that it was given: whoever gave it is to look at what the server says. That goes
/// for "later", too: meanwhile a lock may be lost, and the right with it.
bool is_for_the_giver(nfsstat4 status) {
  return nfs4::stateid_is_gone(status) || nfs4::remedy_of_minor_0(status) == nfs4::Remedy::kLater;
}

/// Of a READ's COMPOUND without the data: 216 bytes and the names of owner and group. Few enough to
/// fit, with the header of a Write chunk, into the smallest inline threshold: the data goes to its
/// place by RDMA Write whatever the thresholds are.
constexpr std::size_t kReadResults = 896;

Task<Result<ReadResult>> Nfs4Operations::read_once(const OpContext& op, const FileHandle& file,
                                                   std::uint64_t offset, MutableByteSpan into) {
  ReadResult result;
  bool fits = true;
  xdr::stateid4 stateid;
  // READ comes last: that the data ends the reply lets both transports put it in its place.
  auto build = [&](CompoundWriter& out) {
    stateid = stateid_of(op, file, xdr::OPEN4_SHARE_ACCESS_READ);
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
    out.op(nfs_opnum4::OP_READ,
           xdr::READ4args{stateid, offset, static_cast<std::uint32_t>(into.size())});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::READ4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH)) return;
    next_attributes(in, names_, &result.attributes);
    if (!in.next(nfs_opnum4::OP_READ, got)) return;
    const ByteSpan data = got.resok4.data.bytes;
    fits = data.size() <= into.size();
    if (!fits) return;
    // In line: the reply's bytes go away. In a chunk or read by the TCP transport: already there.
    if (!data.empty() && data.data() != into.data()) {
      std::memcpy(into.data(), data.data(), data.size());
    }
    result.count = data.size();
    result.eof = got.resok4.eof;
  };
  const CallShape shape{
      .sink = into, .max_results = kReadResults, .patient = op.right == nullptr, .data = true};
  Ending end;
  do {
    NFSRDMA_CO_CHECK_OK(locks_.usable(file));
    NFSRDMA_CO_TRY(end, co_await call(session_, op, shape, build, parse));
  } while (op.right == nullptr && once_more(file, stateid, end.status));
  NFSRDMA_CO_CHECK_OK(locks_.usable(file));
  if (op.right != nullptr && is_for_the_giver(end.status)) co_return kRightGone;
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "READ");
  if (!fits) co_return Error{Errc::kProtocol, EIO, "READ: wrong length in the reply"};
  co_return result;
}

Task<Result<WriteResult>> Nfs4Operations::write_once(const OpContext& op, const FileHandle& file,
                                                     std::uint64_t offset, ByteSpan data,
                                                     Stability stability) {
  WriteResult result;
  xdr::stateid4 stateid;
  auto build = [&](CompoundWriter& out) {
    stateid = stateid_of(op, file, xdr::OPEN4_SHARE_ACCESS_WRITE);
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_WRITE,
           xdr::WRITE4args{stateid, offset, nfs4::to_wire(stability), {data}});
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::WRITE4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_WRITE, got)) return;
    result.count = got.resok4.count;
    result.stability = nfs4::from_wire(got.resok4.committed);
    result.verifier = load_be64(got.resok4.writeverf.data());
    next_attributes(in, names_, &result.wcc.after);
  };
  const CallShape shape{.patient = op.right == nullptr, .data = true};
  Ending end;
  do {
    NFSRDMA_CO_CHECK_OK(locks_.usable(file));
    NFSRDMA_CO_TRY(end, co_await call(session_, op, shape, build, parse));
  } while (op.right == nullptr && once_more(file, stateid, end.status));
  NFSRDMA_CO_CHECK_OK(locks_.usable(file));
  if (op.right != nullptr && is_for_the_giver(end.status)) co_return kRightGone;
  // Data may have been taken although what came behind it failed; it is written again then.
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "WRITE");
  if (result.count > data.size() || (result.count == 0 && !data.empty())) {
    co_return Error{Errc::kProtocol, EIO, "WRITE: wrong count in the reply"};
  }
  co_return result;
}

Task<Result<CommitResult>> Nfs4Operations::commit(const OpContext& op, const FileHandle& file,
                                                  std::uint64_t offset, std::uint32_t count) {
  CommitResult result;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_COMMIT, xdr::COMMIT4args{offset, count});
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::COMMIT4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_COMMIT, got)) return;
    result.verifier = load_be64(got.resok4.writeverf.data());
    next_attributes(in, names_, &result.wcc.after);
  };
  NFSRDMA_CO_TRY(Ending end, co_await call(session_, op, {.data = true}, build, parse));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "COMMIT");
  co_return result;
}

}  // namespace nfsrdma
