// SPDX-License-Identifier: Apache-2.0
// RpcConnection: one place of an RpcClient for a connection. It makes a transport when there are
// calls, goes through the candidates until one connects, and makes the next one when that is lost.
//
//   kIdle --call--> kConnecting --ready--> kReady --lost, calls waiting--> kConnecting (at once)
//     ^                  | all candidates failed               |
//     |                  v                                     | lost, none waiting; idle
//     |             kBackoff --alarm--> kConnecting             v
//     +------------------------------------------------------ kIdle
//
// A further one leads to another address of the server (trunk.h). It connects when it is told to,
// carries calls from when it was shown that the same server is there (admit()) until it is lost.
//
// One that came to TCP where RDMA was wanted looks for that again from time to time, busy as it may
// be: an attempt beside it, and when a NULL is answered by way of that, nothing new is sent until
// all is answered. Then it is dropped, and made anew like one that was lost.
//
// What a lost connection leaves unanswered goes by another one that is ready, and waits for this
// one only where there is none.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "client/backoff.h"
#include "client/client_environment.h"
#include "client/gate.h"
#include "client/rpc_call.h"
#include "rpcrdma/base/task.h"

namespace nfsrdma {

class RpcConnection final : private Deferred {
 public:
  /// With `candidates` a further one.
  explicit RpcConnection(RpcClient& client, std::vector<TransportCandidate> candidates = {});
  ~RpcConnection() override;

  /// Sends `call` as soon as there is a connection.
  void submit(RpcCall& call);
  void withdraw(RpcCall& call);
  /// Connects when it is not connected.
  void wake();
  /// The same where others have enough to do, unless it has just failed, or was dropped without an
  /// answer; not for a further one.
  void wake_to_help();
  /// Housekeeping: time-outs and idleness.
  void tick(TimePoint now);
  void fail_all(Error why);
  /// What waits goes by other connections.
  void leave_to_others();

  bool ready() const { return state_ == State::kReady; }
  /// A call would be sent at once.
  bool sends() const { return ready() && !leaving_; }
  /// Calls may be given to it, though it may have to connect first.
  bool takes_calls() const { return !further() || (ready() && admitted_); }
  /// A further one that is ready leads to the same server.
  void admit();
  /// That is not certain any more. What is under way stays.
  void disown();
  /// Closes it, if it is ready. Not from within one of its calls.
  void hang_up(const std::string& why);
  bool idle() const { return state_ == State::kIdle; }
  std::size_t load() const { return load_; }
  ConnectionInfo describe() const;
  TransferStats totals() const;
  TransportKind kind() const { return kind_; }
  /// Where it leads, when it is ready.
  const SocketAddress& address() const { return address_; }
  /// What was tried and failed in the last round: "verbs ...: ...; iwarp ...".
  const std::string& failures() const { return failures_; }
  /// Woken when the connection became ready or a round of attempts failed.
  Gate& settled() { return settled_; }
  /// Woken when it was lost.
  Gate& gone() { return gone_; }

  /// Why the last round of attempts failed.
  Error last_error() const { return last_error_; }

 private:
  friend class RpcCall;

  /// A transport with its handler: word from one that was given up is not mistaken for its
  /// successor's.
  struct Link final : ClientTransportHandler {
    explicit Link(RpcConnection& o) : owner(o) {}
    void on_transport_ready() override {
      if (owner.link_.get() == this) owner.became_ready();
    }
    void on_transport_closed(Error why, const std::string& detail) override {
      if (owner.link_.get() == this) owner.closed(why, detail);
    }
    std::size_t on_backward_call(ByteSpan call, MutableByteSpan room) override {
      return owner.link_.get() == this ? owner.called(call, room) : 0;
    }
    RpcConnection& owner;
    std::unique_ptr<ClientTransport> transport;
    bool answered = false;
  };
  /// An attempt to find out whether RDMA is there, and carries calls: where it only connects, a
  /// mount that works is better off where it is.
  struct Probe final : ClientTransportHandler, ClientCall {
    Probe(RpcConnection& o, TimePoint until);
    void on_transport_ready() override { transport->submit(*this); }
    void on_transport_closed(Error, const std::string&) override { over(false); }
    void on_complete() override { over(ok); }
    void over(bool there) {
      if (owner.probe_.get() == this) owner.probed(there);
    }
    RpcConnection& owner;
    const TimePoint deadline;
    std::array<std::byte, 40> null_call;  // any answer will do, and be it that it is refused
    std::unique_ptr<ClientTransport> transport;
  };
  enum class State : std::uint8_t { kIdle, kConnecting, kReady, kBackoff };

  void start_round();
  void try_candidate();
  bool skip_candidate() const;
  void round_failed();
  void became_ready();
  void closed(Error why, const std::string& detail);
  void lost(const std::string& detail);
  /// By the server.
  std::size_t called(ByteSpan call, MutableByteSpan room);
  bool further() const { return !own_candidates_.empty(); }
  const std::vector<TransportCandidate>& candidates() const;
  void retire_link();
  void retry_after(Duration wait);
  void send_now(RpcCall& call);
  void send_waiting();
  /// `call` came back from the transport.
  void call_returned(RpcCall& call, bool answered);
  void requeue(RpcCall& call);
  bool expire_one(TimePoint now);
  bool presumed_dead(TimePoint now);
  bool overdue(TimePoint now);
  void run_deferred() override;
  void look_for_rdma(TimePoint now);
  void probed(bool there);
  void retire_probe();

  RpcClient& client_;
  State state_ = State::kIdle;
  std::unique_ptr<Link> link_;
  std::vector<std::unique_ptr<Link>> retired_;  // destroyed with nothing of theirs on the stack
  IntrusiveList<RpcCall, RpcCall> submitted_;   // in order of submission
  IntrusiveList<RpcCall, RpcCall> waiting_;
  std::size_t load_ = 0;
  std::size_t candidate_ = 0;
  std::string failures_;
  std::string fallback_reason_;
  TransportKind kind_ = TransportKind::kTcp;
  bool had_rdma_ = false;
  SocketAddress address_;
  std::uint16_t local_port_ = 0;  // of the last one by TCP
  std::unique_ptr<Probe> probe_;
  std::vector<std::unique_ptr<Probe>> probes_over_;  // destroyed like links
  TimePoint probe_at_{};
  Duration probe_wait_;
  std::size_t probe_candidate_ = 0;
  bool leaving_ = false;  // for RDMA, once all is answered
  TimePoint leave_until_{};
  unsigned rounds_failed_ = 0;  // since the last connection
  TimePoint help_after_{};      // not to be woken before only to help
  Error last_error_{};
  TimePoint last_used_{};
  Backoff backoff_;
  std::unique_ptr<Alarm> backoff_alarm_;
  TransferStats past_;
  Gate settled_;
  Gate gone_;
  bool admitted_ = false;
  const std::vector<TransportCandidate> own_candidates_;  // of a further one
};

}  // namespace nfsrdma
