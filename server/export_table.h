// SPDX-License-Identifier: Apache-2.0
// The exports as the server uses them: open directories with a stable id, and the answer to "may
// this client, and how". Made from config/exports_file.h's plain values.
//
// Lifetimes: an ExportSnapshot never changes. reload() makes a new one and swaps it in; calls that
// run meanwhile finish with the old one. current() returns a reference that stays valid on this
// thread until its next current() call (each thread keeps the snapshot it last used).
//
// Access: of the clients of an export that match, the first kind decides in the order of
// exports(5): single host, network, wildcard, netgroup, everyone; of one kind the first in the
// file. Matching by name or netgroup needs the name service and may block; addresses never do.
// Anybody can make us ask, and whose reverse zone it is says how long that takes: so a question is
// asked once at a time, by few threads at a time, and not at all where the port alone decides. What
// nobody could answer the last time is passed over where another client of the export decides, and
// asked for anew on a thread that no call waits for: a name of a host that is gone costs its
// time-out once, and not each minute.
//
// Export ids: from `fsid=` when given, else from the path. So a handle outlives restarts, reboots
// and moves of the data to another disk as long as either stays the same.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "config/exports_file.h"
#include "rpcrdma/base/result.h"
#include "rpcrdma/base/unique_fd.h"
#include "rpcrdma/call.h"
#include "server/credentials.h"
#include "server/filehandle.h"

namespace nfsrdma {

/// Handles of an export: the kernel's where they work; kInode makes ours everywhere, for tests.
enum class SchemeChoice : std::uint8_t { kBest, kInode };

/// A file system of an export: the export's own, or one mounted below it (crossmnt).
struct MountPoint {
  UniqueFd root;             // O_PATH; the export's directory, or the root of the mount
  UniqueFd handle_base;      // the same directory for open_by_handle_at, which refuses O_PATH
  std::uint32_t key = 0;     // mount key of handles
  int mount_id = -1;         // as name_to_handle_at reports it
  std::uint64_t device = 0;  // st_dev of the root
  std::uint64_t root_inode = 0;
  std::uint64_t fsid = 0;  // fattr3.fsid
  HandleScheme scheme = HandleScheme::kKernel;
  bool read_only = false;
  std::string below;  // its path below the export, "a/b"; "": the export's own

  /// mounted_on_fileid (RFC 8881 5.8.2.23) of its root: the inode number of the directory that
  /// `root` is mounted on, as that directory's own file system lists it; that of `root` where
  /// nothing is mounted there, and as long as the directory above cannot be read. Kept once found
  /// out, which reads that directory: then may block. 0: not known yet, and it may not block. Any
  /// thread.
  std::uint64_t mounted_on(bool may_block) const;

 private:
  mutable std::atomic<std::uint64_t> mounted_on_{0};
};

class ExportSnapshot;

/// What one client may do with one export.
struct ExportAccess {
  bool allowed = false;
  bool wrong_port = false;  // not allowed, and with a port below 1024 it would be or might be
  bool read_only = true;
  bool sync = true;
  bool secure = true;  // refused when the call came over TCP from a port above 1023
  bool readdirplus = true;
  bool insecure_locks = false;  // NLM does not ask whether the caller may use the file
  bool acls = true;             // NFSACL shows and sets them
  bool nohide = false;    // to be seen from the export above it, where version 3 has it mounted
  bool crossmnt = false;  // what is mounted below the export is part of it
  /// sec=: callers of other flavours are refused.
  bool serves_sys = true;
  bool serves_none = true;
  bool none_read_only = true;  // `read_only` of callers with AUTH_NONE
  /// refer=: to NFSv4 the file system is absent, and to be found at one of *locations.
  bool referral = false;
  /// refer= or replicas=; null: none. Valid as long as the export.
  const std::vector<FsLocation>* locations = nullptr;
  SquashRule squash;
};

class Export {
 public:
  std::uint64_t id = 0;
  std::string path;                   // as exported
  std::vector<ExportClient> clients;  // in the order in which they decide
  bool is_root = false;               // fsid=0: what NFSv4 clients get as their root
  bool crossmnt = false;              // for some client: which one, ExportAccess says
  bool subtree_check = false;
  std::string real_path;  // of the directory when it was opened, symbolic links resolved
  /// Where nothing was mounted then: who is let in with mountpoint= of such a place, is not.
  std::set<std::string> unmounted;
  std::shared_ptr<MountPoint> top;
  const ExportSnapshot* snapshot = nullptr;  // that it is part of

