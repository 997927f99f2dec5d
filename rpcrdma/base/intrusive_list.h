// SPDX-License-Identifier: Apache-2.0
// Doubly linked list whose links live in the elements: no allocation, O(1) removal. An element
// unlinks itself when destroyed. Single thread.
#pragma once

namespace nfsrdma {

// The analyzer loses track of rings: it thinks that destroyed neighbours are still linked, although
// the destructor unlinks every node.
// NOLINTBEGIN(clang-analyzer-cplusplus.NewDelete)

/// Inherit once per list an object can be on; Tag tells them apart, by custom the class itself for
/// the only or main one.
template <typename Tag>
class ListNode {
 public:
  ListNode() = default;
  ListNode(const ListNode&) = delete;
  ListNode& operator=(const ListNode&) = delete;
  ~ListNode() { unlink(); }

  bool linked() const { return next_ != this; }
  void unlink() {
    prev_->next_ = next_;
    next_->prev_ = prev_;
    next_ = prev_ = this;
  }

 private:
  template <typename T, typename U>
  friend class IntrusiveList;
  ListNode* next_ = this;
  ListNode* prev_ = this;
};

template <typename T, typename Tag = T>
class IntrusiveList {
  using Node = ListNode<Tag>;

 public:
  bool empty() const { return !head_.linked(); }
  void push_back(T& item) {
    Node& node = item;
    node.unlink();
    node.prev_ = head_.prev_;
    node.next_ = &head_;
    head_.prev_->next_ = &node;
    head_.prev_ = &node;
  }
  void push_front(T& item) {
    Node& node = item;
    node.unlink();
    node.next_ = head_.next_;
    node.prev_ = &head_;
    head_.next_->prev_ = &node;
    head_.next_ = &node;
  }
  /// nullptr when empty.
  T* front() { return empty() ? nullptr : static_cast<T*>(head_.next_); }
  T* back() { return empty() ? nullptr : static_cast<T*>(head_.prev_); }
  T* pop_front() {
    T* item = front();
    if (item != nullptr) static_cast<Node*>(item)->unlink();
    return item;
  }
  /// Moves everything of `other` to the end of this list.
  void splice_back(IntrusiveList& other) {
    while (T* item = other.pop_front())
      push_back(*item);
  }
  /// `fn` may unlink or destroy the item that it is given, no other.
  template <typename Fn>
  void for_each(Fn fn) {
    for (Node* node = head_.next_; node != &head_;) {
      Node* next = node->next_;
      fn(*static_cast<T*>(node));
      node = next;
    }
  }

 private:
  Node head_;
};

// NOLINTEND(clang-analyzer-cplusplus.NewDelete)

}  // namespace nfsrdma
