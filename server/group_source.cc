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

#include "rpcrdma/base/log.h"

namespace nfsrdma {

namespace {

class SystemGroupSource final : public GroupSource {
 public:
  std::uint64_t answer_at_hand(std::uint32_t uid) override {
    std::lock_guard lock(mutex_);
    auto found = answers_.find(uid);
    const bool known = found != answers_.end() && found->second.until >= Clock::now();
    return known ? found->second.number : 0;
  }

  bool groups(std::uint32_t uid, CallerIdentity* identity) override {
    {
      std::lock_guard lock(mutex_);
      auto found = answers_.find(uid);
      if (found != answers_.end() && found->second.until >= Clock::now()) {
        return found->second.give(identity);
      }
    }
    Answer answer = ask(uid);
    const bool known = answer.give(identity);
    keep(uid, std::move(answer));
    return known;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMaxAnswers = 65536;
  static constexpr std::size_t kMaxKept = std::size_t{4} << 20;  // groups of all answers
  struct Answer {
    Clock::time_point until{};
    std::uint64_t number = 0;
    bool known = false;
    std::vector<gid_t> groups;

    bool give(CallerIdentity* identity) const {
      if (known) identity->groups.assign(groups.begin(), groups.end());
      return known;
    }
  };

  void keep(std::uint32_t uid, Answer answer) {
    std::lock_guard lock(mutex_);
    if (answers_.size() >= kMaxAnswers || kept_ + answer.groups.size() > kMaxKept) {
      answers_.clear();
      kept_ = 0;
    }
    answer.number = ++last_number_;
    Answer& slot = answers_[uid];
    kept_ += answer.groups.size() - slot.groups.size();
    slot = std::move(answer);
  }

  /// All groups of `name`, however many.
  static std::vector<gid_t> groups_of(const char* name, gid_t gid) {
    std::vector<gid_t> groups(64);
    for (;;) {
      int count = static_cast<int>(groups.size());
      if (::getgrouplist(name, gid, groups.data(), &count) >= 0) {
        groups.resize(static_cast<std::size_t>(count));
        return groups;
      }
      if (groups.size() >= CallerIdentity::kMaxGroups) break;
      // It says how many there are, which may be more by the time it is asked again.
      const auto there = static_cast<std::size_t>(std::max(count, 0));
      groups.resize(std::min(std::max(there, groups.size() * 2), CallerIdentity::kMaxGroups));
    }
    static thread_local RateLimit limit(1, std::chrono::minutes(10));
    if (limit.allow()) {
      log_warning("{} is in more than {} groups: the others do not count", name, groups.size());
    }
    return groups;
  }

  static Answer ask(std::uint32_t uid) {
    Answer answer;
    answer.until = Clock::now() + std::chrono::minutes(5);
    std::vector<char> text(16384);
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwuid_r(uid, &entry, text.data(), text.size(), &found) != 0 || found == nullptr) {
      return answer;
    }
    answer.groups = groups_of(entry.pw_name, entry.pw_gid);
    answer.known = true;
    return answer;
  }

  std::mutex mutex_;
  std::unordered_map<std::uint32_t, Answer> answers_;
  std::uint64_t last_number_ = 0;
  std::size_t kept_ = 0;  // groups in answers_
};

}  // namespace

std::unique_ptr<GroupSource> make_system_group_source() {
  return std::make_unique<SystemGroupSource>();
}

}  // namespace nfsrdma
