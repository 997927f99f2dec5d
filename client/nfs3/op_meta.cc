// SPDX-License-Identifier: Apache-2.0
// Nfs3Operations: operations on one object, without its data.
#include "client/doubtful.h"
#include "client/nfs3/call.h"
#include "client/nfs3/operations.h"

namespace nfsrdma {

using nfs3::Answer;
using nfs3::call;
using nfs3::from_wire;
using nfs3::status_error;
using nfs3::to_wire;
using xdr::nfsproc3;
using xdr::nfsstat3;

Task<Result<void>> Nfs3Operations::begin(const OpContext&, std::string*) {
  co_return Result<void>();
}

Task<Result<FileHandle>> Nfs3Operations::server_root(const OpContext&) {
  co_return Error{Errc::kUnsupported, EOPNOTSUPP, "the server's root in NFSv3"};
}

Task<void> Nfs3Operations::end(const OpContext& op) {
  if (locks_ != nullptr) co_await locks_->close_all(op);
}

Task<Result<void>> Nfs3Operations::null(const OpContext& op) {
  const xdr::Void args;
  auto answer = co_await call<xdr::Void>(*rpc_, op, nfsproc3::NFSPROC3_NULL, args);
  if (!answer.ok()) co_return answer.error();
  co_return Result<void>();
}

Task<Result<Attributes>> Nfs3Operations::getattr(const OpContext& op, const FileHandle& file) {
  const xdr::GETATTR3args args{to_wire(file)};
  NFSRDMA_CO_TRY(Answer<xdr::GETATTR3res> answer,
                 co_await call<xdr::GETATTR3res>(*rpc_, op, nfsproc3::NFSPROC3_GETATTR, args));
  if (answer.value.status != nfsstat3::NFS3_OK) {
    co_return status_error(answer.value.status, "GETATTR");
  }
  co_return from_wire(answer.value.resok.obj_attributes);
}

Task<Result<Wcc>> Nfs3Operations::setattr(const OpContext& op, const FileHandle& file,
                                          const SetAttributes& set, const timespec* guard_ctime) {
  if (set.size) NFSRDMA_CO_CHECK_OK(usable(file));
  xdr::SETATTR3args args{to_wire(file), to_wire(set), {}};
  if (guard_ctime != nullptr) args.guard = {true, to_wire(*guard_ctime)};
  NFSRDMA_CO_TRY(Answer<xdr::SETATTR3res> answer,
                 co_await call<xdr::SETATTR3res>(*rpc_, op, nfsproc3::NFSPROC3_SETATTR, args));
  if (answer.value.status == nfsstat3::NFS3_OK) co_return from_wire(answer.value.resok.obj_wcc);
  const Error error = status_error(answer.value.status, "SETATTR");
  if (answer.resent && answer.value.status == nfsstat3::NFS3ERR_NOT_SYNC) {
    Result<Attributes> now = co_await getattr(op, file);
    if (now.ok() && setattr_happened(*now, set)) {
      Wcc wcc;
      wcc.after = *now;
      co_return wcc;
    }
  }
  co_return error;
}

Task<Result<LookupResult>> Nfs3Operations::lookup(const OpContext& op, const FileHandle& directory,
                                                  std::string_view name,
                                                  std::optional<Attributes>* directory_attributes) {
  const xdr::LOOKUP3args args{{to_wire(directory), name}};
  NFSRDMA_CO_TRY(Answer<xdr::LOOKUP3res> answer,
                 co_await call<xdr::LOOKUP3res>(*rpc_, op, nfsproc3::NFSPROC3_LOOKUP, args));
  if (answer.value.status != nfsstat3::NFS3_OK) {
    if (directory_attributes != nullptr) {
      *directory_attributes = from_wire(answer.value.resfail.dir_attributes);
    }
    co_return status_error(answer.value.status, "LOOKUP");
  }
  const xdr::LOOKUP3resok& ok = answer.value.resok;
  LookupResult result{FileHandle(ok.object.data), from_wire(ok.obj_attributes),
                      from_wire(ok.dir_attributes)};
  if (directory_attributes != nullptr) *directory_attributes = result.directory;
  if (result.handle.empty()) co_return Error{Errc::kProtocol, EIO, "LOOKUP: empty file handle"};
  co_return result;
}

Task<Result<AccessResult>> Nfs3Operations::access(const OpContext& op, const FileHandle& file,
                                                  std::uint32_t wanted) {
  const xdr::ACCESS3args args{to_wire(file), wanted};
  NFSRDMA_CO_TRY(Answer<xdr::ACCESS3res> answer,
                 co_await call<xdr::ACCESS3res>(*rpc_, op, nfsproc3::NFSPROC3_ACCESS, args));
  if (answer.value.status != nfsstat3::NFS3_OK) {
    co_return status_error(answer.value.status, "ACCESS");
  }
  const xdr::ACCESS3resok& ok = answer.value.resok;
  co_return AccessResult{ok.access & wanted, from_wire(ok.obj_attributes)};
}

Task<Result<std::string>> Nfs3Operations::readlink(const OpContext& op, const FileHandle& link) {
  // The kernel takes 4096; a server may have longer ones, which nobody could follow.
  std::array<std::byte, 4096> room;
  const xdr::READLINK3args args{to_wire(link)};
  NFSRDMA_CO_TRY(Answer<xdr::READLINK3res> answer,
                 co_await call<xdr::READLINK3res>(*rpc_, op, nfsproc3::NFSPROC3_READLINK, args,
                                                  {.sink = room}));
  if (answer.value.status != nfsstat3::NFS3_OK) {
    co_return status_error(answer.value.status, "READLINK");
  }
  co_return std::string(as_text(answer.value.resok.data.bytes));
}

Task<Result<FsStat>> Nfs3Operations::fsstat(const OpContext& op, const FileHandle& file) {
  const xdr::FSSTAT3args args{to_wire(file)};
  NFSRDMA_CO_TRY(Answer<xdr::FSSTAT3res> answer,
                 co_await call<xdr::FSSTAT3res>(*rpc_, op, nfsproc3::NFSPROC3_FSSTAT, args));
  if (answer.value.status != nfsstat3::NFS3_OK) {
    co_return status_error(answer.value.status, "FSSTAT");
  }
  co_return from_wire(answer.value.resok);
}

Task<Result<FsInfo>> Nfs3Operations::fsinfo(const OpContext& op, const FileHandle& file) {
  const xdr::FSINFO3args args{to_wire(file)};
  NFSRDMA_CO_TRY(Answer<xdr::FSINFO3res> answer,
                 co_await call<xdr::FSINFO3res>(*rpc_, op, nfsproc3::NFSPROC3_FSINFO, args));
  if (answer.value.status != nfsstat3::NFS3_OK) {
    co_return status_error(answer.value.status, "FSINFO");
  }
  co_return from_wire(answer.value.resok);
}

Task<Result<PathConf>> Nfs3Operations::pathconf(const OpContext& op, const FileHandle& file) {
  const xdr::PATHCONF3args args{to_wire(file)};
  NFSRDMA_CO_TRY(Answer<xdr::PATHCONF3res> answer,
                 co_await call<xdr::PATHCONF3res>(*rpc_, op, nfsproc3::NFSPROC3_PATHCONF, args));
  if (answer.value.status != nfsstat3::NFS3_OK) {
    co_return status_error(answer.value.status, "PATHCONF");
  }
  co_return from_wire(answer.value.resok);
}

}  // namespace nfsrdma
