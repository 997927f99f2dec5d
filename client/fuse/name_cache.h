// SPDX-License-Identifier: Apache-2.0
// What one directory's names stand for, as far as the server said so: answers LOOKUP for callers
// that may search the directory. Believed as long as the directory's attributes are fresh and
// unchanged; whoever notices a change clears it. Names that are not believed any more stay on the
// list, since the kernel may still hold them: for_each() gives them all, but for those that there
// was no room for (take_overflow()). Bounded.
//
// Answers can overtake each other: what an answer says of a name that was changed here since its
// request went out is not learnt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

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
  // Of changes by us:
  void store(const std::string& name, const std::shared_ptr<Node>& node) {
    put(name, Row{node, false, age_, ++clock_});
  }
  void store_absent(const std::string& name) { put(name, Row{{}, true, age_, ++clock_}); }
  /// A change that may have been made or not.
  void forget(const std::string& name) { put(name, Row{{}, false, 0, ++clock_}); }

  // Of what the server answered to a request that went out at `asked`, by clock():
  std::uint64_t clock() const { return clock_; }
  /// Nobody has cleared it since.
  bool current(std::uint64_t asked) const { return asked >= cleared_at_; }
  void learn(const std::string& name, const std::shared_ptr<Node>& node, std::uint64_t asked) {
    if (!changed_since(name, asked)) put(name, Row{node, false, age_, clock_});
  }
  void learn_absent(const std::string& name, std::uint64_t asked) {
    if (!changed_since(name, asked)) put(name, Row{{}, true, age_, clock_});
  }
  /// The kernel hears of the name, but what it stands for is not certain.
  void note(const std::string& name) {
    make_room_for(name);
    names_.try_emplace(name);
  }

  /// Nothing is believed any more, nor what answers say that are under way: current().
  void clear() {
    ++age_;
    cleared_at_ = ++clock_;
  }
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
  /// Were names dropped that the kernel may hold, since somebody asked last?
  bool take_overflow() { return std::exchange(overflowed_, false); }

 private:
  struct Row {
    std::weak_ptr<Node> node;
    bool absent = false;
    std::uint64_t age = 0;
    std::uint64_t changed_at = 0;
  };
  bool changed_since(const std::string& name, std::uint64_t asked) const {
    const auto it = names_.find(name);
    return it != names_.end() && it->second.changed_at > asked;
  }
  void put(const std::string& name, Row row) {
    make_room_for(name);
    names_.insert_or_assign(name, std::move(row));
  }
  void make_room_for(const std::string& name) {
    if (names_.size() < kMostNames || names_.contains(name)) return;
    names_.clear();
    overflowed_ = true;
    cleared_at_ = ++clock_;
  }
  std::unordered_map<std::string, Row> names_;
  bool overflowed_ = false;
  std::uint64_t age_ = 1;         // rows of another age are not believed
  std::uint64_t clock_ = 0;       // grows with every change of a name that we make or see
  std::uint64_t cleared_at_ = 0;  // by it
};

}  // namespace nfsrdma
