// SPDX-License-Identifier: Apache-2.0
// GETATTR, SETATTR, VERIFY, NVERIFY and ACCESS (RFC 8881 18.7, 18.30, 18.31, 18.15, 18.1).
#include <cerrno>
#include <memory>

#include "server/files/access_rights.h"
#include "server/files/change_scope.h"
#include "server/files/set_attributes.h"
#include "server/nfs4/object_facts.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/places.h"
#include "server/nfs4/status.h"

namespace nfsrdma::nfs4 {

using xdr::bitmap4;
using xdr::nfsstat4;
using enum xdr::fattr4_number;
using enum xdr::nfsstat4;

// --- facts
// ----------------------------------------------------------------------------------------

AttributeFacts common_facts(Compound& compound) {
  AttributeFacts facts;
  facts.minor_version = compound.minor_version();
  facts.lease_seconds = compound.state().lease_seconds();
  facts.rtmax = compound.server().rtmax();
  facts.wtmax = compound.server().wtmax();
  return facts;
}

nfsstat4 find_locations(Compound& compound, FileCall& call, const CurrentHandle& handle,
                        AttributeFacts* out) {
  const std::uint64_t id = call.exported().id;
  const auto mount = call.exported().mount(handle.parts.mount_key);
  // A file system below the export is not where the export's copies are.
  if (call.access().locations != nullptr && handle.parts.mount_key == 0) {
    out->locations = *call.access().locations;
  }
  const View view(compound);
  if (view.fs().root(view.allow()).kind == PseudoFs::Place::Kind::kWouldBlock) {
    return compound.retry(Outcome::kWouldBlock);
  }
  out->fs_root = view.fs().path_from_root(id, view.allow());
  if (mount && !mount->below.empty()) out->fs_root.append("/").append(mount->below);
  return NFS4_OK;
}

namespace {

AttributeFacts pseudo_facts(Compound& compound, const CurrentHandle& handle) {
  const View view(compound);
  AttributeFacts facts = common_facts(compound);
  facts.attributes = view.fs().attributes(handle.node);
  facts.change = view.fs().change();
  facts.handle = handle.handle.bytes();
  return facts;
}

/// mounted_on_fileid (RFC 8881 5.8.2.23) of the root of `mount`, a file system of that export.
nfsstat4 find_mounted_on(Compound& compound, std::uint64_t export_id, const MountPoint& mount,
                         AttributeFacts* out) {
  if (mount.key == 0) {
    const View view(compound);
    switch (view.fs().above_export(export_id, view.allow()).kind) {
      case PseudoFs::Place::Kind::kWouldBlock:
        return compound.retry(Outcome::kWouldBlock);
      case PseudoFs::Place::Kind::kNothing:
        return NFS4_OK;
      case PseudoFs::Place::Kind::kNode:
        out->mounted_on_fileid = view.fs().mounted_on_fileid(export_id, view.allow());
        return NFS4_OK;
      case PseudoFs::Place::Kind::kExport:
        break;
    }
  }
  const std::uint64_t inode = mount.mounted_on(compound.may_block());
  if (inode == 0) return compound.retry(Outcome::kWouldBlock);
  out->mounted_on_fileid = inode;
  return NFS4_OK;
}

bool is_root_of(const MountPoint& mount, const FileEntry& file) {
  return file.inode() == mount.root_inode && file.device() == mount.device;
}

/// Of an object that went elsewhere (RFC 7530 8.3.1, RFC 8881 11.4.2), if there ever was one here.
nfsstat4 absent_facts(Compound& compound, FileCall& call, const CurrentHandle& handle,
                      const bitmap4& mask, AttributeFacts* out) {
  // Who asks where it is needs no error beside that.
  if (!mask.without(kAbsentAttributes).empty() && !mask.has(FATTR4_FS_LOCATIONS)) {
    if (!mask.has(FATTR4_RDATTR_ERROR)) return NFS4ERR_MOVED;
    out->rdattr_error = NFS4ERR_MOVED;
  }
  const std::uint64_t id = call.exported().id;
  const std::shared_ptr<MountPoint> top = call.exported().top;
  const FileEntry* file = handle.object.file ? &*handle.object.file : nullptr;
  const bool is_root = file == nullptr || is_root_of(*top, *file);
  out->absent = true;
  out->fsid = id;  // unlike that of any file system that is here
  out->attributes.st_ino = is_root ? top->root_inode : file->inode();
  if (mask.has(FATTR4_FS_LOCATIONS)) {
    const nfsstat4 status = find_locations(compound, call, handle, out);
    if (status != NFS4_OK) return status;
  }
  if (!is_root || !mask.has(FATTR4_MOUNTED_ON_FILEID)) return NFS4_OK;
  return find_mounted_on(compound, id, *top, out);
}

/// What the holder of a write delegation knows better (RFC 8881 10.4.3).
constexpr bitmap4 kHolderKnows =
    bitmap4::of({FATTR4_CHANGE, FATTR4_SIZE, FATTR4_TIME_MODIFY, FATTR4_TIME_METADATA});

nfsstat4 ask_holder(Compound& compound, const FileEntry& file, HolderAttributes::Answer* out) {
  if (!compound.state().delegations.any_writer() || !file.is_regular()) return NFS4_OK;
  // Linux's client gives back like that, and knows nothing of the delegation any more when it is
  // asked then. In minor version 0 its connection may be one over which it has not said who it is.
  if (compound.minor_version() == 0 && compound.gives_back_next(file)) return NFS4_OK;
  *out = compound.state().delegations.holder_attributes.ask(file_key(file), compound.speaker(),
                                                            compound.may_block());
  switch (out->kind) {
    case HolderAttributes::Answer::Kind::kWouldBlock:
      return compound.retry(Outcome::kWouldBlock);
    case HolderAttributes::Answer::Kind::kLater:
      return NFS4ERR_DELAY;
    case HolderAttributes::Answer::Kind::kNone:
    case HolderAttributes::Answer::Kind::kKnown:
      break;
  }
  return NFS4_OK;
}

}  // namespace

bool holder_knows(const bitmap4& mask) {
  return !(mask & kHolderKnows).empty();
}

/// Nobody can tell whether that is more than the last time, so it counts as one more change.
void add_holder(Compound& compound, dev_t device, ino_t inode,
                const HolderAttributes::Answer& holder, AttributeFacts* out) {
  struct stat& attributes = out->attributes;
  const bool grew = holder.size != static_cast<std::uint64_t>(attributes.st_size);
  // A holder may say the same each time it is asked, however often it has changed the file (RFC
  // 8881 10.4.3), and that may be what was made up here the last time. Only a value that the file
  // itself has says that the holder has looked since it wrote.
  const bool changed = holder.changed && holder.change != change_of_time(attributes.st_ctim);
  if (!grew && !changed) return;
  ChangeCounter::Change change(compound.server().change_counter, device, inode);
  change.before(attributes);
  out->change = change.finish(attributes);
  attributes.st_size = static_cast<off_t>(std::min<std::uint64_t>(holder.size, INT64_MAX));
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  attributes.st_mtim = attributes.st_ctim = now;
}

nfsstat4 facts_of(Compound& compound, FileCall& call, CurrentHandle& handle, const bitmap4& mask,
                  AttributeFacts* out) {
  if (handle.kind == CurrentHandle::Kind::kPseudo) {
    *out = pseudo_facts(compound, handle);
    return NFS4_OK;
  }
  *out = common_facts(compound);
  if (handle.absent) {
    const int error = call.admit(handle.parts, Use::kLook);
    if (call.would_block()) return compound.retry(Outcome::kWouldBlock);
    return error == 0 ? absent_facts(compound, call, handle, mask, out) : status_of_errno(error);
  }
  nfsstat4 status = compound.enter(call, handle, Use::kLook);
  if (status != NFS4_OK) return status;
  const FileEntry& file = *handle.object.file;
  HolderAttributes::Answer holder;
  if (holder_knows(mask)) status = ask_holder(compound, file, &holder);
  if (status != NFS4_OK) return status;
  const bool asked = holder.kind == HolderAttributes::Answer::Kind::kKnown;
  if (mask.has(FATTR4_CHANGE) || asked) {
    ChangeCounter& counter = compound.server().change_counter;
    const auto moment = handle.object.read_after;
    if (!asked && moment && counter.now(file.device(), file.inode()) == *moment) {
      // PUTFH has just read them, and nothing has changed since.
      out->change = counter.value(handle.object.attributes, *moment);
    } else if (const int error = counter.look(file.path_fd(), file.device(), file.inode(),
                                              &handle.object.attributes, &out->change)) {
      return status_of_errno(error);
    }
  }
  out->attributes = handle.object.attributes;
  if (asked) add_holder(compound, file.device(), file.inode(), holder, out);
  out->fsid = file.fsid();
  out->handle = handle.handle.bytes();
  out->path_fd = file.path_fd();
  // What is asked of the export comes before a view, which may be of later ones.
  std::shared_ptr<MountPoint> mount;
  const std::uint64_t id = call.exported().id;
  if (mask.has(FATTR4_MOUNTED_ON_FILEID)) {
    const std::uint32_t key = file.parts().mount_key;
    if (key != 0) {
      mount = call.exported().mount(key);
    } else if (is_root_of(*call.exported().top, file)) {
      mount = call.exported().top;
    }
  }
  if (mask.has(FATTR4_FS_LOCATIONS)) status = find_locations(compound, call, handle, out);
  if (status == NFS4_OK && mount && is_root_of(*mount, file)) {
    status = find_mounted_on(compound, id, *mount, out);
  }
  return status;
}

namespace {

/// NFS4ERR_SAME, NFS4ERR_NOT_SAME or what kept it from comparing.
nfsstat4 compare(Compound& compound, const xdr::fattr4& theirs) {
  // Stricter than GETATTR, which leaves out what there is not (RFC 8881 11.4.2).
  if (compound.current.absent && (!theirs.attrmask.has(FATTR4_FS_LOCATIONS) ||
                                  !theirs.attrmask.without(kAbsentAttributes).empty())) {
    return NFS4ERR_MOVED;
  }
  FileCall call(compound.server(), compound.request());
  AttributeFacts facts;
  if (const nfsstat4 status = facts_of(compound, call, compound.current, theirs.attrmask, &facts);
      status != NFS4_OK) {
    return status;
  }
  const nfsstat4 status =
      compare_attributes(theirs, facts, compound.state().owner_names(), compound.may_block());
  return status == NFS4ERR_DELAY && !compound.may_block() ? compound.retry(Outcome::kWouldBlock)
                                                          : status;
}

/// A change of the size is a write: the stateid has to allow it.
nfsstat4 check_size_change(Compound& compound, const xdr::stateid4& stateid) {
  const CurrentHandle& handle = compound.current;
  if (!handle.object.file->is_regular()) {
    if (compound.minor_version() != 0) return NFS4ERR_WRONG_TYPE;
    return handle.object.file->is_directory() ? NFS4ERR_ISDIR : NFS4ERR_INVAL;
  }
  return compound.may_access(stateid, kShareWrite);
}

}  // namespace

// --- the operations
// -------------------------------------------------------------------------------

nfsstat4 getattr(Compound& compound, const xdr::GETATTR4args& args, xdr::Encoder& result) {
  if (const nfsstat4 bad = check_requested(args.attr_request, compound.minor_version());
      bad != NFS4_OK) {
    return bad;
  }
  // To who does not ask where it went (RFC 8881 11.4.2, RFC 7530 8.3.1), rdattr_error or not: that
  // is for READDIR. The few attributes that there are anybody gets, as from Linux's server.
  if (compound.current.absent && !args.attr_request.has(FATTR4_FS_LOCATIONS) &&
      !args.attr_request.without(kAbsentAttributes).empty()) {
    return NFS4ERR_MOVED;
  }
  FileCall call(compound.server(), compound.request());
  AttributeFacts facts;
  if (const nfsstat4 status = facts_of(compound, call, compound.current, args.attr_request, &facts);
      status != NFS4_OK) {
    return status;
  }
  AttributeScratch scratch;
  xdr::FileAttributes4 attributes;
  const int error = fill_attributes(facts, args.attr_request, compound.state().owner_names(),
                                    compound.may_block(), scratch, &attributes);
  if (error == EAGAIN && !compound.may_block()) return compound.retry(Outcome::kWouldBlock);
  if (error != 0) return status_of_errno(error);
  result.u32(static_cast<std::uint32_t>(NFS4_OK));
  xdr::encode(result, attributes);
  if (facts.absent && args.attr_request.has(FATTR4_FS_LOCATIONS)) {
    compound.tells_where(call.exported().id);
  }
  return NFS4_OK;
}

nfsstat4 setattr(Compound& compound, const xdr::SETATTR4args& args, xdr::SETATTR4res& res) {
  if (compound.current.kind == CurrentHandle::Kind::kPseudo) return NFS4ERR_ROFS;
  WantedAttributes wanted;
  if (const nfsstat4 bad =
          decode_wanted(args.obj_attributes, Setting::kSetattr, compound.minor_version(),
                        compound.state().owner_names(), compound.may_block(), &wanted);
      bad != NFS4_OK) {
    return bad == NFS4ERR_DELAY && !compound.may_block() ? compound.retry(Outcome::kWouldBlock)
                                                         : bad;
  }
  FileCall call(compound.server(), compound.request());
  if (const nfsstat4 status = compound.enter(call, Use::kChange); status != NFS4_OK) return status;
  if (wanted.values.size) {
    if (const nfsstat4 bad = check_size_change(compound, args.stateid); bad != NFS4_OK) return bad;
  }
  Resolved& object = compound.current.object;
  ChangeScope scope(compound.server(), object);
  wanted.resolve_mode(scope.before().st_mode);
  NewAttributes done;
  const int error = set_attributes(call, object, wanted.values, &done);
  scope.finish();
  if (error != 0) {
    res.attrsset = wanted.attributes_set(done);
    return status_of_errno(error);
  }
  res.attrsset = wanted.requested;
  compound.wait_for_metadata(call, object);
  return NFS4_OK;
}

nfsstat4 verify(Compound& compound, const xdr::VERIFY4args& args, xdr::VERIFY4res&) {
  const nfsstat4 verdict = compare(compound, args.obj_attributes);
  return verdict == NFS4ERR_SAME ? NFS4_OK : verdict;
}

nfsstat4 nverify(Compound& compound, const xdr::NVERIFY4args& args, xdr::NVERIFY4res&) {
  const nfsstat4 verdict = compare(compound, args.obj_attributes);
  return verdict == NFS4ERR_NOT_SAME ? NFS4_OK : verdict;
}

nfsstat4 access(Compound& compound, const xdr::ACCESS4args& args, xdr::ACCESS4res& res) {
  constexpr std::uint32_t kOld = xdr::ACCESS4_READ | xdr::ACCESS4_LOOKUP | xdr::ACCESS4_MODIFY |
                                 xdr::ACCESS4_EXTEND | xdr::ACCESS4_DELETE | xdr::ACCESS4_EXECUTE;
  constexpr std::uint32_t kXattr = xdr::ACCESS4_XAREAD | xdr::ACCESS4_XAWRITE | xdr::ACCESS4_XALIST;
  const std::uint32_t known = compound.minor_version() < 2 ? kOld : kOld | kXattr;
  if ((args.access & ~known) != 0) return NFS4ERR_INVAL;
  if (compound.current.kind == CurrentHandle::Kind::kPseudo) {
    res.resok4.supported = args.access & kOld & ~xdr::ACCESS4_EXECUTE;
    res.resok4.access = args.access & (xdr::ACCESS4_READ | xdr::ACCESS4_LOOKUP);
    return NFS4_OK;
  }
  FileCall call(compound.server(), compound.request());
  if (const nfsstat4 status = compound.enter(call, Use::kLook); status != NFS4_OK) return status;
  const Resolved& object = compound.current.object;
  res.resok4.supported = args.access & access_supported(*object.file);
  res.resok4.access = access_granted(call, object, args.access);
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
