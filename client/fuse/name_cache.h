// SPDX-License-Identifier: Apache-2.0
// What one directory's names stand for, as far as the server said so: answers LOOKUP for callers
// that may search the directory. Believed as long as the directory's attributes are fresh and
// unchanged; whoever notices a change clears it. Bounded.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

namespace nfsrdma {

struct Node;

class NameCache {
 public:
  static constexpr std::size_t kMostNames = 16'384;

  struct Answer {
    bool known = false;
    std::shared_ptr<Node> node;  // null with known: there is no such name
  };

  Answer find(const std::string& name) const {
    auto it = names_.find(name);
    if (it == names_.end()) return {};
    if (it->second.absent) return {true, nullptr};
    std::shared_ptr<Node> node = it->second.node.lock();
    return {node != nullptr, std::move(node)};
  }
  void store(const std::string& name, const std::shared_ptr<Node>& node) {
    make_room();
    names_.insert_or_assign(name, Row{node, false});
  }
  void store_absent(const std::string& name) {
    make_room();
    names_.insert_or_assign(name, Row{{}, true});
  }
  void forget(const std::string& name) { names_.erase(name); }
  void clear() { names_.clear(); }
  std::size_t size() const { return names_.size(); }

 private:
  struct Row {
    std::weak_ptr<Node> node;
    bool absent = false;
  };
  void make_room() {
    if (names_.size() >= kMostNames) names_.clear();
  }
  std::unordered_map<std::string, Row> names_;
};

}  // namespace nfsrdma
