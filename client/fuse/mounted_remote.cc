// SPDX-License-Identifier: Apache-2.0
// Thin: each function makes the OpContext, which lives in its frame, and passes the rest on.
#include "client/fuse/mounted_remote.h"

namespace nfsrdma {
namespace {

// What one directory page may take on the wire: a few hundred entries with attributes.
constexpr std::uint32_t kPageBytes = 128 << 10;

OpContext op_of(const RequestContext& context) {
  OpContext op;
  if (context.caller != nullptr) {
    op.identity.uid = context.caller->uid;
    op.identity.gid = context.caller->gid;
    op.identity.set_groups(context.caller->groups);
  }
  if (context.interrupt != nullptr) op.cancel = context.interrupt->token.get();
  op.place = context.place;
  return op;
}

}  // namespace

template <typename T>
Result<T> MountedRemote::seen(Result<T> result) const {
  if (!result.ok() && result.error().code == Errc::kTimedOut) {
    return Error{Errc::kTimedOut, errno_of_timeout_, result.error().where};
  }
  return result;
}

Task<Result<Attributes>> MountedRemote::getattr(RequestContext context, const FileHandle& file) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.getattr(op, file));
}

Task<Result<Wcc>> MountedRemote::setattr(RequestContext context, const FileHandle& file,
                                         const SetAttributes& set) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.setattr(op, file, set));
}

Task<Result<LookupResult>> MountedRemote::lookup(RequestContext context,
                                                 const FileHandle& directory,
                                                 const std::string& name,
                                                 MaybeAttributes* directory_attributes) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.lookup(op, directory, name, directory_attributes));
}

Task<Result<Referral>> MountedRemote::referral(RequestContext context, const FileHandle& directory,
                                               const std::string& name) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.referral(op, directory, name));
}

Task<Result<AccessResult>> MountedRemote::access(RequestContext context, const FileHandle& file,
                                                 std::uint32_t wanted) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.access(op, file, wanted));
}

Task<Result<std::string>> MountedRemote::readlink(RequestContext context, const FileHandle& link) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.readlink(op, link));
}

Task<Result<ReadResult>> MountedRemote::read(RequestContext context, const FileHandle& file,
                                             std::uint64_t offset, MutableByteSpan into) {
  OpContext op = op_of(context);
  if (DataShard* shard = shards_.choose(MountShards::Awaited::kYes, into.size())) {
    NFSRDMA_CO_TRY(const DataRight right, mount_.right_for(op, file, access_bits::kRead));
    op.right = &right;
    Result<ReadResult> done = co_await shard->read(op, file, offset, into, context.answer);
    const bool gone = !done.ok() && is_right_gone(done.error());
    if (!gone) {
      NFSRDMA_CO_CHECK_OK(mount_.right_for(op, file, access_bits::kRead));
      co_return seen(std::move(done));
    }
    op.right = nullptr;
  }
  const MountShards::OnMain counted(shards_, into.size());
  co_return seen(co_await mount_.read(op, file, offset, into));
}

Task<Result<WriteResult>> MountedRemote::write(RequestContext context, const FileHandle& file,
                                               std::uint64_t offset, ByteSpan data,
                                               Stability stability) {
  OpContext op = op_of(context);
  // What goes out UNSTABLE is write-behind's, or is followed by a COMMIT that waits for all of it.
  const auto awaited =
      stability == Stability::kUnstable ? MountShards::Awaited::kNo : MountShards::Awaited::kYes;
  if (DataShard* shard = shards_.choose(awaited, data.size())) {
    NFSRDMA_CO_TRY(const DataRight right, mount_.right_for(op, file, access_bits::kModify));
    op.right = &right;
    Result<WriteResult> done = co_await shard->write(op, file, offset, data, stability);
    const bool gone = !done.ok() && is_right_gone(done.error());
    if (!gone) {
      NFSRDMA_CO_CHECK_OK(mount_.right_for(op, file, access_bits::kModify));
      co_return seen(std::move(done));
    }
    op.right = nullptr;
  }
  const MountShards::OnMain counted(shards_, data.size());
  co_return seen(co_await mount_.write(op, file, offset, data, stability));
}

Task<Result<CommitResult>> MountedRemote::commit(RequestContext context, const FileHandle& file) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.commit(op, file, 0, 0));
}

Task<Result<CreateResult>> MountedRemote::create(RequestContext context,
                                                 const FileHandle& directory,
                                                 const std::string& name, CreateMode mode,
                                                 const SetAttributes& set) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.create(op, directory, name, mode, set));
}

Task<Result<CreateResult>> MountedRemote::create_open(RequestContext context,
                                                      const FileHandle& directory,
                                                      const std::string& name, CreateMode mode,
                                                      const SetAttributes& set,
                                                      std::uint32_t open_for) {
  const OpContext op = op_of(context);
  co_return seen(
      co_await mount_.create_open(op, directory, name, mode, set, OpenFor{.access = open_for}));
}

Task<Result<CreateResult>> MountedRemote::mkdir(RequestContext context, const FileHandle& directory,
                                                const std::string& name, const SetAttributes& set) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.mkdir(op, directory, name, set));
}

Task<Result<CreateResult>> MountedRemote::symlink(RequestContext context,
                                                  const FileHandle& directory,
                                                  const std::string& name,
                                                  const std::string& text) {
  const OpContext op = op_of(context);
  const SetAttributes set;
  co_return seen(co_await mount_.symlink(op, directory, name, text, set));
}

