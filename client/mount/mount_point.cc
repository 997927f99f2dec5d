// SPDX-License-Identifier: Apache-2.0
#include "client/mount/mount_point.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "rpcrdma/base/mountinfo.h"
#include "rpcrdma/base/unique_fd.h"

extern char** environ;

namespace nfsrdma {

Result<std::string> resolve_mount_point(const std::string& given, std::string* why) {
  char* real = ::realpath(given.c_str(), nullptr);
  if (real == nullptr) {
    const int error = errno;
    *why = error == ENOENT ? fmt::format("mount point {} does not exist", given)
                           : fmt::format("mount point {}: {}", given, std::strerror(error));
    return system_error("mount point", error);
  }
  std::string path = real;
  std::free(real);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const int error = errno;
    *why = error == ENOTCONN
               ? fmt::format("mount point {} holds a dead FUSE mount; umount it first", path)
               : fmt::format("mount point {}: {}", path, std::strerror(error));
    return system_error("mount point", error);
  }
  if (!S_ISDIR(status.st_mode)) {
    *why = fmt::format("mount point {} is not a directory", path);
    return system_error("mount point", ENOTDIR);
  }
  return path;
}

std::string fuse_unavailable() {
  UniqueFd fd(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (fd) return {};
  if (errno == ENOENT || errno == ENODEV || errno == ENXIO) {
    return "there is no /dev/fuse; load the kernel module (modprobe fuse), or give the container "
           "the device";
  }
  return fmt::format("/dev/fuse: {}", std::strerror(errno));
}

namespace {

struct MountRow {
  DeviceNumber device;
  unsigned user = 0;  // of FUSE: who mounted it
  bool ours = false;
};

/// By mount point; of several at one place the last, which covers the others.
std::map<std::string, MountRow> read_mount_table() {
  std::ifstream file("/proc/self/mountinfo");
  std::map<std::string, MountRow> table;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, where, word, type;
    words >> id >> parent >> device >> root >> where;
    // Options and optional fields end with a dash.
    while (words >> word && word != "-") {
    }
    words >> type;
    MountRow row;
    if (std::sscanf(device.c_str(), "%u:%u", &row.device.major, &row.device.minor) != 2) continue;
    row.ours = type == "fuse.nfs-rdma";
    std::string source, options;
    words >> source >> options;
    if (const std::size_t at = ("," + options).find(",user_id="); at != std::string::npos) {
      row.user = static_cast<unsigned>(std::strtoul(options.c_str() + at + 8, nullptr, 10));
    }
    table.insert_or_assign(unescape_mountinfo(where), row);
  }
  return table;
}

/// Puts the components of `path` in front of `todo`.
void prepend(std::deque<std::string>& todo, const std::string& path) {
  std::vector<std::string> names;
  std::istringstream text(path);
  for (std::string name; std::getline(text, name, '/');)
    if (!name.empty() && name != ".") names.push_back(name);
  todo.insert(todo.begin(), names.begin(), names.end());
}

}  // namespace

std::optional<DeviceNumber> device_of_mount(const std::string& mount_point) {
  const std::map<std::string, MountRow> table = read_mount_table();
  const auto it = table.find(mount_point);
  if (it == table.end()) return {};
  return it->second.device;
}

bool is_mounted_at(const std::string& mount_point, DeviceNumber device) {
  return device_of_mount(mount_point) == device;
}

std::optional<OurMount> our_mount(const std::string& path, std::string* why) {
  constexpr int kMostLinks = 40;
  const std::map<std::string, MountRow> table = read_mount_table();
  std::deque<std::string> todo;
  prepend(todo, path);
  if (path.empty() || path[0] != '/') {
    char here[PATH_MAX];
    if (::getcwd(here, sizeof here) == nullptr || here[0] != '/') {
      *why = path + ": the current directory is not mounted any more";
      return {};
    }
    prepend(todo, here);
  }
  std::vector<std::string> done;  // components without links
  std::vector<std::size_t> ours;  // depths of mount points of ours among them
  std::string real;
  for (int links = 0; !todo.empty();) {
    const std::string name = std::move(todo.front());
    todo.pop_front();
    if (name == "..") {
      if (done.empty()) continue;
      if (!ours.empty() && ours.back() == done.size()) ours.pop_back();
      real.resize(real.size() - done.back().size() - 1);
      done.pop_back();
      continue;
    }
    real += "/" + name;
    done.push_back(name);
    const auto it = table.find(real);
    if (it != table.end() && it->second.ours) {
      ours.push_back(done.size());
      continue;
    }
    // From the mount point on, what the names are is the server's business.
    if (!ours.empty() || it != table.end()) continue;
    char target[PATH_MAX];
    const ssize_t n = ::readlink(real.c_str(), target, sizeof target);
    if (n < 0 && errno != EINVAL) {
      *why = fmt::format("{}: {}", real, std::strerror(errno));
      return {};
    }
    if (n < 0) continue;  // no link
    if (++links > kMostLinks) {
      *why = fmt::format("{}: {}", path, std::strerror(ELOOP));
      return {};
    }
    const std::string text(target, static_cast<std::size_t>(n));
    prepend(todo, text);
    if (text[0] == '/') {
      real.clear();
      done.clear();
    } else {
      real.resize(real.size() - name.size() - 1);
      done.pop_back();
    }
  }
  for (std::string where = real; !where.empty(); where.resize(where.rfind('/'))) {
    const auto it = table.find(where);
    if (it == table.end()) continue;
    if (it->second.ours) return OurMount{it->second.device, it->second.user, where, where == real};
    break;  // another file system, mounted inside of it or beside it
  }
  *why = path + ": no FUSE mount of nfs-rdma there";
  return {};
}

void raise_read_ahead(DeviceNumber device, std::uint32_t bytes) {
  const std::string path =
      fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", device.major, device.minor);
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return;
  const std::string text = std::to_string(bytes / 1024);
  [[maybe_unused]] ssize_t n = ::write(fd.get(), text.data(), text.size());
}

Result<void> unmount_now(const std::string& mount_point, bool lazily) {
  if (::umount2(mount_point.c_str(), lazily ? MNT_DETACH : 0) == 0) return {};
  if (errno != EPERM) return system_error("umount");
  std::string program = "fusermount3", flag = lazily ? "-uzq" : "-uq", where = mount_point;
  char* arguments[] = {program.data(), flag.data(), where.data(), nullptr};
  pid_t child = -1;
  const int error = ::posix_spawnp(&child, "fusermount3", nullptr, nullptr, arguments, environ);
  if (error != 0) return system_error("fusermount3", error);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return {};
  return system_error("fusermount3", EBUSY);
}

}  // namespace nfsrdma
