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
  using Told = ShardSurvey::Answers<int>;
  Survey() { loop_->set_clock(&clock_); }
  void ask(std::size_t shards) {
    survey_->ask<int>(
        shards,
        [this, before = answers_.size()](std::size_t i, std::function<void(int)> answer) {
          EXPECT_EQ(i, answers_.size() - before);
          answers_.push_back(std::move(answer));
        },
        [this](const Told& told) { told_.push_back(told); });
  }
  void turn() {
    for (int i = 0; i < 3; ++i)
      loop_->turn(Duration::zero());
  }

  test::ManualClock clock_;
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  std::optional<ShardSurvey> survey_{*loop_};
  std::vector<std::function<void(int)>> answers_;
  std::vector<Told> told_;
};

TEST_F(Survey, EndsWithTheLastAnswer) {
  ask(3);
  answers_[0](10);
  answers_[2](12);
  turn();
  EXPECT_TRUE(told_.empty());
  answers_[1](11);
  EXPECT_TRUE(told_.empty()) << "done is called by the loop";
  turn();
  EXPECT_EQ(told_, std::vector<Told>{(Told{10, 11, 12})});
  clock_.advance(2 * ShardSurvey::kPatience);
  turn();
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(Survey, GoesOnWithoutThoseThatDoNotAnswer) {
  ask(3);
  answers_[1](11);
  clock_.advance(ShardSurvey::kPatience - std::chrono::milliseconds(1));
  turn();
  EXPECT_TRUE(told_.empty());
  clock_.advance(std::chrono::milliseconds(2));
  turn();
  EXPECT_EQ(told_, std::vector<Told>{(Told{std::nullopt, 11, std::nullopt})});
  answers_[0](10);
  answers_[2](12);
  turn();
  EXPECT_EQ(told_.size(), 1u) << "answers that come too late find nobody";
}

TEST_F(Survey, QuestionsDoNotWaitForEachOther) {
  ask(1);
  ask(1);
  answers_[1](20);
  turn();
  EXPECT_EQ(told_, std::vector<Told>{Told{20}});
  answers_[0](10);
  turn();
  EXPECT_EQ(told_, (std::vector<Told>{Told{20}, Told{10}}));
}

TEST_F(Survey, LateAnswersAreLetGoOf) {
  std::vector<std::function<void(std::shared_ptr<int>)>> answers;
  survey_->ask<std::shared_ptr<int>>(
      2, [&](std::size_t, auto answer) { answers.push_back(std::move(answer)); },
      [](const auto&) {});
  auto early = std::make_shared<int>(1), late = std::make_shared<int>(2);
  answers[0](early);
  EXPECT_EQ(early.use_count(), 2);
  clock_.advance(2 * ShardSurvey::kPatience);
  turn();
  answers[1](late);
  // The question that hangs keeps neither.
  EXPECT_EQ(early.use_count(), 1);
  EXPECT_EQ(late.use_count(), 1);
}

TEST_F(Survey, AnswersAfterItsEndDoNothing) {
  ask(1);
  survey_.reset();
  answers_[0](10);
  turn();
  EXPECT_TRUE(told_.empty());
}

}  // namespace
}  // namespace nfsrdma
