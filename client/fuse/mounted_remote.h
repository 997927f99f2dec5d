// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/fuse/mount_shards.h"
#include "client/fuse/remote.h"

namespace nfsrdma {

/// The server behind the threads of a mount, which outlive this: the main one makes every call but
/// the READs and WRITEs that `shards` gives to others. `errno_of_timeout` is what applications
/// see when a soft mount gives up: EIO for soft, ETIMEDOUT for softerr (nfs(5)).
class MountedRemote final : public Remote {
 public:
  MountedRemote(MountShards& shards, int errno_of_timeout)
      : shards_(shards), mount_(shards.main()), errno_of_timeout_(errno_of_timeout) {}

  const FileHandle& root() const override { return mount_.root().handle; }
  std::uint32_t read_size() const override { return mount_.read_size(); }
  std::uint32_t write_size() const override { return mount_.write_size(); }

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
  bool has_xattrs() const override { return mount_.has_xattrs(); }
  Task<Result<std::string>> get_xattr(RequestContext context, const FileHandle& file,
                                      const std::string& name) override;
  Task<Result<Wcc>> set_xattr(RequestContext context, const FileHandle& file,
                              const std::string& name, ByteSpan value, XattrThere there) override;
  Task<Result<std::vector<std::string>>> list_xattrs(RequestContext context,
                                                     const FileHandle& file) override;
  Task<Result<Wcc>> remove_xattr(RequestContext context, const FileHandle& file,
                                 const std::string& name) override;
  Task<Result<AccessResult>> open(RequestContext context, const FileHandle& file,
                                  std::uint32_t wanted, OpenFor how) override;
  bool open_already(RequestContext context, const FileHandle& file, std::uint32_t access) override;
  void narrow_open(RequestContext context, const FileHandle& file, std::uint32_t access) override;
  void set_delegation_holder(DelegationHolder* holder) override {
    mount_.set_delegation_holder(holder);
  }
  bool may_be_delegated() const override { return mount_.may_be_delegated(); }
  DelegationKind delegation(const FileHandle& file) override { return mount_.delegation(file); }
  std::uint64_t kept_back_limit(const FileHandle& file) const override {
    return mount_.kept_back_limit(file);
  }
  Task<void> give_back(const FileHandle& file) override { return mount_.give_back(file); }
  Task<void> give_way(const FileHandle& file) override { return mount_.give_way(file); }
  bool has_acls() const override { return mount_.has_acls(); }
  Task<Result<bool>> acls_in(RequestContext context, const FileHandle& file,
                             std::uint64_t fsid) override;
  Task<Result<std::string>> get_acl(RequestContext context, const FileHandle& file) override;
  Task<Result<Wcc>> set_acl(RequestContext context, const FileHandle& file, ByteSpan acl) override;
  bool has_posix_acls() const override { return mount_.has_posix_acls(); }
  Task<Result<FoundPosixAcls>> get_posix_acls(RequestContext context, const FileHandle& file,
                                              bool access, bool initial) override;
  Task<Result<Wcc>> set_posix_acl(RequestContext context, const FileHandle& file,
                                  const PosixAclChange& change) override;

  bool has_locks() const override { return mount_.has_locks(); }
  bool opens_by_name() const override { return mount_.opens_by_name(); }
  Task<Result<void>> lock(RequestContext context, const FileHandle& file, const FileLock& wanted,
                          LockWait wait, std::uint32_t open_for) override;
  Task<Result<void>> unlock(RequestContext context, const FileHandle& file,
                            const FileLock& what) override;
  Task<Result<std::optional<LockHolder>>> test_lock(RequestContext context, const FileHandle& file,
                                                    const FileLock& wanted) override;
  void close(const FileHandle& file) override { mount_.close(file); }
  bool holds(const FileHandle& file) const override { return mount_.holds(file); }
  std::unique_ptr<MovedState> hand_over(const WhichFiles& which) override {
    return mount_.hand_over(which);
  }
  void take_over(std::unique_ptr<MovedState> state) override { mount_.take_over(std::move(state)); }
  std::vector<LockOwnerId> lock_owners_in_the_way(const FileHandle& file,
                                                  const FileLock& wanted) const override {
    return mount_.lock_owners_in_the_way(file, wanted);
  }

 private:
  template <typename T>
  Result<T> seen(Result<T> result) const;

  MountShards& shards_;
  AsyncMount& mount_;
  int errno_of_timeout_;
};

}  // namespace nfsrdma
