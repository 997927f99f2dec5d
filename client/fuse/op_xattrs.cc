// SPDX-License-Identifier: Apache-2.0
// FUSE operations on extended attributes. NFSv4.2 has those for users, NFSv4 has ACLs, which stand
// under the name and in the form that Linux's client gives them, for nfs4_getfacl(1) and its kind.
// POSIX ACLs, which NFSv3 has by NFSACL, stand under the names that getfacl(1) and setfacl(1) know,
// as the kernel has them; one that says no more than the mode is not there. What the kernel asks
// for by itself, for capabilities before writes, is answered here. ENOSYS, where the server has
// none of all that, tells it never to ask again.
#include <sys/xattr.h>

#include <cerrno>
#include <string_view>

#include "client/fuse/fuse_operations.h"

namespace nfsrdma {
namespace {

constexpr std::string_view kUser = "user.";
constexpr std::string_view kAcl = "system.nfs4_acl";
constexpr std::string_view kPosixAccess = "system.posix_acl_access";
constexpr std::string_view kPosixDefault = "system.posix_acl_default";
/// A POSIX ACL that has no entries: as good as none, everywhere on Linux.
constexpr std::string_view kNoEntries("\2\0\0\0", 4);

/// Where there is anything at all to be had by names.
bool has_any(const Remote& remote) {
  return remote.has_xattrs() || remote.has_acls() || remote.has_posix_acls();
}
bool is_posix_acl(const Remote& remote, const std::string& name) {
  return remote.has_posix_acls() && (name == kPosixAccess || name == kPosixDefault);
}
bool is_acl(const Remote& remote, const std::string& name) {
  return remote.has_acls() && name == kAcl;
}

/// 0 and the name for the server, or why there can be no such attribute.
int name_for_server(const Remote& remote, const std::string& name, std::string* out) {
  if (!has_any(remote)) return ENOSYS;
  if (!remote.has_xattrs() || !name.starts_with(kUser)) return EOPNOTSUPP;
  if (name.size() == kUser.size()) return EINVAL;
  *out = name.substr(kUser.size());
  return 0;
}

/// With a size of 0 somebody asks how large it is.
void answer(Request& request, const std::string& value, std::size_t size) {
  if (size == 0) return request.xattr_size(value.size());
  if (value.size() > size) return request.error(ERANGE);
  request.data(value.data(), value.size());
}

}  // namespace

Task<int> FuseOperations::get_posix_acl(Request& request, NodeRef node, bool initial,
                                        std::string* value) {
  if (node->attributes.type == FileType::kSymlink) co_return EOPNOTSUPP;
  if (initial && !node->is_directory()) co_return ENODATA;
  FoundPosixAcls found;
  const int error = co_await fs.get_posix_acls(request.context(), node, !initial, initial, &found);
  if (error != 0) co_return error;
  const std::optional<PosixAcl>& acl = initial ? found.initial : found.access;
  if (!acl || (!initial && acl->is_of_mode())) co_return ENODATA;
  *value = as_text(encode_posix_acl(*acl));
  co_return 0;
}

Task<int> FuseOperations::set_posix_acl(Request& request, NodeRef node, bool initial,
                                        std::string value) {
  if (node->attributes.type == FileType::kSymlink) co_return EOPNOTSUPP;
  std::optional<PosixAcl> acl;
  if (value != kNoEntries && !decode_given_posix_acl(as_bytes(value), &acl.emplace())) {
    co_return EINVAL;
  }
  if (initial && !node->is_directory()) co_return acl ? EACCES : 0;
  co_return co_await fs.set_posix_acl(request.context(), node, initial, std::move(acl));
}

Task<void> FuseOperations::getxattr(fuse_req_t raw, fuse_ino_t ino, std::string name,
                                    std::size_t size) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  if (node == nullptr) co_return request.error(ESTALE);
  std::string wanted, value;
  int error = 0;
  if (is_acl(fs.remote, name)) {
    error = co_await fs.get_acl(request.context(), node, &value);
  } else if (is_posix_acl(fs.remote, name)) {
    error = co_await get_posix_acl(request, node, name == kPosixDefault, &value);
  } else {
    error = name_for_server(fs.remote, name, &wanted);
    if (error == 0) error = co_await fs.get_xattr(request.context(), node, wanted, &value);
  }
  if (error != 0) co_return request.error(error);
  answer(request, value, size);
}

