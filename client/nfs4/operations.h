// SPDX-License-Identifier: Apache-2.0
// NfsOperations by NFSv4.0, 4.1 and 4.2 (RFC 7530, 8881, 7862): a COMPOUND each, in a session
// (call.h).
//
// A file is open on the server from open(), or the create() that asks for it, to close(), and while
// it has locks (file_locks.h). Data is read and written with the stateid of a lock, a delegation
// (delegations.h), an open, or with the anonymous one. What is created by others is closed in the
// COMPOUND that makes it. In 4.0 only files with locks stay open, and what is created, or opened
// for a delegation, is closed in the next COMPOUND (new_files.h, delegation_opens.h).
#pragma once

#include <map>
#include <memory>

#include "client/nfs4/creation_times.h"
#include "client/nfs4/delegation_opens.h"
#include "client/nfs4/delegations.h"
#include "client/nfs4/exclusive_attributes.h"
#include "client/nfs4/file_locks.h"
#include "client/nfs4/id_names.h"
#include "client/nfs4/new_files.h"
#include "client/nfs4/session.h"
#include "client/nfs_operations.h"

namespace nfsrdma {

class Nfs4Operations final : public NfsOperations {
 public:
  /// `rpc` outlives this.
  Nfs4Operations(RpcClient& rpc, nfs4::SessionOptions options)
      : rpc_(rpc),
        session_(rpc, std::move(options)),
        delegations_(session_),
        names_(rpc.environment()),
        locks_(session_),
        new_files_(session_, names_, locks_, owners_),
        delegation_opens_(session_, owners_) {
    session_.set_names(&names_);
  }

  Task<Result<void>> begin(const OpContext& op, std::string* detail) override;
  Task<void> end(const OpContext& op) override;
  void stop_waiting() override { locks_.stop_waiting(); }
  void abort() override {
    locks_.stop();
    delegations_.stop();
    new_files_.stop();
    delegation_opens_.stop();
    names_.stop();
    session_.stop();
  }
  NfsVersion number() const override { return {4, session_.minor()}; }
  Task<Result<FileHandle>> server_root(const OpContext& op) override;

  Task<Result<void>> null(const OpContext& op) override;
  Task<Result<Attributes>> getattr(const OpContext& op, const FileHandle& file) override;
  Task<Result<Wcc>> setattr(const OpContext& op, const FileHandle& file, const SetAttributes& set,
                            const timespec* guard_ctime) override;
  Task<Result<LookupResult>> lookup(const OpContext& op, const FileHandle& directory,
                                    std::string_view name,
                                    std::optional<Attributes>* directory_attributes) override;
  Task<Result<Referral>> referral(const OpContext& op, const FileHandle& directory,
                                  std::string_view name) override;
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
                                    const SetAttributes& set) override {
    return create_new(op, directory, name, mode, set, {});
  }
  Task<Result<CreateResult>> create_open(const OpContext& op, const FileHandle& directory,
                                         std::string_view name, CreateMode mode,
                                         const SetAttributes& set, OpenFor how) override;
  std::uint32_t most_with_create() const override;
  Task<Result<CreateResult>> create_with_data(const OpContext& op, const FileHandle& directory,
                                              std::string_view name, CreateMode mode,
                                              const SetAttributes& set, ByteSpan data,
                                              std::size_t* written) override;
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

