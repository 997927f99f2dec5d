// SPDX-License-Identifier: Apache-2.0
// What the client's operations take and give, free of any protocol version. Value types.
#pragma once

#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <functional>
#include <optional>
#include <string_view>

#include "rpcrdma/base/byte_range_locks.h"
#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/posix_acl.h"
#include "rpcrdma/base/result.h"
#include "rpcrdma/base/timestamp.h"

namespace nfsrdma {

/// A server's name for a file. Opaque, compares by bytes.
class FileHandle {
 public:
  static constexpr std::size_t kMaxBytes = 128;  // NFSv4; NFSv3 has 64

  FileHandle() = default;
  /// Empty when `bytes` are none or too many.
  explicit FileHandle(ByteSpan bytes) {
    if (bytes.empty() || bytes.size() > kMaxBytes) return;
    std::memcpy(bytes_.data(), bytes.data(), bytes.size());
    size_ = static_cast<std::uint8_t>(bytes.size());
  }
  bool empty() const { return size_ == 0; }
  ByteSpan bytes() const { return {bytes_.data(), size_}; }
  /// Whose handle it is where one mount has several servers, each with numbers of its own
  /// (client/fuse/referring_remote.h); 0: the mount's own server. Never sent.
  std::uint16_t tree() const { return tree_; }
  FileHandle in_tree(std::uint16_t tree) const {
    FileHandle handle = *this;
    handle.tree_ = tree;
    return handle;
  }
  bool operator==(const FileHandle& other) const {
    return size_ == other.size_ && tree_ == other.tree_ &&
           std::memcmp(bytes_.data(), other.bytes_.data(), size_) == 0;
  }

