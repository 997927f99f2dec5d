// SPDX-License-Identifier: Apache-2.0
// Nfs3Operations: READ, WRITE and COMMIT, one call each.
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

Task<Result<ReadResult>> Nfs3Operations::read_once(const OpContext& op, const FileHandle& file,
                                                   std::uint64_t offset, MutableByteSpan into) {
  NFSRDMA_CO_CHECK_OK(usable(file));
  const xdr::READ3args args{to_wire(file), offset, static_cast<std::uint32_t>(into.size())};
  NFSRDMA_CO_TRY(
      Answer<xdr::READ3res> answer,
      co_await call<xdr::READ3res>(*rpc_, op, nfsproc3::NFSPROC3_READ, args, {.sink = into}));
  if (answer.value.status != nfsstat3::NFS3_OK) {
    co_return status_error(answer.value.status, "READ");
  }
  const xdr::READ3resok& ok = answer.value.resok;
  const ByteSpan data = ok.data.bytes;
  if (data.size() != ok.count || data.size() > into.size()) {
    co_return Error{Errc::kProtocol, EIO, "READ: wrong length in the reply"};
  }
  // In line: the reply's bytes go away. In a chunk or read by the TCP transport: already there.
  if (!data.empty() && data.data() != into.data()) {
    std::memcpy(into.data(), data.data(), data.size());
  }
  co_return ReadResult{data.size(), ok.eof, from_wire(ok.file_attributes)};
}

Task<Result<WriteResult>> Nfs3Operations::write_once(const OpContext& op, const FileHandle& file,
                                                     std::uint64_t offset, ByteSpan data,
                                                     Stability stability) {
  NFSRDMA_CO_CHECK_OK(usable(file));
  const xdr::WRITE3args args{
      to_wire(file), offset, static_cast<std::uint32_t>(data.size()), to_wire(stability), {data}};
  NFSRDMA_CO_TRY(Answer<xdr::WRITE3res> answer,
                 co_await call<xdr::WRITE3res>(*rpc_, op, nfsproc3::NFSPROC3_WRITE, args));
  if (answer.value.status != nfsstat3::NFS3_OK) {
    co_return status_error(answer.value.status, "WRITE");
  }
  const xdr::WRITE3resok& ok = answer.value.resok;
  if (ok.count > data.size() || (ok.count == 0 && !data.empty())) {
    co_return Error{Errc::kProtocol, EIO, "WRITE: wrong count in the reply"};
  }
  WriteResult result;
  result.count = ok.count;
  result.stability = from_wire(ok.committed);
  result.verifier = load_be64(ok.verf.data());
  result.wcc = from_wire(ok.file_wcc);
  co_return result;
}

Task<Result<CommitResult>> Nfs3Operations::commit(const OpContext& op, const FileHandle& file,
                                                  std::uint64_t offset, std::uint32_t count) {
  const xdr::COMMIT3args args{to_wire(file), offset, count};
  NFSRDMA_CO_TRY(Answer<xdr::COMMIT3res> answer,
                 co_await call<xdr::COMMIT3res>(*rpc_, op, nfsproc3::NFSPROC3_COMMIT, args));
  if (answer.value.status != nfsstat3::NFS3_OK) {
    co_return status_error(answer.value.status, "COMMIT");
  }
  co_return CommitResult{load_be64(answer.value.resok.verf.data()),
                         from_wire(answer.value.resok.file_wcc)};
}

}  // namespace nfsrdma
