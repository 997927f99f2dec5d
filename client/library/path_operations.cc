// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include "client/library/mount_impl.h"

namespace nfsrdma::client {
namespace {

constexpr std::uint32_t kPageBytes = 64 << 10;
constexpr int kDirectoryRestarts = 3;

template <typename T>
using Outcome = nfsrdma::Result<T>;

Error errno_error(int number, const char* where) {
  return {Errc::kSystem, number, where};
}

std::uint32_t access_of(int flags) {
  const int how = flags & O_ACCMODE;
  std::uint32_t wanted = 0;
  if (how != O_WRONLY) wanted |= access_bits::kRead;
  if (how != O_RDONLY) wanted |= access_bits::kModify;
  return wanted;
}

/// May the caller open `node`, which is no regular file, this way? Asked of the server: mode bits
/// do not know about ACLs and squashing.
Task<Outcome<void>> check_access(Mount::Impl& impl, const PathNode& node, int flags) {
  const std::uint32_t wanted = access_of(flags);
  NFSRDMA_CO_TRY(AccessResult access, co_await impl.mount->access(impl.op, node.handle, wanted));
  if ((access.allowed & wanted) != wanted) co_return errno_error(EACCES, "open");
  co_return Outcome<void>();
}

Error kind_error(const PathNode& node, int flags) {
  const bool directory = node.attributes.type == FileType::kDirectory;
  if (node.attributes.type == FileType::kSymlink) return errno_error(ELOOP, "open");
  if ((flags & O_DIRECTORY) != 0 && !directory) return errno_error(ENOTDIR, "open");
  if (directory && (flags & O_ACCMODE) != O_RDONLY) return errno_error(EISDIR, "open");
  return errno_error(0, "");
}

Opened make_state(Mount::Impl& impl, const FileHandle& handle, int flags,
                  std::unique_ptr<OpenFile> opened) {
  const bool sync = (flags & (O_SYNC | O_DSYNC)) != 0;
  impl.keep(handle);
  return std::make_shared<FileState>(*impl.mount, impl.budget, handle,
                                     sync ? Stability::kFileSync : Stability::kUnstable,
                                     std::move(opened));
}

Task<Outcome<Opened>> create_at(Mount::Impl& impl, const FilePlace& where, int flags, mode_t mode,
                                std::uint32_t deny) {
  SetAttributes set;
  set.mode = mode & 07777;
  const bool exclusive = (flags & O_EXCL) != 0;
  const CreateMode how = exclusive ? CreateMode::kExclusive : CreateMode::kUnchecked;
  const OpenFiles::Share share{access_of(flags), deny};
  NFSRDMA_CO_TRY(std::unique_ptr<OpenFile> opened,
                 co_await impl.opens->create(where, how, set, share));
  const FileHandle handle = opened->handle();
  co_return make_state(impl, handle, flags, std::move(opened));
}

/// Something else than a new file may be in the way of create_with_data(): a link to be followed, a
/// directory. open_path() knows what to do about that, or how to say it.
bool may_be_there(const Error& error) {
  switch (error.sys) {
    case EACCES:
    case EEXIST:
    case EINVAL:
    case EISDIR:
    case ELOOP:
    case EOPNOTSUPP:
      return true;
    default:
      return false;
  }
}

Task<Outcome<Attributes>> write_at_once(Mount::Impl& impl, std::string path, ByteSpan data,
                                        mode_t mode) {
  NFSRDMA_CO_TRY(PathParent where, co_await impl.tree->parent(impl.op, std::move(path)));
  SetAttributes set;
  set.mode = mode & 07777;
  NFSRDMA_CO_TRY(CreateResult made,
                 co_await impl.mount->create_with_data(impl.op, where.directory, where.name,
                                                       CreateMode::kUnchecked, set, data));
  if (made.attributes) co_return *made.attributes;
  co_return co_await impl.mount->getattr(impl.op, made.handle);
}

struct Collector final : DirectoryVisitor {
  std::vector<DirectoryEntry>* out = nullptr;
  bool on_entry(const nfsrdma::DirectoryEntry& entry) override {
    if (entry.name == "." || entry.name == "..") return true;
    DirectoryEntry& mine = out->emplace_back();
    mine.name = std::string(entry.name);
    mine.fileid = entry.fileid;
    if (entry.attributes != nullptr) mine.attributes = to_stat(*entry.attributes);
    return true;
  }
};

/// False: the cookie went bad, start again.
Task<Outcome<bool>> list_once(Mount::Impl& impl, const FileHandle& directory, bool plus,
                              std::vector<DirectoryEntry>* out) {
  Collector collector;
  collector.out = out;
  DirectoryPage page;
  bool with_attributes = plus;
  while (!page.eof) {
    Outcome<DirectoryPage> next = Error{};
    // Two statements: g++ 12 miscompiles ?: around co_await.
    if (with_attributes) {
      next = co_await impl.mount->readdirplus(impl.op, directory, page.cookie, page.verifier,
                                              kPageBytes, collector);
    } else {
      next = co_await impl.mount->readdir(impl.op, directory, page.cookie, page.verifier,
                                          kPageBytes, collector);
    }
    if (!next.ok()) {
      if (with_attributes && next.error().sys == EOPNOTSUPP) {
        with_attributes = false;
        continue;
      }
      if (next.error().code == Errc::kInvalid) co_return false;
      co_return next.error();
    }
    page = *next;
  }
  co_return true;
}

}  // namespace

Task<Outcome<Opened>> open_path(Mount::Impl& impl, std::string path, int flags, mode_t mode,
                                std::uint32_t deny) {
  if (deny != 0 && !impl.mount->can_deny()) co_return errno_error(EOPNOTSUPP, "open: ShareDeny");
  if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) {
    NFSRDMA_CO_TRY(PathParent where, co_await impl.tree->parent(impl.op, std::move(path)));
    const FilePlace place{where.directory, where.name};
    co_return co_await create_at(impl, place, flags, mode, deny);
  }
  // Where a link leads may be missing: it is made there.
  std::optional<FilePlace> missing;
  const bool follow = (flags & O_NOFOLLOW) == 0;
  Outcome<PathNode> found = co_await impl.tree->resolve(impl.op, path, follow, &missing);
  if (!found.ok()) {
    const bool create = missing && (flags & O_CREAT) != 0;
    if (!create) co_return found.error();
    co_return co_await create_at(impl, *missing, flags, mode, deny);
  }
  const PathNode node = *found;
  if (const Error wrong = kind_error(node, flags); wrong.sys != 0) co_return wrong;
  std::unique_ptr<OpenFile> opened;
  if (node.attributes.type == FileType::kRegular) {
    const OpenFiles::Share share{access_of(flags), deny};
    NFSRDMA_CO_TRY(opened, co_await impl.opens->open(node.handle, share, node.place));
  } else {
    if (deny != 0) co_return errno_error(EINVAL, "open: ShareDeny is for regular files");
    NFSRDMA_CO_CHECK_OK(co_await check_access(impl, node, flags));
  }
  Opened state = make_state(impl, node.handle, flags, std::move(opened));
  if ((flags & O_TRUNC) != 0 && (flags & O_ACCMODE) != O_RDONLY && node.attributes.size != 0) {
    NFSRDMA_CO_CHECK_OK(co_await state->truncate(impl.op, 0));
  }
  co_return std::move(state);
}

