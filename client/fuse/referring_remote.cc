// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/referring_remote.h"

#include <fmt/format.h>

#include "client/fuse/referred_tree.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma {

FileHandle ReferringRemote::as_in(std::uint16_t number, const FileHandle& theirs) const {
  if (number == 0) return theirs;
  const Tree& tree = *trees_[number - 1];
  const bool is_root = tree.open != nullptr && theirs == tree.open->remote().root();
  return is_root ? root_of(number) : theirs.in_tree(number);
}

FileHandle ReferringRemote::Tree::outwards(const FileHandle& file, const Attributes* theirs) const {
  if (origin && (theirs == nullptr || theirs->fsid == origin->fsid_there)) {
    const FileHandle moved = owner.as_in(origin->move->number, file);
    // A handle of this server's may be that of another file system which has stayed.
    const bool known = owner.holder_ != nullptr && owner.holder_->last_attributes(moved) != nullptr;
    if (!known || owner.has_in_it(*origin->move, moved)) return moved;
  }
  return owner.as_in(number, file);
}

FileHandle ReferringRemote::Tree::as_known(const FileHandle& file) const {
  const FileHandle moved = outwards(file, nullptr);
  const bool is_it =
      !origin || owner.holder_ == nullptr || owner.holder_->last_attributes(moved) != nullptr;
  return is_it ? moved : owner.as_in(number, file);
}

FileHandle ReferringRemote::Tree::inwards(const FileHandle& file) const {
  const std::uint16_t in = number_of(file);
  if (file.tree() == in) return file.in_tree(0);
  return owner.trees_[in - 1]->open->remote().root();
}

void ReferringRemote::Tree::tag(Attributes& attributes) const {
  if (origin && attributes.fsid == origin->fsid_there) {
    attributes.fsid = origin->move->fsid;
  } else {
    attributes.fsid ^= number * std::uint64_t{0x9e3779b97f4a7c15};
  }
}

/// Makes answers of a tree's server those of the mount.
class ReferringRemote::Tags {
 public:
  explicit Tags(const Tree& tree) : tree_(tree) {}

  void mark(Attributes& attributes) const { tree_.tag(attributes); }
  void mark(std::optional<Attributes>& attributes) const {
    if (attributes) tree_.tag(*attributes);
  }
  /// Before the attributes are marked, which say of which file system it is.
  void mark(FileHandle& file, const std::optional<Attributes>& theirs) const {
    if (!file.empty()) file = tree_.outwards(file, theirs ? &*theirs : nullptr);
  }
  void mark(Wcc& wcc) const { mark(wcc.after); }
  void mark(LookupResult& result) const {
    mark(result.handle, result.attributes);
    mark(result.attributes);
    mark(result.directory);
  }
  void mark(AccessResult& result) const { mark(result.attributes); }
  void mark(ReadResult& result) const { mark(result.attributes); }
  void mark(WriteResult& result) const { mark(result.wcc); }
  void mark(CommitResult& result) const { mark(result.wcc); }
  void mark(CreateResult& result) const {
    mark(result.handle, result.attributes);
    mark(result.attributes);
    mark(result.directory);
  }
  void mark(RemoveResult& result) const { mark(result.directory); }
  void mark(RenameResult& result) const {
    mark(result.from_directory);
    mark(result.to_directory);
  }
  void mark(LinkResult& result) const {
    mark(result.attributes);
    mark(result.directory);
  }
  void mark(CopyResult& result) const { mark(result.wcc); }
  void mark(DirectoryPage& page) const { mark(page.directory); }
  void mark(FoundPosixAcls& found) const { mark(found.attributes); }
  // Nothing in them is a server's own:
  void mark(FsStat&) const {}
  void mark(std::string&) const {}
  void mark(std::vector<std::string>&) const {}
  void mark(std::uint64_t&) const {}
  void mark(bool&) const {}
  void mark(Referral&) const {}
  void mark(std::optional<LockHolder>&) const {}

 private:
  const Tree& tree_;
};

class ReferringRemote::TaggingVisitor final : public DirectoryVisitor {
 public:
  TaggingVisitor(const Tree& tree, DirectoryVisitor& to) : tree_(tree), to_(to) {}
  bool on_entry(const DirectoryEntry& entry) override {
    DirectoryEntry tagged = entry;
    Attributes attributes;
    FileHandle handle;
    if (entry.attributes != nullptr) {
      attributes = *entry.attributes;
      tree_.tag(attributes);
      tagged.attributes = &attributes;
    }
    if (entry.handle != nullptr) {
      handle = tree_.outwards(*entry.handle, entry.attributes);
      tagged.handle = &handle;
    }
    return to_.on_entry(tagged);
  }

