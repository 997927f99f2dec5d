// SPDX-License-Identifier: Apache-2.0
// Byte-range locks, and what they mean for data: a lock is taken in order to read what others have
// written, and let go of so that they read what was written here. So the caches of the file are
// emptied behind each lock, as by the kernel's NFS client, and everything is stable on the server
// in front of each unlock: data that had to be written again after a restart of the server would
// undo what the next owner writes.
#include <algorithm>
#include <cerrno>

#include "client/fuse/file_system.h"

namespace nfsrdma {
namespace {

constexpr ByteRange kAllBytes{0, UINT64_MAX};

CancelToken* cancel_of(const RequestContext& context) {
  return context.interrupt == nullptr ? nullptr : context.interrupt->token.get();
}

bool knows(const Node& node, LockOwnerId owner) {
  return std::any_of(node.lockers.begin(), node.lockers.end(),
                     [owner](const LockingProcess& one) { return one.owner == owner; });
}

}  // namespace

Task<bool> FileSystem::forget_data(RequestContext context, NodeRef node) {
  node->timer.expire();
  node->kernel_size_old = true;
  auto dropped = std::make_shared<Occasion>();
  kernel_.drop_data_and_tell(node->id, [dropped] { dropped->come(); });
  co_return co_await dropped->wait(cancel_of(context));
}

Task<int> FileSystem::lock(RequestContext context, NodeRef node, FileLock wanted, LockWait wait,
                           int flags, pid_t pid) {
  // In front of the answer: the file may be closed while this waits.
  const std::uint32_t rights = rights_for(flags);
  if (!knows(*node, wanted.owner)) node->lockers.push_back({wanted.owner, pid});
  auto answer = co_await remote.lock(context, node->handle, wanted, wait, rights);
  if (!answer.ok()) co_return failed(*node, answer.error());
  const bool forgotten = co_await forget_data(context, node);
  if (forgotten) co_return 0;
  // Who asked was killed.
  tasks.spawn(let_go_when_written(node, context.caller, wanted.owner));
  co_return EINTR;
}

Task<int> FileSystem::unlock(RequestContext context, NodeRef node, FileLock what) {
  if (node->writer != nullptr) {
    if (int error = co_await node->writer->flush(context, node, true)) co_return error;
  }
  auto answer = co_await remote.unlock(context, node->handle, what);
  if (!answer.ok()) co_return failed(*node, answer.error());
  co_return 0;
}

Task<int> FileSystem::test_lock(RequestContext context, NodeRef node, FileLock wanted,
                                std::optional<FileLock>* found, pid_t* pid) {
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
  if (!knows(*node, owner)) co_return 0;
  auto over = std::make_shared<Occasion>();
  struct Told {
    static Task<void> when(Task<void> done, std::shared_ptr<Occasion> then) {
      co_await std::move(done);
      then->come();
    }
  };
  tasks.spawn(Told::when(let_go_when_written(node, context.caller, owner), over));
  const bool waited = co_await over->wait(cancel_of(context));
  co_return waited ? 0 : EINTR;
}

Task<void> FileSystem::let_go_when_written(NodeRef node, CallerRef caller, LockOwnerId owner) {
  const RequestContext context{caller, nullptr};
  const FileLock all{owner, LockKind::kWrite, kAllBytes};
  [[maybe_unused]] const int error = co_await unlock(context, node, all);
  std::erase_if(node->lockers, [owner](const LockingProcess& one) { return one.owner == owner; });
}

Task<void> FileSystem::close_locked(NodeRef node) {
  if (node->writer != nullptr) {
    const RequestContext nobody{std::make_shared<const Caller>(), nullptr};
    [[maybe_unused]] const int error = co_await node->writer->flush(nobody, node, true);
  }
  if (node->opens > 0) co_return;
  node->lockers.clear();
  remote.close(node->handle);
}

}  // namespace nfsrdma
