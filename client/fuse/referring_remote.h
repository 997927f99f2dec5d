// SPDX-License-Identifier: Apache-2.0
// ReferringRemote: a mount's server, and behind its referrals other servers, as one Remote. What a
// referral leads to is a *tree*: a mount of its own (connections, session, transport, state) whose
// root stands where the referral is. It is opened by the first operation that wants something of
// it, so that listing a directory of referrals connects to nobody; until then the directory has the
// attributes that Referral::attributes() makes up.
//
// File handles have their tree's number (FileHandle::tree()), 0 being the mount's own, so that
// those of different servers never meet in a table; so has fsid, which makes inode numbers differ
// (FuseOperations::inode_number). A tree's root has a handle of ours (kRootOfTree), since the node
// of the directory is there before anybody knows the server's. Servers see none of this.
//
// Migration: a file system that was here and is on another server now (kMovedAway) becomes a tree,
// too, but one that takes its place: its files keep the handles and the fsid that the mount knows
// them by, so that neither the kernel nor an application sees a difference. Which file is in it is
// told by the fsid that its last attributes have (DelegationHolder::last_attributes).
// moved_trees.cc goes there.
//
// A tree stays until the mount ends, and its number is given to no other: connections of one that
// nobody uses go after five minutes, like all. Names that refer anew to somewhere else get another.
//
// Names and links never lead from one tree into another: EXDEV, as between two mounts.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/follow_referral.h"
#include "client/fuse/remote.h"
#include "client/gate.h"
#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/json_writer.h"

namespace nfsrdma {

/// One server's tree that is open. On an error nothing is left of it.
class OpenTree {
 public:
  virtual ~OpenTree() = default;
  virtual Remote& remote() = 0;
  /// Where referrals of its own begin.
  virtual const MountSettings& settings() const = 0;
  /// The server is told goodbye. Nothing runs any more, and this may be destroyed behind it.
  virtual Task<void> end() = 0;
  /// All that waits for the server ends, EIO.
  virtual void abort() = 0;
  /// AsyncMount::stop_waiting().
  virtual void stop_waiting() = 0;
  /// Calls that it has answered.
  virtual std::uint64_t replies() const = 0;
  /// Fields of the open object of a status document.
  virtual void describe(JsonWriter& json) const = 0;
};

/// How to get to trees.
class TreeWays {
 public:
  virtual ~TreeWays() = default;
  /// `from`: of the tree that `referral` is in. *trail and *detail as follow_referral() has them.
  virtual Task<Result<std::unique_ptr<OpenTree>>> open(const MountSettings& from,
                                                       const Referral& referral,
                                                       ReferralTrail* trail,
                                                       std::string* detail) = 0;
};

class ReferringRemote final : public Remote {
 public:
  /// Of one mount, until it ends.
  static constexpr std::size_t kMostTrees = 1024;
  /// File systems that have moved, or said so, whose traces are kept at once.
  static constexpr std::size_t kMostMoves = kMostTrees;
  /// How long it is believed that a tree cannot be opened: not asked again for each name.
  static constexpr std::chrono::seconds kBelieveFailure{3};

  /// All outlive this. `settings`: of the mount itself; `follow`: referrals are to be followed,
  /// else the directories are shown and lead nowhere (EREMOTE).
  ReferringRemote(EventLoop& loop, Remote& own, TreeWays& ways, const MountSettings& settings,
                  bool follow);
  /// After end(), or before anything was opened.
  ~ReferringRemote() override;

  /// Nothing is opened any more; what is being opened ends.
  void stop();
  /// Behind stop(): until nothing is being opened, and the servers were told goodbye, unless they
  /// are not to be asked any more.
  Task<void> end(bool goodbye);
  void abort();
  void stop_waiting();
  /// Those that are open, and where they are mounted, for people.
  struct Shown {
    std::string name;  // in its directory
    const OpenTree* tree;
  };
  std::vector<Shown> open_trees() const;
  std::size_t moves_known() const { return moves_.size(); }

