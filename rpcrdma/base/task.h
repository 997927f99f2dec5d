// SPDX-License-Identifier: Apache-2.0
// Task<T>: a coroutine that produces a T. Operations of the client (one NFS call, one FUSE request)
// are Tasks; packets and work requests are not.
//
//   Task<Result<int>> twice(Reader& reader) {
//     NFSRDMA_CO_TRY(int n, co_await reader.read());
//     co_return 2 * n;
//   }
//
// A Task starts when it is awaited, inside await_ready(): a child that never has to wait costs no
// suspension, and the stack grows with nesting, not with rounds. (Symmetric transfer, the textbook
// way, overflows the stack with g++ 12 unless optimising without sanitizers.)
//
// Rules: a Task lives and is resumed on one thread at a time. Parameters are taken by value, or by
// reference to what the awaiting frame owns. No lambda coroutines with captures. Nothing cancels a
// Task from outside: what it waits for completes with an error. Root tasks are spawned in a
// TaskGroup, which knows when all are done. Frames come from a free list of the thread (task.cc).
#pragma once

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "rpcrdma/base/check.h"
#include "rpcrdma/base/intrusive_list.h"
#include "rpcrdma/base/result.h"

namespace nfsrdma {

/// Memory of coroutine frames: size classes, free lists per thread. A frame may be released on
/// another thread than the one that allocated it.
void* allocate_frame(std::size_t bytes);
void release_frame(void* frame, std::size_t bytes) noexcept;

struct PromiseBase {
  std::coroutine_handle<> continuation;

  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* frame, std::size_t bytes) noexcept {
    release_frame(frame, bytes);
  }

  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <typename Promise>
    void await_suspend(std::coroutine_handle<Promise> self) const noexcept {
      // May destroy *self; nothing of it is touched afterwards.
      if (std::coroutine_handle<> next = self.promise().continuation) next.resume();
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
};

template <typename T>
class Task;

template <typename T>
struct TaskPromise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object();
  template <typename U>
  requires std::is_convertible_v<U, T>
  void return_value(U&& result) { value.emplace(std::forward<U>(result)); }
  T take() { return std::move(*value); }
};

template <>
struct TaskPromise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() const noexcept {}
  void take() const noexcept {}
};

template <typename T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = TaskPromise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      if (handle_) handle_.destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  /// Never while it is suspended on something that will resume it.
  ~Task() {
    if (handle_) handle_.destroy();
  }

  struct Awaiter {
    Handle child;
    bool await_ready() const {
      child.resume();
      return child.done();
    }
    void await_suspend(std::coroutine_handle<> parent) const {
      child.promise().continuation = parent;
    }
    T await_resume() const { return child.promise().take(); }
  };
  /// Once per Task.
  Awaiter operator co_await() && { return Awaiter{handle_}; }

 private:
  Handle handle_;
};

template <typename T>
Task<T> TaskPromise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<TaskPromise<T>>::from_promise(*this));
}
inline Task<void> TaskPromise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<TaskPromise<void>>::from_promise(*this));
}

/// A coroutine that owns itself: runs at once, frees itself at its end. Only for root frames.
struct DetachedTask {
  struct promise_type {
    static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
    static void operator delete(void* frame, std::size_t bytes) noexcept {
      release_frame(frame, bytes);
    }
    DetachedTask get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
  };
};

/// Runs root tasks and counts them. All must be done when it is destroyed.
///
///   TaskGroup pieces;
///   for (...) pieces.spawn(read_piece(...));
///   co_await pieces.wait();
class TaskGroup {
 public:
  TaskGroup() = default;
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  ~TaskGroup() { NFSRDMA_CHECK(running_ == 0); }

  /// Starts `task` now; it runs until it first has to wait.
  void spawn(Task<void> task) {
    ++running_;
    run(*this, std::move(task));
  }
  std::size_t running() const { return running_; }

  struct Waiter {
    TaskGroup& group;
    bool await_ready() const { return group.running_ == 0; }
    void await_suspend(std::coroutine_handle<> parent) const {
      NFSRDMA_CHECK(!group.waiter_);
      group.waiter_ = parent;
    }
    void await_resume() const {}
  };
  /// Until nothing is running. One waiter at a time.
  Waiter wait() { return Waiter{*this}; }

