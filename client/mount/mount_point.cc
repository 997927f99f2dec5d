// SPDX-License-Identifier: Apache-2.0
#include "client/mount/mount_point.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "rpcrdma/base/unique_fd.h"

extern char** environ;

namespace nfsrdma {
namespace {

/// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>(std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

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

std::optional<DeviceNumber> device_of_mount(const std::string& mount_point) {
  std::ifstream file("/proc/self/mountinfo");
  std::optional<DeviceNumber> found;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, where;
    words >> id >> parent >> device >> root >> where;
    if (unescape(where) != mount_point) continue;
    DeviceNumber number;
    // The last one covers the others.
    if (std::sscanf(device.c_str(), "%u:%u", &number.major, &number.minor) == 2) found = number;
  }
  return found;
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
