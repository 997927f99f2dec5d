// SPDX-License-Identifier: Apache-2.0
// Nfs4Operations: what is asked of a whole file system.
#include "client/nfs4/attributes_result.h"
#include "client/nfs4/call.h"
#include "client/nfs4/operations.h"

namespace nfsrdma {
namespace {

using nfs4::call;
using nfs4::CompoundReader;
using nfs4::CompoundWriter;
using nfs4::Ending;
using nfs4::put;
using nfs4::status_error;
using xdr::bitmap4;
using xdr::fattr4_number;
using xdr::nfs_opnum4;
using xdr::nfsstat4;

constexpr bitmap4 kFsStat =
    bitmap4::of({fattr4_number::FATTR4_FILES_AVAIL, fattr4_number::FATTR4_FILES_FREE,
                 fattr4_number::FATTR4_FILES_TOTAL, fattr4_number::FATTR4_SPACE_AVAIL,
                 fattr4_number::FATTR4_SPACE_FREE, fattr4_number::FATTR4_SPACE_TOTAL});
constexpr bitmap4 kFsInfo =
    bitmap4::of({fattr4_number::FATTR4_LINK_SUPPORT, fattr4_number::FATTR4_SYMLINK_SUPPORT,
                 fattr4_number::FATTR4_CANSETTIME, fattr4_number::FATTR4_HOMOGENEOUS,
                 fattr4_number::FATTR4_LEASE_TIME, fattr4_number::FATTR4_MAXFILESIZE,
                 fattr4_number::FATTR4_MAXREAD, fattr4_number::FATTR4_MAXWRITE,
                 fattr4_number::FATTR4_TIME_DELTA, fattr4_number::FATTR4_SUPPATTR_EXCLCREAT});
constexpr bitmap4 kPathConf =
    bitmap4::of({fattr4_number::FATTR4_CASE_INSENSITIVE, fattr4_number::FATTR4_CASE_PRESERVING,
                 fattr4_number::FATTR4_CHOWN_RESTRICTED, fattr4_number::FATTR4_MAXLINK,
                 fattr4_number::FATTR4_MAXNAME, fattr4_number::FATTR4_NO_TRUNC});

/// Asks for `mask` of `file` and hands the values, valid during the call alone, to `take`.
template <typename Take>
Task<Result<Ending>> ask(nfs4::Session& session, const OpContext& op, const FileHandle& file,
                         const bitmap4& mask, Take& take) {
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{mask});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::GETATTR4res got;
    xdr::FileAttributes4 values;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_GETATTR, got)) return;
    const xdr::AttributesDecoded decoded =
        xdr::decode_attributes(got.resok4.obj_attributes, values);
    if (decoded.outcome == xdr::AttributeDecoding::kOk) take(values);
  };
  co_return co_await call(session, op, {}, build, parse);
}

FsInfo fs_info(const xdr::FileAttributes4& values, const nfs4::Session& session) {
  const bitmap4& has = values.attrmask;
  FsInfo info;
  info.rtmax = session.max_read();
  info.wtmax = session.max_write();
  // A server that says 0 means that it has no opinion.
  if (has.has(fattr4_number::FATTR4_MAXREAD) && values.maxread > 0) {
    info.rtmax = static_cast<std::uint32_t>(std::min<std::uint64_t>(info.rtmax, values.maxread));
  }
  if (has.has(fattr4_number::FATTR4_MAXWRITE) && values.maxwrite > 0) {
    info.wtmax = static_cast<std::uint32_t>(std::min<std::uint64_t>(info.wtmax, values.maxwrite));
  }
  info.rtpref = info.rtmax;
  info.wtpref = info.wtmax;
  info.dtpref = std::min<std::uint32_t>(info.rtmax, 64 << 10);
  info.max_file_size = values.maxfilesize;
  info.time_delta.tv_sec = values.time_delta.seconds;
  info.time_delta.tv_nsec = values.time_delta.nseconds;
  if (has.has(fattr4_number::FATTR4_LINK_SUPPORT)) info.hard_links = values.link_support;
  if (has.has(fattr4_number::FATTR4_SYMLINK_SUPPORT)) info.symlinks = values.symlink_support;
  if (has.has(fattr4_number::FATTR4_CANSETTIME)) info.can_set_time = values.cansettime;
  if (has.has(fattr4_number::FATTR4_HOMOGENEOUS)) info.homogeneous = values.homogeneous;
  return info;
}

}  // namespace

Task<Result<FsStat>> Nfs4Operations::fsstat(const OpContext& op, const FileHandle& file) {
  FsStat result;
  auto take = [&](const xdr::FileAttributes4& values) { result = nfs4::fs_stat(values); };
  NFSRDMA_CO_TRY(Ending end, co_await ask(session_, op, file, kFsStat, take));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "GETATTR");
  co_return result;
}

Task<Result<FsInfo>> Nfs4Operations::fsinfo(const OpContext& op, const FileHandle& file) {
  FsInfo result;
  auto take = [&](const xdr::FileAttributes4& values) {
    result = fs_info(values, session_);
    if (values.attrmask.has(fattr4_number::FATTR4_LEASE_TIME)) {
      session_.set_lease(std::chrono::seconds(values.lease_time));
    }
    if (values.attrmask.has(fattr4_number::FATTR4_SUPPATTR_EXCLCREAT)) {
      exclusive_attributes_ = values.suppattr_exclcreat;
    }
  };
  NFSRDMA_CO_TRY(Ending end, co_await ask(session_, op, file, kFsInfo, take));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "GETATTR");
  Result<Attributes> attributes = co_await getattr(op, file);
  if (attributes.ok()) result.attributes = *attributes;
  co_return result;
}

Task<Result<PathConf>> Nfs4Operations::pathconf(const OpContext& op, const FileHandle& file) {
  PathConf result;
  auto take = [&](const xdr::FileAttributes4& values) { result = nfs4::path_conf(values); };
  NFSRDMA_CO_TRY(Ending end, co_await ask(session_, op, file, kPathConf, take));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "GETATTR");
  co_return result;
}

}  // namespace nfsrdma
