// SPDX-License-Identifier: Apache-2.0
#include "server/shard.h"

#include <pthread.h>
#include <unistd.h>

#include <string>

#include "server/credentials.h"
#include "server/server_context.h"
#include "xdr/nfs3_constants.h"
#include "xdr/nfsacl3.h"

namespace nfsrdma {

/// Counts connections for the choice of a shard and keeps what closed ones have moved; everything
/// else goes to the dispatcher.
class Shard::CountingHandler final : public CallHandler {
 public:
  CountingHandler(Dispatcher& dispatcher, std::atomic<std::size_t>& count,
                  std::array<TransferStats, kTransportKinds>& closed,
                  const std::unique_ptr<ShardCapture>& capture)
      : dispatcher_(dispatcher), count_(count), closed_(closed), capture_(capture) {}
  void on_connection_opened(ServerConnection& connection) override {
    count_.fetch_add(1, std::memory_order_relaxed);
    if (capture_) capture_->add(connection, true);
    dispatcher_.on_connection_opened(connection);
  }
  void on_connection_closed(ServerConnection& connection) override {
    count_.fetch_sub(1, std::memory_order_relaxed);
    if (capture_) capture_->closed(connection);
    closed_[static_cast<std::size_t>(connection.transport())] += connection.describe().stats;
    dispatcher_.on_connection_closed(connection);
  }
  void on_call(Call& call) override { dispatcher_.on_call(call); }

