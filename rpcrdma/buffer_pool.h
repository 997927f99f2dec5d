// SPDX-License-Identifier: Apache-2.0
// BufferPool: one shard's memory for messages and payload, cut into a few size classes from
// arenas that are registered (local access only) with the protection domains in use. Buffers are
// leases: move-only, returned on destruction. All on the shard's thread; another thread may fill
// the bytes of a Buffer that a Call holds meanwhile.
//
// The budget is a cap on bytes handed out. When it is used up acquire() gives an empty Buffer and
// the caller waits with wait_for_buffers(). Waiters take turns by connection (BufferShare), so a
// client with a hundred calls waiting is served no more often than one with a single call.
//
// Who holds a buffer and waits for another could wait for ever when all the others do the same. So
// a call gets its memory in few stages (BufferStage), and each stage leaves free what a call of the
// next ones may need at once. No matter how many wait in a stage: those of the last one always get
// their memory, one after the other, end, and give all back; then those of the stage before it.
//
// What a connection holds for as long as its peer likes (BufferHolder) would be held for ever by a
// peer that means harm, a byte a minute. So while somebody has to wait for long, the host that
// holds most beyond its time is made to give way. A client that nobody waits for may be as slow as
// it likes, and nobody has to give way to calls of its own.
//
// A window is a Buffer of another kind: no memory, but a place to show pages of a file in
// (base/file_window.h), for connections that send them as they are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/file_window.h"
#include "rpcrdma/base/intrusive_list.h"
#include "rpcrdma/fabric.h"

namespace nfsrdma {

class BufferPool;

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  inline Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { reset(); }

  explicit operator bool() const { return data_ != nullptr; }
  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  MutableByteSpan bytes() const { return {data_, size_}; }
  /// Null for memory. What a window shows is not to be read by us: FileWindow::settle().
  inline FileWindow* window() const;
  /// From here on it may be read by us, whatever it is. False when it cannot be.
  bool settle() const { return window() == nullptr || window()->settle(); }
  inline void reset();

 private:
  friend class BufferPool;
  BufferPool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint16_t arena_ = 0;  // or which window
  std::uint8_t size_class_ = 0;
};

/// What a buffer is for. A call has at most one wait in each stage, for all that it needs there.
enum class BufferStage : std::uint8_t {
  kReceive,      // for any message; kept for good
  kNewCall,      // what a call begins with, with data or without: its own buffers, or a small one
  kData,         // the data of a call that has begun
  kWholeCall,    // the own buffers of a call whose data has come
  kWithHandler,  // room for a result, payload
};
inline constexpr std::size_t kBufferStages = 5;

/// Someone who waits for a buffer.
class BufferWaiter : public ListNode<BufferWaiter> {
 public:
  virtual ~BufferWaiter() = default;
  /// A buffer came back; try again (and wait again when it was not enough).
  virtual void on_buffers() = 0;

 private:
  friend class BufferPool;
  TimePoint since_{};
};

/// Buffers that come back when a peer has sent, or taken, what they are for.
struct HeldBuffers {
  std::size_t bytes = 0;
  TimePoint since = TimePoint::max();  // of the oldest

  void add(std::size_t more, TimePoint from) {
    if (more == 0) return;
    bytes += more;
    since = std::min(since, from);
  }
};

/// A connection, to the pool: BufferPool::add_holder().
class BufferHolder : public ListNode<BufferHolder> {
 public:
  virtual ~BufferHolder() = default;
  virtual HeldBuffers held() = 0;
  /// All connections of a host count together.
  virtual std::string host() const = 0;
  /// Others wait for what is held for too long. Gives it back soon.
  virtual void give_way() = 0;
};

/// Those of one connection who wait; each ServerConnection has one. Used by one pool at a time.
class BufferShare {
 public:
  BufferHolder* holder = nullptr;  // whose it is; null: of nobody who holds anything

 private:
  friend class BufferPool;
  /// In one stage.
  struct Turn : ListNode<Turn> {
    const BufferShare* share = nullptr;
    IntrusiveList<BufferWaiter> waiters;
  };
  std::array<Turn, kBufferStages> turns_;
};

class BufferPool {
 public:
  /// Size classes: 4 KiB (messages), 64 KiB (long replies), 256 KiB, 1 MiB + 4 KiB, 4 MiB + 4 KiB.
  static constexpr std::size_t kMaxBuffer = (std::size_t{4} << 20) + 4096;

  /// Less than this could not keep the promise of the stages beside receives and warm calls.
  static constexpr std::size_t kLeastBudget = std::size_t{16} << 20;