  Task<Result<std::uint64_t>> seek(const OpContext& op, const FileHandle& file,
                                   std::uint64_t offset, SeekFor what) override;
  Task<Result<Wcc>> allocate(const OpContext& op, const FileHandle& file, std::uint64_t offset,
                             std::uint64_t length) override;
  Task<Result<Wcc>> deallocate(const OpContext& op, const FileHandle& file, std::uint64_t offset,
                               std::uint64_t length) override;
  Task<Result<CopyResult>> copy(const OpContext& op, const FileHandle& from,
                                std::uint64_t from_offset, const FileHandle& to,
                                std::uint64_t to_offset, std::uint64_t count) override;
  bool has_xattrs() const override { return session_.minor() >= 2; }
  Task<Result<std::string>> get_xattr(const OpContext& op, const FileHandle& file,
                                      std::string_view name) override;
  Task<Result<Wcc>> set_xattr(const OpContext& op, const FileHandle& file, std::string_view name,
                              ByteSpan value, XattrThere there) override;
  Task<Result<std::vector<std::string>>> list_xattrs(const OpContext& op,
                                                     const FileHandle& file) override;
  Task<Result<Wcc>> remove_xattr(const OpContext& op, const FileHandle& file,
                                 std::string_view name) override;
  void set_delegation_holder(DelegationHolder* holder) override { delegations_.set_holder(holder); }
  Task<Result<AccessResult>> open(const OpContext& op, const FileHandle& file, std::uint32_t wanted,
                                  OpenFor how) override;
  bool open_already(const OpContext& op, const FileHandle& file, std::uint32_t access) override;
  void narrow_open(const OpContext& op, const FileHandle& file, std::uint32_t access) override;
  bool can_deny() const override { return true; }
  Task<void> end_denial(const OpContext& op, const FileHandle& file, LockOwnerId owner) override {
    return locks_.end_denial(op, file, owner);
  }
  void drop_denial(const OpContext&, const FileHandle& file, LockOwnerId owner) override {
    locks_.drop_denial(file, owner);
  }
  bool may_be_delegated() const override;
  DelegationKind delegation(const FileHandle& file) override { return delegations_.held(file); }
  std::uint64_t kept_back_limit(const FileHandle& file) const override {
    return delegations_.kept_back_limit(file);
  }
  Task<void> give_back(const FileHandle& file) override;
  Task<void> give_way(const FileHandle& file) override;
  std::size_t delegations_held() const override { return delegations_.size(); }
  bool has_acls() const override { return true; }
  Task<Result<bool>> acls_in(const OpContext& op, const FileHandle& file,
                             std::uint64_t fsid) override;
  Task<Result<std::string>> get_acl(const OpContext& op, const FileHandle& file) override;
  Task<Result<Wcc>> set_acl(const OpContext& op, const FileHandle& file, ByteSpan acl) override;
  bool has_locks() const override { return true; }
  bool opens_by_name() const override { return session_.minor() == 0; }
  Task<Result<void>> lock(const OpContext& op, const FileHandle& file, const FileLock& wanted,
                          LockWait wait, std::uint32_t open_for) override {
    return locks_.lock(op, file, wanted, wait, open_for);
  }
  Task<Result<void>> unlock(const OpContext& op, const FileHandle& file,
                            const FileLock& what) override {
    return locks_.unlock(op, file, what);
  }
  Task<Result<std::optional<LockHolder>>> test_lock(const OpContext& op, const FileHandle& file,
                                                    const FileLock& wanted) override {
    return locks_.test(op, file, wanted);
  }
  std::vector<LockOwnerId> lock_owners_in_the_way(const FileHandle& file,
                                                  const FileLock& wanted) const override {
    return locks_.owners_in_the_way(file, wanted);
  }
  void close(const FileHandle& file) override { locks_.close(file); }
  std::unique_ptr<MovedState> hand_over(const WhichFiles& which) override;
  void take_over(std::unique_ptr<MovedState> state) override { locks_.take_over(std::move(state)); }
  bool holds(const FileHandle& file) const override { return locks_.holds(file); }
  Result<DataRight> right_for(const OpContext& op, const FileHandle& file,
                              std::uint32_t access) const override;
  nfs4::SessionSource* session_source() override { return &session_; }
  Task<Result<bool>> leads_here(const OpContext& op, RpcConnection& way) override {
    return session_.leads_here(op, way);
  }
  std::size_t locks_held() const override { return locks_.locks_held(); }
  std::size_t files_open() const override { return locks_.files_open(); }
  std::uint32_t session_slots() const override {
    return session_.minor() == 0 ? 0 : session_.slots().usable();
  }
  bool has_back_channel() const override { return session_.has_back_channel(); }
  std::uint64_t callbacks_done() const override { return session_.callbacks_done(); }
  std::string called_at() const override { return session_.called_at(); }
  /// Bytes that one COPY asks for: it is answered in a second or so by a server with slow disks.
  static constexpr std::uint64_t kMostOfACopy = 64u << 20;
  /// What is larger gains nothing from one round trip less, and is copied on its way.
  static constexpr std::uint32_t kMostWithCreate = 64u << 10;

  nfs4::Session& session() { return session_; }
  nfs4::FileLocks& locks() { return locks_; }
  nfs4::Delegations& delegations() { return delegations_; }

