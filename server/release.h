// SPDX-License-Identifier: Apache-2.0
// Releasing a file, or all of a file system, as an administrator asks for (`nfs-rdma release`):
// what clients hold there is taken away, and the server itself keeps nothing of it open any more,
// so that the file system can be unmounted once it is no longer exported.
//
// Both functions may block for as long as the file system does: for a thread of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rpcrdma/base/result.h"
#include "server/server_context.h"
#include "server/vfs/file_scope.h"

namespace nfsrdma {

struct ReleaseTarget {
  std::string path;         // without symbolic links
  std::string mount_point;  // of the file system that it is in
  bool whole = false;       // that is `path`: all of the file system
  int mount_id = -1;        // as statx(2) has it; -1: it has not
  FileScope files;
};
/// What `path` stands for: a file, or the root of a mounted file system. Else nothing, and *why
/// says it for people.
std::optional<ReleaseTarget> find_release_target(const std::string& path, std::string* why);

struct Released {
  struct Client {
    std::string id;  // as `nfs-rdma clients` shows it
    std::string address;
    std::string protocol;   // "4.2", "NLM"
    std::size_t opens = 0;  // of NLM: DOS shares
    std::size_t locks = 0;
    std::size_t delegations = 0;
  };
  std::vector<Client> clients;  // that lost something
  std::size_t files = 0;        // of which something was held
  std::size_t copies = 0;       // that went on behind their replies
  // What keeps a file system busy still:
  std::vector<std::string> exports;        // directories of it
  std::vector<std::string> reached_by;     // exports above it, by whose clients it can be entered
  std::vector<std::string> mounted_below;  // other file systems
  std::size_t in_use = 0;                  // files, by calls under way
  bool has_state_directory = false;
};
/// `state_dir`: the server's own.
Released release(ServerContext& server, const ReleaseTarget& target, const std::string& state_dir);

/// {"version":1,"path":...}. `silent_threads`: of the server, which may use anything.
std::string release_document(const ReleaseTarget& target, const Released& released,
                             std::size_t silent_threads);

}  // namespace nfsrdma
