// SPDX-License-Identifier: Apache-2.0
// FileSystem: one mount's state and the operations on it, with nfs(5)'s caching rules and without
// libfuse: op_*.cc turn FUSE requests into calls of these. Everything on one event loop's thread.
//
// Attributes: every reply that carries attributes goes through apply() or apply_change(). Replies
// can overtake each other, so each request notes the clock at its start: attributes from before
// the last ones taken over count only when their ctime is later, or with the same ctime their
// change attribute is greater. What differs without a change of ours in between is somebody else's
// change and makes the caches of the object invalid; a later ctime alone does, since whoever wrote
// can have set the other times back, but not when we changed a name of it.
//
// Permissions: asked with ACCESS as the caller, never judged by mode bits. Since the kernel's name
// cache knows no callers, names in directories that not everybody may search are not cached
// there (entry_seconds), only here, where each lookup is checked.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "client/fuse/file_writer.h"
#include "client/fuse/node.h"
#include "client/fuse/patience.h"
#include "client/fuse/remote.h"
#include "client/fuse/spare_memory.h"
#include "client/occasion.h"
#include "rpcrdma/base/event_loop.h"

namespace nfsrdma {

struct FileSystemOptions {
  AttributePolicy attributes;
  bool close_to_open = true;
  bool cache_names = true;
  bool cache_absent_names = true;
  bool read_names_ahead = true;
  bool synchronous = false;  // every write is stable when it returns
  bool one_user = false;     // the kernel lets in only the user who mounted (no allow_other)
  /// softreval: when the server has not answered for so long, what is known of attributes, names
  /// and rights goes on being believed. Zero: it is waited for.
  Duration revalidation_patience{0};
  std::uint64_t write_budget = default_write_budget();
};

/// An entry of a directory.
struct ListedName {
  std::string name;
  std::uint64_t fileid = 0;
  std::uint64_t cookie = 0;
  NodeRef node;  // when the server gave handle and attributes
};

/// How to tell the kernel, by the number of a node, that what it has cached is not good any more.
struct KernelCache {
  /// Data and attributes, soon; returns before it is done (the kernel may wait for requests of
  /// ours). `done` is called on the loop's thread when the kernel has let go of it.
  std::function<void(std::uint64_t, std::function<void()> done)> drop_data;
  /// Attributes only, now. While the kernel has the object in use for a request of its own: what it
  /// is about to forget it waits for here, and that may be for requests of ours.
  std::function<void(std::uint64_t)> drop_attributes;
  /// The same for any object, soon.
  std::function<void(std::uint64_t)> drop_attributes_soon;
  /// A name in a directory is to be looked up again; soon, like drop_data.
  std::function<void(std::uint64_t, const std::string&)> expire_name;
};

/// access_bits that open(2) with `flags` wants.
std::uint32_t rights_for(int flags);
/// For which the server is to have the file open then: access_bits::kRead, kModify.
std::uint32_t open_access(int flags);

/// What ends when the request is interrupted; null: nobody can.
CancelToken* cancel_of(const RequestContext& context);

class FileSystem : private DelegationHolder {
 public:
  FileSystem(EventLoop& loop, Remote& remote, FileSystemOptions options, KernelCache kernel);
  ~FileSystem() override;

  /// Fetches the root's attributes. Once, first.
  Task<int> start(RequestContext context);
  /// Makes everything stable, whoever waits. For the end of the mount.
  Task<void> finish();

  // --- attributes ---
  std::uint64_t begin_request() { return ++clock_; }
  void apply(Node& node, const Attributes& attributes, std::uint64_t started);
  void apply(Node& node, const MaybeAttributes& attributes, std::uint64_t started) {
    if (attributes) apply(node, *attributes, started);
  }
  void apply_change(Node& node, const Wcc& change, std::uint64_t started);
  /// The kernel's pages and the size that it knows are not what the server has.
  void pages_are_old(Node& node);
  /// After a change of its names by us that did not tell its new attributes.
  void note_renamed(Node& node);
  /// GETATTR unless fresh; with data on its way to the server, after it, and with data that it may
  /// have lost, after that is there again.
  Task<int> refresh(RequestContext context, NodeRef node);
  Task<int> getattr(RequestContext context, NodeRef node);
  /// FSSTAT. When the server takes longer than kSpacePatience: what it said last, since umount(8)
  /// asks before it unmounts.
  Task<int> space(RequestContext context, NodeRef node, FsStat* found);
  static constexpr std::chrono::seconds kSpacePatience{2};
  /// Files with data that may not be stable on the server, by path; at most `most`.
  std::vector<std::string> unwritten_files(std::size_t most);
  /// Where it was found last, for people.
  std::string path_of(const Node& node);
  /// With the size as the applications see it.
  Attributes visible(const Node& node) const;
  double attribute_seconds(const Node& node) const;
  /// How long the kernel may believe a name in `directory`.
  double entry_seconds(const Node& directory) const;
  /// The object is gone (ESTALE): nothing known of it or of the names on the way to it counts. The
  /// kernel answers ESTALE by going the whole way again with LOOKUP, once.
  void stale(Node& node);
  /// ESTALE for an object that the server has open still, though its last name is gone, and nobody
  /// has here: whoever came by a name meant what has it now, and the kernel goes the way to that
  /// again. Else 0.
  int stale_if_removed(Node& node);
  /// The errno for the application; notices ESTALE.
  int failed(Node& node, const Error& error);

