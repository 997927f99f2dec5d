// SPDX-License-Identifier: Apache-2.0
// A DataShard whose AsyncMount stands on a fake transport: the test is the main thread, and plays
// the server by running things on the shard's.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <list>
#include <mutex>

#include "client/fuse/mount_shards.h"
#include "tests/unit/client/fake_mount.h"
#include "xdr/nfs3.h"

namespace nfsrdma {

inline const FileHandle& shard_test_file() {
  static const FileHandle handle(std::array<std::byte, 4>{std::byte{1}, std::byte{2}});
  return handle;
}

/// The server of one AsyncMount. On its thread, but for on_thread() and the gate.
class FakeServer {
 public:
  std::unique_ptr<AsyncMount> mount(EventLoop& loop) {
    FakeMount fake = make_fake_mount(loop, shard_test_file(), 1 << 20);
    environment_ = fake.environment;
    {
      std::lock_guard lock(mutex_);
      loop_ = &loop;
    }
    attached_.notify_all();
    return std::move(fake.mount);
  }

  /// Any thread: runs `work` on the mount's and waits.
  void on_thread(const std::function<void()>& work) {
    {
      std::unique_lock lock(mutex_);
      attached_.wait(lock, [this] { return loop_ != nullptr; });
    }
    std::promise<void> done;
    loop_->post([&work, &done] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  /// Of calls that are out; accepts the connection first.
  std::size_t calls() {
    connect();
    return transport().out().size();
  }
  void connect() {
    if (connected_) return;
    transport().accept();
    connected_ = true;
  }
  void answer_read(std::size_t bytes, bool eof, char letter = 'x') {
    connect();
    const std::vector<std::byte> data(bytes, static_cast<std::byte>(letter));
    xdr::READ3res res;
    res.resok.count = static_cast<std::uint32_t>(bytes);
    res.resok.eof = eof;
    res.resok.data = {data};
    answer(res);
  }
  void answer_write(std::uint32_t count, std::uint64_t verifier) {
    connect();
    xdr::WRITE3res res;
    res.resok.count = count;
    res.resok.committed = xdr::stable_how::UNSTABLE;
    store_be64(res.resok.verf.data(), verifier);
    answer(res);
  }
  FakeTransport& transport() { return *environment_->transport(); }
  FakeEnvironment& environment() { return *environment_; }

 private:
  template <typename Res>
  void answer(const Res& result) {
    transport().answer([&](xdr::Encoder& encoder) {
      xdr::encode(encoder, result);
      // Everything in line.
      for (const xdr::PayloadReference& payload : encoder.payloads())
        encoder.fixed_opaque(payload.bytes);
    });
  }

  std::mutex mutex_;
  std::condition_variable attached_;
  EventLoop* loop_ = nullptr;  // under mutex_ until it is set
  FakeEnvironment* environment_ = nullptr;
  bool connected_ = false;
};

/// Attaches to a FakeServer, at once or when it is let.
class FakeAttacher final : public ShardAttacher {
 public:
  explicit FakeAttacher(FakeServer& server) : server_(server) {}
  /// Fails instead.
  FakeAttacher(FakeServer& server, std::string why) : server_(server), why_(std::move(why)) {}
  /// Waits for `gate`, as for a server that does not answer.
  FakeAttacher(FakeServer& server, std::shared_future<void> gate)
      : server_(server), gate_(std::move(gate)) {}

  Task<Result<std::unique_ptr<AsyncMount>>> attach(EventLoop& loop, std::string* detail) override {
    if (gate_.valid()) gate_.wait();
    if (!why_.empty()) {
      *detail = why_;
      co_return Error{Errc::kRefused, ECONNREFUSED, "attach"};
    }
    co_return server_.mount(loop);
  }

 private:
  FakeServer& server_;
  std::string why_;
  std::shared_future<void> gate_;
};

class ShardFixture : public testing::Test {
 protected:
  ShardFixture() : loop_(EventLoop::create().value()) {}

  /// A shard that is usable or failed.
  std::unique_ptr<DataShard> start(std::unique_ptr<ShardAttacher> attacher) {
    auto shard = DataShard::start(*loop_, std::move(attacher)).value();
    wait_for(*shard);
    return shard;
  }
  std::unique_ptr<DataShard> start(FakeServer& server) {
    return start(std::make_unique<FakeAttacher>(server));
  }

  void wait_for(const DataShard& shard) {
    while (shard.state() == DataShard::State::kAttaching)
      loop_->turn(Duration(-1));
  }

  template <typename T>
  static Task<void> keep(Task<Result<T>> task, std::optional<Result<T>>* out) {
    out->emplace(co_await std::move(task));
  }
  template <typename T>
  void turn_until(const std::optional<T>& there) {
    while (!there)
      loop_->turn(Duration(-1));
  }

  std::unique_ptr<EventLoop> loop_;
  TaskGroup tasks_;
  OpContext op_;
};

}  // namespace nfsrdma
