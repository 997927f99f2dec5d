// SPDX-License-Identifier: Apache-2.0
// AsyncMount: one server directory tree, reached over one or more connections. The asynchronous
// core under the blocking library, the FUSE mount and the tool: every operation as a coroutine, in
// the version of NFS that the settings ask for (nfs_operations.h).
//
// Threads: an AsyncMount belongs to its EventLoop's thread. A program with several shards makes one
// per shard with attach(): they share nothing but the server.
//
// Memory: names, data and OpContext passed by reference or span stay in place until the operation
// is done. read() places data straight into the caller's memory, write() sends from it.
//
// Errors: Error::sys is the errno (see errno_of()). BAD_COOKIE is Errc::kInvalid with EINVAL (start
// the directory again), TIMEDOUT comes from soft mounts only, EINTR from a CancelToken. JUKEBOX is
// retried here. Calls that a lost connection left unanswered are sent again with the same xid; when
// the answer is doubtful then (the server forgot that it had already run the call: ENOENT for a
// REMOVE, EEXIST for a MKDIR ...) the object itself decides (doubtful.h).
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/mount_settings.h"
#include "client/nfs_operations.h"
#include "client/nfs_types.h"
#include "client/op_context.h"
#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/task.h"
#include "rpcrdma/connection_info.h"

namespace nfsrdma {

class RpcClient;
class Trunk;

/// The RPC layer alone, for the transports that `settings` allow.
std::unique_ptr<RpcClient> make_rpc_client(EventLoop& loop, const Fabrics& fabrics,
                                           const MountSettings& settings);

/// What MOUNT gave: enough to attach further AsyncMounts to the same tree.
struct MountRoot {
  FileHandle handle;
  std::string path;  // as mounted on the server
  /// The TCP port where MOUNT was asked, 0: the NFS connection; none: it was not asked.
  std::optional<std::uint16_t> mount_port = std::nullopt;
};

/// Told what happens to the connections; on the loop's thread. All optional.
struct MountObserver {
  std::function<void(const ConnectionInfo&)> connected;
  std::function<void(const std::string& why)> disconnected;
  std::function<void()> not_responding;  // once per outage
  std::function<void()> responding;
};

class AsyncMount;

/// Says which directory a new AsyncMount stands on, once it is connected.
class RootFinder {
 public:
  virtual ~RootFinder() = default;
  /// Where settings().version is version 4 and `any` will do, ENOENT makes the mount ask once more
  /// with version 3.
  /// Calls mount.set_root(). Every call that it makes ends when `cancel` says so.
  virtual Task<Result<void>> find_root(AsyncMount& mount, CancelToken& cancel,
                                       std::string* detail) = 0;
};

class AsyncMount {
 public:
  /// Connects, agrees on a version where the settings name none (version_choice.h), finds
  /// settings.path and asks for the limits. `settings.addresses` must be
  /// filled in. On an error *detail (which outlives the Task) says what was tried. A server that
  /// takes the connection and then answers nothing is ETIMEDOUT after settings.first_answers,
  /// `hard` or not: nobody depends on the mount yet.
  /// *met (which may be null, and else outlives the Task) is the referral that stood in the way,
  /// where the error is kReferralMet: follow_referral.h goes on from there.
  static Task<Result<std::unique_ptr<AsyncMount>>> connect(EventLoop& loop, Fabrics fabrics,
                                                           MountSettings settings,
                                                           std::string* detail,
                                                           ReferralMet* met = nullptr);
  /// The same tree once more, on another loop or with more connections; without MOUNT.
  static Task<Result<std::unique_ptr<AsyncMount>>> attach(EventLoop& loop, Fabrics fabrics,
                                                          MountSettings settings, MountRoot root,
                                                          std::string* detail);
  /// With a way of one's own to find the root. `finder` outlives the Task.
  static Task<Result<std::unique_ptr<AsyncMount>>> open(EventLoop& loop, Fabrics fabrics,
                                                        MountSettings settings, RootFinder& finder,
                                                        std::string* detail);
  /// Over an RPC client made elsewhere (tests).
  static std::unique_ptr<AsyncMount> over(EventLoop& loop, MountSettings settings,
                                          std::unique_ptr<RpcClient> rpc, MountRoot root,
                                          const FsInfo& info);
  /// No operation may be running: abort_all() and wait for them first. Outside of any of its own
  /// callbacks and coroutines.
  ~AsyncMount();
  AsyncMount(const AsyncMount&) = delete;
  AsyncMount& operator=(const AsyncMount&) = delete;

