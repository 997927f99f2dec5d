// SPDX-License-Identifier: Apache-2.0
// NfsOperations: what a version of NFS does for an AsyncMount, one function per operation, in the
// words of client/nfs_types.h. nfs3/operations.h and nfs4/operations.h implement it.
//
// Threads, memory, errors: as async_mount.h says. Names, data and OpContext stay in place until the
// Task is done.
#pragma once

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/moved_state.h"
#include "client/nfs_types.h"
#include "client/nfs_version.h"
#include "client/op_context.h"
#include "client/referral.h"
#include "rpcrdma/base/task.h"

namespace nfsrdma::nfs4 {
class SessionSource;
}

namespace nfsrdma {

class RpcConnection;

class NfsOperations {
 public:
  virtual ~NfsOperations() = default;

  /// Before all others: what the version needs with the server before files are asked for. On an
  /// error *detail says what was tried.
  virtual Task<Result<void>> begin(const OpContext& op, std::string* detail) = 0;
  /// Tells the server goodbye, best effort; `op` may be cancelled.
  virtual Task<void> end(const OpContext& op) = 0;
  /// Ends what runs on its own. Every call was aborted, or is about to be.
  virtual void abort() = 0;
  /// Nobody waits for locks from now on: who does is interrupted.
  virtual void stop_waiting() {}
  /// Where the server's tree begins; kUnsupported: this version cannot ask.
  virtual Task<Result<FileHandle>> server_root(const OpContext& op) = 0;
  /// The version in force, exactly.
  virtual NfsVersion number() const = 0;
  /// "3", "4.2": for people.
  std::string version() const { return number().text(); }

  virtual Task<Result<void>> null(const OpContext& op) = 0;
  virtual Task<Result<Attributes>> getattr(const OpContext& op, const FileHandle& file) = 0;
  virtual Task<Result<Wcc>> setattr(const OpContext& op, const FileHandle& file,
                                    const SetAttributes& set, const timespec* guard_ctime) = 0;
  virtual Task<Result<LookupResult>> lookup(const OpContext& op, const FileHandle& directory,
                                            std::string_view name,
                                            std::optional<Attributes>* directory_attributes) = 0;
  /// Where what `name` in `directory` stands for is to be found, after lookup() has said
  /// kReferralMet; "": the same of `directory`, after kMovedAway. ENOENT: it names no servers.
  /// NFSv4 alone.
  virtual Task<Result<Referral>> referral(const OpContext&, const FileHandle&, std::string_view) {
    co_return not_in_this_version("referral");
  }
  virtual Task<Result<AccessResult>> access(const OpContext& op, const FileHandle& file,
                                            std::uint32_t wanted) = 0;
  virtual Task<Result<std::string>> readlink(const OpContext& op, const FileHandle& link) = 0;

  /// One READ of at most read_size() bytes; what it gives may be short.
  virtual Task<Result<ReadResult>> read_once(const OpContext& op, const FileHandle& file,
                                             std::uint64_t offset, MutableByteSpan into) = 0;
  /// One WRITE of at most write_size() bytes; it may take fewer, but not none of some.
  virtual Task<Result<WriteResult>> write_once(const OpContext& op, const FileHandle& file,
                                               std::uint64_t offset, ByteSpan data,
                                               Stability stability) = 0;
  virtual Task<Result<CommitResult>> commit(const OpContext& op, const FileHandle& file,
                                            std::uint64_t offset, std::uint32_t count) = 0;

