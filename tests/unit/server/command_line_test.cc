// SPDX-License-Identifier: Apache-2.0
#include "server/command_line.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/support/exported_directory.h"

namespace nfsrdma::test {
namespace {

using testing::HasSubstr;

class Configured : public ::testing::Test {
 protected:
  Configured() { put_file(config, ""); }
  /// As the program would with these words and the file.
  CommandLine line(std::vector<const char*> words) {
    words.insert(words.begin(), {"--config", config.c_str()});
    return bare_line(std::move(words));
  }
  /// With these words alone.
  CommandLine bare_line(std::vector<const char*> words) {
    words.insert(words.begin(), "nfs-rdmad");
    CommandLine out;
    std::string problem;
    EXPECT_TRUE(parse_command_line(static_cast<int>(words.size()), words.data(), &out, &problem))
        << problem;
    return out;
  }
  Settings settings(const std::string& text, std::vector<const char*> words = {}) {
    put_file(config, text);
    return make_settings(line(std::move(words)));
  }
  TemporaryDirectory home;
  std::string config = home.path() + "/rdma.conf";
};

TEST_F(Configured, EachKeyIsPrintedWithItsOrigin) {
  const Settings s = settings("# x\nNFSoRDMA_PORT=2050\nNFSoRDMA_MEMORY=64M\n",
                              {"--tcp-port", "off", "--listen", "::1", "--listen", "127.0.0.1"});
  const std::string text = effective_config(s);
  EXPECT_THAT(text, HasSubstr("NFSoRDMA_PORT=2050  # " + config + ":2\n"));
  EXPECT_THAT(text, HasSubstr("NFSoRDMA_MEMORY=64M  # " + config + ":3\n"));
  EXPECT_THAT(text, HasSubstr("NFSoRDMA_TCP_PORT=off  # --tcp-port\n"));
  EXPECT_THAT(text, HasSubstr("NFSoRDMA_LISTEN='::1 127.0.0.1'  # --listen\n"));
  EXPECT_THAT(text, HasSubstr("NFSoRDMA_FABRIC=auto  # default\n"));
}

TEST_F(Configured, AnAddressIsListenedOnOnce) {
  const Settings named = settings("", {"--listen", "127.0.0.1", "--listen", "::1", "--listen",
                                       "0:0:0:0:0:0:0:1", "--listen", "127.0.0.1"});
  EXPECT_EQ(named.listen.size(), 2u);
  EXPECT_EQ(settings("NFSoRDMA_LISTEN='::1 ::1'\n").listen.size(), 1u);
}

TEST_F(Configured, WhatIsPrintedIsReadAsTheSame) {
  const Settings s =
      settings("NFSoRDMA_PORT=2050\nNFSoRDMA_EXPORTS='/etc/a b'\nNFSoRDMA_CRC=require\n",
               {"--listen", "::1", "--state-dir", "/it's here", "--log-level", "debug"});
  const ParsedConfig again = parse_config(effective_config(s), "printed");
  ASSERT_TRUE(again.ok()) << again.problems[0].text();
  EXPECT_EQ(again.config, s.config);
  EXPECT_TRUE(again.notices.empty());
}

TEST_F(Configured, ExportsFilesHaveAnOriginToo) {
  EXPECT_THAT(effective_config(settings("", {"--exports", "/e"})),
              HasSubstr("NFSoRDMA_EXPORTS=/e  # --exports\n"));
  EXPECT_THAT(effective_config(settings("", {"-e", "/"})),
              HasSubstr("NFSoRDMA_EXPORTS=''  # not read because of -e\n"));
  EXPECT_THAT(effective_config(settings("NFSoRDMA_EXPORTS=/f\n", {"-e", "/"})),
              HasSubstr("NFSoRDMA_EXPORTS=/f  # " + config + ":1\n"));
}

TEST_F(Configured, RelativePathsMeanWhereTheProcessStarted) {
  std::filesystem::create_directory(home.path() + "/data");
  put_file(home.path() + "/rdma.conf", "NFSoRDMA_PORT=2050\n");
  put_file(home.path() + "/given.conf", "NFSoRDMA_PORT=2051\nNFSoRDMA_EXPORTS=exports\n");
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(home.path());
  const CommandLine by_options =
      bare_line({"--config", "rdma.conf", "-e", "data", "--exports", "more", "--state-dir", "state",
                 "--control", "control.sock"});
  const CommandLine by_file = bare_line({"--config", "given.conf"});
  // As a server in the background reads everything again.
  std::filesystem::current_path("/");
  const Settings given = make_settings(by_options), filed = make_settings(by_file);
  std::filesystem::current_path(before);
  EXPECT_TRUE(given.problems.empty());
  EXPECT_EQ(given.config.port, 2050u);
  ASSERT_EQ(given.command_line_exports.size(), 1u);
  EXPECT_EQ(given.command_line_exports[0].path, std::filesystem::canonical(home.path() + "/data"));
  EXPECT_EQ(given.exports_file, home.path() + "/more");
  EXPECT_EQ(given.config.state_dir, home.path() + "/state");
  EXPECT_EQ(given.config.control_socket, home.path() + "/control.sock");
  EXPECT_EQ(filed.config.port, 2051u);
  EXPECT_EQ(filed.exports_file, home.path() + "/exports");
}

TEST_F(Configured, LoadNoIsToldWithItsPlace) {
  EXPECT_EQ(load_refusal(settings("NFSoRDMA_LOAD=yes\n")), "");
  EXPECT_EQ(load_refusal(settings("")), "");
  EXPECT_EQ(load_refusal(settings("\nNFSoRDMA_LOAD=no\n")),
            "NFSoRDMA_LOAD=no in " + config + ":2: not serving");
}

TEST_F(Configured, TheModesAreOptions) {
  EXPECT_TRUE(line({"--print-config"}).print_config);
  EXPECT_TRUE(line({"--load-condition"}).load_condition);
  EXPECT_FALSE(line({}).print_config);
  EXPECT_FALSE(line({}).load_condition);
}

TEST_F(Configured, AWrongOptionIsNamedAsSuch) {
  const Settings s = settings("", {"--port", "0"});
  ASSERT_EQ(s.usage_problems.size(), 1u);
  EXPECT_EQ(s.usage_problems[0].text(), "--port: '0' is not a number from 1 to 65535");
}

TEST_F(Configured, OnePortForRdmaAndTcpIsAMistakeThatNamesBothKeys) {
  const Settings s = settings("NFSoRDMA_TCP_PORT=2050\n", {"--port", "2050"});
  ASSERT_EQ(s.problems.size(), 1u);
  EXPECT_EQ(s.problems[0].text(), "NFSoRDMA_PORT (--port) and NFSoRDMA_TCP_PORT (" + config +
                                      ":1) are both 2050: iWARP listens on a TCP port of its own, "
                                      "set another for one of them");
  EXPECT_TRUE(settings("NFSoRDMA_PORT=2049\nNFSoRDMA_TCP_PORT=off\n").problems.empty());
  EXPECT_TRUE(settings("NFSoRDMA_PORT=2049\nNFSoRDMA_FABRIC=none\n").problems.empty());
  EXPECT_TRUE(settings("NFSoRDMA_PORT=2049\nNFSoRDMA_FABRIC=verbs\n").problems.empty());
  EXPECT_FALSE(settings("NFSoRDMA_PORT=2049\nNFSoRDMA_FABRIC=iwarp\n").problems.empty());
}

TEST_F(Configured, HelpNamesEveryKeyAndWhenItCounts) {
  const std::string help = help_text();
  for (const OptionRow& row : option_rows()) {
    const std::size_t at = help.find("  " + std::string(row.key) + "=");
    ASSERT_NE(at, std::string::npos) << row.key;
    const std::string entry = help.substr(at, help.find("\n  NFSo", at + 1) - at);
    EXPECT_THAT(entry, HasSubstr(row.when == TakesEffect::kAtReload ? "a reload is enough"
                                                                    : "at the next start"))
        << row.key;
    EXPECT_THAT(entry, HasSubstr(row.expected)) << row.key;
  }
}

TEST_F(Configured, ExportsComeFromTheDirectoryAsWell) {
  const std::string file = home.path() + "/exports";
  std::filesystem::create_directory(file + ".d");
  put_file(file, "/a *\n");
  put_file(file + ".d/b.exports", "/b *\n");
  const ParsedExports exports = load_exports(settings("NFSoRDMA_EXPORTS=" + file + "\n"));
  ASSERT_TRUE(exports.ok());
  EXPECT_EQ(exports.entries.size(), 2u);
}

TEST_F(Configured, AMissingExportsFileIsToldWithTheRemedy) {
  const ParsedExports exports =
      load_exports(settings("NFSoRDMA_EXPORTS=" + home.path() + "/none\n"));
  ASSERT_EQ(exports.problems.size(), 1u);
  EXPECT_THAT(exports.problems[0].text(), HasSubstr("or export a directory with -e"));
}

}  // namespace
}  // namespace nfsrdma::test
