// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include "client/library/listing.h"
#include "client/library/referred_trees.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma::client {
namespace {

constexpr std::uint32_t kPageBytes = 64 << 10;
constexpr int kDirectoryRestarts = 3;

template <typename T>
using Outcome = nfsrdma::Result<T>;

constexpr Error kCannotDeny{Errc::kSystem, EOPNOTSUPP, "open: ShareDeny"};

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
  return {impl.shared_from_this(),
          std::make_shared<FileState>(*impl.mount, impl.budget, handle,
                                      sync ? Stability::kFileSync : Stability::kUnstable,
                                      std::move(opened))};
}

bool cuts(int flags) {
  return (flags & O_TRUNC) != 0 && (flags & O_ACCMODE) != O_RDONLY;
}

Task<Outcome<Opened>> create_at(Mount::Impl& impl, const FilePlace& where, int flags, mode_t mode,
                                std::uint32_t deny) {
  if (deny != 0 && !impl.mount->can_deny()) co_return kCannotDeny;
  SetAttributes set;
  set.mode = mode & 07777;
  const bool exclusive = (flags & O_EXCL) != 0;
  // Somebody else may make it meanwhile.
  if (cuts(flags) && !exclusive) set.size = 0;
  const CreateMode how = exclusive ? CreateMode::kExclusive : CreateMode::kUnchecked;
  const OpenFiles::Share share{access_of(flags), deny};
  NFSRDMA_CO_TRY(std::unique_ptr<OpenFile> opened,
                 co_await impl.opens->create(where, how, set, share));
  const FileHandle handle = opened->handle();
  const bool written = impl.budget.find(handle) != nullptr;
  Opened file = make_state(impl, handle, flags, std::move(opened));
  // It was cut in front of what others have written, and write again behind a restart.
  if (cuts(flags) && written) NFSRDMA_CO_CHECK_OK(co_await file.state->truncate(impl.op, 0));
  co_return std::move(file);
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

/// False: the cookie went bad, start again.
Task<Outcome<bool>> list_once(Mount::Impl& impl, const FileHandle& directory, bool plus,
                              Listing* listing) {
  DirectoryPage page;
  while (!page.eof) {
    Outcome<DirectoryPage> next = Error{};
    // Two statements: g++ 12 miscompiles ?: around co_await.
    if (plus) {
      next = co_await impl.mount->readdirplus(impl.op, directory, page.cookie, page.verifier,
                                              kPageBytes, *listing);
    } else {
      next = co_await impl.mount->readdir(impl.op, directory, page.cookie, page.verifier,
                                          kPageBytes, *listing);
    }
    if (!next.ok()) {
      if (next.error().code == Errc::kInvalid) co_return false;
      co_return next.error();
    }
    page = *next;
    NFSRDMA_CO_CHECK_OK(listing->end_page(page));
  }
  co_return true;
}

/// What an errno cannot tell the user: that it is the server's doing.
void tell_about_server(const std::string& host, const std::string& path, const Error& error) {
  if (error.code != Errc::kProtocol && error.code != Errc::kExhausted) return;
  log_warning("server {}: '{}': {}", terminal_text(host), terminal_text(path), error.message());
}

/// PathTree::resolve() and parent(), of whatever tree the path leads to; *at, which is where it
/// begins, becomes that. It outlives the Task like *missing.
Task<Outcome<PathNode>> resolve(Mount::Impl** at, std::string path, bool follow,
                                std::optional<FilePlace>* missing = nullptr) {
  const auto walk = [follow, missing](Mount::Impl& tree, std::string name) {
    return tree.tree->resolve(tree.op, std::move(name), follow, missing);
  };
  co_return co_await along<PathNode>(at, std::move(path), walk);
}

Task<Outcome<PathParent>> parent(Mount::Impl** at, std::string path) {
  const auto walk = [](Mount::Impl& tree, std::string name) {
    return tree.tree->parent(tree.op, std::move(name));
  };
  co_return co_await along<PathParent>(at, std::move(path), walk);
}

/// The attributes behind it. EOPNOTSUPP: it takes more than one request.
Task<Outcome<Attributes>> write_at_once(Mount::Impl& impl, std::string path, ByteSpan data,
                                        mode_t mode) {
  Mount::Impl* at = &impl;
  NFSRDMA_CO_TRY(PathParent where, co_await parent(&at, std::move(path)));
  if (data.size() > at->mount->most_with_create()) co_return errno_error(EOPNOTSUPP, "write");
  SetAttributes set;
  set.mode = mode & 07777;
  NFSRDMA_CO_TRY(CreateResult made,
                 co_await at->mount->create_with_data(at->op, where.directory, where.name,
                                                      CreateMode::kUnchecked, set, data));
  // Behind what was written to it by Files that are open: what they write again after a restart
  // would come on top of this.
  if (at->budget.find(made.handle) != nullptr) co_return errno_error(EEXIST, "open");
  if (made.attributes) co_return *made.attributes;
  co_return co_await at->mount->getattr(at->op, made.handle);
}

/// Of what a path has led to: of a file that is open here, with what the server may have lost.
Task<Outcome<struct stat>> status_of(Mount::Impl& impl, const PathNode& node) {
  const std::shared_ptr<FileData> open_here = impl.budget.find(node.handle);
  if (open_here == nullptr || !open_here->in_doubt()) co_return to_stat(node.attributes);
  NFSRDMA_CO_TRY(const Attributes now, co_await open_here->getattr(impl.op));
  co_return to_stat(now);
}

/// lstat(), in one tree: a referral is shown, not followed.
Task<Outcome<struct stat>> look_at(Mount::Impl& impl, std::string path, std::string* leads) {
  Outcome<PathNode> node = co_await impl.tree->resolve(impl.op, std::move(path), false);
  if (node.ok()) co_return co_await status_of(impl, *node);
  const ReferralMet* met = impl.tree->met(node.error());
  if (met == nullptr || !met->rest.empty()) co_return node.error();
  if (leads != nullptr) *leads = met->referral.text();
  co_return to_stat(met->referral.attributes());
}

Task<Outcome<Opened>> open_node(Mount::Impl& impl, const PathNode& node, int flags,
                                std::uint32_t deny) {
  if (deny != 0 && !impl.mount->can_deny()) co_return kCannotDeny;
  if (const Error wrong = kind_error(node, flags); wrong.sys != 0) co_return wrong;
  std::unique_ptr<OpenFile> opened;
  if (node.attributes.type == FileType::kRegular) {
    const OpenFiles::Share share{access_of(flags), deny};
    NFSRDMA_CO_TRY(opened, co_await impl.opens->open(node.handle, share, node.place));
  } else {
    if (deny != 0) co_return errno_error(EINVAL, "open: ShareDeny is for regular files");
    NFSRDMA_CO_CHECK_OK(co_await check_access(impl, node, flags));
  }
  // What others have written may be lost on the server, and come back to it.
  const bool written = impl.budget.find(node.handle) != nullptr;
  Opened file = make_state(impl, node.handle, flags, std::move(opened));
  file.found = node.attributes;
  if (cuts(flags) && (node.attributes.size != 0 || written)) {
    NFSRDMA_CO_CHECK_OK(co_await file.state->truncate(impl.op, 0));
  }
  co_return std::move(file);
}

}  // namespace

