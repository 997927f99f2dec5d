// SPDX-License-Identifier: Apache-2.0
// Remote: the server as the FUSE file system sees it, one function per operation, in the
// words of client/nfs_types.h. The product has one implementation, over AsyncMount
// (mounted_remote.cc); tests put a small file system in memory behind it.
//
// A hard mount does not return before the server answered, unless the request's Interrupt was
// raised (EINTR). Parameters by reference and spans stay in place until the operation is done.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/fuse/caller.h"
#include "client/fuse/interrupt.h"
#include "client/moved_state.h"
#include "client/nfs_types.h"
#include "client/referral.h"
#include "rpcrdma/base/task.h"

namespace nfsrdma {

using MaybeAttributes = std::optional<Attributes>;

/// Who waits for the data of a read. A Remote that receives data on another thread may hand it over
/// there and then, instead of having it handed over by who asked.
class ReadAnswer {
 public:
  virtual ~ReadAnswer() = default;
  /// All of the memory to be read into is filled. On any thread, at most once, and before read()
  /// returns.
  virtual void whole(ByteSpan data) = 0;
};

/// On whose behalf a call is made; `interrupt` (may be null) outlives the call.
/// (Not an aggregate: g++ 12 destroys members of an aggregate made inside of a co_await twice.)
struct RequestContext {
  RequestContext(CallerRef its_caller, Interrupt* its_interrupt)
      : caller(std::move(its_caller)), interrupt(its_interrupt) {}

  CallerRef caller;
  Interrupt* interrupt = nullptr;
  ReadAnswer* answer = nullptr;      // of a read
  const FilePlace* place = nullptr;  // of a lock, or an open that asks for a delegation, where
                                     // Remote::opens_by_name()
};

class Remote {
 public:
  virtual ~Remote() = default;

  virtual const FileHandle& root() const = 0;
  virtual std::uint32_t read_size() const = 0;
  virtual std::uint32_t write_size() const = 0;

  virtual Task<Result<Attributes>> getattr(RequestContext context, const FileHandle& file) = 0;
  virtual Task<Result<Wcc>> setattr(RequestContext context, const FileHandle& file,
                                    const SetAttributes& set) = 0;
  /// On ENOENT *directory_attributes still gets the directory's.
  virtual Task<Result<LookupResult>> lookup(RequestContext context, const FileHandle& directory,
                                            const std::string& name,
                                            MaybeAttributes* directory_attributes) = 0;
  /// After kReferralMet, as in client/async_mount.h.
  virtual Task<Result<Referral>> referral(RequestContext, const FileHandle&, const std::string&) {
    co_return Error{Errc::kUnsupported, ENOSYS, "referral"};
  }
  virtual Task<Result<AccessResult>> access(RequestContext context, const FileHandle& file,
                                            std::uint32_t wanted) = 0;
  virtual Task<Result<std::string>> readlink(RequestContext context, const FileHandle& link) = 0;
  virtual Task<Result<ReadResult>> read(RequestContext context, const FileHandle& file,
                                        std::uint64_t offset, MutableByteSpan into) = 0;
  virtual Task<Result<WriteResult>> write(RequestContext context, const FileHandle& file,
                                          std::uint64_t offset, ByteSpan data,
                                          Stability stability) = 0;
  virtual Task<Result<CommitResult>> commit(RequestContext context, const FileHandle& file) = 0;
  virtual Task<Result<CreateResult>> create(RequestContext context, const FileHandle& directory,
                                            const std::string& name, CreateMode mode,
                                            const SetAttributes& set) = 0;
  /// The same, and open() for `open_for` (access_bits::kRead, kModify).
  virtual Task<Result<CreateResult>> create_open(RequestContext context,
                                                 const FileHandle& directory,
                                                 const std::string& name, CreateMode mode,
                                                 const SetAttributes& set, std::uint32_t open_for) {
    static_cast<void>(open_for);
    return create(std::move(context), directory, name, mode, set);
  }
  virtual Task<Result<CreateResult>> mkdir(RequestContext context, const FileHandle& directory,
                                           const std::string& name, const SetAttributes& set) = 0;
  virtual Task<Result<CreateResult>> symlink(RequestContext context, const FileHandle& directory,
                                             const std::string& name, const std::string& text) = 0;
  virtual Task<Result<CreateResult>> mknod(RequestContext context, const FileHandle& directory,
                                           const std::string& name, FileType type,
                                           std::uint32_t rdev_major, std::uint32_t rdev_minor,
                                           const SetAttributes& set) = 0;
  /// `known`: what the name stands for as far as the caller knows, or null.
  virtual Task<Result<RemoveResult>> remove(RequestContext context, const FileHandle& directory,
                                            const std::string& name, const FileHandle* known) = 0;
  virtual Task<Result<RemoveResult>> rmdir(RequestContext context, const FileHandle& directory,
                                           const std::string& name, const FileHandle* known) = 0;
  virtual Task<Result<RenameResult>> rename(RequestContext context,
                                            const FileHandle& from_directory,
                                            const std::string& from, const FileHandle& to_directory,
                                            const std::string& to, const FileHandle* known) = 0;
  virtual Task<Result<LinkResult>> link(RequestContext context, const FileHandle& file,
                                        const FileHandle& directory, const std::string& name) = 0;
  /// Entries behind `cookie`, with handles and attributes when `plus`.
  virtual Task<Result<DirectoryPage>> readdir(RequestContext context, const FileHandle& directory,
                                              std::uint64_t cookie, std::uint64_t verifier,
                                              bool plus, DirectoryVisitor& visitor) = 0;
  virtual Task<Result<FsStat>> fsstat(RequestContext context, const FileHandle& file) = 0;
  /// These four as in client/async_mount.h: ENOSYS before NFSv4.2.
  virtual Task<Result<std::uint64_t>> seek(RequestContext context, const FileHandle& file,
                                           std::uint64_t offset, SeekFor what) = 0;
  virtual Task<Result<Wcc>> allocate(RequestContext context, const FileHandle& file,
                                     std::uint64_t offset, std::uint64_t length) = 0;
  virtual Task<Result<Wcc>> deallocate(RequestContext context, const FileHandle& file,
                                       std::uint64_t offset, std::uint64_t length) = 0;
  virtual Task<Result<CopyResult>> copy(RequestContext context, const FileHandle& from,
                                        std::uint64_t from_offset, const FileHandle& to,
                                        std::uint64_t to_offset, std::uint64_t count) = 0;
  /// Extended attributes, as there: names without "user.".
  virtual bool has_xattrs() const = 0;
  virtual Task<Result<std::string>> get_xattr(RequestContext context, const FileHandle& file,
                                              const std::string& name) = 0;
  virtual Task<Result<Wcc>> set_xattr(RequestContext context, const FileHandle& file,
                                      const std::string& name, ByteSpan value,
                                      XattrThere there) = 0;
  virtual Task<Result<std::vector<std::string>>> list_xattrs(RequestContext context,
                                                             const FileHandle& file) = 0;
  virtual Task<Result<Wcc>> remove_xattr(RequestContext context, const FileHandle& file,
                                         const std::string& name) = 0;
  /// ACLs, as there.
  virtual bool has_acls() const = 0;
  virtual Task<Result<bool>> acls_in(RequestContext context, const FileHandle& file,
                                     std::uint64_t fsid) = 0;
  virtual Task<Result<std::string>> get_acl(RequestContext context, const FileHandle& file) = 0;
  virtual Task<Result<Wcc>> set_acl(RequestContext context, const FileHandle& file,
                                    ByteSpan acl) = 0;