  // --- permissions ---
  /// 0, EACCES, or why it could not be found out. `ask`: do not believe the cache (close-to-open:
  /// the answer's attributes revalidate too). `how`: of an open(2); the server keeps the file open.
  Task<int> permit(RequestContext context, NodeRef node, std::uint32_t rights, bool ask,
                   OpenFor how = {});
  /// Before a SETATTR of the size by who has opened the file with `flags`; O_RDONLY: has not opened
  /// it (truncate(2)), or for reading (O_TRUNC). Servers let an owner write whatever the mode says
  /// (RFC 1813 4.4), and the kernel leaves asking to us.
  Task<int> permit_cut(RequestContext context, NodeRef node, int flags);

  // --- names ---
  /// On success *found is the node (null: the name is absent and may be cached so). In a directory
  /// that was replaced on the server the answer is its successor's.
  Task<int> lookup(RequestContext context, NodeRef directory, std::string name, NodeRef* found);
  /// How to make an object: a CREATE, MKDIR, SYMLINK or MKNOD.
  using Maker = std::function<Task<Result<CreateResult>>(Remote&)>;
  Task<int> make(RequestContext context, NodeRef directory, std::string name, Maker maker,
                 NodeRef* made);
  /// What a symbolic link says. Believed as long as its attributes are, and the same.
  Task<int> readlink(RequestContext context, NodeRef node, std::string* text);
  Task<int> remove(RequestContext context, NodeRef directory, std::string name);
  Task<int> rmdir(RequestContext context, NodeRef directory, std::string name);
  Task<int> rename(RequestContext context, NodeRef from_directory, std::string from,
                   NodeRef to_directory, std::string to);
  Task<int> link(RequestContext context, NodeRef node, NodeRef directory, std::string name);
  /// The names behind `cookie`, with their nodes when `plus`, and whether they are the last ones.
  Task<int> list(RequestContext context, NodeRef directory, std::uint64_t cookie,
                 std::uint64_t* verifier, bool plus, std::vector<ListedName>* names, bool* last);

