// SPDX-License-Identifier: Apache-2.0
// PathTree: paths over an AsyncMount. Walks components with LOOKUP and follows symbolic links.
// Paths are relative to a base below the mount's root (the rest of a URL's path behind the export).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/async_mount.h"

namespace nfsrdma {

struct PathNode {
  FileHandle handle;
  Attributes attributes;
  std::optional<FilePlace> place{};  // unless it is where the path began
};

struct PathParent {
  FileHandle directory;
  std::string name;
};

class PathTree {
 public:
  static constexpr int kMaxLinks = 40;

  /// `mount` outlives this.
  PathTree(AsyncMount& mount, std::string base);

  AsyncMount& mount() const { return mount_; }
  /// From now on what lies outside of the base is EXDEV: ".." from there, and absolute symbolic
  /// links to elsewhere.
  void keep_inside() { inside_ = true; }
  /// `op` outlives the Tasks. ENOENT: *missing (may be null, else outlives the Task too) is where
  /// the object could be made, when nothing but that is missing.
  Task<Result<PathNode>> resolve(const OpContext& op, std::string path, bool follow,
                                 std::optional<FilePlace>* missing = nullptr);
  /// The directory that holds the last component, and that component. EINVAL for paths that end in
  /// nothing, "." or "..".
  Task<Result<PathParent>> parent(const OpContext& op, std::string path);
  /// The referral that resolve() or parent() met; null: it met none, or the server does not say
  /// where it leads. `error` is what that call ended with, and comes here before anything else is
  /// awaited: other calls of the mount are under way, and may meet others.
  const ReferralMet* met(const Error& error) const {
    return is_referral_met(error) && met_ ? &*met_ : nullptr;
  }
  /// Is `met` the base of this tree, or a directory above that?
  bool is_above(const ReferralMet& met) const;
  /// One name in a directory, with its attributes.
  Task<Result<PathNode>> child(const OpContext& op, const FileHandle& directory,
                               std::string_view name);

 private:
  struct Walk;
  Task<Result<PathNode>> walk(const OpContext& op, std::string path, bool follow,
                              std::optional<FilePlace>* missing);
  Task<Result<bool>> step(const OpContext& op, Walk& walk, bool follow);
  bool push_link(Walk& walk, const std::string& text) const;
  bool leaves_base(const Walk& walk) const;
  Task<void> note_referral(const OpContext& op, const Walk& walk, const std::string& name);

  AsyncMount& mount_;
  std::string base_;
  std::vector<FileHandle> base_chain_;   // root, ..., base; empty until the base was walked once
  std::vector<std::string> base_names_;  // of all of them but the root
  std::optional<ReferralMet> met_;
  bool inside_ = false;
};

/// Mounts the longest exported directory that is a prefix of settings.path; *rest, which outlives
/// the Task like *detail, is what is behind it.
Task<Result<std::unique_ptr<AsyncMount>>> open_longest_export(EventLoop& loop, Fabrics fabrics,
                                                              MountSettings settings,
                                                              std::string* rest,
                                                              std::string* detail);

/// What open_longest_export() finds the root with; *rest outlives it. The server hears of its end
/// by AsyncMount::unmount().
std::unique_ptr<RootFinder> longest_export_finder(std::string* rest);

/// The longest of `exports` that is `path` or a directory above it; empty: none.
std::string longest_prefix(const std::vector<std::string>& exports, std::string_view path);

/// "/a//b/../c/" into "/a/c".
std::string normalised_path(std::string_view path);

}  // namespace nfsrdma
