// SPDX-License-Identifier: Apache-2.0
// FUSE operations on open directories. The offset of an entry is the server's cookie, so that
// reading can go on anywhere, also after a restart of the server.
#include <cerrno>
#include <cstring>

#include "client/fuse/fuse_operations.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma {

std::optional<std::size_t> OpenDirectory::place_of(std::uint64_t cookie) const {
  if (!have_page) return {};
  // From the end: a server that gives several entries one cookie leads on, and not round.
  for (std::size_t i = page.size(); i > 0; --i)
    if (page[i - 1].cookie == cookie) return i;
  if (cookie == page_start) return 0;
  return {};
}

bool OpenDirectory::turn_page(std::uint64_t cookie) {
  // Somebody who goes back, or elsewhere, reads anew from there.
  if (cookie != circle.last()) circle = CookieCircle(cookie);
  page_start = cookie;
  have_page = last_page || page.empty() || !circle.closes(page.back().cookie);
  return have_page;
}

Task<void> FuseOperations::opendir(fuse_req_t raw, fuse_ino_t ino, fuse_file_info info) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  if (node == nullptr) co_return request.error(ESTALE);
  const bool ask = fs.options.close_to_open || !node->timer.fresh(fs.loop.now());
  const int error = co_await fs.permit(request.context(), node, access_bits::kRead, ask);
  if (error != 0) co_return request.error(error);
  OpenDirectory* directory = new OpenDirectory{node, request.caller(), {}};
  info.fh = reinterpret_cast<std::uintptr_t>(directory);
  if (!request.opened(info)) delete directory;
}

Task<int> FuseOperations::fetch_page(Request& request, OpenDirectory& directory,
                                     std::uint64_t cookie, bool plus) {
  directory.have_page = false;
  if (cookie == 0) directory.verifier = 0;
  const int error =
      co_await fs.list(request.as(directory.caller), directory.node, cookie, &directory.verifier,
                       plus, &directory.page, &directory.last_page);
  if (error != 0) co_return error;
  if (directory.turn_page(cookie)) co_return 0;
  static RateLimit limit(5, std::chrono::seconds(60));
  if (limit.allow())
    log_warning("{}: the server lists the directory in a circle",
                terminal_text(fs.path_of(*directory.node)));
  co_return EIO;
}

Task<void> FuseOperations::readdir(fuse_req_t raw, OpenDirectory* directory, std::size_t size,
                                   std::uint64_t offset, bool plus) {
  Request request(*this, raw);
  std::vector<char> out(size);
  std::size_t used = 0;
  for (std::uint64_t cookie = offset;;) {
    // Where in the page at hand the reader stands; behind its end, or elsewhere, is another page.
    const std::optional<std::size_t> inside = directory->place_of(cookie);
    std::size_t next = inside.value_or(0);
    if (!inside || (next == directory->page.size() && !directory->last_page) ||
        (offset == 0 && used == 0 && cookie == 0)) {
      if (used > 0) break;  // enough for one answer
      const int error = co_await fetch_page(request, *directory, cookie, plus);
      if (error != 0) co_return request.error(error);
      next = 0;
    }
    if (next == directory->page.size()) {
      if (directory->last_page) break;
      if (directory->page.empty()) co_return request.error(EIO);  // no progress
      continue;
    }
    bool full = false;
    for (; next < directory->page.size(); ++next) {
      const ListedName& entry = directory->page[next];
      std::size_t took = 0;
      char* room = out.data() + used;
      const off_t behind = static_cast<off_t>(entry.cookie);
      if (plus && entry.node != nullptr) {
        const fuse_entry_param found = entry_of(*entry.node, *directory->node);
        took = ::fuse_add_direntry_plus(raw, room, size - used, entry.name.c_str(), &found, behind);
      } else {
        fuse_entry_param plain{};
        plain.attr.st_ino = entry.node != nullptr ? stat_of(*entry.node).st_ino : entry.fileid;
        if (entry.node != nullptr) plain.attr.st_mode = stat_of(*entry.node).st_mode;
        took = plus ? ::fuse_add_direntry_plus(raw, room, size - used, entry.name.c_str(), &plain,
                                               behind)
                    : ::fuse_add_direntry(raw, room, size - used, entry.name.c_str(), &plain.attr,
                                          behind);
      }
      if (took > size - used) {
        full = true;
        break;
      }
      used += took;
      cookie = entry.cookie;
      if (plus && entry.node != nullptr) fs.nodes.reference(entry.node);
    }
    if (full) break;
  }
  request.data(out.data(), used);
}

}  // namespace nfsrdma
