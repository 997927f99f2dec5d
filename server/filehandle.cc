// SPDX-License-Identifier: Apache-2.0
// Encoding, authentication and the key of file handles. See filehandle.h for the layout.
#include "server/filehandle.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "config/default_paths.h"
#include "rpcrdma/base/unique_fd.h"
#include "server/vfs/proc_path.h"

namespace nfsrdma {

namespace {

constexpr std::byte kVersion{1};
constexpr std::size_t kHeader = 16;
constexpr std::size_t kMac = crypto_shorthash_siphashx24_BYTES;
static_assert(kMac == 16);
static_assert(kHeader + HandleParts::kMaxBody + kMac == FileHandle::kMaxBytes);

constexpr std::string_view kKeyMagic = "nfs-rdma handle key 1\n";
constexpr std::size_t kKeyFileBytes = kKeyMagic.size() + 16;

void compute_mac(const HandleCodec::Key& key, const std::byte* data, std::size_t size,
                 std::byte* mac) {
  crypto_shorthash_siphashx24(reinterpret_cast<unsigned char*>(mac),
                              reinterpret_cast<const unsigned char*>(data), size, key.data());
}

Result<HandleCodec::Key> read_key(int fd) {
  std::array<char, kKeyFileBytes + 1> bytes;
  const ssize_t n = ::pread(fd, bytes.data(), bytes.size(), 0);
  if (n < 0) return system_error("read handle-key");
  if (static_cast<std::size_t>(n) != kKeyFileBytes ||
      std::string_view(bytes.data(), kKeyMagic.size()) != kKeyMagic) {
    return Error{Errc::kInvalid, 0, "handle-key is not of a version that this server knows"};
  }
  HandleCodec::Key key;
  std::copy_n(bytes.data() + kKeyMagic.size(), key.size(), reinterpret_cast<char*>(key.data()));
  return key;
}

/// A complete key file without a name yet.
Result<UniqueFd> make_key_file(int directory) {
  UniqueFd fd(::openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) return system_error("create handle-key");
  std::string content(kKeyMagic);
  content.resize(kKeyFileBytes);
  randombytes_buf(content.data() + kKeyMagic.size(), kKeyFileBytes - kKeyMagic.size());
  if (::fchmod(fd.get(), 0600) != 0 ||
      ::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
      ::fsync(fd.get()) != 0) {
    return system_error("write handle-key");
  }
  return fd;
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
  if (sodium_init() < 0) return Error{Errc::kUnsupported, 0, "libsodium does not start"};
  // With its parents: a new user has no ~/.local/state.
  if (!make_directories(state_dir, 0700)) {
    return system_error("make the state directory");
  }
  UniqueFd directory(::open(state_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return system_error("open the state directory");
  for (int attempt = 0; attempt < 2; ++attempt) {
    UniqueFd fd(::openat(directory.get(), "handle-key", O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (fd) return read_key(fd.get());
    if (errno != ENOENT) return system_error("open handle-key");
    NFSRDMA_TRY(UniqueFd fresh, make_key_file(directory.get()));
    // Whoever links first wins; the other reads the winner's in the second round.
    if (::linkat(AT_FDCWD, ProcPath(fresh.get()).c_str(), directory.get(), "handle-key",
                 AT_SYMLINK_FOLLOW) != 0 &&
        errno != EEXIST) {
      return system_error("name handle-key");
    }
    if (::fsync(directory.get()) != 0) return system_error("sync the state directory");
  }
  return Error{Errc::kSystem, ENOENT, "handle-key vanished"};
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
