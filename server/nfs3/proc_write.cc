// SPDX-License-Identifier: Apache-2.0
// WRITE: from the receive buffers straight into the file, as the caller (so that set-id bits fall,
// quota counts and reserved blocks stay reserved).
//
// UNSTABLE data is in the page cache when the reply goes out; the file is marked so that nothing
// closes it before an fsync has told whether it reached the disk. DATA_SYNC and FILE_SYNC wait for
// the committer, and hold the descriptor until then, also on an `async` export: that option is
// about names, not about data a client asked to have on disk. So does UNSTABLE data of a file that
// the full cache does not keep open, and is committed when it is answered (RFC 1813 3.3.7: it may
// be more than was asked for).
#include "server/files/file_data.h"
#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"
#include "server/nfs3/write_verf.h"

namespace nfsrdma::nfs3 {

Outcome write(ServerContext& server, Request& request, xdr::Decoder& decoder,
              xdr::Encoder& result) {
  xdr::WRITE3args args;
  if (!xdr::decode(decoder, args) || args.count > args.data.bytes.size() ||
      !xdr::is_known(args.stable)) {
    return Outcome::kGarbageArgs;
  }
  const std::size_t mark = result.mark();
  CallContext call(server, request);
  xdr::WRITE3res res;
  Resolved file;
  res.status = call.resolve(args.file, Use::kChange, &file);
  if (call.would_block()) return Outcome::kWouldBlock;
  if (res.status != xdr::nfsstat3::NFS3_OK) {
    res.resfail.file_wcc.after = post_op(file);
    xdr::encode(result, res);
    return Outcome::kReply;
  }
  if (const int busy = call.may_use(*file.file)) {
    res.status = status_of_errno(busy);
    xdr::encode(result, res);
    return Outcome::kReply;
  }
  WccScope wcc(server, file);
  const struct stat before = file.attributes;
  // Before the write: should an fsync fail from here on, the client must see a difference.
  res.resok.verf = write_verf(server.verifier);
  int fd = -1;
  std::size_t written = 0;
  int error = server.files.data_fd(*file.file, call.caller(), kRightWrite, before, &fd);
  xdr::stable_how stable = args.stable;
  if (stable == xdr::stable_how::UNSTABLE && file.file->left_out()) {
    stable = xdr::stable_how::FILE_SYNC;
  }
  const bool unstable = stable == xdr::stable_how::UNSTABLE;
  if (error == 0) {
    if (unstable) file.file->unstable.store(true, std::memory_order_release);
    error = write_data(fd, args.data.bytes.first(args.count), args.offset, &written);
    // A COMMIT meanwhile did not have what came after it.
    if (unstable && written != 0) file.file->unstable.store(true, std::memory_order_release);
  }
  res.status = status_of_errno(error);
  res.resok.file_wcc = res.resfail.file_wcc = wcc.finish();
  (void)call.may_use(*file.file);
  server.files.note_own_change(*file.file, before, file.attributes);
  res.resok.count = static_cast<std::uint32_t>(written);
  res.resok.committed = stable;
  xdr::encode(result, res);
  if (error != 0 || unstable) return Outcome::kReply;
  request.durable_data_only = stable == xdr::stable_how::DATA_SYNC;
  call.wait_for(file);
  return call.outcome(mark);
}

}  // namespace nfsrdma::nfs3
