// SPDX-License-Identifier: Apache-2.0
// File handles as clients see them: at most 64 opaque bytes that name an object for ever, across
// renames and restarts, and that only this server can have made.
//
//   0       version, 1
//   1       scheme: 1 kernel handle, 2 inode identity, 3 pseudo node (below)
//   2       kernel handle type (scheme 1; 0 otherwise)
//   3       n, bytes of the body
//   4..11   export id
//   12..15  mount key: 0 for the export's own file system, else which of those mounted below
//   16..    body: n bytes, at most 32, then zeros up to a multiple of four
//   last 16 MAC: SipHash-2-4 (128 bit) over everything before
//
// Scheme 1 holds what name_to_handle_at gives; open_by_handle_at (CAP_DAC_READ_SEARCH) resolves it.
//
// Scheme 2 is for servers without that capability and file systems without kernel handles. The body
// is inode number and time of birth (16 bytes). Where such an inode is to be found is remembered in
// a table (server/vfs/path_table.h) that is kept under the state directory. Limits: an object that
// somebody else than this server moved is stale until a client looks it up again; file systems
// without a time of birth may confuse a new file with a deleted one of the same inode number; after
// a power loss the youngest handles may be stale.
//
// Scheme 3 is a directory of NFSv4's pseudo file system (server/nfs4/pseudo_fs.h), above the
// exports: export id and mount key are 0, the body is the node's id (8 bytes). No object on disk
// has such a handle; NFSv3 answers NFS3ERR_STALE.
//
// Versions: a server that reads version 1 keeps reading it; handles of an unknown version are
// NFS3ERR_BADHANDLE. The key file has a version of its own; removing it makes every handle bad.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/result.h"

namespace nfsrdma {

enum class HandleScheme : std::uint8_t { kKernel = 1, kInode = 2, kPseudo = 3 };

/// The bytes of a handle. Value type; unused bytes are zero.
struct FileHandle {
  static constexpr std::size_t kMaxBytes = 64;
  std::array<std::byte, kMaxBytes> data{};
  std::uint8_t size = 0;

  ByteSpan bytes() const { return {data.data(), size}; }
  bool operator==(const FileHandle&) const = default;
};

/// What a handle says, once it is known to be ours.
struct HandleParts {
  static constexpr std::size_t kMaxBody = 32;
  HandleScheme scheme = HandleScheme::kKernel;
  std::uint8_t kernel_type = 0;
  std::uint8_t body_size = 0;
  std::uint64_t export_id = 0;
  std::uint32_t mount_key = 0;
  std::array<std::byte, kMaxBody> body{};

  ByteSpan body_bytes() const { return {body.data(), body_size}; }

  /// Scheme kPseudo.
  static constexpr std::uint8_t kPseudoBody = 8;
  static HandleParts of_pseudo_node(std::uint64_t node) {
    HandleParts parts;
    parts.scheme = HandleScheme::kPseudo;
    parts.body_size = kPseudoBody;
    store_be64(parts.body.data(), node);
    return parts;
  }
  std::uint64_t pseudo_node() const { return load_be64(body.data()); }
};

class HandleCodec {
 public:
  using Key = std::array<std::uint8_t, 16>;
  explicit HandleCodec(const Key& key) : key_(key) {}
  /// The key of `state_dir` (file "handle-key"), made at the first start: 0600, written aside and
  /// linked into place, so that two starting servers agree.
  static Result<Key> load_or_create_key(const std::string& state_dir);

  FileHandle seal(const HandleParts& parts) const;
  /// False for whatever this server did not make: wrong length, version, scheme or MAC. Takes the
  /// same time wherever the MAC differs.
  bool open(ByteSpan handle, HandleParts* parts) const;

 private:
  Key key_;
};

}  // namespace nfsrdma
