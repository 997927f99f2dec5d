// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/locations_attribute.h"

#include <algorithm>

#include "rpcrdma/base/bytes.h"
#include "xdr/encoder.h"

namespace nfsrdma::nfs4 {

namespace {

/// Calls `each` for the components of `path`.
template <typename Each>
void for_each_component(std::string_view path, Each each) {
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    if (!name.empty()) each(name);
  }
}

std::size_t bytes_of(std::string_view text) {
  return 4 + round_up4(text.size());
}

std::size_t bytes_of_path(std::string_view path) {
  std::size_t bytes = 4;
  for_each_component(path, [&](std::string_view name) { bytes += bytes_of(name); });
  return bytes;
}

/// The components, without their number, which it returns.
std::uint32_t encode_components(xdr::Encoder& encoder, std::string_view path) {
  std::uint32_t count = 0;
  for_each_component(path, [&](std::string_view name) {
    encoder.string(name);
    ++count;
  });
  return count;
}

}  // namespace

xdr::fs_locations4 encode_locations(std::string_view root, const std::vector<FsLocation>& locations,
                                    std::vector<std::byte>& scratch) {
  std::size_t bytes = bytes_of_path(root);
  for (const FsLocation& location : locations) {
    bytes += 4 + bytes_of_path(location.path);
    for (const std::string& server : location.servers)
      bytes += bytes_of(server);
  }
  scratch.resize(bytes);
  xdr::Encoder encoder(scratch);
  xdr::fs_locations4 out;
  out.fs_root.components.count = encode_components(encoder, root);
  const std::size_t root_bytes = encoder.size();
  for (const FsLocation& location : locations) {
    encoder.u32(static_cast<std::uint32_t>(location.servers.size()));
    for (const std::string& server : location.servers)
      encoder.string(server);
    const std::size_t count_mark = encoder.mark();
    encoder.u32(0);
    encoder.patch_u32(count_mark, encode_components(encoder, location.path));
  }
  out.fs_root.components.encoded = encoder.bytes().first(root_bytes);
  out.locations = {encoder.bytes().subspan(root_bytes),
                   static_cast<std::uint32_t>(locations.size())};
  return out;
}

bool equal_locations(const xdr::fs_locations4& a, const xdr::fs_locations4& b) {
  return a.fs_root.components.count == b.fs_root.components.count &&
         a.locations.count == b.locations.count &&
         std::ranges::equal(a.fs_root.components.encoded, b.fs_root.components.encoded) &&
         std::ranges::equal(a.locations.encoded, b.locations.encoded);
}

}  // namespace nfsrdma::nfs4