Task<Outcome<std::uint64_t>> write_path(Mount::Impl& impl, std::string path, ByteSpan data,
                                        mode_t mode) {
  const std::uint32_t most = impl.mount->most_with_create();
  if (most > 0 && data.size() <= most) {
    Outcome<Attributes> done = co_await write_at_once(impl, path, data, mode);
    if (done.ok()) co_return done->size;
    if (!may_be_there(done.error())) co_return done.error();
  }
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  NFSRDMA_CO_TRY(Opened state, co_await open_path(impl, std::move(path), kFlags, mode));
  if (!data.empty()) NFSRDMA_CO_CHECK_OK(co_await state->write(impl.op, data, 0));
  NFSRDMA_CO_CHECK_OK(co_await state->flush(impl.op));
  NFSRDMA_CO_TRY(Attributes now, co_await impl.mount->getattr(impl.op, state->handle()));
  co_return now.size;
}

Task<Outcome<struct stat>> stat_path(Mount::Impl& impl, std::string path, bool follow) {
  Outcome<PathNode> node = co_await impl.tree->resolve(impl.op, std::move(path), follow);
  if (node.ok()) co_return to_stat(node->attributes);
  const ReferralMet* met = impl.tree->met(node.error());
  const bool itself = met != nullptr && met->rest.empty() && !follow;
  if (itself) co_return to_stat(met->referral.attributes());
  co_return node.error();
}

Task<Outcome<std::vector<ReferralTarget>>> referral_path(Mount::Impl& impl, std::string path) {
  Outcome<PathNode> node = co_await impl.tree->resolve(impl.op, std::move(path), true);
  std::vector<ReferralTarget> targets;
  if (node.ok()) co_return std::move(targets);
  const ReferralMet* met = impl.tree->met(node.error());
  if (met == nullptr) co_return node.error();
  for (const nfsrdma::ReferralTarget& target : met->referral.targets) {
    Outcome<std::string> there = path_at_target(*met, target);
    if (!there.ok()) continue;
    const MountSettings& here = impl.mount->settings();
    targets.push_back({target.host.empty() ? here.host : target.host, target.port, *there});
  }
  co_return std::move(targets);
}

