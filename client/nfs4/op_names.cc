// SPDX-License-Identifier: Apache-2.0
// Nfs4Operations: operations that make, remove and move names. The server keeps their replies, so
// that a lost connection leaves no doubt; a session that was lost with the server does, and then
// the object itself decides (client/doubtful.h).
#include <algorithm>
#include <random>

#include "client/nfs4/attributes_result.h"
#include "client/nfs4/call.h"
#include "client/nfs4/operations.h"

namespace nfsrdma {
namespace {

using nfs4::call;
using nfs4::CompoundReader;
using nfs4::CompoundWriter;
using nfs4::Ending;
using nfs4::kAttributes;
using nfs4::next_attributes;
using nfs4::put;
using nfs4::status_error;
using xdr::fattr4_number;
using xdr::nfs_opnum4;
using xdr::nfsstat4;

/// What `name` stands for now; an engaged optional without handle on errors other than ENOENT,
/// which prove nothing.
Task<Result<std::optional<Found>>> look(Nfs4Operations& nfs, const OpContext& op,
                                        const FileHandle& directory, std::string_view name) {
  Result<LookupResult> found = co_await nfs.lookup(op, directory, name, nullptr);
  if (found.ok()) co_return std::optional<Found>(Found{found->handle, found->attributes});
  if (found.error().sys == ENOENT) co_return std::optional<Found>();
  co_return found.error();
}

CreateResult as_created(const Found& found) {
  return {found.handle, found.attributes, {}};
}

void ask_for_object_and_directory(CompoundWriter& out) {
  out.op(nfs_opnum4::OP_GETFH);
  out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  out.op(nfs_opnum4::OP_RESTOREFH);
  out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
}

void read_object_and_directory(CompoundReader& in, nfs4::IdNames& names, CreateResult* result) {
  xdr::GETFH4res got;
  if (!in.next(nfs_opnum4::OP_GETFH, got)) return;
  result->handle = FileHandle(got.resok4.object.data);
  next_attributes(in, names, &result->attributes);
  if (in.next(nfs_opnum4::OP_RESTOREFH)) next_attributes(in, names, &result->directory.after);
}

xdr::verifier4 new_verifier() {
  static thread_local std::mt19937_64 generator{std::random_device{}()};
  xdr::verifier4 verifier;
  store_be64(verifier.data(), generator());
  return verifier;
}

xdr::FileAttributes4 directory_type() {
  xdr::FileAttributes4 values;
  values.attrmask.set(fattr4_number::FATTR4_TYPE);
  values.type = xdr::nfs_ftype4::NF4DIR;
  return values;
}

}  // namespace

Task<Result<CreateResult>> Nfs4Operations::open_new(const OpContext& op,
                                                    const FileHandle& directory,
                                                    std::string_view name,
                                                    const xdr::createhow4& how, FirstUse use,
                                                    bool* resent) {
  NFSRDMA_CO_CHECK_OK(co_await session_.allow_opens(op));
  co_return co_await new_files_.make(op, directory, name, how, use, resent);
}

Task<Result<CreateResult>> Nfs4Operations::create_exclusive(const OpContext& op,
                                                            const FileHandle& directory,
                                                            std::string_view name,
                                                            const SetAttributes& set,
                                                            FirstUse use) {
  // Minor version 0 takes none with it.
  const bool minor_0 = session_.minor() == 0;
  auto split = nfs4::ExclusiveAttributes::of(set, minor_0 ? xdr::bitmap4{} : exclusive_attributes_);
  NFSRDMA_CO_TRY(const nfs4::OwnerTexts owners, co_await names_.texts(split.at_once, op.cancel));
  const nfs4::EncodedAttributes values(split.at_once, owners);
  xdr::createhow4 how;
  how.mode = minor_0 ? xdr::createmode4::EXCLUSIVE4 : xdr::createmode4::EXCLUSIVE4_1;
  how.createverf = new_verifier();
  how.ch_createboth = {how.createverf, values.wire()};
  const std::optional<timespec> time = time_of_new_file(set, split.later);
  if (time) split.later.atime = SetAttributes::Time{.value = *time};
  const bool names_owner = split.later.uid || split.later.gid;
  const bool roomy = session_.max_operations() >= nfs4::NewFiles::kOperationsWithData;
  const bool in_one = time && creation_times_.prove() && use.data.empty() && roomy && !names_owner;
  const nfs4::EncodedAttributes later(in_one ? split.later : SetAttributes{}, {});
  bool finished = false;
  use.later = in_one ? &later.wire() : nullptr;
  use.finished = &finished;
  bool resent = false;
  Result<CreateResult> made = co_await open_new(op, directory, name, how, use, &resent);
  if (!made.ok() && nfs4::is_bad_owner(made.error()) && names_.refused(owners.by_name)) {
    co_return co_await create_exclusive(op, directory, name, set, use);
  }
  // The verifier may be in a file's times, and those are of the WRITE behind it by now.
  if (!made.ok() && !use.data.empty() && doubtful_presence(resent, made.error())) {
    made = co_await made_before(op, directory, name, split.at_once, use.data, made.error());
  } else if (!made.ok() && in_one && doubtful_presence(resent, made.error())) {
    made = co_await made_at(op, directory, name, *time, use, made.error());
    finished = made.ok();
  }
  if (!made.ok()) co_return made.error();
  Result<Wcc> done = Wcc{};
  const bool unfinished = !finished && !split.all_at_once();
  if (unfinished) done = co_await setattr(op, made->handle, split.later, nullptr);
  const bool forbidden = !done.ok() && (done.error().sys == EPERM || done.error().sys == EACCES ||
                                        done.error().sys == EINVAL);
  if (forbidden && time) {
    // To say which time it is takes more of a right than to say that it is now.
    creation_times_.refused();
    split.later.atime = SetAttributes::Time{.server_now = true};
    done = co_await setattr(op, made->handle, split.later, nullptr);
  }
  if (use.open_for != 0) locks_.finish_new(made->handle, done.ok());
  if (!done.ok()) co_return done.error();
  if (done->after) made->attributes = done->after;
  // Of a file that was made before, as of one that is lost, the times are old.
  if (made->attributes && !resent) {
    const bool told = in_one ? finished : done->after.has_value();
    creation_times_.made(rpc_.environment().now(), *made->attributes, told ? time : std::nullopt);
  }
  co_return std::move(*made);
}

std::optional<timespec> Nfs4Operations::time_of_new_file(const SetAttributes& wanted,
                                                         const SetAttributes& later) {
  if (session_.minor() == 0 || wanted.atime || !later.atime) return std::nullopt;
  return creation_times_.next(rpc_.environment().now());
}

Task<Result<CreateResult>> Nfs4Operations::made_at(const OpContext& op, const FileHandle& directory,
                                                   std::string_view name, timespec time,
                                                   FirstUse use, Error error) {
  auto found = co_await look(*this, op, directory, name);
  if (!found.ok() || !found->has_value()) co_return error;
  const Found object = **found;
  if (!exclusive_create_happened(object, time)) co_return error;
  NFSRDMA_CO_CHECK_OK(co_await open_once_more(op, object.handle, use));
  co_return as_created(object);
}

Task<Result<void>> Nfs4Operations::open_once_more(const OpContext& op, FileHandle file,
                                                  FirstUse use) {
  if (use.open_for == 0) co_return Result<void>();
  const OpenFor kept{.access = use.open_for, .deny = use.deny};
  auto opened = co_await open(op, file, 0, kept);
  if (!opened.ok() && use.deny.access != 0) co_return opened.error();
  co_return Result<void>();
}

Task<Result<CreateResult>> Nfs4Operations::made_before(const OpContext& op,
                                                       const FileHandle& directory,
                                                       std::string_view name,
                                                       const SetAttributes& set, ByteSpan data,
                                                       Error error) {
  auto found = co_await look(*this, op, directory, name);
  if (!found.ok() || !found->has_value()) co_return error;
  const Found object = **found;
  if (!object.attributes || object.attributes->size > data.size()) co_return error;
  std::vector<std::byte> content(object.attributes->size);
  std::size_t done = 0;
  bool end = false;
  while (done < content.size() && !end) {
    const std::size_t most = std::min<std::size_t>(content.size() - done, session_.max_read());
    const MutableByteSpan into(content.data() + done, most);
    Result<ReadResult> part = co_await read_once(op, object.handle, done, into);
    if (!part.ok()) co_return error;
    done += part->count;
    end = part->eof || part->count == 0;
  }
  content.resize(done);
  if (!create_with_data_happened(object, set, content, data)) co_return error;
  co_return as_created(object);
}

std::uint32_t Nfs4Operations::most_with_create() const {
  if (session_.max_operations() < nfs4::NewFiles::kOperationsWithData) return 0;
  return std::min(kMostWithCreate, session_.max_write());
}

Task<Result<CreateResult>> Nfs4Operations::create_with_data(const OpContext& op,
                                                            const FileHandle& directory,
                                                            std::string_view name, CreateMode mode,
                                                            const SetAttributes& set, ByteSpan data,
                                                            std::size_t* written) {
  *written = 0;
  FirstUse use;
  if (most_with_create() > 0) use = {0, {}, data, written};
  return create_new(op, directory, name, mode, set, use);
}

Task<Result<CreateResult>> Nfs4Operations::create_open(const OpContext& op,
                                                       const FileHandle& directory,
                                                       std::string_view name, CreateMode mode,
                                                       const SetAttributes& set, OpenFor how) {
  FirstUse use;
  use.open_for = how.access;
  if (session_.minor() > 0) use.deny = how.deny;
  return create_new(op, directory, name, mode, set, use);
}

Task<Result<CreateResult>> Nfs4Operations::create_new(const OpContext& op,
                                                      const FileHandle& directory,
                                                      std::string_view name, CreateMode mode,
                                                      const SetAttributes& set, FirstUse use) {
  if (mode == CreateMode::kExclusive) {
    co_return co_await create_exclusive(op, directory, name, set, use);
  }
  NFSRDMA_CO_TRY(const nfs4::OwnerTexts owners, co_await names_.texts(set, op.cancel));
  const nfs4::EncodedAttributes values(set, owners);
  xdr::createhow4 how;
  how.mode =
      mode == CreateMode::kGuarded ? xdr::createmode4::GUARDED4 : xdr::createmode4::UNCHECKED4;
  how.createattrs = values.wire();
  bool resent = false;
  Result<CreateResult> made = co_await open_new(op, directory, name, how, use, &resent);
  if (made.ok()) co_return std::move(*made);
  const Error error = made.error();
  if (nfs4::is_bad_owner(error) && names_.refused(owners.by_name)) {
    co_return co_await create_new(op, directory, name, mode, set, use);
  }
  // A file that is there and that the caller may not write is no failure of UNCHECKED, which asks
  // for no right to it but for setting its size.
  const bool there = mode == CreateMode::kUnchecked && error.sys == EACCES && !set.size;
  if (!there && !doubtful_presence(resent, error)) co_return error;
  if (!use.data.empty()) {
    co_return co_await made_before(op, directory, name, set, use.data, error);
  }
  auto found = co_await look(*this, op, directory, name);
  if (!found.ok() || !found->has_value()) co_return error;
  if (there) {
    const std::optional<Attributes>& attributes = (*found)->attributes;
    if (attributes && attributes->type != FileType::kRegular) co_return error;
  } else if (!create_happened(**found, set)) {
    co_return error;
  }
  NFSRDMA_CO_CHECK_OK(co_await open_once_more(op, (*found)->handle, use));
  co_return as_created(**found);
}

Task<Result<CreateResult>> Nfs4Operations::make(const OpContext& op, const FileHandle& directory,
                                                std::string_view name, const xdr::createtype4& type,
                                                const SetAttributes& set, bool* resent) {
  NFSRDMA_CO_TRY(const nfs4::OwnerTexts owners, co_await names_.texts(set, op.cancel));
  const nfs4::EncodedAttributes values(set, owners);
  CreateResult result;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(directory));
    out.op(nfs_opnum4::OP_SAVEFH);
    out.op(nfs_opnum4::OP_CREATE, xdr::CREATE4args{type, name, values.wire()});
    ask_for_object_and_directory(out);
  };
  auto parse = [&](CompoundReader& in) {
    xdr::CREATE4res created;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_SAVEFH)) return;
    if (!in.next(nfs_opnum4::OP_CREATE, created)) return;
    result.directory.change = nfs4::from_wire(created.resok4.cinfo);
    read_object_and_directory(in, names_, &result);
  };
  NFSRDMA_CO_TRY(Ending end,
                 co_await call(session_, op, {.max_results = 2048, .once = true}, build, parse));
  *resent = end.resent;
  if (!result.handle.empty()) co_return result;
  if (end.status == nfsstat4::NFS4ERR_BADOWNER && names_.refused(owners.by_name)) {
    co_return co_await make(op, directory, name, type, set, resent);
  }
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "CREATE");
  co_return Error{Errc::kProtocol, EIO, "CREATE: empty file handle"};
}

