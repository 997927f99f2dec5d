// SPDX-License-Identifier: Apache-2.0
// FUSE operations on open directories. The offset of an entry is the server's cookie, so that
// reading can go on anywhere, also after a restart of the server.
#include <cerrno>
#include <cstring>

#include "client/fuse/fuse_operations.h"

namespace nfsrdma {
namespace {

/// Takes over a page of entries, with nodes for those that came with handle and attributes.
class PageReader final : public DirectoryVisitor {
 public:
  PageReader(FileSystem& file_system, OpenDirectory& directory, std::uint64_t started)
      : fs_(file_system), directory_(directory), started_(started) {}

  bool on_entry(const nfsrdma::DirectoryEntry& entry) override {
    OpenDirectory::Entry row;
    row.name = entry.name;
    row.fileid = entry.fileid;
    row.cookie = entry.cookie;
    if (entry.handle != nullptr && entry.attributes != nullptr && !dot_name(entry.name)) {
      row.node = fs_.nodes.obtain(*entry.handle);
      fs_.apply(*row.node, *entry.attributes, started_);
      fs_.place(*row.node, directory_.node, entry.name);
    }
    directory_.page.push_back(std::move(row));
    return true;
  }

 private:
  static bool dot_name(std::string_view name) { return name == "." || name == ".."; }

  FileSystem& fs_;
  OpenDirectory& directory_;
  std::uint64_t started_;
};

}  // namespace

Task<void> FuseOperations::opendir(fuse_req_t raw, fuse_ino_t ino, fuse_file_info info) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  if (node == nullptr) co_return request.error(ESTALE);
  const bool ask = fs.options.close_to_open || !node->timer.fresh(fs.loop.now());
  const int error = co_await fs.permit(request.context(), node, access_bits::kRead, ask);
  if (error != 0) co_return request.error(error);
  OpenDirectory* directory = new OpenDirectory{node, request.caller(), {}, 0, 0, false, false};
  info.fh = reinterpret_cast<std::uintptr_t>(directory);
  if (!request.opened(info)) delete directory;
}

Task<int> FuseOperations::fetch_page(Request& request, OpenDirectory& directory,
                                     std::uint64_t cookie, bool plus) {
  Node& node = *directory.node;
  const std::uint64_t started = fs.begin_request();
  const std::uint64_t epoch = node.names_epoch;
  directory.page.clear();
  directory.have_page = false;
  if (cookie == 0) directory.verifier = 0;
  PageReader reader(fs, directory, started);
  auto page = co_await fs.remote.readdir(request.as(directory.caller), node.handle, cookie,
                                         directory.verifier, plus, reader);
  if (!page.ok()) co_return fs.failed(node, page.error());
  directory.verifier = page->verifier;
  directory.page_start = cookie;
  directory.have_page = true;
  directory.last_page = page->eof;
  const bool current = epoch == node.names_epoch;
  fs.apply(node, page->directory, started);
  for (const OpenDirectory::Entry& entry : directory.page) {
    if (entry.node == nullptr) continue;
    if (current) {
      node.names.store(entry.name, entry.node);
    } else {
      node.names.note(entry.name);
    }
  }
  co_return 0;
}

Task<void> FuseOperations::readdir(fuse_req_t raw, OpenDirectory* directory, std::size_t size,
                                   std::uint64_t offset, bool plus) {
  Request request(*this, raw);
  std::vector<char> out(size);
  std::size_t used = 0;
  for (std::uint64_t cookie = offset;;) {
    // Where in the page at hand the reader stands; behind its end, or elsewhere, is another page.
    std::size_t next = 0;
    bool inside = directory->have_page && cookie == directory->page_start;
    for (std::size_t i = 0; !inside && directory->have_page && i < directory->page.size(); ++i) {
      if (directory->page[i].cookie != cookie) continue;
      inside = true;
      next = i + 1;
    }
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
      const OpenDirectory::Entry& entry = directory->page[next];
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
