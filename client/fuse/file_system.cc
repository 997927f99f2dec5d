// SPDX-License-Identifier: Apache-2.0
// Attributes, permissions and the background work of a mount. Names: file_system_names.cc; open
// files: file_system_files.cc.
#include "client/fuse/file_system.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "rpcrdma/base/log.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma {
namespace {

// Like the kernel's flusher: data that nobody flushes leaves after some seconds.
constexpr std::chrono::seconds kWriteBackEvery{5};
// What is remembered of one object, about: a node with its name, and its places in two tables.
constexpr std::uint64_t kBytesOfANode = sizeof(Node) + 512;
// Open files are revalidated when their attributes expire, since the kernel serves reads from its
// pages without asking.
constexpr std::chrono::seconds kRevalidateEvery{1};
// Much longer than a process takes to take an answer over.
constexpr std::chrono::seconds kNotKeptBehindAChange{3};
constexpr std::uint32_t kEverybodySearches = 0111;

/// What grows with each change of an object. A change attribute may be any number, but those of
/// Linux grow (RFC 7862, 12.2.3).
auto age_of(const Attributes& attributes) {
  return std::tuple(attributes.ctime.tv_sec, attributes.ctime.tv_nsec,
                    attributes.change.value_or(0));
}
bool differs(const Attributes& now, const Attributes& before) {
  return !same_time(now.ctime, before.ctime) ||
         (now.change && before.change && *now.change != *before.change);
}

bool same_version(const Wcc::Before& before, const Attributes& known) {
  return before.size == known.size && same_time(before.mtime, known.mtime) &&
         same_time(before.ctime, known.ctime);
}
/// Is there nothing but our own operation between what we know and what is now? A server that
/// cannot tell gets the benefit of the doubt, as from the kernel's client: else every own write
/// would empty the caches.
bool is_ours(const Wcc& change, const Attributes& known) {
  if (change.before) return same_version(*change.before, known);
  if (!change.change || !known.change || !change.after->change) return true;
  return change.change->atomic && change.change->before == *known.change &&
         change.change->after == *change.after->change;
}

}  // namespace

FileSystem::FileSystem(EventLoop& its_loop, Remote& its_remote, FileSystemOptions its_options,
                       KernelCache kernel)
    : loop(its_loop),
      remote(its_remote),
      options(its_options),
      kernel_(std::move(kernel)),
      silly_counter_(std::random_device{}()),
      write_back_timer_([this] { on_write_back_timer(); }),
      revalidate_timer_([this] { on_revalidate_timer(); }) {
  budget.cap = options.write_budget;
}

FileSystem::~FileSystem() {
  remote.set_delegation_holder(nullptr);
  // Writers reach into the budget and their list: they go while both are there.
  nodes.for_each([](const NodeRef& node) { node->writer.reset(); });
}

CancelToken* cancel_of(const RequestContext& context) {
  return context.interrupt == nullptr ? nullptr : context.interrupt->token.get();
}

Task<int> FileSystem::start(RequestContext context) {
  remote.set_delegation_holder(this);
  root = nodes.obtain(remote.root());
  nodes.reference(root);
  const int error = co_await getattr(context, root);
  if (error == 0) {
    FsStat first;
    [[maybe_unused]] int ignored = co_await space(context, root, &first);
  }
  write_back_timer_.arm_after(loop, kWriteBackEvery);
  revalidate_timer_.arm_after(loop, kRevalidateEvery);
  co_return error;
}

Task<void> FileSystem::finish() {
  write_back_timer_.cancel();
  revalidate_timer_.cancel();
  // The kernel may never say so any more: nobody hears its requests.
  finishing_ = true;
  leaving_.raise();
  const std::vector<std::shared_ptr<Occasion>> dropping(dropping_.begin(), dropping_.end());
  for (const std::shared_ptr<Occasion>& drop : dropping)
    drop->come();
  std::vector<NodeRef> all;
  nodes.for_each([&all](const NodeRef& node) { all.push_back(node); });
  for (NodeRef& node : all) {
    if (node->silly != nullptr) tasks.spawn(remove_silly(node));
    if (node->writer != nullptr) node->writer->write_back(node);
  }
  all.clear();
  co_await tasks.wait();
}