  virtual Task<Result<CreateResult>> create(const OpContext& op, const FileHandle& directory,
                                            std::string_view name, CreateMode mode,
                                            const SetAttributes& set) = 0;
  /// create(), and the file is open as by open() then, with how.access and how.deny. Where
  /// opens_by_name() it is neither.
  virtual Task<Result<CreateResult>> create_open(const OpContext& op, const FileHandle& directory,
                                                 std::string_view name, CreateMode mode,
                                                 const SetAttributes& set, OpenFor how) {
    static_cast<void>(how);
    return create(op, directory, name, mode, set);
  }
  /// Bytes of data that go along with the request that makes a file; 0: none.
  virtual std::uint32_t most_with_create() const { return 0; }
  /// create(), and the file begins with `data`, at most most_with_create() bytes, as far as that
  /// goes at once: *written (which outlives the Task) of them are in it, and stable. The rest is
  /// the caller's to write, and so is to hear why it could not be.
  virtual Task<Result<CreateResult>> create_with_data(const OpContext& op,
                                                      const FileHandle& directory,
                                                      std::string_view name, CreateMode mode,
                                                      const SetAttributes& set, ByteSpan data,
                                                      std::size_t* written) {
    static_cast<void>(data);
    *written = 0;
    return create(op, directory, name, mode, set);
  }
  virtual Task<Result<CreateResult>> mkdir(const OpContext& op, const FileHandle& directory,
                                           std::string_view name, const SetAttributes& set) = 0;
  virtual Task<Result<CreateResult>> symlink(const OpContext& op, const FileHandle& directory,
                                             std::string_view name, std::string_view target,
                                             const SetAttributes& set) = 0;
  virtual Task<Result<CreateResult>> mknod(const OpContext& op, const FileHandle& directory,
                                           std::string_view name, FileType type,
                                           std::uint32_t rdev_major, std::uint32_t rdev_minor,
                                           const SetAttributes& set) = 0;
  virtual Task<Result<LinkResult>> link(const OpContext& op, const FileHandle& file,
                                        const FileHandle& directory, std::string_view name) = 0;
  virtual Task<Result<RemoveResult>> remove(const OpContext& op, const FileHandle& directory,
                                            std::string_view name, const FileHandle* known) = 0;
  virtual Task<Result<RemoveResult>> rmdir(const OpContext& op, const FileHandle& directory,
                                           std::string_view name, const FileHandle* known) = 0;
  virtual Task<Result<RenameResult>> rename(const OpContext& op, const FileHandle& from_directory,
                                            std::string_view from_name,
                                            const FileHandle& to_directory,
                                            std::string_view to_name, const FileHandle* known) = 0;

  virtual Task<Result<DirectoryPage>> readdir(const OpContext& op, const FileHandle& directory,
                                              std::uint64_t cookie, std::uint64_t verifier,
                                              std::uint32_t max_bytes,
                                              DirectoryVisitor& visitor) = 0;
  /// readdir(), with handles and attributes where the server gives them.
  virtual Task<Result<DirectoryPage>> readdirplus(const OpContext& op, const FileHandle& directory,
                                                  std::uint64_t cookie, std::uint64_t verifier,
                                                  std::uint32_t max_bytes,
                                                  DirectoryVisitor& visitor) = 0;
  virtual Task<Result<FsStat>> fsstat(const OpContext& op, const FileHandle& file) = 0;
  virtual Task<Result<FsInfo>> fsinfo(const OpContext& op, const FileHandle& file) = 0;
  virtual Task<Result<PathConf>> pathconf(const OpContext& op, const FileHandle& file) = 0;

  // --- NFSv4.2 (RFC 7862); before it there is none of this: kUnsupported, ENOSYS ---
  /// Where the first data or hole at or behind `offset` begins, the end of the file being a hole.
  /// ENXIO: `offset` is at the end or behind it, or no data comes any more.
  virtual Task<Result<std::uint64_t>> seek(const OpContext&, const FileHandle&, std::uint64_t,
                                           SeekFor) {
    co_return not_in_this_version("SEEK");
  }
  /// Space for these bytes; a file that is shorter becomes longer.
  virtual Task<Result<Wcc>> allocate(const OpContext&, const FileHandle&, std::uint64_t,
                                     std::uint64_t) {
    co_return not_in_this_version("ALLOCATE");
  }
  /// A hole, which does not make the file longer.
  virtual Task<Result<Wcc>> deallocate(const OpContext&, const FileHandle&, std::uint64_t,
                                       std::uint64_t) {
    co_return not_in_this_version("DEALLOCATE");
  }
  /// The server copies up to `count` bytes that `from` has, perhaps fewer.
  virtual Task<Result<CopyResult>> copy(const OpContext&, const FileHandle&, std::uint64_t,
                                        const FileHandle&, std::uint64_t, std::uint64_t) {
    co_return not_in_this_version("COPY");
  }
  /// Extended attributes (RFC 8276), of which there are those for users: names without "user.".
  virtual bool has_xattrs() const { return false; }
  /// ENODATA: there is none of that name.
  virtual Task<Result<std::string>> get_xattr(const OpContext&, const FileHandle&,
                                              std::string_view) {
    co_return not_in_this_version("GETXATTR");
  }
  virtual Task<Result<Wcc>> set_xattr(const OpContext&, const FileHandle&, std::string_view,
                                      ByteSpan, XattrThere) {
    co_return not_in_this_version("SETXATTR");
  }
  virtual Task<Result<std::vector<std::string>>> list_xattrs(const OpContext&, const FileHandle&) {
    co_return not_in_this_version("LISTXATTRS");
  }
  virtual Task<Result<Wcc>> remove_xattr(const OpContext&, const FileHandle&, std::string_view) {
    co_return not_in_this_version("REMOVEXATTR");
  }