  const MountRoot& root() const { return root_; }
  void set_root(MountRoot root) { root_ = std::move(root); }
  const FsInfo& info() const { return info_; }
  const MountSettings& settings() const { return settings_; }
  /// Bytes per READ and WRITE in force.
  std::uint32_t read_size() const { return read_size_; }
  std::uint32_t write_size() const { return write_size_; }
  EventLoop& loop() const { return loop_; }
  void set_observer(MountObserver observer);
  /// Of the connections that are up now.
  std::vector<ConnectionInfo> connections() const;
  /// Bytes and calls of this mount over all connections that it ever had.
  TransferStats totals() const;
  /// Regions that servers of this thread's mounts can reach now, as far as their fabrics count
  /// them.
  std::size_t exposed_regions() const;
  /// Calls that wait for an answer or a connection.
  std::size_t calls_outstanding() const;
  /// RpcClient::connections_made().
  std::uint64_t connections_made() const;
  /// Uses this further address of the server, too, if the same server is there (trunk.h, which has
  /// the errors). Port 0: the mount's own ports.
  Task<Result<void>> join_address(SocketAddress address, std::string* detail);
  /// Every call, present and future, fails with EIO (umount -f).
  void abort_all();
  /// Those who wait for locks are interrupted, and so is whoever waits from now on.
  void stop_waiting() { operations_->stop_waiting(); }
  /// Ends the session, and tells MOUNT goodbye. Best effort: each is over after kGoodbye, and hard
  /// mounts are no exception.
  static constexpr std::chrono::seconds kGoodbye{2};
  Task<void> unmount();
  /// The session alone, as for one of several AsyncMounts of a tree. Over after kGoodbye, too.
  Task<void> end_session();

  // --- NFS operations ---
  Task<Result<void>> null(const OpContext& op) { return operations_->null(op); }
  Task<Result<Attributes>> getattr(const OpContext& op, const FileHandle& file) {
    return operations_->getattr(op, file);
  }
  /// `guard_ctime`: only if the file's ctime still is this (else EAGAIN).
  Task<Result<Wcc>> setattr(const OpContext& op, const FileHandle& file, const SetAttributes& set,
                            const timespec* guard_ctime = nullptr) {
    return operations_->setattr(op, file, set, guard_ctime);
  }
  /// On ENOENT, *directory (when given) still gets the directory's attributes.
  Task<Result<LookupResult>> lookup(const OpContext& op, const FileHandle& directory,
                                    std::string_view name,
                                    std::optional<Attributes>* directory_attributes = nullptr) {
    return operations_->lookup(op, directory, name, directory_attributes);
  }
  /// After lookup() has said kReferralMet: where to what `name` stands for is (client/referral.h).
  /// "": the same of `directory`, after any operation on it has said EREMOTE.
  Task<Result<Referral>> referral(const OpContext& op, const FileHandle& directory,
                                  std::string_view name) {
    return operations_->referral(op, directory, name);
  }
  Task<Result<AccessResult>> access(const OpContext& op, const FileHandle& file,
                                    std::uint32_t wanted) {
    return operations_->access(op, file, wanted);
  }
  Task<Result<std::string>> readlink(const OpContext& op, const FileHandle& link) {
    return operations_->readlink(op, link);
  }