void FileSystem::foreign_change(Node& node, const Attributes& now) {
  if (node.is_directory()) {
    node.names.clear();
    node.new_modes.reset();
    return;
  }
  if (now.size < visible(node).size) node.kernel_size_high = true;
  if (node.writer != nullptr) node.writer->doubt();
  pages_are_old(node);
}

void FileSystem::pages_are_old(Node& node) {
  ++node.pages_outdated;
  node.kernel_size_old = true;
  // In taking them the kernel counts attributes as valid an instant before it has the size, and
  // another process goes by the one from before.
  node.not_kept_until = loop.now() + kNotKeptBehindAChange;
  if (node.opens > 0) drop_pages(node);
}

void FileSystem::drop_pages(Node& node) {
  if (node.pages_told == node.pages_outdated) return;
  node.pages_told = node.pages_outdated;
  ++node.drops;
  node.drop = std::make_shared<Occasion>();
  kernel_.drop_data(node.id, [dropping = std::weak_ptr(nodes.obtain(node.handle)), drop = node.drop,
                              told = node.pages_told] {
    const NodeRef there = dropping.lock();
    if (there != nullptr) there->pages_dropped = std::max(there->pages_dropped, told);
    drop->come();
  });
}

Task<bool> FileSystem::drop_pages_now(RequestContext context, NodeRef node) {
  drop_pages(*node);
  if (node->pages_dropped == node->pages_told || finishing_) co_return true;
  const std::shared_ptr<Occasion> drop = node->drop;
  const auto waiting = dropping_.insert(dropping_.end(), drop);
  const bool over = co_await drop->wait(cancel_of(context));
  dropping_.erase(waiting);
  co_return over;
}

Task<void> FileSystem::drop_read_pages(RequestContext context, NodeRef node) {
  if (node->read_into_pages) {
    node->read_into_pages = false;
    ++node->pages_outdated;
    drop_pages(*node);
  }
  if (node->pages_dropped == node->pages_told) co_return;
  // The kernel has only so many of such writes under way (max_background), and of the READs whose
  // pages the dropping waits for. One that does not wait is as the kernel alone would have it.
  constexpr unsigned kMostWaiting = 16;
  if (waiting_writes_ >= kMostWaiting) co_return;
  ++waiting_writes_;
  [[maybe_unused]] const bool dropped = co_await drop_pages_now(std::move(context), node);
  --waiting_writes_;
}

void FileSystem::told(Node& node, pid_t pid) {
  // Of an answer that is overtaken by the dropping of attributes, the kernel takes nothing.
  if (node.pages_dropped != node.pages_told) return;
  node.kernel_size_old = false;
  for (SentBack& one : node.sent_back) {
    if (one.pid == pid && one.drops == node.drops) one.told = true;
  }
}

void FileSystem::take_over(Node& node, const Attributes& attributes) {
  const Attributes& old = node.attributes;
  if (node.has_attributes &&
      (old.mode != attributes.mode || old.uid != attributes.uid || old.gid != attributes.gid)) {
    node.access.clear();
    // Once not everybody may search here, the kernel must ask again.
    const bool searchable = (node.attributes.mode & kEverybodySearches) == kEverybodySearches;
    if (node.is_directory() && searchable && !options.one_user &&
        (attributes.mode & kEverybodySearches) != kEverybodySearches) {
      expire_names(node);
    }
  }
  // A server that holds a removed object open still knows it; its names lead elsewhere by now. Some
  // file systems always say 0.
  if (attributes.nlink > 0) {
    node.removed = false;
  } else if (node.has_attributes && node.attributes.nlink > 0) {
    node.removed = true;
  }
  node.attributes = attributes;
  node.has_attributes = true;
  node.applied_at = ++clock_;
}

void FileSystem::expire_names(Node& directory) {
  const auto expire = [&](const std::string& name) { kernel_.expire_name(directory.id, name); };
  directory.names.for_each(expire);
  if (!directory.names.take_overflow()) return;
  // Of a name that found no room the kernel has the object, if it has anything.
  nodes.for_each([&](const NodeRef& node) {
    const bool is_here = node->lookups > 0 && node->parent.lock().get() == &directory;
    if (is_here && !node->name.empty()) expire(node->name);
  });
}