  // --- open files: NFSv4.1 and later; before it an open is none of the server's business ---
  /// access() of a regular file, which is open on the server as well from then on, until close().
  /// One close() is for all opens of a file. EACCES: also because somebody denies others that.
  virtual Task<Result<AccessResult>> open(const OpContext& op, const FileHandle& file,
                                          std::uint32_t wanted, OpenFor how) {
    static_cast<void>(how);
    return access(op, file, wanted);
  }
  /// May the file be opened for `access` (access_bits::kRead, kModify) without asking the server,
  /// as far as its being open there matters? True: it counts as opened. Under a delegation the
  /// server is told when that ends.
  virtual bool open_already(const OpContext&, const FileHandle&, std::uint32_t) { return true; }
  /// What the identity of `op` has opened it uses for `access` alone from now on, perhaps 0.
  virtual void narrow_open(const OpContext&, const FileHandle&, std::uint32_t) {}
  /// Do OpenFor::deny and end_denial() mean anything? In minor version 0 open() wants
  /// OpContext::place for it.
  virtual bool can_deny() const { return false; }
  /// The open by which `owner` denies something ends, if there is one, and with it what `owner` has
  /// locked. Over when the server has heard of it, or `op` is cancelled.
  virtual Task<void> end_denial(const OpContext&, const FileHandle&, LockOwnerId) { co_return; }
  /// The same, and nobody waits for it.
  virtual void drop_denial(const OpContext&, const FileHandle&, LockOwnerId) {}

  // --- delegations: NFSv4.1 and later ---
  /// `holder` (may be null) outlives the last call.
  virtual void set_delegation_holder(DelegationHolder*) {}
  /// open() may bring one.
  virtual bool may_be_delegated() const { return false; }
  /// What is promised now; asking keeps it from being given back as unused.
  virtual DelegationKind delegation(const FileHandle&) { return DelegationKind::kNone; }
  /// The file may be so long and have data that is not written when it is closed.
  virtual std::uint64_t kept_back_limit(const FileHandle&) const { return 0; }
  /// Gives a delegation back, if there is one.
  virtual Task<void> give_back(const FileHandle&) { co_return; }
  /// Before the data is changed: a server may recall a read delegation for that, though it is our
  /// own (RFC 8881 10.4). Gives it back, recalled or not, without a word to the holder.
  virtual Task<void> give_way(const FileHandle&) { co_return; }

  // --- ACLs: NFSv4. Values are the XDR of its attribute acl (RFC 8881, 6.2.1) ---
  virtual bool has_acls() const { return false; }
  /// Has the server ACLs in the file system `fsid`, of which `file` is?
  virtual Task<Result<bool>> acls_in(const OpContext&, const FileHandle&, std::uint64_t) {
    co_return false;
  }
  /// EOPNOTSUPP: this object has none.
  virtual Task<Result<std::string>> get_acl(const OpContext&, const FileHandle&) {
    co_return not_in_this_version("ACL");
  }
  /// EINVAL: no such XDR, or (from the server) nobody of such a name.
  virtual Task<Result<Wcc>> set_acl(const OpContext&, const FileHandle&, ByteSpan) {
    co_return not_in_this_version("ACL");
  }

