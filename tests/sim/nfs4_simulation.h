// SPDX-License-Identifier: Apache-2.0
// Nfs4Simulation: one run of several clients against a real server, all that happens to them drawn
// from a seed: requests that take long, come twice or much later again, replies and connections
// that are lost, clients that fall silent for longer than a lease or start anew, servers that end
// and start again, with or without power.
#pragma once

#include "server/nfs4/state_report.h"
#include "server/nfs4/wire_values.h"
#include "tests/sim/nfs4_sim_callbacks.h"
#include "tests/sim/nfs4_sim_disk.h"
#include "tests/sim/nfs4_sim_owner_client.h"
#include "tests/sim/nfs4_sim_session.h"

namespace nfsrdma::test {

class Nfs4Simulation final : public SimWorld {
 public:
  static constexpr std::array kMinorVersions{1u, 2u, 0u, 1u, 0u};  // of its clients
  static constexpr std::size_t kClients = kMinorVersions.size();
  static constexpr Duration kLease = std::chrono::seconds(90);

  explicit Nfs4Simulation(std::uint64_t seed)
      : SimWorld(seed, kClients, kLease), harness_(options()) {
    // The harness has a client of its own; it does not take part.
    harness_.run(Operations4().add<OP_DESTROY_SESSION>({harness_.session.id}));
    harness_.run_bare(Operations4().add<OP_DESTROY_CLIENTID>({harness_.session.client}));
    begun_ = model.grace_end = model.now = harness_.clock.now();
    for (std::size_t i = 0; i < kClients; ++i) {
      const bool old = kMinorVersions[i] == 0;
      // To those of minor version 0 the server makes connections of its own.
      const std::string host = (old ? "127.0.0." : "192.0.2.") + std::to_string(10 + i);
      lines_.push_back(old ? std::make_unique<SimLine>(host) : nullptr);
      clients_.push_back(make_client(i));
      connections_.push_back(
          std::make_unique<StubConnection>(SocketAddress::parse(host, 700).value()));
      if (!old) connections_.back()->max_backward = 1000;
      silent_until_.push_back(model.now);
    }
    callbacks_.looked();
    connect_all();
  }

  /// How much of the past the complaint tells.
  std::size_t traced = 60;

  /// What was wrong, or nothing.
  std::string run(std::size_t steps) {
    for (std::size_t i = 0; i < steps && problem().empty(); ++i) {
      step();
      call_back();
      if (i % 64 == 0) check_counts();
    }
    if (problem().empty()) end();
    if (problem().empty()) return "";
    std::string out = problem() + "\n";
    for (const auto& [other, one] : model.delegations)
      out += "  " + text_of(one) + "\n";
    for (const std::string& line : trace_)
      out += "  " + line + "\n";
    return out;
  }
  struct Seen {
    std::size_t ran = 0, retried = 0, late = 0, restarts = 0, evicted = 0, given = 0, asked = 0;
    std::size_t reclaimed = 0;  // delegations
    SimModel::ByDelegation by_delegation;
    SimModel::Old old;  // clients' delegations
  };
  Seen seen() const {
    Seen out = seen_;
    out.given = model.delegations_given;
    out.reclaimed = model.delegations_reclaimed;
    out.by_delegation = model.by_delegation;
    out.old = model.old;
    return out;
  }

  const FileHandle& root() const override { return harness_.root(); }
  void session_made(std::size_t client, const xdr::sessionid4& session) override {
    sessions_[session].client = client;
  }
  void session_ended(const xdr::sessionid4& session) override { sessions_.erase(session); }
  void sessions_ended(std::size_t client) override {
    ++seen_.evicted;
    std::erase_if(sessions_, [client](const auto& one) { return one.second.client == client; });
    owners_.end_client(client);
  }
  bool still_holds(std::uint64_t client_id) override {
    const nfs4::StateReport report = nfs4::report_state(harness_.state(), 2 * kClients);
    return std::ranges::any_of(report.clients, [client_id](const auto& one) {
      return one.id == client_id && one.opens.states() != 0;
    });
  }

 private:
  struct Slot {
    std::uint32_t sequence = 0;
    std::vector<std::byte> answer;
    bool cached = false;
  };
  struct TrueSession {
    std::size_t client = 0;
    std::array<Slot, SimClient::kSlots> slots;
  };