 private:
  const Tree& tree_;
  DirectoryVisitor& to_;
};

ReferringRemote::ReferringRemote(EventLoop& loop, Remote& own, TreeWays& ways,
                                 const MountSettings& settings, bool follow)
    : loop_(loop), own_(own), ways_(ways), settings_(settings), follow_(follow) {}

ReferringRemote::~ReferringRemote() = default;

void ReferringRemote::stop() {
  stopped_ = true;
  leaving_.raise();
  for (const std::shared_ptr<Move>& move : moves_)
    move->changed.wake_all();
  for (const std::unique_ptr<Tree>& tree : trees_)
    tree->changed.wake_all();
}

Task<void> ReferringRemote::end(bool goodbye) {
  co_await opening_.wait();
  for (const std::unique_ptr<Tree>& tree : trees_) {
    if (tree->open != nullptr && goodbye) co_await tree->open->end();
  }
}

void ReferringRemote::stop_waiting() {
  for (const std::unique_ptr<Tree>& tree : trees_) {
    if (tree->open != nullptr) tree->open->stop_waiting();
  }
}

void ReferringRemote::abort() {
  for (const std::unique_ptr<Tree>& tree : trees_) {
    if (tree->open != nullptr) tree->open->abort();
  }
}

std::vector<ReferringRemote::Shown> ReferringRemote::open_trees() const {
  std::vector<Shown> shown;
  for (const std::unique_ptr<Tree>& tree : trees_) {
    if (tree->open != nullptr) shown.push_back({tree->name, tree->open.get()});
  }
  return shown;
}

ReferringRemote::Tree* ReferringRemote::tree_of(const FileHandle& file) const {
  if (!moves_.empty()) {
    if (Tree* const moved = moved_to(file)) return moved;
  }
  const std::uint16_t number = number_of(file);
  return number == 0 ? nullptr : trees_[number - 1].get();
}

ReferringRemote::There ReferringRemote::known(const FileHandle& file) const {
  Tree* tree = tree_of(file);
  if (tree == nullptr) return {&own_, file, nullptr};
  if (tree->open == nullptr) return {};
  return {&tree->open->remote(), tree->inwards(file), tree};
}

Task<Result<ReferringRemote::There>> ReferringRemote::reach(RequestContext context,
                                                            FileHandle file) {
  if (Tree* tree = tree_of(file)) {
    NFSRDMA_CO_CHECK_OK(co_await wait_for(context, *tree));
  }
  co_return known(file);
}

Task<Result<void>> ReferringRemote::wait_for(RequestContext context, Tree& tree) {
  CancelToken* cancel = nullptr;
  if (context.interrupt != nullptr) cancel = context.interrupt->token.get();
  bool waited = false;
  while (tree.open == nullptr) {
    if (stopped_) co_return Error{Errc::kClosed, EIO, "the mount ends"};
    const bool believed = tree.failed && (waited || loop_.refresh_now() < tree.again_at);
    if (!tree.opening && believed) co_return *tree.failed;
    if (!tree.opening) {
      tree.opening = true;
      opening_.spawn(open_tree(tree));
    } else {
      const bool told = co_await tree.changed.wait(cancel);
      if (!told) co_return Error{Errc::kSystem, EINTR, "referral"};
    }
    waited = true;
  }
  co_return Result<void>();
}

Task<void> ReferringRemote::open_tree(Tree& tree) {
  std::string detail;
  MountSettings from = settings_;
  if (tree.parent != 0) from = trees_[tree.parent - 1]->open->settings();
  Result<std::unique_ptr<OpenTree>> opened =
      Error{Errc::kSystem, EREMOTE, "the mount has noreferrals"};
  if (follow_) {
    opened = co_await ways_.open(from, tree.referral, &tree.trail, &detail);
  }
  tree.opening = false;
  if (opened.ok()) {
    tree.open = std::move(opened).value();
    tree.failed.reset();
    if (holder_ != nullptr) tree.open->remote().set_delegation_holder(&tree);
    const MountSettings& there = tree.open->settings();
    log_notice("referral {}: {}", terminal_text(tree.name),
               terminal_text(there.host + ":" + there.path));
  } else {
    tree.failed = Error{opened.error().code, errno_of(opened.error()), opened.error().where};
    tree.again_at = loop_.refresh_now() + kBelieveFailure;
    log_warning("referral {} to {} cannot be followed: {}", terminal_text(tree.name),
                terminal_text(tree.referral.text()),
                terminal_text(detail.empty() ? opened.error().message() : detail));
  }
  tree.changed.wake_all();
}

