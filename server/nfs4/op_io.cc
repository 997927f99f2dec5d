// SPDX-License-Identifier: Apache-2.0
// READ, WRITE, COMMIT and READLINK (RFC 8881 18.22, 18.32, 18.3, 18.24). How the data travels, and
// what waits for the disk, is as in version 3 (server/nfs3/proc_read.cc, proc_write.cc).
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "server/files/change_scope.h"
#include "server/files/file_pages.h"
#include "server/nfs4/data_file.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/status.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

nfsstat4 read(Compound& compound, const xdr::READ4args& args, xdr::READ4res& res) {
  FileCall call(compound.server(), compound.request());
  CurrentHandle& handle = compound.current;
  int fd = -1;
  if (const nfsstat4 status = enter_data(compound, call, handle, args.stateid, kShareRead, &fd);
      status != NFS4_OK) {
    return status;
  }
  const auto file_size = static_cast<std::uint64_t>(handle.object.attributes.st_size);
  const std::uint64_t left = args.offset < file_size ? file_size - args.offset : 0;
  const std::size_t want = std::min<std::uint64_t>({args.count, compound.server().rtmax(), left});
  if (want == 0) {
    res.resok4.eof = left == 0;
    return NFS4_OK;
  }
  if (compound.may_show_pages() &&
      show_pages(call, fd, handle.object.attributes, args.offset, want)) {
    res.resok4.eof = want == left;
    res.resok4.data.bytes = compound.request().payload.bytes().first(want);
    compound.use_payload(want);
    return NFS4_OK;
  }
  MutableByteSpan room;
  if (const nfsstat4 status = compound.payload_room(want, &room); status != NFS4_OK) return status;
  std::size_t size = 0;
  int error = 0;
  const Got got = copy_data(call, fd, room, args.offset, &size, &error);
  switch (got) {
    case Got::kWouldBlock:
      return compound.retry(Outcome::kWouldBlock);
    case Got::kError:
      return status_of_errno(error);
    case Got::kData:
    case Got::kSome:
      break;
  }
  // Wrongly said, it has the client fill up with zeros (RFC 8881 18.22.3).
  res.resok4.eof = got == Got::kData && (size < room.size() || size == left);
  res.resok4.data.bytes = room.first(size);
  compound.use_payload(size);
  return NFS4_OK;
}

nfsstat4 write(Compound& compound, const xdr::WRITE4args& args, xdr::WRITE4res& res) {
  if (compound.current.kind == CurrentHandle::Kind::kPseudo) return NFS4ERR_ISDIR;
  if (!xdr::is_known(args.stable)) return NFS4ERR_INVAL;
  FileCall call(compound.server(), compound.request());
  if (const nfsstat4 status = compound.enter(call, Use::kChange); status != NFS4_OK) return status;
  Resolved& file = compound.current.object;
  if (const nfsstat4 bad = check_regular(compound, compound.current); bad != NFS4_OK) return bad;
  if (const nfsstat4 bad = compound.may_access(args.stateid, kShareWrite); bad != NFS4_OK) {
    return bad;
  }
  if (const int busy = call.may_use(*file.file)) return status_of_errno(busy);
  ChangeScope scope(compound.server(), file);
  const struct stat before = file.attributes;
  // Before the write: should an fsync fail from here on, the client must see a difference.
  res.resok4.writeverf = verifier_of(compound);
  int fd = -1;
  std::size_t written = 0;
  xdr::stable_how4 stable = args.stable;
  if (stable == xdr::stable_how4::UNSTABLE4 && file.file->left_out()) {
    stable = xdr::stable_how4::FILE_SYNC4;
  }
  int error = call.server().files.data_fd(*file.file, call.caller(), kRightWrite, before, &fd);
  if (error == 0) {
    // Otherwise the reply waits for the sync, and holds the descriptor until then.
    if (stable == xdr::stable_how4::UNSTABLE4) {
      file.file->unstable.store(true, std::memory_order_release);
    }
    error = write_data(fd, args.data.bytes, args.offset, &written);
    // A COMMIT meanwhile did not have what came after it.
    if (written != 0 && stable == xdr::stable_how4::UNSTABLE4)
      file.file->unstable.store(true, std::memory_order_release);
  }
  scope.finish();
  (void)call.may_use(*file.file);
  call.server().files.note_own_change(*file.file, before, file.attributes);
  if (error != 0) return status_of_errno(error);
  res.resok4.count = static_cast<std::uint32_t>(written);
  res.resok4.committed = stable;
  if (stable != xdr::stable_how4::UNSTABLE4) {
    compound.wait_for(call, file, stable == xdr::stable_how4::DATA_SYNC4);
    compound.note_verifier();
  }
  return NFS4_OK;
}

nfsstat4 commit(Compound& compound, const xdr::COMMIT4args&, xdr::COMMIT4res& res) {
  if (compound.current.kind == CurrentHandle::Kind::kPseudo) return NFS4ERR_ISDIR;
  FileCall call(compound.server(), compound.request());
  // On a read-only export too: it has no error for that, and there is nothing to refuse.
  if (const nfsstat4 status = compound.enter(call, Use::kLook); status != NFS4_OK) return status;
  Resolved& file = compound.current.object;
  if (const nfsstat4 bad = check_regular(compound, compound.current); bad != NFS4_OK) return bad;
  res.resok4.writeverf = verifier_of(compound);
  int unused = -1;
  if (const int error = call.sync_fd(*file.file, &unused)) return status_of_errno(error);
  // Whatever comes later sets it again.
  file.file->unstable.store(false, std::memory_order_release);
  compound.wait_for_written(call, file);
  compound.note_verifier();
  return NFS4_OK;
}

nfsstat4 readlink(Compound& compound, const xdr::Void&, xdr::READLINK4res& res) {
  const nfsstat4 kNoLink = compound.minor_version() == 0 ? NFS4ERR_INVAL : NFS4ERR_WRONG_TYPE;
  if (compound.current.kind == CurrentHandle::Kind::kPseudo) return kNoLink;
  FileCall call(compound.server(), compound.request());
  if (const nfsstat4 status = compound.enter(call, Use::kLook); status != NFS4_OK) return status;
  const Resolved& object = compound.current.object;
  if (!S_ISLNK(object.attributes.st_mode)) return kNoLink;
  MutableByteSpan room;
  if (const nfsstat4 status = compound.payload_room(PATH_MAX, &room); status != NFS4_OK) {
    return status;
  }
  const ssize_t n =
      ::readlinkat(object.file->path_fd(), "", reinterpret_cast<char*>(room.data()), room.size());
  if (n < 0) return status_of_errno(errno);
  res.resok4.link.bytes = room.first(static_cast<std::size_t>(n));
  compound.use_payload(static_cast<std::size_t>(n));
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
