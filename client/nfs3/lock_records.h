// SPDX-License-Identifier: Apache-2.0
// LockRecords: what this mount may hold on a server of NFSv3, in a file that outlives it. Such a
// server keeps the locks of a client that died until somebody says that they are nobody's: the next
// mount of that server does (FileLocks::free_of_the_dead).
//
// One file for each mount that ever locked anything, in a directory of the user's own; whoever made
// it has it locked by flock(2) while he lives. Text:
//
//   nfs-rdma locks 1
//   server ADDRESS RDMA_PORT TCP_PORT     as mounted, a line for each address
//   caller ID NAME                        as NLM knows it
//   lock SVID UID GID[,GID...] HANDLE     one that has locks, or had
//
// What is there too much does no harm: to unlock what is not locked is nothing. The head is on the
// disk before the first lock is asked for; lines are written and left to the kernel. So nothing is
// forgotten when the program dies, and little when the machine does.
//
// On one thread; the file's beginning is made on another. A directory that cannot be written to is
// told of once, and done without.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "client/client_environment.h"
#include "client/mount_settings.h"
#include "client/nfs3/lock_manager.h"
#include "client/occasion.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma::nfs3 {

/// The server of a mount, as records tell one from another.
struct RecordedServer {
  std::vector<std::string> addresses;
  std::uint16_t rdma_port = 0;  // 0: not by this one
  std::uint16_t tcp_port = 0;

  static RecordedServer of(const MountSettings& settings);
  /// They have an address in common, and a port.
  bool may_be(const RecordedServer& other) const;
};

class LockRecords {
 public:
  /// `directory` is made when it is needed.
  LockRecords(ClientEnvironment& environment, std::string directory, RecordedServer server,
              LockCaller caller);
  ~LockRecords();
  LockRecords(const LockRecords&) = delete;
  LockRecords& operator=(const LockRecords&) = delete;

  /// Before anything is noted. Ends early when `cancel` says so.
  Task<void> begin(CancelToken* cancel);
  /// An owner that may have locks from now on, by whom they are asked for, and no more.
  void note(std::uint32_t svid, const AuthSys& identity, const FileHandle& file);
  void forget(std::uint32_t svid, const FileHandle& file);
  /// Nothing is held any more.
  void remove();
  /// Of the file; "": there is none.
  const std::string& path() const { return path_; }

 private:
  struct Making;
  void made(Making& making);
  void take(Making& made);
  void write(std::string_view text);
  /// Lines of the dead are most of it.
  void begin_anew();
  void failed(int number);

  ClientEnvironment& environment_;
  const std::string directory_;
  const LockCaller caller_;
  const std::string head_;
  enum class State : std::uint8_t { kNone, kMaking, kThere, kFailed };
  State state_ = State::kNone;
  std::shared_ptr<Making> making_;
  UniqueFd fd_;
  std::string path_;
  std::size_t bytes_ = 0;
  unsigned generation_ = 0;
  std::unordered_map<std::string, std::string> alive_;  // lines, by owner and file
};

/// A mount that is no more, and what it may have left on the server. Nobody else sees it as such
/// while this lives.
struct DeadRecord {
  struct Owner {
    std::uint32_t svid = 0;
    AuthSys identity;
    FileHandle file;
  };
  UniqueFd fd;
  std::string path;
  RecordedServer server;
  LockCaller caller;
  std::vector<Owner> owners;

  /// It has left nothing any more.
  void remove();
};

/// Of mounts of `server`.
std::vector<DeadRecord> dead_records(const std::string& directory, const RecordedServer& server);
/// False: this is no such file, or one that was not written to its end.
bool parse_lock_record(std::string_view text, DeadRecord* record);

}  // namespace nfsrdma::nfs3
