// SPDX-License-Identifier: Apache-2.0
// READ. The reply refers to the file's pages in the page cache where the connection can send those
// (server/files/file_pages.h); otherwise the data goes from there into the reply's own buffer, and
// to the wire without another copy. On the shard's thread only what the page cache has is read
// (RWF_NOWAIT); anything else runs again on a worker.
//
// The attributes are taken *before* the data. Were they newer than the data, a client would think
// that what it got is current.
#include <algorithm>

#include "server/files/file_pages.h"
#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

namespace {

Outcome fail(xdr::READ3res& res, int error, xdr::Encoder& result) {
  res.status = status_of_errno(error);
  xdr::encode(result, res);
  return Outcome::kReply;
}

}  // namespace

Outcome read(ServerContext& server, Request& request, xdr::Decoder& decoder, xdr::Encoder& result) {
  xdr::READ3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  CallContext call(server, request);
  xdr::READ3res res;
  Resolved file;
  res.status = call.resolve(args.file, Use::kLook, &file);
  if (call.would_block()) return Outcome::kWouldBlock;
  res.resfail.file_attributes = post_op(file);
  if (res.status != xdr::nfsstat3::NFS3_OK) {
    xdr::encode(result, res);
    return Outcome::kReply;
  }
  if (const int busy = call.may_use(*file.file)) return fail(res, busy, result);
  int fd = -1;
  if (const int error =
          server.files.data_fd(*file.file, call.caller(), kRightRead, file.attributes, &fd)) {
    return fail(res, error, result);
  }
  const auto file_size = static_cast<std::uint64_t>(file.attributes.st_size);
  const std::uint64_t left = args.offset < file_size ? file_size - args.offset : 0;
  const std::size_t want = std::min<std::uint64_t>({args.count, server.rtmax(), left});
  std::size_t size = 0;
  Got got = Got::kData;
  if (want != 0 && show_pages(call, fd, file.attributes, args.offset, want)) {
    size = want;
  } else if (want != 0) {
    if (!have_buffer(request, want)) return Outcome::kNeedBuffer;
    const MutableByteSpan room = request.payload.bytes().first(want);
    int error = 0;
    got = copy_data(call, fd, room, args.offset, &size, &error);
    if (got == Got::kWouldBlock) return Outcome::kWouldBlock;
    if (got == Got::kError) return fail(res, error, result);
  }
  res.resok.file_attributes = res.resfail.file_attributes;
  res.resok.count = static_cast<std::uint32_t>(size);
  // Wrongly said, it has the client fill up with zeros (RFC 1813 3.3.6).
  res.resok.eof = got == Got::kData && (size < want || size == left);
  res.resok.data.bytes = size == 0 ? ByteSpan() : ByteSpan(request.payload.bytes().first(size));
  xdr::encode(result, res);
  return Outcome::kReply;
}

}  // namespace nfsrdma::nfs3
