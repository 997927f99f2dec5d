// SPDX-License-Identifier: Apache-2.0
// What a delegation means for the caches (RFC 8881, 10.4): attributes, rights and data are good
// until the server says otherwise, so that open, stat and close ask nobody; with a write delegation
// close does not wait for data either, as far as the server allows.
//
// In NFSv4.0 a change that carries no stateid is anybody's: whoever is about to make one gives a
// delegation back before that, or the server recalls it, and the change waits for that.
//
// It is asked for at the second open of a kind: files that are used once, as most of a tree that is
// copied, cost no DELEGRETURN. After a recall others want the file, too; then it is not
// asked for again for a while.
#include <algorithm>

#include "client/fuse/file_system.h"

namespace nfsrdma {
namespace {

constexpr std::chrono::seconds kAskAgain{60};

}  // namespace

bool FileSystem::promised(const Node& node) {
  return node.timer.held() && remote.delegation(node.handle) != DelegationKind::kNone;
}

bool FileSystem::changes_unnamed(const Node& node) const {
  if (!remote.opens_by_name()) return false;
  const bool dirty = node.writer != nullptr && !node.writer->data().clean();
  return dirty || (node.openers.access() & access_bits::kModify) != 0;
}

bool FileSystem::wants_delegation(Node& node, std::uint32_t access) {
  if (!options.attributes.enabled || !remote.may_be_delegated()) return false;
  const bool first = (node.opened_for & access) != access;
  node.opened_for |= access;
  if (first || loop.now() < node.ask_again_at) return false;
  const bool writes = (access & access_bits::kModify) != 0;
  if (!writes && changes_unnamed(node)) return false;
  const auto wanted = writes ? DelegationKind::kWrite : DelegationKind::kRead;
  return remote.delegation(node.handle) < wanted;
}

void FileSystem::note_delegation(Node& node, OpenFor how, bool before) {
  using enum DelegationKind;
  const DelegationKind now = remote.delegation(node.handle);
  if (now != kNone && (how.delegation || before)) node.timer.hold();
  const DelegationKind wanted = (how.access & access_bits::kModify) != 0 ? kWrite : kRead;
  if (how.delegation && now < wanted) node.ask_again_at = loop.now() + kAskAgain;
}

bool FileSystem::may_keep_back(const Node& node) {
  return remote.delegation(node.handle) == DelegationKind::kWrite &&
         visible(node).size <= remote.kept_back_limit(node.handle);
}

void FileSystem::give_up(const FileHandle& file) {
  const NodeRef node = nodes.find(file);
  if (node == nullptr) {
    struct Forgotten {
      static Task<void> give_back(Remote& remote, FileHandle file) {
        co_await remote.give_back(file);
      }
    };
    tasks.spawn(Forgotten::give_back(remote, file));
    return;
  }
  node->ask_again_at = loop.now() + kAskAgain;
  tasks.spawn(end_promise(node));
}

void FileSystem::stop_believing(Node& node) {
  const bool believed = node.timer.held();
  node.timer.let_go();
  node.access.clear();
  if (!believed) return;
  node.kernel_size_old = true;
  ++node.drops;
  if (node.lookups > 0) kernel_.drop_attributes_soon(node.id);
}

Task<void> FileSystem::wait_for_way(RequestContext context, Task<void> giving) {
  struct Giving {
    static Task<void> run(Task<void> task, std::shared_ptr<Occasion> over) {
      co_await std::move(task);
      over->come();
    }
  };
  auto over = std::make_shared<Occasion>();
  tasks.spawn(Giving::run(std::move(giving), over));
  [[maybe_unused]] const bool waited = co_await over->wait(cancel_of(context));
}

Task<void> FileSystem::give_way_to_writer(RequestContext context, NodeRef node) {
  if (!remote.may_be_delegated()) co_return;
  struct Way {
    static Task<void> give(Remote& remote, NodeRef node) { co_await remote.give_way(node->handle); }
  };
  // A write delegation is what it writes by, also when it was recalled.
  co_await wait_for_way(std::move(context), Way::give(remote, node));
  const bool believed = node->timer.held();
  if (believed && remote.delegation(node->handle) == DelegationKind::kNone) stop_believing(*node);
}

Task<void> FileSystem::give_way_to_change(RequestContext context, NodeRef node) {
  if (node == nullptr || !remote.opens_by_name()) co_return;
  if (remote.delegation(node->handle) == DelegationKind::kNone) co_return;
  co_await wait_for_way(std::move(context), end_promise(node));
}

/// Nothing here waits for the kernel, which may wait, with pages locked, for a WRITE that the
/// server keeps waiting for the delegation. For the same reason a read delegation does not wait for
/// data.
Task<void> FileSystem::end_promise(NodeRef node) {
  stop_believing(*node);
  co_await remote.give_way(node->handle);
  if (node->writer != nullptr && !node->writer->data().stable()) {
    // Errors stay for who wrote it.
    const RequestContext nobody{std::make_shared<const Caller>(), nullptr};
    [[maybe_unused]] const int error = co_await node->writer->flush(nobody, node, true);
  }
  co_await remote.give_back(node->handle);
  // An answer that came meanwhile may have been believed for longer than that.
  if (remote.delegation(node->handle) == DelegationKind::kNone) stop_believing(*node);
}

std::optional<HeldAttributes> FileSystem::held_attributes(const FileHandle& file) {
  const NodeRef node = nodes.find(file);
  if (node == nullptr || !node->has_attributes) return std::nullopt;
  const bool more = node->writer != nullptr && !node->writer->data().clean();
  return HeldAttributes{visible(*node).size, node->attributes.change.value_or(0) + (more ? 1 : 0)};
}

/// Asks for what it knows already: that makes the mount follow it, in one place for all who ask.
void FileSystem::has_moved(const FileHandle& file) {
  const Attributes* const last = last_attributes(file);
  if (last == nullptr || !following_.insert(last->fsid).second) return;
  struct Following {
    static Task<void> follow(FileSystem& fs, FileHandle file, std::uint64_t fsid) {
      const RequestContext nobody{std::make_shared<const Caller>(), &fs.leaving_};
      [[maybe_unused]] Result<Attributes> found = co_await fs.remote.getattr(nobody, file);
      fs.following_.erase(fsid);
    }
  };
  tasks.spawn(Following::follow(*this, file, last->fsid));
}

const Attributes* FileSystem::last_attributes(const FileHandle& file) const {
  const NodeRef node = nodes.find(file);
  return node == nullptr || !node->has_attributes ? nullptr : &node->attributes;
}

bool FileSystem::lies_below(const FileHandle& file, const FileHandle& directory) const {
  // Bounded: two nodes could name each other as parents when directories were moved elsewhere.
  constexpr int kDeepest = 256;
  NodeRef at = nodes.find(file);
  for (int depth = 0; at != nullptr && depth < kDeepest; ++depth) {
    if (at->handle == directory) return true;
    if (at == root) return false;
    at = at->parent.lock();
  }
  return true;
}

std::optional<FileHandle> FileSystem::known_directory(const FileHandle& directory,
                                                      std::string_view name) const {
  std::optional<FileHandle> found;
  nodes.for_each([&](const NodeRef& node) {
    if (found || !node->has_attributes || !node->is_directory() || node->name != name) return;
    const NodeRef parent = node->parent.lock();
    if (parent != nullptr && parent->handle == directory) found = node->handle;
  });
  return found;
}

}  // namespace nfsrdma