  /// The file system with that key; null when there is none (any more). Looks through the mounts
  /// below the export when the key is new. Any thread.
  std::shared_ptr<MountPoint> mount(std::uint32_t key) const;
  /// The file system whose root is `root` (O_PATH), just found by crossing a mount point.
  Result<std::shared_ptr<MountPoint>> adopt_mount(int root) const;
  /// Is there no mount that it asks for (mountpoint=)? Of its own clients.
  bool lacks_mount_of(const ExportClient& client) const;
  /// Forgets what is mounted below it of that file system, until somebody comes there again.
  void forget_mounts(const std::set<std::uint64_t>& devices) const;
  /// Is `path_fd` in the export? Looks upward through ".."; true if nobody knows where a file lies.
  bool contains(int path_fd) const;

 private:
  friend class ExportTable;
  SchemeChoice choice_ = SchemeChoice::kBest;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::uint32_t, std::shared_ptr<MountPoint>> below_;  // by key
};

class ExportSnapshot {
 public:
  std::uint64_t generation = 0;
  std::vector<std::unique_ptr<Export>> exports;  // in file order

  const Export* find(std::uint64_t id) const;
  /// The export whose directory is that object; of several (bind mounts) the nth, in file order.
  const Export* find_at(dev_t device, ino_t inode, std::size_t nth) const;
  /// The export that `path` (absolute, normalised) names or lies in, the longest one; for MOUNT.
  /// *rest: what of `path` goes beyond it, without leading slash.
  /// `shorter_than`: of those alone whose own path, which `path` begins with, is.
  const Export* find_path(std::string_view path, std::string_view* rest,
                          std::size_t shorter_than = std::string_view::npos) const;
  /// How much of `path` it matched, for shorter_than: to the next outer one.
  static std::size_t matched(std::string_view path, std::string_view rest) {
    const std::string_view top = path.substr(0, path.size() - rest.size());
    const std::size_t last = top.find_last_not_of('/');
    return last == std::string_view::npos ? 0 : last + 1;
  }

 private:
  friend class ExportTable;
  std::unordered_map<std::uint64_t, std::vector<const Export*>> by_inode_;
};

/// Asks the name service for the name of an address, and checks it forwards. Tests supply their
/// own. An Error: nobody knows, since the name service does not answer now; what it denies is a
/// value.
class HostNames {
 public:
  virtual ~HostNames() = default;
  /// All lower-case names that belong to `peer` for certain. May block for seconds.
  virtual Result<std::vector<std::string>> names_of(const SocketAddress& peer) = 0;
  /// All addresses of `host`.
  virtual Result<std::vector<SocketAddress>> addresses_of(const std::string& host) = 0;
  /// Has the netgroup a member whose host part is `host`? Members without one do not count.
  virtual Result<bool> in_netgroup(const std::string& group, const std::string& host) = 0;
};
std::unique_ptr<HostNames> make_system_host_names();

/// Describes the file system at `root` (O_PATH, a directory).
Result<std::shared_ptr<MountPoint>> open_mount(UniqueFd root, std::uint32_t key,
                                               SchemeChoice choice);

class ExportTable {
 public:
  /// A clock in seconds, for how long answers are kept.
  using Seconds = std::int64_t (*)();
  explicit ExportTable(std::unique_ptr<HostNames> names = make_system_host_names(),
                       SchemeChoice choice = SchemeChoice::kBest, Seconds clock = nullptr);
  ~ExportTable();