  // --- open files ---
  /// Counts an open; *keep_cache says whether the kernel's pages are still good.
  Task<int> open(RequestContext context, NodeRef node, int flags, bool* keep_cache);
  /// open(2) with O_CREAT of an absent name: makes the file by `maker`, or opens what somebody else
  /// has made meanwhile. ESTALE: that is no file, and the kernel is to look it up.
  Task<int> make_open(RequestContext context, NodeRef directory, std::string name, Maker maker,
                      int flags, NodeRef* node, bool* keep_cache);
  /// Before an open is answered: 0, or ESTALE, after which the kernel asks for the file's
  /// attributes and comes again.
  Task<int> settle_pages(RequestContext context, NodeRef node, bool writes);
  Task<int> open_there(RequestContext context, NodeRef node, std::uint32_t rights);
  /// The kernel is being given its attributes, for a request of that process.
  void told(Node& node, pid_t pid);
  /// Counts an open that needs no permission: of a file just made.
  void adopt_open(Node& node, const CallerRef& caller, int flags) {
    node.openers.add(caller, open_access(flags));
    count_open(node);
  }
  /// Data may be written behind the close.
  bool may_keep_back(const Node& node);
  /// fsync(2): 0 when everything is stable on the server, or why data did not get there.
  /// `errors_told`: FileWriter::take_error() of the open file.
  Task<int> write_out(RequestContext context, NodeRef node, std::uint64_t* errors_told);
  /// close(2) of one descriptor of an open file that `writes` or not.
  Task<int> write_out_at_close(RequestContext context, NodeRef node, bool writes,
                               std::uint64_t* errors_told);
  /// The end of an open by `caller` with `flags`. The last one removes a silly name.
  void close(NodeRef node, const CallerRef& caller, int flags);
  /// Writes back and cuts or changes attributes, in this order.
  Task<int> setattr(RequestContext context, NodeRef node, SetAttributes set);
  /// Reads up to the end of the file as applications see it; *count bytes are in `sink` then.
  Task<int> read(RequestContext context, NodeRef node, std::uint64_t offset, MutableByteSpan sink,
                 std::size_t* count);
  /// Behind a write past the kernel's pages (O_DIRECT), before it is answered: until the kernel has
  /// none from before. It drops them in front of the write, and of one that nobody waits for
  /// (io_submit(2)) not behind it, as far as Linux 6.18 goes: what somebody reads meanwhile would
  /// stay. Not for a write of pages: the kernel holds them.
  Task<void> drop_read_pages(RequestContext context, NodeRef node);
  /// Where a write with O_APPEND goes that the kernel would put at *offset, the end as it knows it.
  Task<int> append_offset(RequestContext context, NodeRef node, std::uint64_t* offset);
  // Answered ENOSYS where the server does not speak NFSv4.2:
  /// *found as the seek() of async_mount.h has it, with all that applications wrote.
  Task<int> seek(RequestContext context, NodeRef node, std::uint64_t offset, SeekFor what,
                 std::uint64_t* found);
  enum class Space : std::uint8_t { kTaken, kFreed };
  /// Space for a range, which may make the file longer, or a hole, which never does.
  Task<int> change_space(RequestContext context, NodeRef node, Space space, std::uint64_t offset,
                         std::uint64_t length);
  /// Copies up to *count bytes on the server, and says in *count how many they were; 0: `from` ends
  /// at from_offset.
  Task<int> copy(RequestContext context, NodeRef from, std::uint64_t from_offset, NodeRef to,
                 std::uint64_t to_offset, std::uint64_t* count);
  // Extended attributes: names without "user.". Nothing of them is cached.
  Task<int> get_xattr(RequestContext context, NodeRef node, std::string name, std::string* value);
  Task<int> set_xattr(RequestContext context, NodeRef node, std::string name, std::string value,
                      XattrThere there);
  Task<int> list_xattrs(RequestContext context, NodeRef node, std::vector<std::string>* names);
  Task<int> remove_xattr(RequestContext context, NodeRef node, std::string name);
  // ACLs, as XDR (async_mount.h). Not cached either.
  /// Can objects of this file system have one?
  Task<int> acls_there(RequestContext context, NodeRef node, bool* there);
  Task<int> get_acl(RequestContext context, NodeRef node, std::string* acl);
  Task<int> set_acl(RequestContext context, NodeRef node, std::string acl);
  // POSIX ACLs (async_mount.h).
  Task<int> get_posix_acls(RequestContext context, NodeRef node, bool access, bool initial,
                           FoundPosixAcls* found);
  /// Removes it where `acl` is none.
  Task<int> set_posix_acl(RequestContext context, NodeRef node, bool initial,
                          std::optional<PosixAcl> acl);
  /// Takes from *mode what is not for an object that is made in `directory`: by its default ACL,
  /// and where it has none by the umask.
  Task<int> mask_mode(RequestContext context, NodeRef directory, mode_t umask, mode_t* mode);
  // Byte-range locks, where the server has them. As on every NFS client they are where caches meet:
  // who locks sees what others wrote before, who unlocks has written what they shall see. Owners
  // are the kernel's numbers.
  /// `flags`: of the open file; `pid`: who locks. EAGAIN: somebody else's is in the way.
  Task<int> lock(RequestContext context, NodeRef node, FileLock wanted, LockWait wait, int flags,
                 pid_t pid);
  /// lock() that waits, as fcntl(2) has it: EDEADLK where processes of this mount would wait for
  /// each other for ever.
  Task<int> lock_in_the_end(RequestContext context, NodeRef node, FileLock wanted, int flags,
                            pid_t pid);
  Task<int> unlock(RequestContext context, NodeRef node, FileLock what);
  /// *found is what is in the way of `wanted`, if anything; *pid its process, 0: on another host.
  Task<int> test_lock(RequestContext context, NodeRef node, FileLock wanted,
                      std::optional<FileLock>* found, pid_t* pid);
  /// All locks of an owner that closes the file. They go when what it wrote is written, whoever
  /// stops waiting for it.
  Task<int> let_go(RequestContext context, NodeRef node, LockOwnerId owner);
  /// The same, and nobody waits.
  void let_go_behind(const NodeRef& node, const CallerRef& caller, LockOwnerId owner);
  /// Has it, perhaps, any?
  static bool may_hold_locks(const Node& node, LockOwnerId owner);
  FileWriter& writer_of(Node& node);
  /// What `work` comes to. It goes on when whoever waits is killed: none then.
  Task<std::optional<int>> to_the_end(RequestContext context, Task<int> work);
  /// Pushes all files' data out, without waiting.
  void write_back_all();

