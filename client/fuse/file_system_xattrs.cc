// SPDX-License-Identifier: Apache-2.0
// Extended attributes (NFSv4.2), which the server alone knows of.
#include "client/fuse/file_system.h"

namespace nfsrdma {

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
  co_return co_await make_change(node, std::move(change));
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
  co_return co_await make_change(node, std::move(change));
}

}  // namespace nfsrdma
