// SPDX-License-Identifier: Apache-2.0
// COPY within this server, CLONE, and what asks after copies that go on behind their replies, of
// which there are none (RFC 7862 15.2, 15.13, 15.8, 15.9).
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "server/files/change_scope.h"
#include "server/nfs4/data_file.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/status.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

namespace {

/// One COPY does at most this much and says so; clients go on where it stopped. It bounds how long
/// a worker is gone, and how long a client waits for a reply.
constexpr std::uint64_t kMostPerCall = std::uint64_t{64} << 20;
/// One system call: between two the kernel lets others have the file.
constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;
constexpr auto kMostOffset = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());

bool fits(std::uint64_t offset, std::uint64_t count) {
  return offset <= kMostOffset && count <= kMostOffset - offset;
}

bool same_file(const FileEntry& a, const FileEntry& b) {
  return a.inode() == b.inode() && a.device() == b.device();
}

struct Range {
  int from = -1, to = -1;
  std::uint64_t from_offset = 0, to_offset = 0, count = 0;
};

/// 0 or an errno; *copied may be less than wanted when there is some.
int copy_range(const Range& range, std::uint64_t* copied) {
  while (*copied < range.count) {
    auto in = static_cast<off_t>(range.from_offset + *copied);
    auto out = static_cast<off_t>(range.to_offset + *copied);
    const std::uint64_t piece = std::min(kPiece, range.count - *copied);
    const ssize_t n = ::copy_file_range(range.from, &in, range.to, &out, piece, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return *copied > 0 ? 0 : errno;
    if (n == 0) break;  // the source has shrunk meanwhile
    *copied += static_cast<std::uint64_t>(n);
  }
  return 0;
}

/// Both files, and descriptors of them: the saved one to be read, the current one to be written.
/// The source comes first: its export may see the caller as somebody else.
nfsstat4 enter_both(Compound& compound, const xdr::stateid4& source, FileCall& call,
                    const xdr::stateid4& target, Range* range) {
  FileCall source_call(compound.server(), compound.request());
  const nfsstat4 status =
      enter_data(compound, source_call, compound.saved, source, kShareRead, &range->from);
  if (status != NFS4_OK) return status;
  return enter_data(compound, call, compound.current, target, kShareWrite, &range->to);
}

/// Where a range ends that may be given as "to the end of the source"; it has to be inside, and
/// must not meet itself (RFC 7862 15.2.3).
nfsstat4 bound(const Compound& compound, Range* range) {
  const Resolved& source = compound.saved.object;
  const auto size = static_cast<std::uint64_t>(source.attributes.st_size);
  if (range->from_offset > size) return NFS4ERR_INVAL;
  if (range->count == 0) range->count = size - range->from_offset;
  if (range->count > size - range->from_offset) return NFS4ERR_INVAL;
  if (!fits(range->to_offset, range->count)) return NFS4ERR_FBIG;
  const bool meets = range->from_offset < range->to_offset + range->count &&
                     range->to_offset < range->from_offset + range->count;
  return meets && same_file(*source.file, *compound.current.object.file) ? NFS4ERR_INVAL : NFS4_OK;
}

}  // namespace

nfsstat4 copy(Compound& compound, const xdr::COPY4args& args, xdr::COPY4res& res) {
  if (!args.ca_source_server.empty()) return NFS4ERR_NOTSUPP;  // from another server
  if (!compound.may_block()) return compound.retry(Outcome::kWouldBlock);
  FileCall call(compound.server(), compound.request());
  Range range{-1, -1, args.ca_src_offset, args.ca_dst_offset, args.ca_count};
  nfsstat4 status = enter_both(compound, args.ca_src_stateid, call, args.ca_dst_stateid, &range);
  if (status == NFS4_OK) status = bound(compound, &range);
  if (status != NFS4_OK) return status;
  range.count = std::min(range.count, kMostPerCall);
  Resolved& file = compound.current.object;
  const struct stat before = file.attributes;
  ChangeScope scope(compound.server(), file);
  xdr::write_response4& response = res.resok4.cr_response;
  // Before the copy: should an fsync fail from here on, the client must see a difference.
  response.wr_writeverf = verifier_of(compound);
  file.file->unstable.store(true, std::memory_order_release);
  const int error = copy_range(range, &response.wr_count);
  scope.finish();
  call.server().files.note_own_change(*file.file, before, file.attributes);
  if (error != 0) return status_of_errno(error);
  // In order, from the start, and done: whatever was asked for gets that.
  response.wr_committed = xdr::stable_how4::UNSTABLE4;
  res.resok4.cr_requirements = {true, true};
  return NFS4_OK;
}

nfsstat4 clone(Compound& compound, const xdr::CLONE4args& args, xdr::CLONE4res&) {
  // The kernel writes back both ranges first.
  if (!compound.may_block()) return compound.retry(Outcome::kWouldBlock);
  FileCall call(compound.server(), compound.request());
  Range range{-1, -1, args.cl_src_offset, args.cl_dst_offset, args.cl_count};
  nfsstat4 status = enter_both(compound, args.cl_src_stateid, call, args.cl_dst_stateid, &range);
  if (status == NFS4_OK) status = bound(compound, &range);
  if (status != NFS4_OK) return status;
  Resolved& file = compound.current.object;
  const struct stat before = file.attributes;
  ChangeScope scope(compound.server(), file);
  // A count of 0 goes to the end for the kernel as well.
  file_clone_range what{range.from, args.cl_src_offset, args.cl_count, args.cl_dst_offset};
  const int error = ::ioctl(range.to, FICLONERANGE, &what) == 0 ? 0 : errno;
  scope.finish();
  call.server().files.note_own_change(*file.file, before, file.attributes);
  if (error != 0) return status_of_errno(error);
  compound.wait_for_metadata(call, file);
  return NFS4_OK;
}

/// No stateid was ever given out for a copy.
nfsstat4 offload_cancel(Compound&, const xdr::OFFLOAD_CANCEL4args&, xdr::OFFLOAD_CANCEL4res&) {
  return NFS4ERR_BAD_STATEID;
}

nfsstat4 offload_status(Compound&, const xdr::OFFLOAD_STATUS4args&, xdr::OFFLOAD_STATUS4res&) {
  return NFS4ERR_BAD_STATEID;
}

}  // namespace nfsrdma::nfs4
