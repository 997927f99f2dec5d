// SPDX-License-Identifier: Apache-2.0
// ServerContext: what all procedures share. Made once by main (or a test), alive longer than every
// shard, worker and committer thread. Members are thread-safe themselves; see their headers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rpcrdma/base/result.h"
#include "server/credentials.h"
#include "server/export_table.h"
#include "server/filehandle.h"
#include "server/files/read_costs.h"
#include "server/mount/mount_list.h"
#include "server/vfs/change_counter.h"
#include "server/vfs/change_witness.h"
#include "server/vfs/committer.h"
#include "server/vfs/delegation_guard.h"
#include "server/vfs/fd_cache.h"
#include "server/vfs/file_syncs.h"
#include "server/vfs/path_table.h"
#include "server/vfs/resolver.h"
#include "server/vfs/write_verifier.h"

namespace nfsrdma {

namespace nfs4 {
class ServerState;  // server/nfs4/server_state.h
}
namespace nlm {
class LockService;  // server/nlm/lock_service.h
}
namespace nsm {
class StatusMonitor;  // server/nsm/status_monitor.h
}
class CallingThread;

struct ServerOptions {
  std::string state_dir;           // exists or is made, 0700
  std::uint32_t rtmax = 1u << 20;  // largest READ and WRITE; up to 4 MiB
  std::uint32_t wtmax = 1u << 20;
  bool manage_gids = false;
  bool sync_names = true;            // false: NFSoRDMA_FSYNC=never
  bool read_pages = true;            // false: NFSoRDMA_READ_PAGES=no
  std::size_t max_cached_files = 0;  // 0: an eighth of RLIMIT_NOFILE, at most 16384
  unsigned committer_threads = 2;
  Committer::Calls committer_calls = Committer::system_calls();  // tests replace them
  SchemeChoice handle_scheme = SchemeChoice::kBest;
  std::unique_ptr<HostNames> host_names;  // null: the system's
};

class ServerContext {
 public:
  /// Reads or makes the handle key, starts the committer and the descriptor cache's sweeper.
  static Result<std::unique_ptr<ServerContext>> create(ServerOptions options);
  ~ServerContext();

  /// Before calls are served.
  void serve_nfs4(std::unique_ptr<nfs4::ServerState> state);
  /// Locks of NFSv3. After serve_nfs4(), whose state it uses.
  Result<void> serve_nlm();

  std::uint32_t rtmax() const { return rtmax_; }
  std::uint32_t wtmax() const { return wtmax_; }
  /// Do changes of names and attributes wait for the disk, on exports that are sync?
  bool sync_names() const { return sync_names_; }

  ExportTable exports;
  HandleCodec handles;
  PathTable paths;
  ChangeWitness changes;
  ChangeCounter change_counter;
  WriteVerifier verifier;
  FileSyncs syncs{verifier};
  FdCache files;
  Resolver resolver;
  Committer committer;
  ReadCosts read_costs;
  MountList mounts;
  std::unique_ptr<GroupSource> groups;      // null without manage-gids
  std::unique_ptr<nfs4::ServerState> nfs4;  // null without version 4 and NLM
  std::unique_ptr<nlm::LockService> nlm;    // null without it
  std::unique_ptr<nsm::StatusMonitor> nsm;  // null with it
  DelegationGuard* delegations = nullptr;   // the state's, null as well

 private:
  ServerContext(ServerOptions& options, const HandleCodec::Key& key);
  std::string state_dir_;
  bool sync_names_;
  std::uint32_t rtmax_;
  std::uint32_t wtmax_;
  std::unique_ptr<CallingThread> calling_;  // of nlm and nsm
};

}  // namespace nfsrdma
