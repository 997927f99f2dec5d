// SPDX-License-Identifier: Apache-2.0
#include "server/files/file_pages.h"

#include <unistd.h>

#include <chrono>
#include <optional>

#include "rpcrdma/base/file_window.h"
#include "server/credentials.h"

namespace nfsrdma {

namespace {

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// Whom the kernel lets ask whether pages of this file are in the page cache; to others it says
/// that all are. `owner` is set where the thread has to be the server for that.
bool may_ask(const struct stat& attributes, std::optional<AsServer>& server) {
  if (!can_switch_identity()) return attributes.st_uid == ::geteuid();
  if (!owns_every_file()) return false;
  server.emplace();
  return true;
}

}  // namespace

bool show_pages(Request& request, ReadCosts& costs, int fd, const struct stat& attributes,
                std::uint64_t offset, std::size_t size) {
  ServerConnection& connection = request.call->connection();
  if (request.may_block || !request.credentials.may_reduce || size < kFewestShown ||
      offset % FileWindow::page_size() != 0 || !connection.sends_file_pages() ||
      !costs.pages_next()) {
    return false;
  }
  std::optional<AsServer> server;
  if (!may_ask(attributes, server)) return false;
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

Got copy_data(ReadCosts& costs, int fd, bool may_block, MutableByteSpan room, std::uint64_t offset,
              std::size_t* size, int* error) {
  if (may_block || room.size() < kFewestShown) {
    return read_data(fd, may_block, room, offset, size, error);
  }
  const std::uint64_t start = now_ns();
  const Got got = read_data(fd, may_block, room, offset, size, error);
  if (got == Got::kData) costs.copied(room.size(), now_ns() - start);
  return got;
}

}  // namespace nfsrdma