void FileSystem::apply(Node& node, const Attributes& attributes, std::uint64_t started) {
  server_silent_ = false;
  const TimePoint now = loop.now();
  const Attributes& old = node.attributes;
  if (!node.has_attributes) {
    take_over(node, attributes);
    node.timer.changed(options.attributes, node.is_directory(), now);
    return;
  }
  // A reply that was overtaken.
  if (started < node.applied_at && age_of(attributes) <= age_of(old)) return;
  const bool written = attributes.size != old.size || !same_time(attributes.mtime, old.mtime);
  const bool changed = written || differs(attributes, old);
  const bool content = written || (changed && node.renamed_at == 0);
  if (started > node.renamed_at) node.renamed_at = 0;
  if (changed && node.changes_running == 0) {
    if (content) foreign_change(node, attributes);
    node.access.clear();  // an ACL may have changed without a trace in the mode
  }
  take_over(node, attributes);
  if (changed) {
    node.timer.changed(options.attributes, node.is_directory(), now);
  } else {
    node.timer.unchanged(options.attributes, node.is_directory(), now);
  }
}

void FileSystem::apply_change(Node& node, const Wcc& change, std::uint64_t started) {
  if (!change.after) {
    node.timer.expire();
    return;
  }
  const Attributes& after = *change.after;
  // The caller still counts itself in changes_running.
  const bool ours =
      !node.has_attributes || node.changes_running > 1 || is_ours(change, node.attributes);
  const bool overtaken = node.has_attributes && started < node.applied_at &&
                         std::tuple(age_of(after), after.size) <=
                             std::tuple(age_of(node.attributes), node.attributes.size);
  if (overtaken) return;
  if (!ours) foreign_change(node, after);
  take_over(node, after);
  node.timer.changed(options.attributes, node.is_directory(), loop.now());
}

Task<int> FileSystem::make_change(RequestContext context, NodeRef node, Task<Result<Wcc>> change) {
  co_await give_way_to_change(context, node);
  const std::uint64_t started = begin_request();
  ++node->changes_running;
  auto answer = co_await std::move(change);
  apply_change(*node, answer.ok() ? *answer : Wcc{}, started);
  --node->changes_running;
  if (!answer.ok()) co_return failed(*node, answer.error());
  co_return stale_if_removed(*node);
}

void FileSystem::note_renamed(Node& node) {
  node.timer.expire();
  node.renamed_at = begin_request();
}

Task<int> FileSystem::getattr(RequestContext context, NodeRef node) {
  const std::uint64_t started = begin_request();
  std::optional<Patience> patience;
  if (may_run_out() && node->has_attributes) limit(context, &patience);
  auto answer = co_await remote.getattr(context, node->handle);
  if (answer.ok()) {
    apply(*node, *answer, started);
    co_return 0;
  }
  if (patience && went_silent(*patience, answer.error())) {
    believe_again(*node);
    co_return 0;
  }
  co_return failed(*node, answer.error());
}

void FileSystem::limit(RequestContext& context, std::optional<Patience>* patience) {
  patience->emplace(loop, context);
  // Who lists a directory asks a hundred times; waiting once is enough to see that the server is
  // silent.
  (*patience)->arm_after(server_silent_
                             ? std::min<Duration>(options.revalidation_patience, kSilentPatience)
                             : options.revalidation_patience);
}

bool FileSystem::went_silent(const Patience& patience, const Error& error) {
  if (!patience.ran_out(error) && error.code != Errc::kTimedOut) return false;
  server_silent_ = true;
  return true;
}

void FileSystem::believe_again(Node& node) {
  node.timer.again(options.attributes, node.is_directory(), loop.now());
}

Task<int> FileSystem::getattr_without_doubt(RequestContext context, NodeRef node) {
  if (int error = co_await getattr(context, node)) co_return error;
  if (node->writer == nullptr || !node->writer->data().in_doubt()) co_return 0;
  if (int error = co_await node->writer->flush(context, node, true)) co_return error;
  co_return co_await getattr(context, node);
}

