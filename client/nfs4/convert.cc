// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/convert.h"

#include <algorithm>
#include <bit>
#include <string>

namespace nfsrdma::nfs4 {
namespace {

using xdr::fattr4_number;

constexpr std::uint32_t kNanoseconds = 1'000'000'000;

timespec to_timespec(const xdr::nfstime4& time) {
  timespec result{};
  result.tv_sec = time.seconds;
  result.tv_nsec = std::min(time.nseconds, kNanoseconds - 1);
  return result;
}

FileType type_of(xdr::nfs_ftype4 type) {
  switch (type) {
    case xdr::nfs_ftype4::NF4DIR:
    case xdr::nfs_ftype4::NF4ATTRDIR:
      return FileType::kDirectory;
    case xdr::nfs_ftype4::NF4BLK:
      return FileType::kBlock;
    case xdr::nfs_ftype4::NF4CHR:
      return FileType::kCharacter;
    case xdr::nfs_ftype4::NF4LNK:
      return FileType::kSymlink;
    case xdr::nfs_ftype4::NF4SOCK:
      return FileType::kSocket;
    case xdr::nfs_ftype4::NF4FIFO:
      return FileType::kFifo;
    default:
      return FileType::kRegular;
  }
}

xdr::settime4 to_settime(const SetAttributes::Time& time) {
  if (time.server_now) return {};
  return {xdr::time_how4::SET_TO_CLIENT_TIME4,
          {time.value.tv_sec, static_cast<std::uint32_t>(time.value.tv_nsec)}};
}

}  // namespace

void from_wire(const xdr::fattr4& wire, IdNames& names, std::optional<Attributes>* to) {
  xdr::FileAttributes4 values;
  to->reset();
  if (xdr::decode_attributes(wire, values).outcome != xdr::AttributeDecoding::kOk) return;
  from_wire(values, names, to);
}

void from_wire(const xdr::FileAttributes4& wire, IdNames& names, std::optional<Attributes>* to) {
  const xdr::bitmap4& has = wire.attrmask;
  to->reset();
  if (!has.has(fattr4_number::FATTR4_TYPE) || !has.has(fattr4_number::FATTR4_FILEID) ||
      !has.has(fattr4_number::FATTR4_SIZE) || has.has(fattr4_number::FATTR4_RDATTR_ERROR)) {
    return;
  }
  Attributes& result = to->emplace();
  result.type = type_of(wire.type);
  result.mode = wire.mode & 07777;
  result.nlink = has.has(fattr4_number::FATTR4_NUMLINKS) ? wire.numlinks : 1;
  names.uid(wire.owner, &result.uid);
  names.gid(wire.owner_group, &result.gid);
  result.size = wire.size;
  result.used = has.has(fattr4_number::FATTR4_SPACE_USED) ? wire.space_used : wire.size;
  result.rdev_major = wire.rawdev.specdata1;
  result.rdev_minor = wire.rawdev.specdata2;
  result.fsid = wire.fsid.major ^ std::rotl(wire.fsid.minor, 32);
  result.fileid = wire.fileid;
  result.atime = to_timespec(wire.time_access);
  result.mtime = to_timespec(wire.time_modify);
  result.ctime = to_timespec(wire.time_metadata);
  if (has.has(fattr4_number::FATTR4_CHANGE)) result.change = wire.change;
}

FsStat fs_stat(const xdr::FileAttributes4& wire) {
  // What a server does not tell is 0.
  return {.total_bytes = wire.space_total,
          .free_bytes = wire.space_free,
          .available_bytes = wire.space_avail,
          .total_files = wire.files_total,
          .free_files = wire.files_free,
          .available_files = wire.files_avail};
}

PathConf path_conf(const xdr::FileAttributes4& wire) {
  PathConf result;
  const xdr::bitmap4& has = wire.attrmask;
  if (has.has(fattr4_number::FATTR4_MAXLINK)) result.link_max = wire.maxlink;
  if (has.has(fattr4_number::FATTR4_MAXNAME)) result.name_max = wire.maxname;
  if (has.has(fattr4_number::FATTR4_NO_TRUNC)) result.no_trunc = wire.no_trunc;
  if (has.has(fattr4_number::FATTR4_CHOWN_RESTRICTED)) {
    result.chown_restricted = wire.chown_restricted;
  }
  if (has.has(fattr4_number::FATTR4_CASE_INSENSITIVE)) {
    result.case_insensitive = wire.case_insensitive;
  }
  if (has.has(fattr4_number::FATTR4_CASE_PRESERVING)) {
    result.case_preserving = wire.case_preserving;
  }
  return result;
}

EncodedAttributes::EncodedAttributes(const SetAttributes& set, const OwnerTexts& owners) {
  xdr::FileAttributes4 values;
  if (set.size) {
    values.attrmask.set(fattr4_number::FATTR4_SIZE);
    values.size = *set.size;
  }
  if (set.mode) {
    values.attrmask.set(fattr4_number::FATTR4_MODE);
    values.mode = *set.mode & 07777;
  }
  if (set.uid) {
    values.attrmask.set(fattr4_number::FATTR4_OWNER);
    values.owner = owners.owner;
  }
  if (set.gid) {
    values.attrmask.set(fattr4_number::FATTR4_OWNER_GROUP);
    values.owner_group = owners.group;
  }
  if (set.atime) {
    values.attrmask.set(fattr4_number::FATTR4_TIME_ACCESS_SET);
    values.time_access_set = to_settime(*set.atime);
  }
  if (set.mtime) {
    values.attrmask.set(fattr4_number::FATTR4_TIME_MODIFY_SET);
    values.time_modify_set = to_settime(*set.mtime);
  }
  encode(values);
}

void EncodedAttributes::encode(const xdr::FileAttributes4& values) {
  xdr::Encoder encoder(room_);
  xdr::detail::EncodeArchive archive(encoder);
  xdr::visit_attribute_values(archive, values);
  wire_ = {values.attrmask, encoder.bytes()};
}

xdr::nfs_ftype4 to_wire(FileType type) {
  switch (type) {
    case FileType::kDirectory:
      return xdr::nfs_ftype4::NF4DIR;
    case FileType::kBlock:
      return xdr::nfs_ftype4::NF4BLK;
    case FileType::kCharacter:
      return xdr::nfs_ftype4::NF4CHR;
    case FileType::kSymlink:
      return xdr::nfs_ftype4::NF4LNK;
    case FileType::kSocket:
      return xdr::nfs_ftype4::NF4SOCK;
    case FileType::kFifo:
      return xdr::nfs_ftype4::NF4FIFO;
    case FileType::kRegular:
      break;
  }
  return xdr::nfs_ftype4::NF4REG;
}

xdr::stable_how4 to_wire(Stability stability) {
  return static_cast<xdr::stable_how4>(stability);  // the same numbers
}

Stability from_wire(xdr::stable_how4 how) {
  switch (how) {
    case xdr::stable_how4::FILE_SYNC4:
      return Stability::kFileSync;
    case xdr::stable_how4::DATA_SYNC4:
      return Stability::kDataSync;
    default:
      return Stability::kUnstable;  // also what is no such value: it will be committed
  }
}

}  // namespace nfsrdma::nfs4
