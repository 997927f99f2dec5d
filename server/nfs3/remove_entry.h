// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/nfs3/call_context.h"

namespace nfsrdma::nfs3 {

/// The whole of REMOVE (flags 0) and RMDIR (AT_REMOVEDIR). `dot` and `dot_dot`: the errors for
/// those names.
template <typename Res>
Outcome run_removal(ServerContext& server, Request& request, const xdr::diropargs3& object,
                    xdr::Encoder& result, int dot, int dot_dot, int flags) {
  const std::size_t mark = result.mark();
  CallContext call(server, request);
  Res res;
  Resolved directory;
  res.status = call.resolve(object.dir, Use::kChange, &directory);
  if (call.would_block()) return Outcome::kWouldBlock;
  if (res.status == xdr::nfsstat3::NFS3_OK && !directory.file->is_directory()) {
    res.status = xdr::nfsstat3::NFS3ERR_NOTDIR;
  }
  if (res.status != xdr::nfsstat3::NFS3_OK) {
    res.resfail.dir_wcc.after = post_op(directory);
    xdr::encode(result, res);
    return Outcome::kReply;
  }
  WccScope wcc(server, directory);
  int error = check_new_name(object.name, object.name == "." ? dot : dot_dot);
  if (error == 0) error = remove_entry(call, directory, EntryName(object.name).c_str(), flags);
  res.status = status_of_errno(error);
  res.resok.dir_wcc = res.resfail.dir_wcc = wcc.finish();
  xdr::encode(result, res);
  if (error != 0) return Outcome::kReply;
  call.wait_for_metadata(directory);
  return call.outcome(mark);
}

}  // namespace nfsrdma::nfs3
