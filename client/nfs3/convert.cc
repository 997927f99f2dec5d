// SPDX-License-Identifier: Apache-2.0
#include "client/nfs3/convert.h"

#include <algorithm>

namespace nfsrdma::nfs3 {
namespace {

timespec from_wire(const xdr::nfstime3& wire) {
  return {static_cast<std::time_t>(wire.seconds),
          static_cast<long>(std::min<std::uint32_t>(wire.nseconds, 999'999'999))};
}

FileType from_wire(xdr::ftype3 type) {
  switch (type) {
    case xdr::ftype3::NF3DIR:
      return FileType::kDirectory;
    case xdr::ftype3::NF3BLK:
      return FileType::kBlock;
    case xdr::ftype3::NF3CHR:
      return FileType::kCharacter;
    case xdr::ftype3::NF3LNK:
      return FileType::kSymlink;
    case xdr::ftype3::NF3SOCK:
      return FileType::kSocket;
    case xdr::ftype3::NF3FIFO:
      return FileType::kFifo;
    default:
      return FileType::kRegular;
  }
}

int status_errno(xdr::nfsstat3 status) {
  using enum xdr::nfsstat3;
  switch (status) {
    case NFS3ERR_NAMETOOLONG:
      return ENAMETOOLONG;
    case NFS3ERR_NOTEMPTY:
      return ENOTEMPTY;
    case NFS3ERR_DQUOT:
      return EDQUOT;
    case NFS3ERR_STALE:
    case NFS3ERR_BADHANDLE:
      return ESTALE;
    case NFS3ERR_REMOTE:
      return EREMOTE;
    case NFS3ERR_NOT_SYNC:
    case NFS3ERR_JUKEBOX:
      return EAGAIN;
    case NFS3ERR_BAD_COOKIE:
    case NFS3ERR_TOOSMALL:
      return EINVAL;
    case NFS3ERR_NOTSUPP:
    case NFS3ERR_BADTYPE:
      return EOPNOTSUPP;
    case NFS3ERR_SERVERFAULT:
      return EIO;
    case NFS3ERR_MLINK:
      return EMLINK;
    case NFS3ERR_PERM:
    case NFS3ERR_NOENT:
    case NFS3ERR_IO:
    case NFS3ERR_NXIO:
    case NFS3ERR_ACCES:
    case NFS3ERR_EXIST:
    case NFS3ERR_XDEV:
    case NFS3ERR_NODEV:
    case NFS3ERR_NOTDIR:
    case NFS3ERR_ISDIR:
    case NFS3ERR_INVAL:
    case NFS3ERR_FBIG:
    case NFS3ERR_NOSPC:
    case NFS3ERR_ROFS:
      return static_cast<int>(status);  // the RFC took these from BSD, Linux has the same
    default:
      return EIO;
  }
}

template <typename Wire>
void set_time(const std::optional<SetAttributes::Time>& time, Wire& wire,
              xdr::nfstime3 Wire::*value) {
  if (!time) return;
  wire.set_it =
      time->server_now ? xdr::time_how::SET_TO_SERVER_TIME : xdr::time_how::SET_TO_CLIENT_TIME;
  if (!time->server_now) wire.*value = to_wire(time->value);
}

}  // namespace

Attributes from_wire(const xdr::fattr3& wire) {
  Attributes attributes;
  attributes.type = from_wire(wire.type);
  attributes.mode = wire.mode & 07777;
  attributes.nlink = wire.nlink;
  attributes.uid = wire.uid;
  attributes.gid = wire.gid;
  attributes.size = std::min<std::uint64_t>(wire.size, INT64_MAX);
  attributes.used = std::min<std::uint64_t>(wire.used, INT64_MAX);
  attributes.rdev_major = wire.rdev.specdata1;
  attributes.rdev_minor = wire.rdev.specdata2;
  attributes.fsid = wire.fsid;
  attributes.fileid = wire.fileid;
  attributes.atime = from_wire(wire.atime);
  attributes.mtime = from_wire(wire.mtime);
  attributes.ctime = from_wire(wire.ctime);
  return attributes;
}

std::optional<Attributes> from_wire(const xdr::post_op_attr& wire) {
  if (!wire.attributes_follow) return std::nullopt;
  return from_wire(wire.attributes);
}

Wcc from_wire(const xdr::wcc_data& wire) {
  Wcc wcc;
  if (wire.before.attributes_follow) {
    const xdr::wcc_attr& before = wire.before.attributes;
    wcc.before = Wcc::Before{before.size, from_wire(before.mtime), from_wire(before.ctime)};
  }
  wcc.after = from_wire(wire.after);
  return wcc;
}

FsInfo from_wire(const xdr::FSINFO3resok& wire) {
  FsInfo info;
  info.rtmax = wire.rtmax;
  info.rtpref = wire.rtpref;
  info.rtmult = wire.rtmult;
  info.wtmax = wire.wtmax;
  info.wtpref = wire.wtpref;
  info.wtmult = wire.wtmult;
  info.dtpref = wire.dtpref;
  info.max_file_size = wire.maxfilesize;
  info.time_delta = from_wire(wire.time_delta);
  info.hard_links = (wire.properties & xdr::FSF3_LINK) != 0;
  info.symlinks = (wire.properties & xdr::FSF3_SYMLINK) != 0;
  info.homogeneous = (wire.properties & xdr::FSF3_HOMOGENEOUS) != 0;
  info.can_set_time = (wire.properties & xdr::FSF3_CANSETTIME) != 0;
  info.attributes = from_wire(wire.obj_attributes);
  return info;
}

FsStat from_wire(const xdr::FSSTAT3resok& wire) {
  return {wire.tbytes, wire.fbytes, wire.abytes, wire.tfiles, wire.ffiles, wire.afiles};
}

PathConf from_wire(const xdr::PATHCONF3resok& wire) {
  return {wire.linkmax,          wire.name_max,         wire.no_trunc,
          wire.chown_restricted, wire.case_insensitive, wire.case_preserving};
}

/// Seconds are unsigned 32 bits on the wire (RFC 1813 2.5): from 1970 to 2106. What lies outside
/// becomes the nearest of them, as with Linux's client.
xdr::nfstime3 to_wire(const timespec& time) {
  if (time.tv_sec < 0) return {0, 0};
  if (time.tv_sec > UINT32_MAX) return {UINT32_MAX, 0};
  return {static_cast<std::uint32_t>(time.tv_sec), static_cast<std::uint32_t>(time.tv_nsec)};
}

xdr::sattr3 to_wire(const SetAttributes& set) {
  xdr::sattr3 wire;
  if (set.mode) wire.mode = {true, *set.mode & 07777};
  if (set.uid) wire.uid = {true, *set.uid};
  if (set.gid) wire.gid = {true, *set.gid};
  if (set.size) wire.size = {true, *set.size};
  set_time(set.atime, wire.atime, &xdr::set_atime::atime);
  set_time(set.mtime, wire.mtime, &xdr::set_mtime::mtime);
  return wire;
}

xdr::stable_how to_wire(Stability stability) {
  return static_cast<xdr::stable_how>(stability);  // the same numbers
}

Stability from_wire(xdr::stable_how how) {
  switch (how) {
    case xdr::stable_how::FILE_SYNC:
      return Stability::kFileSync;
    case xdr::stable_how::DATA_SYNC:
      return Stability::kDataSync;
    default:
      return Stability::kUnstable;
  }
}

xdr::ftype3 to_wire(FileType type) {
  switch (type) {
    case FileType::kDirectory:
      return xdr::ftype3::NF3DIR;
    case FileType::kBlock:
      return xdr::ftype3::NF3BLK;
    case FileType::kCharacter:
      return xdr::ftype3::NF3CHR;
    case FileType::kSymlink:
      return xdr::ftype3::NF3LNK;
    case FileType::kSocket:
      return xdr::ftype3::NF3SOCK;
    case FileType::kFifo:
      return xdr::ftype3::NF3FIFO;
    default:
      return xdr::ftype3::NF3REG;
  }
}

Error status_error(xdr::nfsstat3 status, const char* where) {
  const Errc code = status == xdr::nfsstat3::NFS3ERR_BAD_COOKIE ? Errc::kInvalid : Errc::kSystem;
  return {code, status_errno(status), where};
}

}  // namespace nfsrdma::nfs3
