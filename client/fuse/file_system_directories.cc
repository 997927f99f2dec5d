// SPDX-License-Identifier: Apache-2.0
// Names of whole directories: for those who read them, and ahead of those who look at one object
// after another.
#include <algorithm>
#include <cerrno>

#include "client/cookie_circle.h"
#include "client/fuse/file_system.h"
#include "client/fuse/names_ahead.h"

namespace nfsrdma {
namespace {

bool dot_name(std::string_view name) {
  return name == "." || name == "..";
}

/// Takes over a page of entries, with nodes for those that came with handle and attributes.
class PageReader final : public DirectoryVisitor {
 public:
  PageReader(FileSystem& file_system, const NodeRef& directory, std::uint64_t started,
             std::vector<ListedName>* page)
      : fs_(file_system), directory_(directory), started_(started), page_(page) {}

  bool on_entry(const DirectoryEntry& entry) override {
    ListedName row;
    row.name = entry.name;
    row.fileid = entry.fileid;
    row.cookie = entry.cookie;
    if (entry.handle != nullptr && entry.attributes != nullptr && !dot_name(entry.name)) {
      row.node = fs_.nodes.obtain(*entry.handle);
      fs_.apply(*row.node, *entry.attributes, started_);
      FileSystem::place(*row.node, directory_, entry.name);
    }
    page_->push_back(std::move(row));
    return true;
  }

 private:
  FileSystem& fs_;
  const NodeRef& directory_;
  const std::uint64_t started_;
  std::vector<ListedName>* const page_;
};

}  // namespace

Task<int> FileSystem::list(RequestContext context, NodeRef directory, std::uint64_t cookie,
                           std::uint64_t* verifier, bool plus, std::vector<ListedName>* names,
                           bool* last) {
  const int error = co_await list_page(context, directory, cookie, verifier, plus, names, last);
  if (error != EINVAL || cookie == 0) co_return error;
  // The directory has changed, and the server knows the cookie no more with the verifier from
  // before (NFS3ERR_BAD_COOKIE, NFS4ERR_NOT_SAME). What the reader had last is looked for from the
  // beginning, as by the kernel's client.
  *verifier = 0;
  CookieCircle circle;
  for (std::uint64_t from = 0;;) {
    if (int again = co_await list_page(context, directory, from, verifier, plus, names, last)) {
      co_return again;
    }
    const auto at = std::find_if(names->begin(), names->end(), [cookie](const ListedName& entry) {
      return entry.cookie == cookie;
    });
    if (at != names->end()) {
      names->erase(names->begin(), at + 1);
      if (!names->empty() || *last) co_return 0;
      co_return co_await list_page(context, directory, cookie, verifier, plus, names, last);
    }
    if (*last || names->empty() || circle.closes(names->back().cookie)) co_return EINVAL;
    from = names->back().cookie;
  }
}

Task<int> FileSystem::list_page(RequestContext context, NodeRef directory, std::uint64_t cookie,
                                std::uint64_t* verifier, bool plus, std::vector<ListedName>* names,
                                bool* last) {
  const std::uint64_t started = begin_request();
  const std::uint64_t asked = directory->names.clock();
  names->clear();
  PageReader reader(*this, directory, started, names);
  auto page = co_await remote.readdir(context, directory->handle, cookie, *verifier, plus, reader);
  if (!page.ok()) co_return failed(*directory, page.error());
  *verifier = page->verifier;
  *last = page->eof;
  const bool current = directory->names.current(asked);
  apply(*directory, page->directory, started);
  // The table may overflow on the way, and forget what was changed since.
  const std::uint64_t now = directory->names.clock();
  for (const ListedName& entry : *names) {
    if (entry.node == nullptr) continue;
    if (current && directory->names.current(now)) {
      directory->names.learn(entry.name, entry.node, asked);
    } else {
      directory->names.note(entry.name);
    }
  }
  co_return 0;
}

void FileSystem::note_hit(Node& directory, const NodeRef& found) {
  // What the kernel knows already was asked for before.
  if (directory.names_ahead == nullptr || found == nullptr || found->lookups > 0) return;
  directory.names_ahead->hit(loop.now());
}

void FileSystem::note_miss(const CallerRef& caller, const NodeRef& directory) {
  const bool of_use = options.attributes.enabled && options.attributes.regular_min.count() > 0;
  if (!options.read_names_ahead || !options.cache_names || !of_use) return;
  if (directory->names_ahead == nullptr) directory->names_ahead = std::make_unique<NamesAhead>();
  NamesAhead& ahead = *directory->names_ahead;
  ahead.missed(loop.now());
  if (ahead.reading || !ahead.due(loop.now())) return;
  ahead.reading = true;
  tasks.spawn(read_names_ahead(caller, directory));
}

Task<void> FileSystem::read_names_ahead(CallerRef caller, NodeRef directory) {
  NamesAhead& ahead = *directory->names_ahead;
  while (ahead.due(loop.now())) {
    std::vector<ListedName> page;
    bool last = false;
    const RequestContext context{caller, nullptr};
    const int error =
        co_await list_page(context, directory, ahead.cookie, &ahead.verifier, true, &page, &last);
    const TimePoint now = loop.now();
    NamesAhead::Nodes found;
    for (const ListedName& entry : page)
      if (entry.node != nullptr) found.push_back(entry.node);
    // Who may look names up need not be allowed to read them all. And some servers give no handles.
    if (error != 0 || (found.empty() && !(last && page.empty()))) {
      ahead.refused(now);
      break;
    }
    if (found.empty()) {
      ahead.start_over(now);
      break;
    }
    ahead.cookie = page.back().cookie;
    if (ahead.forget(now)) with_names_ahead_.push_back(directory);
    ahead.take(std::move(found), now);
    if (last) ahead.start_over(now);
  }
  ahead.reading = false;
}

void FileSystem::forget_names_ahead(TimePoint now) {
  std::erase_if(with_names_ahead_,
                [&](const NodeRef& directory) { return directory->names_ahead->forget(now); });
}

}  // namespace nfsrdma