std::string ReferringRemote::place_of(const FileHandle& directory, const std::string& name,
                                      const Referral& referral) {
  std::string place = fmt::format("{} {}/{}", directory.tree(), as_text(directory.bytes()), name);
  place += '\0' + referral.root;
  for (const ReferralTarget& target : referral.targets)
    place += '\0' + target.text();
  return place;
}

bool ReferringRemote::is_known(const FileHandle& directory, const std::string& name,
                               const Referral& referral) const {
  return trees_by_place_.contains(place_of(directory, name, referral));
}

ReferringRemote::Tree* ReferringRemote::tree_at(const There& there, const FileHandle& directory,
                                                const std::string& name, Referral referral) {
  std::string place = place_of(directory, name, referral);
  if (auto at = trees_by_place_.find(place); at != trees_by_place_.end() && !at->second->gone) {
    return at->second;
  }
  if (trees_.size() >= kMostTrees) {
    if (!std::exchange(told_full_, true)) {
      log_warning("referral {} to {}: this mount has met {} already, and follows no more",
                  terminal_text(name), terminal_text(referral.text()), kMostTrees);
    }
    return nullptr;
  }
  const std::uint16_t parent = there.tree == nullptr ? 0 : there.tree->number;
  const auto number = static_cast<std::uint16_t>(trees_.size() + 1);
  ReferralTrail trail = parent == 0 ? ReferralTrail(settings_) : trees_[parent - 1]->trail;
  trees_.push_back(
      std::make_unique<Tree>(*this, number, name, std::move(referral), parent, std::move(trail)));
  return trees_by_place_[std::move(place)] = trees_.back().get();
}

const MountSettings& ReferringRemote::settings_of(const There& there) const {
  return there.tree == nullptr ? settings_ : there.tree->open->settings();
}

Task<Result<LookupResult>> ReferringRemote::look_at_moved(RequestContext context,
                                                          FileHandle directory,
                                                          const Referral& referral) {
  for (unsigned follows = 0; follows <= kMostReferrals; ++follows) {
    Tree* const moved = moved_from(directory, referral);
    if (moved == nullptr) break;
    const FileHandle root = moved->open->remote().root();
    Result<Attributes> got = co_await moved->open->remote().getattr(context, root);
    LookupResult result;
    if (got.ok()) {
      result.handle = moved->outwards(root, &*got);
      moved->tag(*got);
      result.attributes = *got;
      co_return result;
    }
    if (!has_moved(got)) co_return got.error();
    // It has gone on from there.
    result.handle = moved->outwards(root, nullptr);
    NFSRDMA_CO_TRY(
        const bool followed,
        co_await follow_move(context, result.handle, {&moved->open->remote(), root, moved}));
    if (!followed) break;
  }
  co_return kReferralMet;
}

Task<Result<LookupResult>> ReferringRemote::refer(RequestContext context, FileHandle directory,
                                                  std::string name, There there,
                                                  MaybeAttributes of_directory) {
  NFSRDMA_CO_TRY(Referral referral, co_await there.remote->referral(context, there.file, name));
  if (moved_from(directory, referral) == nullptr && holder_ != nullptr &&
      trees_.size() < kMostTrees && !is_known(directory, name, referral)) {
    // What is known of it is from before it moved.
    const std::optional<FileHandle> before = holder_->known_directory(directory, name);
    if (before && known(*before).remote == there.remote) {
      [[maybe_unused]] Result<bool> followed =
          co_await follow_move(context, *before, known(*before));
    }
    // By other words than those that led there.
    Move* const move = before ? move_with(*before) : nullptr;
    if (move != nullptr) move->add_way(referral);
  }
  Result<LookupResult> moved = co_await look_at_moved(context, directory, referral);
  if (moved.ok()) moved->directory = of_directory;
  if (moved.ok() || !is_referral_met(moved.error())) co_return moved;
  Tree* tree = tree_at(there, directory, name, referral);
  LookupResult result;
  result.directory = of_directory;
  if (tree != nullptr && tree->open != nullptr) {
    result.handle = root_of(tree->number);
    Result<Attributes> got = co_await getattr(context, result.handle);
    if (!has_moved(got)) {
      NFSRDMA_CO_TRY(result.attributes, std::move(got));
      co_return result;
    }
    // It has moved on from there, and nothing of it is known here: begin anew.
    tree->gone = true;
    tree = tree_at(there, directory, name, std::move(referral));
  }
  if (tree == nullptr) co_return kReferralMet;
  result.handle = root_of(tree->number);
  result.attributes = tree->referral.attributes();
  tree->tag(*result.attributes);
  co_return result;
}

