// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/node.h"

#include "client/fuse/file_writer.h"
#include "client/fuse/names_ahead.h"

namespace nfsrdma {

Node::Node(NodeTable& its_table, std::uint64_t number, const FileHandle& its_handle)
    : table(its_table), id(number), handle(its_handle) {}

Node::~Node() {
  writer.reset();  // first: it tells where the file was
  // A successor with the same handle may stand there already when this one died slowly.
  auto it = table.by_handle_.find(handle);
  if (it != table.by_handle_.end() && it->second.expired()) table.by_handle_.erase(it);
}

std::optional<FilePlace> place_of(const Node& node) {
  if (node.silly != nullptr) return FilePlace{node.silly->directory->handle, node.silly->name};
  const NodeRef directory = node.parent.lock();
  if (directory == nullptr || node.name.empty()) return std::nullopt;
  return FilePlace{directory->handle, node.name};
}

NodeRef NodeTable::find(std::uint64_t id) const {
  auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second;
}

NodeRef NodeTable::find(const FileHandle& handle) const {
  const auto it = by_handle_.find(handle);
  return it == by_handle_.end() ? nullptr : it->second.lock();
}

NodeRef NodeTable::obtain(const FileHandle& handle) {
  auto it = by_handle_.find(handle);
  if (it != by_handle_.end()) {
    if (NodeRef node = it->second.lock()) return node;
  }
  NodeRef node = std::make_shared<Node>(*this, next_id_++, handle);
  by_handle_.insert_or_assign(handle, node);
  return node;
}

void NodeTable::reference(const NodeRef& node) {
  if (node->lookups++ == 0) by_id_.emplace(node->id, node);
}

void NodeTable::forget(std::uint64_t id, std::uint64_t count) {
  auto it = by_id_.find(id);
  if (it == by_id_.end()) return;
  NodeRef node = it->second;  // outlives the row
  node->lookups -= std::min(count, node->lookups);
  if (node->lookups == 0) by_id_.erase(it);
}

}  // namespace nfsrdma