  /// Any length: split into read_size() pieces that are under way together. A short count without
  /// eof does not happen.
  Task<Result<ReadResult>> read(const OpContext& op, const FileHandle& file, std::uint64_t offset,
                                MutableByteSpan into);
  /// Any length; all of it or an error (then some of it may be written).
  Task<Result<WriteResult>> write(const OpContext& op, const FileHandle& file, std::uint64_t offset,
                                  ByteSpan data, Stability stability);
  /// offset 0 and count 0: the whole file.
  Task<Result<CommitResult>> commit(const OpContext& op, const FileHandle& file,
                                    std::uint64_t offset, std::uint32_t count) {
    return operations_->commit(op, file, offset, count);
  }

  Task<Result<CreateResult>> create(const OpContext& op, const FileHandle& directory,
                                    std::string_view name, CreateMode mode,
                                    const SetAttributes& set) {
    return operations_->create(op, directory, name, mode, set);
  }
  /// create(), and open() with how.access and how.deny; only create() where opens_by_name().
  Task<Result<CreateResult>> create_open(const OpContext& op, const FileHandle& directory,
                                         std::string_view name, CreateMode mode,
                                         const SetAttributes& set, OpenFor how) {
    return operations_->create_open(op, directory, name, mode, set, how);
  }
  /// A file with `data` and nothing else, on stable storage: create() and write() in one request
  /// where that is most_with_create() bytes or less (RFC 8881, 16.2.3.1.2: what OPEN leaves
  /// behind, WRITE and CLOSE use). Nothing stays open. kUnchecked: what was in an existing file is
  /// gone. `set` without size. An error: the file may be there, with some of it.
  Task<Result<CreateResult>> create_with_data(const OpContext& op, const FileHandle& directory,
                                              std::string_view name, CreateMode mode,
                                              const SetAttributes& set, ByteSpan data);
  /// 0: creating a file and writing to it are two requests at least. NFSv4.1 and later have more.
  std::uint32_t most_with_create() const {
    return std::min(write_size_, operations_->most_with_create());
  }
  Task<Result<CreateResult>> mkdir(const OpContext& op, const FileHandle& directory,
                                   std::string_view name, const SetAttributes& set) {
    return operations_->mkdir(op, directory, name, set);
  }
  Task<Result<CreateResult>> symlink(const OpContext& op, const FileHandle& directory,
                                     std::string_view name, std::string_view target,
                                     const SetAttributes& set) {
    return operations_->symlink(op, directory, name, target, set);
  }
  /// FIFOs, sockets and devices.
  Task<Result<CreateResult>> mknod(const OpContext& op, const FileHandle& directory,
                                   std::string_view name, FileType type, std::uint32_t rdev_major,
                                   std::uint32_t rdev_minor, const SetAttributes& set) {
    return operations_->mknod(op, directory, name, type, rdev_major, rdev_minor, set);
  }
  Task<Result<LinkResult>> link(const OpContext& op, const FileHandle& file,
                                const FileHandle& directory, std::string_view name) {
    return operations_->link(op, file, directory, name);
  }
  /// `known` is the object that `name` stands for as far as the caller knows, when it does: it
  /// makes a doubtful answer after a reconnect certain.
  Task<Result<RemoveResult>> remove(const OpContext& op, const FileHandle& directory,
                                    std::string_view name, const FileHandle* known = nullptr) {
    return operations_->remove(op, directory, name, known);
  }
  Task<Result<RemoveResult>> rmdir(const OpContext& op, const FileHandle& directory,
                                   std::string_view name, const FileHandle* known = nullptr) {
    return operations_->rmdir(op, directory, name, known);
  }
  Task<Result<RenameResult>> rename(const OpContext& op, const FileHandle& from_directory,
                                    std::string_view from_name, const FileHandle& to_directory,
                                    std::string_view to_name, const FileHandle* known = nullptr) {
    return operations_->rename(op, from_directory, from_name, to_directory, to_name, known);
  }