Task<Result<LookupResult>> ReferringRemote::lookup(RequestContext context,
                                                   const FileHandle& directory,
                                                   const std::string& name,
                                                   MaybeAttributes* directory_attributes) {
  for (unsigned follows = 0;; ++follows) {
    NFSRDMA_CO_TRY(const There there, co_await reach(context, directory));
    MaybeAttributes of_directory;
    Result<LookupResult> answer =
        co_await there.remote->lookup(context, there.file, name, &of_directory);
    if (has_moved(answer) && follows < kMostReferrals) {
      NFSRDMA_CO_TRY(const bool followed, co_await follow_move(context, directory, there));
      if (followed) continue;
    }
    if (there.tree != nullptr) Tags(*there.tree).mark(of_directory);
    if (directory_attributes != nullptr) *directory_attributes = of_directory;
    const bool refers = !answer.ok() && is_referral_met(answer.error());
    if (refers) co_return co_await refer(context, directory, name, there, of_directory);
    co_return seen(there, directory, std::move(answer));
  }
}

template <typename T>
Result<T> ReferringRemote::seen(const There& there, const FileHandle& file, Result<T> answer) {
  Tree* const tree = there.tree;
  if (tree == nullptr) return answer;
  if constexpr (!std::is_void_v<T>) {
    if (answer.ok()) Tags(*tree).mark(*answer);
  }
  if (answer.ok()) return answer;
  const Error& error = answer.error();
  if (error.sys == ESTALE && (file.tree() & kRootOfTree) != 0) {
    trees_[number_of(file) - 1]->gone = true;
  }
  // Of the whole mount the kernel would take ENOSYS for the answer.
  if (error.sys == ENOSYS) return Error{error.code, EOPNOTSUPP, error.where};
  return answer;
}

template <typename T, typename Call>
Task<Result<T>> ReferringRemote::run(RequestContext context, const FileHandle& file, Call call) {
  for (unsigned follows = 0;; ++follows) {
    There there = known(file);
    if (there.remote == nullptr) {
      NFSRDMA_CO_TRY(there, co_await reach(context, file));
    }
    Result<T> answer = co_await call(*there.remote, context, there.file);
    if (has_moved(answer) && follows < kMostReferrals) {
      NFSRDMA_CO_TRY(const bool followed, co_await follow_move(context, file, there));
      if (followed) continue;
    }
    co_return seen(there, file, std::move(answer));
  }
}

template <typename T, typename Call>
Task<Result<T>> ReferringRemote::run_both(RequestContext context, const FileHandle& first,
                                          const FileHandle& second, const char* what, Call call) {
  for (unsigned follows = 0;; ++follows) {
    NFSRDMA_CO_TRY(const There source, co_await reach(context, first));
    NFSRDMA_CO_TRY(const There target, co_await reach(context, second));
    if (source.tree != target.tree) co_return Error{Errc::kSystem, EXDEV, what};
    Result<T> answer = co_await call(*source.remote, context, source.file, target.file);
    if (has_moved(answer) && follows < kMostReferrals) {
      NFSRDMA_CO_TRY(bool followed, co_await follow_move(context, first, source));
      if (!followed) {
        NFSRDMA_CO_TRY(followed, co_await follow_move(context, second, target));
      }
      if (followed) continue;
    }
    co_return seen(source, first, std::move(answer));
  }
}

Task<Result<Attributes>> ReferringRemote::getattr(RequestContext context, const FileHandle& file) {
  const Tree* const tree = tree_of(file);
  if (tree != nullptr && tree->open == nullptr) {
    // Looking at it is no reason to go there.
    Attributes attributes = tree->referral.attributes();
    tree->tag(attributes);
    co_return attributes;
  }
  co_return co_await run<Attributes>(
      context, file, [](Remote& remote, RequestContext its, const FileHandle& there) {
        return remote.getattr(std::move(its), there);
      });
}

