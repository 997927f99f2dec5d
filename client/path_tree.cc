// SPDX-License-Identifier: Apache-2.0
#include "client/path_tree.h"

#include <algorithm>

#include "client/nfs3/mount_service.h"
#include "rpcrdma/base/path_text.h"

namespace nfsrdma {
namespace {

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) parts.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

constexpr Error kOutside{Errc::kSystem, EXDEV, "the path leads out of the export"};

std::string_view parent_path(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string_view::npos ? std::string_view("/")
                                                       : path.substr(0, slash);
}

bool worth_trying_above(const Error& error) {
  return error.sys == ENOENT || error.sys == ENOTDIR || error.sys == EACCES ||
         error.sys == EINVAL || error.sys == EPERM;
}

/// Asks for the exports and mounts the longest that fits; without such a list tries MNT from the
/// whole path upwards.
class PrefixRoot final : public RootFinder {
 public:
  explicit PrefixRoot(std::string* rest) : rest_(rest) {}

  Task<Result<void>> find_root(AsyncMount& mount, CancelToken& cancel,
                               std::string* detail) override {
    OpContext op;
    op.cancel = &cancel;
    op.identity = mount.settings().identity;
    const std::string path = normalised_path(mount.settings().path);
    if (mount.settings().version.major == 4) {
      Result<FileHandle> root = co_await mount.server_root(op);
      if (!root.ok()) co_return root.error();
      if (mount.settings().version.any) {
        NFSRDMA_CO_CHECK_OK(co_await look_at_first(op, mount, *root, path, detail));
      }
      mount.set_root({*root, "/"});
      *rest_ = path.substr(1);
      co_return Result<void>();
    }
    nfs3::MountService service(mount.loop(), mount.settings(), mount.rpc());
    service.set_cancel(&cancel);
    Result<void> found = co_await service.find(detail);
    if (!found.ok()) co_return found.error();
    Result<void> done = co_await choose(op, service, mount, path, detail);
    co_await mount.rpc().yield();
    co_return done;
  }

 private:
  /// ENOENT: version 4 does not know where the path begins, perhaps version 3 does.
  static Task<Result<void>> look_at_first(const OpContext& op, AsyncMount& mount, FileHandle root,
                                          std::string path, std::string* detail) {
    const std::vector<std::string> parts = split(path);
    if (parts.empty()) co_return Result<void>();
    Result<LookupResult> found = co_await mount.lookup(op, root, parts.front());
    if (found.ok() || found.error().sys != ENOENT) co_return Result<void>();
    *detail = path + ": " + found.error().message();
    co_return found.error();
  }
  Task<Result<void>> choose(const OpContext& op, nfs3::MountService& service, AsyncMount& mount,
                            const std::string& path, std::string* detail) {
    auto exports = co_await service.exports(op);
    std::string candidate = exports.ok() ? longest_prefix(*exports, path) : "";
    const bool listed = !candidate.empty();
    if (!listed) candidate = path;
    for (;;) {
      Result<FileHandle> handle = co_await service.mnt(op, candidate);
      if (handle.ok()) {
        mount.set_root({*handle, candidate, service.port()});
        *rest_ = candidate == "/" ? path.substr(1)
                                  : path.substr(std::min(candidate.size() + 1, path.size()));
        co_return Result<void>();
      }
      if (detail->empty()) *detail = candidate + ": " + handle.error().message();
      if (listed || candidate == "/" || !worth_trying_above(handle.error())) {
        co_return handle.error();
      }
      candidate = std::string(parent_path(candidate));
    }
  }

  std::string* rest_;
};

}  // namespace

std::string normalised_path(std::string_view path) {
  std::vector<std::string> kept;
  for (std::string& part : split(path)) {
    if (part == ".") continue;
    if (part == "..") {
      if (!kept.empty()) kept.pop_back();
    } else {
      kept.push_back(std::move(part));
    }
  }
  std::string text;
  for (const std::string& part : kept)
    text += "/" + part;
  return text.empty() ? "/" : text;
}

std::unique_ptr<RootFinder> longest_export_finder(std::string* rest) {
  return std::make_unique<PrefixRoot>(rest);
}

std::string longest_prefix(const std::vector<std::string>& exports, std::string_view path) {
  std::string best;
  for (const std::string& directory : exports) {
    const std::string normal = normalised_path(directory);
    if (lies_in(path, normal) && normal.size() > best.size()) best = normal;
  }
  return best;
}

