// SPDX-License-Identifier: Apache-2.0
// COPY within this server, CLONE, and what asks after copies that go on behind their replies
// (RFC 7862 15.2, 15.13, 15.8, 15.9).
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>
#include <utility>

#include "server/files/change_scope.h"
#include "server/nfs4/copy_range.h"
#include "server/nfs4/data_file.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/status.h"
#include "server/nfs4/wire_values.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

namespace {

/// A COPY whose end the client waits for does at most this much and says so; clients go on where it
/// stopped. It bounds how long a worker is gone, and how long a client waits for a reply.
constexpr std::uint64_t kMostPerCall = std::uint64_t{64} << 20;
/// What is not longer than this is done before a callback would have told of it.
constexpr std::uint64_t kMostAtOnce = std::uint64_t{16} << 20;
constexpr auto kMostOffset = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());

bool fits(std::uint64_t offset, std::uint64_t count) {
  return offset <= kMostOffset && count <= kMostOffset - offset;
}

bool within_one_file(const Compound& compound) {
  const FileEntry& from = *compound.saved.object.file;
  const FileEntry& to = *compound.current.object.file;
  return from.inode() == to.inode() && from.device() == to.device();
}

/// Both files, and descriptors of them: the saved one to be read, the current one to be written.
/// The source comes first: its export may see the caller as somebody else.
nfsstat4 enter_both(Compound& compound, const xdr::stateid4& source, FileCall& call,
                    const xdr::stateid4& target, CopyRange* range) {
  FileCall source_call(compound.server(), compound.request());
  const nfsstat4 status =
      enter_regular(compound, source_call, compound.saved, source, kShareRead, &range->from);
  if (status != NFS4_OK) return status;
  return enter_regular(compound, call, compound.current, target, kShareWrite, &range->to);
}

/// Where a range ends that may be given as "to the end of the source"; it has to be inside, and
/// must not meet itself (RFC 7862 15.13.3).
nfsstat4 bound(const Compound& compound, CopyRange* range) {
  const Resolved& source = compound.saved.object;
  const auto size = static_cast<std::uint64_t>(source.attributes.st_size);
  if (range->from_offset > size) return NFS4ERR_INVAL;
  if (range->count == 0) range->count = size - range->from_offset;
  if (range->count > size - range->from_offset) return NFS4ERR_INVAL;
  if (!fits(range->to_offset, range->count)) return NFS4ERR_FBIG;
  const bool meets = range->from_offset < range->to_offset + range->count &&
                     range->to_offset < range->from_offset + range->count;
  return meets && within_one_file(compound) ? NFS4ERR_INVAL : NFS4_OK;
}

/// The copy goes on behind the reply. False: not this one.
bool begin_offload(Compound& compound, FileCall& call, const CopyRange& range,
                   xdr::write_response4* response) {
  const Resolved& to = compound.current.object;
  auto copying = std::make_unique<Offloads::Copying>(
      Offloads::Copying{compound.server(),
                        compound.request().call->connection().peer(),
                        call.caller(),
                        FilePin::another(*compound.saved.object.file),
                        {FilePin::another(*to.file), to.attributes, std::nullopt},
                        range});
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  if (!state.offloads.may_begin(compound.client_id())) return false;
  response->wr_callback_id.push_back(to_wire(state.offloads.begin(
      compound.client_id(), compound.principal(), compound.current.handle.bytes(),
      response->wr_writeverf, std::move(copying))));
  return true;
}

}  // namespace

nfsstat4 copy(Compound& compound, const xdr::COPY4args& args, xdr::COPY4res& res) {
  if (!args.ca_source_server.empty()) return NFS4ERR_NOTSUPP;  // from another server
  if (!compound.may_block()) return compound.retry(Outcome::kWouldBlock);
  FileCall call(compound.server(), compound.request());
  CopyRange range{-1, -1, args.ca_src_offset, args.ca_dst_offset, args.ca_count};
  nfsstat4 status = enter_both(compound, args.ca_src_stateid, call, args.ca_dst_stateid, &range);
  // Not even where the ranges do not meet, unlike CLONE (RFC 7862 15.2.3).
  if (status == NFS4_OK && within_one_file(compound)) return NFS4ERR_INVAL;
  if (status == NFS4_OK) status = bound(compound, &range);
  if (status != NFS4_OK) return status;
  xdr::write_response4& response = res.resok4.cr_response;
  // Before the copy: should an fsync fail from here on, the client must see a difference.
  response.wr_writeverf = verifier_of(compound);
  response.wr_committed = xdr::stable_how4::UNSTABLE4;
  // In order and from the start: whatever was asked for gets that.
  res.resok4.cr_requirements = {true, true};
  if (!args.ca_synchronous && range.count > kMostAtOnce &&
      begin_offload(compound, call, range, &response)) {
    res.resok4.cr_requirements.cr_synchronous = false;
    return NFS4_OK;
  }
  const int error = copy_some(compound.server(), range, 0, kMostPerCall, compound.current.object,
                              &response.wr_count);
  (void)call.may_use(*compound.current.object.file);
  return response.wr_count > 0 ? NFS4_OK : status_of_errno(error);
}

nfsstat4 clone(Compound& compound, const xdr::CLONE4args& args, xdr::CLONE4res&) {
  // The kernel writes back both ranges first.
  if (!compound.may_block()) return compound.retry(Outcome::kWouldBlock);
  FileCall call(compound.server(), compound.request());
  CopyRange range{-1, -1, args.cl_src_offset, args.cl_dst_offset, args.cl_count};
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
  (void)call.may_use(*file.file);
  call.server().files.note_own_change(*file.file, before, file.attributes);
  if (error != 0) return status_of_errno(error);
  compound.wait_for_metadata(call, file);
  return NFS4_OK;
}

nfsstat4 offload_cancel(Compound& compound, const xdr::OFFLOAD_CANCEL4args& args,
                        xdr::OFFLOAD_CANCEL4res&) {
  // A piece may be under way, and is waited for.
  if (!compound.may_block()) return compound.retry(Outcome::kWouldBlock);
  const bool ended = compound.state().offloads.cancel(compound.client_id(), compound.principal(),
                                                      from_wire(args.oca_stateid),
                                                      compound.current.handle.bytes());
  return ended ? NFS4_OK : NFS4ERR_BAD_STATEID;
}

nfsstat4 offload_status(Compound& compound, const xdr::OFFLOAD_STATUS4args& args,
                        xdr::OFFLOAD_STATUS4res& res) {
  ServerState& state = compound.state();
  std::lock_guard lock(state.mutex);
  const Offload* offload = state.offloads.table().find(
      compound.client_id(), from_wire(args.osa_stateid), compound.current.handle.bytes());
  if (offload == nullptr) return NFS4ERR_BAD_STATEID;
  res.resok4.osr_count = offload->copied;
  if (offload->ended) res.resok4.osr_complete.push_back(status_of_errno(offload->error));
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
