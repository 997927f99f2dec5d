// SPDX-License-Identifier: Apache-2.0
#include "client/rpc_client.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "rpcrdma/base/log.h"
#include "xdr/rpc.h"

namespace nfsrdma {
namespace {

/// One sequence for the whole process: a server that leaves the port out of its duplicate request
/// cache's key must not mistake one connection's call for another's.
std::uint32_t next_xid() {
  static std::atomic<std::uint32_t> next{std::random_device{}()};
  return next.fetch_add(1, std::memory_order_relaxed);
}

/// Resumes a coroutine from the event loop.
class Resumer : public Deferred {
 public:
  explicit Resumer(ClientEnvironment& environment) : environment_(environment) {}
  void await_resume() const {}

 protected:
  void resume_soon() { environment_.run_soon(*this); }
  void run_deferred() override {
    if (waiter_) std::exchange(waiter_, nullptr).resume();
  }
  ClientEnvironment& environment_;
  std::coroutine_handle<> waiter_;
};

class Yield final : public Resumer {
 public:
  using Resumer::Resumer;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    waiter_ = waiter;
    resume_soon();
  }
};

class Sleeper final : public Resumer, public Cancellable {
 public:
  Sleeper(ClientEnvironment& environment, Duration duration, CancelToken* cancel)
      : Resumer(environment), alarm_(environment.make_alarm([this] { resume_soon(); })) {
    if (cancel != nullptr && cancel->cancelled()) {
      cancelled_ = true;
      return;
    }
    if (cancel != nullptr) cancel->enlist(*this);
    alarm_->set(environment.now() + duration);
  }
  bool await_ready() const { return cancelled_; }
  void await_suspend(std::coroutine_handle<> waiter) { waiter_ = waiter; }
  void on_cancel() override {
    alarm_->cancel();
    resume_soon();
  }

 private:
  std::unique_ptr<Alarm> alarm_;
  bool cancelled_ = false;
};

}  // namespace

RpcClient::RpcClient(std::unique_ptr<ClientEnvironment> environment, RpcClientOptions options)
    : environment_(std::move(environment)), options_(std::move(options)) {
  tick_ = environment_->make_alarm([this] { tick(); });
  const std::uint32_t count = std::max<std::uint32_t>(options_.connections, 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    connections_.push_back(std::make_unique<RpcConnection>(*this));
  }
  char name[65] = {};
  if (::gethostname(name, sizeof name - 1) != 0) name[0] = 0;
  machine_name_bytes_ = std::strlen(name);
  std::memcpy(machine_name_.data(), name, machine_name_bytes_);
}

RpcClient::~RpcClient() {
  NFSRDMA_CHECK(outstanding() == 0);
  connections_.clear();
}

Task<Result<void>> RpcClient::connect(std::string* detail, CancelToken* cancel) {
  RpcConnection& first = *connections_.front();
  first.wake();
  if (!first.ready() && !first.idle()) {
    const bool settled = co_await first.settled().wait(cancel);
    if (!settled) {
      *detail = "no connection until it was given up";
      co_return Error{Errc::kSystem, EINTR, "interrupted"};
    }
  }
  if (!first.ready()) {
    *detail = options_.left_out;
    if (!detail->empty() && !first.failures().empty()) *detail += "; ";
    *detail += first.failures();
    if (options_.candidates.empty()) {
      co_return Error{Errc::kUnsupported, EPROTONOSUPPORT, "no usable transport"};
    }
    co_return first.last_error();
  }
  stay_at(first.address());
  for (auto& connection : connections_)
    connection->wake();
  note_activity();
  co_return Result<void>();
}

/// Nothing is being tried: the others have not begun.
void RpcClient::stay_at(const SocketAddress& address) {
  const SocketAddress home = address;  // one of those
  std::erase_if(options_.candidates,
                [&](const TransportCandidate& one) { return !one.address.same_host(home); });
}

void RpcClient::put_off(const PutOff::Call& call) const {
  if (options_.put_off == nullptr) return;
  if (const auto line = options_.put_off->told(call, environment_->now())) log_warning("{}", *line);
}

RpcCallLease RpcClient::prepare(std::uint32_t program, std::uint32_t version,
                                std::uint32_t procedure, const OpContext& op,
                                std::size_t arguments) {
  if (free_calls_.empty()) {
    calls_.push_back(std::make_unique<RpcCall>(*this));
    free_calls_.push_back(calls_.back().get());
    free_calls_.reserve(calls_.size());
  }
  RpcCall& call = *free_calls_.back();
  free_calls_.pop_back();
  call.cancel_ = op.cancel;
  call.only_by_ = nullptr;
  call.xid = next_xid();
  if (arguments + RpcCall::kMaxHeaderBytes > RpcCall::kHeadBytes) {
    call.long_head_room_.resize(arguments + RpcCall::kMaxHeaderBytes);
    call.encoder_.emplace(call.long_head_room_);
  } else {
    call.encoder_.emplace(call.head_room_);
  }

  std::array<std::byte, xdr::kMaxAuthBytes> body_room;
  xdr::Encoder body(body_room);
  xdr::authsys_parms parms;
  parms.machinename = as_text({machine_name_.data(), machine_name_bytes_});
  parms.uid = op.identity.uid;
  parms.gid = op.identity.gid;
  for (std::uint32_t i = 0; i < op.identity.group_count; ++i) {
    parms.gids.push_back(op.identity.groups[i]);
  }
  xdr::encode(body, parms);

  xdr::Encoder& encoder = *call.encoder_;
  encoder.u32(call.xid);
  encoder.u32(static_cast<std::uint32_t>(xdr::msg_type::CALL));
  xdr::call_body header;
  header.prog = program;
  header.vers = version;
  header.proc = procedure;
  header.cred = {xdr::auth_flavor::AUTH_SYS, body.bytes()};
  xdr::encode(encoder, header);
  return RpcCallLease(call);
}

