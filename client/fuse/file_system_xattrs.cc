// SPDX-License-Identifier: Apache-2.0
// Extended attributes (NFSv4.2) and ACLs (NFSv4; POSIX ACLs beside NFSv3), which the server alone
// knows of.
#include "client/fuse/file_system.h"

namespace nfsrdma {
namespace {

mode_t modes_of(const std::optional<PosixAcl>& initial) {
  return initial ? initial->mode() : Node::kByUmask;
}

}  // namespace

Task<int> FileSystem::get_xattr(RequestContext context, NodeRef node, std::string name,
                                std::string* value) {
  auto answer = co_await remote.get_xattr(context, node->handle, name);
  if (!answer.ok()) co_return failed(*node, answer.error());
  *value = std::move(*answer);
  co_return 0;
}

Task<int> FileSystem::set_xattr(RequestContext context, NodeRef node, std::string name,
                                std::string value, XattrThere there) {
  Task<Result<Wcc>> change = remote.set_xattr(context, node->handle, name, as_bytes(value), there);
  co_return co_await make_change(context, node, std::move(change));
}

Task<int> FileSystem::list_xattrs(RequestContext context, NodeRef node,
                                  std::vector<std::string>* names) {
  auto answer = co_await remote.list_xattrs(context, node->handle);
  if (!answer.ok()) co_return failed(*node, answer.error());
  *names = std::move(*answer);
  co_return 0;
}

Task<int> FileSystem::remove_xattr(RequestContext context, NodeRef node, std::string name) {
  Task<Result<Wcc>> change = remote.remove_xattr(context, node->handle, name);
  co_return co_await make_change(context, node, std::move(change));
}

Task<int> FileSystem::acls_there(RequestContext context, NodeRef node, bool* there) {
  auto answer = co_await remote.acls_in(context, node->handle, node->attributes.fsid);
  if (!answer.ok()) co_return failed(*node, answer.error());
  *there = *answer;
  co_return 0;
}

Task<int> FileSystem::get_acl(RequestContext context, NodeRef node, std::string* acl) {
  auto answer = co_await remote.get_acl(context, node->handle);
  if (!answer.ok()) co_return failed(*node, answer.error());
  *acl = std::move(*answer);
  co_return 0;
}

Task<int> FileSystem::set_acl(RequestContext context, NodeRef node, std::string acl) {
  Task<Result<Wcc>> change = remote.set_acl(context, node->handle, as_bytes(acl));
  co_return co_await change_acl(context, node, std::move(change));
}

Task<int> FileSystem::change_acl(RequestContext context, NodeRef node, Task<Result<Wcc>> change) {
  if (node->writer != nullptr && !node->writer->idle()) {
    // As before a chmod: what is on its way was written by somebody who might.
    if (int error = co_await node->writer->flush(context, node, false)) co_return error;
  }
  const int error = co_await make_change(context, node, std::move(change));
  // Also when it failed: who knows whether it did. Of the attributes the kernel takes the ctime for
  // changed, not the mode; and it does not ask again for names in a directory that somebody may
  // search no more.
  node->access.clear();
  node->new_modes.reset();
  kernel_.drop_attributes(node->id);
  if (node->is_directory() && !options.one_user) expire_names(*node);
  co_return error;
}

Task<int> FileSystem::get_posix_acls(RequestContext context, NodeRef node, bool access,
                                     bool initial, FoundPosixAcls* found) {
  const std::uint64_t started = begin_request();
  auto answer = co_await remote.get_posix_acls(context, node->handle, access, initial);
  if (!answer.ok()) co_return failed(*node, answer.error());
  // What was overtaken may be of before a change of ours.
  const bool newest = node->applied_at < started;
  apply(*node, answer->attributes, started);
  if (initial && newest) node->new_modes = modes_of(answer->initial);
  *found = std::move(*answer);
  co_return 0;
}

Task<int> FileSystem::set_posix_acl(RequestContext context, NodeRef node, bool initial,
                                    std::optional<PosixAcl> acl) {
  PosixAclChange what;
  what.initial = initial;
  what.acl = std::move(acl);
  what.of_directory = node->is_directory();
  what.uid = node->attributes.uid;
  what.gid = node->attributes.gid;
  Task<Result<Wcc>> change = remote.set_posix_acl(context, node->handle, what);
  co_return co_await change_acl(context, node, std::move(change));
}

Task<int> FileSystem::mask_mode(RequestContext context, NodeRef directory, mode_t umask,
                                mode_t* mode) {
  mode_t allowed = Node::kByUmask;
  if (remote.has_posix_acls()) {
    if (directory->new_modes && directory->timer.fresh(loop.now())) {
      allowed = *directory->new_modes;
    } else {
      FoundPosixAcls found;
      const int error = co_await get_posix_acls(context, directory, false, true, &found);
      if (error != 0 && error != EOPNOTSUPP) co_return error;
      if (error == EOPNOTSUPP) directory->new_modes = Node::kByUmask;
      allowed = modes_of(found.initial);
    }
  }
  *mode &= allowed == Node::kByUmask ? ~umask : allowed | ~mode_t{0777};
  co_return 0;
}

}  // namespace nfsrdma
