// SPDX-License-Identifier: Apache-2.0
// libnfsrdma: NFS versions 3, 4.0, 4.1 and 4.2 over RDMA (verbs or the built-in iWARP) or TCP, from
// user space and without a mount. This is the blocking C++ interface; client_c.h is the same for C.
//
//   std::string detail;
//   auto mount = nfsrdma::client::Mount::open("nfs://server/export/dir?fabric=iwarp", &detail);
//   if (!mount) return fail(mount.error(), detail);
//   auto file = mount->open("data.bin", O_RDONLY);
//   auto n = file->pread(buffer, 0);
//
// Units: bytes, and seconds with nanoseconds in struct stat. Paths: relative to the path of the
// URL, '/' in front or not, components separated by '/'; symbolic links are followed as in a file
// system (absolute ones when they stay below the exported directory). An empty path is the URL's
// own object.
//
// Referrals: with NFSv4 a path may lead to another server, where the calls of it then go, by
// connections that are made for the first of them (up to 30 s) and kept as long as the Mount. What
// lies behind one is a file system of its own: rename() and link() from or to there are EXDEV, and
// so are ".." and symbolic links that lead out of it. One that cannot be followed is an errno, with
// a line on standard error, and is tried again after 3 s. So is where a directory has moved to
// while it was in use; a File that is open in it is EREMOTE until it is opened again.
//
// Errors: every call returns a Result: a value, or a std::error_code of the generic category
// (errno). Nothing throws.
//
// Threads: all calls of a Mount and its Files may be made from any thread. The calling thread does
// the work itself; when several threads call at once, their calls are under way together. Closing a
// File or a Mount that another thread is using is an error of the program. From the first open File
// of NFSv4 on, one thread of the library's own renews the lease while nobody calls.
//
// Open files: with NFSv4.1 and later the server has a file open from Mount::open() to the last
// File::close(), for what its Files are open for: it counts for clients that deny others to read or
// write it, and stays readable when somebody else removes it. Both survive a restart of the server.
//
// Ownership: Mount and File are move-only and close when destroyed. Files keep their Mount's
// connections alive. Memory passed in is used only during the call. pread() places data right into
// the caller's memory, pwrite() sends from it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace nfsrdma::client {

/// A value, or why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(std::error_code error) : error_(error) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  T& operator*() & { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  const T& operator*() const& { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& value() & { return *value_; }
  T&& value() && { return std::move(*value_); }
  std::error_code error() const { return error_; }
  /// errno, 0 when ok().
  int error_number() const { return error_.value(); }

 private:
  std::optional<T> value_;
  std::error_code error_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(std::error_code error) : error_(error) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  std::error_code error() const { return error_; }
  int error_number() const { return error_.value(); }

 private:
  std::error_code error_;
};

/// One entry of a directory. "." and ".." are left out.
struct DirectoryEntry {
  std::string name;
  std::uint64_t fileid = 0;
  /// readdirplus(): what stat would say, when the server gave it.
  std::optional<struct stat> attributes;
};

/// Sizes of a file system, in bytes and in files.
struct FileSystemInfo {
  std::uint64_t total_bytes = 0, free_bytes = 0, available_bytes = 0;
  std::uint64_t total_files = 0, free_files = 0, available_files = 0;
  std::uint32_t read_size = 0;   // bytes per READ in force
  std::uint32_t write_size = 0;  // bytes per WRITE in force
  std::uint32_t name_max = 255;  // bytes
};

/// What one connection does; see nfs-rdma(1), status.
struct ConnectionStatus {
  std::string fabric;  // "verbs", "iwarp", "tcp"
  std::string device;
  std::string peer;                                // "192.0.2.1:20049"
  std::uint32_t inline_send = 0, inline_recv = 0;  // bytes
  std::uint32_t credits = 0;
  std::uint64_t rdma_write_bytes = 0;  // server to client by RDMA Write
  std::uint64_t rdma_read_bytes = 0;   // client to server by RDMA Read
  std::uint64_t inline_bytes = 0;      // inside messages
  std::string fallback_reason;         // why no faster transport is in use; empty: none was tried
};

/// Where a file system is that is not on the server that was asked (NFSv4).
struct ReferralTarget {
  std::string host;
  std::uint16_t port = 0;  // 0: the usual ones
  std::string path;        // absolute, there
};

/// A new time for utimens().
struct FileTime {
  enum class Kind : std::uint8_t { kOmit, kNow, kValue };
  Kind kind = Kind::kOmit;
  timespec value{};
};

