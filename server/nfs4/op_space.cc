// SPDX-License-Identifier: Apache-2.0
// ALLOCATE, DEALLOCATE, SEEK and IO_ADVISE (RFC 7862 15.1, 15.4, 15.11, 15.5).
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "server/files/change_scope.h"
#include "server/nfs4/data_file.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/status.h"

namespace nfsrdma::nfs4 {

using xdr::nfsstat4;
using enum xdr::nfsstat4;

namespace {

constexpr auto kMostOffset = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());

/// fallocate() of the current file. A client has nothing like COMMIT for it, so that the reply
/// waits for the disk.
nfsstat4 change_space(Compound& compound, const xdr::stateid4& stateid, std::uint64_t offset,
                      std::uint64_t length, int mode) {
  FileCall call(compound.server(), compound.request());
  int fd = -1;
  if (const nfsstat4 status =
          enter_regular(compound, call, compound.current, stateid, kShareWrite, &fd);
      status != NFS4_OK) {
    return status;
  }
  if (!compound.may_block()) return compound.retry(Outcome::kWouldBlock);  // it can take seconds
  if (length == 0) return NFS4ERR_INVAL;
  if (offset > kMostOffset || length > kMostOffset - offset) return NFS4ERR_FBIG;
  Resolved& file = compound.current.object;
  const struct stat before = file.attributes;
  ChangeScope scope(compound.server(), file);
  const int error =
      ::fallocate(fd, mode, static_cast<off_t>(offset), static_cast<off_t>(length)) == 0 ? 0
                                                                                         : errno;
  scope.finish();
  (void)call.may_use(*file.file);
  call.server().files.note_own_change(*file.file, before, file.attributes);
  if (error != 0) return status_of_errno(error);
  compound.wait_for_metadata(call, file);
  return NFS4_OK;
}

/// Advice that the kernel takes for a range. What is left (sequential, random and the like) it
/// would take for the descriptor, which all clients share.
struct Advice {
  xdr::IO_ADVISE_type4 hint;
  int advice;
};
constexpr Advice kAdvice[] = {
    {xdr::IO_ADVISE_type4::IO_ADVISE4_WILLNEED, POSIX_FADV_WILLNEED},
    {xdr::IO_ADVISE_type4::IO_ADVISE4_WILLNEED_OPPORTUNISTIC, POSIX_FADV_WILLNEED},
    {xdr::IO_ADVISE_type4::IO_ADVISE4_DONTNEED, POSIX_FADV_DONTNEED},
};

}  // namespace

nfsstat4 allocate(Compound& compound, const xdr::ALLOCATE4args& args, xdr::ALLOCATE4res&) {
  return change_space(compound, args.aa_stateid, args.aa_offset, args.aa_length, 0);
}

nfsstat4 deallocate(Compound& compound, const xdr::DEALLOCATE4args& args, xdr::DEALLOCATE4res&) {
  return change_space(compound, args.da_stateid, args.da_offset, args.da_length,
                      FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
}

nfsstat4 seek(Compound& compound, const xdr::SEEK4args& args, xdr::SEEK4res& res) {
  const bool data = args.sa_what == xdr::data_content4::NFS4_CONTENT_DATA;
  if (!data && args.sa_what != xdr::data_content4::NFS4_CONTENT_HOLE) return NFS4ERR_UNION_NOTSUPP;
  FileCall call(compound.server(), compound.request());
  int fd = -1;
  if (const nfsstat4 status =
          enter_data(compound, call, compound.current, args.sa_stateid, kShareRead, &fd);
      status != NFS4_OK) {
    return status;
  }
  const auto size = static_cast<std::uint64_t>(compound.current.object.attributes.st_size);
  if (args.sa_offset >= size) return NFS4ERR_NXIO;
  // Nobody uses the position of a shared descriptor.
  const off_t found = ::lseek(fd, static_cast<off_t>(args.sa_offset), data ? SEEK_DATA : SEEK_HOLE);
  if (found < 0 && errno != ENXIO) return status_of_errno(errno);
  // There is no data up to the end, or only the hole behind it.
  res.resok4.sr_eof = found < 0 || static_cast<std::uint64_t>(found) >= size;
  res.resok4.sr_offset = found < 0 ? size : static_cast<std::uint64_t>(found);
  return NFS4_OK;
}

nfsstat4 io_advise(Compound& compound, const xdr::IO_ADVISE4args& args, xdr::IO_ADVISE4res& res) {
  FileCall call(compound.server(), compound.request());
  int fd = -1;
  if (const nfsstat4 status =
          enter_data(compound, call, compound.current, args.iaa_stateid, kShareRead, &fd);
      status != NFS4_OK) {
    return status;
  }
  if (args.iaa_offset > kMostOffset || args.iaa_count > kMostOffset - args.iaa_offset) {
    return NFS4ERR_INVAL;
  }
  // As for the kernel, a count of 0 goes to the end.
  for (const Advice& row : kAdvice) {
    if (args.iaa_hints.has(row.hint) &&
        ::posix_fadvise(fd, static_cast<off_t>(args.iaa_offset), static_cast<off_t>(args.iaa_count),
                        row.advice) == 0) {
      res.resok4.ior_hints.set(row.hint);
    }
  }
  // Nothing that is done otherwise than without advice; that is no error (RFC 7862 15.5.3).
  if (res.resok4.ior_hints.empty()) {
    res.resok4.ior_hints.set(xdr::IO_ADVISE_type4::IO_ADVISE4_NORMAL);
  }
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
