// SPDX-License-Identifier: Apache-2.0
// What READDIR and READDIRPLUS have in common. The cookie verifier is always zero, as in Linux's
// server: the kernel's cookies stay good, so there is nothing to verify.
#pragma once

#include <type_traits>

#include "server/files/directory_reader.h"
#include "server/nfs3/call_context.h"
#include "xdr/nfs3_directory.h"

namespace nfsrdma::nfs3 {

/// Room for the status and what follows when nothing is listed.
inline constexpr std::size_t kListingHead = 128;
/// As long as other calls take, so many entries may take (Request::work_units).
inline constexpr std::uint32_t kEntriesPerUnit = 16;
/// Listings that become longer always run on a worker: a shard's other clients should not wait for
/// a thousand entries. Clients ask for more than that of every directory, so that it also takes a
/// directory of some size, as stat(2) gives it.
inline constexpr std::size_t kShortListing = 32 << 10;
inline constexpr off_t kSmallDirectory = 8 << 10;

struct Listing {
  xdr::nfs_fh3 dir;
  std::uint64_t cookie = 0;
  xdr::DirectoryLimits limits;
  std::size_t chunk = 0;  // for DirectoryReader::open
};

/// Where the handle of the entry at hand is kept until it is encoded.
using HandleRoom = FileHandle;

template <typename Entry>
Outcome listing_failed(const Resolved& directory, xdr::nfsstat3 status, xdr::Encoder& result) {
  xdr::Nfs3Result<xdr::Void, xdr::READDIR3resfail> res;  // both have the same failed arm
  res.status = status;
  res.resfail.dir_attributes = post_op(directory);
  xdr::encode(result, res);
  return Outcome::kReply;
}

/// `describe(call, directory, found, handle_room)` makes an Entry.
template <typename Entry, typename Describe>
Outcome list_directory(ServerContext& server, Request& request, const Listing& listing,
                       xdr::Encoder& result, Describe describe) {
  CallContext call(server, request);
  Resolved directory;
  const xdr::nfsstat3 status = call.resolve(listing.dir, Use::kLook, &directory);
  if (call.would_block()) return Outcome::kWouldBlock;
  if (status != xdr::nfsstat3::NFS3_OK) return listing_failed<Entry>(directory, status, result);
  if (std::is_same_v<Entry, xdr::entryplus3> && !call.access().readdirplus) {
    return listing_failed<Entry>(directory, xdr::nfsstat3::NFS3ERR_NOTSUPP, result);
  }
  const bool is_long =
      listing.limits.result_bytes > kShortListing && directory.attributes.st_size > kSmallDirectory;
  if (is_long && !request.may_block) return Outcome::kWouldBlock;
  DirectoryReader reader(call, directory);
  if (int error = reader.open(listing.cookie, listing.chunk)) {
    if (error == EINVAL)
      return listing_failed<Entry>(directory, xdr::nfsstat3::NFS3ERR_BAD_COOKIE, result);
    return listing_failed<Entry>(directory, status_of_errno(error), result);
  }
  xdr::DirectoryWriter<Entry> writer(result, listing.limits);
  if (!writer.start({post_op(directory), {}})) {
    return listing_failed<Entry>(directory, xdr::nfsstat3::NFS3ERR_TOOSMALL, result);
  }
  DirectoryEntry found;
  FileHandle handle;
  int error = 0;
  auto next = reader.next(&found, &error);
  while (next == DirectoryReader::Next::kEntry) {
    if (!writer.try_add(describe(call, directory, found, handle))) break;
    reader.take();
    next = reader.next(&found, &error);
  }
  if (writer.count() == 0 && next != DirectoryReader::Next::kEnd) {
    writer.abandon();
    return listing_failed<Entry>(directory,
                                 next == DirectoryReader::Next::kError
                                     ? status_of_errno(error)
                                     : xdr::nfsstat3::NFS3ERR_TOOSMALL,
                                 result);
  }
  request.work_units = 1 + static_cast<std::uint32_t>(writer.count()) / kEntriesPerUnit;
  // An error behind some entries shows again when the client asks for the rest.
  writer.finish(next == DirectoryReader::Next::kEnd);
  return Outcome::kReply;
}

}  // namespace nfsrdma::nfs3