Task<Outcome<Opened>> open_path(Mount::Impl& impl, std::string path, int flags, mode_t mode,
                                std::uint32_t deny) {
  // Version 3 knows of no referrals either.
  if (deny != 0 && !impl.mount->can_deny()) co_return kCannotDeny;
  Mount::Impl* at = &impl;
  if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) {
    NFSRDMA_CO_TRY(PathParent where, co_await parent(&at, std::move(path)));
    const FilePlace place{where.directory, where.name};
    co_return co_await create_at(*at, place, flags, mode, deny);
  }
  // Where a link leads may be missing: it is made there.
  std::optional<FilePlace> missing;
  const bool follow = (flags & O_NOFOLLOW) == 0;
  Outcome<PathNode> found = co_await resolve(&at, path, follow, &missing);
  if (!found.ok()) {
    const bool create = missing && (flags & O_CREAT) != 0;
    if (!create) co_return found.error();
    co_return co_await create_at(*at, *missing, flags, mode, deny);
  }
  co_return co_await open_node(*at, *found, flags, deny);
}

Task<Outcome<std::uint64_t>> write_path(Mount::Impl& impl, std::string path, ByteSpan data,
                                        mode_t mode, bool follow) {
  const std::uint32_t most = impl.mount->most_with_create();
  if (most > 0 && data.size() <= most) {
    Outcome<Attributes> done = co_await write_at_once(impl, path, data, mode);
    if (done.ok()) co_return done->size;
    if (!may_be_there(done.error())) co_return done.error();
  }
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | (follow ? 0 : O_NOFOLLOW);
  NFSRDMA_CO_TRY(Opened file, co_await open_path(impl, std::move(path), flags, mode));
  Mount::Impl& its = *file.mount;
  if (!data.empty()) NFSRDMA_CO_CHECK_OK(co_await file.state->write(its.op, data, 0));
  NFSRDMA_CO_CHECK_OK(co_await file.state->flush(its.op));
  NFSRDMA_CO_TRY(Attributes now, co_await its.mount->getattr(its.op, file.state->handle()));
  co_return now.size;
}

