// SPDX-License-Identifier: Apache-2.0
// ShardSurvey: asks all shards something and goes on when all have answered, or without those that
// do not within kPatience: a file system that hangs holds its shard, and what there is to tell of
// the others must not wait for that. An answer that comes later finds nobody.
//
// On the loop's thread, which outlives the survey; answers come from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "rpcrdma/base/event_loop.h"

namespace nfsrdma {

class ShardSurvey {
 public:
  static constexpr std::chrono::seconds kPatience{2};
  /// To be called once per shard, when it has answered. Any thread.
  using Answered = std::function<void()>;

  explicit ShardSurvey(EventLoop& loop, Duration patience = kPatience)
      : loop_(loop), patience_(patience) {}
  ~ShardSurvey() { *alive_ = false; }
  ShardSurvey(const ShardSurvey&) = delete;
  ShardSurvey& operator=(const ShardSurvey&) = delete;

  /// `put` gives the question to the shard of that index. `done` is called later, with how many
  /// have not answered.
  void ask(std::size_t shards, const std::function<void(std::size_t, Answered)>& put,
           std::function<void(std::size_t silent)> done) {
    const std::uint64_t id = ++last_id_;
    auto left = std::make_shared<std::atomic<std::size_t>>(shards);
    auto end_soon = [this, id, alive = alive_, &loop = loop_] {
      loop.post([this, id, alive] {
        if (*alive) end(id);
      });
    };
    // A timer must not end in its own call: hence the post.
    auto question = std::make_unique<Question>(left, std::move(done), end_soon);
    question->patience.arm_after(loop_, patience_);
    questions_.emplace(id, std::move(question));
    for (std::size_t i = 0; i < shards; ++i) {
      put(i, [left, end_soon] {
        if (left->fetch_sub(1, std::memory_order_acq_rel) == 1) end_soon();
      });
    }
  }

 private:
  struct Question {
    Question(std::shared_ptr<std::atomic<std::size_t>> shards, std::function<void(std::size_t)> end,
             std::function<void()> out_of_patience)
        : left(std::move(shards)), done(std::move(end)), patience(std::move(out_of_patience)) {}
    std::shared_ptr<std::atomic<std::size_t>> left;
    std::function<void(std::size_t)> done;
    Timer patience;
  };
  void end(std::uint64_t id) {
    // Extracted first: `done` may ask again.
    if (auto question = questions_.extract(id)) {
      question.mapped()->done(question.mapped()->left->load(std::memory_order_acquire));
    }
  }

  EventLoop& loop_;
  const Duration patience_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Question>> questions_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace nfsrdma
