// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

Outcome link(ServerContext& server, Request& request, xdr::Decoder& decoder, xdr::Encoder& result) {
  constexpr std::size_t kFailureWords = 3;  // post_op_attr and wcc_data
  xdr::LINK3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  const std::size_t mark = result.mark();
  CallContext call(server, request);
  xdr::LINK3res res;
  Resolved file, directory;
  res.status = call.resolve(args.file, Use::kChange, &file);
  if (res.status == xdr::nfsstat3::NFS3_OK) {
    const std::uint64_t export_id = call.exported().id;
    res.status = call.resolve(args.link.dir, Use::kChange, &directory);
    if (res.status == xdr::nfsstat3::NFS3_OK && call.exported().id != export_id) {
      res.status = xdr::nfsstat3::NFS3ERR_XDEV;
    }
  }
  if (call.would_block()) return Outcome::kWouldBlock;
  if (res.status != xdr::nfsstat3::NFS3_OK) {
    res.resfail.file_attributes = post_op(file);
    res.resfail.linkdir_wcc.after = post_op(directory);
    xdr::encode(result, res);
    return Outcome::kReply;
  }
  // One scope per inode: two would disturb each other. A directory is not linked anyway.
  std::optional<WccScope> file_wcc;
  if (!file.file->is_directory()) file_wcc.emplace(server, file);
  WccScope wcc(server, directory);
  const int error = link_entry(call, file, directory, args.link.name);
  res.status = status_of_errno(error);
  file.covered_by_directory = true;
  if (file_wcc) res.resok.file_attributes = file_wcc->finish().after;
  res.resfail.file_attributes = file_wcc ? res.resok.file_attributes : post_op(file);
  res.resok.linkdir_wcc = res.resfail.linkdir_wcc = wcc.finish();
  xdr::encode(result, res);
  if (error != 0) return Outcome::kReply;
  call.wait_for_metadata(directory);
  call.wait_for_metadata(file);
  return call.outcome(mark, kFailureWords);
}

}  // namespace nfsrdma::nfs3
