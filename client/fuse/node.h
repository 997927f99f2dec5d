// SPDX-License-Identifier: Apache-2.0
// Node: what the mount knows of one object of the server. NodeTable: all of them, by the number
// that the kernel uses and by file handle.
//
// Lifetimes: the table keeps a node as long as the kernel holds lookups of it. Operations, open
// files and unwritten data hold it too (NodeRef), so that a handle never has two nodes, whose data
// would overtake each other. Numbers are never given to another object.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/fuse/access_cache.h"
#include "client/fuse/attribute_timer.h"
#include "client/fuse/name_cache.h"
#include "client/fuse/openers.h"
#include "client/fuse/remote.h"
#include "client/gate.h"
#include "client/occasion.h"

namespace nfsrdma {

class FileWriter;
class NamesAhead;
class NodeTable;
struct Node;
using NodeRef = std::shared_ptr<Node>;

/// A name that an open file was given when it was removed; removed at the last close.
struct SillyName {
  NodeRef directory;
  std::string name;
  CallerRef caller;
};

/// An owner of locks. The kernel's numbers come again when a process has ended, perhaps while its
/// locks are still on their way out: so the server is given one of our own.
struct LockingProcess {
  LockOwnerId kernel_owner = 0;
  LockOwnerId owner = 0;
  pid_t pid = 0;
};

/// An open that was to look the file up again: when that process comes back, the kernel has what it
/// was told by the look, if it was told to drop nothing more meanwhile.
struct SentBack {
  pid_t pid = 0;
  std::uint64_t drops = 0;
  bool told = false;
};

/// What a symbolic link says, and of which state of its attributes.
struct LinkText {
  std::string text;
  timespec ctime{};
  std::optional<std::uint64_t> change;

  bool is_of(const Attributes& now) const {
    return same_time(ctime, now.ctime) && change == now.change;
  }
};

struct Node : public ListNode<Node> {  // linked while open
  Node(NodeTable& its_table, std::uint64_t number, const FileHandle& its_handle);
  ~Node();

  bool is_directory() const { return attributes.type == FileType::kDirectory; }
  bool is_regular() const { return attributes.type == FileType::kRegular; }
  /// Somebody here has it open, or is about to.
  bool in_use() const { return opens > 0 || opening > 0; }

  NodeTable& table;
  const std::uint64_t id;
  const FileHandle handle;
  std::uint64_t lookups = 0;  // references of the kernel

  // --- attributes, as the server last told ---
  bool has_attributes = false;
  Attributes attributes;
  AttributeTimer timer;
  std::uint64_t applied_at = 0;  // the request clock when they were taken over
  std::uint64_t renamed_at = 0;  // the same, when we changed a name of it; 0: seen since
  AccessCache access;
  bool kernel_size_old = false;   // others changed it unknown to the kernel: it appends at its own
  bool kernel_size_high = false;  // and its own is too large
  std::vector<SentBack> sent_back;
  TimePoint not_kept_until{};  // by the kernel, since others change them
  bool revalidating = false;   // it is asked for that nobody waits for
  bool removed = false;        // its last name went away, though the server still knows it

  // --- regular files ---
  unsigned opens = 0;
  unsigned opening = 0;              // that wait for the server
  Openers openers;                   // of both kinds
  std::uint32_t opened_for = 0;      // access_bits::kRead and kModify, since it is known
  TimePoint ask_again_at{};          // for a delegation, not before that
  unsigned changes_running = 0;      // own WRITEs and SETATTRs under way
  std::uint64_t pages_outdated = 0;  // how often what the kernel has of the data became wrong
  std::uint64_t pages_told = 0;      // for how much of that it was told to drop it
  std::uint64_t pages_dropped = 0;   // and has
  std::shared_ptr<Occasion> drop;    // the last one it was told: when it is done
  std::uint64_t drops = 0;           // of pages or attributes, that the kernel was told
  bool read_into_pages = false;      // since a write past them last had them dropped
  std::unique_ptr<FileWriter> writer;
  std::unique_ptr<SillyName> silly;
  std::vector<LockingProcess> lockers;  // who may hold locks here
  unsigned unlocking = 0;               // for who is gone, under way
  Gate unlocked;                        // when one of these ends

  // --- directories ---
  NameCache names;
  std::unique_ptr<NamesAhead> names_ahead;
  unsigned silly_removals = 0;  // of names in here, under way
  /// The permissions that its default ACL lets new objects have, or kByUmask: it has none. Nothing:
  /// not known.
  std::optional<mode_t> new_modes;
  static constexpr mode_t kByUmask = ~mode_t{0};

  std::unique_ptr<LinkText> link;  // of a symbolic link, once it was asked for

  // --- the last place where it was found ---
  std::weak_ptr<Node> parent;
  std::string name;  // there
};

/// Where the server finds the file, as far as anybody here knows.
std::optional<FilePlace> place_of(const Node& node);

class NodeTable {
 public:
  /// The kernel's number of the mount's root.
  static constexpr std::uint64_t kRoot = 1;

  /// Null when the kernel has no reference any more.
  NodeRef find(std::uint64_t id) const;
  /// The same by file handle, also when only we have one.
  NodeRef find(const FileHandle& handle) const;
  /// The node of `handle`, made when there is none. The kernel does not know it yet.
  NodeRef obtain(const FileHandle& handle);
  /// The kernel was told of it once more.
  void reference(const NodeRef& node);
  /// The kernel dropped `count` references.
  void forget(std::uint64_t id, std::uint64_t count);

  /// Every node alive, also ones that only unwritten data holds. `fn` may let go of any.
  template <typename Fn>
  void for_each(Fn fn) const {
    std::vector<NodeRef> all;  // with its last reference a node leaves the table
    all.reserve(by_handle_.size());
    for (const auto& [handle, weak] : by_handle_) {
      if (NodeRef node = weak.lock()) all.push_back(std::move(node));
    }
    for (const NodeRef& node : all)
      fn(node);
  }
  std::size_t referenced() const { return by_id_.size(); }
  std::size_t alive() const { return by_handle_.size(); }

 private:
  friend struct Node;
  std::uint64_t next_id_ = kRoot;
  std::unordered_map<FileHandle, std::weak_ptr<Node>, FileHandleHash> by_handle_;
  std::unordered_map<std::uint64_t, NodeRef> by_id_;  // goes first: its nodes leave by_handle_
};

}  // namespace nfsrdma
