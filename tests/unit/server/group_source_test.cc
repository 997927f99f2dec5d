// SPDX-License-Identifier: Apache-2.0
#include "server/group_source.h"

#include <filesystem>

#include "tests/support/another_etc.h"

namespace nfsrdma::test {
namespace {

TEST(SystemGroupSource, GivesAllGroupsHoweverMany) {
  NFSRDMA_NEEDS_ROOT();
  constexpr std::uint32_t kGroups = 700, kFirst = 10000, kUid = 4711;
  std::string groups;
  for (std::uint32_t i = 0; i < kGroups; ++i) {
    const std::string number = std::to_string(kFirst + i);
    groups.append("g").append(number).append(":x:").append(number).append(":many\n");
  }
  const int result =
      with_files_in_etc({{"nsswitch.conf", "passwd: files\ngroup: files\ninitgroups: files\n"},
                         {"passwd", "many:x:4711:4712::/:/bin/sh\n"},
                         {"group", groups}},
                        [&] {
                          const auto source = make_system_group_source();
                          for (int time = 0; time < 2; ++time) {  // the second from memory
                            CallerIdentity identity;
                            if ((source->answer_at_hand(kUid) != 0) != (time == 1)) return 1;
                            source->groups(kUid, &identity);
                            if (identity.groups.size() != kGroups + 1) return 3;
                            if (identity.groups.back() != kFirst + kGroups - 1) return 4;
                          }
                          return 0;
                        });
  EXPECT_EQ(result, 0);
}

/// No /etc/passwd is an error (ENOENT), and not a database without users.
TEST(SystemGroupSource, AnErrorIsNoAnswerAndTriedAgainSoon) {
  NFSRDMA_NEEDS_ROOT();
  constexpr std::uint32_t kUid = 4711;
  const int result =
      with_files_in_etc({{"nsswitch.conf", "passwd: files\ngroup: files\ninitgroups: files\n"},
                         {"group", "more:x:10000:one\n"}},
                        [] {
                          std::chrono::steady_clock::time_point now{std::chrono::hours(1)};
                          const auto source = make_system_group_source([&now] { return now; });
                          const auto groups = [&] {
                            CallerIdentity identity;
                            identity.groups = {77};
                            source->groups(kUid, &identity);
                            return identity.groups.size();
                          };
                          if (groups() != 0 || source->answer_at_hand(kUid) == 0) return 1;
                          put_file("/etc/passwd", "one:x:4711:4712::/:/bin/sh\n");
                          now += std::chrono::seconds(11);
                          if (source->answer_at_hand(kUid) != 0 || groups() != 2) return 2;
                          // The last answer counts for as long as there is no other.
                          std::filesystem::remove("/etc/passwd");
                          now += std::chrono::seconds(11);
                          if (source->answer_at_hand(kUid) == 0) return 3;
                          now += std::chrono::minutes(5);
                          if (source->answer_at_hand(kUid) != 0 || groups() != 2) return 4;
                          put_file("/etc/passwd", "other:x:4712:4712::/:/bin/sh\n");
                          now += std::chrono::seconds(11);
                          return groups() == 0 ? 0 : 5;
                        });
  EXPECT_EQ(result, 0);
}

TEST(SystemGroupSource, WhoIsUnknownIsInNoGroups) {
  NFSRDMA_NEEDS_ROOT();
  const int result = with_files_in_etc(
      {{"nsswitch.conf", "passwd: files\n"}, {"passwd", "one:x:4711:4712::/:/bin/sh\n"}}, [] {
        const auto source = make_system_group_source();
        CallerIdentity identity;
        map_identity(user(1234, 1234, {27}), SquashRule{}, source.get(), &identity);
        return identity.groups.empty() ? 0 : 1;
      });
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace nfsrdma::test