Task<Result<std::unique_ptr<AsyncMount>>> open_longest_export(EventLoop& loop, Fabrics fabrics,
                                                              MountSettings settings,
                                                              std::string* rest,
                                                              std::string* detail) {
  const std::unique_ptr<RootFinder> finder = longest_export_finder(rest);
  co_return co_await AsyncMount::open(loop, std::move(fabrics), std::move(settings), *finder,
                                      detail);
}

/// A walk under way: where it is, and what is still to come (last component first).
struct PathTree::Walk {
  std::vector<FileHandle> chain;   // directories from the root to here
  std::vector<std::string> names;  // of all of them but the root
  std::vector<std::string> todo;
  std::optional<PathNode> here;      // set once a component was looked up
  std::optional<FilePlace> missing;  // the last component
  int links = 0;
  std::size_t base = 0;  // of `chain`, where the base ends; 0: it is not there yet

  void push(std::string_view path) {
    std::vector<std::string> parts = split(path);
    todo.insert(todo.end(), std::make_move_iterator(parts.rbegin()),
                std::make_move_iterator(parts.rend()));
  }
};

PathTree::PathTree(AsyncMount& mount, std::string base) : mount_(mount), base_(std::move(base)) {}

Task<Result<PathNode>> PathTree::child(const OpContext& op, const FileHandle& directory,
                                       std::string_view name) {
  NFSRDMA_CO_TRY(LookupResult found, co_await mount_.lookup(op, directory, name));
  if (found.attributes) co_return PathNode{found.handle, *found.attributes};
  NFSRDMA_CO_TRY(Attributes attributes, co_await mount_.getattr(op, found.handle));
  co_return PathNode{found.handle, attributes};
}

bool PathTree::push_link(Walk& walk, const std::string& text) const {
  if (text.empty() || text.front() != '/') {
    walk.push(text);
    return true;
  }
  // Absolute in the server's tree: only what lies in the export can be reached.
  const std::string target = normalised_path(text);
  const std::string root = normalised_path(mount_.root().path);
  const bool beyond = walk.base != 0;  // the base: its own path may lead where it will
  if (!lies_in(target, inside_ && beyond ? normalised_path(root + "/" + base_) : root))
    return false;
  walk.chain = {mount_.root().handle};
  walk.names.clear();
  walk.push(root == "/" ? target : std::string_view(target).substr(root.size()));
  return true;
}

bool PathTree::is_above(const ReferralMet& met) const {
  return lies_in(normalised_path(mount_.root().path + "/" + base_), met.path);
}

bool PathTree::leaves_base(const Walk& walk) const {
  return inside_ && walk.base != 0 && walk.chain.size() <= walk.base;
}

/// `name` is one, where `walk` has come to. What is behind it remains to be walked elsewhere.
Task<void> PathTree::note_referral(const OpContext& op, const Walk& walk, const std::string& name) {
  const FileHandle directory = walk.chain.back();
  Result<Referral> told = co_await mount_.referral(op, directory, name);
  met_.reset();
  if (!told.ok()) co_return;
  ReferralMet& met = met_.emplace(ReferralMet{std::move(*told), mount_.root().path, ""});
  for (const std::string& part : walk.names)
    met.path += "/" + part;
  met.path = normalised_path(met.path + "/" + name);
  for (std::size_t i = walk.todo.size(); i > 0; --i)
    met.rest += (met.rest.empty() ? "" : "/") + walk.todo[i - 1];
}

/// One component. False when there is none left.
Task<Result<bool>> PathTree::step(const OpContext& op, Walk& walk, bool follow) {
  if (walk.todo.empty()) co_return false;
  const std::string name = std::move(walk.todo.back());
  walk.todo.pop_back();
  if (walk.here) {
    // Going on behind a component: it must be a directory.
    if (walk.here->attributes.type != FileType::kDirectory) {
      co_return Error{Errc::kSystem, ENOTDIR, "path"};
    }
    walk.chain.push_back(walk.here->handle);
    walk.names.push_back(walk.here->place->name);
    walk.here.reset();
  }
  if (name == ".") co_return true;
  if (name == "..") {
    if (leaves_base(walk)) co_return kOutside;
    if (walk.chain.size() > 1) {
      walk.chain.pop_back();
      walk.names.pop_back();
    }
    co_return true;
  }
  Result<PathNode> found = co_await child(op, walk.chain.back(), name);
  if (!found.ok()) {
    const bool nothing_else = found.error().sys == ENOENT && walk.todo.empty();
    if (nothing_else) walk.missing = FilePlace{walk.chain.back(), name};
    if (is_referral_met(found.error())) co_await note_referral(op, walk, name);
    co_return found.error();
  }
  const PathNode& node = *found;
  const bool is_link = node.attributes.type == FileType::kSymlink;
  if (!is_link || (walk.todo.empty() && !follow)) {
    walk.here = node;
    walk.here->place = FilePlace{walk.chain.back(), name};
    co_return true;
  }
  if (++walk.links > kMaxLinks) co_return Error{Errc::kSystem, ELOOP, "path"};
  NFSRDMA_CO_TRY(std::string text, co_await mount_.readlink(op, node.handle));
  if (!push_link(walk, text)) co_return kOutside;
  co_return true;
}

