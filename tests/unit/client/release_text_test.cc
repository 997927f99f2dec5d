// SPDX-License-Identifier: Apache-2.0
#include "client/tool/release_text.h"

#include <gtest/gtest.h>

#include "client/tool/commands.h"

namespace nfsrdma::tool {
namespace {

std::string text_of(const std::string& document) {
  const auto value = JsonValue::parse(document);
  EXPECT_TRUE(value);
  return value ? release_text(*value) : std::string();
}

TEST(ReleaseText, SaysWhoLostWhat) {
  EXPECT_EQ(text_of(R"({"version":1,"path":"/srv/a","whole_file_system":true,"files":2,"clients":[
    {"client":"01","address":"192.0.2.7","protocol":"4.2","opens":2,"locks":1,"delegations":1},
    {"client":"02","address":"192.0.2.8","protocol":"NLM","opens":1,"locks":0,"delegations":0}],
    "copies":1,"exports":[],"reached_by":[],"mounted_below":[],"files_in_use":0})"),
            "/srv/a: what clients held of 2 files was revoked\n"
            "  192.0.2.7 (NFS 4.2): 2 opens, 1 lock, 1 delegation\n"
            "  192.0.2.8 (NLM): 1 share\n"
            "  1 asynchronous COPY ended\n"
            "The server keeps nothing of it open.\n");
}

TEST(ReleaseText, SaysWhatKeepsAFileSystemBusy) {
  const std::string text = text_of(
      R"({"version":1,"path":"/srv/a","whole_file_system":true,"files":0,"clients":[],"copies":0,
      "exports":["/srv/a","/srv/a/b"],"reached_by":["/srv"],"mounted_below":["/srv/a/c"],
      "files_in_use":1,"has_state_directory":true,"silent_threads":2})");
  for (const char* line : {"Exported still: /srv/a, /srv/a/b.", "crossmnt: /srv.",
                           "Mounted below it: /srv/a/c.", "Calls under way use 1 file.",
                           "state directory is on it", "2 of the server's threads do"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << " in " << text;
  }
  EXPECT_EQ(text.find("keeps nothing"), std::string::npos);
}

/// That of the kernel's server is another one.
TEST(ReleaseText, TheHelpNamesTheFileThatTheServerReads) {
  testing::internal::CaptureStdout();
  run_release({"--help"});
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_NE(help.find("/etc/nfs-rdma.exports"), std::string::npos) << help;
  EXPECT_EQ(help.find("/etc/exports"), std::string::npos) << help;
}

TEST(ReleaseText, OfASingleFileSaysNothingOfFileSystems) {
  EXPECT_EQ(text_of(R"({"version":1,"path":"/srv/a/f","whole_file_system":false,"files":0,
      "clients":[],"copies":0,"exports":[]})"),
            "/srv/a/f: what clients held of 0 files was revoked\n");
}

}  // namespace
}  // namespace nfsrdma::tool
