// SPDX-License-Identifier: Apache-2.0
// The file systems of an export: describing one, and finding those mounted below (crossmnt).
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sodium.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>

#include "rpcrdma/base/mountinfo.h"
#include "server/export_mounts.h"
#include "server/export_table.h"
#include "server/vfs/fd_cache.h"
#include "server/vfs/kernel_handle.h"
#include "server/vfs/proc_path.h"

namespace nfsrdma {

namespace {

/// Does the kernel make and open handles of this file system for us?
bool kernel_handles_work(int root, int base) {
  KernelHandle handle{};
  handle.header.handle_bytes = HandleParts::kMaxBody;
  int mount_id = -1;
  if (::name_to_handle_at(root, "", &handle.header, &mount_id, AT_EMPTY_PATH) != 0) return false;
  if (handle.header.handle_type < 0 || handle.header.handle_type > 255) return false;
  UniqueFd again(::open_by_handle_at(base, &handle.header, O_PATH | O_CLOEXEC));
  return static_cast<bool>(again);
}

int mount_id_of(int fd) {
  struct statx stx;
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) != 0) return -1;
  return (stx.stx_mask & STATX_MNT_ID) != 0 ? static_cast<int>(stx.stx_mnt_id) : -1;
}

/// fattr3.fsid: the file system's own id where it has one (a UUID's hash on ext4, btrfs), so that
/// it is the same after a restart.
std::uint64_t fsid_of(int fd, dev_t device) {
  struct statfs fs;
  if (::fstatfs(fd, &fs) == 0) {
    std::uint64_t id = 0;
    static_assert(sizeof id == sizeof fs.f_fsid);
    std::memcpy(&id, &fs.f_fsid, sizeof id);
    if (id != 0) return id;
  }
  return device;
}

std::string path_of(int fd) {
  char target[4097];
  const ssize_t n = ::readlink(ProcPath(fd).c_str(), target, sizeof target - 1);
  return n < 0 ? std::string() : std::string(target, static_cast<std::size_t>(n));
}

/// `path` below `top`, without leading slash; nullopt-like empty when it is not below.
std::string_view relative_to(std::string_view path, std::string_view top) {
  if (top != "/") {
    if (path.size() <= top.size() + 1 || !path.starts_with(top) || path[top.size()] != '/') {
      return {};
    }
    return path.substr(top.size() + 1);
  }
  return path.size() > 1 ? path.substr(1) : std::string_view{};
}

std::uint32_t key_of(std::string_view relative) {
  static constexpr unsigned char kFixedKey[crypto_shorthash_KEYBYTES] = {'m', 'o', 'u', 'n', 't'};
  std::uint8_t hash[crypto_shorthash_BYTES];
  crypto_shorthash(hash, reinterpret_cast<const unsigned char*>(relative.data()), relative.size(),
                   kFixedKey);
  std::uint32_t key = 0;
  std::memcpy(&key, hash, sizeof key);
  return key == 0 ? 1 : key;  // 0 is the export's own file system
}

struct CloseListing {
  void operator()(DIR* listing) const { ::closedir(listing); }
};