Task<Result<CreateResult>> Nfs4Operations::mkdir(const OpContext& op, const FileHandle& directory,
                                                 std::string_view name, const SetAttributes& set) {
  xdr::createtype4 type;
  type.type = xdr::nfs_ftype4::NF4DIR;
  bool resent = false;
  Result<CreateResult> made = co_await make(op, directory, name, type, set, &resent);
  if (made.ok() || !doubtful_presence(resent, made.error())) co_return made;
  auto found = co_await look(*this, op, directory, name);
  if (!found.ok() || !found->has_value() || !mkdir_happened(**found)) co_return made;
  co_return as_created(**found);
}

Task<Result<CreateResult>> Nfs4Operations::symlink(const OpContext& op, const FileHandle& directory,
                                                   std::string_view name, std::string_view target,
                                                   const SetAttributes& set) {
  xdr::createtype4 type;
  type.type = xdr::nfs_ftype4::NF4LNK;
  type.linkdata.bytes = as_bytes(target);
  bool resent = false;
  Result<CreateResult> made = co_await make(op, directory, name, type, set, &resent);
  if (made.ok() || !doubtful_presence(resent, made.error())) co_return made;
  auto found = co_await look(*this, op, directory, name);
  if (!found.ok() || !found->has_value()) co_return made;
  const Found object = **found;
  Result<std::string> text = co_await readlink(op, object.handle);
  if (!text.ok() || !symlink_happened(object, *text, target)) co_return made;
  co_return as_created(object);
}