Task<Result<Wcc>> ReferringRemote::setattr(RequestContext context, const FileHandle& file,
                                           const SetAttributes& set) {
  return run<Wcc>(std::move(context), file,
                  [&set](Remote& remote, RequestContext its, const FileHandle& there) {
                    return remote.setattr(std::move(its), there, set);
                  });
}

Task<Result<Referral>> ReferringRemote::referral(RequestContext context,
                                                 const FileHandle& directory,
                                                 const std::string& name) {
  return run<Referral>(std::move(context), directory,
                       [&name](Remote& remote, RequestContext its, const FileHandle& there) {
                         return remote.referral(std::move(its), there, name);
                       });
}

Task<Result<AccessResult>> ReferringRemote::access(RequestContext context, const FileHandle& file,
                                                   std::uint32_t wanted) {
  return run<AccessResult>(std::move(context), file,
                           [wanted](Remote& remote, RequestContext its, const FileHandle& there) {
                             return remote.access(std::move(its), there, wanted);
                           });
}

Task<Result<std::string>> ReferringRemote::readlink(RequestContext context,
                                                    const FileHandle& link) {
  return run<std::string>(std::move(context), link,
                          [](Remote& remote, RequestContext its, const FileHandle& there) {
                            return remote.readlink(std::move(its), there);
                          });
}

Task<Result<ReadResult>> ReferringRemote::read(RequestContext context, const FileHandle& file,
                                               std::uint64_t offset, MutableByteSpan into) {
  return run<ReadResult>(
      std::move(context), file,
      [offset, into](Remote& remote, RequestContext its, const FileHandle& there) {
        return remote.read(std::move(its), there, offset, into);
      });
}

Task<Result<WriteResult>> ReferringRemote::write(RequestContext context, const FileHandle& file,
                                                 std::uint64_t offset, ByteSpan data,
                                                 Stability stability) {
  return run<WriteResult>(
      std::move(context), file,
      [offset, data, stability](Remote& remote, RequestContext its, const FileHandle& there) {
        return remote.write(std::move(its), there, offset, data, stability);
      });
}

Task<Result<CommitResult>> ReferringRemote::commit(RequestContext context, const FileHandle& file) {
  return run<CommitResult>(std::move(context), file,
                           [](Remote& remote, RequestContext its, const FileHandle& there) {
                             return remote.commit(std::move(its), there);
                           });
}

Task<Result<CreateResult>> ReferringRemote::create(RequestContext context,
                                                   const FileHandle& directory,
                                                   const std::string& name, CreateMode mode,
                                                   const SetAttributes& set) {
  return run<CreateResult>(
      std::move(context), directory,
      [&name, mode, &set](Remote& remote, RequestContext its, const FileHandle& there) {
        return remote.create(std::move(its), there, name, mode, set);
      });
}

Task<Result<CreateResult>> ReferringRemote::create_open(RequestContext context,
                                                        const FileHandle& directory,
                                                        const std::string& name, CreateMode mode,
                                                        const SetAttributes& set,
                                                        std::uint32_t open_for) {
  return run<CreateResult>(
      std::move(context), directory,
      [&name, mode, &set, open_for](Remote& remote, RequestContext its, const FileHandle& there) {
        return remote.create_open(std::move(its), there, name, mode, set, open_for);
      });
}

Task<Result<CreateResult>> ReferringRemote::mkdir(RequestContext context,
                                                  const FileHandle& directory,
                                                  const std::string& name,
                                                  const SetAttributes& set) {
  return run<CreateResult>(
      std::move(context), directory,
      [&name, &set](Remote& remote, RequestContext its, const FileHandle& there) {
        return remote.mkdir(std::move(its), there, name, set);
      });
}

Task<Result<CreateResult>> ReferringRemote::symlink(RequestContext context,
                                                    const FileHandle& directory,
                                                    const std::string& name,
                                                    const std::string& text) {
  return run<CreateResult>(
      std::move(context), directory,
      [&name, &text](Remote& remote, RequestContext its, const FileHandle& there) {
        return remote.symlink(std::move(its), there, name, text);
      });
}

Task<Result<CreateResult>> ReferringRemote::mknod(
    RequestContext context, const FileHandle& directory, const std::string& name, FileType type,
    std::uint32_t rdev_major, std::uint32_t rdev_minor, const SetAttributes& set) {
  return run<CreateResult>(std::move(context), directory,
                           [&name, type, rdev_major, rdev_minor, &set](
                               Remote& remote, RequestContext its, const FileHandle& there) {
                             return remote.mknod(std::move(its), there, name, type, rdev_major,
                                                 rdev_minor, set);
                           });
}