 private:
  std::array<std::byte, kMaxBytes> bytes_{};
  std::uint8_t size_ = 0;
  std::uint16_t tree_ = 0;
};

struct FileHandleHash {
  std::size_t operator()(const FileHandle& handle) const {
    return std::hash<std::string_view>{}(as_text(handle.bytes()));
  }
};

enum class FileType : std::uint8_t {
  kRegular,
  kDirectory,
  kBlock,
  kCharacter,
  kSymlink,
  kSocket,
  kFifo
};
/// S_IFREG and the like.
mode_t type_bits(FileType type);

struct Attributes {
  FileType type = FileType::kRegular;
  std::uint32_t mode = 0;  // permission and set-id bits, without the type
  std::uint32_t nlink = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size = 0;  // bytes
  std::uint64_t used = 0;  // bytes on disk
  std::uint32_t rdev_major = 0;
  std::uint32_t rdev_minor = 0;
  std::uint64_t fsid = 0;
  std::uint64_t fileid = 0;
  timespec atime{};
  timespec mtime{};
  timespec ctime{};
  /// NFSv4: another number after each change of data, attributes or names, also when the server's
  /// clock ticks too slowly for its times to tell.
  std::optional<std::uint64_t> change;
};
struct stat to_stat(const Attributes& attributes);

/// Weak cache consistency data: what the server knew of an object before and after a change.
struct Wcc {
  struct Before {
    std::uint64_t size = 0;
    timespec mtime{};
    timespec ctime{};
  };
  /// NFSv4, where a name or an extended attribute was changed: the change attribute of the
  /// directory or the object (RFC 8881 3.3.3). Not `atomic`: others may have changed it in between.
  struct Change {
    bool atomic = false;
    std::uint64_t before = 0;
    std::uint64_t after = 0;
  };
  std::optional<Before> before;
  std::optional<Change> change;
  std::optional<Attributes> after;
};

/// Where a file was found: a name and the directory that has it.
struct FilePlace {
  FileHandle directory;
  std::string name;
};

/// What setattr and the creating operations set. Unset members stay as they are.
struct SetAttributes {
  struct Time {
    bool server_now = false;  // else `value`
    timespec value{};
  };
  std::optional<std::uint32_t> mode;
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<std::uint64_t> size;
  std::optional<Time> atime;
  std::optional<Time> mtime;
};

/// How stable a WRITE is when it is answered.
enum class Stability : std::uint8_t { kUnstable, kDataSync, kFileSync };

enum class CreateMode : std::uint8_t {
  kUnchecked,  // an existing file is opened (its size set when given)
  kGuarded,    // an existing file is EEXIST
  kExclusive,  // O_EXCL, safe against resending; attributes are set by a SETATTR behind it
};

/// Bits of access(): what the caller may do.
namespace access_bits {
inline constexpr std::uint32_t kRead = 0x01;
inline constexpr std::uint32_t kLookup = 0x02;
inline constexpr std::uint32_t kModify = 0x04;
inline constexpr std::uint32_t kExtend = 0x08;
inline constexpr std::uint32_t kDelete = 0x10;
inline constexpr std::uint32_t kExecute = 0x20;
}  // namespace access_bits

struct LookupResult {
  FileHandle handle;
  std::optional<Attributes> attributes;
  std::optional<Attributes> directory;
};
struct AccessResult {
  std::uint32_t allowed = 0;
  std::optional<Attributes> attributes;
};
struct ReadResult {
  std::size_t count = 0;  // bytes placed at the front of the caller's memory
  bool eof = false;
  std::optional<Attributes> attributes;
};
struct WriteResult {
  std::size_t count = 0;                       // bytes taken
  Stability stability = Stability::kUnstable;  // the least of all pieces
  std::uint64_t verifier = 0;
  /// Pieces were answered with different verifiers: the server restarted in between; what is
  /// unstable must be written again.
  bool verifier_changed = false;
  Wcc wcc;
};
struct CreateResult {
  FileHandle handle;
  std::optional<Attributes> attributes;
  Wcc directory;
};
struct RemoveResult {
  Wcc directory;
};
struct RenameResult {
  Wcc from_directory;
  Wcc to_directory;
};
struct LinkResult {
  std::optional<Attributes> attributes;
  Wcc directory;
};
struct CommitResult {
  std::uint64_t verifier = 0;
  Wcc wcc;
};

/// What set_xattr() finds: anything, nothing (else EEXIST), or a value (else ENODATA).
enum class XattrThere : std::uint8_t { kEither, kNo, kYes };
/// Bytes of a value, and of all names of an object with "user." and a NUL each, as in xattr(7).
inline constexpr std::size_t kMaxXattrBytes = 65536;
/// Bytes of an ACL; Linux has no room for more in an extended attribute.
inline constexpr std::size_t kMaxAclBytes = kMaxXattrBytes;

/// POSIX ACLs of an object, each where it was asked for and is there.
struct FoundPosixAcls {
  std::optional<PosixAcl> access;
  std::optional<PosixAcl> initial;  // default ACL
  std::optional<Attributes> attributes;
};
/// What becomes of one of them.
struct PosixAclChange {
  bool initial = false;         // it is about the default ACL, else the access ACL
  std::optional<PosixAcl> acl;  // none: it is removed; the mode stays
  /// What is known of the object.
  bool of_directory = false;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

/// What seek() looks for.
enum class SeekFor : std::uint8_t { kData, kHole };
/// Of a copy that the server made.
struct CopyResult {
  std::uint64_t count = 0;  // bytes, on stable storage
  Wcc wcc;                  // of the file copied to
};

/// What an open file denies all others while it is open (share reservations, RFC 8881 9.7).
struct ShareDenial {
  std::uint32_t access = 0;  // access_bits::kRead, kModify; 0: it denies nothing
  LockOwnerId owner = 0;     // whose open it is: never 0 where something is denied
};
/// What a file is opened for.
struct OpenFor {
  std::uint32_t access = 0;  // access_bits::kRead, kModify. 0: it is no open
  bool delegation = false;   // a delegation of that kind is wanted
  bool execute = false;      // it is read only in order to be executed
  ShareDenial deny{};        // the open is its owner's alone then, and ends with end_denial()
};

/// A byte-range lock. `owner` is a number of the caller's choice for who locks: a process, an open
/// file.
struct FileLock {
  LockOwnerId owner = 0;
  LockKind kind = LockKind::kRead;
  ByteRange range;

