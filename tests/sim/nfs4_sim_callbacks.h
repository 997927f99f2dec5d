// SPDX-License-Identifier: Apache-2.0
// SimCallbacks: the server's calls to the simulated clients (CB_RECALL, CB_GETATTR), which come on
// each client's connection and wait there until it answers, or for as long as the transport waits.
#pragma once

#include <atomic>
#include <thread>

#include "tests/sim/nfs4_sim_client.h"
#include "tests/sim/nfs4_sim_line.h"
#include "tests/support/callback_client.h"
#include "tests/support/holder_answer.h"

namespace nfsrdma::test {

class SimCallbacks {
 public:
  explicit SimCallbacks(SimWorld& world) : world_(world), promises_(world) {}

  /// What has come to that client. `answers`: it answers some of it now.
  void pump(StubConnection& connection, SimClient& client, bool answers) {
    connection.loop().turn(Duration::zero());
    const std::vector<BackwardCall*> calls = connection.backward;
    for (BackwardCall* call : calls) {
      const auto since = since_.try_emplace(call, world_.model.now).first->second;
      if (world_.model.now - since > call->timeout) {
        fail(connection, *call, Errc::kTimedOut);
        continue;
      }
      if (CallbackClient::operation_of(*call) == xdr::nfs_cb_opnum4::OP_CB_GETATTR) {
        if (answers) answer_getattr(connection, client, *call);
        continue;
      }
      const auto recall = CallbackClient::read<xdr::CB_RECALL4args>(*call);
      promises_.recalled(recall.args.stateid, looked_);
      if (!answers || world_.chance(30)) continue;
      const nfsstat4 status = client.recall(recall.args.stateid);
      complete(connection, *call, CallbackClient::reply_to(*call, status));
    }
  }
  /// The same for one of minor version 0.
  void pump(SimLine& line, SimClient& client, bool answers) {
    const std::vector<SimLine::Call> calls = line.calls();
    for (const SimLine::Call& call : calls) {
      promises_.recalled(call.stateid, looked_);
      if (!answers || world_.chance(30)) continue;
      ++world_.model.old.recalled;
      line.answer(call, client.recall(call.stateid));
    }
    if (!answers) return;
    const std::vector<SimLine::Question> questions = line.questions();
    for (const SimLine::Question& question : questions) {
      const auto told = tell(client, question.handle);
      line.answer(question, told ? NFS4_OK : NFS4ERR_BADHANDLE, told.value_or(Bytes()));
    }
  }
  /// All have been looked at: what comes from now on was sent from now on.
  void looked() { looked_ = world_.model.now; }

  /// Calls on a connection that is gone; the server has heard that it is.
  void cut(StubConnection& connection) {
    connection.loop().turn(Duration::zero());
    while (!connection.backward.empty()) {
      fail(connection, *connection.backward.front(), Errc::kClosed);
      connection.loop().turn(Duration::zero());
    }
  }

  /// For as long as it lives, a client says how its files stand as soon as it is asked: who asked
  /// the server waits for that.
  class Attentive {
   public:
    Attentive(SimCallbacks& callbacks, StubConnection& connection, SimClient& client)
        : thread_([this, &callbacks, &connection, &client] {
            while (!done_.load()) {
              connection.loop().turn(std::chrono::milliseconds(1));
              const std::vector<BackwardCall*> calls = connection.backward;
              for (BackwardCall* call : calls) {
                if (CallbackClient::operation_of(*call) == xdr::nfs_cb_opnum4::OP_CB_GETATTR) {
                  callbacks.answer_getattr(connection, client, *call);
                }
              }
            }
          }) {}
    ~Attentive() {
      done_.store(true);
      thread_.join();
    }
    Attentive(const Attentive&) = delete;
    Attentive& operator=(const Attentive&) = delete;

   private:
    std::atomic<bool> done_{false};
    std::thread thread_;
  };

 private:
  void fail(StubConnection& connection, BackwardCall& call, Errc code) {
    std::erase(connection.backward, &call);
    since_.erase(&call);
    call.ok = false;
    call.error = Error{code, 0, "the simulation"};
    call.on_complete();
  }
  void complete(StubConnection& connection, BackwardCall& call,
                const std::vector<std::byte>& reply) {
    std::erase(connection.backward, &call);
    since_.erase(&call);
    call.ok = true;
    call.reply = reply;
    call.on_complete();
  }
  void answer_getattr(StubConnection& connection, SimClient& client, BackwardCall& call) {
    const auto asked = CallbackClient::read<xdr::CB_GETATTR4args>(call);
    const auto told = tell(client, asked.args.fh.data);
    if (!told) return complete(connection, call, CallbackClient::reply_to(call, NFS4ERR_BADHANDLE));
    complete(connection, call, CallbackClient::reply_to(call, NFS4_OK, *told));
  }
  using Bytes = std::vector<std::byte>;
  /// What a client answers to CB_GETATTR; the model knows it then.
  std::optional<Bytes> tell(SimClient& client, ByteSpan handle) {
    const auto told = client.tell(to_handle(handle));
    if (!told) return std::nullopt;
    const auto known = world_.model.delegations.find(told->stateid.other);
    if (known != world_.model.delegations.end()) {
      auto& all = known->second.told;
      if (all.size() == 2) all.erase(all.begin());
      all.push_back({told->size, told->changed, world_.model.now});
    }
    return holder_answer(told->change, told->size);
  }

  SimWorld& world_;
  SimPromises promises_;
  TimePoint looked_;
  std::map<const BackwardCall*, TimePoint> since_;
};

}  // namespace nfsrdma::test
