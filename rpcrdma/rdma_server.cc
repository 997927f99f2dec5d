// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/rdma_server.h"

#include "rpcrdma/base/log.h"
#include "rpcrdma/responder.h"

namespace nfsrdma {

/// Deletes connections outside of their own calls, and tells when the last one is gone.
class RdmaServer::Reaper final : public Deferred {
 public:
  explicit Reaper(RdmaServer& server) : server_(server) {}
  void run_deferred() override {
    for (auto& shard : server_.shards_) {
      while (ResponderConnection* connection = shard->dead_.pop_front())
        delete connection;
    }
    std::erase_if(server_.shards_, [](const std::unique_ptr<ResponderShard>& shard) {
      return shard->device_gone_ && shard->connections_.empty() && shard->dead_.empty();
    });
    server_.check_drained();
  }

 private:
  RdmaServer& server_;
};

RdmaServer::RdmaServer(EventLoop& loop, BufferPool& pool, CallHandler& handler,
                       const RdmaServerLimits& limits)
    : loop_(loop),
      pool_(pool),
      handler_(handler),
      limits_(limits),
      patience_([this] {
        for (auto& shard : shards_) {
          shard->connections_.for_each([](ResponderConnection& c) { c.cut(); });
        }
      }),
      reaper_(std::make_unique<Reaper>(*this)) {
  limits_.inline_bytes = valid_inline_size(limits_.inline_bytes);
}

RdmaServer::~RdmaServer() {
  for (auto& shard : shards_) {
    shard->connections_.for_each([](ResponderConnection& c) { c.tear_down(); });
    NFSRDMA_CHECK(shard->connections_.empty());  // else the handler still has Calls
    while (ResponderConnection* connection = shard->dead_.pop_front())
      delete connection;
  }
}

void RdmaServer::accept(std::unique_ptr<Incoming> incoming) {
  if (stopping_) return;
  incoming->start(loop_, *this);
}

void RdmaServer::on_connect_request(std::unique_ptr<ConnectRequest> request) {
  ResponderShard* shard = nullptr;
  if (!stopping_ && has_room()) shard = shard_for(request->device());
  if (shard == nullptr) {
    request->reject({});
    return;
  }
  shard->accept(std::move(request));
}

bool RdmaServer::has_room() {
  if (connection_count_ < limits_.max_connections && !limits_.places.are_full()) return true;
  return limits_.places.make_room([this](Silent silent) { return evict(silent, nullptr); });
}

void RdmaServer::make_room_on(const ResponderShard& shard) {
  SharedPlaces{}.make_room([&](Silent silent) { return evict(silent, &shard); });
}

bool RdmaServer::evict(Silent silent, const ResponderShard* only) {
  LongestSilent<ResponderConnection> longest(silent, loop_.now() - limits_.idle_after);
  for (auto& shard : shards_) {
    if (only != nullptr && shard.get() != only) continue;
    shard->connections_.for_each(
        [&](ResponderConnection& c) { longest.consider(c, c.last_heard_); });
  }
  return longest.end();
}

ResponderShard* RdmaServer::shard_for(Device& device) {
  for (auto& shard : shards_) {
    if (&shard->device_ == &device && !shard->device_gone_) return shard.get();
  }
  auto made = ResponderShard::create(*this, device);
  if (!made.ok()) {
    static thread_local RateLimit limit(10, std::chrono::seconds(10));
    if (limit.allow()) log_error("{}: {}", device.info().name, made.error().message());
    return nullptr;
  }
  shards_.push_back(std::move(made).value());
  return shards_.back().get();
}

void RdmaServer::for_each_connection(const std::function<void(ServerConnection&)>& visit) const {
  for (auto& shard : shards_) {
    shard->connections_.for_each([&](ResponderConnection& c) {
      if (!c.torn_down_) visit(c);
    });
  }
}

void RdmaServer::connection_gone(ResponderConnection& connection) {
  connection.shard_.dead_.push_back(connection);
  --connection_count_;
  reap();
}

void RdmaServer::reap() {
  loop_.defer(*reaper_);
}

void RdmaServer::shutdown(Duration patience, std::function<void()> done) {
  stopping_ = true;
  drained_ = std::move(done);
  for (auto& shard : shards_) {
    shard->connections_.for_each([](ResponderConnection& c) { c.drain(); });
  }
  patience_.arm_after(loop_, patience);
  loop_.defer(*reaper_);
}

void RdmaServer::check_drained() {
  if (!drained_ || connection_count_ > 0) return;
  patience_.cancel();
  std::exchange(drained_, nullptr)();
}

}  // namespace nfsrdma
