// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "server/files/directory_reader.h"
#include "server/nfs3/list_directory.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

std::size_t readdir_reply_bytes(ServerContext&, xdr::Decoder decoder) {
  xdr::READDIR3args args;
  if (!xdr::decode(decoder, args)) return 0;
  return std::min<std::size_t>(args.count, kMaxDirectoryReply) + kListingHead;
}

Outcome readdir(ServerContext& server, Request& request, xdr::Decoder& decoder,
                xdr::Encoder& result) {
  xdr::READDIR3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  const std::size_t count = std::min<std::size_t>(args.count, kMaxDirectoryReply);
  // An entry takes about as much room from the kernel as it does in XDR.
  const Listing listing{args.dir, args.cookie, {.result_bytes = count}, count};
  return list_directory<xdr::entry3>(
      server, request, listing, result,
      [](CallContext&, Resolved&, const DirectoryEntry& found, HandleRoom&) {
        return xdr::entry3{found.inode, found.name, found.cookie};
      });
}

}  // namespace nfsrdma::nfs3
