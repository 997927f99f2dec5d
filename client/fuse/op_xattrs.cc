// SPDX-License-Identifier: Apache-2.0
// FUSE operations on extended attributes. NFSv4.2 has those for users, NFSv4 has ACLs, which stand
// under the name and in the form that Linux's client gives them, for nfs4_getfacl(1) and its kind.
// What the kernel asks for by itself, for capabilities before writes and for POSIX ACLs, is
// answered here. ENOSYS, with NFSv3, tells it never to ask again.
#include <sys/xattr.h>

#include <cerrno>
#include <string_view>

#include "client/fuse/fuse_operations.h"

namespace nfsrdma {
namespace {

constexpr std::string_view kUser = "user.";
constexpr std::string_view kAcl = "system.nfs4_acl";

/// Where there is anything at all to be had by names.
bool has_any(const Remote& remote) {
  return remote.has_xattrs() || remote.has_acls();
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

Task<void> FuseOperations::getxattr(fuse_req_t raw, fuse_ino_t ino, std::string name,
                                    std::size_t size) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  if (node == nullptr) co_return request.error(ESTALE);
  std::string wanted, value;
  int error = 0;
  if (is_acl(fs.remote, name)) {
    error = co_await fs.get_acl(request.context(), node, &value);
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
  std::string wanted;
  int error = name_for_server(fs.remote, name, &wanted);
  if (error == 0) error = co_await fs.remove_xattr(request.context(), node, wanted);
  request.error(error);
}

}  // namespace nfsrdma