/// A byte-range lock (RFC 8881, section 18.10), advisory. Bytes from `offset` on; length 0: to the
/// end of the file, however long it becomes.
enum class LockType : std::uint8_t { kShared, kExclusive };
struct LockRange {
  LockType type = LockType::kShared;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// What a File denies others while it is open (share reservations, RFC 8881, section 9.7):
/// opening the file to read it, to write it, or both. The server enforces it.
enum class ShareDeny : std::uint8_t { kNone, kRead, kWrite, kBoth };

/// What File::seek() looks for.
enum class SeekWhat : std::uint8_t { kData, kHole };

class File {
 public:
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  /// Flushes like close(); what it would report is lost.
  ~File();

  /// Reads at most buffer.size() bytes from `offset`; fewer only at the end of the file. 0: behind
  /// it. Large reads go out as several requests at once. EINVAL: `offset` is more than 2^63 - 1, as
  /// a negative off_t is.
  Result<std::size_t> pread(std::span<std::byte> buffer, std::uint64_t offset);
  /// Writes all of `data`. With O_SYNC or O_DSYNC it is on stable storage on return; else the
  /// library keeps what the server has not made stable (at most a set number of bytes, see
  /// set_unstable_limit()) so that a server restart loses nothing before fsync() or close().
  /// EINVAL: `offset` is more than 2^63 - 1, as a negative off_t is; EFBIG: data would lie behind
  /// that. Nothing is written then.
  Result<std::size_t> pwrite(std::span<const std::byte> data, std::uint64_t offset);
  /// Everything written to the file so far, by any File of this Mount, is on stable storage. Data
  /// that could not be saved behind a restart of the server is told to each File, once. EIO: also
  /// when the server says again and again that it has lost what it was sent.
  Result<void> fsync();
  Result<struct stat> stat();
  Result<void> truncate(std::uint64_t size);

  // --- locks: of NFSv4, and by NLM beside NFSv3 ---
  // Each File is an owner of its own, as open files are for F_OFD_SETLK of fcntl(2). Locks end with
  // unlock() or close(), live through lost connections and restarts of the server, and meet those
  // of other clients and, on Linux, of processes on the server. Nothing is cached here: whoever has
  // locked reads what others wrote before.
  /// `wait`: how long for locks that are in the way; zero: not at all, milliseconds::max(): for
  /// ever. EAGAIN: they still are. EBADF: not open for reading (kShared) or writing (kExclusive).
  /// EINVAL: `offset` and `length` reach behind 2^64 - 1. EIO: a lock of this File is lost, which
  /// unlock() of its range, or close(), ends. EDEADLK: waiting would never end.
  Result<void> lock(const LockRange& range, std::chrono::milliseconds wait = {});
  /// fsync(), then lets go of what is locked there, whatever its type.
  Result<void> unlock(std::uint64_t offset = 0, std::uint64_t length = 0);
  /// A lock that would be in the way of `range`; none: it would be granted.
  Result<std::optional<LockRange>> test_lock(const LockRange& range);

  // --- holes, space and copies: NFSv4.2; ENOSYS before ---
  /// Where the first data or hole at or behind `offset` begins; the end of the file is a hole.
  /// ENXIO: there is none.
  Result<std::uint64_t> seek(std::uint64_t offset, SeekWhat what);
  /// Space for these bytes; a shorter file becomes longer.
  Result<void> allocate(std::uint64_t offset, std::uint64_t length);
  /// Makes these bytes a hole; the file does not become longer.
  Result<void> deallocate(std::uint64_t offset, std::uint64_t length);
  /// Has the server copy at most `length` bytes to `to`, a File of the same Mount, and says how
  /// many they were; 0: this file ends at `offset`. They are on stable storage then. EXDEV: another
  /// mount. EOPNOTSUPP: the server does not do it; within one file, because it cannot clone.
  Result<std::uint64_t> copy_range(std::uint64_t offset, File& to, std::uint64_t to_offset,
                                   std::uint64_t length);

  /// fsync(), then gives the file up, and its locks. Its errors are the last chance to hear of lost
  /// data.
  Result<void> close();

  struct Impl;  // the library's own