  EventLoop& loop;
  Remote& remote;
  const FileSystemOptions options;
  NodeTable nodes;
  IntrusiveList<FileWriter> writers;
  WriteBudget budget;
  TaskGroup tasks;  // what runs without a request
  NodeRef root;
  /// `node` was found in `directory`.
  static void place(Node& node, const NodeRef& directory, std::string_view name) {
    node.parent = directory;
    node.name = name;
  }

 private:
  // --- delegations: file_system_delegations.cc ---
  void give_up(const FileHandle& file) override;
  std::optional<HeldAttributes> held_attributes(const FileHandle& file) override;
  void has_moved(const FileHandle& file) override;
  const Attributes* last_attributes(const FileHandle& file) const override;
  bool lies_below(const FileHandle& file, const FileHandle& directory) const override;
  std::optional<FileHandle> known_directory(const FileHandle& directory,
                                            std::string_view name) const override;
  /// The server tells when what is known of the file is not good any more.
  bool promised(const Node& node);
  /// Is a delegation to be asked for with an open for `access`?
  bool wants_delegation(Node& node, std::uint32_t access);
  /// An answer with attributes came. Was a delegation asked for with it, and was there one before?
  void note_delegation(Node& node, OpenFor how, bool before);
  /// Writes what was kept back, and gives the delegation back.
  Task<void> end_promise(NodeRef node);
  void stop_believing(Node& node);
  /// Does somebody here write the file, where the server cannot tell that it is us?
  bool changes_unnamed(const Node& node) const;
  /// Before an open to write: a read delegation goes back, whose lease stands in the way of our own
  /// data on servers, too.
  Task<void> give_way_to_writer(RequestContext context, NodeRef node);
  /// Before any other change of the file; null: it is not known.
  Task<void> give_way_to_change(RequestContext context, NodeRef node);
  /// Until `giving` is over, or who asks is killed: it goes on then.
  Task<void> wait_for_way(RequestContext context, Task<void> giving);

