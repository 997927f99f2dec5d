// SPDX-License-Identifier: Apache-2.0
// RENAME, within one file system of one export. An open target file lives on for whoever holds it
// open locally; clients' handles of it become stale, as they would on a local disk.
#include <optional>

#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

namespace {

/// The second directory, which has to be of the same export and file system.
xdr::nfsstat3 resolve_target(CallContext& call, const xdr::nfs_fh3& handle, const Resolved& from,
                             Resolved* to) {
  const std::uint64_t export_id = call.exported().id;
  const xdr::nfsstat3 status = call.resolve(handle, Use::kChange, to);
  if (status != xdr::nfsstat3::NFS3_OK) return status;
  const bool same = call.exported().id == export_id &&
                    to->file->parts().mount_key == from.file->parts().mount_key;
  return same ? xdr::nfsstat3::NFS3_OK : xdr::nfsstat3::NFS3ERR_XDEV;
}

}  // namespace

Outcome rename(ServerContext& server, Request& request, xdr::Decoder& decoder,
               xdr::Encoder& result) {
  constexpr std::size_t kFailureWords = 4;  // two wcc_data
  xdr::RENAME3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  const std::size_t mark = result.mark();
  CallContext call(server, request);
  xdr::RENAME3res res;
  Resolved from, to;
  res.status = call.resolve(args.from.dir, Use::kChange, &from);
  if (res.status == xdr::nfsstat3::NFS3_OK) {
    res.status = resolve_target(call, args.to.dir, from, &to);
  }
  if (call.would_block()) return Outcome::kWouldBlock;
  if (res.status != xdr::nfsstat3::NFS3_OK) {
    res.resfail.fromdir_wcc.after = post_op(from);
    res.resfail.todir_wcc.after = post_op(to);
    xdr::encode(result, res);
    return Outcome::kReply;
  }
  const bool same_directory = from.file->inode() == to.file->inode();
  WccScope from_wcc(server, from);
  std::optional<WccScope> to_wcc;  // one watch per inode: two would disturb each other
  if (!same_directory) to_wcc.emplace(server, to);
  const int error = rename_entry(call, from, args.from.name, to, args.to.name);
  res.status = status_of_errno(error);
  res.resok.fromdir_wcc = res.resfail.fromdir_wcc = from_wcc.finish();
  res.resok.todir_wcc = same_directory ? res.resok.fromdir_wcc : to_wcc->finish();
  res.resfail.todir_wcc = res.resok.todir_wcc;
  xdr::encode(result, res);
  if (error != 0) return Outcome::kReply;
  call.wait_for_metadata(to);
  if (!same_directory) call.wait_for_metadata(from);
  return call.outcome(mark, kFailureWords);
}

}  // namespace nfsrdma::nfs3