namespace {

/// What the caller believes a name to be, if `directory`'s server can know it.
std::optional<FileHandle> known_there(const FileHandle& directory, const FileHandle* known) {
  if (known == nullptr || known->tree() != ReferringRemote::number_of(directory)) {
    return std::nullopt;
  }
  return known->in_tree(0);
}

}  // namespace

Task<Result<RemoveResult>> ReferringRemote::remove(RequestContext context,
                                                   const FileHandle& directory,
                                                   const std::string& name,
                                                   const FileHandle* known) {
  return take_away(&Remote::remove, std::move(context), directory, name, known);
}

Task<Result<RemoveResult>> ReferringRemote::rmdir(RequestContext context,
                                                  const FileHandle& directory,
                                                  const std::string& name,
                                                  const FileHandle* known) {
  return take_away(&Remote::rmdir, std::move(context), directory, name, known);
}

Task<Result<RemoveResult>> ReferringRemote::take_away(Removal removal, RequestContext context,
                                                      FileHandle directory, std::string name,
                                                      const FileHandle* known) {
  const std::optional<FileHandle> object = known_there(directory, known);
  co_return co_await run<RemoveResult>(
      context, directory,
      [removal, &name, &object](Remote& remote, RequestContext its, const FileHandle& there) {
        return (remote.*removal)(std::move(its), there, name, object ? &*object : nullptr);
      });
}

Task<Result<RenameResult>> ReferringRemote::rename(RequestContext context,
                                                   const FileHandle& from_directory,
                                                   const std::string& from,
                                                   const FileHandle& to_directory,
                                                   const std::string& to, const FileHandle* known) {
  const std::optional<FileHandle> object = known_there(from_directory, known);
  co_return co_await run_both<RenameResult>(
      context, from_directory, to_directory, "RENAME",
      [&](Remote& remote, RequestContext its, const FileHandle& source, const FileHandle& target) {
        return remote.rename(std::move(its), source, from, target, to, object ? &*object : nullptr);
      });
}

Task<Result<LinkResult>> ReferringRemote::link(RequestContext context, const FileHandle& file,
                                               const FileHandle& directory,
                                               const std::string& name) {
  return run_both<LinkResult>(std::move(context), file, directory, "LINK",
                              [&name](Remote& remote, RequestContext its, const FileHandle& source,
                                      const FileHandle& target) {
                                return remote.link(std::move(its), source, target, name);
                              });
}

Task<Result<DirectoryPage>> ReferringRemote::readdir(RequestContext context,
                                                     const FileHandle& directory,
                                                     std::uint64_t cookie, std::uint64_t verifier,
                                                     bool plus, DirectoryVisitor& visitor) {
  for (unsigned follows = 0;; ++follows) {
    NFSRDMA_CO_TRY(const There there, co_await reach(context, directory));
    std::optional<TaggingVisitor> tagging;
    if (there.tree != nullptr) tagging.emplace(*there.tree, visitor);
    DirectoryVisitor& to = tagging ? static_cast<DirectoryVisitor&>(*tagging) : visitor;
    Result<DirectoryPage> answer =
        co_await there.remote->readdir(context, there.file, cookie, verifier, plus, to);
    if (has_moved(answer) && follows < kMostReferrals) {
      NFSRDMA_CO_TRY(const bool followed, co_await follow_move(context, directory, there));
      if (followed) continue;
    }
    co_return seen(there, directory, std::move(answer));
  }
}

Task<Result<FsStat>> ReferringRemote::fsstat(RequestContext context, const FileHandle& file) {
  return run<FsStat>(std::move(context), file,
                     [](Remote& remote, RequestContext its, const FileHandle& there) {
                       return remote.fsstat(std::move(its), there);
                     });
}

Task<Result<std::uint64_t>> ReferringRemote::seek(RequestContext context, const FileHandle& file,
                                                  std::uint64_t offset, SeekFor what) {
  return run<std::uint64_t>(
      std::move(context), file,
      [offset, what](Remote& remote, RequestContext its, const FileHandle& there) {
        return remote.seek(std::move(its), there, offset, what);
      });
}