 private:
  static DetachedTask run(TaskGroup& group, Task<void> task) {
    {
      // Its frame goes before the waiter hears of it, which may own what the frame refers to.
      Task<void> mine = std::move(task);
      co_await std::move(mine);
    }
    group.finished();
  }
  void finished() {
    if (--running_ == 0 && waiter_) std::exchange(waiter_, nullptr).resume();
  }

  std::size_t running_ = 0;
  std::coroutine_handle<> waiter_;
};

/// Coroutines that wait until somebody says "look again". The list outlives its waiters.
///
///   while (!condition) co_await changed.wait();
class WaitList {
 public:
  class Waiter : public ListNode<Waiter> {
   public:
    explicit Waiter(WaitList& list) : list_(list) {}
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> self) {
      self_ = self;
      list_.waiters_.push_back(*this);
    }
    void await_resume() const {}

   private:
    friend class WaitList;
    WaitList& list_;
    std::coroutine_handle<> self_;
  };

  Waiter wait() { return Waiter(*this); }
  bool empty() const { return waiters_.empty(); }
  /// Resumes the one that waits longest, here and now; false when there is none.
  bool wake_one() {
    Waiter* waiter = waiters_.pop_front();
    if (waiter == nullptr) return false;
    waiter->self_.resume();
    return true;
  }
  /// Resumes those that wait now (not those that start to wait meanwhile). The list may be
  /// destroyed by the last of them.
  void wake_all() {
    IntrusiveList<Waiter, Waiter> batch;
    batch.splice_back(waiters_);
    while (Waiter* waiter = batch.pop_front())
      waiter->self_.resume();
  }

 private:
  IntrusiveList<Waiter, Waiter> waiters_;
};

/// Mutual exclusion between coroutines of one thread, first come first served.
///
///   AsyncMutex::Guard guard = co_await mutex.lock();
class AsyncMutex {
 public:
  class [[nodiscard]] Guard {
   public:
    explicit Guard(AsyncMutex& mutex) : mutex_(&mutex) {}
    Guard(Guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    Guard& operator=(Guard&&) = delete;
    ~Guard() {
      if (mutex_ != nullptr) mutex_->unlock();
    }

   private:
    AsyncMutex* mutex_;
  };

  Task<Guard> lock() {
    if (locked_) co_await waiters_.wait();  // unlock() hands the lock over
    locked_ = true;
    co_return Guard(*this);
  }
  bool locked() const { return locked_; }

 private:
  void unlock() {
    if (!waiters_.wake_one()) locked_ = false;
  }

  bool locked_ = false;
  WaitList waiters_;
};

/// Runs `task` to its end by turning `loop` on this thread (and no other may turn it meanwhile).
template <typename Loop, typename T>
T run_to_completion(Loop& loop, Task<T> task) {
  if constexpr (std::is_void_v<T>) {
    TaskGroup group;
    group.spawn(std::move(task));
    while (group.running() != 0)
      loop.turn(std::chrono::nanoseconds(-1));
  } else {
    std::optional<T> result;
    TaskGroup group;
    struct Store {
      static Task<void> run(Task<T> inner, std::optional<T>& out) {
        out.emplace(co_await std::move(inner));
      }
    };
    group.spawn(Store::run(std::move(task), result));
    while (group.running() != 0)
      loop.turn(std::chrono::nanoseconds(-1));
    return std::move(*result);
  }
}

#define NFSRDMA_CO_TRY(decl, expr) \
  NFSRDMA_CO_TRY_IMPL(NFSRDMA_CONCAT(co_try_result_, __LINE__), decl, expr)
#define NFSRDMA_CO_TRY_IMPL(tmp, decl, expr) \
  auto tmp = (expr);                         \
  if (!tmp.ok()) co_return tmp.error();      \
  decl = std::move(tmp).value()

#define NFSRDMA_CO_CHECK_OK(expr)                                 \
  do {                                                            \
    auto co_check_result = (expr);                                \
    if (!co_check_result.ok()) co_return co_check_result.error(); \
  } while (0)

}  // namespace nfsrdma
