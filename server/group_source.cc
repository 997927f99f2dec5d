// SPDX-License-Identifier: Apache-2.0
#include "server/group_source.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rpcrdma/base/log.h"

namespace nfsrdma {

namespace {

class SystemGroupSource final : public GroupSource {
 public:
  using Clock = std::chrono::steady_clock;
  explicit SystemGroupSource(std::function<Clock::time_point()> now) : now_(std::move(now)) {}

  std::uint64_t answer_at_hand(std::uint32_t uid) override {
    std::lock_guard lock(mutex_);
    auto found = answers_.find(uid);
    const bool fresh = found != answers_.end() && found->second.until >= now_();
    return fresh ? found->second.number : 0;
  }

  void groups(std::uint32_t uid, CallerIdentity* identity) override {
    Answer last;
    {
      std::lock_guard lock(mutex_);
      auto found = answers_.find(uid);
      if (found != answers_.end()) last = found->second;
    }
    if (last.until < now_()) {
      last = ask(uid, std::move(last));
      keep(uid, last);
    }
    identity->groups.assign(last.groups.begin(), last.groups.end());
  }

 private:
  static constexpr std::chrono::minutes kKept{5};
  static constexpr std::chrono::seconds kKeptOfNobody{10};       // and where nobody could be asked
  static constexpr std::size_t kMaxText = std::size_t{1} << 20;  // of an entry
  static constexpr std::size_t kMaxAnswers = 65536;
  static constexpr std::size_t kMaxKept = std::size_t{4} << 20;  // groups of all answers
  struct Answer {
    Clock::time_point until = Clock::time_point::min();
    std::uint64_t number = 0;
    std::vector<gid_t> groups;
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

  /// `last` is what it said before; none yet: in no groups.
  Answer ask(std::uint32_t uid, Answer last) {
    std::vector<char> text(16384);
    passwd entry{};
    passwd* found = nullptr;
    int error = 0;
    while ((error = ::getpwuid_r(uid, &entry, text.data(), text.size(), &found)) == ERANGE &&
           text.size() < kMaxText) {
      text.resize(text.size() * 2);
    }
    if (found != nullptr) {
      last.groups = groups_of(entry.pw_name, entry.pw_gid);
    } else if (error == 0) {
      last.groups.clear();
    }
    last.until = now_() + (found != nullptr ? Clock::duration(kKept) : kKeptOfNobody);
    return last;
  }

  std::function<Clock::time_point()> now_;
  std::mutex mutex_;
  std::unordered_map<std::uint32_t, Answer> answers_;
  std::uint64_t last_number_ = 0;
  std::size_t kept_ = 0;  // groups in answers_
};

}  // namespace

std::unique_ptr<GroupSource> make_system_group_source(
    std::function<std::chrono::steady_clock::time_point()> now) {
  return std::make_unique<SystemGroupSource>(std::move(now));
}

}  // namespace nfsrdma
