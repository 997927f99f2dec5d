// SPDX-License-Identifier: Apache-2.0
#include "client/version_choice.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace nfsrdma {
namespace {

constexpr Error kNoProgram{Errc::kUnsupported, EPROTONOSUPPORT, "RPC"};
constexpr Error kNoMinorVersion{Errc::kSystem, EPROTONOSUPPORT, "EXCHANGE_ID"};
constexpr Error kNoSuchPath{Errc::kSystem, ENOENT, "LOOKUP"};
constexpr Error kNoMountService{Errc::kUnsupported, ECONNREFUSED, "no MOUNT service"};
constexpr Error kNotExported{Errc::kRefused, EACCES, "MOUNT"};
constexpr Error kSilent{Errc::kTimedOut, ETIMEDOUT, "mount"};

TEST(VersionChoice, Version3ComesWhereVersion4IsNotSpokenOrHasNoSuchPath) {
  EXPECT_TRUE(leads_to_version_3(kNoProgram));
  EXPECT_TRUE(leads_to_version_3(kNoMinorVersion));
  EXPECT_TRUE(leads_to_version_3(kNoSuchPath));
}

TEST(VersionChoice, OtherErrorsAreTheAnswer) {
  for (const Error& error : {kSilent, kNotExported, Error{Errc::kSystem, EIO, "EXCHANGE_ID"},
                             Error{Errc::kSystem, EINTR, "interrupted"},
                             Error{Errc::kClosed, ECONNREFUSED, "connect"}}) {
    EXPECT_FALSE(leads_to_version_3(error)) << error.message();
  }
}

TEST(VersionChoice, TheErrorThatSaysMoreIsShown) {
  // Version 4 is not there: whatever version 3 says.
  EXPECT_TRUE(version_3_says_more(kNoProgram, kNoMountService));
  EXPECT_TRUE(version_3_says_more(kNoMinorVersion, kNotExported));
  // It is, without the path: MOUNT may know why, or nothing.
  EXPECT_TRUE(version_3_says_more(kNoSuchPath, kNotExported));
  EXPECT_FALSE(version_3_says_more(kNoSuchPath, kNoMountService));
  EXPECT_FALSE(version_3_says_more(kNoSuchPath, kNoProgram));
}

TEST(NfsVersion, IsNamedOrAny) {
  EXPECT_EQ(kBestVersion.text(), "");
  NfsVersion version = kBestVersion;
  for (const char* text : {"3", "4", "4.1", "4.2"}) {
    EXPECT_EQ(parse_nfs_version(text, &version), "");
    EXPECT_EQ(version.text(), text);
    EXPECT_FALSE(version.any) << text;
  }
}

}  // namespace
}  // namespace nfsrdma
