// SPDX-License-Identifier: Apache-2.0
// What one directory's names stand for, as far as the server said so: answers LOOKUP for callers
// that may search the directory. Believed as long as the directory's attributes are fresh and
// unchanged; whoever notices a change clears it. Names that are not believed any more stay on the
// list, since the kernel may still hold them: for_each() gives them all. Bounded.
#pragma once

#include <cstddef>
#include <cstdint>
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
    if (it == names_.end() || it->second.age != age_) return {};
    if (it->second.absent) return {true, nullptr};
    std::shared_ptr<Node> node = it->second.node.lock();
    return {node != nullptr, std::move(node)};
  }
  void store(const std::string& name, const std::shared_ptr<Node>& node) {
    make_room();
    names_.insert_or_assign(name, Row{node, false, age_});
  }
  void store_absent(const std::string& name) {
    make_room();
    names_.insert_or_assign(name, Row{{}, true, age_});
  }
  /// The kernel hears of the name, but what it stands for is not certain.
  void note(const std::string& name) {
    make_room();
    names_.insert_or_assign(name, Row{});
  }
  void forget(const std::string& name) {
    auto it = names_.find(name);
    if (it != names_.end()) it->second = Row{};
  }
  void clear() { ++age_; }
  /// A name that stands or stood for `node`; empty: none known.
  std::string name_of(const Node& node) const {
    for (const auto& [name, row] : names_) {
      if (row.node.lock().get() == &node) return name;
    }
    return {};
  }
  template <typename Fn>
  void for_each(Fn fn) const {
    for (const auto& [name, row] : names_)
      fn(name);
  }

 private:
  struct Row {
    std::weak_ptr<Node> node;
    bool absent = false;
    std::uint64_t age = 0;
  };
  void make_room() {
    if (names_.size() >= kMostNames) names_.clear();
  }
  std::unordered_map<std::string, Row> names_;
  std::uint64_t age_ = 1;  // rows of another age are not believed
};

}  // namespace nfsrdma