 private:
  Dispatcher& dispatcher_;
  std::atomic<std::size_t>& count_;
  std::array<TransferStats, kTransportKinds>& closed_;
  const std::unique_ptr<ShardCapture>& capture_;
};

Result<std::unique_ptr<Shard>> Shard::start(unsigned index, const Options& options) {
  std::unique_ptr<Shard> shard(new Shard(options));
  NFSRDMA_TRY(shard->loop_, EventLoop::create());
  shard->thread_ = std::thread([raw = shard.get(), index] { raw->serve(index); });
  return shard;
}

Shard::Shard(const Options& options) : options_(options) {}

Shard::~Shard() {
  if (!thread_.joinable()) return;
  shutdown(Duration::zero());
  join();
}

void Shard::serve(unsigned index) {
  ::pthread_setname_np(::pthread_self(), ("shard-" + std::to_string(index)).c_str());
  tid_.store(::gettid(), std::memory_order_relaxed);
  prepare_serving_thread();
  pool_ = std::make_unique<BufferPool>(*loop_, options_.memory_budget);
  dispatcher_ = std::make_unique<Dispatcher>(*loop_, options_.shared);
  handler_ = std::make_unique<CountingHandler>(*dispatcher_, connections_, closed_, capture_);
  // Silent connections make room whatever their transport.
  options_.rdma.places.evict_elsewhere = [this](Silent silent) {
    return tcp_ != nullptr && tcp_->evict(silent);
  };
  options_.tcp.places.evict_elsewhere = [this](Silent silent) { return rdma_->evict(silent); };
  rdma_ = std::make_unique<RdmaServer>(*loop_, *pool_, *handler_, options_.rdma);
  tcp_ = std::make_unique<TcpServer>(*loop_, *pool_, *handler_, options_.tcp);
  udp_ = std::make_unique<UdpServer>(
      *loop_, *pool_, *handler_, std::vector<std::uint32_t>{xdr::kNfsProgram, xdr::kNfsAclProgram});
  loop_->set_spin(options_.spin);
  loop_->run();
  udp_.reset();
  tcp_.reset();
  rdma_.reset();
  // The queue pairs are gone: the fabrics may forget the loop, then the memory may go.
  for (Fabric* fabric : options_.fabrics)
    fabric->forget(*loop_);
  handler_.reset();
  dispatcher_.reset();
  tap_.reset();
  if (capture_) capture_->flush();
  capture_.reset();
  pool_.reset();
  ended_.store(true, std::memory_order_release);
}

void Shard::accept(std::unique_ptr<Incoming> incoming) {
  // std::function wants to be copied; connections are rare enough for a shared pointer.
  auto shared = std::make_shared<std::unique_ptr<Incoming>>(std::move(incoming));
  loop_->post([this, shared] {
    if (!stopping_) rdma_->accept(std::move(*shared));
  });
}

void Shard::adopt(UniqueFd socket) {
  auto shared = std::make_shared<UniqueFd>(std::move(socket));
  loop_->post([this, shared] {
    if (!stopping_) tcp_->adopt(std::move(*shared));
  });
}

void Shard::serve_datagrams(UniqueFd socket) {
  auto shared = std::make_shared<UniqueFd>(std::move(socket));
  loop_->post([this, shared] {
    if (!stopping_) udp_->adopt(std::move(*shared));
  });
}

void Shard::ask_for_sign_of_life() {
  // One question at a time: a thread that hangs is not asked more and more.
  if (!answered_.exchange(false, std::memory_order_relaxed)) return;
  loop_->post([this] { answered_.store(true, std::memory_order_relaxed); });
}

void Shard::report(std::function<void(ShardReport)> done) {
  loop_->post([this, done = std::move(done)] { done(make_report()); });
}

void Shard::evict(std::string host, std::function<void(std::size_t)> done) {
  loop_->post([this, host = std::move(host), done = std::move(done)] {
    std::vector<ServerConnection*> found;
    auto look = [&](ServerConnection& connection) {
      if (connection.peer().host_text() == host) found.push_back(&connection);
    };
    rdma_->for_each_connection(look);
    tcp_->for_each_connection(look);
    // Ending one takes it out of the list, but only later.
    for (ServerConnection* connection : found)
      connection->close();
    done(found.size());
  });
}

void Shard::look_at_exports(std::function<void()> done) {
  loop_->post([this, done = std::move(done)] {
    options_.shared.server->exports.current();
    if (done) done();
  });
}

void Shard::tap(CallTap::Sink sink) {
  loop_->post([this, sink = std::move(sink)] {
    dispatcher_->observe(nullptr);
    tap_ = sink ? std::make_unique<CallTap>(*loop_, sink) : nullptr;
    dispatcher_->observe(tap_.get());
  });
}

void Shard::log_slow(std::uint64_t ns) {
  loop_->post([this, ns] { dispatcher_->log_slow(ns); });
}

void Shard::capture(std::shared_ptr<const ShardCapture::Order> order, std::function<void()> done) {
  loop_->post([this, order = std::move(order), done = std::move(done)] {
    auto each = [this](const std::function<void(ServerConnection&)>& visit) {
      rdma_->for_each_connection(visit);
      tcp_->for_each_connection(visit);
    };
    if (capture_) {
      each([](ServerConnection& connection) { connection.tap.reset(); });
      capture_->flush();
      capture_.reset();
    }
    if (order) {
      capture_ = std::make_unique<ShardCapture>(*loop_, *order);
      each([this](ServerConnection& connection) { capture_->add(connection, false); });
    }
    if (done) done();
  });
}

ShardReport Shard::make_report() {
  ShardReport report;
  auto add = [&report](ServerConnection& connection) {
    report.connections.push_back(connection.describe());
    report.latencies.push_back(connection.latency);
  };
  rdma_->for_each_connection(add);
  tcp_->for_each_connection(add);
  report.closed = closed_;
  report.procedures.assign(dispatcher_->procedures().begin(), dispatcher_->procedures().end());
  report.counts = dispatcher_->counts();
  report.rejected = dispatcher_->rejected();
  report.rejected_auth = dispatcher_->rejected_auth();
  report.outstanding = dispatcher_->outstanding();
  report.budget = pool_->budget();
  report.in_use = pool_->in_use();
  report.arenas = pool_->arena_bytes();
  report.waiting = pool_->waiting();
  for (Fabric* fabric : options_.fabrics)
    report.exposed_regions += fabric->exposed_regions(*loop_);
  return report;
}

void Shard::shutdown(Duration patience) {
  loop_->post([this, patience] {
    if (stopping_) return;
    stopping_ = true;
    rdma_->shutdown(patience, [this] { part_ended(); });
    tcp_->shutdown(patience, [this] { part_ended(); });
    udp_->shutdown([this] { part_ended(); });
  });
}

void Shard::part_ended() {
  if (--parts_left_ == 0) loop_->stop();
}

void Shard::join() {
  if (thread_.joinable()) thread_.join();
}

Shard& least_loaded(std::span<const std::unique_ptr<Shard>> shards, std::size_t* last) {
  std::size_t best = (*last + 1) % shards.size();
  for (std::size_t i = 1; i < shards.size(); ++i) {
    const std::size_t candidate = (*last + 1 + i) % shards.size();
    if (shards[candidate]->connections() < shards[best]->connections()) best = candidate;
  }
  *last = best;
  return *shards[best];
}

}  // namespace nfsrdma
