// SPDX-License-Identifier: Apache-2.0
// READDIRPLUS. Attributes and handle are left out for "." and ".." (no client uses them), for mount
// points, and where the caller may not search the directory.
#include <algorithm>

#include "server/nfs3/list_directory.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

namespace {

xdr::entryplus3 describe(CallContext& call, Resolved& directory, const DirectoryEntry& found,
                         FileHandle& handle) {
  xdr::entryplus3 entry;
  entry.fileid = found.inode;
  entry.name = found.name;
  entry.cookie = found.cookie;
  if (entry.name == "." || entry.name == "..") return entry;
  struct stat st;
  std::uint64_t fsid = 0;
  if (call.server().resolver.peek(call.exported(), *directory.file, found.name, found.inode,
                                  &handle, &st, &fsid) == 0) {
    entry.name_attributes = call.attributes_of(st, fsid);
    entry.name_handle.handle_follows = true;
    entry.name_handle.handle.data = handle.bytes();
  }
  return entry;
}

}  // namespace

std::size_t readdirplus_reply_bytes(ServerContext&, xdr::Decoder decoder) {
  xdr::READDIRPLUS3args args;
  if (!xdr::decode(decoder, args)) return 0;
  return std::min<std::size_t>(args.maxcount, kMaxDirectoryReply) + kListingHead;
}

Outcome readdirplus(ServerContext& server, Request& request, xdr::Decoder& decoder,
                    xdr::Encoder& result) {
  // With attributes and handle an entry is about this many times as long as the kernel's.
  constexpr std::size_t kGrowth = 4;
  xdr::READDIRPLUS3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  const std::size_t count = std::min<std::size_t>(args.maxcount, kMaxDirectoryReply);
  const Listing listing{args.dir,
                        args.cookie,
                        {.result_bytes = count, .directory_bytes = args.dircount},
                        std::min<std::size_t>(args.dircount, count / kGrowth)};
  return list_directory<xdr::entryplus3>(server, request, listing, result, describe);
}

}  // namespace nfsrdma::nfs3
