// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/verbs/context_use.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "rpcrdma/base/error.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma::verbs {

namespace {

struct Uses {
  struct Entry {
    std::size_t count = 0;
    bool removed = false;
  };
  std::mutex mutex;
  std::map<const ibv_context*, Entry> entries;  // guarded by mutex
};

/// Never destroyed: loops may end after the program's static objects.
Uses& uses() {
  static Uses& instance = *new Uses;
  return instance;
}

/// Reads from it end, writes and ioctls fail: nothing takes it for a device, or waits on it.
UniqueFd dead_end() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return UniqueFd();
  ::close(ends[1]);
  return UniqueFd(ends[0]);
}

void close_files(const ibv_context& context) {
  const UniqueFd nothing = dead_end();
  for (const int fd : {context.cmd_fd, context.async_fd}) {
    if (!nothing || ::dup3(nothing.get(), fd, O_CLOEXEC) < 0) {
      log_error("verbs: {}: {}: its removal waits for the end of this process",
                context.device->name, system_error("dup3").message());
    }
  }
}

}  // namespace

ContextUse::ContextUse(ibv_context* context, CommandThread& commands)
    : context_(context), commands_(commands) {
  std::lock_guard lock(uses().mutex);
  ++uses().entries[context].count;
}

void ContextUse::close_with_last() {
  std::lock_guard lock(uses().mutex);
  uses().entries[context_].removed = true;
}

ContextUse::~ContextUse() {
  std::lock_guard lock(uses().mutex);
  const auto entry = uses().entries.find(context_);
  if (--entry->second.count != 0) return;
  const bool removed = entry->second.removed;
  uses().entries.erase(entry);
  // On the thread of all calls of librdmacm, which may close the same descriptors.
  if (removed && alive_) commands_.run([this] { close_files(*context_); });
}

}  // namespace nfsrdma::verbs
