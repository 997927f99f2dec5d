// SPDX-License-Identifier: Apache-2.0
#include "client/doubtful.h"

namespace nfsrdma {

bool removal_happened(const std::optional<Found>& name, const FileHandle* known) {
  return !name || (known != nullptr && !(name->handle == *known));
}

bool rename_happened(const std::optional<Found>& from, const std::optional<Found>& to,
                     const FileHandle* known) {
  if (!to) return false;
  if (known != nullptr) return to->handle == *known;
  return !from;
}

bool mkdir_happened(const Found& found) {
  // "." and ".." make two; some file systems always say one.
  return found.attributes && found.attributes->type == FileType::kDirectory &&
         found.attributes->nlink <= 2;
}

bool symlink_happened(const Found& found, std::string_view text, std::string_view wanted) {
  return found.attributes && found.attributes->type == FileType::kSymlink && text == wanted;
}

bool link_happened(const Found& found, const FileHandle& file) {
  return found.handle == file;
}

bool mknod_happened(const Found& found, FileType type, std::uint32_t rdev_major,
                    std::uint32_t rdev_minor) {
  if (!found.attributes || found.attributes->type != type) return false;
  const bool device = type == FileType::kBlock || type == FileType::kCharacter;
  return !device ||
         (found.attributes->rdev_major == rdev_major && found.attributes->rdev_minor == rdev_minor);
}

bool create_happened(const Found& found, const SetAttributes& set) {
  if (!found.attributes || found.attributes->type != FileType::kRegular) return false;
  const Attributes& now = *found.attributes;
  return now.nlink == 1 && now.size == set.size.value_or(0) &&
         (!set.mode || (now.mode & 0777) == (*set.mode & 0777));
}

bool create_with_data_happened(const Found& found, const SetAttributes& set, ByteSpan content,
                               ByteSpan data) {
  if (content.size() > data.size()) return false;
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (content[i] != data[i] && content[i] != std::byte{0}) return false;
  }
  SetAttributes as_far = set;
  as_far.size = content.size();
  return create_happened(found, as_far);
}

bool exclusive_create_happened(const Found& found, const std::array<std::byte, 8>& verifier) {
  if (!found.attributes || found.attributes->type != FileType::kRegular) return false;
  // Linux and others store the verifier's halves in the seconds of mtime and atime, without the
  // highest bit; the order differs between servers.
  const std::uint32_t first = load_be32(verifier.data()) & 0x7fffffff;
  const std::uint32_t second = load_be32(verifier.data() + 4) & 0x7fffffff;
  const std::uint32_t first_swapped = __builtin_bswap32(load_be32(verifier.data())) & 0x7fffffff;
  const std::uint32_t second_swapped =
      __builtin_bswap32(load_be32(verifier.data() + 4)) & 0x7fffffff;
  const auto mtime = static_cast<std::uint32_t>(found.attributes->mtime.tv_sec) & 0x7fffffff;
  const auto atime = static_cast<std::uint32_t>(found.attributes->atime.tv_sec) & 0x7fffffff;
  auto are = [&](std::uint32_t a, std::uint32_t b) {
    return (mtime == a && atime == b) || (mtime == b && atime == a);
  };
  return are(first, second) || are(first_swapped, second_swapped);
}

bool exclusive_create_happened(const Found& found, const timespec& time) {
  if (!found.attributes || found.attributes->type != FileType::kRegular) return false;
  return same_time(found.attributes->atime, time);
}

bool setattr_happened(const Attributes& now, const SetAttributes& set) {
  auto time_is = [](const std::optional<SetAttributes::Time>& wanted, const timespec& time) {
    return !wanted || wanted->server_now || same_time(wanted->value, time);
  };
  return (!set.mode || *set.mode == now.mode) && (!set.uid || *set.uid == now.uid) &&
         (!set.gid || *set.gid == now.gid) && (!set.size || *set.size == now.size) &&
         time_is(set.atime, now.atime) && time_is(set.mtime, now.mtime);
}

}  // namespace nfsrdma