Task<Outcome<struct stat>> stat_path(Mount::Impl& impl, std::string path, bool follow,
                                     std::string* leads) {
  Mount::Impl* at = &impl;
  if (leads != nullptr) leads->clear();
  if (follow) {
    NFSRDMA_CO_TRY(PathNode node, co_await resolve(&at, std::move(path), true));
    co_return co_await status_of(*at, node);
  }
  const auto look = [leads](Mount::Impl& tree, std::string name) {
    return look_at(tree, std::move(name), leads);
  };
  co_return co_await along<struct stat>(&at, std::move(path), look);
}

Task<Outcome<Looked>> look_path(Mount::Impl& impl, std::string path) {
  Mount::Impl* at = &impl;
  NFSRDMA_CO_TRY(PathNode node, co_await resolve(&at, std::move(path), true));
  NFSRDMA_CO_TRY(const struct stat status, co_await status_of(*at, node));
  co_return Looked{at->shared_from_this(), status};
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
  Mount::Impl* at = &impl;
  NFSRDMA_CO_TRY(PathNode node, co_await resolve(&at, path, true));
  if (node.attributes.type != FileType::kDirectory) co_return errno_error(ENOTDIR, "readdir");
  for (int attempt = 0; attempt < kDirectoryRestarts; ++attempt) {
    Listing listing;
    Outcome<bool> complete = co_await list_once(*at, node.handle, plus, &listing);
    if (!complete.ok()) {
      tell_about_server(at->mount->settings().host, path, complete.error());
      co_return complete.error();
    }
    if (*complete) co_return listing.take();
  }
  co_return errno_error(EIO, "the directory keeps changing under its reader");
}

Task<Outcome<void>> rename_path(Mount::Impl& impl, std::string from, std::string to) {
  Mount::Impl *from_at = &impl, *to_at = &impl;
  NFSRDMA_CO_TRY(PathParent source, co_await parent(&from_at, std::move(from)));
  NFSRDMA_CO_TRY(PathParent target, co_await parent(&to_at, std::move(to)));
  if (from_at != to_at) co_return errno_error(EXDEV, "rename");
  NFSRDMA_CO_CHECK_OK(co_await to_at->mount->rename(to_at->op, source.directory, source.name,
                                                    target.directory, target.name));
  co_return Outcome<void>();
}