 private:
  friend class Mount;
  explicit File(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Mount {
 public:
  /// Connects and mounts. `url`:
  ///   nfs://host[:port]/export/path?proto=rdma|tcp|auto&fabric=auto|verbs|iwarp&vers=3|4|4.0|4.1|4.2
  ///     &tcpport=N&mountport=N&uid=N&gid=N&rsize=N&wsize=N&timeo=DECISECONDS&retrans=N&soft|hard
  ///     &nconnect=N&credits=N&inline=N
  /// Without vers= it is the newest version that the server has.
  /// The export may be any prefix of the path; the longest one is mounted. Where the path leads
  /// over referrals of NFSv4 servers to others, this Mount is the last one's. On an error *detail
  /// (optional) gets one line for people: what was tried, and what helps.
  static Result<Mount> open(std::string_view url, std::string* detail = nullptr);

  Mount(Mount&&) noexcept;
  Mount& operator=(Mount&&) noexcept;
  ~Mount();

  Result<struct stat> stat(std::string_view path);
  Result<struct stat> lstat(std::string_view path);
  /// `flags`: O_RDONLY, O_WRONLY, O_RDWR with O_CREAT, O_EXCL, O_TRUNC, O_SYNC, O_DSYNC,
  /// O_NOFOLLOW, O_DIRECTORY. Permission is asked of the server. `mode` is taken as it is (no
  /// umask).
  Result<File> open(std::string_view path, int flags, mode_t mode = 0666);
  /// The same, and while the File is open nobody else may have the file open for what `deny` says:
  /// no other client whose opens the server knows (NFSv4.1 and later; of NFSv4.0 those that tell
  /// it, as opens with a ShareDeny do; others of NFSv4.0 are refused when they read or write,
  /// NFSv3 and processes on the server are not), and no other File of this Mount. From NFSv4 on;
  /// EOPNOTSUPP before. EACCES: also where others have
  /// it open for that, or deny what `flags` ask for. It ends with File::close(), lives through lost
  /// connections and restarts of the server, and can be lost as locks can: calls that read, write
  /// or lock the file, or change its size or space, are EIO then until the File is closed. A file
  /// that is made is denied from the first moment on, but by NFSv4.0, where another may be in
  /// between. EINVAL: no regular file.
  Result<File> open(std::string_view path, int flags, mode_t mode, ShareDeny deny);
  /// Makes `path` a file with `data` and nothing else, on stable storage: open() with O_WRONLY |
  /// O_CREAT | O_TRUNC, pwrite() and close() in one call. A small file (up to 64 KiB, and wsize)
  /// is one request to servers of NFSv4.1 and later: OPEN, WRITE and CLOSE in one COMPOUND
  /// (RFC 8881, 16.2.3.1.2). `data`: any length, used during the call only. `mode`: of a new file,
  /// as it is (no umask). From any thread. Errors: those of open() and pwrite(); the file may be
  /// there then, empty or with some of the data.
  Result<void> write_file(std::string_view path, std::span<const std::byte> data,
                          mode_t mode = 0666);
  Result<std::vector<DirectoryEntry>> readdir(std::string_view path);
  Result<std::vector<DirectoryEntry>> readdirplus(std::string_view path);
  Result<void> rename(std::string_view from, std::string_view to);
  Result<void> unlink(std::string_view path);
  Result<void> mkdir(std::string_view path, mode_t mode = 0777);
  Result<void> rmdir(std::string_view path);
  Result<void> symlink(std::string_view target, std::string_view path);
  Result<void> link(std::string_view existing, std::string_view path);
  Result<std::string> readlink(std::string_view path);
  Result<void> truncate(std::string_view path, std::uint64_t size);
  Result<void> chmod(std::string_view path, mode_t mode);
  /// -1 leaves an id as it is. lchown() changes a link itself.
  Result<void> chown(std::string_view path, uid_t uid, gid_t gid);
  Result<void> lchown(std::string_view path, uid_t uid, gid_t gid);
  /// `follow` false: a link itself.
  Result<void> utimens(std::string_view path, FileTime access, FileTime modification,
                       bool follow = true);
  Result<FileSystemInfo> statfs(std::string_view path = "");
  /// Where the first referral leads that `path` ends in or crosses, in order of preference;
  /// nothing: it meets none. Other calls go where it leads, but lstat() of a referral itself and
  /// readdir() of what it is in. Hosts and paths are checked (no "..", nothing that is no host's
  /// name).
  Result<std::vector<ReferralTarget>> referral(std::string_view path);

  /// Bytes of memory that Files of this mount take together for written, not yet stable data
  /// (default 64 MiB), and as many again behind each referral. More makes the oldest be committed
  /// first, and a large pwrite in parts; 0 makes every pwrite stable.
  void set_unstable_limit(std::size_t bytes);
  std::vector<ConnectionStatus> connections();

  struct Impl;  // the library's own

 private:
  friend class File;
  explicit Mount(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace nfsrdma::client