Task<Result<CreateResult>> Nfs4Operations::mknod(const OpContext& op, const FileHandle& directory,
                                                 std::string_view name, FileType type,
                                                 std::uint32_t rdev_major, std::uint32_t rdev_minor,
                                                 const SetAttributes& set) {
  xdr::createtype4 what;
  what.type = nfs4::to_wire(type);
  what.devdata = {rdev_major, rdev_minor};
  bool resent = false;
  Result<CreateResult> made = co_await make(op, directory, name, what, set, &resent);
  if (made.ok() || !doubtful_presence(resent, made.error())) co_return made;
  auto found = co_await look(*this, op, directory, name);
  if (!found.ok() || !found->has_value()) co_return made;
  if (!mknod_happened(**found, type, rdev_major, rdev_minor)) co_return made;
  co_return as_created(**found);
}

Task<Result<LinkResult>> Nfs4Operations::link(const OpContext& op, const FileHandle& file,
                                              const FileHandle& directory, std::string_view name) {
  LinkResult result;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_SAVEFH);
    out.op(nfs_opnum4::OP_PUTFH, put(directory));
    out.op(nfs_opnum4::OP_LINK, xdr::LINK4args{name});
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
    out.op(nfs_opnum4::OP_RESTOREFH);
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  bool linked = false;
  auto parse = [&](CompoundReader& in) {
    xdr::LINK4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_SAVEFH)) return;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_LINK, got)) return;
    linked = true;
    result.directory.change = nfs4::from_wire(got.resok4.cinfo);
    next_attributes(in, names_, &result.directory.after);
    if (in.next(nfs_opnum4::OP_RESTOREFH)) next_attributes(in, names_, &result.attributes);
  };
  NFSRDMA_CO_TRY(Ending end,
                 co_await call(session_, op, {.max_results = 2048, .once = true}, build, parse));
  if (linked) co_return result;
  const Error error = status_error(end.status, "LINK");
  if (!doubtful_presence(end.resent, error)) co_return error;
  auto found = co_await look(*this, op, directory, name);
  if (!found.ok() || !found->has_value() || !link_happened(**found, file)) co_return error;
  co_return LinkResult{(*found)->attributes, {}};
}

