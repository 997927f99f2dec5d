// SPDX-License-Identifier: Apache-2.0
// One life of a client of NFSv4.0, and something goes wrong at each single call of it in turn: as
// cut_everywhere_test.cc has it for the newer ones. There are no slots here: owners' sequence ids
// have to be in step behind all of it, which a second life shows.
#include <gmock/gmock.h>

#include "rpcrdma/base/log.h"
#include "tests/unit/client/nfs4/minor0_life.h"

namespace nfsrdma {
namespace {

using std::chrono::seconds;
using testing::IsEmpty;

enum class Cut : std::uint8_t {
  kRequest,         // lost with the connection
  kAnswer,          // the same
  kServer,          // restarts when it has run it, and has a time of grace
  kTwice,           // the request came twice, and the second run is what is answered
  kSilence,         // not run, not answered, and the connection stands
  kSilentRun,       // the same, and it was run
  kLease,           // is over
  kLocks,           // are revoked
  kCount,           // of the owner that comes next is lost
  kOwnersForgotten  // those that hold nothing
};

struct How {
  Cut cut;
  bool soft;
  /// What the client is told cannot be good news everywhere.
  bool may_fail() const {
    switch (cut) {
      case Cut::kRequest:
      case Cut::kAnswer:
      case Cut::kOwnersForgotten:
        return false;
      case Cut::kServer:
      case Cut::kSilence:
      case Cut::kSilentRun:
        return soft;
      default:
        return true;
    }
  }
};

class Life : public Minor0Life {
 public:
  Life(How how, std::size_t at) : Minor0Life(how.soft), how_(how), at_(at) {
    server_->instead_of_answering = [this] { return cut_perhaps(); };
    // Told of as wrong, and it is: the client has lost count as well.
    server_->quiet = how.may_fail();
  }
  void TestBody() override {}

  /// False: it was over before.
  bool run() {
    const std::vector<std::string> failed = live();
    if (!how_.may_fail()) {
      EXPECT_THAT(failed, IsEmpty());
    }
    expect_nothing_left_here();
    clear_up();
    expect_nothing_left_there();
    const bool reached = calls_ > at_;
    at_ = SIZE_MAX;
    EXPECT_THAT(live(), IsEmpty());
    expect_nothing_left_here();
    expect_nothing_left_there();
    return reached;
  }

 private:
  bool cut_perhaps() {
    if (server_->in_grace && environment_->now() >= grace_ends_) server_->in_grace = false;
    if (calls_++ != at_) return false;
    switch (how_.cut) {
      case Cut::kRequest:
        return lose();
      case Cut::kAnswer:
        server_->run_unanswered();
        return lose();
      case Cut::kServer:
        server_->run_unanswered();
        server_->restart();
        server_->in_grace = true;
        grace_ends_ = environment_->now() + seconds(10);
        return lose();
      case Cut::kTwice:
        server_->run_unanswered();
        return false;
      case Cut::kSilentRun:
        server_->run_unanswered();
        [[fallthrough]];
      case Cut::kSilence:
        server_->silent_until = environment_->now() + seconds(5);
        return true;
      case Cut::kLease:
        server_->expire();
        return false;
      case Cut::kLocks:
        server_->revoke_locks();
        return false;
      case Cut::kCount:
        server_->loses_count = true;
        return false;
      case Cut::kOwnersForgotten:
        server_->forget_idle_owners();
        return false;
    }
    return false;
  }
  bool lose() {
    environment_->transport()->lose();
    return true;
  }

  const How how_;
  std::size_t at_;
  std::size_t calls_ = 0;
  TimePoint grace_ends_{};
};

class Minor0CutEverywhere : public testing::TestWithParam<How> {};

TEST_P(Minor0CutEverywhere, DoesNoHarm) {
  const LogLevel before = log_level();
  set_log_level(LogLevel::kError);  // of locks that are lost
  std::size_t at = 0;
  for (bool more = true; more && !HasFailure(); ++at) {
    SCOPED_TRACE("call " + std::to_string(at));
    more = Life(GetParam(), at).run();
  }
  EXPECT_GT(at, 25u) << "calls of the whole life";
  set_log_level(before);
}

std::string name_of(const testing::TestParamInfo<How>& info) {
  constexpr const char* kNames[] = {"TheRequest", "TheAnswer",        "TheServer", "OneRunOfTwo",
                                    "TheVoice",   "TheVoiceBehindIt", "TheLease",  "TheLocks",
                                    "TheCount",   "IdleOwners"};
  return std::string(kNames[static_cast<std::size_t>(info.param.cut)]) +
         (info.param.soft ? "OnASoftMount" : "");
}
std::vector<How> all_ways() {
  std::vector<How> all;
  for (const bool soft : {false, true}) {
    for (auto cut = static_cast<int>(Cut::kRequest); cut <= static_cast<int>(Cut::kOwnersForgotten);
         ++cut)
      all.push_back({static_cast<Cut>(cut), soft});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Losing, Minor0CutEverywhere, testing::ValuesIn(all_ways()), name_of);

}  // namespace
}  // namespace nfsrdma