  /// One page: entries behind `cookie` (0: from the start, with verifier 0). `max_bytes` bounds the
  /// answer.
  Task<Result<DirectoryPage>> readdir(const OpContext& op, const FileHandle& directory,
                                      std::uint64_t cookie, std::uint64_t verifier,
                                      std::uint32_t max_bytes, DirectoryVisitor& visitor) {
    return operations_->readdir(op, directory, cookie, verifier, max_bytes, visitor);
  }
  Task<Result<DirectoryPage>> readdirplus(const OpContext& op, const FileHandle& directory,
                                          std::uint64_t cookie, std::uint64_t verifier,
                                          std::uint32_t max_bytes, DirectoryVisitor& visitor) {
    return operations_->readdirplus(op, directory, cookie, verifier, max_bytes, visitor);
  }
  Task<Result<FsStat>> fsstat(const OpContext& op, const FileHandle& file) {
    return operations_->fsstat(op, file);
  }
  Task<Result<FsInfo>> fsinfo(const OpContext& op, const FileHandle& file) {
    return operations_->fsinfo(op, file);
  }
  Task<Result<PathConf>> pathconf(const OpContext& op, const FileHandle& file) {
    return operations_->pathconf(op, file);
  }

  // --- NFSv4.2; before it kUnsupported, ENOSYS ---
  /// Where the first data or hole at or behind `offset` begins, the end of the file being a hole.
  /// ENXIO: `offset` is at the end or behind it, or no data comes any more.
  Task<Result<std::uint64_t>> seek(const OpContext& op, const FileHandle& file,
                                   std::uint64_t offset, SeekFor what) {
    return operations_->seek(op, file, offset, what);
  }
  /// Takes space for these bytes; a file that is shorter becomes longer.
  Task<Result<Wcc>> allocate(const OpContext& op, const FileHandle& file, std::uint64_t offset,
                             std::uint64_t length) {
    return operations_->allocate(op, file, offset, length);
  }
  /// Makes a hole; the file does not become longer.
  Task<Result<Wcc>> deallocate(const OpContext& op, const FileHandle& file, std::uint64_t offset,
                               std::uint64_t length) {
    return operations_->deallocate(op, file, offset, length);
  }
  /// The server copies bytes that `from` has, perhaps fewer than `count`; go on behind them. They
  /// are on stable storage then.
  Task<Result<CopyResult>> copy(const OpContext& op, const FileHandle& from,
                                std::uint64_t from_offset, const FileHandle& to,
                                std::uint64_t to_offset, std::uint64_t count) {
    return operations_->copy(op, from, from_offset, to, to_offset, count);
  }

  /// Extended attributes for users: names without "user.". ENODATA: there is none of that name.
  bool has_xattrs() const { return operations_->has_xattrs(); }
  Task<Result<std::string>> get_xattr(const OpContext& op, const FileHandle& file,
                                      std::string_view name) {
    return operations_->get_xattr(op, file, name);
  }
  Task<Result<Wcc>> set_xattr(const OpContext& op, const FileHandle& file, std::string_view name,
                              ByteSpan value, XattrThere there) {
    return operations_->set_xattr(op, file, name, value, there);
  }
  Task<Result<std::vector<std::string>>> list_xattrs(const OpContext& op, const FileHandle& file) {
    return operations_->list_xattrs(op, file);
  }
  Task<Result<Wcc>> remove_xattr(const OpContext& op, const FileHandle& file,
                                 std::string_view name) {
    return operations_->remove_xattr(op, file, name);
  }