Task<Result<RemoveResult>> Nfs4Operations::take_away(const OpContext& op,
                                                     const FileHandle& directory,
                                                     std::string_view name, bool is_directory,
                                                     const FileHandle* known) {
  // NFSv4 has one REMOVE for files and directories, POSIX has two: what the name stands for is
  // verified in front of it.
  const nfs4::EncodedAttributes type(directory_type());
  RemoveResult result;
  bool removed = false;
  bool other_kind = false;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(directory));
    out.op(nfs_opnum4::OP_SAVEFH);
    out.op(nfs_opnum4::OP_LOOKUP, xdr::LOOKUP4args{name});
    if (is_directory) {
      out.op(nfs_opnum4::OP_VERIFY, xdr::VERIFY4args{type.wire()});
    } else {
      out.op(nfs_opnum4::OP_NVERIFY, xdr::NVERIFY4args{type.wire()});
    }
    out.op(nfs_opnum4::OP_RESTOREFH);
    out.op(nfs_opnum4::OP_REMOVE, xdr::REMOVE4args{name});
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::REMOVE4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_SAVEFH)) return;
    if (!in.next(nfs_opnum4::OP_LOOKUP)) return;
    if (!in.next(is_directory ? nfs_opnum4::OP_VERIFY : nfs_opnum4::OP_NVERIFY)) {
      other_kind =
          in.status() == nfsstat4::NFS4ERR_SAME || in.status() == nfsstat4::NFS4ERR_NOT_SAME;
      return;
    }
    if (!in.next(nfs_opnum4::OP_RESTOREFH) || !in.next(nfs_opnum4::OP_REMOVE, got)) return;
    removed = true;
    result.directory.change = nfs4::from_wire(got.resok4.cinfo);
    next_attributes(in, names_, &result.directory.after);
  };
  NFSRDMA_CO_TRY(Ending end, co_await call(session_, op, {.once = true}, build, parse));
  if (removed) co_return result;
  if (other_kind) {
    co_return Error{Errc::kSystem, is_directory ? ENOTDIR : EISDIR, "REMOVE"};
  }
  const Error error = status_error(end.status, "REMOVE");
  if (!doubtful_absence(end.resent, error)) co_return error;
  auto found = co_await look(*this, op, directory, name);
  if (!found.ok() || !removal_happened(*found, known)) co_return error;
  co_return RemoveResult{};
}