/// Of the directory on which `root`, the root of a mount, is mounted; `own`, its own, where it is
/// none. Nothing when the directory above it could not be read, or did not have it at that moment.
/// stat() shows the root in its place, but not the listing.
std::optional<std::uint64_t> covered_inode(int root, std::uint64_t own) {
  UniqueFd above(::openat(root, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!above) return std::nullopt;
  const int here = mount_id_of(root);
  const int there = mount_id_of(above.get());
  if (here < 0 || there < 0) return std::nullopt;
  if (here == there) return own;
  const std::string path = path_of(root);
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::unique_ptr<DIR, CloseListing> listing(::fdopendir(above.get()));
  if (!listing) return std::nullopt;
  (void)above.release();  // the listing's
  while (const dirent* entry = ::readdir(listing.get())) {
    if (name == entry->d_name) return entry->d_ino;
  }
  return std::nullopt;
}

constexpr const char* kNoMount = "nothing is mounted there (option mountpoint)";

/// Is something mounted at `path`?
Result<void> want_mountpoint(const std::string& path) {
  struct stat here, above;
  if (::stat(path.c_str(), &here) != 0 || ::stat((path + "/..").c_str(), &above) != 0) {
    const Error error = system_error("look at the mount point");
    if (!is_absent(error)) return error;
  } else if (here.st_dev != above.st_dev || here.st_ino == above.st_ino) {
    return {};
  }
  return Error{Errc::kUnsupported, 0, kNoMount};
}

/// The directory in which the kernel knows the object, which is none itself. Nothing where that
/// says not where it lies: it has other names or none, or was opened by its handle and nobody has
/// come to it by a name.
UniqueFd directory_of(int path_fd, const struct stat& object) {
  if (object.st_nlink != 1) return {};
  const std::string path = path_of(path_fd);
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {};
  UniqueFd directory(::open(path.substr(0, slash + 1).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat named;
  const bool has_it =
      directory &&
      ::fstatat(directory.get(), path.c_str() + slash + 1, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
      named.st_ino == object.st_ino && named.st_dev == object.st_dev;
  return has_it ? std::move(directory) : UniqueFd();
}

UniqueFd open_below(int root, const std::string& relative) {
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(
      static_cast<int>(::syscall(SYS_openat2, root, relative.c_str(), &how, sizeof how)));
}

}  // namespace

std::string mount_wanted_by(const ExportClient& client, const std::string& path) {
  if (!client.options.need_mountpoint) return {};
  const std::string& where = client.options.mountpoint_path;
  return where.empty() ? path : where;
}

Result<ExportPlace> open_export_place(const ExportEntry& entry) {
  ExportPlace place;
  std::set<std::string> wanted;
  bool for_somebody = entry.clients.empty();
  for (const ExportClient& client : entry.clients) {
    const std::string where = mount_wanted_by(client, entry.path);
    if (!where.empty() && wanted.insert(where).second) {
      const Result<void> mounted = want_mountpoint(where);
      if (!mounted.ok() && !is_absent(mounted.error())) return mounted.error();
      if (!mounted.ok()) place.unmounted.insert(where);
    }
    for_somebody |= where.empty() || !place.unmounted.contains(where);
  }
  // Says why in words, and nothing behind them.
  if (!for_somebody) return Error{Errc::kUnsupported, 0, kNoMount};
  place.root.reset(::open(entry.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!place.root) return system_error("open the exported directory");
  return place;
}

bool is_absent(const Error& error) {
  return error.sys == 0 || error.sys == ENOENT || error.sys == ENOTDIR;
}

bool is_same_mount(int place, std::uint64_t device, int mount_id) {
  struct stat st;
  return ::fstat(place, &st) != 0 || (st.st_dev == device && mount_id_of(place) == mount_id);
}

Result<std::shared_ptr<MountPoint>> open_mount(UniqueFd root, std::uint32_t key,
                                               SchemeChoice choice) {
  auto mount = std::make_shared<MountPoint>();
  struct stat st;
  if (::fstat(root.get(), &st) != 0) return system_error("stat the exported directory");
  if (!S_ISDIR(st.st_mode)) return system_error("open the exported directory", ENOTDIR);
  AsServer privileged;
  mount->handle_base.reset(reopen(root.get(), O_RDONLY | O_DIRECTORY));
  if (!mount->handle_base) return system_error("open the exported directory");
  mount->key = key;
  mount->mount_id = mount_id_of(root.get());
  mount->device = st.st_dev;
  mount->root_inode = st.st_ino;
  mount->fsid = fsid_of(root.get(), st.st_dev);
  struct statvfs fs;
  mount->read_only = ::fstatvfs(root.get(), &fs) == 0 && (fs.f_flag & ST_RDONLY) != 0;
  const bool kernel =
      choice == SchemeChoice::kBest && kernel_handles_work(root.get(), mount->handle_base.get());
  mount->scheme = kernel ? HandleScheme::kKernel : HandleScheme::kInode;
  mount->root = std::move(root);
  return mount;
}

std::uint64_t MountPoint::mounted_on(bool may_block) const {
  const std::uint64_t known = mounted_on_.load(std::memory_order_relaxed);
  if (known != 0 || !may_block) return known;
  AsServer privileged;
  const std::optional<std::uint64_t> found = covered_inode(root.get(), root_inode);
  if (found) mounted_on_.store(*found, std::memory_order_relaxed);
  return found.value_or(root_inode);
}

Result<std::shared_ptr<MountPoint>> Export::adopt_mount(int root) const {
  const std::string where = path_of(root);
  const std::string_view relative = relative_to(where, real_path);
  if (relative.empty()) return system_error("cross a mount point", EXDEV);
  const std::uint32_t mount_key = key_of(relative);
  {
    std::lock_guard lock(mutex_);
    auto known = below_.find(mount_key);
    if (known != below_.end()) {
      if (known->second->mount_id == mount_id_of(root)) return known->second;
      below_.erase(known);  // something else is mounted there now
    }
  }
  UniqueFd own(::fcntl(root, F_DUPFD_CLOEXEC, 0));
  if (!own) return system_error("cross a mount point");
  NFSRDMA_TRY(std::shared_ptr<MountPoint> mount, open_mount(std::move(own), mount_key, choice_));
  mount->below = relative;
  std::lock_guard lock(mutex_);
  return below_.emplace(mount_key, std::move(mount)).first->second;
}

std::shared_ptr<MountPoint> Export::mount(std::uint32_t key) const {
  if (key == 0) return top;
  if (!crossmnt) return nullptr;
  {
    std::lock_guard lock(mutex_);
    auto known = below_.find(key);
    if (known != below_.end()) return known->second;
  }
  // A handle from before a restart: look at what is mounted below us.
  AsServer privileged;
  std::ifstream info("/proc/self/mountinfo");
  for (std::string line; std::getline(info, line);) {
    const std::string where = mount_point_in(line);
    const std::string relative(relative_to(where, real_path));
    if (relative.empty() || key_of(relative) != key) continue;
    UniqueFd fd = open_below(top->root.get(), relative);
    if (!fd) continue;
    auto adopted = adopt_mount(fd.get());
    if (adopted.ok()) return *adopted;
  }
  return nullptr;
}

void Export::forget_mounts(const std::set<std::uint64_t>& devices) const {
  std::vector<std::shared_ptr<MountPoint>> forgotten;  // closed without the lock
  std::lock_guard lock(mutex_);
  for (auto mount = below_.begin(); mount != below_.end();) {
    if (!devices.contains(mount->second->device)) {
      ++mount;
      continue;
    }
    forgotten.push_back(std::move(mount->second));
    mount = below_.erase(mount);
  }
}

bool Export::contains(int path_fd) const {
  AsServer privileged;
  UniqueFd at;
  int current = path_fd;
  if (struct stat st; ::fstat(path_fd, &st) == 0 && !S_ISDIR(st.st_mode)) {
    at = directory_of(path_fd, st);
    if (!at) return true;
    current = at.get();
  }
  ino_t last_inode = 0;
  dev_t last_device = 0;
  constexpr int kMaxDepth = 4096;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    struct stat st;
    if (::fstat(current, &st) != 0) return false;
    if (st.st_ino == top->root_inode && st.st_dev == top->device) return true;
    if (depth > 0 && st.st_ino == last_inode && st.st_dev == last_device) return false;  // "/"
    last_inode = st.st_ino;
    last_device = st.st_dev;
    UniqueFd up(::openat(current, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!up) return false;
    at = std::move(up);
    current = at.get();
  }
  return false;
}

}  // namespace nfsrdma