 private:
  using DelegationEnding = Task<void> (nfs4::Delegations::*)(const FileHandle&);
  /// Behind OPENs of what the delegation has made unnecessary, so that nobody comes in between.
  Task<void> end_behind_claim(FileHandle file, DelegationEnding how);
  /// CREATE, of anything but regular files. An error, too, sets *resent.
  Task<Result<CreateResult>> make(const OpContext& op, const FileHandle& directory,
                                  std::string_view name, const xdr::createtype4& type,
                                  const SetAttributes& set, bool* resent);
  using FirstUse = nfs4::NewFiles::FirstUse;
  Task<Result<CreateResult>> create_new(const OpContext& op, const FileHandle& directory,
                                        std::string_view name, CreateMode mode,
                                        const SetAttributes& set, FirstUse use);
  /// OPEN with creation, and CLOSE unless `use` says that it stays open.
  Task<Result<CreateResult>> open_new(const OpContext& op, const FileHandle& directory,
                                      std::string_view name, const xdr::createhow4& how,
                                      FirstUse use, bool* resent);
  Task<Result<CreateResult>> create_exclusive(const OpContext& op, const FileHandle& directory,
                                              std::string_view name, const SetAttributes& set,
                                              FirstUse use);
  /// The access time of one that is made with a verifier, if there is to be a certain one.
  std::optional<timespec> time_of_new_file(const SetAttributes& wanted, const SetAttributes& later);
  /// OPEN said EEXIST, with `error`, after its first answer was lost: what is there, if it has the
  /// access time that it was to be given, and is open for `use` then.
  Task<Result<CreateResult>> made_at(const OpContext& op, const FileHandle& directory,
                                     std::string_view name, timespec time, FirstUse use,
                                     Error error);
  /// The OPEN that made `file` is lost with its session.
  Task<Result<void>> open_once_more(const OpContext& op, FileHandle file, FirstUse use);
  /// The same, if it is what that made with `data`.
  Task<Result<CreateResult>> made_before(const OpContext& op, const FileHandle& directory,
                                         std::string_view name, const SetAttributes& set,
                                         ByteSpan data, Error error);
  /// All of it in one call that copies nothing (RFC 7862 15.13), on the disk when it is answered.
  Task<Result<CopyResult>> clone(const OpContext& op, const FileHandle& from,
                                 std::uint64_t from_offset, const FileHandle& to,
                                 std::uint64_t to_offset, std::uint64_t count);
  bool may_clone(std::uint64_t from_offset, std::uint64_t to_offset, std::uint64_t count);
  /// One COPY. *verifier is set when what it copied wants a COMMIT.
  Task<Result<CopyResult>> copy_once(const OpContext& op, const FileHandle& from,
                                     std::uint64_t from_offset, const FileHandle& to,
                                     std::uint64_t to_offset, std::uint64_t count,
                                     std::optional<std::uint64_t>* verifier);
  Task<Result<RemoveResult>> take_away(const OpContext& op, const FileHandle& directory,
                                       std::string_view name, bool is_directory,
                                       const FileHandle* known);
  class Opening;
  /// For a READ or WRITE, `access` being an OPEN4_SHARE_ACCESS_ bit.
  xdr::stateid4 stateid_of(const OpContext& op, const FileHandle& file, std::uint32_t access) const;
  xdr::stateid4 stateid_now(const FileHandle& file, std::uint32_t access,
                            const AuthSys& identity) const;
  /// A READ or WRITE with `used` ended with `status`. True: once more, with another stateid.
  bool once_more(const FileHandle& file, const xdr::stateid4& used, xdr::nfsstat4 status);
  Task<Result<DirectoryPage>> page(const OpContext& op, const FileHandle& directory,
                                   std::uint64_t cookie, std::uint64_t verifier,
                                   std::uint32_t max_bytes, bool plus, DirectoryVisitor& visitor);

  RpcClient& rpc_;
  nfs4::Session session_;
  nfs4::Delegations delegations_;
  nfs4::IdNames names_;
  nfs4::FileLocks locks_;  // goes in front of what its OPENs bring
  nfs4::OpenOwners owners_;
  nfs4::NewFiles new_files_;
  nfs4::DelegationOpens delegation_opens_;
  TimePoint no_clones_until_{};  // a file system here has none
  /// What the mount's file system takes with a verifier; fsinfo() asks.
  xdr::bitmap4 exclusive_attributes_ = nfs4::ExclusiveAttributes::kUsual;
  nfs4::CreationTimes creation_times_{std::random_device{}()};
  std::map<std::uint64_t, bool> acl_file_systems_;  // by fsid, what acls_in() has found
};

}  // namespace nfsrdma
