// SPDX-License-Identifier: Apache-2.0
// NfsServer: the whole server as an object: context, workers, duplicate request cache, shards,
// listeners. main.cc makes one from the command line; tests make one with whatever fabrics they
// like.
//
// Threads: made, asked and stopped on one thread, whose loop (`acceptor`) also accepts connections.
// Lifetimes: the fabrics given are owned and outlive the shards.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/exports_file.h"
#include "rpcrdma/fabric.h"
#include "rpcrdma/tcp_server.h"
#include "server/capture/capture.h"
#include "server/reply_cache.h"
#include "server/rpcbind.h"
#include "server/server_context.h"
#include "server/shard.h"
#include "server/shard_survey.h"
#include "server/status_report.h"
#include "server/trace.h"
#include "server/worker_pool.h"

namespace nfsrdma {

class NfsServer final : private IncomingHandler {
 public:
  struct FabricUse {
    std::unique_ptr<Fabric> fabric;
    bool required = true;  // false: a listener that cannot be had is a warning
  };
  struct Options {
    Config config;                      // addresses, ports, sizes; paths resolved
    std::vector<SocketAddress> listen;  // ports are ignored; empty: every address
    std::vector<FabricUse> fabrics;
    std::vector<ProgramTable> programs;
    std::unique_ptr<HostNames> host_names;  // null: the system's
    /// Hears, during the start, what is asked next and may not answer; may be empty.
    std::function<void(std::string what)> waits_for = {};
  };
  struct ListenerInfo {
    std::string transport;  // "iwarp", "verbs", "tcp", "udp"
    SocketAddress address;
    bool rdma = false;
  };

  /// Makes everything and listens. On an Error *why says it for people.
  static Result<std::unique_ptr<NfsServer>> start(EventLoop& acceptor, Options options,
                                                  std::string* why);
  ~NfsServer() override;

  /// Swaps in new exports; what cannot be opened is reported and left out. May block.
  void set_exports(const std::vector<ExportEntry>& entries, ConfigProblems* problems);
  /// For `status`, after context().exports was reloaded on another thread. Threads let go of the
  /// exports from before. What comes by UDP is served from the first time on.
  void note_exports(std::vector<ExportEntry> entries);

  const std::vector<ListenerInfo>& listeners() const { return listener_infos_; }
  ServerContext& context() { return *context_; }
  /// Registers with rpcbind, when configured. Blocks for at most some seconds.
  void register_with_rpcbind();
  /// `done` gets what there is to tell, with up to `clients` of NFSv4 one by one, later. Of shards
  /// that do not answer it is what they told last. On the acceptor's thread.
  void collect(std::size_t clients, std::function<void(const StatusInputs&)> done);
  /// The same as the status document.
  void collect_status(std::size_t clients, std::function<void(std::string json)> done);
  /// Calls that take longer are logged from now on; 0: none.
  void log_slow(std::uint64_t milliseconds);
  /// Ends the connections of a client and all that it holds by NFSv4. `who`: a host address, or the
  /// id of an NFSv4 client as `status` shows it.
  struct Evicted {
    std::size_t connections = 0;
    std::vector<std::string> nfs4_clients;  // their ids
    std::size_t silent_shards = 0;          // these end their connections when they come round
  };
  void evict(const std::string& who, std::function<void(const Evicted&)> done);
  /// Takes from all clients what they hold of a file, or of all files of a mounted file system, and
  /// closes them. `done` gets the document that tells, or why not, later.
  void release(const std::string& path, std::function<void(std::string json)> done);
  Trace& trace() { return *trace_; }
  Capture& capture() { return *capture_; }

  /// Of each shard's thread: has it come round since it was last asked?
  struct SignOfLife {
    std::string name;
    pid_t thread = 0;
    bool answered = false;
  };
  void ask_for_signs_of_life();
  std::vector<SignOfLife> signs_of_life() const;

  /// Stops listening, lets calls in progress end, closes the connections. False when some did not
  /// end within `patience` and a second (a file system that hangs): the process should just exit.
  bool stop(std::chrono::milliseconds patience);

 private:
  NfsServer(EventLoop& acceptor, Options options);
  void tell_wait(std::string what) const;
  Result<void> make_parts(std::string* why);
  Result<void> listen_all(std::string* why);
  bool listens(const std::string& transport) const;
  bool serves(std::uint32_t program) const;
  Result<void> listen_fabric(FabricUse& use, const std::vector<SocketAddress>& addresses,
                             std::string* why);
  Result<void> listen_tcp(const std::vector<SocketAddress>& addresses, std::string* why);
  void listen_udp(const SocketAddress& address);
  void judge_registration(const RpcbindRegistrar::Outcome& outcome);
  std::vector<SocketAddress> addresses_to_listen() const;
  void on_incoming(std::unique_ptr<Incoming> incoming) override;
  void take_socket(UniqueFd socket);
  /// Of all shards. Any thread, once they are made.
  std::size_t connections() const;
  Shard& shard_for_connection();
  void tell(std::size_t clients, const std::function<void(const StatusInputs&)>& done) const;
  class Release;

  EventLoop& acceptor_;
  Options options_;
  SteadyClock clock_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::unique_ptr<ServerContext> context_;
  std::unique_ptr<ReplyCache> replies_;
  std::unique_ptr<WorkerPool> workers_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<ShardReport> reports_;  // what each told last
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Capture> capture_;
  std::size_t last_shard_ = 0;
  std::vector<std::unique_ptr<Listener>> rdma_listeners_;
  std::vector<std::unique_ptr<TcpListener>> tcp_listeners_;
  std::vector<UniqueFd> datagrams_;  // bound, and not served before there are exports
  std::vector<ListenerInfo> listener_infos_;
  std::vector<ExportEntry> exports_;
  std::unique_ptr<RpcbindRegistrar> registrar_;
  RateLimit full_{5, std::chrono::seconds(10)};
  ShardSurvey survey_;
  /// A thread for release(), which may block in a file system.
  std::unique_ptr<WorkerPool> releasing_;
  std::size_t releases_ = 0;                                    // that have not ended
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for what was posted to the loop
};

}  // namespace nfsrdma