Task<int> FileSystem::refresh(RequestContext context, NodeRef node) {
  if (node->writer != nullptr && !node->writer->idle()) {
    // Times and sizes are the server's: what it does not have yet goes first.
    if (int error = co_await node->writer->flush(context, node, false)) co_return error;
  }
  if (node->timer.fresh(loop.now())) co_return 0;
  if (int error = co_await getattr_without_doubt(context, node)) co_return error;
  co_return stale_if_removed(*node);
}

int FileSystem::stale_if_removed(Node& node) {
  if (!node.removed || node.opens > 0) return 0;
  stale(node);
  return ESTALE;
}

Task<int> FileSystem::space(RequestContext context, NodeRef node, FsStat* found) {
  Patience patience(loop, context);
  // Behind a referral is another server.
  const bool ours = node->handle.tree() == 0;
  if (last_space_ && ours) patience.arm_after(kSpacePatience);
  auto answer = co_await remote.fsstat(context, node->handle);
  if (answer.ok()) {
    *found = *answer;
    if (ours) last_space_ = *answer;
    co_return 0;
  }
  if (!patience.ran_out(answer.error())) co_return failed(*node, answer.error());
  *found = *last_space_;
  co_return 0;
}

Attributes FileSystem::visible(const Node& node) const {
  Attributes attributes = node.attributes;
  if (node.writer != nullptr) {
    attributes.size = std::max(attributes.size, node.writer->data().pending_end());
  }
  return attributes;
}

double FileSystem::attribute_seconds(const Node& node) const {
  if (loop.now() < node.not_kept_until) return 0;
  // The next write may take the set-id bits away on the server, and the kernel would not ask.
  if (node.attributes.type == FileType::kRegular && (node.attributes.mode & (S_ISUID | S_ISGID)))
    return 0;
  // What is written here changes the times on the server, and the kernel is not told then.
  if (node.writer != nullptr && (!node.writer->data().clean() || node.writer->data().in_doubt())) {
    return 0;
  }
  return std::chrono::duration<double>(node.timer.left(loop.now())).count();
}

double FileSystem::entry_seconds(const Node& directory) const {
  if (!options.cache_names) return 0;
  if (!options.one_user && (directory.attributes.mode & kEverybodySearches) != kEverybodySearches) {
    return 0;
  }
  return attribute_seconds(directory);
}

int FileSystem::failed(Node& node, const Error& error) {
  const int number = errno_of(error);
  if (number == ESTALE) stale(node);
  return number;
}

void FileSystem::stale(Node& node) {
  node.timer.expire();
  node.access.clear();
  // Any directory on the way may have been replaced. Bounded: two nodes could name each other as
  // parents when directories were moved elsewhere.
  constexpr int kDeepest = 256;
  NodeRef above = node.parent.lock();
  for (int depth = 0; above != nullptr && depth < kDeepest; ++depth) {
    above->names.clear();
    above->timer.expire();
    above = above->parent.lock();
  }
}

Task<int> FileSystem::failed_in(RequestContext context, NodeRef directory, Error error) {
  const int number = failed(*directory, error);
  if (number != ENOENT) co_return number;
  // No such name, or the directory itself was removed.
  const int found = co_await getattr(context, directory);
  if (found != ESTALE && !directory->removed) co_return ENOENT;
  stale(*directory);
  co_return ESTALE;
}

