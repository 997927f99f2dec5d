// SPDX-License-Identifier: Apache-2.0
// ShardSurvey: asks all shards something and goes on when all have answered, or without those that
// do not within kPatience: a file system that hangs holds its shard, and what there is to tell of
// the others must not wait for that. An answer that comes later is not kept.
//
// On the loop's thread, which outlives the survey; answers come from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "rpcrdma/base/event_loop.h"

namespace nfsrdma {

class ShardSurvey {
 public:
  static constexpr std::chrono::seconds kPatience{2};
  /// By the shards' indices; nothing for those that have not answered.
  template <typename Answer>
  using Answers = std::vector<std::optional<Answer>>;

  explicit ShardSurvey(EventLoop& loop) : loop_(loop) {}
  ~ShardSurvey() { *alive_ = false; }
  ShardSurvey(const ShardSurvey&) = delete;
  ShardSurvey& operator=(const ShardSurvey&) = delete;

  /// `put` gives the question to the shard of that index, which answers it once, on any thread.
  /// `done` is called later, on the loop's thread.
  template <typename Answer>
  void ask(std::size_t shards,
           const std::function<void(std::size_t, std::function<void(Answer)>)>& put,
           std::function<void(Answers<Answer>)> done) {
    auto sheet = std::make_shared<Sheet<Answer>>();
    sheet->answers.resize(shards);
    sheet->left = shards;
    const std::function<void()> end_soon =
        open([sheet, done = std::move(done)] { done(sheet->close()); });
    for (std::size_t i = 0; i < shards; ++i) {
      put(i, [sheet, i, end_soon](Answer answer) {
        if (sheet->take(i, std::move(answer))) end_soon();
      });
    }
  }

 private:
  template <typename Answer>
  struct Sheet {
    /// True: it was the last.
    bool take(std::size_t i, Answer answer) {
      std::lock_guard lock(mutex);
      // A shard that hangs keeps many questions, but not what others have answered to them.
      if (closed) return false;
      answers[i] = std::move(answer);
      return --left == 0;
    }
    Answers<Answer> close() {
      std::lock_guard lock(mutex);
      closed = true;
      return std::exchange(answers, {});
    }
    std::mutex mutex;
    Answers<Answer> answers;
    std::size_t left = 0;
    bool closed = false;
  };
  struct Question {
    Question(std::function<void()> end, std::function<void()> out_of_patience)
        : done(std::move(end)), patience(std::move(out_of_patience)) {}
    std::function<void()> done;
    Timer patience;
  };

  /// What ends the question, from any thread; so does time.
  std::function<void()> open(std::function<void()> done) {
    const std::uint64_t id = ++last_id_;
    // A timer must not end in its own call: hence the post.
    std::function<void()> end_soon = [this, id, alive = alive_, &loop = loop_] {
      loop.post([this, id, alive] {
        // Extracted first: `done` may ask again.
        auto question = *alive ? questions_.extract(id) : Questions::node_type();
        if (question) question.mapped()->done();
      });
    };
    auto question = std::make_unique<Question>(std::move(done), end_soon);
    question->patience.arm_after(loop_, kPatience);
    questions_.emplace(id, std::move(question));
    return end_soon;
  }

  using Questions = std::map<std::uint64_t, std::unique_ptr<Question>>;
  EventLoop& loop_;
  std::uint64_t last_id_ = 0;
  Questions questions_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace nfsrdma
