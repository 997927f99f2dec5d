// SPDX-License-Identifier: Apache-2.0
// Nfs3Operations: operations that make, remove and move names. Each ends with the question whether
// its answer is to be believed (doubtful.h).
#include <random>

#include "client/doubtful.h"
#include "client/nfs3/call.h"
#include "client/nfs3/operations.h"

namespace nfsrdma {
namespace {

using nfs3::Answer;
using nfs3::call;
using nfs3::from_wire;
using nfs3::status_error;
using nfs3::to_wire;
using xdr::nfsproc3;
using xdr::nfsstat3;

/// What `name` stands for now; an engaged optional without handle on errors other than ENOENT,
/// which prove nothing.
Task<Result<std::optional<Found>>> look(Nfs3Operations& nfs, const OpContext& op,
                                        const FileHandle& directory, std::string_view name) {
  Result<LookupResult> found = co_await nfs.lookup(op, directory, name, nullptr);
  if (found.ok()) co_return std::optional<Found>(Found{found->handle, found->attributes});
  if (found.error().sys == ENOENT) co_return std::optional<Found>();
  co_return found.error();
}

/// The result of CREATE, MKDIR, SYMLINK and MKNOD, which look alike. The handle may be missing.
template <typename Resok>
CreateResult created(const Resok& ok) {
  CreateResult result;
  if (ok.obj.handle_follows) result.handle = FileHandle(ok.obj.handle.data);
  result.attributes = from_wire(ok.obj_attributes);
  result.directory = from_wire(ok.dir_wcc);
  return result;
}

/// The server may leave the handle out of its answer (RFC 1813, 2.6): then ask for it.
Task<Result<CreateResult>> completed(Nfs3Operations& nfs, const OpContext& op,
                                     const FileHandle& directory, std::string_view name,
                                     CreateResult result) {
  if (!result.handle.empty()) co_return result;
  Result<LookupResult> found = co_await nfs.lookup(op, directory, name, nullptr);
  if (!found.ok()) co_return found.error();
  result.handle = found->handle;
  result.attributes = found->attributes;
  co_return result;
}

CreateResult as_created(const Found& found) {
  return {found.handle, found.attributes, {}};
}

xdr::createverf3 new_verifier() {
  static thread_local std::mt19937_64 generator{std::random_device{}()};
  xdr::createverf3 verifier;
  store_be64(verifier.data(), generator());
  return verifier;
}

/// EXCLUSIVE carries no attributes and leaves the times at its verifier: set them now.
Task<Result<CreateResult>> after_exclusive(Nfs3Operations& nfs, const OpContext& op,
                                           const FileHandle& directory, std::string_view name,
                                           SetAttributes set, CreateResult result) {
  Result<CreateResult> made = co_await completed(nfs, op, directory, name, std::move(result));
  if (!made.ok()) co_return made.error();
  if (!set.atime) set.atime = SetAttributes::Time{.server_now = true};
  if (!set.mtime) set.mtime = SetAttributes::Time{.server_now = true};
  if (!set.mode) set.mode = 0600;
  Result<Wcc> done = co_await nfs.setattr(op, made->handle, set, nullptr);
  if (!done.ok()) co_return done.error();
  if (done->after) made->attributes = done->after;
  co_return std::move(*made);
}

}  // namespace

Task<Result<CreateResult>> Nfs3Operations::create(const OpContext& op, const FileHandle& directory,
                                                  std::string_view name, CreateMode mode,
                                                  const SetAttributes& set) {
  xdr::CREATE3args args;
  args.where = {to_wire(directory), name};
  args.how.mode = static_cast<xdr::createmode3>(mode);  // the same numbers
  if (mode == CreateMode::kExclusive) {
    args.how.verf = new_verifier();
  } else {
    args.how.obj_attributes = to_wire(set);
  }
  NFSRDMA_CO_TRY(Answer<xdr::CREATE3res> answer,
                 co_await call<xdr::CREATE3res>(*rpc_, op, nfsproc3::NFSPROC3_CREATE, args));
  if (answer.value.status == nfsstat3::NFS3_OK) {
    CreateResult result = created(answer.value.resok);
    if (mode == CreateMode::kExclusive) {
      co_return co_await after_exclusive(*this, op, directory, name, set, std::move(result));
    }
    co_return co_await completed(*this, op, directory, name, std::move(result));
  }
  const Error error = status_error(answer.value.status, "CREATE");
  if (mode == CreateMode::kExclusive && answer.value.status == nfsstat3::NFS3ERR_NOTSUPP) {
    co_return co_await create(op, directory, name, CreateMode::kGuarded, set);
  }
  if (!doubtful_presence(answer.resent, error)) co_return error;
  auto found = co_await look(*this, op, directory, name);
  if (!found.ok() || !found->has_value()) co_return error;
  const Found object = **found;
  if (mode == CreateMode::kExclusive) {
    if (!exclusive_create_happened(object, args.how.verf)) co_return error;
    co_return co_await after_exclusive(*this, op, directory, name, set, as_created(object));
  }
  if (!create_happened(object, set)) co_return error;
  co_return as_created(object);
}

Task<Result<CreateResult>> Nfs3Operations::mkdir(const OpContext& op, const FileHandle& directory,
                                                 std::string_view name, const SetAttributes& set) {
  const xdr::MKDIR3args args{{to_wire(directory), name}, to_wire(set)};
  NFSRDMA_CO_TRY(Answer<xdr::MKDIR3res> answer,
                 co_await call<xdr::MKDIR3res>(*rpc_, op, nfsproc3::NFSPROC3_MKDIR, args));
  if (answer.value.status == nfsstat3::NFS3_OK) {
    CreateResult result = created(answer.value.resok);
    co_return co_await completed(*this, op, directory, name, std::move(result));
  }
  const Error error = status_error(answer.value.status, "MKDIR");
  if (!doubtful_presence(answer.resent, error)) co_return error;
  auto found = co_await look(*this, op, directory, name);
  if (!found.ok() || !found->has_value() || !mkdir_happened(**found)) co_return error;
  co_return as_created(**found);
}

Task<Result<CreateResult>> Nfs3Operations::symlink(const OpContext& op, const FileHandle& directory,
                                                   std::string_view name, std::string_view target,
                                                   const SetAttributes& set) {
  const xdr::SYMLINK3args args{{to_wire(directory), name}, {to_wire(set), {as_bytes(target)}}};
  NFSRDMA_CO_TRY(Answer<xdr::SYMLINK3res> answer,
                 co_await call<xdr::SYMLINK3res>(*rpc_, op, nfsproc3::NFSPROC3_SYMLINK, args));
  if (answer.value.status == nfsstat3::NFS3_OK) {
    CreateResult result = created(answer.value.resok);
    co_return co_await completed(*this, op, directory, name, std::move(result));
  }
  const Error error = status_error(answer.value.status, "SYMLINK");
  if (!doubtful_presence(answer.resent, error)) co_return error;
  auto found = co_await look(*this, op, directory, name);
  if (!found.ok() || !found->has_value()) co_return error;
  const Found object = **found;
  Result<std::string> text = co_await readlink(op, object.handle);
  if (!text.ok() || !symlink_happened(object, *text, target)) co_return error;
  co_return as_created(object);
}

Task<Result<CreateResult>> Nfs3Operations::mknod(const OpContext& op, const FileHandle& directory,
                                                 std::string_view name, FileType type,
                                                 std::uint32_t rdev_major, std::uint32_t rdev_minor,
                                                 const SetAttributes& set) {
  xdr::MKNOD3args args;
  args.where = {to_wire(directory), name};
  args.what.type = to_wire(type);
  args.what.device = {to_wire(set), {rdev_major, rdev_minor}};
  args.what.pipe_attributes = to_wire(set);
  NFSRDMA_CO_TRY(Answer<xdr::MKNOD3res> answer,
                 co_await call<xdr::MKNOD3res>(*rpc_, op, nfsproc3::NFSPROC3_MKNOD, args));
  if (answer.value.status == nfsstat3::NFS3_OK) {
    CreateResult result = created(answer.value.resok);
    co_return co_await completed(*this, op, directory, name, std::move(result));
  }
  const Error error = status_error(answer.value.status, "MKNOD");
  if (!doubtful_presence(answer.resent, error)) co_return error;
  auto found = co_await look(*this, op, directory, name);
  if (!found.ok() || !found->has_value()) co_return error;
  if (!mknod_happened(**found, type, rdev_major, rdev_minor)) co_return error;
  co_return as_created(**found);
}

Task<Result<LinkResult>> Nfs3Operations::link(const OpContext& op, const FileHandle& file,
                                              const FileHandle& directory, std::string_view name) {
  const xdr::LINK3args args{to_wire(file), {to_wire(directory), name}};
  NFSRDMA_CO_TRY(Answer<xdr::LINK3res> answer,
                 co_await call<xdr::LINK3res>(*rpc_, op, nfsproc3::NFSPROC3_LINK, args));
  if (answer.value.status == nfsstat3::NFS3_OK) {
    co_return LinkResult{from_wire(answer.value.resok.file_attributes),
                         from_wire(answer.value.resok.linkdir_wcc)};
  }
  const Error error = status_error(answer.value.status, "LINK");
  if (!doubtful_presence(answer.resent, error)) co_return error;
  auto found = co_await look(*this, op, directory, name);
  if (!found.ok() || !found->has_value() || !link_happened(**found, file)) co_return error;
  co_return LinkResult{(*found)->attributes, {}};
}

Task<Result<RemoveResult>> Nfs3Operations::remove(const OpContext& op, const FileHandle& directory,
                                                  std::string_view name, const FileHandle* known) {
  const xdr::REMOVE3args args{{to_wire(directory), name}};
  NFSRDMA_CO_TRY(Answer<xdr::REMOVE3res> answer,
                 co_await call<xdr::REMOVE3res>(*rpc_, op, nfsproc3::NFSPROC3_REMOVE, args));
  if (answer.value.status == nfsstat3::NFS3_OK) {
    co_return RemoveResult{from_wire(answer.value.resok.dir_wcc)};
  }
  const Error error = status_error(answer.value.status, "REMOVE");
  if (!doubtful_absence(answer.resent, error)) co_return error;
  auto found = co_await look(*this, op, directory, name);
  if (!found.ok() || !removal_happened(*found, known)) co_return error;
  co_return RemoveResult{};
}

Task<Result<RemoveResult>> Nfs3Operations::rmdir(const OpContext& op, const FileHandle& directory,
                                                 std::string_view name, const FileHandle* known) {
  const xdr::RMDIR3args args{{to_wire(directory), name}};
  NFSRDMA_CO_TRY(Answer<xdr::RMDIR3res> answer,
                 co_await call<xdr::RMDIR3res>(*rpc_, op, nfsproc3::NFSPROC3_RMDIR, args));
  if (answer.value.status == nfsstat3::NFS3_OK) {
    co_return RemoveResult{from_wire(answer.value.resok.dir_wcc)};
  }
  const Error error = status_error(answer.value.status, "RMDIR");
  if (!doubtful_absence(answer.resent, error)) co_return error;
  auto found = co_await look(*this, op, directory, name);
  if (!found.ok() || !removal_happened(*found, known)) co_return error;
  co_return RemoveResult{};
}

Task<Result<RenameResult>> Nfs3Operations::rename(
    const OpContext& op, const FileHandle& from_directory, std::string_view from_name,
    const FileHandle& to_directory, std::string_view to_name, const FileHandle* known) {
  const xdr::RENAME3args args{{to_wire(from_directory), from_name},
                              {to_wire(to_directory), to_name}};
  NFSRDMA_CO_TRY(Answer<xdr::RENAME3res> answer,
                 co_await call<xdr::RENAME3res>(*rpc_, op, nfsproc3::NFSPROC3_RENAME, args));
  if (answer.value.status == nfsstat3::NFS3_OK) {
    co_return RenameResult{from_wire(answer.value.resok.fromdir_wcc),
                           from_wire(answer.value.resok.todir_wcc)};
  }
  const Error error = status_error(answer.value.status, "RENAME");
  if (!doubtful_absence(answer.resent, error)) co_return error;
  // Without an answer nobody knows which it was.
  NFSRDMA_CO_TRY(const auto from, co_await look(*this, op, from_directory, from_name));
  NFSRDMA_CO_TRY(const auto to, co_await look(*this, op, to_directory, to_name));
  if (!rename_happened(from, to, known)) co_return error;
  co_return RenameResult{};
}

}  // namespace nfsrdma
