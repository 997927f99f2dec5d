// SPDX-License-Identifier: Apache-2.0
#include "server/group_source.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace nfsrdma {

namespace {

class SystemGroupSource final : public GroupSource {
 public:
  bool knows(std::uint32_t uid) override {
    std::lock_guard lock(mutex_);
    auto found = answers_.find(uid);
    return found != answers_.end() && found->second.until >= Clock::now();
  }

  bool groups(std::uint32_t uid, CallerIdentity* identity) override {
    Answer answer;
    {
      std::lock_guard lock(mutex_);
      auto found = answers_.find(uid);
      if (found != answers_.end() && found->second.until >= Clock::now()) answer = found->second;
    }
    if (answer.until == Clock::time_point{}) {
      answer = ask(uid);
      std::lock_guard lock(mutex_);
      if (answers_.size() >= kMaxAnswers) answers_.clear();
      answers_[uid] = answer;
    }
    if (!answer.known) return false;
    identity->group_count =
        static_cast<std::uint32_t>(std::min(answer.groups.size(), CallerIdentity::kMaxGroups));
    std::copy_n(answer.groups.begin(), identity->group_count, identity->groups.begin());
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMaxAnswers = 65536;
  struct Answer {
    Clock::time_point until{};
    bool known = false;
    std::vector<gid_t> groups;
  };

  static Answer ask(std::uint32_t uid) {
    Answer answer;
    answer.until = Clock::now() + std::chrono::minutes(5);
    std::vector<char> text(16384);
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwuid_r(uid, &entry, text.data(), text.size(), &found) != 0 || found == nullptr) {
      return answer;
    }
    int count = CallerIdentity::kMaxGroups;
    answer.groups.resize(static_cast<std::size_t>(count));
    if (::getgrouplist(entry.pw_name, entry.pw_gid, answer.groups.data(), &count) < 0) {
      count = CallerIdentity::kMaxGroups;
    }
    answer.groups.resize(static_cast<std::size_t>(count));
    answer.known = true;
    return answer;
  }

  std::mutex mutex_;
  std::unordered_map<std::uint32_t, Answer> answers_;
};

}  // namespace

std::unique_ptr<GroupSource> make_system_group_source() {
  return std::make_unique<SystemGroupSource>();
}

}  // namespace nfsrdma