Task<Result<Wcc>> ReferringRemote::allocate(RequestContext context, const FileHandle& file,
                                            std::uint64_t offset, std::uint64_t length) {
  return run<Wcc>(std::move(context), file,
                  [offset, length](Remote& remote, RequestContext its, const FileHandle& there) {
                    return remote.allocate(std::move(its), there, offset, length);
                  });
}

Task<Result<Wcc>> ReferringRemote::deallocate(RequestContext context, const FileHandle& file,
                                              std::uint64_t offset, std::uint64_t length) {
  return run<Wcc>(std::move(context), file,
                  [offset, length](Remote& remote, RequestContext its, const FileHandle& there) {
                    return remote.deallocate(std::move(its), there, offset, length);
                  });
}

Task<Result<CopyResult>> ReferringRemote::copy(RequestContext context, const FileHandle& from,
                                               std::uint64_t from_offset, const FileHandle& to,
                                               std::uint64_t to_offset, std::uint64_t count) {
  return run_both<CopyResult>(
      std::move(context), from, to, "COPY",
      [from_offset, to_offset, count](Remote& remote, RequestContext its, const FileHandle& source,
                                      const FileHandle& target) {
        return remote.copy(std::move(its), source, from_offset, target, to_offset, count);
      });
}

Task<Result<std::string>> ReferringRemote::get_xattr(RequestContext context, const FileHandle& file,
                                                     const std::string& name) {
  return run<std::string>(std::move(context), file,
                          [&name](Remote& remote, RequestContext its, const FileHandle& there) {
                            return remote.get_xattr(std::move(its), there, name);
                          });
}

Task<Result<Wcc>> ReferringRemote::set_xattr(RequestContext context, const FileHandle& file,
                                             const std::string& name, ByteSpan value,
                                             XattrThere there_is) {
  return run<Wcc>(
      std::move(context), file,
      [&name, value, there_is](Remote& remote, RequestContext its, const FileHandle& there) {
        return remote.set_xattr(std::move(its), there, name, value, there_is);
      });
}

Task<Result<std::vector<std::string>>> ReferringRemote::list_xattrs(RequestContext context,
                                                                    const FileHandle& file) {
  return run<std::vector<std::string>>(
      std::move(context), file, [](Remote& remote, RequestContext its, const FileHandle& there) {
        return remote.list_xattrs(std::move(its), there);
      });
}

Task<Result<Wcc>> ReferringRemote::remove_xattr(RequestContext context, const FileHandle& file,
                                                const std::string& name) {
  return run<Wcc>(std::move(context), file,
                  [&name](Remote& remote, RequestContext its, const FileHandle& there) {
                    return remote.remove_xattr(std::move(its), there, name);
                  });
}

Task<Result<bool>> ReferringRemote::acls_in(RequestContext context, const FileHandle& file,
                                            std::uint64_t fsid) {
  return run<bool>(std::move(context), file,
                   [fsid](Remote& remote, RequestContext its, const FileHandle& there) {
                     return remote.acls_in(std::move(its), there, fsid);
                   });
}

Task<Result<std::string>> ReferringRemote::get_acl(RequestContext context, const FileHandle& file) {
  return run<std::string>(std::move(context), file,
                          [](Remote& remote, RequestContext its, const FileHandle& there) {
                            return remote.get_acl(std::move(its), there);
                          });
}

Task<Result<Wcc>> ReferringRemote::set_acl(RequestContext context, const FileHandle& file,
                                           ByteSpan acl) {
  return run<Wcc>(std::move(context), file,
                  [acl](Remote& remote, RequestContext its, const FileHandle& there) {
                    return remote.set_acl(std::move(its), there, acl);
                  });
}

Task<Result<void>> ReferringRemote::place_there(RequestContext& context, FilePlace& there) {
  if (context.place == nullptr) co_return Result<void>();
  NFSRDMA_CO_TRY(const There directory, co_await reach(context, context.place->directory));
  there = {directory.file, context.place->name};
  context.place = &there;
  co_return Result<void>();
}

Task<Result<AccessResult>> ReferringRemote::open(RequestContext context, const FileHandle& file,
                                                 std::uint32_t wanted, OpenFor how) {
  FilePlace place;
  NFSRDMA_CO_CHECK_OK(co_await place_there(context, place));
  co_return co_await run<AccessResult>(
      context, file, [wanted, how](Remote& remote, RequestContext its, const FileHandle& there) {
        return remote.open(std::move(its), there, wanted, how);
      });
}