  /// Of exports that are in force: which are served on as they were opened before, when their
  /// directory cannot be opened now.
  enum class Keep : std::uint8_t {
    kUnreachable,  // those whose directory may be there, but cannot be looked at (EIO, ESTALE)
    kAll,          // also those without a directory or a mount: somebody else is to notice
  };
  /// Opens the directories of `entries` and swaps the new table in. An entry that cannot be opened
  /// is reported in *problems and, unless it is kept, left out; the others are served. Any thread
  /// but a loop's, one at a time.
  void reload(const std::vector<ExportEntry>& entries, ConfigProblems* problems,
              Keep keep = Keep::kUnreachable);

  /// The exports in force. Valid on this thread until its next call of current() or let_go().
  const ExportSnapshot& current() const;
  /// This thread uses no export for now, and keeps none that is in force no more: each holds
  /// directories open, whose file systems could not be unmounted.
  static void let_go();

  enum class Verdict : std::uint8_t { kKnown, kWouldBlock };
  /// What `peer` may do with `entry`, from whatever port, for threads of their own. kWouldBlock
  /// (only when !may_block): the name service has to be asked. Answers are kept for a minute; while
  /// it does not answer, for a day.
  Verdict access(const Export& entry, const SocketAddress& peer, bool may_block,
                 ExportAccess* access) const;
  /// The same for a call's connection and its port, remembered per thread: the fast path.
  /// kWouldBlock with may_block: somebody else asks already, or too many do (limit_questions()); to
  /// be tried again a moment later.
  Verdict access(const Export& entry, const ServerConnection& connection, bool may_block,
                 ExportAccess* access) const;
  /// The same, for what no privileged port is needed for.
  Verdict access_by_any_port(const Export& entry, const ServerConnection& connection,
                             bool may_block, ExportAccess* access) const;
  /// No privileged port is asked of it (man page), or it has one.
  static bool has_good_port(const ServerConnection& connection);

  /// How many calls may wait for the name service at a time; no limit at first. Before there are
  /// calls.
  void limit_questions(std::size_t most);
  /// A minute at first; for tests.
  void keep_answers_for(std::chrono::seconds lifetime);

  /// What each client of an export has to do with a peer, in the order in which they decide: the
  /// first that matches does.
  struct RuleVerdict {
    const ExportClient* client = nullptr;
    bool matches = false;
    bool lacks_mount = false;  // is refused if it decides: nothing is mounted there
    std::string why;           // "192.0.2.7 is in it", "its names are a.example.org", ...
  };
  /// Valid as long as the export. May block.
  std::vector<RuleVerdict> explain(const Export& entry, const SocketAddress& peer) const;

 private:
  class Names;
  struct Held;
  /// May the name service be asked?
  enum class Asking : std::uint8_t { kNever, kWhileFewDo, kAlways };
  /// How a list of clients is gone through.
  struct Question;
  /// What one export's client list says about a peer.
  Verdict judge(const Export& entry, const SocketAddress& peer, bool good_port, Asking asking,
                ExportAccess* access, bool* by_name) const;
  /// *decided: one of the clients is it, or none can be.
  Verdict go_through(const Export& entry, const SocketAddress& peer, bool good_port,
                     Question& question, ExportAccess* access, bool* by_name, bool* decided) const;

  std::uint64_t instance_;  // tells tables apart in the threads' memories
  SchemeChoice choice_;
  Seconds clock_;
  std::atomic<std::uint64_t> generation_{0};
  mutable std::mutex mutex_;
  std::shared_ptr<const ExportSnapshot> snapshot_;  // guarded by mutex_
  std::shared_ptr<Names> names_;                    // also of those who ask on threads of their own
};

}  // namespace nfsrdma
