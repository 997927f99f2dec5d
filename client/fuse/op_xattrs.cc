// SPDX-License-Identifier: Apache-2.0
// FUSE operations on extended attributes. NFSv4.2 has those for users; what the kernel asks for by
// itself, for capabilities before writes and for ACLs, is answered here. ENOSYS, before
// version 4.2, tells it never to ask again.
#include <sys/xattr.h>

#include <cerrno>
#include <string_view>

#include "client/fuse/fuse_operations.h"

namespace nfsrdma {
namespace {

constexpr std::string_view kUser = "user.";

/// 0 and the name for the server, or why there can be no such attribute.
int name_for_server(const Remote& remote, const std::string& name, std::string* out) {
  if (!remote.has_xattrs()) return ENOSYS;
  if (!name.starts_with(kUser)) return EOPNOTSUPP;
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
  int error = name_for_server(fs.remote, name, &wanted);
  if (error == 0) error = co_await fs.get_xattr(request.context(), node, wanted, &value);
  if (error != 0) co_return request.error(error);
  answer(request, value, size);
}

Task<void> FuseOperations::setxattr(fuse_req_t raw, fuse_ino_t ino, std::string name,
                                    std::string value, int flags) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  if (node == nullptr) co_return request.error(ESTALE);
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
  if (!fs.remote.has_xattrs()) co_return request.error(ENOSYS);
  std::vector<std::string> names;
  const int error = co_await fs.list_xattrs(request.context(), node, &names);
  // A file system without them has none.
  if (error != 0 && error != EOPNOTSUPP) co_return request.error(error);
  std::string list;
  for (const std::string& name : names)
    list.append(kUser).append(name).push_back('\0');
  answer(request, list, size);
}

Task<void> FuseOperations::removexattr(fuse_req_t raw, fuse_ino_t ino, std::string name) {
  Request request(*this, raw);
  NodeRef node = fs.nodes.find(ino);
  if (node == nullptr) co_return request.error(ESTALE);
  std::string wanted;
  int error = name_for_server(fs.remote, name, &wanted);
  if (error == 0) error = co_await fs.remove_xattr(request.context(), node, wanted);
  request.error(error);
}

}  // namespace nfsrdma
