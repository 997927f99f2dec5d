// SPDX-License-Identifier: Apache-2.0
#include "server/files/file_pages.h"

#include <unistd.h>

#include <optional>

#include "rpcrdma/base/clock.h"
#include "rpcrdma/base/file_window.h"
#include "server/credentials.h"
#include "server/vfs/record_locks.h"

namespace nfsrdma {

namespace {

/// The kernel tells the owner of a file, who may be the server itself, which pages of it are in the
/// page cache; to others it may say that all are. *as_server is set where the thread has to act as
/// the server for that.
bool may_ask(const FileCall& call, uid_t owner, std::optional<AsServer>* as_server) {
  if (!can_switch_identity()) return owner == ::geteuid();
  if (owner == call.caller().uid) return true;
  if (!owns_every_file()) return false;
  as_server->emplace();
  return true;
}

/// Sending may meet a page that has gone again. On a local file system the thread waits for the
/// disk then; elsewhere it might wait for ever.
bool is_local(ReadCosts& costs, int fd, dev_t device) {
  if (costs.is_local(device)) return true;
  if (on_remote_file_system(fd)) return false;
  costs.note_local(device);
  return true;
}

}  // namespace

bool show_pages(FileCall& call, int fd, const struct stat& attributes, std::uint64_t offset,
                std::size_t size) {
  Request& request = call.request();
  ServerConnection& connection = request.call->connection();
  ReadCosts& costs = call.server().read_costs;
  if (request.may_block || !request.credentials.may_reduce || size < kFewestShown ||
      offset % FileWindow::page_size() != 0 || !connection.sends_file_pages() ||
      !costs.pages_next() || !is_local(costs, fd, attributes.st_dev)) {
    return false;
  }
  std::optional<AsServer> as_server;
  if (!may_ask(call, attributes.st_uid, &as_server)) return false;
  Buffer window = connection.buffers().acquire_window(size);
  if (!window) return false;
  const std::uint64_t start = now_ns();
  switch (window.window()->show(fd, offset, size)) {
    case FileWindow::Shown::kNotCached:
      return false;
    case FileWindow::Shown::kNo:
      costs.not_shown(size);
      return false;
    case FileWindow::Shown::kAll:
      break;
  }
  costs.shown(size, now_ns() - start);
  request.payload = std::move(window);
  return true;
}

Got copy_data(FileCall& call, int fd, MutableByteSpan room, std::uint64_t offset, std::size_t* size,
              int* error) {
  const bool may_block = call.request().may_block;
  if (may_block || room.size() < kFewestShown) {
    return read_data(fd, may_block, room, offset, size, error);
  }
  const std::uint64_t start = now_ns();
  const Got got = read_data(fd, may_block, room, offset, size, error);
  if (got == Got::kData) call.server().read_costs.copied(room.size(), now_ns() - start);
  return got;
}

}  // namespace nfsrdma
