// SPDX-License-Identifier: Apache-2.0
// PathTable: where the inodes of scheme-2 handles (filehandle.h) are to be found: their parent and
// their name there, as last seen. It is a table of hints: whoever follows one checks what it found
// (inode number and time of birth), so a wrong hint makes a handle stale, never another file.
//
// Kept under the state directory in "handle-paths" as records appended with one write() each,
// rewritten at start when it holds many outdated ones. Unused (and no file is made) while all
// exports have kernel handles. Memory: about 150 bytes per object that a client has looked up;
// kMaxEntries caps it, the newest being refused then (their handles work until the cache drops
// them).
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "rpcrdma/base/result.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma {

/// An inode in one file system of one export.
struct InodeKey {
  std::uint64_t export_id = 0;
  std::uint64_t inode = 0;
  std::uint64_t birth = 0;  // seconds << 30 | nanoseconds; 0 when the file system has none
  std::uint32_t mount_key = 0;

  bool operator==(const InodeKey&) const = default;
};

class PathTable {
 public:
  static constexpr std::size_t kMaxEntries = 4u << 20;
  static constexpr std::size_t kMaxName = 255;

  explicit PathTable(std::string state_dir) : state_dir_(std::move(state_dir)) {}

  struct Place {
    std::uint64_t parent_inode = 0;
    std::uint64_t parent_birth = 0;
    std::string name;
  };
  /// `child` was seen as `name` in the directory (parent_inode, parent_birth) of the same mount.
  void note(const InodeKey& child, std::uint64_t parent_inode, std::uint64_t parent_birth,
            std::string_view name);
  bool find(const InodeKey& key, Place* place);
  std::size_t size();

 private:
  struct Hash {
    std::size_t operator()(const InodeKey& key) const {
      std::uint64_t h = key.inode * 0x9e3779b97f4a7c15u;
      h ^= (key.birth + (h >> 29)) * 0xbf58476d1ce4e5b9u;
      h ^= (key.export_id + key.mount_key + (h >> 32)) * 0x94d049bb133111ebu;
      return static_cast<std::size_t>(h ^ (h >> 31));
    }
  };
  void load_locked();
  std::size_t replay_locked(std::string_view file);
  void compact_locked();
  void append_locked(const InodeKey& child, const Place& place);

  std::string state_dir_;
  std::mutex mutex_;
  bool loaded_ = false;
  UniqueFd log_;
  std::unordered_map<InodeKey, Place, Hash> places_;
};

}  // namespace nfsrdma