  // --- open files: NFSv4.1 and later; before it an open is none of the server's business ---
  /// access() of a regular file, which is open on the server as well from then on, until close().
  /// One close() is for all opens of a file. EACCES: also because somebody denies others that.
  Task<Result<AccessResult>> open(const OpContext& op, const FileHandle& file, std::uint32_t wanted,
                                  OpenFor how) {
    return operations_->open(op, file, wanted, how);
  }
  /// May the file be opened for `access` (access_bits::kRead, kModify) without asking the server,
  /// as far as its being open there matters? True: it counts as opened.
  bool open_already(const OpContext& op, const FileHandle& file, std::uint32_t access) {
    return operations_->open_already(op, file, access);
  }
  /// What the identity of `op` has opened it uses for `access` alone from now on, perhaps 0, while
  /// others or itself go on. The server is told soon.
  void narrow_open(const OpContext& op, const FileHandle& file, std::uint32_t access) {
    operations_->narrow_open(op, file, access);
  }
  /// Share reservations: OpenFor::deny of open() and create_open(). NFSv4 alone.
  bool can_deny() const { return operations_->can_deny(); }
  /// The open by which `owner` denies something ends, and with it what `owner` has locked. Over
  /// when the server has heard of it.
  Task<void> end_denial(const OpContext& op, const FileHandle& file, LockOwnerId owner) {
    return operations_->end_denial(op, file, owner);
  }
  /// The same, and nobody waits for it.
  void drop_denial(const OpContext& op, const FileHandle& file, LockOwnerId owner) {
    operations_->drop_denial(op, file, owner);
  }
  /// Files that are open on the server, or have locks.
  std::size_t files_open() const { return operations_->files_open(); }

  // --- delegations: NFSv4.1 and later; else there are none (client/nfs_operations.h) ---
  void set_delegation_holder(DelegationHolder* holder) {
    operations_->set_delegation_holder(holder);
  }
  bool may_be_delegated() const { return operations_->may_be_delegated(); }
  DelegationKind delegation(const FileHandle& file) { return operations_->delegation(file); }
  std::uint64_t kept_back_limit(const FileHandle& file) const {
    return operations_->kept_back_limit(file);
  }
  Task<void> give_back(const FileHandle& file) { return operations_->give_back(file); }
  Task<void> give_way(const FileHandle& file) { return operations_->give_way(file); }
  std::size_t delegations_held() const { return operations_->delegations_held(); }

  // --- ACLs: NFSv4; before it kUnsupported, ENOSYS ---
  /// Values are the XDR of NFSv4's attribute acl.
  bool has_acls() const { return operations_->has_acls(); }
  /// Has the server ACLs in the file system `fsid`, of which `file` is?
  Task<Result<bool>> acls_in(const OpContext& op, const FileHandle& file, std::uint64_t fsid) {
    return operations_->acls_in(op, file, fsid);
  }
  /// EOPNOTSUPP: this object has none.
  Task<Result<std::string>> get_acl(const OpContext& op, const FileHandle& file) {
    return operations_->get_acl(op, file);
  }
  /// EINVAL: no such XDR, or the server knows nobody of a name in it.
  Task<Result<Wcc>> set_acl(const OpContext& op, const FileHandle& file, ByteSpan acl) {
    return operations_->set_acl(op, file, acl);
  }

  // --- POSIX ACLs: NFSv3 where MountSettings::posix_acls; else kUnsupported, ENOSYS ---
  /// False from when the server has said that it does not know NFSACL.
  bool has_posix_acls() const { return operations_->has_posix_acls(); }
  /// Those that are asked for. EOPNOTSUPP: the server has none, or not of this object.
  Task<Result<FoundPosixAcls>> get_posix_acls(const OpContext& op, const FileHandle& file,
                                              bool access, bool initial) {
    return operations_->get_posix_acls(op, file, access, initial);
  }
  /// The other ACL of the object stays as it is. ENOSPC: too many entries for the protocol.
  Task<Result<Wcc>> set_posix_acl(const OpContext& op, const FileHandle& file,
                                  const PosixAclChange& change) {
    return operations_->set_posix_acl(op, file, change);
  }

