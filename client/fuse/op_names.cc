// SPDX-License-Identifier: Apache-2.0
// FUSE operations on names and attributes.
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "client/fuse/fuse_operations.h"

namespace nfsrdma {
namespace {

std::optional<SetAttributes::Time> time_to_set(int which, int now_bit, int value_bit,
                                               const timespec& value) {
  if (which & now_bit) return SetAttributes::Time{true, {}};
  if (which & value_bit) return SetAttributes::Time{false, value};
  return {};
}

SetAttributes to_set(const struct stat& wanted, int which) {
  SetAttributes set;
  if (which & FUSE_SET_ATTR_MODE) set.mode = wanted.st_mode & 07777;
  if (which & FUSE_SET_ATTR_UID) set.uid = wanted.st_uid;
  if (which & FUSE_SET_ATTR_GID) set.gid = wanted.st_gid;
  if (which & FUSE_SET_ATTR_SIZE) set.size = static_cast<std::uint64_t>(wanted.st_size);
  set.atime = time_to_set(which, FUSE_SET_ATTR_ATIME_NOW, FUSE_SET_ATTR_ATIME, wanted.st_atim);
  set.mtime = time_to_set(which, FUSE_SET_ATTR_MTIME_NOW, FUSE_SET_ATTR_MTIME, wanted.st_mtim);
  return set;
}

SetAttributes with_mode(mode_t mode) {
  SetAttributes set;
  set.mode = mode & 07777;
  return set;
}

std::optional<FileType> special_type(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFIFO:
      return FileType::kFifo;
    case S_IFSOCK:
      return FileType::kSocket;
    case S_IFBLK:
      return FileType::kBlock;
    case S_IFCHR:
      return FileType::kCharacter;
    default:
      return {};
  }
}

}  // namespace

Task<void> FuseOperations::lookup(fuse_req_t raw, fuse_ino_t parent, std::string name) {
  Request request(*this, raw);
  NodeRef directory = fs.nodes.find(parent);
  if (directory == nullptr) co_return request.error(ESTALE);
  if (name == ".") co_return reply_entry(request, directory, *directory);
  NodeRef node;
  const int error = co_await fs.lookup(request.context(), directory, name, &node);
  if (error == 0) co_return reply_entry(request, node, *directory);
  const double seconds = fs.entry_seconds(*directory);
  if (error != ENOENT || !fs.options.cache_absent_names || seconds <= 0) {
    co_return request.error(error);
  }
  fuse_entry_param absent{};
  absent.entry_timeout = seconds;
  request.entry(absent);
}

Task<void> FuseOperations::make(Request& request, NodeRef parent, std::string name,
                                FileSystem::Maker maker) {
  if (parent == nullptr) co_return request.error(ESTALE);
  NodeRef node;
  const int error =
      co_await fs.make(request.context(), parent, std::move(name), std::move(maker), &node);
  if (error != 0) co_return request.error(error);
  reply_entry(request, node, *parent);
}

Task<int> FuseOperations::mask_mode(Request& request, NodeRef parent, mode_t* mode) {
  if (parent == nullptr) co_return ESTALE;
  if (!masks_modes_) co_return 0;
  co_return co_await fs.mask_mode(request.context(), parent, request.umask(), mode);
}

Task<void> FuseOperations::mkdir(fuse_req_t raw, fuse_ino_t parent, std::string name, mode_t mode) {
  Request request(*this, raw);
  NodeRef directory = fs.nodes.find(parent);
  if (const int error = co_await mask_mode(request, directory, &mode)) {
    co_return request.error(error);
  }
  const SetAttributes set = with_mode(mode);
  const RequestContext context = request.context();
  co_await make(request, directory, name, [&](Remote& remote) {
    return remote.mkdir(context, directory->handle, name, set);
  });
}

Task<void> FuseOperations::mknod(fuse_req_t raw, fuse_ino_t parent, std::string name, mode_t mode,
                                 dev_t device) {
  Request request(*this, raw);
  NodeRef directory = fs.nodes.find(parent);
  if (const int error = co_await mask_mode(request, directory, &mode)) {
    co_return request.error(error);
  }
  const SetAttributes set = with_mode(mode);
  const RequestContext context = request.context();
  const std::optional<FileType> type = special_type(mode);
  co_await make(request, directory, name, [&](Remote& remote) {
    if (!type) {
      return remote.create(context, directory->handle, name, CreateMode::kGuarded, set);
    }
    return remote.mknod(context, directory->handle, name, *type, gnu_dev_major(device),
                        gnu_dev_minor(device), set);
  });
}

Task<void> FuseOperations::symlink(fuse_req_t raw, std::string text, fuse_ino_t parent,
                                   std::string name) {
  Request request(*this, raw);
  NodeRef directory = fs.nodes.find(parent);
  const RequestContext context = request.context();
  co_await make(request, directory, name, [&](Remote& remote) {
    return remote.symlink(context, directory->handle, name, text);
  });
}

