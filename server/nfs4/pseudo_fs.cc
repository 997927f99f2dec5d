// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/pseudo_fs.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

namespace nfsrdma::nfs4 {

namespace {

using Place = PseudoFs::Place;
using Kind = PseudoFs::Place::Kind;

/// Also a cookie, so that some values are not for it: 0 to 2, and what is negative as off_t.
std::uint64_t id_of_path(std::string_view path) {
  constexpr std::uint64_t kFirst = 3;
  constexpr std::uint64_t kPositive = ~std::uint64_t{0} >> 1;
  static constexpr unsigned char kFixedKey[crypto_shorthash_KEYBYTES] = {'p', 's', 'e', 'u',
                                                                         'd', 'o', 'f', 's'};
  std::uint8_t out[crypto_shorthash_BYTES];
  crypto_shorthash(out, reinterpret_cast<const unsigned char*>(path.data()), path.size(),
                   kFixedKey);
  std::uint64_t hash = 0;
  std::memcpy(&hash, out, sizeof hash);
  return std::max(hash & kPositive, kFirst);
}

/// Without empty components and slashes at the end.
std::string normalised(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    if (!name.empty()) out.append("/").append(name);
  }
  return out.empty() ? "/" : out;
}

/// Of "/a/b", "/a"; of "/a", "/".
std::string_view directory_of(std::string_view path) {
  return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
}

/// Is `path` below `top`, and how is it called there? At `top` itself that is "".
bool relative_to(std::string_view top, std::string_view path, std::string_view* rest) {
  if (top != "/") {
    if (!path.starts_with(top)) return false;
    path.remove_prefix(top.size());
    if (!path.empty() && path.front() != '/') return false;
  }
  if (path.starts_with('/')) path.remove_prefix(1);
  *rest = path;
  return true;
}

}  // namespace

PseudoFs::PseudoFs(std::span<const PseudoExport> exports, std::uint64_t change) : change_(change) {
  make_node("/");
  for (const PseudoExport& entry : exports) {
    const std::size_t node = make_node(normalised(entry.path));
    if (nodes_[node].exported || by_export_.contains(entry.id)) continue;  // the first one counts
    const std::size_t index = exports_.size();
    nodes_[node].exported = index;
    by_export_[entry.id] = index;
    exports_.push_back({entry.id, node});
    if (entry.is_root && !root_export_) root_export_ = index;
  }
  for (Node& node : nodes_) {
    std::sort(node.children.begin(), node.children.end(), [this](std::size_t a, std::size_t b) {
      return cookie_of(nodes_[a]) < cookie_of(nodes_[b]);
    });
  }
}

std::size_t PseudoFs::make_node(std::string_view path) {
  const std::string key(path);
  auto found = by_path_.find(key);
  if (found != by_path_.end()) return found->second;
  const std::size_t parent = path == "/" ? 0 : make_node(directory_of(path));
  Node node;
  node.path = key;
  node.name = path.substr(path.rfind('/') + 1);
  node.parent = parent;
  node.id = id_of_path(path);
  // Two paths with one hash: 1 in 2^63. The later one gets another id, as long as both are there.
  while (by_id_.contains(node.id))
    node.id = id_of_path(std::string_view(reinterpret_cast<const char*>(&node.id), sizeof node.id));
  const std::size_t index = nodes_.size();
  by_path_[key] = index;
  by_id_[node.id] = index;
  nodes_.push_back(std::move(node));
  if (index != 0) nodes_[parent].children.push_back(index);
  return index;
}

const PseudoFs::Node* PseudoFs::node_of(NodeId id) const {
  auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &nodes_[found->second];
}

const PseudoFs::ExportPlace* PseudoFs::export_of(std::uint64_t id) const {
  auto found = by_export_.find(id);
  return found == by_export_.end() ? nullptr : &exports_[found->second];
}

Allowed PseudoFs::visible(const Node& node, const Allow& allow) const {
  Allowed answer = node.exported ? allow(exports_[*node.exported].id) : Allowed::kNo;
  for (std::size_t child : node.children) {
    if (answer == Allowed::kYes) break;
    const Allowed below = visible(nodes_[child], allow);
    if (below != Allowed::kNo) answer = below;
  }
  return answer;
}

Place PseudoFs::place_of(const Node& node, const Allow& allow) const {
  if (node.exported) {
    const std::uint64_t id = exports_[*node.exported].id;
    switch (allow(id)) {
      case Allowed::kYes:
        return {Kind::kExport, kNoNode, id, {}};
      case Allowed::kWouldBlock:
        return {Kind::kWouldBlock};
      case Allowed::kNo:
        break;
    }
  }
  switch (visible(node, allow)) {
    case Allowed::kYes:
      return {Kind::kNode, node.id, 0, {}};
    case Allowed::kWouldBlock:
      return {Kind::kWouldBlock};
    case Allowed::kNo:
      break;
  }
  return {};
}

Place PseudoFs::root(const Allow& allow) const {
  if (root_export_) {
    const std::uint64_t id = exports_[*root_export_].id;
    const Allowed answer = allow(id);
    if (answer == Allowed::kYes) return {Kind::kExport, kNoNode, id, {}};
    if (answer == Allowed::kWouldBlock) return {Kind::kWouldBlock};
  }
  const Place place = place_of(nodes_[0], allow);
  // There is a root for everybody, with nothing in it if need be.
  return place.kind == Kind::kNothing ? Place{Kind::kNode, nodes_[0].id, 0, {}} : place;
}

