// SPDX-License-Identifier: Apache-2.0
// Nfs4Operations: operations on one object, without its data.
#include "client/nfs4/attributes_result.h"
#include "client/nfs4/call.h"
#include "client/nfs4/operations.h"

namespace nfsrdma {

using nfs4::call;
using nfs4::CompoundReader;
using nfs4::CompoundWriter;
using nfs4::Ending;
using nfs4::kAttributes;
using nfs4::next_attributes;
using nfs4::put;
using nfs4::status_error;
using xdr::fattr4_number;
using xdr::nfs_opnum4;
using xdr::nfsstat4;

Task<Result<void>> Nfs4Operations::begin(const OpContext& op, std::string* detail) {
  co_return co_await session_.begin(op, detail);
}

Task<void> Nfs4Operations::end(const OpContext& op) {
  co_await new_files_.wait(op);
  co_await delegation_opens_.wait(op);
  co_await locks_.close_all(op);
  co_await delegations_.give_back_all(op);
  co_await session_.end(op);
}

Task<Result<void>> Nfs4Operations::null(const OpContext& op) {
  RpcCallLease rpc_call = rpc_.prepare(xdr::kNfsProgram, xdr::kNfsV4, xdr::NFSPROC4_NULL, op);
  co_return co_await rpc_call->run();
}

Task<Result<FileHandle>> Nfs4Operations::server_root(const OpContext& op) {
  FileHandle handle;
  auto build = [](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTROOTFH);
    out.op(nfs_opnum4::OP_GETFH);
  };
  auto parse = [&](CompoundReader& in) {
    xdr::GETFH4res got;
    if (in.next(nfs_opnum4::OP_PUTROOTFH) && in.next(nfs_opnum4::OP_GETFH, got)) {
      handle = FileHandle(got.resok4.object.data);
    }
  };
  NFSRDMA_CO_TRY(Ending end, co_await call(session_, op, {}, build, parse));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "PUTROOTFH");
  if (handle.empty()) co_return Error{Errc::kProtocol, EIO, "GETFH: empty file handle"};
  co_return handle;
}

Task<Result<Attributes>> Nfs4Operations::getattr(const OpContext& op, const FileHandle& file) {
  std::optional<Attributes> attributes;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    if (in.next(nfs_opnum4::OP_PUTFH)) next_attributes(in, names_, &attributes);
  };
  NFSRDMA_CO_TRY(Ending end, co_await call(session_, op, {}, build, parse));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "GETATTR");
  if (!attributes) co_return Error{Errc::kProtocol, EIO, "GETATTR: attributes are missing"};
  co_return *attributes;
}

Task<Result<Wcc>> Nfs4Operations::setattr(const OpContext& op, const FileHandle& file,
                                          const SetAttributes& set, const timespec* guard_ctime) {
  if (set.size) NFSRDMA_CO_CHECK_OK(locks_.usable(file));
  NFSRDMA_CO_TRY(const nfs4::OwnerTexts owners, co_await names_.texts(set, op.cancel));
  const nfs4::EncodedAttributes values(set, owners);
  xdr::FileAttributes4 expected;
  if (guard_ctime != nullptr) {
    expected.attrmask.set(fattr4_number::FATTR4_TIME_METADATA);
    expected.time_metadata = {guard_ctime->tv_sec,
                              static_cast<std::uint32_t>(guard_ctime->tv_nsec)};
  }
  const nfs4::EncodedAttributes guard(expected);
  Wcc wcc;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    if (!guard.empty()) out.op(nfs_opnum4::OP_VERIFY, xdr::VERIFY4args{guard.wire()});
    // Only a change of size shows one (RFC 8881, 18.30.3).
    xdr::stateid4 stateid;
    if (set.size) stateid = locks_.stateid_of_denial(file, xdr::OPEN4_SHARE_ACCESS_WRITE);
    out.op(nfs_opnum4::OP_SETATTR, xdr::SETATTR4args{stateid, values.wire()});
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::SETATTR4res result;
    if (!in.next(nfs_opnum4::OP_PUTFH)) return;
    if (!guard.empty() && !in.next(nfs_opnum4::OP_VERIFY)) return;
    if (in.next(nfs_opnum4::OP_SETATTR, result)) next_attributes(in, names_, &wcc.after);
  };
  NFSRDMA_CO_TRY(Ending end, co_await call(session_, op, {.once = true}, build, parse));
  if (end.status == nfsstat4::NFS4_OK) co_return wcc;
  const Error error = status_error(end.status, "SETATTR");
  if (nfs4::is_bad_owner(error) && names_.refused(owners.by_name)) {
    co_return co_await setattr(op, file, set, guard_ctime);
  }
  if (end.resent && end.status == nfsstat4::NFS4ERR_NOT_SAME) {
    Result<Attributes> now = co_await getattr(op, file);
    if (now.ok() && setattr_happened(*now, set)) {
      wcc.after = *now;
      co_return wcc;
    }
  }
  co_return error;
}