Task<Outcome<std::vector<DirectoryEntry>>> list_path(Mount::Impl& impl, std::string path,
                                                     bool plus) {
  NFSRDMA_CO_TRY(PathNode node, co_await impl.tree->resolve(impl.op, std::move(path), true));
  if (node.attributes.type != FileType::kDirectory) co_return errno_error(ENOTDIR, "readdir");
  for (int attempt = 0; attempt < kDirectoryRestarts; ++attempt) {
    std::vector<DirectoryEntry> entries;
    NFSRDMA_CO_TRY(bool complete, co_await list_once(impl, node.handle, plus, &entries));
    if (complete) co_return std::move(entries);
  }
  co_return errno_error(EIO, "the directory keeps changing under its reader");
}

Task<Outcome<void>> rename_path(Mount::Impl& impl, std::string from, std::string to) {
  NFSRDMA_CO_TRY(PathParent source, co_await impl.tree->parent(impl.op, std::move(from)));
  NFSRDMA_CO_TRY(PathParent target, co_await impl.tree->parent(impl.op, std::move(to)));
  NFSRDMA_CO_CHECK_OK(co_await impl.mount->rename(impl.op, source.directory, source.name,
                                                  target.directory, target.name));
  co_return Outcome<void>();
}

Task<Outcome<void>> unlink_path(Mount::Impl& impl, std::string path) {
  NFSRDMA_CO_TRY(PathParent where, co_await impl.tree->parent(impl.op, std::move(path)));
  NFSRDMA_CO_CHECK_OK(co_await impl.mount->remove(impl.op, where.directory, where.name));
  co_return Outcome<void>();
}

Task<Outcome<void>> mkdir_path(Mount::Impl& impl, std::string path, mode_t mode) {
  NFSRDMA_CO_TRY(PathParent where, co_await impl.tree->parent(impl.op, std::move(path)));
  SetAttributes set;
  set.mode = mode & 07777;
  NFSRDMA_CO_CHECK_OK(co_await impl.mount->mkdir(impl.op, where.directory, where.name, set));
  co_return Outcome<void>();
}

Task<Outcome<void>> rmdir_path(Mount::Impl& impl, std::string path) {
  NFSRDMA_CO_TRY(PathParent where, co_await impl.tree->parent(impl.op, std::move(path)));
  NFSRDMA_CO_CHECK_OK(co_await impl.mount->rmdir(impl.op, where.directory, where.name));
  co_return Outcome<void>();
}

Task<Outcome<void>> symlink_path(Mount::Impl& impl, std::string target, std::string path) {
  NFSRDMA_CO_TRY(PathParent where, co_await impl.tree->parent(impl.op, std::move(path)));
  SetAttributes set;
  set.mode = 0777;
  NFSRDMA_CO_CHECK_OK(
      co_await impl.mount->symlink(impl.op, where.directory, where.name, target, set));
  co_return Outcome<void>();
}

Task<Outcome<void>> link_path(Mount::Impl& impl, std::string existing, std::string path) {
  NFSRDMA_CO_TRY(PathNode node, co_await impl.tree->resolve(impl.op, std::move(existing), false));
  NFSRDMA_CO_TRY(PathParent where, co_await impl.tree->parent(impl.op, std::move(path)));
  NFSRDMA_CO_CHECK_OK(co_await impl.mount->link(impl.op, node.handle, where.directory, where.name));
  co_return Outcome<void>();
}

Task<Outcome<std::string>> readlink_path(Mount::Impl& impl, std::string path) {
  NFSRDMA_CO_TRY(PathNode node, co_await impl.tree->resolve(impl.op, std::move(path), false));
  if (node.attributes.type != FileType::kSymlink) co_return errno_error(EINVAL, "readlink");
  co_return co_await impl.mount->readlink(impl.op, node.handle);
}

Task<Outcome<void>> setattr_path(Mount::Impl& impl, std::string path, SetAttributes set,
                                 bool follow) {
  NFSRDMA_CO_TRY(PathNode node, co_await impl.tree->resolve(impl.op, std::move(path), follow));
  NFSRDMA_CO_CHECK_OK(co_await impl.mount->setattr(impl.op, node.handle, set));
  co_return Outcome<void>();
}

Task<Outcome<FileSystemInfo>> statfs_path(Mount::Impl& impl, std::string path) {
  NFSRDMA_CO_TRY(PathNode node, co_await impl.tree->resolve(impl.op, std::move(path), true));
  NFSRDMA_CO_TRY(FsStat sizes, co_await impl.mount->fsstat(impl.op, node.handle));
  NFSRDMA_CO_TRY(PathConf names, co_await impl.mount->pathconf(impl.op, node.handle));
  FileSystemInfo info{sizes.total_bytes,       sizes.free_bytes,         sizes.available_bytes,
                      sizes.total_files,       sizes.free_files,         sizes.available_files,
                      impl.mount->read_size(), impl.mount->write_size(), names.name_max};
  co_return info;
}

}  // namespace nfsrdma::client