  // --- byte-range locks: NFSv4, and NFSv3 where MountSettings::locks ---
  bool has_locks() const { return operations_->has_locks(); }
  bool opens_by_name() const { return operations_->opens_by_name(); }
  /// `open_for`: what the file is open for, access_bits::kRead and kModify; other data than that
  /// goes past the lock. EAGAIN: a lock of somebody else's is in the way, and `wait` is kNo. EIO:
  /// the owner has lost a lock on this file; it may lock again once it has unlocked that. Locks
  /// outlive connections and restarts of the server, not AsyncMounts.
  Task<Result<void>> lock(const OpContext& op, const FileHandle& file, const FileLock& wanted,
                          LockWait wait, std::uint32_t open_for) {
    return operations_->lock(op, file, wanted, wait, open_for);
  }
  /// Of what.owner, whatever its kind. When it is cancelled it happens all the same. All bytes:
  /// nothing is kept of the owner.
  Task<Result<void>> unlock(const OpContext& op, const FileHandle& file, const FileLock& what) {
    return operations_->unlock(op, file, what);
  }
  /// What is in the way of `wanted`, if anything.
  Task<Result<std::optional<LockHolder>>> test_lock(const OpContext& op, const FileHandle& file,
                                                    const FileLock& wanted) {
    return operations_->test_lock(op, file, wanted);
  }
  /// Of this mount, those that `wanted` would have to wait for. Nobody is asked.
  std::vector<LockOwnerId> lock_owners_in_the_way(const FileHandle& file,
                                                  const FileLock& wanted) const {
    return operations_->lock_owners_in_the_way(file, wanted);
  }
  /// Nobody uses the file any more: lets go of what is held of it, on its own.
  void close(const FileHandle& file) { operations_->close(file); }
  /// Something is held of it.
  bool holds(const FileHandle& file) const { return operations_->holds(file); }
  /// What is open and locked of the files of a file system that has moved to another server, on its
  /// way to the AsyncMount that goes there; here it is forgotten. Opens are made there anew, locks
  /// are lost (lock() has what that means).
  std::unique_ptr<MovedState> hand_over(const WhichFiles& which) {
    return operations_->hand_over(which);
  }
  void take_over(std::unique_ptr<MovedState> state) { operations_->take_over(std::move(state)); }
  /// For READs and WRITEs by another AsyncMount with a session from here (OpContext::right);
  /// `access`: access_bits::kRead or kModify. EIO: a lock on the file is lost.
  Result<DataRight> right_for(const OpContext& op, const FileHandle& file,
                              std::uint32_t access) const {
    return operations_->right_for(op, file, access);
  }
  /// For MountSettings::session_source of others; null: they need none.
  nfs4::SessionSource* session_source() { return operations_->session_source(); }
  std::size_t locks_held() const { return operations_->locks_held(); }
  std::string lock_manager() const { return operations_->lock_manager(); }
  /// Requests that the session lets through at once; 0: NFSv3, which has no sessions.
  std::uint32_t session_slots() const { return operations_->session_slots(); }
  bool has_back_channel() const { return operations_->has_back_channel(); }
  std::uint64_t callbacks_done() const { return operations_->callbacks_done(); }
  std::string called_at() const { return operations_->called_at(); }

  /// Where NFSv4 begins; NFSv3 asks MOUNT.
  Task<Result<FileHandle>> server_root(const OpContext& op) { return operations_->server_root(op); }

  /// The version of NFS in force: "3", "4.2".
  std::string version() const { return operations_->version(); }

  /// The RPC layer, for calls of other programs and for measurements.
  RpcClient& rpc() { return *rpc_; }

 private:
  AsyncMount(EventLoop& loop, MountSettings settings);
  /// What is to be done once it is connected, in the version of the settings.
  Task<Result<void>> begin(const OpContext& op, RootFinder& finder, CancelToken& cancel,
                           std::string* detail);
  /// begin() in the version that was named, or in the first of ours that the server takes.
  Task<Result<void>> begin_in_best(const OpContext& op, RootFinder& finder, CancelToken& cancel,
                                   std::string* detail);
  void stay_at(const SocketAddress& address);
  void use_limits(const FsInfo& info);

  EventLoop& loop_;
  Fabrics fabrics_;  // that it may use
  MountSettings settings_;
  MountRoot root_;
  FsInfo info_;
  std::uint32_t read_size_ = 0;
  std::uint32_t write_size_ = 0;
  std::unique_ptr<RpcClient> rpc_;
  std::unique_ptr<NfsOperations> operations_;  // goes before rpc_
  std::unique_ptr<Trunk> trunk_;               // goes before both; null: one address
};

}  // namespace nfsrdma
