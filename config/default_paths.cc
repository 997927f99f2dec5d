// SPDX-License-Identifier: Apache-2.0
#include "config/default_paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace nfsrdma {

namespace {

/// The variable when it holds an absolute path, else "".
std::string path_from(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : "";
}

/// Where there is nothing better, in a directory that everybody may write to.
std::string fallback_directory() {
  return "/tmp/nfs-rdma-" + std::to_string(::geteuid());
}

/// Another user may have made it first, or a link in its place, and would have what is below in his
/// hands.
bool is_ours(const std::string& directory) {
  struct stat st {};
  if (::lstat(directory.c_str(), &st) != 0) return false;
  if (S_ISDIR(st.st_mode) && st.st_uid == ::geteuid()) return true;
  errno = EPERM;
  return false;
}

}  // namespace

std::string default_control_socket() {
  if (::geteuid() == 0) return kSystemControlSocket;
  if (std::string dir = path_from("XDG_RUNTIME_DIR"); !dir.empty()) {
    return dir + "/nfs-rdma/control.sock";
  }
  return fallback_directory() + "/control.sock";
}

std::string default_state_dir() {
  if (std::string dir = path_from("STATE_DIRECTORY"); !dir.empty()) {
    return dir.substr(0, dir.find(':'));
  }
  if (::geteuid() == 0) return "/var/lib/nfs-rdma";
  if (std::string dir = path_from("XDG_STATE_HOME"); !dir.empty()) return dir + "/nfs-rdma";
  if (std::string dir = path_from("HOME"); !dir.empty()) return dir + "/.local/state/nfs-rdma";
  return fallback_directory() + "/state";
}

bool make_directories(const std::string& directory, unsigned mode) {
  const std::string fallback = fallback_directory();
  if (directory == fallback || directory.starts_with(fallback + "/")) {
    if (::mkdir(fallback.c_str(), 0700) != 0 && errno != EEXIST) return false;
    if (!is_ours(fallback)) return false;
  }
  for (std::size_t slash = directory.find('/', 1); slash != std::string::npos;
       slash = directory.find('/', slash + 1)) {
    if (::mkdir(directory.substr(0, slash).c_str(), 0755) != 0 && errno != EEXIST) return false;
  }
  if (::mkdir(directory.c_str(), mode) == 0) return true;
  struct stat st {};
  if (errno != EEXIST || ::stat(directory.c_str(), &st) != 0) return false;
  errno = ENOTDIR;
  return S_ISDIR(st.st_mode);
}

}  // namespace nfsrdma
