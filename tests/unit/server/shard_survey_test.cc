// SPDX-License-Identifier: Apache-2.0
// Asking all shards: all answer, one does not, answers that come too late.
#include "server/shard_survey.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/support/manual_clock.h"

namespace nfsrdma {
namespace {

class Survey : public testing::Test {
 protected:
  Survey() { loop_->set_clock(&clock_); }
  void ask(std::size_t shards) {
    survey_->ask(
        shards,
        [this](std::size_t i, ShardSurvey::Answered answered) {
          EXPECT_EQ(i, answers_.size());
          answers_.push_back(std::move(answered));
        },
        [this](std::size_t silent) { silent_.push_back(silent); });
  }
  void turn() {
    for (int i = 0; i < 3; ++i)
      loop_->turn(Duration::zero());
  }

  test::ManualClock clock_;
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  std::optional<ShardSurvey> survey_{*loop_};
  std::vector<ShardSurvey::Answered> answers_;
  std::vector<std::size_t> silent_;
};

TEST_F(Survey, EndsWithTheLastAnswer) {
  ask(3);
  answers_[0]();
  answers_[2]();
  turn();
  EXPECT_TRUE(silent_.empty());
  answers_[1]();
  EXPECT_TRUE(silent_.empty()) << "done is called by the loop";
  turn();
  EXPECT_EQ(silent_, std::vector<std::size_t>{0});
  clock_.advance(2 * ShardSurvey::kPatience);
  turn();
  EXPECT_EQ(silent_.size(), 1u);
}

TEST_F(Survey, GoesOnWithoutThoseThatDoNotAnswer) {
  ask(3);
  answers_[1]();
  clock_.advance(ShardSurvey::kPatience - std::chrono::milliseconds(1));
  turn();
  EXPECT_TRUE(silent_.empty());
  clock_.advance(std::chrono::milliseconds(2));
  turn();
  EXPECT_EQ(silent_, std::vector<std::size_t>{2});
  answers_[0]();
  answers_[2]();
  turn();
  EXPECT_EQ(silent_.size(), 1u) << "answers that come too late find nobody";
}

TEST_F(Survey, QuestionsDoNotWaitForEachOther) {
  ask(1);
  survey_->ask(
      1, [](std::size_t, const ShardSurvey::Answered& answered) { answered(); },
      [this](std::size_t silent) { silent_.push_back(silent + 100); });
  turn();
  EXPECT_EQ(silent_, std::vector<std::size_t>{100});
  answers_[0]();
  turn();
  EXPECT_EQ(silent_, (std::vector<std::size_t>{100, 0}));
}

TEST_F(Survey, AnswersAfterItsEndDoNothing) {
  ask(1);
  survey_.reset();
  answers_[0]();
  turn();
  EXPECT_TRUE(silent_.empty());
}

}  // namespace
}  // namespace nfsrdma
