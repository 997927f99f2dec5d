// SPDX-License-Identifier: Apache-2.0
// Nfs4Operations: what NFSv4.2 knows of holes, space and copies (RFC 7862, section 15). The stateid
// is the anonymous one, unless an open of ours denies others something, or a lock is lost.
#include <algorithm>
#include <cerrno>
#include <limits>

#include "client/nfs4/attributes_result.h"
#include "client/nfs4/call.h"
#include "client/nfs4/operations.h"

namespace nfsrdma {
namespace {

using nfs4::call;
using nfs4::CompoundReader;
using nfs4::CompoundWriter;
using nfs4::Ending;
using nfs4::kAttributes;
using nfs4::next_attributes;
using nfs4::put;
using nfs4::status_error;
using xdr::nfs_opnum4;
using xdr::nfsstat4;

/// Bytes of a file that off_t can name.
constexpr std::uint64_t kLastOffset = std::numeric_limits<std::int64_t>::max();
/// Of file systems that can clone; ends of files need not be at one of its multiples.
constexpr std::uint64_t kCloneBlock = 4096;
/// What has no end there, and is longer, is worth one question too many.
constexpr std::uint64_t kWorthAQuestion = 1u << 20;
/// For which a file system without clones is remembered: another one may be next.
constexpr Duration kNoClones = std::chrono::seconds(60);
/// Copies that a server which restarts again and again has lost, before that is an error.
constexpr int kLostCopies = 4;

/// ALLOCATE or DEALLOCATE. `args`, which is asked for them each time that they are sent, lives in
/// the frame that awaits.
template <typename MakeArgs>
Task<Result<Wcc>> change_space(nfs4::Session& session, nfs4::IdNames& names, const OpContext& op,
                               const FileHandle& file, nfs_opnum4 number, const MakeArgs& args) {
  Wcc result;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(number, args());
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(number)) return;
    next_attributes(in, names, &result.after);
  };
  NFSRDMA_CO_TRY(Ending end, co_await call(session, op, {}, build, parse));
  if (end.status != nfsstat4::NFS4_OK) {
    co_return status_error(end.status,
                           number == nfs_opnum4::OP_ALLOCATE ? "ALLOCATE" : "DEALLOCATE");
  }
  co_return result;
}

/// Not here, not these blocks, not between these two: a COPY may do.
bool comes_of_cloning(int error) {
  return error == EOPNOTSUPP || error == EINVAL || error == EXDEV;
}

/// What CLONE and COPY begin with: the one file saved, the other current.
void put_files(CompoundWriter& out, const FileHandle& from, const FileHandle& to) {
  out.op(nfs_opnum4::OP_PUTFH, put(from));
  out.op(nfs_opnum4::OP_SAVEFH);
  out.op(nfs_opnum4::OP_PUTFH, put(to));
}
bool next_files(CompoundReader& in) {
  return in.next(nfs_opnum4::OP_PUTFH) && in.next(nfs_opnum4::OP_SAVEFH) &&
         in.next(nfs_opnum4::OP_PUTFH);
}

}  // namespace

Task<Result<std::uint64_t>> Nfs4Operations::seek(const OpContext& op, const FileHandle& file,
                                                 std::uint64_t offset, SeekFor what) {
  if (session_.minor() < 2) co_return not_in_this_version("SEEK");
  NFSRDMA_CO_CHECK_OK(locks_.usable(file));
  xdr::SEEK4args args;
  args.sa_offset = offset;
  args.sa_what = what == SeekFor::kData ? xdr::data_content4::NFS4_CONTENT_DATA
                                        : xdr::data_content4::NFS4_CONTENT_HOLE;
  xdr::SEEK4res got;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    args.sa_stateid = locks_.stateid_of_denial(file, xdr::OPEN4_SHARE_ACCESS_READ);
    out.op(nfs_opnum4::OP_SEEK, args);
  };
  auto parse = [&](CompoundReader& in) {
    if (in.next(nfs_opnum4::OP_PUTFH)) in.next(nfs_opnum4::OP_SEEK, got);
  };
  NFSRDMA_CO_TRY(Ending end, co_await call(session_, op, {}, build, parse));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "SEEK");
  const bool no_data = what == SeekFor::kData && got.resok4.sr_eof;
  if (no_data) co_return status_error(nfsstat4::NFS4ERR_NXIO, "SEEK");
  if (got.resok4.sr_offset < offset || got.resok4.sr_offset > kLastOffset) {
    co_return Error{Errc::kProtocol, EIO, "SEEK: the reply's offset cannot be"};
  }
  co_return got.resok4.sr_offset;
}

Task<Result<Wcc>> Nfs4Operations::allocate(const OpContext& op, const FileHandle& file,
                                           std::uint64_t offset, std::uint64_t length) {
  if (session_.minor() < 2) co_return not_in_this_version("ALLOCATE");
  NFSRDMA_CO_CHECK_OK(locks_.usable(file));
  const auto args = [&] {
    return xdr::ALLOCATE4args{locks_.stateid_of_denial(file, xdr::OPEN4_SHARE_ACCESS_WRITE), offset,
                              length};
  };
  co_return co_await change_space(session_, names_, op, file, nfs_opnum4::OP_ALLOCATE, args);
}

Task<Result<Wcc>> Nfs4Operations::deallocate(const OpContext& op, const FileHandle& file,
                                             std::uint64_t offset, std::uint64_t length) {
  if (session_.minor() < 2) co_return not_in_this_version("DEALLOCATE");
  NFSRDMA_CO_CHECK_OK(locks_.usable(file));
  const auto args = [&] {
    return xdr::DEALLOCATE4args{locks_.stateid_of_denial(file, xdr::OPEN4_SHARE_ACCESS_WRITE),
                                offset, length};
  };
  co_return co_await change_space(session_, names_, op, file, nfs_opnum4::OP_DEALLOCATE, args);
}