Place PseudoFs::find(NodeId id, const Allow& allow) const {
  const Node* node = node_of(id);
  if (node == nullptr) return {};
  if (node == &nodes_[0]) return {Kind::kNode, id, 0, {}};
  switch (visible(*node, allow)) {
    case Allowed::kYes:
      return {Kind::kNode, id, 0, {}};
    case Allowed::kWouldBlock:
      return {Kind::kWouldBlock};
    case Allowed::kNo:
      break;
  }
  return {};
}

Place PseudoFs::lookup(NodeId id, std::string_view name, const Allow& allow) const {
  const Node* node = node_of(id);
  if (node == nullptr) return {};
  for (std::size_t child : node->children) {
    if (nodes_[child].name == name) return place_of(nodes_[child], allow);
  }
  return {};
}

Place PseudoFs::parent(NodeId id) const {
  const Node* node = node_of(id);
  if (node == nullptr || node == &nodes_[0]) return {};
  return {Kind::kNode, nodes_[node->parent].id, 0, {}};
}

Place PseudoFs::above_export(std::uint64_t export_id, const Allow& allow) const {
  const ExportPlace* from = export_of(export_id);
  if (from == nullptr) return {};
  const Place top = root(allow);
  if (top.kind == Kind::kWouldBlock) return top;
  const bool export_on_top = top.kind == Kind::kExport;
  if (export_on_top && top.export_id == export_id) return {};
  const Node& here = nodes_[from->node];
  std::string_view rest;
  if (export_on_top &&
      !relative_to(nodes_[export_of(top.export_id)->node].path, here.path, &rest)) {
    return {};
  }
  if (&here == &nodes_[0]) return {};
  const Node& above = nodes_[here.parent];
  for (const Node* around = &above;; around = &nodes_[around->parent]) {
    if (around->exported) {
      const std::uint64_t id = exports_[*around->exported].id;
      const Allowed answer = allow(id);
      if (answer == Allowed::kWouldBlock) return {Kind::kWouldBlock};
      if (answer == Allowed::kYes) {
        relative_to(around->path, above.path, &rest);
        return {Kind::kExport, kNoNode, id, rest};
      }
    }
    if (around == &nodes_[0]) return {Kind::kNode, above.id, 0, {}};
  }
}

PseudoFs::Listing PseudoFs::list(NodeId id, std::uint64_t cookie, const Allow& allow,
                                 const std::function<bool(const Entry&)>& entry) const {
  const Node* node = node_of(id);
  if (node == nullptr) return Listing::kEnd;
  auto next = std::upper_bound(
      node->children.begin(), node->children.end(), cookie,
      [this](std::uint64_t after, std::size_t child) { return after < cookie_of(nodes_[child]); });
  for (; next != node->children.end(); ++next) {
    const Node& child = nodes_[*next];
    const Place place = place_of(child, allow);
    if (place.kind == Kind::kWouldBlock) return Listing::kWouldBlock;
    if (place.kind == Kind::kNothing) continue;
    if (!entry({child.name, place, cookie_of(child), child.id})) return Listing::kStopped;
  }
  return Listing::kEnd;
}

bool PseudoFs::is_inside(std::uint64_t inner, std::uint64_t outer) const {
  const ExportPlace* below = export_of(inner);
  const ExportPlace* above = export_of(outer);
  std::string_view rest;
  return below != nullptr && above != nullptr && below != above &&
         relative_to(nodes_[above->node].path, nodes_[below->node].path, &rest);
}

std::string_view PseudoFs::path_from_root(std::uint64_t export_id, const Allow& allow) const {
  const ExportPlace* here = export_of(export_id);
  if (here == nullptr) return "/";
  const std::string_view path = nodes_[here->node].path;
  const Place top = root(allow);
  if (top.kind != Kind::kExport) return path;
  const std::string_view top_path = nodes_[export_of(top.export_id)->node].path;
  std::string_view rest;
  if (top_path == "/" || !relative_to(top_path, path, &rest)) return path;
  return rest.empty() ? "/" : path.substr(top_path.size());
}

std::optional<std::uint64_t> PseudoFs::mounted_on_fileid(std::uint64_t export_id,
                                                         const Allow& allow) const {
  const ExportPlace* from = export_of(export_id);
  if (from == nullptr || above_export(export_id, allow).kind != Kind::kNode) return std::nullopt;
  return nodes_[from->node].id;
}

struct stat PseudoFs::attributes(NodeId id) const {
  constexpr std::uint64_t kNanoseconds = 1'000'000'000;
  constexpr nlink_t kSelfAndParent = 2;
  struct stat out {};
  const Node* node = node_of(id);
  out.st_ino = id;
  out.st_mode = S_IFDIR | 0755;
  out.st_nlink = kSelfAndParent + (node == nullptr ? 0 : node->children.size());
  out.st_blksize = 4096;
  out.st_mtim.tv_sec = static_cast<time_t>(change_ / kNanoseconds);
  out.st_mtim.tv_nsec = static_cast<long>(change_ % kNanoseconds);
  out.st_atim = out.st_ctim = out.st_mtim;
  return out;
}

}  // namespace nfsrdma::nfs4
