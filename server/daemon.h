// SPDX-License-Identifier: Apache-2.0
// Daemon: the running nfs-rdmad. Signals, exports and their reloads, the control socket, the
// service manager's notifications and watchdog; the server itself is NfsServer.
//
// Threads: everything on the thread that calls run(), whose loop also accepts connections.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "server/command_line.h"
#include "server/control.h"
#include "server/daemonize.h"
#include "server/export_service.h"
#include "server/nfs_server.h"
#include "server/watchdog.h"

namespace nfsrdma {

class Daemon final : private FdWatcher {
 public:
  /// `settings` were made from `line`, which is read again at a reload.
  Daemon(CommandLine line, Settings settings, std::vector<NfsServer::FabricUse> fabrics);
  ~Daemon() override;

  /// False when it could not start; why is in the log.
  bool start();
  /// What the exports say is why: to try again does not help.
  bool configuration_is_wrong() const { return configuration_is_wrong_; }
  /// Says "ready" to whoever started us.
  void announce(Daemonizer& daemonizer);
  /// Until SIGTERM or SIGINT.
  void run();

 private:
  void on_fd_ready(std::uint32_t) override;
  bool catch_signals();
  bool open_control_socket();
  void open_metrics();
  void answer_requests();
  bool load_first_exports();
  void tell_limits() const;
  void warn_about_reach() const;
  /// Reads configuration and exports again; then `done`, if any, on the loop's thread.
  using ReloadDone = std::function<void(const ExportService::Report&)>;
  void reload(ReloadDone done);

  CommandLine line_;
  Settings settings_;
  std::vector<NfsServer::FabricUse> fabrics_;
  std::unique_ptr<EventLoop> loop_;
  UniqueFd signals_;
  std::unique_ptr<NfsServer> server_;
  std::unique_ptr<ExportService> exports_;
  std::unique_ptr<ControlSocket> control_;
  std::unique_ptr<ControlSocket> metrics_;
  std::unique_ptr<Watchdog> watchdog_;
  bool configuration_is_wrong_ = false;
};

}  // namespace nfsrdma
