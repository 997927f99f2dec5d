// SPDX-License-Identifier: Apache-2.0
// COMMIT: all of the file, whatever range the client names (fsync knows no ranges).
//
// The verifier in the reply has to be the one in force when the fsync has succeeded: had another
// fsync failed meanwhile and taken the kernel's one error report with it, the old value would call
// lost data committed. Request::verifier_mark has the dispatcher write it anew.
#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"
#include "server/nfs3/write_verf.h"

namespace nfsrdma::nfs3 {

Outcome commit(ServerContext& server, Request& request, xdr::Decoder& decoder,
               xdr::Encoder& result) {
  xdr::COMMIT3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  const std::size_t mark = result.mark();
  CallContext call(server, request);
  xdr::COMMIT3res res;
  Resolved file;
  res.status = call.resolve(args.file, Use::kChange, &file);
  if (call.would_block()) return Outcome::kWouldBlock;
  if (res.status == xdr::nfsstat3::NFS3_OK && !file.file->is_regular()) {
    res.status =
        file.file->is_directory() ? xdr::nfsstat3::NFS3ERR_ISDIR : xdr::nfsstat3::NFS3ERR_INVAL;
  }
  res.resok.file_wcc.after = res.resfail.file_wcc.after = post_op(file);
  res.resok.verf = write_verf(server.verifier);
  int unused = -1;
  if (res.status == xdr::nfsstat3::NFS3_OK) {
    res.status = status_of_errno(call.sync_fd(*file.file, &unused));
  }
  xdr::encode(result, res);
  if (res.status != xdr::nfsstat3::NFS3_OK) return Outcome::kReply;
  request.verifier_mark = result.mark() - xdr::kNfs3WriteVerfBytes;
  file.file->unstable.store(false,
                            std::memory_order_release);  // whatever comes later sets it again
  call.wait_for_written(file);
  return call.outcome(mark);
}

}  // namespace nfsrdma::nfs3