  static HarnessOptions options() {
    HarnessOptions out;
    out.committer_calls = SimDisk::calls();
    return out;
  }
  std::unique_ptr<SimClient> make_client(std::size_t index) {
    if (lines_[index]) return std::make_unique<SimOwnerClient>(*this, index, *lines_[index]);
    return std::make_unique<SimSessionClient>(*this, index, kMinorVersions[index]);
  }
  void trace(const std::string& what) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(model.now - begun_);
    trace_.push_back(std::to_string(seconds.count()) + " s " + what);
    if (trace_.size() > traced) trace_.pop_front();
  }

  // --- what may happen ---

  void step() {
    const std::size_t dice = below(1000);
    if (dice < 80) return pass_time();
    if (dice < 130) return late_duplicate();
    if (dice < 140) return lose_connection(below(kClients));
    if (dice < 144) return restart(chance(50));
    if (dice < 146) return reboot(below(kClients));
    if (dice < 150) return fall_silent(below(kClients));
    const std::size_t client = below(kClients);
    if (is_silent(client)) return;
    act(client, below(SimClient::kSlots));
  }

  void act(std::size_t index, std::size_t slot) {
    SimClient& client = *clients_[index];
    SimRequestPtr& pending = client.pending[slot];
    if (pending) return deliver(index, slot);
    if (client.is_idle(slot)) return;
    pending = client.next(slot);
    if (chance(50)) deliver(index, slot);
  }

  void deliver(std::size_t index, std::size_t slot) {
    SimClient& client = *clients_[index];
    const SimRequestPtr request = client.pending[slot];
    const Reply4 reply = arrive(*request, "");
    if (!problem().empty()) return;
    if (chance(15)) return trace("  its reply is lost");
    remember(request);
    std::vector<SimRequestPtr> lost;
    client.hear(slot, reply, lost);
    for (const SimRequestPtr& one : lost)
      remember(one);
  }
  /// Copies of it may still be on their way.
  void remember(const SimRequestPtr& request) {
    constexpr std::size_t kRemembered = 40;
    past_.push_back(request);
    if (past_.size() > kRemembered) past_.erase(past_.begin());
  }
  void late_duplicate() {
    if (past_.empty()) return;
    SimRequest& copy = *past_[below(past_.size())];
    if (copy.same_turn_again) return;
    ++seen_.late;
    arrive(copy, "late: ");
  }

