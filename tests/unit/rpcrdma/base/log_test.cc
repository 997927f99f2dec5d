// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace nfsrdma::test {
namespace {

/// A shell of a unit has the variable, too, and passes it on to what it starts with other outputs.
TEST(Log, StandardErrorIsTheJournalOnlyWhereItIsThatVeryStream) {
  struct stat st {};
  ASSERT_EQ(::fstat(STDERR_FILENO, &st), 0);
  const char* before = std::getenv("JOURNAL_STREAM");
  const std::string saved = before != nullptr ? before : "";
  ::unsetenv("JOURNAL_STREAM");
  EXPECT_FALSE(standard_error_is_the_journal());
  ::setenv("JOURNAL_STREAM", fmt::format("{}:{}", st.st_dev, st.st_ino).c_str(), 1);
  EXPECT_TRUE(standard_error_is_the_journal());
  ::setenv("JOURNAL_STREAM", fmt::format("{}:{}", st.st_dev, st.st_ino + 1).c_str(), 1);
  EXPECT_FALSE(standard_error_is_the_journal());
  ::setenv("JOURNAL_STREAM", "nonsense", 1);
  EXPECT_FALSE(standard_error_is_the_journal());
  if (before == nullptr) {
    ::unsetenv("JOURNAL_STREAM");
  } else {
    ::setenv("JOURNAL_STREAM", saved.c_str(), 1);
  }
}

}  // namespace
}  // namespace nfsrdma::test