  /// Others have made it what it is `now`, or the server has lost what was not stable.
  void foreign_change(Node& node, const Attributes& now);
  /// GETATTR, and again behind what the server is seen to have lost, perhaps.
  Task<int> getattr_without_doubt(RequestContext context, NodeRef node);
  /// Runs a call that changes an object and takes over what it says of it.
  Task<int> make_change(RequestContext context, NodeRef node, Task<Result<Wcc>> change);
  /// The same for one that changes who may do what.
  Task<int> change_acl(RequestContext context, NodeRef node, Task<Result<Wcc>> change);
  /// COPY of what lies in front of the end of `from`.
  Task<int> copy_within(RequestContext context, NodeRef from, std::uint64_t from_offset, NodeRef to,
                        std::uint64_t to_offset, std::uint64_t* count);
  Task<int> lookup_here(RequestContext context, NodeRef directory, std::string name,
                        NodeRef* found);
  /// Looks a directory that is gone up again by its name, and those above it if need be. ESTALE: it
  /// is not known where it was.
  Task<int> find_again(RequestContext context, NodeRef directory, NodeRef* found, int depth);
  /// Like failed(), for a call that was about a name in `directory`.
  Task<int> failed_in(RequestContext context, NodeRef directory, Error error);
  void take_over(Node& node, const Attributes& attributes);
  /// The kernel asks nobody on the way through names that it has: it is to ask again for all of
  /// those in `directory`.
  void expire_names(Node& directory);
  /// Which object a name stands for, when some open file might: for silly names.
  Task<NodeRef> target_of(RequestContext context, NodeRef directory, std::string name);
  /// Gives an open file a silly name: in place of `name`, or (keep_name) beside it. It goes on when
  /// whoever asked is killed (EINTR).
  Task<int> hide_open_file(RequestContext context, NodeRef node, NodeRef directory,
                           std::string name, bool keep_name);
  Task<int> hide_to_the_end(RequestContext context, NodeRef node, NodeRef directory,
                            std::string name, bool keep_name);
  void may_search(Node& directory, const CallerRef& caller);
  void names_changed(Node& directory, const Wcc& change, std::uint64_t started);
  Task<void> remove_silly(NodeRef node);
  void remove_silly_unless_used(const NodeRef& node);
  // names_ahead.h
  Task<int> list_page(RequestContext context, NodeRef directory, std::uint64_t cookie,
                      std::uint64_t* verifier, bool plus, std::vector<ListedName>* names,
                      bool* last);
  /// A LOOKUP of a name in `directory` was answered from here, or found something on the server.
  void note_hit(Node& directory, const NodeRef& found);
  void note_miss(const CallerRef& caller, const NodeRef& directory);
  Task<void> read_names_ahead(CallerRef caller, NodeRef directory);
  void forget_names_ahead(TimePoint now);
  /// The kernel is to drop what it has of the data; Node::pages_dropped says when it has.
  void drop_pages(Node& node);
  /// The same, and until it is done. False: whoever waits is gone.
  Task<bool> drop_pages_now(RequestContext context, NodeRef node);
  void count_open(Node& node) {
    if (node.opens++ == 0) open_nodes_.push_back(node);
    ++open_files_;
  }
  Task<void> close_there(NodeRef node);
  /// An opener is gone: the server is told what is left, if that is less.
  void remove_opener(const NodeRef& node, const CallerRef& caller, std::uint32_t access);
  Task<void> narrow_there(NodeRef node, CallerRef caller);
  /// Behind an open or a creation that failed: the server may have the file open all the same.
  void close_there_unless_open(const NodeRef& node);
  /// The number of an owner for the server, which is new to it or not.
  LockOwnerId owner_for(Node& node, LockOwnerId kernel_owner, pid_t pid);
  /// Behind a lock by that number: is it still the owner's?
  static bool is_known_as(Node& node, LockOwnerId kernel_owner, LockOwnerId owner, pid_t pid);
  /// Does one of those in the way of `wanted` wait, over some others, for its owner? As far as this
  /// mount knows: not of other hosts.
  bool waits_for_itself(const NodeRef& node, const FileLock& wanted) const;
  struct LockWaiting {
    NodeRef node;
    FileLock wanted;  // by the kernel's number
  };
  /// unlock_behind(), and until that is done. False: whoever waits is gone; it is done all the
  /// same.
  Task<bool> unlock_for(RequestContext context, NodeRef node, FileLock what);
  /// Until the server knows what is let go of for who is gone: before it is asked about locks.
  /// False: cancelled.
  Task<bool> unlocks_told(RequestContext context, NodeRef node);
  /// UNLOCK behind the data; whoever stops waiting. `what` is the server's.
  Task<int> unlock_behind(NodeRef node, CallerRef caller, FileLock what);
  std::string silly_name(const Node& node);
  void on_write_back_timer();
  void on_revalidate_timer();
  Task<void> revalidate(NodeRef node);

  // --- a server that does not answer (softreval) ---
  /// Is what is known to be believed then?
  bool may_run_out() const { return options.revalidation_patience != Duration::zero(); }
  /// Puts a limit on the next call of `context`, whose caller knows what to answer without it.
  void limit(RequestContext& context, std::optional<Patience>* patience);
  /// Did the call end because the server does not answer? Then what was known is the answer.
  bool went_silent(const Patience& patience, const Error& error);
  /// What is known of the node, for the shortest time that attributes are believed.
  void believe_again(Node& node);
  static constexpr std::chrono::seconds kSilentPatience{2};

  KernelCache kernel_;
  IntrusiveList<Node> open_nodes_;
  std::optional<FsStat> last_space_;  // of the root's file system
  bool server_silent_ = false;  // it let somebody's patience run out, and has not answered since
  LockOwnerId last_lock_owner_ = 0;
  std::list<std::shared_ptr<Occasion>> dropping_;  // that drop_pages_now() waits for
  unsigned waiting_writes_ = 0;                    // in drop_read_pages()
  std::list<LockWaiting> lock_waits_;              // of lock_in_the_end()
  std::unordered_set<std::uint64_t> following_;    // fsids, of has_moved()
  Interrupt leaving_;                              // raised by finish()
  bool finishing_ = false;                         // nothing waits for the kernel any more
  std::vector<NodeRef> with_names_ahead_;          // directories
  std::uint64_t clock_ = 0;
  std::uint32_t silly_counter_;
  std::size_t open_files_ = 0;  // with those that wait for the server
  Gate silly_done_;
  SpareMemory spare_memory_;
  Timer write_back_timer_;
  Timer revalidate_timer_;
};

}  // namespace nfsrdma
