// SPDX-License-Identifier: Apache-2.0
// The sample file and rdma.conf(5) are what options.def makes of them. After a change of that:
//   NFSRDMA_WRITE_TEXTS=1 build/release/bin/config_test --gtest_filter='ConfigTexts.*'
#include "config/config_texts.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "config/config.h"
#include "config/text_file.h"

namespace nfsrdma {
namespace {

using ::testing::HasSubstr;

std::string path_of(const char* name) {
  return std::string(NFSRDMA_SOURCE_DIR) + "/" + name;
}

std::string source_file(const char* name) {
  std::string text;
  ConfigProblems problems;
  EXPECT_TRUE(read_text_file(path_of(name), 1 << 20, &text, &problems)) << name;
  return text;
}

void expect_in_tree(const char* name, const std::string& made) {
  if (std::getenv("NFSRDMA_WRITE_TEXTS") != nullptr) std::ofstream(path_of(name)) << made;
  EXPECT_EQ(source_file(name), made) << name << " is not what config/options.def says";
}

TEST(ConfigTexts, TheSampleFileIsMadeOfTheTable) {
  expect_in_tree("config/files/rdma.conf", sample_config());
}

TEST(ConfigTexts, TheManPageIsMadeOfTheTable) {
  std::string problem;
  const std::string made = config_page(source_file("man/rdma.conf.5.in"), &problem);
  ASSERT_EQ(problem, "");
  expect_in_tree("man/rdma.conf.5", made);
}

TEST(ConfigTexts, TheManPageHasEachKeyWithItsTextRangeAndDefault) {
  const std::string page = source_file("man/rdma.conf.5");
  EXPECT_THAT(page, HasSubstr(".It Cm NFSoRDMA_PORT Ns = Ns Ar number\n"
                              "Port of every RDMA fabric.\n"
                              "From 1 to 65535.\n"
                              "Default:\n"
                              ".Li 20049 .\n"
                              ".It Cm NFSoRDMA_TCP_PORT Ns = Ns Ar port | Cm off\n"));
  EXPECT_THAT(page, HasSubstr("TCP alone is served with\n.Cm NFSoRDMA_FABRIC Ns = Ns Cm none .\n"));
  EXPECT_THAT(page, HasSubstr("\nA reload is enough.\nDefault:\n.Li info .\n"));
}

TEST(ConfigTexts, KeysThatAreMissingUnknownOrTwiceAreNamed) {
  std::string problem;
  config_page(".Sh KEYS\n@NFSoRDMA_LOAD\n.El\n", &problem);
  EXPECT_THAT(problem, HasSubstr("has no entry"));
  config_page("@NFSoRDMA_LOAD\n@NFSoRDMA_LOAD\n", &problem);
  EXPECT_EQ(problem, "NFSoRDMA_LOAD: no such key, or for the second time");
  config_page("@NFSoRDMA_LOUD\n", &problem);
  EXPECT_THAT(problem, HasSubstr("NFSoRDMA_LOUD"));
}

}  // namespace
}  // namespace nfsrdma