Task<int> FileSystem::permit(RequestContext context, NodeRef node, std::uint32_t rights, bool ask,
                             OpenFor how) {
  if (!ask) {
    if (auto known = node->access.find(context.caller, rights, loop.now())) {
      if (*known != rights) co_return EACCES;
      const bool is_no_open = how.access == 0;
      if (is_no_open || remote.open_already(context, node->handle, how.access)) co_return 0;
    }
  }
  // All rights at once, so that the next question is answered from here.
  using namespace access_bits;
  const std::uint32_t all = node->is_directory() ? kRead | kLookup | kModify | kExtend | kDelete
                                                 : kRead | kModify | kExtend | kExecute;
  const bool before = remote.delegation(node->handle) != DelegationKind::kNone;
  const std::uint64_t started = begin_request();
  Result<AccessResult> answer = AccessResult{};
  std::optional<Patience> patience;
  if (how.access != 0) {
    answer = co_await remote.open(context, node->handle, all, how);
  } else {
    const bool may_guess = !ask && may_run_out();
    const auto last_known =
        may_guess ? node->access.find_last(context.caller, rights) : std::nullopt;
    if (last_known) limit(context, &patience);
    answer = co_await remote.access(context, node->handle, all);
    if (!answer.ok() && patience && went_silent(*patience, answer.error())) {
      co_return *last_known == rights ? 0 : EACCES;
    }
  }
  if (!answer.ok()) co_return failed(*node, answer.error());
  // Rights from before what is known now are not to be remembered for as long as a promise lasts.
  const bool overtaken = started < node->applied_at && node->timer.held();
  const bool came_too_late =
      how.delegation && (how.access & kModify) == 0 && changes_unnamed(*node);
  if (came_too_late) co_await give_way_to_writer(context, node);
  if (answer->attributes) note_delegation(*node, how, before);
  apply(*node, answer->attributes, started);
  if (node->removed) {
    stale(*node);
    co_return ESTALE;
  }
  if (!overtaken) {
    node->access.store(context.caller, all, answer->allowed,
                       loop.now() + node->timer.left(loop.now()));
  }
  co_return (answer->allowed & rights) == rights ? 0 : EACCES;
}

Task<int> FileSystem::permit_cut(RequestContext context, NodeRef node, int flags) {
  if ((open_access(flags) & access_bits::kModify) != 0) co_return 0;
  co_return co_await permit(std::move(context), std::move(node), access_bits::kModify, false);
}

void FileSystem::write_back_all() {
  std::vector<NodeRef> busy;
  writers.for_each([&busy, this](FileWriter& writer) {
    if (!writer.data().stable()) busy.push_back(nodes.obtain(writer.node().handle));
  });
  for (NodeRef& node : busy) {
    if (node->writer != nullptr) node->writer->write_back(node);
  }
}

std::vector<std::string> FileSystem::unwritten_files(std::size_t most) {
  std::vector<std::string> paths;
  writers.for_each([&](FileWriter& writer) {
    if (!writer.data().stable() && paths.size() < most) paths.push_back(path_of(writer.node()));
  });
  return paths;
}

/// Where `node` was found last, for messages.
std::string FileSystem::path_of(const Node& node) {
  std::string path;
  const Node* below = &node;
  NodeRef above = node.parent.lock();
  constexpr std::size_t kLongest = 4096;
  while (above != nullptr && path.size() < kLongest) {
    const std::string name = above->names.name_of(*below);
    if (name.empty()) break;
    if (!path.empty()) path.insert(0, 1, '/');
    path.insert(0, name);
    if (above == root) return path;
    below = above.get();
    above = above->parent.lock();
  }
  return fmt::format("{}{}inode {}", path, path.empty() ? "" : " below ", below->attributes.fileid);
}

void FileSystem::on_write_back_timer() {
  write_back_all();
  spare_memory_.observe(std::exchange(budget.most, budget.held) + nodes.alive() * kBytesOfANode);
  write_back_timer_.arm_after(loop, kWriteBackEvery);
}

void FileSystem::on_revalidate_timer() {
  const TimePoint now = loop.now();
  std::vector<NodeRef> due;
  open_nodes_.for_each([&](Node& node) {
    // One question at a time: on a hard mount each waits as long as the server is silent.
    if (node.is_regular() && !node.timer.fresh(now) && !node.revalidating) {
      due.push_back(nodes.obtain(node.handle));
    }
  });
  for (NodeRef& node : due)
    tasks.spawn(revalidate(node));
  forget_names_ahead(now);
  revalidate_timer_.arm_after(loop, kRevalidateEvery);
}

Task<void> FileSystem::revalidate(NodeRef node) {
  if (node->changes_running > 0) co_return;
  node->revalidating = true;
  // As the kernel's client does without a caller at hand: GETATTR needs no rights.
  [[maybe_unused]] int error = co_await getattr({std::make_shared<const Caller>(), nullptr}, node);
  node->revalidating = false;
}

}  // namespace nfsrdma