void RpcClient::release(RpcCall& call) {
  NFSRDMA_CHECK(call.state_ == RpcCall::State::kIdle || call.state_ == RpcCall::State::kDone);
  call.state_ = RpcCall::State::kIdle;
  call.may_have_run_ = call.sent = false;
  call.failed_ = false;
  call.payload = call.tail = call.head = {};
  call.has_payload = false;
  call.sink = call.long_reply = {};
  call.max_reply = 0;
  call.results_.reset();
  call.long_head_room_ = std::vector<std::byte>();  // not "= {}", which would keep the memory
  free_calls_.push_back(&call);
}

bool RpcClient::start(RpcCall& call) {
  if (call.max_reply == 0) call.set_max_results(512);
  call.started_ = environment_->now();
  const bool cancelled = call.cancel_ != nullptr && call.cancel_->cancelled();
  if (aborted_ || cancelled) {
    call.finish({Errc::kSystem, aborted_ ? EIO : EINTR, aborted_ ? "aborted" : "interrupted"});
    return true;
  }
  if (call.cancel_ != nullptr) call.cancel_->enlist(call);
  note_activity();
  (call.only_by_ != nullptr ? *call.only_by_ : choose()).submit(call);
  return call.state_ == RpcCall::State::kDone;
}

RpcConnection& RpcClient::add_connection(std::vector<TransportCandidate> candidates) {
  connections_.push_back(std::make_unique<RpcConnection>(*this, std::move(candidates)));
  return *connections_.back();
}

void RpcClient::disown_further() {
  for (std::size_t i = 0; i < connections_.size(); ++i)
    connections_[i]->disown();
}

bool RpcClient::another_is_ready(const RpcConnection& one) const {
  return std::any_of(connections_.begin(), connections_.end(), [&one](const auto& other) {
    return other.get() != &one && other->ready() && other->takes_calls();
  });
}

void RpcClient::take_from_those_that_wait() {
  for (std::size_t i = 0; i < connections_.size(); ++i)
    if (!connections_[i]->ready()) connections_[i]->leave_to_others();
}

RpcConnection& RpcClient::choose() {
  RpcConnection* best = nullptr;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    RpcConnection& candidate = *connections_[(next_connection_ + i) % connections_.size()];
    if (!candidate.takes_calls()) continue;
    if (best == nullptr || (candidate.sends() && !best->sends()) ||
        (candidate.sends() == best->sends() && candidate.load() < best->load())) {
      best = &candidate;
    }
  }
  next_connection_ = (next_connection_ + 1) % connections_.size();
  if (best == nullptr) best = connections_.front().get();  // always takes them; for the analyzer
  if (best->load() > 0) {
    // One that was lost or idle is missed by nobody until there is something for it to do.
    for (auto& connection : connections_)
      connection->wake_to_help();
  }
  return *best;
}

Task<void> RpcClient::sleep(Duration duration, CancelToken* cancel) {
  Sleeper sleeper(*environment_, duration, cancel);
  co_await sleeper;
}

Task<void> RpcClient::yield() {
  Yield turn(*environment_);
  co_await turn;
}

void RpcClient::call_answered() {
  if (!not_responding_) return;
  not_responding_ = false;
  if (observer_.responding) observer_.responding();
}

void RpcClient::note_activity() {
  quiet_ticks_ = 0;
  if (!tick_->armed() || long_tick_) arm_tick();
}

void RpcClient::arm_tick() {
  const Duration interval = std::clamp<Duration>(options_.timeo / 8, std::chrono::milliseconds(10),
                                                 std::chrono::seconds(1));
  long_tick_ = false;
  tick_->set(environment_->now() + interval);
}

void RpcClient::tick() {
  const TimePoint now = environment_->now();
  // A call that expires may have its caller add a connection.
  for (std::size_t i = 0; i < connections_.size(); ++i)
    connections_[i]->tick(now);
  if (outstanding() > 0) quiet_ticks_ = 0;
  if (quiet_ticks_++ < kQuietTicks) {
    arm_tick();
    return;
  }
  // Nothing to watch but idleness.
  bool any_ready = false;
  for (auto& connection : connections_)
    any_ready |= connection->ready();
  if (!any_ready || options_.idle_timeout == Duration::zero()) return;
  long_tick_ = true;
  tick_->set(now + options_.idle_timeout / 4);
}

void RpcClient::redirect(std::vector<TransportCandidate> candidates) {
  NFSRDMA_CHECK(candidates.size() == options_.candidates.size());
  options_.candidates = std::move(candidates);
}

void RpcClient::abort_all() {
  aborted_ = true;
  for (auto& connection : connections_) {
    connection->fail_all({Errc::kSystem, EIO, "aborted"});
  }
}

TransportKind RpcClient::kind() const {
  return connections_.front()->kind();
}

std::vector<ConnectionInfo> RpcClient::connections() const {
  std::vector<ConnectionInfo> all;
  for (const auto& connection : connections_) {
    if (connection->ready() && connection->takes_calls()) all.push_back(connection->describe());
  }
  return all;
}

TransferStats RpcClient::totals() const {
  TransferStats sum;
  for (const auto& connection : connections_)
    sum += connection->totals();
  return sum;
}

std::size_t RpcClient::outstanding() const {
  std::size_t sum = 0;
  for (const auto& connection : connections_)
    sum += connection->load();
  return sum;
}

}  // namespace nfsrdma
