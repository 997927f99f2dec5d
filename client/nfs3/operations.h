// SPDX-License-Identifier: Apache-2.0
// NfsOperations by NFSv3 (RFC 1813): a call each, JUKEBOX waited for, and doubtful answers
// settled by looking at the object (client/doubtful.h). Locks go by NLM (file_locks.h), POSIX ACLs
// by NFSACL, a program of its own on the same connection.
#pragma once

#include <memory>

#include "client/nfs3/file_locks.h"
#include "client/nfs_operations.h"

namespace nfsrdma {

class RpcClient;

class Nfs3Operations final : public NfsOperations {
 public:
  /// `rpc` outlives this. `locks` null: without. `posix_acls`: the server is asked for them.
  explicit Nfs3Operations(RpcClient& rpc, std::unique_ptr<nfs3::FileLocks> locks = nullptr,
                          bool posix_acls = false)
      : rpc_(&rpc), locks_(std::move(locks)), posix_acls_(posix_acls) {}

  Task<Result<void>> begin(const OpContext& op, std::string* detail) override;
  Task<void> end(const OpContext& op) override;
  Task<Result<FileHandle>> server_root(const OpContext& op) override;
  void abort() override {
    if (locks_ != nullptr) locks_->stop();
  }
  void stop_waiting() override {
    if (locks_ != nullptr) locks_->stop_waiting();
  }
  NfsVersion number() const override { return {}; }

  Task<Result<void>> null(const OpContext& op) override;
  Task<Result<Attributes>> getattr(const OpContext& op, const FileHandle& file) override;
  Task<Result<Wcc>> setattr(const OpContext& op, const FileHandle& file, const SetAttributes& set,
                            const timespec* guard_ctime) override;
  Task<Result<LookupResult>> lookup(const OpContext& op, const FileHandle& directory,
                                    std::string_view name,
                                    std::optional<Attributes>* directory_attributes) override;
  Task<Result<AccessResult>> access(const OpContext& op, const FileHandle& file,
                                    std::uint32_t wanted) override;
  Task<Result<std::string>> readlink(const OpContext& op, const FileHandle& link) override;

  Task<Result<ReadResult>> read_once(const OpContext& op, const FileHandle& file,
                                     std::uint64_t offset, MutableByteSpan into) override;
  Task<Result<WriteResult>> write_once(const OpContext& op, const FileHandle& file,
                                       std::uint64_t offset, ByteSpan data,
                                       Stability stability) override;
  Task<Result<CommitResult>> commit(const OpContext& op, const FileHandle& file,
                                    std::uint64_t offset, std::uint32_t count) override;

  Task<Result<CreateResult>> create(const OpContext& op, const FileHandle& directory,
                                    std::string_view name, CreateMode mode,
                                    const SetAttributes& set) override;
  Task<Result<CreateResult>> mkdir(const OpContext& op, const FileHandle& directory,
                                   std::string_view name, const SetAttributes& set) override;
  Task<Result<CreateResult>> symlink(const OpContext& op, const FileHandle& directory,
                                     std::string_view name, std::string_view target,
                                     const SetAttributes& set) override;
  Task<Result<CreateResult>> mknod(const OpContext& op, const FileHandle& directory,
                                   std::string_view name, FileType type, std::uint32_t rdev_major,
                                   std::uint32_t rdev_minor, const SetAttributes& set) override;
  Task<Result<LinkResult>> link(const OpContext& op, const FileHandle& file,
                                const FileHandle& directory, std::string_view name) override;
  Task<Result<RemoveResult>> remove(const OpContext& op, const FileHandle& directory,
                                    std::string_view name, const FileHandle* known) override;
  Task<Result<RemoveResult>> rmdir(const OpContext& op, const FileHandle& directory,
                                   std::string_view name, const FileHandle* known) override;
  Task<Result<RenameResult>> rename(const OpContext& op, const FileHandle& from_directory,
                                    std::string_view from_name, const FileHandle& to_directory,
                                    std::string_view to_name, const FileHandle* known) override;

  Task<Result<DirectoryPage>> readdir(const OpContext& op, const FileHandle& directory,
                                      std::uint64_t cookie, std::uint64_t verifier,
                                      std::uint32_t max_bytes, DirectoryVisitor& visitor) override;
  Task<Result<DirectoryPage>> readdirplus(const OpContext& op, const FileHandle& directory,
                                          std::uint64_t cookie, std::uint64_t verifier,
                                          std::uint32_t max_bytes,
                                          DirectoryVisitor& visitor) override;
  Task<Result<FsStat>> fsstat(const OpContext& op, const FileHandle& file) override;
  Task<Result<FsInfo>> fsinfo(const OpContext& op, const FileHandle& file) override;
  Task<Result<PathConf>> pathconf(const OpContext& op, const FileHandle& file) override;

  bool has_posix_acls() const override { return posix_acls_; }
  Task<Result<FoundPosixAcls>> get_posix_acls(const OpContext& op, const FileHandle& file,
                                              bool access, bool initial) override;
  Task<Result<Wcc>> set_posix_acl(const OpContext& op, const FileHandle& file,
                                  const PosixAclChange& change) override;

  bool has_locks() const override { return locks_ != nullptr; }
  Task<Result<void>> lock(const OpContext& op, const FileHandle& file, const FileLock& wanted,
                          LockWait wait, std::uint32_t open_for) override;
  Task<Result<void>> unlock(const OpContext& op, const FileHandle& file,
                            const FileLock& what) override;
  Task<Result<std::optional<LockHolder>>> test_lock(const OpContext& op, const FileHandle& file,
                                                    const FileLock& wanted) override;
  void close(const FileHandle& file) override;
  bool holds(const FileHandle& file) const override {
    return locks_ != nullptr && locks_->holds(file);
  }
  std::vector<LockOwnerId> lock_owners_in_the_way(const FileHandle& file,
                                                  const FileLock& wanted) const override {
    if (locks_ == nullptr) return {};
    return locks_->owners_in_the_way(file, wanted);
  }
  Result<DataRight> right_for(const OpContext& op, const FileHandle& file,
                              std::uint32_t access) const override;
  std::size_t locks_held() const override { return locks_ == nullptr ? 0 : locks_->locks_held(); }
  std::string lock_manager() const override {
    return locks_ == nullptr ? std::string() : locks_->manager();
  }

 private:
  /// EIO: a lock on this file is lost.
  Result<void> usable(const FileHandle& file) const {
    if (locks_ == nullptr || !locks_->some_are_lost()) [[likely]]
      return {};
    return locks_->usable(file);
  }

  /// EOPNOTSUPP in place of a call's error that says that the server lacks NFSACL, and no more of
  /// these calls from then on.
  Error without_acls(const Error& error);
  Task<Result<FoundPosixAcls>> getacl(const OpContext& op, const FileHandle& file,
                                      std::uint32_t mask);

  RpcClient* rpc_;
  std::unique_ptr<nfs3::FileLocks> locks_;
  bool posix_acls_;
  bool readdirplus_ = true;  // the server has it
};

}  // namespace nfsrdma