  const FileHandle& root() const override { return own_.root(); }
  std::uint32_t read_size() const override { return own_.read_size(); }
  std::uint32_t write_size() const override { return own_.write_size(); }

  Task<Result<Attributes>> getattr(RequestContext context, const FileHandle& file) override;
  Task<Result<Wcc>> setattr(RequestContext context, const FileHandle& file,
                            const SetAttributes& set) override;
  Task<Result<LookupResult>> lookup(RequestContext context, const FileHandle& directory,
                                    const std::string& name,
                                    MaybeAttributes* directory_attributes) override;
  Task<Result<Referral>> referral(RequestContext context, const FileHandle& directory,
                                  const std::string& name) override;
  Task<Result<AccessResult>> access(RequestContext context, const FileHandle& file,
                                    std::uint32_t wanted) override;
  Task<Result<std::string>> readlink(RequestContext context, const FileHandle& link) override;
  Task<Result<ReadResult>> read(RequestContext context, const FileHandle& file,
                                std::uint64_t offset, MutableByteSpan into) override;
  Task<Result<WriteResult>> write(RequestContext context, const FileHandle& file,
                                  std::uint64_t offset, ByteSpan data,
                                  Stability stability) override;
  Task<Result<CommitResult>> commit(RequestContext context, const FileHandle& file) override;
  Task<Result<CreateResult>> create(RequestContext context, const FileHandle& directory,
                                    const std::string& name, CreateMode mode,
                                    const SetAttributes& set) override;
  Task<Result<CreateResult>> create_open(RequestContext context, const FileHandle& directory,
                                         const std::string& name, CreateMode mode,
                                         const SetAttributes& set, std::uint32_t open_for) override;
  Task<Result<CreateResult>> mkdir(RequestContext context, const FileHandle& directory,
                                   const std::string& name, const SetAttributes& set) override;
  Task<Result<CreateResult>> symlink(RequestContext context, const FileHandle& directory,
                                     const std::string& name, const std::string& text) override;
  Task<Result<CreateResult>> mknod(RequestContext context, const FileHandle& directory,
                                   const std::string& name, FileType type, std::uint32_t rdev_major,
                                   std::uint32_t rdev_minor, const SetAttributes& set) override;
  Task<Result<RemoveResult>> remove(RequestContext context, const FileHandle& directory,
                                    const std::string& name, const FileHandle* known) override;
  Task<Result<RemoveResult>> rmdir(RequestContext context, const FileHandle& directory,
                                   const std::string& name, const FileHandle* known) override;
  Task<Result<RenameResult>> rename(RequestContext context, const FileHandle& from_directory,
                                    const std::string& from, const FileHandle& to_directory,
                                    const std::string& to, const FileHandle* known) override;
  Task<Result<LinkResult>> link(RequestContext context, const FileHandle& file,
                                const FileHandle& directory, const std::string& name) override;
  Task<Result<DirectoryPage>> readdir(RequestContext context, const FileHandle& directory,
                                      std::uint64_t cookie, std::uint64_t verifier, bool plus,
                                      DirectoryVisitor& visitor) override;
  Task<Result<FsStat>> fsstat(RequestContext context, const FileHandle& file) override;
  Task<Result<std::uint64_t>> seek(RequestContext context, const FileHandle& file,
                                   std::uint64_t offset, SeekFor what) override;
  Task<Result<Wcc>> allocate(RequestContext context, const FileHandle& file, std::uint64_t offset,
                             std::uint64_t length) override;
  Task<Result<Wcc>> deallocate(RequestContext context, const FileHandle& file, std::uint64_t offset,
                               std::uint64_t length) override;
  Task<Result<CopyResult>> copy(RequestContext context, const FileHandle& from,
                                std::uint64_t from_offset, const FileHandle& to,
                                std::uint64_t to_offset, std::uint64_t count) override;
  bool has_xattrs() const override { return own_.has_xattrs(); }
  Task<Result<std::string>> get_xattr(RequestContext context, const FileHandle& file,
                                      const std::string& name) override;
  Task<Result<Wcc>> set_xattr(RequestContext context, const FileHandle& file,
                              const std::string& name, ByteSpan value, XattrThere there) override;
  Task<Result<std::vector<std::string>>> list_xattrs(RequestContext context,
                                                     const FileHandle& file) override;
  Task<Result<Wcc>> remove_xattr(RequestContext context, const FileHandle& file,
                                 const std::string& name) override;
  bool has_acls() const override { return own_.has_acls(); }
  Task<Result<bool>> acls_in(RequestContext context, const FileHandle& file,
                             std::uint64_t fsid) override;
  Task<Result<std::string>> get_acl(RequestContext context, const FileHandle& file) override;
  Task<Result<Wcc>> set_acl(RequestContext context, const FileHandle& file, ByteSpan acl) override;
  Task<Result<AccessResult>> open(RequestContext context, const FileHandle& file,
                                  std::uint32_t wanted, OpenFor how) override;
  bool open_already(RequestContext context, const FileHandle& file, std::uint32_t access) override;
  void narrow_open(RequestContext context, const FileHandle& file, std::uint32_t access) override;
  void set_delegation_holder(DelegationHolder* holder) override;
  bool may_be_delegated() const override;
  DelegationKind delegation(const FileHandle& file) override;
  std::uint64_t kept_back_limit(const FileHandle& file) const override;
  Task<void> give_back(const FileHandle& file) override;
  Task<void> give_way(const FileHandle& file) override;
  bool has_posix_acls() const override { return own_.has_posix_acls(); }
  Task<Result<FoundPosixAcls>> get_posix_acls(RequestContext context, const FileHandle& file,
                                              bool access, bool initial) override;
  Task<Result<Wcc>> set_posix_acl(RequestContext context, const FileHandle& file,
                                  const PosixAclChange& change) override;
  bool has_locks() const override { return own_.has_locks(); }
  bool opens_by_name() const override { return own_.opens_by_name(); }
  Task<Result<void>> lock(RequestContext context, const FileHandle& file, const FileLock& wanted,
                          LockWait wait, std::uint32_t open_for) override;
  Task<Result<void>> unlock(RequestContext context, const FileHandle& file,
                            const FileLock& what) override;
  Task<Result<std::optional<LockHolder>>> test_lock(RequestContext context, const FileHandle& file,
                                                    const FileLock& wanted) override;
  void close(const FileHandle& file) override;
  bool holds(const FileHandle& file) const override;
  std::vector<LockOwnerId> lock_owners_in_the_way(const FileHandle& file,
                                                  const FileLock& wanted) const override;