Task<void> FuseOperations::setxattr(fuse_req_t raw, fuse_ino_t ino, std::string name,
                                    std::string value, int flags) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  if (node == nullptr) co_return request.error(ESTALE);
  if (is_acl(fs.remote, name)) {
    // Every object has one, so `flags` say nothing.
    const int set = co_await fs.set_acl(request.context(), node, std::move(value));
    co_return request.error(set);
  }
  if (is_posix_acl(fs.remote, name)) {
    // The kernel does not look at `flags` either.
    const int set = co_await set_posix_acl(request, node, name == kPosixDefault, std::move(value));
    co_return request.error(set);
  }
  const XattrThere there = (flags & XATTR_CREATE) != 0    ? XattrThere::kNo
                           : (flags & XATTR_REPLACE) != 0 ? XattrThere::kYes
                                                          : XattrThere::kEither;
  std::string wanted;
  int error = name_for_server(fs.remote, name, &wanted);
  if (error == 0) {
    error = co_await fs.set_xattr(request.context(), node, wanted, std::move(value), there);
  }
  request.error(error);
}

Task<void> FuseOperations::listxattr(fuse_req_t raw, fuse_ino_t ino, std::size_t size) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  if (node == nullptr) co_return request.error(ESTALE);
  if (!has_any(fs.remote)) co_return request.error(ENOSYS);
  std::vector<std::string> names;
  int error = 0;
  if (fs.remote.has_xattrs()) {
    error = co_await fs.list_xattrs(request.context(), node, &names);
    // A file system without them has none.
    if (error != 0 && error != EOPNOTSUPP) co_return request.error(error);
  }
  bool acl = false;
  error = co_await fs.acls_there(request.context(), node, &acl);
  if (error != 0) co_return request.error(error);
  std::string list;
  if (fs.remote.has_posix_acls() && node->attributes.type != FileType::kSymlink) {
    FoundPosixAcls found;
    error = co_await fs.get_posix_acls(request.context(), node, true, node->is_directory(), &found);
    if (error != 0 && error != EOPNOTSUPP) co_return request.error(error);
    if (found.access && !found.access->is_of_mode()) list.append(kPosixAccess).push_back('\0');
    if (found.initial) list.append(kPosixDefault).push_back('\0');
  }
  if (acl) list.append(kAcl).push_back('\0');
  for (const std::string& name : names)
    list.append(kUser).append(name).push_back('\0');
  answer(request, list, size);
}

Task<void> FuseOperations::removexattr(fuse_req_t raw, fuse_ino_t ino, std::string name) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  if (node == nullptr) co_return request.error(ESTALE);
  if (is_acl(fs.remote, name)) {
    // As Linux's client says: an object is never without one.
    bool acl = false;
    const int asked = co_await fs.acls_there(request.context(), node, &acl);
    if (asked != 0) co_return request.error(asked);
    co_return request.error(acl ? EINVAL : EOPNOTSUPP);
  }
  if (is_posix_acl(fs.remote, name)) {
    const std::string none(kNoEntries);
    const int removed = co_await set_posix_acl(request, node, name == kPosixDefault, none);
    co_return request.error(removed);
  }
  std::string wanted;
  int error = name_for_server(fs.remote, name, &wanted);
  if (error == 0) error = co_await fs.remove_xattr(request.context(), node, wanted);
  request.error(error);
}

}  // namespace nfsrdma
