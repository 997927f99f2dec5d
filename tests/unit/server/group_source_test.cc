// SPDX-License-Identifier: Apache-2.0
#include "server/group_source.h"

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
                            if (!source->groups(kUid, &identity)) return 2;
                            if (identity.groups.size() != kGroups + 1) return 3;
                            if (identity.groups.back() != kFirst + kGroups - 1) return 4;
                          }
                          return 0;
                        });
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace nfsrdma::test
