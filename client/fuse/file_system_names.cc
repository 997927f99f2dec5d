// SPDX-License-Identifier: Apache-2.0
// Names: lookup, making and removing, silly names. NFSv3 has no open, so a file that is removed
// or replaced while somebody here has it open gets another name (.nfsXXXX) until the last close.
#include <fmt/format.h>

#include <cerrno>

#include "client/fuse/file_system.h"

namespace nfsrdma {
namespace {

/// The server has answered, and has not done it. EIO may be a soft mount's, or its own half way.
bool is_refusal(const Error& error) {
  const int number = errno_of(error);
  const bool answered = error.code == Errc::kSystem || error.code == Errc::kRefused;
  return answered && number != EINTR && number != EIO;
}

}  // namespace

Task<int> FileSystem::lookup(RequestContext context, NodeRef directory, std::string name,
                             NodeRef* found) {
  const int error = co_await lookup_here(context, directory, name, found);
  if (error != ESTALE) co_return error;
  // The kernel goes the way again after ESTALE, but not when it looks a name up to make it (mkdir,
  // link ...). Nothing of this is cached there, since nothing of `directory` is.
  NodeRef successor;
  const int again = co_await find_again(context, directory, &successor, 0);
  if (again != 0) co_return again;
  co_return co_await lookup_here(context, successor, name, found);
}

Task<int> FileSystem::find_again(RequestContext context, NodeRef directory, NodeRef* found,
                                 int depth) {
  constexpr int kDeepest = 64;
  NodeRef parent = directory->parent.lock();
  const std::string name = directory->name;
  if (parent == nullptr || name.empty() || depth > kDeepest) co_return ESTALE;
  int error = co_await lookup_here(context, parent, name, found);
  if (error == ESTALE) {
    NodeRef successor;
    error = co_await find_again(context, parent, &successor, depth + 1);
    if (error == 0) error = co_await lookup_here(context, successor, name, found);
  }
  if (error == 0 && *found == directory) co_return ESTALE;
  if (error == 0 && !(*found)->is_directory()) co_return ENOTDIR;
  co_return error;
}

Task<int> FileSystem::lookup_here(RequestContext context, NodeRef directory, std::string name,
                                  NodeRef* found) {
  const TimePoint now = loop.now();
  if (options.cache_names && directory->timer.fresh(now)) {
    NameCache::Answer known = directory->names.find(name);
    const bool believed = known.known && (known.node != nullptr ? known.node->timer.fresh(now)
                                                                : options.cache_absent_names);
    auto rights = directory->access.find(context.caller, access_bits::kLookup, now);
    if (rights && *rights == 0) co_return EACCES;
    if (rights && believed) {
      note_hit(*directory, known.node);
      *found = known.node;
      co_return known.node != nullptr ? 0 : ENOENT;
    }
  }
  const std::uint64_t started = begin_request();
  const std::uint64_t asked = directory->names.clock();
  MaybeAttributes directory_attributes;
  // softreval: what it was when the server last answered, for a caller that was let in then.
  const NameCache::Answer last_known =
      may_run_out() ? directory->names.find(name) : NameCache::Answer{};
  std::optional<Patience> patience;
  if (last_known.known &&
      directory->access.find_last(context.caller, access_bits::kLookup).value_or(0) != 0) {
    limit(context, &patience);
  }
  auto answer = co_await remote.lookup(context, directory->handle, name, &directory_attributes);
  // Changes of others since then show in the attributes of this very answer.
  const bool current = directory->names.current(asked);
  if (!answer.ok() && patience && went_silent(*patience, answer.error())) {
    believe_again(*directory);
    if (last_known.node != nullptr) believe_again(*last_known.node);
    may_search(*directory, context.caller);
    *found = last_known.node;
    co_return *found != nullptr ? 0 : ENOENT;
  }
  if (!answer.ok()) {
    apply(*directory, directory_attributes, started);
    if (errno_of(answer.error()) != ENOENT) co_return failed(*directory, answer.error());
    if (directory->removed) {
      stale(*directory);
      co_return ESTALE;
    }
    if (current) directory->names.learn_absent(name, asked);
    may_search(*directory, context.caller);
    co_return ENOENT;
  }
  apply(*directory, answer->directory, started);
  may_search(*directory, context.caller);
  NodeRef node = nodes.obtain(answer->handle);
  if (answer->attributes) {
    apply(*node, *answer->attributes, started);
  } else if (int error = co_await getattr(context, node)) {
    co_return error;
  }
  if (node != directory) place(*node, directory, name);
  if (current) directory->names.learn(name, node, asked);
  if (!current) directory->names.note(name);
  note_miss(context.caller, directory);
  *found = std::move(node);
  co_return 0;
}

/// The server answered a LOOKUP of this caller.
void FileSystem::may_search(Node& directory, const CallerRef& caller) {
  directory.access.store(caller, access_bits::kLookup, access_bits::kLookup,
                         loop.now() + directory.timer.left(loop.now()));
}

/// After a change of a name in `directory` by us, successful or not.
void FileSystem::names_changed(Node& directory, const Wcc& change, std::uint64_t started) {
  apply_change(directory, change, started);
  --directory.changes_running;
}

Task<int> FileSystem::make(RequestContext context, NodeRef directory, std::string name, Maker maker,
                           NodeRef* made) {
  const std::uint64_t started = begin_request();
  ++directory->changes_running;
  auto answer = co_await maker(remote);
  names_changed(*directory, answer.ok() ? answer->directory : Wcc{}, started);
  if (!answer.ok()) {
    directory->names.forget(name);
    co_return co_await failed_in(context, directory, answer.error());
  }
  // The server may leave out what it made (RFC 1813, 3.3.8).
  if (answer->handle.empty()) co_return co_await lookup(context, directory, name, made);
  NodeRef node = nodes.obtain(answer->handle);
  if (answer->attributes) {
    apply(*node, *answer->attributes, started);
  } else if (int error = co_await getattr(context, node)) {
    close_there_unless_open(node);
    co_return error;
  }
  place(*node, directory, name);
  // A directory inherits a default ACL, and so that there is none.
  const bool has_none =
      directory->new_modes == Node::kByUmask && directory->timer.fresh(loop.now());
  if (has_none && node->is_directory()) node->new_modes = Node::kByUmask;
  directory->names.store(name, node);
  *made = std::move(node);
  co_return 0;
}

Task<int> FileSystem::readlink(RequestContext context, NodeRef node, std::string* text) {
  const bool known = node->link != nullptr && node->link->is_of(node->attributes);
  if (known && node->timer.fresh(loop.now())) {
    *text = node->link->text;
    co_return 0;
  }
  LinkText link{{}, node->attributes.ctime, node->attributes.change};
  auto answer = co_await remote.readlink(context, node->handle);
  if (!answer.ok()) co_return failed(*node, answer.error());
  *text = *answer;
  link.text = std::move(*answer);  // 4096 bytes at most, by whatever version
  node->link = std::make_unique<LinkText>(std::move(link));
  co_return 0;
}

Task<NodeRef> FileSystem::target_of(RequestContext context, NodeRef directory, std::string name) {
  NameCache::Answer known = directory->names.find(name);
  // Also when it is known that there is none: the kernel has just asked, before a rename. Linux's
  // client believes that, too.
  if (known.known || open_files_ == 0) co_return known.node;
  auto answer = co_await remote.lookup(context, directory->handle, name, nullptr);
  co_return answer.ok() ? nodes.obtain(answer->handle) : nullptr;
}

std::string FileSystem::silly_name(const Node& node) {
  return fmt::format(".nfs{:016x}{:08x}", node.attributes.fileid, silly_counter_++);
}

Task<int> FileSystem::hide_open_file(RequestContext context, NodeRef node, NodeRef directory,
                                     std::string name, bool keep_name) {
  // Whoever is killed meanwhile leaves: what is sent may be done all the same, and the last close
  // has to know of the name then.
  Task<int> hidden =
      hide_to_the_end({context.caller, nullptr}, node, directory, std::move(name), keep_name);
  const auto error = co_await to_the_end(context, std::move(hidden));
  co_return error.value_or(EINTR);
}

Task<int> FileSystem::hide_to_the_end(RequestContext context, NodeRef node, NodeRef directory,
                                      std::string name, bool keep_name) {
  co_await give_way_to_change(context, node);
  const std::string hidden = silly_name(*node);
  const std::uint64_t started = begin_request();
  ++directory->changes_running;
  int error = 0;
  if (keep_name) {
    auto linked = co_await remote.link(context, node->handle, directory->handle, hidden);
    names_changed(*directory, linked.ok() ? linked->directory : Wcc{}, started);
    if (!linked.ok()) error = errno_of(linked.error());
  } else {
    auto renamed = co_await remote.rename(context, directory->handle, name, directory->handle,
                                          hidden, &node->handle);
    names_changed(*directory, renamed.ok() ? renamed->from_directory : Wcc{}, started);
    if (!renamed.ok()) {
      directory->names.forget(name);
      error = co_await failed_in(context, directory, renamed.error());
    }
    if (error == 0) directory->names.store_absent(name);
  }
  if (error != 0) {
    directory->names.forget(hidden);
    co_return error;
  }
  note_renamed(*node);
  directory->names.store(hidden, node);
  node->silly = std::make_unique<SillyName>(SillyName{directory, hidden, context.caller});
  // The last close came while we were at it.
  remove_silly_unless_used(node);
  co_return 0;
}

void FileSystem::remove_silly_unless_used(const NodeRef& node) {
  if (node->silly != nullptr && !node->in_use()) tasks.spawn(remove_silly(node));
}

Task<void> FileSystem::remove_silly(NodeRef node) {
  std::unique_ptr<SillyName> silly = std::move(node->silly);
  if (silly == nullptr) co_return;
  co_await give_way_to_change({silly->caller, nullptr}, node);
  Node& directory = *silly->directory;
  ++directory.silly_removals;
  ++directory.changes_running;
  const std::uint64_t started = begin_request();
  auto removed = co_await remote.remove({silly->caller, nullptr}, directory.handle, silly->name,
                                        &node->handle);
  names_changed(directory, removed.ok() ? removed->directory : Wcc{}, started);
  directory.names.forget(silly->name);
  note_renamed(*node);
  --directory.silly_removals;
  silly_done_.wake_all();
}

Task<int> FileSystem::remove(RequestContext context, NodeRef directory, std::string name) {
  NodeRef target = co_await target_of(context, directory, name);
  if (target != nullptr && target->in_use() && !target->is_directory()) {
    if (target->silly == nullptr) {
      co_return co_await hide_open_file(context, target, directory, name, false);
    }
    if (target->silly->name == name && target->silly->directory == directory) co_return EBUSY;
  }
  co_await give_way_to_change(context, target);
  // Who opens it by a name; but one goes through all names to find it.
  const bool needs_another =
      remote.opens_by_name() && target != nullptr && target->attributes.nlink > 1;
  const std::uint64_t started = begin_request();
  ++directory->changes_running;
  auto removed = co_await remote.remove(context, directory->handle, name,
                                        target != nullptr ? &target->handle : nullptr);
  names_changed(*directory, removed.ok() ? removed->directory : Wcc{}, started);
  if (!removed.ok()) {
    directory->names.forget(name);
    co_return co_await failed_in(context, directory, removed.error());
  }
  directory->names.store_absent(name);
  if (target != nullptr) {
    note_renamed(*target);  // its link count
    if (promised(*target)) tasks.spawn(end_promise(target));
    const bool was_here = target->name == name && target->parent.lock() == directory;
    if (was_here && !target->is_directory()) {
      target->name = needs_another ? directory->names.name_of(*target) : "";
    }
  }
  co_return 0;
}

Task<int> FileSystem::rmdir(RequestContext context, NodeRef directory, std::string name) {
  NodeRef target = directory->names.find(name).node;
  for (;;) {
    const std::uint64_t started = begin_request();
    ++directory->changes_running;
    auto removed = co_await remote.rmdir(context, directory->handle, name,
                                         target != nullptr ? &target->handle : nullptr);
    names_changed(*directory, removed.ok() ? removed->directory : Wcc{}, started);
    if (removed.ok()) break;
    const int error = co_await failed_in(context, directory, removed.error());
    // Silly names of files closed just now are still on their way out.
    if (error != ENOTEMPTY || target == nullptr || target->silly_removals == 0) {
      directory->names.forget(name);
      co_return error;
    }
    while (target->silly_removals > 0) {
      const bool go_on = co_await silly_done_.wait(cancel_of(context));
      if (!go_on) co_return EINTR;
    }
  }
  directory->names.store_absent(name);
  if (target != nullptr) {
    target->timer.expire();
    target->names.clear();
  }
  co_return 0;
}

Task<int> FileSystem::rename(RequestContext context, NodeRef from_directory, std::string from,
                             NodeRef to_directory, std::string to) {
  NodeRef moved = co_await target_of(context, from_directory, from);
  NodeRef replaced = co_await target_of(context, to_directory, to);
  const bool hide = replaced != nullptr && replaced != moved && replaced->in_use() &&
                    !replaced->is_directory() && replaced->silly == nullptr;
  bool has_both_names = hide;
  if (hide) {
    // A second name keeps the replacement atomic; a server without links gets the name moved away.
    int error = co_await hide_open_file(context, replaced, to_directory, to, true);
    if (error != 0 && error != EINTR) {
      has_both_names = false;
      error = co_await hide_open_file(context, replaced, to_directory, to, false);
    }
    if (error != 0) co_return error;
  }
  co_await give_way_to_change(context, moved);
  co_await give_way_to_change(context, replaced);
  const std::uint64_t started = begin_request();
  // Once for each directory: a second change under way would pass for the reason of any difference.
  const bool moves = from_directory != to_directory;
  ++to_directory->changes_running;
  if (moves) ++from_directory->changes_running;
  auto renamed = co_await remote.rename(context, from_directory->handle, from, to_directory->handle,
                                        to, moved != nullptr ? &moved->handle : nullptr);
  names_changed(*to_directory, renamed.ok() ? renamed->to_directory : Wcc{}, started);
  if (moves) {
    names_changed(*from_directory, renamed.ok() ? renamed->from_directory : Wcc{}, started);
  }
  from_directory->names.forget(from);
  to_directory->names.forget(to);
  if (!renamed.ok()) {
    // Where it may have run, the hidden name is the only one: the last close removes it.
    if (has_both_names && is_refusal(renamed.error())) tasks.spawn(remove_silly(replaced));
    const int error = co_await failed_in(context, from_directory, renamed.error());
    if (error == ESTALE) stale(*to_directory);  // it may have been this one
    if (error != ENOENT || to_directory == from_directory) co_return error;
    co_return co_await failed_in(context, to_directory, renamed.error());
  }
  if (moved != replaced || moved == nullptr) from_directory->names.store_absent(from);
  if (moved != nullptr) {
    to_directory->names.store(to, moved);
    place(*moved, to_directory, to);
    note_renamed(*moved);
    if (moved->silly != nullptr && moved->silly->name == from) moved->silly.reset();
  }
  if (replaced != nullptr) {
    note_renamed(*replaced);
    if (promised(*replaced)) tasks.spawn(end_promise(replaced));
  }
  co_return 0;
}

Task<int> FileSystem::link(RequestContext context, NodeRef node, NodeRef directory,
                           std::string name) {
  co_await give_way_to_change(context, node);
  const std::uint64_t started = begin_request();
  ++directory->changes_running;
  auto linked = co_await remote.link(context, node->handle, directory->handle, name);
  names_changed(*directory, linked.ok() ? linked->directory : Wcc{}, started);
  if (!linked.ok()) {
    directory->names.forget(name);
    const int error = failed(*node, linked.error());
    if (error == ESTALE) stale(*directory);  // it may have been this one
    if (error != ENOENT) co_return error;
    co_return co_await failed_in(context, directory, linked.error());
  }
  note_renamed(*node);
  ++node->changes_running;  // its new link count is no foreign change
  apply(*node, linked->attributes, started);
  --node->changes_running;
  if (linked->attributes) node->renamed_at = 0;
  directory->names.store(name, node);
  if (!linked->attributes) co_return co_await getattr(context, node);
  co_return 0;
}

}  // namespace nfsrdma
