// SPDX-License-Identifier: Apache-2.0
// ExportService: which exports are in force, and everything that changes that: the start, SIGHUP,
// the requests `exports` of the control socket (`nfs-rdma exports`), and file systems that are
// mounted or unmounted where an export waits for that. Reading the files again also reads the
// configuration again and finds out what of it may change.
//
// What may block (files, the name service, opening directories) runs on the service's own thread,
// one after the other. Everything else is for the loop's thread, callbacks too.
//
// Lifetimes: the loop and the table outlive the service. The destructor waits for what runs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/unique_fd.h"
#include "server/command_line.h"
#include "server/control.h"
#include "server/export_explain.h"
#include "server/export_table.h"
#include "server/reload.h"

namespace nfsrdma {

class ExportService final : private FdWatcher {
 public:
  struct Hooks {
    /// Other exports are in force.
    std::function<void(const std::vector<ExportEntry>&)> on_exports;
    /// Keys of rdma.conf changed; to be put in force: plan.apply, with values of plan.settings.
    std::function<void(const ReloadPlan&)> on_settings;
    /// What is exported is in another mount now; these (st_dev) it was in before, and files of them
    /// may be kept open. On the service's thread.
    std::function<void(const std::set<std::uint64_t>& devices)> on_left = {};
  };
  /// What reading everything again did. Not ok: nothing changed.
  struct Report {
    bool ok = false;
    std::vector<std::string> changes;   // for people; empty: none
    std::vector<std::string> left_out;  // paths of exports that were served and are not any more
    ConfigProblems problems;            // what is wrong; of exports that are left out, too, when ok
    ConfigProblems notices;
  };

  /// `settings`: what make_settings() has made of `line`.
  ExportService(EventLoop& loop, ExportTable& table, CommandLine line, Settings settings,
                Hooks hooks);
  ~ExportService() override;
  ExportService(const ExportService&) = delete;
  ExportService& operator=(const ExportService&) = delete;

  /// Begins nothing more.
  void begin_end();
  /// The same, and true as soon as nothing runs; false at `deadline`: a file system or the name
  /// service hangs, and so would the destructor.
  bool stop(std::chrono::steady_clock::time_point deadline);

  /// At the start, on this thread. Not ok: the server must not start.
  Report load();
  /// Reads configuration and exports again; temporary exports are gone then. Says in the log what
  /// changed. `done` may be empty. Those who ask while nothing has begun are answered together.
  void reload(std::function<void(const Report&)> done);
  /// A request `exports`: {"action":"list"|"add"|"remove"|"reread"|"explain", "client":..,
  /// "path":.., "options":..}.
  void answer(const JsonValue& request, ControlSocket::Done done);

  const std::vector<ExportEntry>& entries() const { return shown_.entries; }
  const Settings& settings() const { return settings_; }

 private:
  /// Where an export was opened.
  struct ServedPlace {
    std::uint64_t device = 0;
    int mount_id = -1;
    std::uint64_t inode = 0;
    std::set<std::string> unmounted;  // as in ExportPlace

    bool is_at(const ServedPlace& other) const {
      return device == other.device && mount_id == other.mount_id && inode == other.inode;
    }
  };
  /// Something that may block, and what is to be done on the loop's thread afterwards.
  using Finish = std::function<void()>;
  using Job = std::function<Finish()>;
  bool start_thread(Report* report);
  void run_aside(Job job);
  void work();
  // On the service's thread, or before there is one:
  ExportsInForce open(std::vector<ExportEntry> entries,
                      ExportTable::Keep keep = ExportTable::Keep::kUnreachable);
  Finish read_again();
  Finish change(const JsonValue& request, const ControlSocket::Done& done);
  Finish look_at_mounts();
  void tell_of_places(const std::vector<ExportEntry>& before,
                      const std::map<std::string, ServedPlace>& served, const ExportsInForce& now,
                      Report* report);
  // On the loop's thread:
  void on_fd_ready(std::uint32_t events) override;
  void show(const ExportsInForce& fresh);

  EventLoop& loop_;
  ExportTable& table_;
  const CommandLine line_;
  Hooks hooks_;
  // The loop's thread:
  Settings settings_;
  ExportsInForce shown_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for what was posted to the loop
  UniqueFd mounts_;                                             // tells of mounts and unmounts
  bool looking_at_mounts_ = false;
  bool look_again_ = false;
  // The service's thread:
  std::vector<ExportEntry> entries_;
  std::map<std::string, ServedPlace> served_;  // by path
  ConfigProblems problems_;                    // with the others
  std::set<std::string> waiting_;              // paths of those that are not there, or not mounted

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::queue<Job> jobs_;
  std::vector<std::function<void(const Report&)>> reload_asked_;
  bool reload_queued_ = false;
  bool ending_ = false;
  bool running_ = false;  // a job is under way

  std::thread thread_;  // made by load()
};

/// The control socket's answer with it.
std::string report_document(const ExportService::Report& report);

}  // namespace nfsrdma
