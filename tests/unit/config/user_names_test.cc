// SPDX-License-Identifier: Apache-2.0
#include "config/user_names.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

TEST(SystemNames, KnowRoot) {
  auto service = make_system_name_service();
  EXPECT_EQ(service->uid_of("root"), 0u);
  EXPECT_EQ(service->gid_of("root"), 0u);
  EXPECT_EQ(service->user_of(0), "root");
  EXPECT_EQ(service->group_of(0), "root");
  EXPECT_EQ(service->uid_of("no such user, surely"), std::nullopt);
  EXPECT_EQ(service->group_of(4294967294u - 5), std::nullopt);
}

TEST(IdmapDomain, IsThatOfTheGeneralSection) {
  EXPECT_EQ(idmap_domain("[General]\nVerbosity = 0\nDomain = example.org\n"), "example.org");
  EXPECT_EQ(idmap_domain("[general]\r\n\tdomain=Example.ORG  \r\n"), "Example.ORG");
  EXPECT_EQ(idmap_domain("[Mapping]\nDomain = wrong\n[General]\nDomain = right"), "right");
}

TEST(IdmapDomain, IsEmptyWhereThereIsNone) {
  EXPECT_EQ(idmap_domain(""), "");
  EXPECT_EQ(idmap_domain("Domain = outside\n[General]\n# Domain = example.org\n; Domain = x\n"),
            "");
  EXPECT_EQ(idmap_domain("[General]\nDomain\nLocal-Realms = a\n[Mapping]\nDomain = wrong\n"), "");
}

TEST(IdmapDomain, TheSystemAlwaysHasOne) {
  EXPECT_NE(system_idmap_domain(), "");
}

}  // namespace
}  // namespace nfsrdma
