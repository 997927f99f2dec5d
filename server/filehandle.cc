// SPDX-License-Identifier: Apache-2.0
// Encoding, authentication and the key of file handles. See filehandle.h for the layout.
#include "server/filehandle.h"

#include <sodium.h>

#include <algorithm>
#include <string_view>

#include "server/kept_random.h"

namespace nfsrdma {

namespace {

constexpr std::byte kVersion{1};
constexpr std::size_t kHeader = 16;
constexpr std::size_t kMac = crypto_shorthash_siphashx24_BYTES;
static_assert(kMac == 16);
static_assert(kHeader + HandleParts::kMaxBody + kMac == FileHandle::kMaxBytes);

constexpr KeptFile kKeyFile{
    "handle-key", "nfs-rdma handle key 1\n",
    "handle-key is damaged, or of a newer version; to start all the same, move "
    "it away: what clients have mounted is stale then"};

void compute_mac(const HandleCodec::Key& key, const std::byte* data, std::size_t size,
                 std::byte* mac) {
  crypto_shorthash_siphashx24(reinterpret_cast<unsigned char*>(mac),
                              reinterpret_cast<const unsigned char*>(data), size, key.data());
}

bool known_scheme(HandleScheme scheme, std::size_t body_size) {
  switch (scheme) {
    case HandleScheme::kKernel:
    case HandleScheme::kInode:
      return true;
    case HandleScheme::kPseudo:
      return body_size == HandleParts::kPseudoBody;
  }
  return false;
}

}  // namespace

Result<HandleCodec::Key> HandleCodec::load_or_create_key(const std::string& state_dir) {
  return load_or_draw(state_dir, kKeyFile);
}

FileHandle HandleCodec::seal(const HandleParts& parts) const {
  FileHandle handle;
  std::byte* p = handle.data.data();
  p[0] = kVersion;
  p[1] = static_cast<std::byte>(parts.scheme);
  p[2] = static_cast<std::byte>(parts.kernel_type);
  p[3] = static_cast<std::byte>(parts.body_size);
  store_be64(p + 4, parts.export_id);
  store_be32(p + 12, parts.mount_key);
  std::copy_n(parts.body.data(), parts.body_size, p + kHeader);
  const std::size_t authenticated = kHeader + round_up4(parts.body_size);
  compute_mac(key_, p, authenticated, p + authenticated);
  handle.size = static_cast<std::uint8_t>(authenticated + kMac);
  return handle;
}

bool HandleCodec::open(ByteSpan handle, HandleParts* parts) const {
  if (handle.size() < kHeader + kMac || handle.size() > FileHandle::kMaxBytes) return false;
  const std::byte* p = handle.data();
  const std::size_t authenticated = handle.size() - kMac;
  std::byte mac[kMac];
  compute_mac(key_, p, authenticated, mac);
  if (sodium_memcmp(mac, p + authenticated, kMac) != 0) return false;
  // From here on the bytes are ours; the checks are against versions to come.
  const auto scheme = static_cast<HandleScheme>(p[1]);
  const auto body_size = static_cast<std::size_t>(p[3]);
  if (p[0] != kVersion || !known_scheme(scheme, body_size) || body_size > HandleParts::kMaxBody ||
      kHeader + round_up4(body_size) != authenticated) {
    return false;
  }
  parts->scheme = scheme;
  parts->kernel_type = static_cast<std::uint8_t>(p[2]);
  parts->body_size = static_cast<std::uint8_t>(body_size);
  parts->export_id = load_be64(p + 4);
  parts->mount_key = load_be32(p + 12);
  std::copy_n(p + kHeader, body_size, parts->body.data());
  return true;
}

}  // namespace nfsrdma