Task<Result<LookupResult>> Nfs4Operations::lookup(const OpContext& op, const FileHandle& directory,
                                                  std::string_view name,
                                                  std::optional<Attributes>* directory_attributes) {
  LookupResult result;
  const bool up = name == "..";
  const bool down = !up && name != ".";
  bool there = false;  // the name is; what stands behind it may be elsewhere
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(directory));
    if (directory_attributes != nullptr) {
      out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
    }
    if (up) out.op(nfs_opnum4::OP_LOOKUPP);
    if (down) out.op(nfs_opnum4::OP_LOOKUP, xdr::LOOKUP4args{name});
    out.op(nfs_opnum4::OP_GETFH);
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::GETFH4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH)) return;
    if (directory_attributes != nullptr) next_attributes(in, names_, &result.directory);
    if (up && !in.next(nfs_opnum4::OP_LOOKUPP)) return;
    there = down && in.next(nfs_opnum4::OP_LOOKUP);
    if (down && !there) return;
    if (!in.next(nfs_opnum4::OP_GETFH, got)) return;
    result.handle = FileHandle(got.resok4.object.data);
    next_attributes(in, names_, &result.attributes);
  };
  NFSRDMA_CO_TRY(Ending end, co_await call(session_, op, {.max_results = 2048}, build, parse));
  if (directory_attributes != nullptr) *directory_attributes = result.directory;
  if (there && end.status == nfsstat4::NFS4ERR_MOVED) co_return kReferralMet;
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "LOOKUP");
  if (result.handle.empty()) co_return Error{Errc::kProtocol, EIO, "LOOKUP: empty file handle"};
  co_return result;
}

Task<Result<AccessResult>> Nfs4Operations::access(const OpContext& op, const FileHandle& file,
                                                  std::uint32_t wanted) {
  AccessResult result;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_ACCESS, xdr::ACCESS4args{wanted});
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::ACCESS4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_ACCESS, got)) return;
    result.allowed = got.resok4.access & wanted;
    next_attributes(in, names_, &result.attributes);
  };
  NFSRDMA_CO_TRY(Ending end, co_await call(session_, op, {}, build, parse));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "ACCESS");
  co_return result;
}

Task<Result<std::string>> Nfs4Operations::readlink(const OpContext& op, const FileHandle& link) {
  // The kernel takes 4096; a server may have longer ones, which nobody could follow. In the reply
  // or a Reply chunk: Linux's server (6.1), offered a Write chunk, does not put the text there
  // right (nfsd4_encode_readlink names a place four bytes too early). Linux's own client offers
  // none.
  constexpr std::size_t kLongestText = 4096;
  std::string text;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(link));
    out.op(nfs_opnum4::OP_READLINK);
  };
  auto parse = [&](CompoundReader& in) {
    xdr::READLINK4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_READLINK, got)) return;
    text = as_text(got.resok4.link.bytes);
  };
  NFSRDMA_CO_TRY(Ending end,
                 co_await call(session_, op, {.max_results = kLongestText + 1024}, build, parse));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "READLINK");
  co_return text;
}

}  // namespace nfsrdma
