// SPDX-License-Identifier: Apache-2.0
#include "server/nfs3/call_context.h"

#include <climits>
#include <cstring>

#include "server/group_source.h"

namespace nfsrdma::nfs3 {

namespace {

using enum xdr::nfsstat3;

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
    CallerIdentity identity;
  };
  thread_local std::array<Memory, 4> memories;
  thread_local unsigned next = 0;
  if (groups == nullptr) {
    for (Memory& memory : memories) {
      if (memory.used && same_credentials(memory.credentials, credentials) &&
          same_rule(memory.rule, rule)) {
        return memory.identity;
      }
    }
  }
  Memory& memory = memories[next++ % memories.size()];
  memory.used = groups == nullptr;
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

xdr::nfsstat3 CallContext::resolve(const xdr::nfs_fh3& handle, Use use, Resolved* object) {
  HandleParts parts;
  if (!server_.handles.open(handle.data, &parts)) return NFS3ERR_BADHANDLE;
  export_ = server_.exports.current().find(parts.export_id);
  if (export_ == nullptr) return NFS3ERR_STALE;
  GroupSource* groups = server_.groups.get();
  if (server_.exports.access(*export_, request_.call->connection(), request_.may_block, &access_) ==
          ExportTable::Verdict::kWouldBlock ||
      (groups != nullptr && !request_.may_block && !groups->knows(request_.credentials.uid))) {
    would_block_ = true;
    return NFS3ERR_JUKEBOX;
  }
  if (!access_.allowed) return NFS3ERR_ACCES;
  if (use == Use::kChange && access_.read_only) return NFS3ERR_ROFS;
  caller_ = &identity_of(request_.credentials, access_.squash, groups);
  AsCaller acting(*caller_);
  if (!acting.ok()) return NFS3ERR_SERVERFAULT;
  FileHandle bytes;
  bytes.size = static_cast<std::uint8_t>(handle.data.size());
  std::memcpy(bytes.data.data(), handle.data.data(), handle.data.size());
  return status_of_errno(server_.resolver.open(*export_, bytes, parts, object));
}

void CallContext::wait_for(Resolved& object) {
  if (durable_count_ == Request::kMaxDurable) return;
  const int fd = server_.files.sync_fd(*object.file);
  if (fd < 0) return;
  request_.durable_fd[durable_count_] = fd;
  request_.pinned[durable_count_] = object.file.release();
  request_.release = release_pins;
  ++durable_count_;
}

Outcome CallContext::outcome(std::size_t status_mark, std::size_t failure_words) {
  if (durable_count_ == 0) return Outcome::kReply;
  request_.status_mark = status_mark;
  request_.failure_words = failure_words;
  return Outcome::kReplyDurable;
}

int check_new_name(std::string_view name, int dots) {
  if (name.empty()) return EACCES;
  if (name == "." || name == "..") return dots;
  if (name.size() > NAME_MAX) return ENAMETOOLONG;
  if (name.find('/') != name.npos || name.find('\0') != name.npos) return EINVAL;
  return 0;
}

EntryName::EntryName(std::string_view name) {
  static_assert(sizeof text_ == NAME_MAX + 1);
  const std::size_t size = std::min<std::size_t>(name.size(), NAME_MAX);
  std::memcpy(text_, name.data(), size);
  text_[size] = '\0';
}

}  // namespace nfsrdma::nfs3
