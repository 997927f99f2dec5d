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

}  // namespace

std::string default_control_socket() {
  if (::geteuid() == 0) return kSystemControlSocket;
  if (std::string dir = path_from("XDG_RUNTIME_DIR"); !dir.empty()) {
    return dir + "/nfs-rdma/control.sock";
  }
  return "/tmp/nfs-rdma-" + std::to_string(::geteuid()) + "/control.sock";
}

std::string default_state_dir() {
  if (std::string dir = path_from("STATE_DIRECTORY"); !dir.empty()) {
    return dir.substr(0, dir.find(':'));
  }
  if (::geteuid() == 0) return "/var/lib/nfs-rdma";
  if (std::string dir = path_from("XDG_STATE_HOME"); !dir.empty()) return dir + "/nfs-rdma";
  if (std::string dir = path_from("HOME"); !dir.empty()) return dir + "/.local/state/nfs-rdma";
  return "/tmp/nfs-rdma-" + std::to_string(::geteuid()) + "/state";
}

bool make_directories(const std::string& directory, unsigned mode) {
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
