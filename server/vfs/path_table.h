// SPDX-License-Identifier: Apache-2.0
// PathTable: where the inodes of scheme-2 handles (filehandle.h) are to be found: their parent and
// their name there, as last seen. It is a table of hints: whoever follows one checks what it found
// (inode number and time of birth), so a wrong hint makes a handle stale, never another file.
//
// Kept under the state directory in "handle-paths" as records appended with one write() each, and
// rewritten at start and, by a thread of its own, when it has grown to twice of what counts:
// clients decide how often an object is seen in another place. Unused (and no file is made) while
// all exports have kernel handles. Memory: about 200 bytes per object that a client has looked up.
// Of more than `most` those go that were not seen for the longest time (their handles work until
// the cache drops them).
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "rpcrdma/base/intrusive_list.h"
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
  /// A log below this is not worth the trouble of a new one.
  static constexpr std::size_t kSmallLog = std::size_t{4} << 20;

  explicit PathTable(std::string state_dir, std::size_t most = kMaxEntries,
                     std::size_t small_log = kSmallLog)
      : path_(std::move(state_dir) + "/handle-paths"), most_(most), small_log_(small_log) {}
  /// Waits for the thread.
  ~PathTable();

  struct Place {
    std::uint64_t parent_inode = 0;
    std::uint64_t parent_birth = 0;
    std::string name;
  };
  /// `child` was seen as `name` in the directory (parent_inode, parent_birth) of the same mount.
  void note(const InodeKey& child, std::uint64_t parent_inode, std::uint64_t parent_birth,
            std::string_view name);
  bool find(const InodeKey& key, Place* place);
  /// The object is gone.
  void forget(const InodeKey& key);
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
  struct Entry : ListNode<Entry> {
    Place place;
    const InodeKey* key = nullptr;
  };
  using Entries = std::unordered_map<InodeKey, Entry, Hash>;

  void load_locked();
  std::size_t replay_locked(std::string_view file);
  void touch_locked(const InodeKey& key, Entry& entry);
  Entry& enter_locked(const InodeKey& key, Place place);
  void erase_locked(Entries::iterator entry);
  void append_locked(const InodeKey& child, const Place& place);
  std::string contents_locked();
  void compact_when_due_locked();
  void compact();
  UniqueFd write_aside(const std::string& contents) const;
  bool put_in_place_locked(UniqueFd aside, std::size_t bytes);

  const std::string path_;
  const std::size_t most_;
  const std::size_t small_log_;
  std::mutex mutex_;
  bool loaded_ = false;
  UniqueFd log_;
  std::size_t log_bytes_ = 0;
  std::size_t live_bytes_ = 0;  // of the log, if it were written anew
  std::size_t compact_at_ = 0;  // log_bytes_; so that what failed is not tried all the time
  std::string since_;           // records behind the contents that the thread writes
  bool compacting_ = false;
  std::thread thread_;
  IntrusiveList<Entry, Entry> seen_;  // of entries_; longest ago first
  Entries entries_;
};

}  // namespace nfsrdma