  bool operator==(const FileLock&) const = default;
};
/// Is a lock waited for that is not to be had now?
enum class LockWait : std::uint8_t { kNo, kYes };
/// A lock that is in the way of another.
struct LockHolder {
  FileLock lock;
  bool ours = false;  // by an owner of this client; else lock.owner says nothing
};

/// Owners of `held`, each once, that `wanted` has to wait for.
std::vector<LockOwnerId> owners_in_the_way(const ByteRangeLocks& held, const FileLock& wanted);

/// What the server has promised of a file until it takes that back (a delegation, RFC 8881 10.2):
/// kRead: nobody changes it; kWrite: nobody else reads or changes it. In the order of their worth.
enum class DelegationKind : std::uint8_t { kNone, kRead, kWrite };
/// How a file with a write delegation stands for those who use it here.
struct HeldAttributes {
  std::uint64_t size = 0;
  std::uint64_t change = 0;  // another than the server has seen where data is still here
};
/// Who relies on delegations.
class DelegationHolder {
 public:
  virtual ~DelegationHolder() = default;
  /// The promise is to end, or has: what was not written because of it is written, and then given
  /// back, soon (AsyncMount::give_back). From within a message of the server: begins it, no more.
  virtual void give_up(const FileHandle& file) = 0;
  /// None: nothing is known of the file here.
  virtual std::optional<HeldAttributes> held_attributes(const FileHandle& file) = 0;
  /// Its file system is on another server now, as the one before has said when it was asked for
  /// that: not for somebody's sake who would go there.
  virtual void has_moved(const FileHandle&) {}
  /// As the server said last, whether that is fresh or not; null: nothing is known of the file.
  virtual const Attributes* last_attributes(const FileHandle&) const { return nullptr; }
  /// Was it found in `directory`, or below it, or is it that? True also where nobody knows.
  virtual bool lies_below(const FileHandle&, const FileHandle&) const { return true; }
  /// The directory that `name` was found to be in `directory`, if one is known. Looks at all that
  /// is known.
  virtual std::optional<FileHandle> known_directory(const FileHandle&, std::string_view) const {
    return std::nullopt;
  }
};

struct DirectoryEntry {
  std::uint64_t fileid = 0;
  std::string_view name;                   // valid during the call only
  std::uint64_t cookie = 0;                // where to go on behind this entry
  const Attributes* attributes = nullptr;  // readdirplus, when the server gave them
  const FileHandle* handle = nullptr;
};
/// Takes the entries of a directory as they are decoded.
class DirectoryVisitor {
 public:
  virtual ~DirectoryVisitor() = default;
  /// False: no more (this one was not taken).
  virtual bool on_entry(const DirectoryEntry& entry) = 0;
};
struct DirectoryPage {
  std::uint64_t verifier = 0;  // for the next page
  std::uint64_t cookie = 0;    // of the last entry taken
  bool eof = false;            // nothing behind it
  std::size_t entries = 0;     // taken
  std::optional<Attributes> directory;
};

struct FsStat {
  std::uint64_t total_bytes = 0, free_bytes = 0, available_bytes = 0;
  std::uint64_t total_files = 0, free_files = 0, available_files = 0;
};
struct FsInfo {
  std::uint32_t rtmax = 0, rtpref = 0, rtmult = 1;
  std::uint32_t wtmax = 0, wtpref = 0, wtmult = 1;
  std::uint32_t dtpref = 0;
  std::uint64_t max_file_size = 0;
  timespec time_delta{};
  bool hard_links = true, symlinks = true, homogeneous = true, can_set_time = true;
  std::optional<Attributes> attributes;  // of what was asked, when the server tells
};
struct PathConf {
  std::uint32_t link_max = 0;
  std::uint32_t name_max = 255;
  bool no_trunc = true;
  bool chown_restricted = true;
  bool case_insensitive = false;
  bool case_preserving = true;
};

/// The errno that stands for `error` towards an application; never 0. Operations put the errno of
/// an NFS status into Error::sys.
int errno_of(const Error& error);

}  // namespace nfsrdma