  /// `budget` in bytes (at least kLeastBudget) caps what is handed out at once.
  BufferPool(EventLoop& loop, std::size_t budget);
  ~BufferPool();

  /// From now on every arena is registered with `domain` too. Loop thread.
  Result<void> add_domain(ProtectionDomain& domain);
  void remove_domain(ProtectionDomain& domain);

  /// At least `bytes` long, contents undefined (may hold old data of other calls: expose only what
  /// was written). Empty when `stage` has used up its part of the budget, when others wait in that
  /// stage, or bytes > kMaxBuffer.
  Buffer acquire(std::size_t bytes, BufferStage stage = BufferStage::kWithHandler);
  /// A window for a call with the handler that can show `bytes`; what it shows counts in the budget
  /// as memory would. Empty for the same reasons, when all windows are in use, and when there is no
  /// address space for one more.
  Buffer acquire_window(std::size_t bytes);
  /// The lkey of `buffer` in `domain`.
  std::uint32_t lkey(const Buffer& buffer, const ProtectionDomain& domain) const;
  /// What a buffer for `bytes` counts for in the budget; 0 when there is none that large.
  static std::size_t charge(std::size_t bytes);
  /// The most that a call may take of stage kData, its own buffers besides; more never comes.
  std::size_t most_data() const { return std::max(budget_ / 4, kMaxBuffer); }
  /// `waiter` is called from the loop, once per enlisting: in order of waiting within `share`, and
  /// one of each share by turns, in each stage by itself. Who enlists again from on_buffers() keeps
  /// its place. A call that waits holds nothing of `stage` or of a later one.
  void wait_for_buffers(BufferWaiter& waiter, BufferShare& share,
                        BufferStage stage = BufferStage::kWithHandler);
  /// Until it is destroyed.
  void add_holder(BufferHolder& holder) { holders_.push_back(holder); }

  std::size_t budget() const { return budget_; }
  std::size_t in_use() const { return in_use_; }
  /// How many wait; counts them.
  std::size_t waiting();
  std::size_t arena_bytes() const;
  /// Why acquire() could not get memory for the pool the last time that it could not.
  const Error& why_not() const { return why_not_; }

 private:
  friend class Buffer;
  struct Arena;
  class WakeWaiters;
  static constexpr std::size_t kClasses = 5;
  static constexpr std::uint8_t kWindow = kClasses;  // in place of a size class
  /// Each holds a descriptor while it shows something.
  static constexpr std::size_t kMostWindows = 256;

  using Turns = IntrusiveList<BufferShare::Turn>;

  void release(Buffer& buffer);
  bool fits(std::size_t bytes, BufferStage stage) const;
  /// Others of this stage come first.
  bool must_wait(BufferStage stage);
  bool anybody_waits(Turns& turns);
  bool anybody_waits();
  bool waits_for_long(const std::string& but_of_host);
  void watch_holders();
  bool grow(std::size_t size_class);

  EventLoop& loop_;
  std::size_t budget_;
  std::size_t in_use_ = 0;
  std::vector<ProtectionDomain*> domains_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  struct Free {
    std::byte* data;
    std::uint16_t arena;
  };
  std::array<std::vector<Free>, kClasses> free_;  // last in, first out: stays warm in the cache
  // In fixed places: who has a Call on another thread looks up its payload's window here while this
  // thread makes more of them.
  std::array<std::unique_ptr<FileWindow>, kMostWindows> windows_;
  std::size_t window_count_ = 0;
  std::vector<std::uint16_t> free_windows_;
  std::array<std::size_t, kBufferStages> left_free_;
  // By stage, whose turn is next; some may have no waiter any more.
  std::array<Turns, kBufferStages> turns_;
  std::unique_ptr<WakeWaiters> wake_waiters_;
  bool grow_failed_ = false;
  Error why_not_{Errc::kExhausted, ENOMEM, "memory for buffers"};
  Timer retry_;
  IntrusiveList<BufferHolder> holders_;
  Timer watch_;  // while anybody waits; looks for itself whether that is so
};

inline Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    reset();
    pool_ = other.pool_;
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    arena_ = other.arena_;
    size_class_ = other.size_class_;
  }
  return *this;
}
inline FileWindow* Buffer::window() const {
  return data_ != nullptr && size_class_ == BufferPool::kWindow ? pool_->windows_[arena_].get()
                                                                : nullptr;
}
inline void Buffer::reset() {
  if (data_ != nullptr) {
    pool_->release(*this);
    data_ = nullptr;
    size_ = 0;
  }
}

}  // namespace nfsrdma