  /// Open files, as there; without them the server knows of none.
  virtual Task<Result<AccessResult>> open(RequestContext context, const FileHandle& file,
                                          std::uint32_t wanted, OpenFor how) {
    static_cast<void>(how);
    return access(std::move(context), file, wanted);
  }
  virtual bool open_already(RequestContext, const FileHandle&, std::uint32_t) { return true; }
  virtual void narrow_open(RequestContext, const FileHandle&, std::uint32_t) {}
  /// Delegations, as there; without them there are none.
  virtual void set_delegation_holder(DelegationHolder*) {}
  virtual bool may_be_delegated() const { return false; }
  virtual DelegationKind delegation(const FileHandle&) { return DelegationKind::kNone; }
  virtual std::uint64_t kept_back_limit(const FileHandle&) const { return 0; }
  virtual Task<void> give_back(const FileHandle&) { co_return; }
  /// Before the data is changed: a server may recall a read delegation for that, though it is our
  /// own. Gives it back, recalled or not, without a word to the holder.
  virtual Task<void> give_way(const FileHandle&) { co_return; }

  /// POSIX ACLs, as there.
  virtual bool has_posix_acls() const { return false; }
  virtual Task<Result<FoundPosixAcls>> get_posix_acls(RequestContext context,
                                                      const FileHandle& file, bool access,
                                                      bool initial) = 0;
  virtual Task<Result<Wcc>> set_posix_acl(RequestContext context, const FileHandle& file,
                                          const PosixAclChange& change) = 0;

  /// Byte-range locks, as there; without them the kernel's own have to do.
  virtual bool has_locks() const = 0;
  /// A lock wants RequestContext::place.
  virtual bool opens_by_name() const { return false; }
  virtual Task<Result<void>> lock(RequestContext context, const FileHandle& file,
                                  const FileLock& wanted, LockWait wait,
                                  std::uint32_t open_for) = 0;
  virtual Task<Result<void>> unlock(RequestContext context, const FileHandle& file,
                                    const FileLock& what) = 0;
  virtual Task<Result<std::optional<LockHolder>>> test_lock(RequestContext context,
                                                            const FileHandle& file,
                                                            const FileLock& wanted) = 0;
  virtual void close(const FileHandle& file) = 0;
  virtual bool holds(const FileHandle& file) const = 0;
  /// As there; without it there is nothing to hand over.
  virtual std::unique_ptr<MovedState> hand_over(const WhichFiles&) { return nullptr; }
  virtual void take_over(std::unique_ptr<MovedState>) {}
  /// Of this mount, those that `wanted` would have to wait for. Nobody is asked.
  virtual std::vector<LockOwnerId> lock_owners_in_the_way(const FileHandle&,
                                                          const FileLock&) const {
    return {};
  }
};

}  // namespace nfsrdma