Task<Result<RemoveResult>> Nfs4Operations::remove(const OpContext& op, const FileHandle& directory,
                                                  std::string_view name, const FileHandle* known) {
  return take_away(op, directory, name, false, known);
}

Task<Result<RemoveResult>> Nfs4Operations::rmdir(const OpContext& op, const FileHandle& directory,
                                                 std::string_view name, const FileHandle* known) {
  return take_away(op, directory, name, true, known);
}

Task<Result<RenameResult>> Nfs4Operations::rename(
    const OpContext& op, const FileHandle& from_directory, std::string_view from_name,
    const FileHandle& to_directory, std::string_view to_name, const FileHandle* known) {
  RenameResult result;
  bool renamed = false;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(from_directory));
    out.op(nfs_opnum4::OP_SAVEFH);
    out.op(nfs_opnum4::OP_PUTFH, put(to_directory));
    out.op(nfs_opnum4::OP_RENAME, xdr::RENAME4args{from_name, to_name});
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
    out.op(nfs_opnum4::OP_RESTOREFH);
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::RENAME4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_SAVEFH)) return;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_RENAME, got)) return;
    renamed = true;
    result.from_directory.change = nfs4::from_wire(got.resok4.source_cinfo);
    result.to_directory.change = nfs4::from_wire(got.resok4.target_cinfo);
    next_attributes(in, names_, &result.to_directory.after);
    if (in.next(nfs_opnum4::OP_RESTOREFH)) {
      next_attributes(in, names_, &result.from_directory.after);
    }
  };
  NFSRDMA_CO_TRY(Ending end,
                 co_await call(session_, op, {.max_results = 2048, .once = true}, build, parse));
  if (renamed) co_return result;
  const Error error = status_error(end.status, "RENAME");
  if (!doubtful_absence(end.resent, error)) co_return error;
  // Without an answer nobody knows which it was.
  NFSRDMA_CO_TRY(const auto from, co_await look(*this, op, from_directory, from_name));
  NFSRDMA_CO_TRY(const auto to, co_await look(*this, op, to_directory, to_name));
  if (!rename_happened(from, to, known)) co_return error;
  co_return RenameResult{};
}

}  // namespace nfsrdma
