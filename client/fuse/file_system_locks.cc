// SPDX-License-Identifier: Apache-2.0
// Byte-range locks, and what they mean for data: a lock is taken in order to read what others have
// written, and let go of so that they read what was written here. So the caches of the file are
// emptied behind each lock, as by the kernel's NFS client, and everything is stable on the server
// in front of each unlock: data that had to be written again after a restart of the server would
// undo what the next owner writes.
#include <algorithm>
#include <cerrno>
#include <set>
#include <vector>

#include "client/fuse/file_system.h"

namespace nfsrdma {
namespace {

const LockingProcess* find_locker(const Node& node, LockOwnerId kernel_owner) {
  for (const LockingProcess& one : node.lockers) {
    if (one.kernel_owner == kernel_owner) return &one;
  }
  return nullptr;
}

}  // namespace

bool FileSystem::may_hold_locks(const Node& node, LockOwnerId owner) {
  return find_locker(node, owner) != nullptr;
}

LockOwnerId FileSystem::owner_for(Node& node, LockOwnerId kernel_owner, pid_t pid) {
  if (const LockingProcess* known = find_locker(node, kernel_owner)) return known->owner;
  node.lockers.push_back({kernel_owner, ++last_lock_owner_, pid});
  return last_lock_owner_;
}

/// Another thread may have closed the file while this one waited for its lock (let_go). False: and
/// has locked it again since, by another number.
bool FileSystem::is_known_as(Node& node, LockOwnerId kernel_owner, LockOwnerId owner, pid_t pid) {
  const LockingProcess* known = find_locker(node, kernel_owner);
  if (known == nullptr) node.lockers.push_back({kernel_owner, owner, pid});
  return known == nullptr || known->owner == owner;
}

Task<int> FileSystem::lock(RequestContext context, NodeRef node, FileLock wanted, LockWait wait,
                           int flags, pid_t pid) {
  const std::uint32_t rights = rights_for(flags);
  // close(2) of open files and the end of processes wait for nobody: the next one does.
  if (!co_await unlocks_told(context, node)) co_return EINTR;
  if (node->writer != nullptr) {
    // It may be less than what is held: then others read what was written under the lock.
    if (int error = co_await node->writer->flush(context, node, true)) co_return error;
  }
  // With a delegation nobody else has changed what is known of the file.
  const bool current = promised(*node) && node->timer.fresh(loop.now());
  std::optional<FilePlace> place;
  if (remote.opens_by_name()) place = place_of(*node);
  if (place) context.place = &*place;
  const LockOwnerId kernel_owner = wanted.owner;
  for (bool known = false; !known;) {
    wanted.owner = owner_for(*node, kernel_owner, pid);
    auto answer = co_await remote.lock(context, node->handle, wanted, wait, rights);
    if (!answer.ok()) co_return failed(*node, answer.error());
    known = is_known_as(*node, kernel_owner, wanted.owner, pid);
    if (!known && !co_await unlock_for(context, node, wanted)) co_return EINTR;
  }
  // From here on only the end of the process counts: the lock is its.
  if (context.interrupt != nullptr) context.interrupt->by_any_signal = false;
  if (current && promised(*node)) co_return 0;
  // First what has changed, so that nothing is dropped once more when somebody asks for it
  // (settle_pages()).
  node->timer.expire();
  if (co_await getattr(context, node) != 0) node->timer.expire();
  node->kernel_size_old = true;
  ++node->pages_outdated;
  const bool dropped = co_await drop_pages_now(context, node);
  if (dropped) co_return 0;
  [[maybe_unused]] const bool told = co_await unlock_for(context, node, wanted);
  co_return EINTR;
}

Task<int> FileSystem::lock_in_the_end(RequestContext context, NodeRef node, FileLock wanted,
                                      int flags, pid_t pid) {
  // Known as waiting before it does: until it has this lock it goes on to hold what it holds.
  if (waits_for_itself(node, wanted)) co_return EDEADLK;
  const auto waiting = lock_waits_.insert(lock_waits_.end(), {node, wanted});
  const int error = co_await lock(context, node, wanted, LockWait::kYes, flags, pid);
  lock_waits_.erase(waiting);
  co_return error;
}

bool FileSystem::waits_for_itself(const NodeRef& node, const FileLock& wanted) const {
  std::vector<LockWaiting> todo{{node, wanted}};
  std::set<LockOwnerId> seen;
  while (!todo.empty()) {
    const LockWaiting wait = todo.back();
    todo.pop_back();
    FileLock there = wait.wanted;
    const LockingProcess* locker = find_locker(*wait.node, there.owner);
    there.owner = locker == nullptr ? 0 : locker->owner;
    for (const LockOwnerId owner : remote.lock_owners_in_the_way(wait.node->handle, there)) {
      const auto process =
          std::find_if(wait.node->lockers.begin(), wait.node->lockers.end(),
                       [&](const LockingProcess& one) { return one.owner == owner; });
      if (process == wait.node->lockers.end()) continue;
      if (process->kernel_owner == wanted.owner) return true;
      if (!seen.insert(process->kernel_owner).second) continue;
      for (const LockWaiting& other : lock_waits_)
        if (other.wanted.owner == process->kernel_owner) todo.push_back(other);
    }
  }
  return false;
}

Task<int> FileSystem::unlock(RequestContext context, NodeRef node, FileLock what) {
  const LockingProcess* locker = find_locker(*node, what.owner);
  if (locker == nullptr) co_return 0;
  what.owner = locker->owner;
  if (node->writer != nullptr) {
    if (int error = co_await node->writer->flush(context, node, true)) co_return error;
  }
  auto answer = co_await remote.unlock(context, node->handle, what);
  if (!answer.ok()) co_return failed(*node, answer.error());
  co_return 0;
}

Task<int> FileSystem::test_lock(RequestContext context, NodeRef node, FileLock wanted,
                                std::optional<FileLock>* found, pid_t* pid) {
  if (!co_await unlocks_told(context, node)) co_return EINTR;
  // No number of ours is 0.
  const LockingProcess* locker = find_locker(*node, wanted.owner);
  wanted.owner = locker == nullptr ? 0 : locker->owner;
  auto answer = co_await remote.test_lock(context, node->handle, wanted);
  if (!answer.ok()) co_return failed(*node, answer.error());
  found->reset();
  *pid = 0;
  if (!answer->has_value()) co_return 0;
  const LockHolder& holder = **answer;
  *found = holder.lock;
  for (const LockingProcess& one : node->lockers) {
    if (holder.ours && one.owner == holder.lock.owner) *pid = one.pid;
  }
  co_return 0;
}

Task<int> FileSystem::let_go(RequestContext context, NodeRef node, LockOwnerId owner) {
  const LockingProcess* locker = find_locker(*node, owner);
  if (locker == nullptr) co_return 0;
  const FileLock all{locker->owner, LockKind::kWrite, kAllBytes};
  std::erase_if(node->lockers,
                [owner](const LockingProcess& one) { return one.kernel_owner == owner; });
  const bool waited = co_await unlock_for(context, node, all);
  co_return waited ? 0 : EINTR;
}

Task<bool> FileSystem::unlock_for(RequestContext context, NodeRef node, FileLock what) {
  const auto told = co_await to_the_end(context, unlock_behind(node, context.caller, what));
  co_return told.has_value();
}

void FileSystem::let_go_behind(const NodeRef& node, const CallerRef& caller, LockOwnerId owner) {
  struct Ignored {
    static Task<void> result(Task<int> of) { [[maybe_unused]] int error = co_await std::move(of); }
  };
  tasks.spawn(Ignored::result(let_go({caller, nullptr}, node, owner)));
}

Task<bool> FileSystem::unlocks_told(RequestContext context, NodeRef node) {
  bool waited = true;
  while (waited && node->unlocking > 0)
    waited = co_await node->unlocked.wait(cancel_of(context));
  co_return waited;
}

Task<int> FileSystem::unlock_behind(NodeRef node, CallerRef caller, FileLock what) {
  struct UnderWay {
    explicit UnderWay(Node& its) : node(its) { ++node.unlocking; }
    ~UnderWay() {
      --node.unlocking;
      node.unlocked.wake_all();
    }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;
    Node& node;
  };
  const UnderWay under_way(*node);
  const RequestContext context{caller, nullptr};
  if (node->writer != nullptr) {
    [[maybe_unused]] const int error = co_await node->writer->flush(context, node, true);
  }
  auto answer = co_await remote.unlock(context, node->handle, what);
  co_return answer.ok() ? 0 : errno_of(answer.error());
}

void FileSystem::close_there_unless_open(const NodeRef& node) {
  if (!node->in_use() && remote.holds(node->handle)) tasks.spawn(close_there(node));
}

void FileSystem::remove_opener(const NodeRef& node, const CallerRef& caller, std::uint32_t access) {
  node->openers.remove(caller, access);
  if (!node->in_use() || !node->is_regular() || !remote.holds(node->handle)) return;
  if ((access & ~node->openers.access_of(*caller)) != 0) tasks.spawn(narrow_there(node, caller));
}

Task<void> FileSystem::narrow_there(NodeRef node, CallerRef caller) {
  // Who was killed leaves data behind, which still goes by what he had open.
  if (node->writer != nullptr && !may_keep_back(*node)) {
    const RequestContext opener{caller, nullptr};
    [[maybe_unused]] const int error = co_await node->writer->flush(opener, node, true);
  }
  if (!node->in_use()) co_return;
  const std::uint32_t left = node->openers.access_of(*caller);
  remote.narrow_open({caller, nullptr}, node->handle, left);
}

Task<void> FileSystem::close_there(NodeRef node) {
  const bool kept_back = node->writer != nullptr && node->lockers.empty() && may_keep_back(*node);
  if (kept_back) {
    // What the delegation promises does not end with the open.
    node->writer->write_back(node);
  } else if (node->writer != nullptr) {
    const RequestContext nobody{std::make_shared<const Caller>(), nullptr};
    [[maybe_unused]] const int error = co_await node->writer->flush(nobody, node, true);
  }
  if (node->in_use()) co_return;
  node->lockers.clear();
  remote.close(node->handle);
}

}  // namespace nfsrdma
