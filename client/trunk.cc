// SPDX-License-Identifier: Apache-2.0
#include "client/trunk.h"

#include "client/request_ends.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma {
namespace {

// Until an address that was lost is tried again.
constexpr std::chrono::seconds kAgainFirst{15};
constexpr std::chrono::seconds kAgainLongest{300};

}  // namespace

struct Trunk::Way {
  Way(RpcClient& rpc, std::vector<TransportCandidate> candidates)
      : address(candidates.front().address.text()),
        connection(rpc.add_connection(std::move(candidates))),
        // Not of the coroutine that waits: the alarm is what ends it.
        alarm(rpc.environment().make_alarm([this] { give_up(); })) {}
  void give_up() {
    if (patience != nullptr) patience->cancel();
  }

  const std::string address;
  RpcConnection& connection;
  std::unique_ptr<Alarm> alarm;
  CancelToken* patience = nullptr;  // of who waits now
  std::string problem;              // that was told last
};

Trunk::Trunk(RpcClient& rpc, LeadsHere leads_here, Log log)
    : rpc_(rpc), leads_here_(std::move(leads_here)), log_(log), pauses_(rpc.environment()) {}

Trunk::~Trunk() {
  stop();
}

void Trunk::stop() {
  if (std::exchange(stopped_, true)) return;
  for (const std::unique_ptr<Way>& way : ways_)
    way->give_up();
  stopping_.cancel();
  pauses_.nudge();
}

Task<Result<void>> Trunk::ask(Way& way, CancelToken& patience, std::string* detail) {
  RpcConnection& connection = way.connection;
  connection.wake();
  if (!connection.ready() && !connection.idle()) {
    const bool settled = co_await connection.settled().wait(&patience);
    if (!settled) co_return Error{Errc::kTimedOut, ETIMEDOUT, "no connection in time"};
  }
  if (!connection.ready()) {
    *detail = connection.failures();
    co_return connection.last_error();
  }
  OpContext op;
  op.cancel = &patience;
  Result<bool> here = co_await leads_here_(op, connection);
  if (!here.ok() && patience.cancelled()) {
    co_return Error{Errc::kTimedOut, ETIMEDOUT, "no answer in time"};
  }
  if (!here.ok()) co_return here.error();
  if (!*here) {
    *detail = "another server is there";
    co_return Error{Errc::kInvalid, EXDEV, "trunking"};
  }
  // It may have gone behind the answer.
  if (!connection.ready()) co_return Error{Errc::kClosed, ECONNRESET, "lost again"};
  connection.admit();
  co_return Result<void>();
}

Task<Result<void>> Trunk::show(Way& way, std::string* detail) {
  if (stopped_) co_return kStopped;
  CancelToken patience;
  way.patience = &patience;
  way.alarm->set(rpc_.environment().now() + kPatience);
  Result<void> done = co_await ask(way, patience, detail);
  way.alarm->cancel();
  way.patience = nullptr;
  if (!done.ok() && detail->empty()) *detail = done.error().message();
  co_return done;
}

Task<Result<void>> Trunk::join(std::vector<TransportCandidate> candidates, std::string* detail) {
  NFSRDMA_CHECK(!candidates.empty());
  if (stopped_) co_return kStopped;
  ways_.push_back(std::make_unique<Way>(rpc_, std::move(candidates)));
  Way& way = *ways_.back();
  Result<void> done = co_await show(way, detail);
  if (stopped_) co_return done;
  if (done.ok()) {
    tasks_.spawn(keep(way));
  } else {
    tasks_.spawn(let_go(way));
  }
  co_return done;
}

Task<void> Trunk::let_go(Way& way) {
  RpcConnection& connection = way.connection;
  if (!connection.ready() && !connection.idle()) {
    const bool settled = co_await connection.settled().wait(&stopping_);
    if (!settled) co_return;
  }
  // Its own answer may be on the stack.
  co_await pauses_.pause(std::chrono::milliseconds(1), &stopping_, &stopped_);
  if (!stopped_) connection.hang_up("not used");
}

Task<void> Trunk::keep(Way& way) {
  Duration wait = kAgainFirst;
  while (!stopped_) {
    if (way.connection.takes_calls()) {
      wait = kAgainFirst;
      const bool lost = co_await way.connection.gone().wait(&stopping_);
      if (!lost) co_return;
    }
    co_await pauses_.pause(wait, &stopping_, &stopped_);
    if (stopped_) co_return;
    // One that has not shown what it leads to is made anew.
    way.connection.hang_up("not used");
    if (!rpc_.active()) continue;
    wait = std::min<Duration>(2 * wait, kAgainLongest);
    std::string detail;
    Result<void> done = co_await show(way, &detail);
    if (stopped_) co_return;
    if (!done.ok() && log_ == Log::kYes && detail != way.problem) {
      log_notice("trunking: {} is not used: {}", way.address, detail);
    }
    way.problem = detail;
  }
}

}  // namespace nfsrdma
