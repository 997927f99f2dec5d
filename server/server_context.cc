// SPDX-License-Identifier: Apache-2.0
#include "server/server_context.h"

#include <sys/resource.h>

#include <algorithm>

#include "server/calling_thread.h"
#include "server/group_source.h"
#include "server/nfs4/server_state.h"
#include "server/nlm/lock_service.h"
#include "server/nsm/status_monitor.h"

namespace nfsrdma {

namespace {

/// An entry holds up to three descriptors; connections and what clients of NFSv4 hold
/// (server/nfs4/limits.cc) need some as well.
std::size_t default_cached_files() {
  constexpr std::size_t kMost = 16384;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMost;
  return std::clamp<std::size_t>(limit.rlim_cur / 8, 64, kMost);
}

std::unique_ptr<HostNames> names_or_system(std::unique_ptr<HostNames>& names) {
  return names ? std::move(names) : make_system_host_names();
}

}  // namespace

ServerContext::ServerContext(ServerOptions& options, const HandleCodec::Key& key)
    : exports(names_or_system(options.host_names), options.handle_scheme),
      handles(key),
      paths(options.state_dir),
      files(syncs,
            options.max_cached_files != 0 ? options.max_cached_files : default_cached_files()),
      resolver(handles, files, paths, changes, change_counter),
      committer(syncs, std::max(1u, options.committer_threads), options.committer_calls),
      groups(options.manage_gids ? make_system_group_source() : nullptr),
      state_dir_(options.state_dir),
      sync_names_(options.sync_names),
      rtmax_(options.rtmax),
      wtmax_(options.wtmax) {
  if (!options.read_pages) read_costs.never_pages();
}

void ServerContext::serve_nfs4(std::unique_ptr<nfs4::ServerState> state) {
  nfs4 = std::move(state);
  delegations = nfs4 != nullptr ? &nfs4->delegations : nullptr;
}

Result<void> ServerContext::serve_nlm() {
  NFSRDMA_TRY(calling_, CallingThread::start());
  nlm = std::make_unique<nlm::LockService>(*nfs4, *calling_);
  NFSRDMA_TRY(nsm, nsm::StatusMonitor::start(*nlm, *calling_, state_dir_));
  return {};
}

ServerContext::~ServerContext() {
  if (calling_ != nullptr) calling_->stop();
  nsm.reset();
  nlm.reset();
}

Result<std::unique_ptr<ServerContext>> ServerContext::create(ServerOptions options) {
  NFSRDMA_TRY(const HandleCodec::Key key, HandleCodec::load_or_create_key(options.state_dir));
  prepare_serving_process();
  return std::unique_ptr<ServerContext>(new ServerContext(options, key));
}

}  // namespace nfsrdma
