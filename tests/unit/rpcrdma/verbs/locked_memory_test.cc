// SPDX-License-Identifier: Apache-2.0
// Queues of an adapter where little memory may be locked.
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "tests/unit/rpcrdma/verbs/fake_rig.h"

namespace nfsrdma::verbs::test {
namespace {

/// Of the calling thread alone.
void give_up_locking_any_memory() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  ASSERT_EQ(::syscall(SYS_capget, &header, data), 0);
  data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
  ASSERT_EQ(::syscall(SYS_capset, &header, data), 0);
}

class LittleLockedMemory : public FakeRig {
 protected:
  void SetUp() override {
    ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before_), 0);
    rlimit little = before_;
    little.rlim_cur = std::min<rlim_t>(65536, before_.rlim_max);
    ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &little), 0);
    commands_.run([] { give_up_locking_any_memory(); });
    start();
  }
  void TearDown() override { EXPECT_EQ(::setrlimit(RLIMIT_MEMLOCK, &before_), 0); }
  struct Handler final : nfsrdma::CompletionHandler {
    void on_completions() override {}
  };
  Result<std::unique_ptr<CompletionQueue>> another_queue() {
    return device_->create_completion_queue(*loop_, handler_, 16);
  }
  template <typename T>
  static std::string why_not(const Result<T>& made) {
    return made.ok() ? "made" : made.error().message();
  }
  static bool has_remedy(const std::string& message) {
    return message.find("LimitMEMLOCK=infinity") != std::string::npos;
  }

 private:
  rlimit before_{};
  Handler handler_;
};

TEST_F(LittleLockedMemory, IsToldOfACompletionQueue) {
  provider_.refuses_completion_queues = ENOMEM;
  const std::string why = why_not(another_queue());
  EXPECT_TRUE(has_remedy(why)) << why;
}

TEST_F(LittleLockedMemory, IsToldOfAQueuePair) {
  provider_.refuses_queue_pairs = ENOMEM;
  const std::string why = why_not(connect());
  EXPECT_TRUE(has_remedy(why)) << why;
}

TEST_F(LittleLockedMemory, IsNotToldOfWhatElseFails) {
  provider_.refuses_queue_pairs = EINVAL;
  const std::string why = why_not(connect());
  EXPECT_FALSE(has_remedy(why)) << why;
}

}  // namespace
}  // namespace nfsrdma::verbs::test
