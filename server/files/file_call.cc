// SPDX-License-Identifier: Apache-2.0
#include "server/files/file_call.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "server/group_source.h"

namespace nfsrdma {

namespace {

bool same_credentials(const RpcCredentials& a, const RpcCredentials& b) {
  return a.flavor == b.flavor && a.uid == b.uid && a.gid == b.gid &&
         a.group_count == b.group_count &&
         std::memcmp(a.groups.data(), b.groups.data(), a.group_count * sizeof a.groups[0]) == 0;
}
bool same_rule(const SquashRule& a, const SquashRule& b) {
  return a.root_squash == b.root_squash && a.all_squash == b.all_squash &&
         a.anon_uid == b.anon_uid && a.anon_gid == b.anon_gid;
}

/// The mapped identity; valid on this thread until the next call. A thread mostly sees the same few
/// callers again.
const CallerIdentity& identity_of(const RpcCredentials& credentials, const SquashRule& rule,
                                  GroupSource* groups) {
  struct Memory {
    bool used = false;
    RpcCredentials credentials;
    SquashRule rule;
    std::uint64_t groups = 0;  // which answer of the source; 0: it was not asked
    CallerIdentity identity;
  };
  thread_local std::array<Memory, 4> memories;
  thread_local unsigned next = 0;
  const std::uint64_t answer = groups == nullptr ? 0 : groups->answer_at_hand(credentials.uid);
  for (Memory& memory : memories) {
    if (memory.used && memory.groups == answer &&
        same_credentials(memory.credentials, credentials) && same_rule(memory.rule, rule)) {
      return memory.identity;
    }
  }
  Memory& memory = memories[next++ % memories.size()];
  // What has to be asked for yet is remembered the next time.
  memory.used = groups == nullptr || answer != 0;
  memory.groups = answer;
  memory.credentials = credentials;
  memory.rule = rule;
  map_identity(credentials, rule, groups, &memory.identity);
  return memory.identity;
}

void release_pins(Request& request) {
  for (void*& pinned : request.pinned) {
    FilePin dropped(static_cast<FileEntry*>(pinned));
    pinned = nullptr;
  }
  request.release = nullptr;
}

}  // namespace

int FileCall::admit(const HandleParts& parts, Use use) {
  export_ = server_.exports.current().find(parts.export_id);
  if (export_ == nullptr) return ESTALE;
  GroupSource* groups = server_.groups.get();
  if (server_.exports.access(*export_, request_.call->connection(), request_.may_block, &access_) ==
          ExportTable::Verdict::kWouldBlock ||
      (groups != nullptr && !request_.may_block &&
       groups->answer_at_hand(request_.credentials.uid) == 0)) {
    would_block_ = true;
    return EAGAIN;
  }
  if (!access_.allowed) return EACCES;
  // A handle of what is mounted below the export, which is part of it for other clients alone.
  if (parts.mount_key != 0 && !access_.crossmnt) return ESTALE;
  const bool none = request_.credentials.flavor == RpcCredentials::Flavor::kNone;
  wrong_flavor_ = none ? !access_.serves_none : !access_.serves_sys;
  if (wrong_flavor_ && use != Use::kPass) return kWrongFlavor;
  if (none) access_.read_only = access_.none_read_only;
  if (use == Use::kChange && access_.read_only) return EROFS;
  static const RpcCredentials kNobody;
  const RpcCredentials& who = wrong_flavor_ ? kNobody : request_.credentials;
  caller_ = &identity_of(who, access_.squash, groups);
  AsCaller acting(*caller_);
  return acting.ok() ? 0 : kNoIdentity;
}

int FileCall::resolve(ByteSpan handle, Use use, Resolved* object) {
  HandleParts parts;
  if (!server_.handles.open(handle, &parts)) return kBadHandle;
  if (const int error = admit(parts, use)) return error;
  FileHandle bytes;
  bytes.size = static_cast<std::uint8_t>(handle.size());
  std::memcpy(bytes.data.data(), handle.data(), handle.size());
  return server_.resolver.open(*export_, bytes, parts, object);
}

int FileCall::may_change(dev_t device, ino_t inode) {
  DelegationGuard* guard = server_.delegations;
  return guard != nullptr && guard->stops(device, inode, request_.nfs4_client) ? EAGAIN : 0;
}

int FileCall::may_change(const Resolved& directory, const char* name) {
  DelegationGuard* guard = server_.delegations;
  struct stat st;
  if (guard == nullptr || !guard->any() ||
      ::fstatat(directory.file->path_fd(), name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return 0;
  }
  return S_ISREG(st.st_mode) ? may_change(st.st_dev, st.st_ino) : 0;
}

int FileCall::may_use(const FileEntry& file) {
  const std::uint64_t holder = file.promised_to.load(std::memory_order_acquire);
  if (holder == 0 || holder == request_.nfs4_client) return 0;
  DelegationGuard* guard = server_.delegations;
  const bool stops =
      guard != nullptr && guard->stops_reading(file.device(), file.inode(), request_.nfs4_client);
  return stops ? EAGAIN : 0;
}

int FileCall::may_see(const FileEntry& file) {
  DelegationGuard* guard = server_.delegations;
  if (guard == nullptr || !guard->any_writer() || !file.is_regular()) return 0;
  return guard->stops_reading(file.device(), file.inode(), request_.nfs4_client) ? EAGAIN : 0;
}

int FileCall::sync_fd(FileEntry& file, int* fd) {
  *fd = server_.files.sync_fd(file);
  if (*fd >= 0) return 0;
  // Looked for anew: exported() may be of a table that this thread has let go of since.
  const Export* entry = server_.exports.current().find(file.parts().export_id);
  const std::shared_ptr<MountPoint> mount =
      entry == nullptr ? nullptr : entry->mount(file.parts().mount_key);
  if (!mount) return ESTALE;
  export_ = entry;
  *fd = server_.files.file_system_fd(file, mount->handle_base.get());
  if (*fd < 0) return errno;
  *fd |= CommitJob::kWholeFileSystem;
  return 0;
}

bool FileCall::wait_for(Resolved& object) {
  request_.durable_own = true;
  return wait_for_written(object);
}

bool FileCall::wait_for_written(Resolved& object) {
  const FileEntry& file = *object.file;
  if (object.covered_by_directory && !file.is_regular() && !file.is_directory()) return true;
  int fd = -1;
  // What cannot be made durable must not be acknowledged as if it were.
  if (sync_fd(*object.file, &fd) != 0) fd = Request::kNotToBeSynced;
  for (std::size_t i = 0; i < Request::kMaxDurable; ++i) {
    if (request_.durable_fd[i] == fd) return true;
    if (request_.durable_fd[i] != -1) continue;
    request_.durable_fd[i] = fd;
    request_.pinned[i] = object.file.release();
    request_.release = release_pins;
    return true;
  }
  return false;
}

}  // namespace nfsrdma