  // --- POSIX ACLs: NFSACL beside NFSv3 ---
  /// Perhaps: until the server has said that it does not know them.
  virtual bool has_posix_acls() const { return false; }
  /// EOPNOTSUPP: there are none, here or at all.
  virtual Task<Result<FoundPosixAcls>> get_posix_acls(const OpContext&, const FileHandle&,
                                                      bool access, bool initial) {
    static_cast<void>(access);
    static_cast<void>(initial);
    co_return not_in_this_version("GETACL");
  }
  virtual Task<Result<Wcc>> set_posix_acl(const OpContext&, const FileHandle&,
                                          const PosixAclChange&) {
    co_return not_in_this_version("SETACL");
  }

  // --- byte-range locks: NFSv4, and NLM beside NFSv3 ---
  virtual bool has_locks() const { return false; }
  /// lock() wants OpContext::place: NFSv4.0 cannot open a file without its name.
  virtual bool opens_by_name() const { return false; }
  /// `open_for`: what the file is open for, access_bits::kRead and kModify. EAGAIN: a lock of
  /// somebody else's is in the way, and `wait` is kNo. EIO: the owner has lost a lock on this file.
  virtual Task<Result<void>> lock(const OpContext&, const FileHandle&, const FileLock&, LockWait,
                                  std::uint32_t) {
    co_return not_in_this_version("LOCK");
  }
  /// Of what.owner, whatever its kind; all bytes also when the owner goes.
  virtual Task<Result<void>> unlock(const OpContext&, const FileHandle&, const FileLock&) {
    co_return not_in_this_version("LOCKU");
  }
  /// What is in the way of `wanted`, if anything.
  virtual Task<Result<std::optional<LockHolder>>> test_lock(const OpContext&, const FileHandle&,
                                                            const FileLock&) {
    co_return not_in_this_version("LOCKT");
  }
  /// Of this mount, those that `wanted` would have to wait for. Nobody is asked.
  virtual std::vector<LockOwnerId> lock_owners_in_the_way(const FileHandle&,
                                                          const FileLock&) const {
    return {};
  }
  /// Nobody uses the file any more: what is held of it is let go of, soon.
  virtual void close(const FileHandle&) {}
  /// Something is held of it.
  virtual bool holds(const FileHandle&) const { return false; }
  /// What is open and locked of the files of a file system that has moved to another server: here
  /// nothing is known of it any more, and the delegations of it have ended. Null: nothing is.
  virtual std::unique_ptr<MovedState> hand_over(const WhichFiles&) { return nullptr; }
  /// The same on that server, the same version having made it. Runs on on its own.
  virtual void take_over(std::unique_ptr<MovedState>) {}
  /// What READs and WRITEs of the file show now, `access` being access_bits::kRead or kModify. EIO:
  /// they must not be made, since a lock on it is lost.
  virtual Result<DataRight> right_for(const OpContext&, const FileHandle&,
                                      std::uint32_t access) const {
    static_cast<void>(access);
    return DataRight{};
  }
  /// Where other threads have their sessions from; null: this version has none.
  virtual nfs4::SessionSource* session_source() { return nullptr; }
  /// Does `way`, a further connection, lead to the server that all of this goes to, so that it may
  /// carry any of it? An error: it cannot be said now, or (kUnsupported) not in this version.
  virtual Task<Result<bool>> leads_here(const OpContext&, RpcConnection&) {
    co_return not_in_this_version("trunking");
  }
  // For people:
  virtual std::size_t locks_held() const { return 0; }
  /// Where NFSv3's lock manager was found; "": nobody has asked, or there is none.
  virtual std::string lock_manager() const { return {}; }
  virtual std::size_t files_open() const { return 0; }
  virtual std::size_t delegations_held() const { return 0; }
  /// Requests that the session lets through at once; 0: there is no session.
  virtual std::uint32_t session_slots() const { return 0; }
  /// The server can call us, and how often it has.
  virtual bool has_back_channel() const { return false; }
  virtual std::uint64_t callbacks_done() const { return 0; }
  /// Where the server may call over connections of its own (minor version 0); "": nowhere.
  virtual std::string called_at() const { return {}; }

 protected:
  static Error not_in_this_version(const char* what) { return {Errc::kUnsupported, ENOSYS, what}; }
};

/// A name that could lead out of its directory, or stands for it, is no entry of a directory.
inline bool sane_entry_name(std::string_view name) {
  return !name.empty() && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace nfsrdma