Task<Outcome<void>> unlink_path(Mount::Impl& impl, std::string path) {
  Mount::Impl* at = &impl;
  NFSRDMA_CO_TRY(PathParent where, co_await parent(&at, std::move(path)));
  NFSRDMA_CO_CHECK_OK(co_await at->mount->remove(at->op, where.directory, where.name));
  co_return Outcome<void>();
}

Task<Outcome<void>> mkdir_path(Mount::Impl& impl, std::string path, mode_t mode) {
  Mount::Impl* at = &impl;
  NFSRDMA_CO_TRY(PathParent where, co_await parent(&at, std::move(path)));
  SetAttributes set;
  set.mode = mode & 07777;
  NFSRDMA_CO_CHECK_OK(co_await at->mount->mkdir(at->op, where.directory, where.name, set));
  co_return Outcome<void>();
}

Task<Outcome<void>> rmdir_path(Mount::Impl& impl, std::string path) {
  Mount::Impl* at = &impl;
  NFSRDMA_CO_TRY(PathParent where, co_await parent(&at, std::move(path)));
  NFSRDMA_CO_CHECK_OK(co_await at->mount->rmdir(at->op, where.directory, where.name));
  co_return Outcome<void>();
}

Task<Outcome<void>> symlink_path(Mount::Impl& impl, std::string target, std::string path) {
  Mount::Impl* at = &impl;
  NFSRDMA_CO_TRY(PathParent where, co_await parent(&at, std::move(path)));
  SetAttributes set;
  set.mode = 0777;
  NFSRDMA_CO_CHECK_OK(
      co_await at->mount->symlink(at->op, where.directory, where.name, target, set));
  co_return Outcome<void>();
}

Task<Outcome<void>> link_path(Mount::Impl& impl, std::string existing, std::string path) {
  Mount::Impl *file_at = &impl, *at = &impl;
  NFSRDMA_CO_TRY(PathNode node, co_await resolve(&file_at, std::move(existing), false));
  NFSRDMA_CO_TRY(PathParent where, co_await parent(&at, std::move(path)));
  if (file_at != at) co_return errno_error(EXDEV, "link");
  NFSRDMA_CO_CHECK_OK(co_await at->mount->link(at->op, node.handle, where.directory, where.name));
  co_return Outcome<void>();
}

Task<Outcome<std::string>> readlink_path(Mount::Impl& impl, std::string path) {
  Mount::Impl* at = &impl;
  NFSRDMA_CO_TRY(PathNode node, co_await resolve(&at, std::move(path), false));
  if (node.attributes.type != FileType::kSymlink) co_return errno_error(EINVAL, "readlink");
  co_return co_await at->mount->readlink(at->op, node.handle);
}

Task<Outcome<void>> setattr_path(Mount::Impl& impl, std::string path, SetAttributes set,
                                 bool follow) {
  Mount::Impl* at = &impl;
  NFSRDMA_CO_TRY(PathNode node, co_await resolve(&at, std::move(path), follow));
  if (const auto written = at->budget.find(node.handle)) {
    co_return co_await written->change(at->op, set);
  }
  NFSRDMA_CO_CHECK_OK(co_await at->mount->setattr(at->op, node.handle, set));
  co_return Outcome<void>();
}

Task<Outcome<FileSystemInfo>> statfs_path(Mount::Impl& impl, std::string path) {
  Mount::Impl* at = &impl;
  NFSRDMA_CO_TRY(PathNode node, co_await resolve(&at, std::move(path), true));
  AsyncMount& mount = *at->mount;
  NFSRDMA_CO_TRY(FsStat sizes, co_await mount.fsstat(at->op, node.handle));
  NFSRDMA_CO_TRY(PathConf names, co_await mount.pathconf(at->op, node.handle));
  FileSystemInfo info{sizes.total_bytes, sizes.free_bytes,   sizes.available_bytes,
                      sizes.total_files, sizes.free_files,   sizes.available_files,
                      mount.read_size(), mount.write_size(), names.name_max};
  co_return info;
}

}  // namespace nfsrdma::client