Task<Result<CreateResult>> MountedRemote::mknod(RequestContext context, const FileHandle& directory,
                                                const std::string& name, FileType type,
                                                std::uint32_t rdev_major, std::uint32_t rdev_minor,
                                                const SetAttributes& set) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.mknod(op, directory, name, type, rdev_major, rdev_minor, set));
}

Task<Result<RemoveResult>> MountedRemote::remove(RequestContext context,
                                                 const FileHandle& directory,
                                                 const std::string& name, const FileHandle* known) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.remove(op, directory, name, known));
}

Task<Result<RemoveResult>> MountedRemote::rmdir(RequestContext context, const FileHandle& directory,
                                                const std::string& name, const FileHandle* known) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.rmdir(op, directory, name, known));
}

Task<Result<RenameResult>> MountedRemote::rename(RequestContext context,
                                                 const FileHandle& from_directory,
                                                 const std::string& from,
                                                 const FileHandle& to_directory,
                                                 const std::string& to, const FileHandle* known) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.rename(op, from_directory, from, to_directory, to, known));
}

Task<Result<LinkResult>> MountedRemote::link(RequestContext context, const FileHandle& file,
                                             const FileHandle& directory, const std::string& name) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.link(op, file, directory, name));
}

Task<Result<DirectoryPage>> MountedRemote::readdir(RequestContext context,
                                                   const FileHandle& directory,
                                                   std::uint64_t cookie, std::uint64_t verifier,
                                                   bool plus, DirectoryVisitor& visitor) {
  const OpContext op = op_of(context);
  if (plus) {
    co_return seen(
        co_await mount_.readdirplus(op, directory, cookie, verifier, kPageBytes, visitor));
  }
  co_return seen(co_await mount_.readdir(op, directory, cookie, verifier, kPageBytes, visitor));
}

Task<Result<FsStat>> MountedRemote::fsstat(RequestContext context, const FileHandle& file) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.fsstat(op, file));
}

Task<Result<std::uint64_t>> MountedRemote::seek(RequestContext context, const FileHandle& file,
                                                std::uint64_t offset, SeekFor what) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.seek(op, file, offset, what));
}

Task<Result<Wcc>> MountedRemote::allocate(RequestContext context, const FileHandle& file,
                                          std::uint64_t offset, std::uint64_t length) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.allocate(op, file, offset, length));
}

Task<Result<Wcc>> MountedRemote::deallocate(RequestContext context, const FileHandle& file,
                                            std::uint64_t offset, std::uint64_t length) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.deallocate(op, file, offset, length));
}

Task<Result<CopyResult>> MountedRemote::copy(RequestContext context, const FileHandle& from,
                                             std::uint64_t from_offset, const FileHandle& to,
                                             std::uint64_t to_offset, std::uint64_t count) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.copy(op, from, from_offset, to, to_offset, count));
}

Task<Result<std::string>> MountedRemote::get_xattr(RequestContext context, const FileHandle& file,
                                                   const std::string& name) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.get_xattr(op, file, name));
}

Task<Result<Wcc>> MountedRemote::set_xattr(RequestContext context, const FileHandle& file,
                                           const std::string& name, ByteSpan value,
                                           XattrThere there) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.set_xattr(op, file, name, value, there));
}

Task<Result<std::vector<std::string>>> MountedRemote::list_xattrs(RequestContext context,
                                                                  const FileHandle& file) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.list_xattrs(op, file));
}

Task<Result<Wcc>> MountedRemote::remove_xattr(RequestContext context, const FileHandle& file,
                                              const std::string& name) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.remove_xattr(op, file, name));
}

Task<Result<AccessResult>> MountedRemote::open(RequestContext context, const FileHandle& file,
                                               std::uint32_t wanted, OpenFor how) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.open(op, file, wanted, how));
}

bool MountedRemote::open_already(RequestContext context, const FileHandle& file,
                                 std::uint32_t access) {
  const OpContext op = op_of(context);
  return mount_.open_already(op, file, access);
}

void MountedRemote::narrow_open(RequestContext context, const FileHandle& file,
                                std::uint32_t access) {
  mount_.narrow_open(op_of(context), file, access);
}

Task<Result<bool>> MountedRemote::acls_in(RequestContext context, const FileHandle& file,
                                          std::uint64_t fsid) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.acls_in(op, file, fsid));
}

Task<Result<std::string>> MountedRemote::get_acl(RequestContext context, const FileHandle& file) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.get_acl(op, file));
}

Task<Result<Wcc>> MountedRemote::set_acl(RequestContext context, const FileHandle& file,
                                         ByteSpan acl) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.set_acl(op, file, acl));
}

Task<Result<FoundPosixAcls>> MountedRemote::get_posix_acls(RequestContext context,
                                                           const FileHandle& file, bool access,
                                                           bool initial) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.get_posix_acls(op, file, access, initial));
}

Task<Result<Wcc>> MountedRemote::set_posix_acl(RequestContext context, const FileHandle& file,
                                               const PosixAclChange& change) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.set_posix_acl(op, file, change));
}

Task<Result<void>> MountedRemote::lock(RequestContext context, const FileHandle& file,
                                       const FileLock& wanted, LockWait wait,
                                       std::uint32_t open_for) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.lock(op, file, wanted, wait, open_for));
}

Task<Result<void>> MountedRemote::unlock(RequestContext context, const FileHandle& file,
                                         const FileLock& what) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.unlock(op, file, what));
}

Task<Result<std::optional<LockHolder>>> MountedRemote::test_lock(RequestContext context,
                                                                 const FileHandle& file,
                                                                 const FileLock& wanted) {
  const OpContext op = op_of(context);
  co_return seen(co_await mount_.test_lock(op, file, wanted));
}

}  // namespace nfsrdma
