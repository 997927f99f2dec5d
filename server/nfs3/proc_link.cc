// SPDX-License-Identifier: Apache-2.0
// LINK, through /proc/self/fd: AT_EMPTY_PATH would need CAP_DAC_READ_SEARCH, which the caller does
// not have. A symbolic link is linked itself, not what it points to.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

namespace {

int make_link(const Resolved& file, const Resolved& directory, std::string_view name) {
  if (const int error = check_new_name(name, EEXIST)) return error;
  if (!directory.file->is_directory()) return ENOTDIR;
  if (file.file->is_directory()) return EPERM;
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", file.file->path_fd());
  return ::linkat(AT_FDCWD, path, directory.file->path_fd(), EntryName(name).c_str(),
                  AT_SYMLINK_FOLLOW) == 0
             ? 0
             : errno;
}

}  // namespace

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
  WccScope wcc(server.changes, directory);
  const int error = make_link(file, directory, args.link.name);
  res.status = status_of_errno(error);
  if (::fstat(file.file->path_fd(), &file.attributes) == 0) {
    res.resok.file_attributes = res.resfail.file_attributes = post_op(file);
  }
  res.resok.linkdir_wcc = res.resfail.linkdir_wcc = wcc.finish();
  xdr::encode(result, res);
  if (error != 0) return Outcome::kReply;
  call.wait_for_metadata(directory);
  call.wait_for_metadata(file);
  return call.outcome(mark, kFailureWords);
}

}  // namespace nfsrdma::nfs3
