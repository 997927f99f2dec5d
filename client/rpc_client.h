// SPDX-License-Identifier: Apache-2.0
// RpcClient: RPC calls to one server, over one or more connections that are made again when they
// break. A call is answered, or fails for one of these: its operation was cancelled (EINTR), the
// mount is soft and time is up (ETIMEDOUT), everything was aborted (EIO), the server refused it, or
// it cannot be sent at all.
//
// A lost connection costs the callers nothing but time: unanswered calls go out again, with the
// same xid, so that the server's duplicate request cache knows them.
//
// On the environment's thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/backoff.h"
#include "client/client_environment.h"
#include "client/put_off.h"
#include "client/rpc_call.h"
#include "client/rpc_connection.h"
#include "rpcrdma/base/task.h"

namespace nfsrdma {

struct RpcClientOptions {
  std::vector<TransportCandidate> candidates;
  std::string left_out;  // transports that were wanted but are not candidates, and why
  bool soft = false;
  Duration timeo = std::chrono::seconds(60);
  std::uint32_t retrans = 2;
  std::uint32_t connections = 1;
  Duration idle_timeout = std::chrono::seconds(300);  // zero: never
  Duration connect_timeout = std::chrono::seconds(15);
  Duration silence =
      std::chrono::seconds(5);      // that, for a candidate behind which there is another
  std::shared_ptr<PutOff> put_off;  // null: nobody is told
};

struct RpcClientObserver {
  std::function<void(const ConnectionInfo&)> connected;
  std::function<void(const std::string& why)> disconnected;
  std::function<void()> not_responding;
  std::function<void()> responding;
};

class RpcClient {
 public:
  RpcClient(std::unique_ptr<ClientEnvironment> environment, RpcClientOptions options);
  /// No call may be under way.
  ~RpcClient();
  RpcClient(const RpcClient&) = delete;
  RpcClient& operator=(const RpcClient&) = delete;

  /// Makes the first connection: one round over all candidates. Further connections follow behind
  /// it. On an error *detail, which outlives the Task, says what was tried. EINTR: cancelled; it
  /// goes on connecting. From then on no other address is gone to: behind the others of a name may
  /// be other servers.
  Task<Result<void>> connect(std::string* detail, CancelToken* cancel = nullptr);

  /// A call with its header encoded. `arguments`: their bytes, without payload, where that is more
  /// than handles and names.
  RpcCallLease prepare(std::uint32_t program, std::uint32_t version, std::uint32_t procedure,
                       const OpContext& op, std::size_t arguments = 0);
  Task<void> sleep(Duration duration, CancelToken* cancel);
  /// The server has said "later" to this call once more; the log tells of it when that is due.
  void put_off(const PutOff::Call& call) const;
  /// Goes on from the event loop, with nothing of the client on the stack: before destroying it.
  Task<void> yield();

  void set_observer(RpcClientObserver observer) { observer_ = std::move(observer); }
  /// A further connection, to another address of the server (rpc_connection.h). It stays.
  RpcConnection& add_connection(std::vector<TransportCandidate> candidates);
  /// No further connection is certain to lead to the server any more: its identity is to change.
  void disown_further();
  /// There are calls, or there were some until just now.
  bool active() const { return outstanding() > 0 || quiet_ticks_ < kQuietTicks; }
  /// Connections that are made from now on go there. As many candidates as before.
  void redirect(std::vector<TransportCandidate> candidates);
  /// `lost` is told of each connection that breaks; nothing of the client may be called from there.
  void set_on_lost(std::function<void()> lost) { on_lost_ = std::move(lost); }
  /// `answer` gets the server's own calls (ClientTransportHandler::on_backward_call()).
  using BackwardAnswer = std::function<std::size_t(ByteSpan call, MutableByteSpan room)>;
  void set_on_backward_call(BackwardAnswer answer) { on_backward_call_ = std::move(answer); }
  /// Everything under way, and to come, fails with EIO.
  void abort_all();
  /// The way that the first connection took.
  TransportKind kind() const;
  /// Where it leads, or led; behind connect().
  const SocketAddress& address() const { return options_.candidates.front().address; }
  std::vector<ConnectionInfo> connections() const;
  TransferStats totals() const;
  std::size_t outstanding() const;
  /// Connections that were made, ever: as long as that stays, so does the server's process.
  std::uint64_t connections_made() const { return connections_made_; }
  const RpcClientOptions& options() const { return options_; }
  ClientEnvironment& environment() { return *environment_; }

 private:
  friend class RpcCall;
  friend class RpcCallLease;
  friend class RpcConnection;
  static constexpr unsigned kQuietTicks = 5;  // ticks without calls before the clock stops

  bool start(RpcCall& call);
  void release(RpcCall& call);
  RpcConnection& choose();
  bool another_is_ready(const RpcConnection& one) const;
  /// A connection is ready: no call waits for one that is not.
  void take_from_those_that_wait();
  void call_answered();
  void stay_at(const SocketAddress& address);
  void note_activity();
  void tick();
  void arm_tick();

  std::unique_ptr<ClientEnvironment> environment_;
  RpcClientOptions options_;
  RpcClientObserver observer_;
  std::function<void()> on_lost_;
  BackwardAnswer on_backward_call_;
  std::unique_ptr<Alarm> tick_;
  std::vector<std::unique_ptr<RpcConnection>> connections_;
  std::vector<std::unique_ptr<RpcCall>> calls_;
  std::vector<RpcCall*> free_calls_;
  std::size_t next_connection_ = 0;
  std::uint64_t connections_made_ = 0;
  unsigned quiet_ticks_ = 0;
  bool long_tick_ = false;
  bool aborted_ = false;
  bool not_responding_ = false;
  std::array<std::byte, 256> machine_name_{};
  std::size_t machine_name_bytes_ = 0;
};

}  // namespace nfsrdma