bool Nfs4Operations::may_clone(std::uint64_t from_offset, std::uint64_t to_offset,
                               std::uint64_t count) {
  return from_offset % kCloneBlock == 0 && to_offset % kCloneBlock == 0 &&
         (count % kCloneBlock == 0 || count >= kWorthAQuestion) &&
         session_.rpc().environment().now() >= no_clones_until_;
}

Task<Result<CopyResult>> Nfs4Operations::clone(const OpContext& op, const FileHandle& from,
                                               std::uint64_t from_offset, const FileHandle& to,
                                               std::uint64_t to_offset, std::uint64_t count) {
  CopyResult result;
  NFSRDMA_CO_CHECK_OK(locks_.usable(from));
  NFSRDMA_CO_CHECK_OK(locks_.usable(to));
  xdr::CLONE4args args;
  args.cl_src_offset = from_offset;
  args.cl_dst_offset = to_offset;
  args.cl_count = count;
  auto build = [&](CompoundWriter& out) {
    put_files(out, from, to);
    args.cl_src_stateid = locks_.stateid_of_denial(from, xdr::OPEN4_SHARE_ACCESS_READ);
    args.cl_dst_stateid = locks_.stateid_of_denial(to, xdr::OPEN4_SHARE_ACCESS_WRITE);
    out.op(nfs_opnum4::OP_CLONE, args);
    out.op(nfs_opnum4::OP_COMMIT, xdr::COMMIT4args{});
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::COMMIT4res committed;
    if (!next_files(in) || !in.next(nfs_opnum4::OP_CLONE) ||
        !in.next(nfs_opnum4::OP_COMMIT, committed)) {
      return;
    }
    result.count = count;
    next_attributes(in, names_, &result.wcc.after);
  };
  NFSRDMA_CO_TRY(Ending end, co_await call(session_, op, {}, build, parse));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "CLONE");
  co_return result;
}

Task<Result<CopyResult>> Nfs4Operations::copy_once(const OpContext& op, const FileHandle& from,
                                                   std::uint64_t from_offset, const FileHandle& to,
                                                   std::uint64_t to_offset, std::uint64_t count,
                                                   std::optional<std::uint64_t>* verifier) {
  CopyResult result;
  bool behind_the_reply = false;
  NFSRDMA_CO_CHECK_OK(locks_.usable(from));
  NFSRDMA_CO_CHECK_OK(locks_.usable(to));
  xdr::COPY4args args;
  args.ca_src_offset = from_offset;
  args.ca_dst_offset = to_offset;
  args.ca_count = count;
  args.ca_consecutive = true;
  args.ca_synchronous = true;
  auto build = [&](CompoundWriter& out) {
    put_files(out, from, to);
    args.ca_src_stateid = locks_.stateid_of_denial(from, xdr::OPEN4_SHARE_ACCESS_READ);
    args.ca_dst_stateid = locks_.stateid_of_denial(to, xdr::OPEN4_SHARE_ACCESS_WRITE);
    out.op(nfs_opnum4::OP_COPY, args);
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::COPY4res got;
    if (!next_files(in) || !in.next(nfs_opnum4::OP_COPY, got)) return;
    const xdr::write_response4& done = got.resok4.cr_response;
    behind_the_reply = done.wr_callback_id.count > 0;
    result.count = done.wr_count;
    verifier->reset();
    if (done.wr_committed != xdr::stable_how4::FILE_SYNC4) {
      *verifier = load_be64(done.wr_writeverf.data());
    }
    next_attributes(in, names_, &result.wcc.after);
  };
  NFSRDMA_CO_TRY(Ending end, co_await call(session_, op, {}, build, parse));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "COPY");
  if (behind_the_reply) {
    co_return Error{Errc::kProtocol, EIO, "COPY: goes on behind its reply although it must not"};
  }
  if (result.count > count) {
    co_return Error{Errc::kProtocol, EIO, "COPY: more than was asked for"};
  }
  co_return result;
}

Task<Result<CopyResult>> Nfs4Operations::copy(const OpContext& op, const FileHandle& from,
                                              std::uint64_t from_offset, const FileHandle& to,
                                              std::uint64_t to_offset, std::uint64_t count) {
  if (session_.minor() < 2) co_return not_in_this_version("COPY");
  // A count of 0 means "to the end of the file" in both.
  if (count == 0) co_return CopyResult{};
  if (may_clone(from_offset, to_offset, count)) {
    auto cloned = co_await clone(op, from, from_offset, to, to_offset, count);
    if (cloned.ok() || !comes_of_cloning(cloned.error().sys)) co_return cloned;
    if (cloned.error().sys == EOPNOTSUPP) {
      no_clones_until_ = session_.rpc().environment().now() + kNoClones;
    }
  }
  // Not within one file (RFC 7862 15.2.3); who asked reads and writes then.
  if (from == to) co_return Error{Errc::kUnsupported, EOPNOTSUPP, "COPY: within one file"};
  count = std::min(count, kMostOfACopy);
  for (int lost = 0; lost < kLostCopies; ++lost) {
    std::optional<std::uint64_t> verifier;
    NFSRDMA_CO_TRY(CopyResult result,
                   co_await copy_once(op, from, from_offset, to, to_offset, count, &verifier));
    if (!verifier || result.count == 0) co_return result;
    NFSRDMA_CO_TRY(CommitResult commit, co_await this->commit(op, to, 0, 0));
    if (commit.wcc.after) result.wcc.after = commit.wcc.after;
    if (commit.verifier == *verifier) co_return result;
  }
  co_return Error{Errc::kSystem, EIO, "COPY: the server lost it again and again"};
}

}  // namespace nfsrdma