  void pass_time() {
    const std::size_t seconds = chance(20) ? 5 + below(40) : below(3);
    harness_.clock.move(std::chrono::seconds(seconds) + std::chrono::milliseconds(1 + below(900)));
    model.now = harness_.clock.now();
    // As the server's own thread does each second.
    {
      std::lock_guard lock(harness_.state().mutex);
      harness_.state().delegations.tick();
    }
    if (harness_.state().any_ended()) (void)harness_.state().settle();
  }
  /// What the server asks of its clients, and they answer.
  void call_back() {
    for (std::size_t i = 0; i < kClients && problem().empty(); ++i) {
      if (lines_[i]) {
        hear_all(i);
        callbacks_.pump(*lines_[i], *clients_[i], !is_silent(i));
      } else {
        callbacks_.pump(*connections_[i], *clients_[i], !is_silent(i));
      }
    }
    callbacks_.looked();
  }
  /// What the server has sent to a client of minor version 0 is on its way through the kernel.
  void hear_all(std::size_t client) {
    SimLine& line = *lines_[client];
    const auto begun = std::chrono::steady_clock::now();
    line.turn();
    for (;;) {
      const auto passed = std::chrono::steady_clock::now() - begun;
      const bool late = passed > std::chrono::milliseconds(50);
      if (!is_probed(client)) {
        if (late) waited_[client] = model.now;
        if (late || !is_called(client)) return;
      }
      if (passed > std::chrono::seconds(10)) return fail("a callback line that is not settled");
      line.wait_for_more();
      line.turn();
    }
  }
  bool is_probed(std::size_t client) {
    std::lock_guard lock(harness_.state().mutex);
    return harness_.state().caller.lines().state(model.clients[client].id) ==
           nfs4::CallbackLines::State::kUnknown;
  }
  /// And has not heard of it. Again and again is it called only as time passes.
  bool is_called(std::size_t client) {
    if (waited_[client] == model.now) return false;
    std::lock_guard lock(harness_.state().mutex);
    const nfs4::ServerState& state = harness_.state();
    const bool reachable =
        state.caller.lines().state(model.clients[client].id) == nfs4::CallbackLines::State::kUp;
    return reachable && std::ranges::any_of(model.delegations, [&](const auto& one) {
             xdr::stateid4 stateid;
             stateid.other = one.first;
             const nfs4::Delegation* its =
                 state.delegations.table().find(nfs4::number_in(nfs4::from_wire(stateid)));
             return one.second.client == client && its != nullptr &&
                    its->phase == nfs4::Delegation::Phase::kRecalled &&
                    !lines_[client]->has_heard_of(stateid);
           });
  }
  bool is_silent(std::size_t client) const { return model.now < silent_until_[client]; }
  void lose_connection(std::size_t client) {
    trace("client " + std::to_string(client) + " loses its connection");
    harness_.state().connection_lost(connections_[client]->id);
    callbacks_.cut(*connections_[client]);
    if (lines_[client]) lines_[client]->hang_up();
    connections_[client]->id = ++last_connection_;
    harness_.state().connection_opened(*connections_[client]);
    clients_[client]->connection_lost();
  }
  void fall_silent(std::size_t client) {
    trace("client " + std::to_string(client) + " falls silent");
    silent_until_[client] = model.now + std::chrono::seconds(30 + below(300));
  }
  void reboot(std::size_t client) {
    trace("client " + std::to_string(client) + " starts anew");
    std::vector<SimRequestPtr> lost;
    clients_[client]->reboot(lost);
    for (const SimRequestPtr& one : lost)
      remember(one);
  }
  void restart(bool power_lost) {
    trace(power_lost ? "the server loses power" : "the server is restarted");
    ++seen_.restarts;
    cut_all();
    harness_.restart([&] {
      if (power_lost) disk_.lose_power(harness_.directory(), random);
    });
    harness_.over = nullptr;
    for (const auto& line : lines_) {
      if (line) line->restart();
    }
    connect_all();
    model.restart(kLease);
    sessions_.clear();
    owners_.restart();
    life_begins();
    check_files(power_lost);
  }
  /// So that no call is under way when the server goes.
  void cut_all() {
    for (const auto& connection : connections_) {
      harness_.state().connection_lost(connection->id);
      callbacks_.cut(*connection);
    }
  }
  void connect_all() {
    for (const auto& connection : connections_) {
      connection->id = ++last_connection_;
      harness_.state().connection_opened(*connection);
    }
  }

  // --- requests at the server ---

  Reply4 arrive(SimRequest& request, const std::string& how) {
    harness_.over = connections_[request.client].get();
    std::vector<std::unique_ptr<SimCallbacks::Attentive>> attentive = attend(request);
    Reply4 reply = harness_.run_bare(request.operations, request.minor_version);
    attentive.clear();
    trace(std::to_string(request.client) + "." + std::to_string(request.slot) + " " + how +
          request.what + ": " + number_text(reply.status) + delegation_in(reply));
    if (reply.outcome != Outcome::kReply || reply.results.empty()) {
      fail("no reply");
    } else if (request.minor_version == 0) {
      ++(owners_.judge(request, reply) ? seen_.ran : seen_.retried);
    } else if (request.in_session) {
      judge(request, reply);
    } else if (request.binds) {
      judge_bind(request, reply);
    } else if (request.answer.empty()) {
      ++seen_.ran;
      request.answer = reply.bytes;
      request.happens(reply);
    } else {
      model.forget_idle();
      const bool moved_on =
          reply.status == NFS4ERR_STALE_CLIENTID || reply.status == NFS4ERR_SEQ_MISORDERED;
      if (request.what == "CREATE_SESSION" && reply.bytes != request.answer && !moved_on) {
        fail("a CREATE_SESSION was answered twice in two ways");
      }
    }
    return reply;
  }

