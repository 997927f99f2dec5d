// SPDX-License-Identifier: Apache-2.0
// What CREATE, MKDIR, SYMLINK and MKNOD have in common. Their results have the same shape
// (post_op_fh3, post_op_attr, wcc_data), so one template serves all four.
#pragma once

#include "server/files/set_attributes.h"
#include "server/nfs3/call_context.h"

namespace nfsrdma::nfs3 {

/// The handle and attributes of what was made (or found), into the resok arm.
template <typename Res>
void put_object(Res& res, const Resolved& object) {
  res.resok.obj.handle_follows = true;
  res.resok.obj.handle.data = object.file->handle().bytes();
  res.resok.obj_attributes = post_op(object);
}

/// Runs `make(directory, object)`, which makes `where.name` and resolves it (0 or an errno), and
/// writes the result. The reply waits for directory and object on a `sync` export.
template <typename Res, typename Make>
Outcome make_object(ServerContext& server, Request& request, const xdr::diropargs3& where,
                    xdr::Encoder& result, Make make) {
  const std::size_t mark = result.mark();
  CallContext call(server, request);
  Res res;
  Resolved directory, object;
  res.status = call.resolve(where.dir, Use::kChange, &directory);
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
  int error = check_new_name(where.name, EEXIST);
  if (error == 0) error = make(call, directory, object);
  res.status = status_of_errno(error);
  if (error == 0) put_object(res, object);
  res.resok.dir_wcc = res.resfail.dir_wcc = wcc.finish();
  xdr::encode(result, res);
  if (error != 0) return Outcome::kReply;
  call.wait_for_metadata(directory);
  call.wait_for_metadata(object);
  return call.outcome(mark);
}

}  // namespace nfsrdma::nfs3