Task<Result<PathNode>> PathTree::walk(const OpContext& op, std::string path, bool follow,
                                      std::optional<FilePlace>* missing) {
  Walk walk;
  if (base_chain_.empty()) {
    walk.chain = {mount_.root().handle};
    walk.push(path);
    walk.push(base_);
  } else {
    walk.chain = base_chain_;
    walk.names = base_names_;
    walk.push(path);
  }
  const std::size_t own = base_chain_.empty() ? split(path).size() : walk.todo.size();
  for (;;) {
    if (base_chain_.empty() && walk.todo.size() == own && walk.links == 0 && walk.here &&
        walk.here->attributes.type == FileType::kDirectory) {
      base_chain_ = walk.chain;
      base_chain_.push_back(walk.here->handle);
      base_names_ = walk.names;
      base_names_.push_back(walk.here->place->name);
    }
    if (walk.base == 0 && walk.todo.size() == own) {
      walk.base = walk.chain.size() + (walk.here ? 1 : 0);
    }
    Result<bool> more = co_await step(op, walk, follow);
    if (!more.ok()) {
      if (missing != nullptr) *missing = std::move(walk.missing);
      co_return more.error();
    }
    if (!*more) break;
  }
  if (walk.here) co_return *walk.here;
  const FileHandle directory = walk.chain.back();
  NFSRDMA_CO_TRY(Attributes attributes, co_await mount_.getattr(op, directory));
  co_return PathNode{directory, attributes};
}

Task<Result<PathNode>> PathTree::resolve(const OpContext& op, std::string path, bool follow,
                                         std::optional<FilePlace>* missing) {
  met_.reset();
  const bool from_base = !base_chain_.empty();
  Result<PathNode> node = co_await walk(op, path, follow, missing);
  const auto is_elsewhere = [](const Error& error) {
    return error.sys == ESTALE || is_moved_away(error);
  };
  if (!node.ok() && is_elsewhere(node.error()) && from_base) {
    // The base may have been replaced, or have moved: look it up once more.
    base_chain_.clear();
    co_return co_await walk(op, std::move(path), follow, missing);
  }
  co_return std::move(node);
}

Task<Result<PathParent>> PathTree::parent(const OpContext& op, std::string path) {
  // An empty path is the base itself, whose last component then is the name.
  while (!path.empty() && path.back() == '/')
    path.pop_back();
  const bool is_base = split(path).empty();
  if (is_base && inside_) co_return Error{Errc::kSystem, EBUSY, "the tree of a referral"};
  std::string whole = is_base ? base_ : path;
  std::vector<std::string> parts = split(whole);
  if (parts.empty() || parts.back() == "." || parts.back() == "..") {
    co_return Error{Errc::kInvalid, EINVAL, "path has no last component"};
  }
  std::string name = parts.back();
  parts.pop_back();
  std::string above;
  for (const std::string& part : parts)
    above += "/" + part;
  PathTree from_root(mount_, "");
  PathTree& tree = is_base ? from_root : *this;
  Result<PathNode> found = co_await tree.resolve(op, std::move(above), true);
  if (is_base && !found.ok()) met_ = from_root.met_;
  if (!found.ok() && met(found.error()) != nullptr) {
    met_->rest += (met_->rest.empty() ? "" : "/") + name;
  }
  if (!found.ok()) co_return found.error();
  const PathNode& directory = *found;
  if (directory.attributes.type != FileType::kDirectory) {
    co_return Error{Errc::kSystem, ENOTDIR, "path"};
  }
  co_return PathParent{directory.handle, std::move(name)};
}

}  // namespace nfsrdma