  std::string text_of(const SimDelegation& one) const {
    return "client " + std::to_string(one.client) + (one.write ? " may write" : " may read") +
           " file " + std::to_string(one.file) + (one.maybe_since ? ", was perhaps asked" : "") +
           (one.certain_since ? ", was asked" : "") +
           (model.must_be_gone(one)  ? ", must be revoked"
            : model.may_be_gone(one) ? ", may be revoked"
                                     : "");
  }
  static std::string delegation_in(const Reply4& reply) {
    if (status_in<OP_OPEN>(reply) != NFS4_OK) return "";
    switch (reply.get<OP_OPEN>().resok4.delegation.delegation_type) {
      case xdr::open_delegation_type4::OPEN_DELEGATE_READ:
        return ", with a read delegation";
      case xdr::open_delegation_type4::OPEN_DELEGATE_WRITE:
        return ", with a write delegation";
      default:
        return "";
    }
  }
  /// Holders of write delegations who will be asked, if they listen.
  std::vector<std::unique_ptr<SimCallbacks::Attentive>> attend(const SimRequest& request) {
    std::vector<std::unique_ptr<SimCallbacks::Attentive>> out;
    if (!request.looks) return out;
    for (const auto& [other, one] : model.delegations) {
      const bool asked = one.file == *request.file && one.write && one.client != request.client;
      if (!asked || one.revoked || is_silent(one.client) || chance(10)) continue;
      ++seen_.asked;
      out.push_back(std::make_unique<SimCallbacks::Attentive>(callbacks_, *connections_[one.client],
                                                              *clients_[one.client]));
      break;  // there is one at most
    }
    return out;
  }
  void judge_bind(const SimRequest& request, const Reply4& reply) {
    const auto session = sessions_.find(request.session);
    if (reply.status == NFS4ERR_BADSESSION) {
      if (session == sessions_.end()) return;
      if (!model.clients[session->second.client].unsure) return fail("a session is not known");
      return evict({session->second.client});
    }
    if (session == sessions_.end()) return fail("a session that is no more was bound");
    SimTrueClient& client = model.clients[session->second.client];
    client.renewed = model.now;
    client.unsure &= !client.completed;
  }

  /// Exactly once: by what the session's slot has seen.
  void judge(SimRequest& request, const Reply4& reply) {
    const nfsstat4 status = reply.results[0].status;
    auto session = sessions_.find(request.session);
    if (session != sessions_.end() && status == NFS4ERR_BADSESSION &&
        model.clients[session->second.client].unsure) {
      evict({session->second.client});
      session = sessions_.end();
    }
    if (session == sessions_.end()) {
      if (status != NFS4ERR_BADSESSION) fail("a session that is no more answers");
      return;
    }
    SimTrueClient& client = model.clients[session->second.client];
    Slot& slot = session->second.slots[request.slot];
    if (request.sequence != slot.sequence && request.sequence != slot.sequence + 1) {
      if (status != NFS4ERR_SEQ_MISORDERED) fail("a request out of order: " + number_text(status));
      return;
    }
    if (status != NFS4_OK) return fail("SEQUENCE: " + number_text(status));
    client.renewed = model.now;
    client.unsure &= !client.completed;
    if (request.sequence == slot.sequence) {
      ++seen_.retried;
      const bool same = reply.bytes == slot.answer;
      if (slot.cached ? !same : !same && reply.status != NFS4ERR_RETRY_UNCACHED_REP) {
        fail("a retry was answered otherwise");
      }
      return;
    }
    ++seen_.ran;
    slot = {request.sequence, reply.bytes, request.cached};
    const std::uint32_t flags = reply.get<OP_SEQUENCE>().resok4.sr_status_flags;
    const bool revoked = (flags & xdr::SEQ4_STATUS_RECALLABLE_STATE_REVOKED) != 0;
    SimPromises(*this).told_of_revoked(session->second.client, revoked);
    request.happens(reply);
  }

  // --- what has to hold ---

  void check_counts() {
    for (const SimTrueClient& client : model.clients) {
      if (client.unsure) return;
    }
    const nfs4::StateReport report = nfs4::report_state(harness_.state(), 0);
    expect_count("opens", report.opens.opens, model.opens());
    expect_count("locks", report.opens.locks, model.locks());
    expect_count("sessions", report.sessions.count, sessions_.size());
    std::size_t least = 0, most = 0;
    for (const auto& [other, one] : model.delegations) {
      least += !model.may_be_gone(one);
      most += !model.must_be_gone(one);
    }
    if (report.delegations < least || report.delegations > most) {
      fail(std::to_string(report.delegations) + " delegations instead of " + std::to_string(most));
    }
  }
  void expect_count(const char* what, std::size_t is, std::size_t should) {
    if (is != should) {
      fail(std::to_string(is) + " " + what + " instead of " + std::to_string(should));
    }
  }

