// SPDX-License-Identifier: Apache-2.0
// Who asks, and how to stop asking: goes with every operation of the client.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string_view>

#include "rpcrdma/base/error.h"
#include "rpcrdma/base/intrusive_list.h"

namespace nfsrdma {

/// The AUTH_SYS identity that a call carries (RFC 5531, appendix A). Value type.
struct AuthSys {
  static constexpr std::size_t kMaxGroups = 16;

  std::uint32_t uid = 65534;
  std::uint32_t gid = 65534;
  std::array<std::uint32_t, kMaxGroups> groups{};
  std::uint32_t group_count = 0;

  /// Supplementary groups; what is beyond 16 does not fit into AUTH_SYS and is left out.
  void set_groups(std::span<const std::uint32_t> all) {
    group_count = static_cast<std::uint32_t>(std::min(all.size(), kMaxGroups));
    std::copy_n(all.begin(), group_count, groups.begin());
  }
  bool operator==(const AuthSys&) const = default;
  /// The identity of this process.
  static AuthSys of_process();
};

/// Something that a CancelToken can end.
class Cancellable : public ListNode<Cancellable> {
 public:
  virtual ~Cancellable() = default;
  /// Ends soon, with EINTR. Called with the item unlinked.
  virtual void on_cancel() = 0;
};

/// Ends the calls of one operation early: each completes with EINTR. On the loop's thread. A call
/// that changes something may have run on the server all the same.
class CancelToken {
 public:
  /// Also ends every call that starts later.
  void cancel() {
    cancelled_ = true;
    // The last on_cancel() may end the operation and with it this token: touch nothing of it.
    IntrusiveList<Cancellable, Cancellable> doomed;
    doomed.splice_back(items_);
    while (Cancellable* item = doomed.pop_front())
      item->on_cancel();
  }
  bool cancelled() const { return cancelled_; }
  void enlist(Cancellable& item) { items_.push_back(item); }

 private:
  bool cancelled_ = false;
  IntrusiveList<Cancellable, Cancellable> items_;
};

/// What a READ or WRITE shows the server of what its client holds of the file: a stateid of NFSv4.
/// Zeros: nothing.
struct DataRight {
  std::uint32_t seqid = 0;
  std::array<std::byte, 12> other{};
};

struct FilePlace;

/// Outlives the operation that it is given to.
struct OpContext {
  AuthSys identity;
  CancelToken* cancel = nullptr;
  /// For a READ or WRITE of another thread's behalf, which has looked it up; null: look it up. When
  /// the server does not take it, the answer is kRightGone, and the other thread knows what to do.
  const DataRight* right = nullptr;
  /// Of a lock, where NfsOperations::opens_by_name(): the place where the file was found last.
  const FilePlace* place = nullptr;
};

inline constexpr Error kRightGone{Errc::kNotFound, EIO, "the stateid is gone"};
inline bool is_right_gone(const Error& error) {
  // By the text: the same literal need not have one address in all of a program.
  return error.code == kRightGone.code && std::string_view(error.where) == kRightGone.where;
}

}  // namespace nfsrdma
