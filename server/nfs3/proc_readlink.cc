// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

Outcome readlink(ServerContext& server, Request& request, xdr::Decoder& decoder,
                 xdr::Encoder& result) {
  xdr::READLINK3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  CallContext call(server, request);
  xdr::READLINK3res res;
  Resolved object;
  res.status = call.resolve(args.symlink, Use::kLook, &object);
  if (call.would_block()) return Outcome::kWouldBlock;
  res.resok.symlink_attributes = res.resfail.symlink_attributes = post_op(object);
  if (res.status == xdr::nfsstat3::NFS3_OK) {
    if (!request.payload && !request.may_block) {
      request.payload = request.call->connection().buffers().acquire(PATH_MAX);
    }
    if (!request.payload) {
      request.buffer_wanted = PATH_MAX;
      return Outcome::kNeedBuffer;
    }
    char* text = reinterpret_cast<char*>(request.payload.data());
    const ssize_t n = ::readlinkat(object.file->path_fd(), "", text, PATH_MAX);
    // What is no link answers ENOENT to an empty name.
    if (n < 0) res.status = status_of_errno(errno == ENOENT ? EINVAL : errno);
    if (n > 0) res.resok.data.bytes = request.payload.bytes().first(static_cast<std::size_t>(n));
  }
  xdr::encode(result, res);
  return Outcome::kReply;
}

}  // namespace nfsrdma::nfs3