bool ReferringRemote::open_already(RequestContext context, const FileHandle& file,
                                   std::uint32_t access) {
  const There there = known(file);
  return there.remote != nullptr &&
         there.remote->open_already(std::move(context), there.file, access);
}

void ReferringRemote::narrow_open(RequestContext context, const FileHandle& file,
                                  std::uint32_t access) {
  const There there = known(file);
  if (there.remote != nullptr) there.remote->narrow_open(std::move(context), there.file, access);
}

void ReferringRemote::set_delegation_holder(DelegationHolder* holder) {
  holder_ = holder;
  own_.set_delegation_holder(holder);
  for (const std::unique_ptr<Tree>& tree : trees_) {
    if (tree->open == nullptr) continue;
    tree->open->remote().set_delegation_holder(holder != nullptr ? tree.get() : nullptr);
  }
}

bool ReferringRemote::may_be_delegated() const {
  if (own_.may_be_delegated()) return true;
  for (const std::unique_ptr<Tree>& tree : trees_) {
    if (tree->open != nullptr && tree->open->remote().may_be_delegated()) return true;
  }
  return false;
}

DelegationKind ReferringRemote::delegation(const FileHandle& file) {
  const There there = known(file);
  if (there.remote == nullptr) return DelegationKind::kNone;
  return there.remote->delegation(there.file);
}

std::uint64_t ReferringRemote::kept_back_limit(const FileHandle& file) const {
  const There there = known(file);
  return there.remote == nullptr ? 0 : there.remote->kept_back_limit(there.file);
}

Task<void> ReferringRemote::give_back(const FileHandle& file) {
  const There there = known(file);
  if (there.remote != nullptr) co_await there.remote->give_back(there.file);
}

Task<void> ReferringRemote::give_way(const FileHandle& file) {
  const There there = known(file);
  if (there.remote != nullptr) co_await there.remote->give_way(there.file);
}

Task<Result<FoundPosixAcls>> ReferringRemote::get_posix_acls(RequestContext context,
                                                             const FileHandle& file, bool access,
                                                             bool initial) {
  return run<FoundPosixAcls>(
      std::move(context), file,
      [access, initial](Remote& remote, RequestContext its, const FileHandle& there) {
        return remote.get_posix_acls(std::move(its), there, access, initial);
      });
}

Task<Result<Wcc>> ReferringRemote::set_posix_acl(RequestContext context, const FileHandle& file,
                                                 const PosixAclChange& change) {
  return run<Wcc>(std::move(context), file,
                  [&change](Remote& remote, RequestContext its, const FileHandle& there) {
                    return remote.set_posix_acl(std::move(its), there, change);
                  });
}

Task<Result<void>> ReferringRemote::lock(RequestContext context, const FileHandle& file,
                                         const FileLock& wanted, LockWait wait,
                                         std::uint32_t open_for) {
  FilePlace place;
  NFSRDMA_CO_CHECK_OK(co_await place_there(context, place));
  co_return co_await run<void>(
      context, file,
      [wanted, wait, open_for](Remote& remote, RequestContext its, const FileHandle& there) {
        return remote.lock(std::move(its), there, wanted, wait, open_for);
      });
}

Task<Result<void>> ReferringRemote::unlock(RequestContext context, const FileHandle& file,
                                           const FileLock& what) {
  return run<void>(std::move(context), file,
                   [&what](Remote& remote, RequestContext its, const FileHandle& there) {
                     return remote.unlock(std::move(its), there, what);
                   });
}

Task<Result<std::optional<LockHolder>>> ReferringRemote::test_lock(RequestContext context,
                                                                   const FileHandle& file,
                                                                   const FileLock& wanted) {
  return run<std::optional<LockHolder>>(
      std::move(context), file,
      [&wanted](Remote& remote, RequestContext its, const FileHandle& there) {
        return remote.test_lock(std::move(its), there, wanted);
      });
}

void ReferringRemote::close(const FileHandle& file) {
  const There there = known(file);
  if (there.remote != nullptr) there.remote->close(there.file);
}

std::vector<LockOwnerId> ReferringRemote::lock_owners_in_the_way(const FileHandle& file,
                                                                 const FileLock& wanted) const {
  const There there = known(file);
  if (there.remote == nullptr) return {};
  return there.remote->lock_owners_in_the_way(there.file, wanted);
}

bool ReferringRemote::holds(const FileHandle& file) const {
  const There there = known(file);
  return there.remote != nullptr && there.remote->holds(there.file);
}

}  // namespace nfsrdma