  /// Of the tree that it is of, as the mount sees it.
  static std::uint16_t number_of(const FileHandle& file) {
    return file.tree() & static_cast<std::uint16_t>(~kRootOfTree);
  }

 private:
  /// Marks a number of FileHandle::tree(): it is the tree's root, whatever the bytes.
  static constexpr std::uint16_t kRootOfTree = 0x8000;
  static_assert(kMostTrees < kRootOfTree);
  static FileHandle root_of(std::uint16_t number) {
    const std::array<std::byte, 1> any{};
    return FileHandle(any).in_tree(number | kRootOfTree);
  }
  struct Tree;
  struct Move;
  /// A file as its server knows it.
  struct There {
    Remote* remote = nullptr;
    FileHandle file;
    Tree* tree = nullptr;  // null: the mount's own
  };
  class Tags;
  class TaggingVisitor;

  Tree* tree_of(const FileHandle& file) const;
  /// Where its file system has moved to; null: nowhere.
  Tree* moved_to(const FileHandle& file) const;
  bool has_in_it(const Move& move, const FileHandle& file) const;
  /// What `file`, which has moved now, is to be followed by.
  /// Null: there are too many.
  std::shared_ptr<Move> move_of(const FileHandle& file, std::uint64_t fsid);
  /// A handle of a server's, as the mount knows it in the tree `number`.
  FileHandle as_in(std::uint16_t number, const FileHandle& theirs) const;
  Move* move_with(const FileHandle& file) const;
  /// Who asks for what a move needs: root, until the mount ends.
  RequestContext nobody();
  const MountSettings& settings_of(const There& there) const;
  struct Successor {
    Referral referral;
    ReferralTrail trail;
    std::unique_ptr<OpenTree> open;
    Attributes attributes;  // of the file that was asked for, there
    FileHandle root;        // Move::root
  };
  /// On an error found->open is to be ended, where there is one.
  Task<Result<void>> find_successor(const Move& move, There there, FileHandle file,
                                    Successor* found, std::string* detail);
  void use_successor(Move& move, const There& there, Successor found);
  void tell_not_followed(Move& move, const Referral& referral, const Error& error,
                         const std::string& detail);
  Task<void> carry_over(std::shared_ptr<Move> of, FileHandle file, There there);
  /// `there` has said kMovedAway of `file`. True: its file system is elsewhere now, and to be asked
  /// again; false: nobody knows where, or cannot get there.
  Task<Result<bool>> follow_move(RequestContext context, FileHandle file, There there);
  /// To which the file system has moved that `referral`, met in `directory`, stands for; null: it
  /// is an ordinary referral.
  Tree* moved_from(const FileHandle& directory, const Referral& referral) const;
  /// Null remote: that tree is not open.
  There known(const FileHandle& file) const;
  /// known(), once the tree is open.
  Task<Result<There>> reach(RequestContext context, FileHandle file);
  /// context->place as its server knows it, which *there keeps.
  Task<Result<void>> place_there(RequestContext& context, FilePlace& there);
  Task<Result<void>> wait_for(RequestContext context, Tree& tree);
  Task<void> open_tree(Tree& tree);
  /// What LOOKUP says of a referral. `answer` is of `directory` in the tree that it is in.
  Task<Result<LookupResult>> refer(RequestContext context, FileHandle directory, std::string name,
                                   There there, MaybeAttributes of_directory);
  static std::string place_of(const FileHandle& directory, const std::string& name,
                              const Referral& referral);
  /// Was it met there before, just so?
  bool is_known(const FileHandle& directory, const std::string& name,
                const Referral& referral) const;
  /// The tree of that name, perhaps a new one; null: there are too many.
  Tree* tree_at(const There& there, const FileHandle& directory, const std::string& name,
                Referral referral);
  /// What the mount sees of `root`, a tree's, where a file system that moved is met by its name.
  Task<Result<LookupResult>> look_at_moved(RequestContext context, FileHandle directory,
                                           const Referral& referral);
  using Removal = Task<Result<RemoveResult>> (Remote::*)(RequestContext, const FileHandle&,
                                                         const std::string&, const FileHandle*);
  Task<Result<RemoveResult>> take_away(Removal removal, RequestContext context,
                                       FileHandle directory, std::string name,
                                       const FileHandle* known);
  template <typename T, typename Call>
  Task<Result<T>> run(RequestContext context, const FileHandle& file, Call call);
  template <typename T, typename Call>
  Task<Result<T>> run_both(RequestContext context, const FileHandle& first,
                           const FileHandle& second, const char* what, Call call);
  template <typename T>
  static bool has_moved(const Result<T>& answer) {
    return !answer.ok() && is_moved_away(answer.error());
  }
  template <typename T>
  Result<T> seen(const There& there, const FileHandle& file, Result<T> answer);

  EventLoop& loop_;
  Remote& own_;
  TreeWays& ways_;
  const MountSettings settings_;
  const bool follow_;
  std::vector<std::unique_ptr<Tree>> trees_;     // number 1 is the first
  std::map<std::string, Tree*> trees_by_place_;  // where it is, and where to
  std::vector<std::shared_ptr<Move>> moves_;
  Interrupt leaving_;  // raised by stop()
  DelegationHolder* holder_ = nullptr;
  TaskGroup opening_;
  bool stopped_ = false;
  bool told_full_ = false;
};

}  // namespace nfsrdma