Task<void> FuseOperations::link(fuse_req_t raw, fuse_ino_t ino, fuse_ino_t parent,
                                std::string name) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  NodeRef directory = fs.nodes.find(parent);
  if (node == nullptr || directory == nullptr) co_return request.error(ESTALE);
  const int error = co_await fs.link(request.context(), node, directory, std::move(name));
  if (error != 0) co_return request.error(error);
  reply_entry(request, node, *directory);
}

Task<void> FuseOperations::unlink(fuse_req_t raw, fuse_ino_t parent, std::string name) {
  Request request(*this, raw);
  NodeRef directory = fs.nodes.find(parent);
  if (directory == nullptr) co_return request.error(ESTALE);
  request.error(co_await fs.remove(request.context(), directory, std::move(name)));
}

Task<void> FuseOperations::rmdir(fuse_req_t raw, fuse_ino_t parent, std::string name) {
  Request request(*this, raw);
  NodeRef directory = fs.nodes.find(parent);
  if (directory == nullptr) co_return request.error(ESTALE);
  request.error(co_await fs.rmdir(request.context(), directory, std::move(name)));
}

Task<void> FuseOperations::rename(fuse_req_t raw, fuse_ino_t parent, std::string name,
                                  fuse_ino_t new_parent, std::string new_name, unsigned flags) {
  Request request(*this, raw);
  NodeRef from = fs.nodes.find(parent);
  NodeRef to = fs.nodes.find(new_parent);
  if (from == nullptr || to == nullptr) co_return request.error(ESTALE);
  // NFSv3 knows neither RENAME_NOREPLACE nor RENAME_EXCHANGE.
  if (flags != 0) co_return request.error(EINVAL);
  request.error(
      co_await fs.rename(request.context(), from, std::move(name), to, std::move(new_name)));
}

Task<void> FuseOperations::readlink(fuse_req_t raw, fuse_ino_t ino) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  if (node == nullptr) co_return request.error(ESTALE);
  std::string text;
  const int error = co_await fs.readlink(request.context(), node, &text);
  if (error != 0) co_return request.error(error);
  request.link_text(text);
}

Task<void> FuseOperations::getattr(fuse_req_t raw, fuse_ino_t ino) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  if (node == nullptr) co_return request.error(ESTALE);
  const int error = co_await fs.refresh(request.context(), node);
  if (error != 0) co_return request.error(error);
  reply_attributes(request, *node);
}

Task<void> FuseOperations::setattr(fuse_req_t raw, fuse_ino_t ino, struct stat wanted, int which,
                                   OpenFile* file) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  if (node == nullptr) co_return request.error(ESTALE);
  // ftruncate(2) was allowed when the file was opened, and goes by its opener.
  const bool as_opener = file != nullptr && (which & FUSE_SET_ATTR_SIZE) != 0;
  const RequestContext context = as_opener ? request.as(file->caller) : request.context();
  int error = 0;
  if (which & FUSE_SET_ATTR_SIZE) {
    error = co_await fs.permit_cut(context, node, as_opener ? file->flags : O_RDONLY);
  }
  if (error == 0) error = co_await fs.setattr(context, node, to_set(wanted, which));
  if (error != 0) co_return request.error(error);
  reply_attributes(request, *node);
}

Task<void> FuseOperations::access(fuse_req_t raw, fuse_ino_t ino, int mask) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  if (node == nullptr) co_return request.error(ESTALE);
  const bool directory = node->is_directory();
  std::uint32_t rights = 0;
  if (mask & R_OK) rights |= access_bits::kRead;
  if (mask & W_OK) {
    rights |= access_bits::kModify;
    if (directory) rights |= access_bits::kExtend;
  }
  if (mask & X_OK) rights |= directory ? access_bits::kLookup : access_bits::kExecute;
  // Existence alone is known already.
  if (rights == 0) co_return request.error(0);
  // This is what the kernel asks for chdir(2), too, and a current directory that was replaced
  // cannot be followed later: like opening it.
  const bool ask = directory && (mask & X_OK) != 0 && fs.options.close_to_open;
  request.error(co_await fs.permit(request.context(), node, rights, ask));
}

Task<void> FuseOperations::statfs(fuse_req_t raw, fuse_ino_t ino) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  if (node == nullptr) node = fs.root;
  FsStat found;
  const int error = co_await fs.space(request.context(), node, &found);
  if (error != 0) co_return request.error(error);
  constexpr std::uint64_t kUnit = 4096;
  struct statvfs space {};
  space.f_bsize = kUnit;
  space.f_frsize = kUnit;
  space.f_blocks = found.total_bytes / kUnit;
  space.f_bfree = found.free_bytes / kUnit;
  space.f_bavail = found.available_bytes / kUnit;
  space.f_files = found.total_files;
  space.f_ffree = found.free_files;
  space.f_favail = found.available_files;
  space.f_namemax = 255;
  request.space(space);
}

}  // namespace nfsrdma