  /// Against what is in the directory; after a loss of power the model takes over what chance left.
  void check_files(bool power_lost) {
    std::size_t found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(harness_.directory())) {
      ++found;
      const std::string name = entry.path().filename().string();
      SimFile* file = model.find(name);
      if (file == nullptr) return fail(name + " should not be there");
      const std::string bytes = content_of(entry.path().string());
      for (std::size_t at = 0; at < file->bytes.size(); ++at) {
        const bool same = at < bytes.size() && bytes[at] == file->bytes[at];
        if (!same && (!power_lost || file->stable[at])) {
          return fail(name + " lost byte " + std::to_string(at));
        }
      }
      if (bytes.size() > file->bytes.size()) return fail(name + " has bytes of nobody");
      file->bytes = bytes;
      file->stable.resize(bytes.size());
    }
    if (found != model.names.size()) fail("files were lost");
  }

  /// Everybody goes, some after giving back what they have; then there is nothing left of them.
  void end() {
    for (std::size_t index = 0; index < kClients && problem().empty(); ++index) {
      if (chance(50)) farewell(index);
    }
    harness_.clock.move(std::chrono::hours(72));
    model.now = harness_.clock.now();
    harness_.over = nullptr;
    Session4 last = harness_.connect("last");
    harness_.run(last, Operations4().add<OP_DESTROY_SESSION>({last.id}));
    harness_.run_bare(Operations4().add<OP_DESTROY_CLIENTID>({last.client}));
    const nfs4::StateReport left = nfs4::report_state(harness_.state(), 0);
    expect_count("clients in the end", left.confirmed + left.unconfirmed, 0);
    expect_count("sessions in the end", left.sessions.count, 0);
    expect_count("states in the end", left.opens.states() + left.delegations, 0);
    expect_count("locks in the end", left.opens.locks + left.opens.files, 0);
    check_files(false);
    cut_all();
    harness_.restart();
    if (nfs4::report_state(harness_.state(), 0).in_grace) fail("a grace period for nobody");
  }
  void farewell(std::size_t index) {
    SimClient& client = *clients_[index];
    constexpr int kMostSteps = 1000;
    for (int i = 0; i < kMostSteps && problem().empty(); ++i) {
      bool waits = false;
      for (std::size_t slot = 0; slot < SimClient::kSlots; ++slot) {
        waits |= client.pending[slot] != nullptr;
        if (client.pending[slot]) deliver(index, slot);
      }
      if (waits) continue;
      client.pending[0] = client.next_farewell();
      if (client.pending[0] == nullptr) break;
    }
    if (!client.holds_nothing() || client.id() == 0 || !model.clients[index].known) return;
    if (client.minor_version() == 0) return;  // which has no such operation
    const Reply4 reply =
        harness_.run_bare(Operations4().add<OP_DESTROY_CLIENTID>({client.id()}), 1);
    trace(std::to_string(index) + " DESTROY_CLIENTID: " + number_text(reply.status));
    if (reply.status == NFS4_OK) evict({index});
    // An OPEN whose answer never came to it is its own nevertheless.
    const bool busy = model.has_state(index) && reply.status == NFS4ERR_CLIENTID_BUSY;
    const bool gone = model.clients[index].unsure && reply.status == NFS4ERR_STALE_CLIENTID;
    if (reply.status != NFS4_OK && !busy && !gone) fail("a client could not be destroyed");
  }

  SimDisk disk_;
  std::vector<std::unique_ptr<StubConnection>> connections_;  // outlive the server
  std::vector<std::unique_ptr<SimLine>> lines_;               // null: calls come by `connections_`
  std::array<TimePoint, kClients> waited_{};                  // for calls that did not come
  std::vector<std::unique_ptr<SimClient>> clients_;
  std::vector<TimePoint> silent_until_;
  std::map<xdr::sessionid4, TrueSession> sessions_;
  SimOwners owners_{*this};
  SimCallbacks callbacks_{*this};
  std::vector<SimRequestPtr> past_;
  std::deque<std::string> trace_;
  TimePoint begun_;
  nfs4::ConnectionId last_connection_ = 1'000'000;
  Seen seen_;
  Nfs4Harness harness_;
};

}  // namespace nfsrdma::test
