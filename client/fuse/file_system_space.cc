// SPDX-License-Identifier: Apache-2.0
// Holes, reserved space and copies on the server (NFSv4.2). The server must have what applications
// wrote before it is asked; and where it changes a file, that must be stable: data that is
// rewritten after a restart of the server would undo the change.
#include <cerrno>

#include "client/fuse/file_system.h"

namespace nfsrdma {

Task<int> FileSystem::seek(RequestContext context, NodeRef node, std::uint64_t offset, SeekFor what,
                           std::uint64_t* found) {
  if (node->writer != nullptr) {
    if (int error = co_await node->writer->flush(context, node, false)) co_return error;
  }
  auto answer = co_await remote.seek(context, node->handle, offset, what);
  if (!answer.ok()) co_return failed(*node, answer.error());
  *found = *answer;
  co_return 0;
}

Task<int> FileSystem::change_space(RequestContext context, NodeRef node, Space space,
                                   std::uint64_t offset, std::uint64_t length) {
  if (node->writer != nullptr) {
    if (int error = co_await node->writer->flush(context, node, true)) co_return error;
  }
  Task<Result<Wcc>> change = space == Space::kTaken
                                 ? remote.allocate(context, node->handle, offset, length)
                                 : remote.deallocate(context, node->handle, offset, length);
  co_return co_await make_change(context, node, std::move(change));
}

Task<int> FileSystem::copy(RequestContext context, NodeRef from, std::uint64_t from_offset,
                           NodeRef to, std::uint64_t to_offset, std::uint64_t* count) {
  if (from->writer != nullptr) {
    if (int error = co_await from->writer->flush(context, from, false)) co_return error;
    if (int error = from->writer->lost()) co_return error;  // else old data would be copied
  }
  if (to->writer != nullptr) {
    if (int error = co_await to->writer->flush(context, to, true)) co_return error;
  }
  // What lies behind the end must not be asked for (RFC 7862, 15.2.3): the end that the server
  // knows of, since more may be written meanwhile.
  if (!from->timer.fresh(loop.now())) {
    if (int error = co_await getattr_without_doubt(context, from)) co_return error;
  }
  const std::uint64_t wanted = *count;
  int error = co_await copy_within(context, from, from_offset, to, to_offset, count);
  if (error == EINVAL) {
    // Somebody may have made it shorter.
    const std::uint64_t end = from_offset + *count;
    if (int failure = co_await getattr(context, from)) co_return failure;
    if (from->attributes.size < end) {
      *count = wanted;
      error = co_await copy_within(context, from, from_offset, to, to_offset, count);
    }
  }
  co_return error;
}

Task<int> FileSystem::copy_within(RequestContext context, NodeRef from, std::uint64_t from_offset,
                                  NodeRef to, std::uint64_t to_offset, std::uint64_t* count) {
  const std::uint64_t size = from->attributes.size;
  *count = from_offset < size ? std::min(*count, size - from_offset) : 0;
  if (*count == 0) co_return 0;
  const std::uint64_t started = begin_request();
  ++to->changes_running;
  auto answer =
      co_await remote.copy(context, from->handle, from_offset, to->handle, to_offset, *count);
  apply_change(*to, answer.ok() ? answer->wcc : Wcc{}, started);
  --to->changes_running;
  // Either of the two may be the one that is gone; a wrong guess costs a LOOKUP.
  if (!answer.ok()) {
    failed(*from, answer.error());
    co_return failed(*to, answer.error());
  }
  *count = answer->count;
  co_return 0;
}

}  // namespace nfsrdma
