// SPDX-License-Identifier: Apache-2.0
// Requests about exports against a table with real directories, as the control socket makes them.
#include "server/export_service.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstring>

#include "rpcrdma/base/json_value.h"
#include "server/export_overlay.h"
#include "tests/support/exported_directory.h"
#include "tests/support/mounted_tmpfs.h"
#include "tests/support/no_more_threads.h"

namespace nfsrdma::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> texts(const JsonValue& array) {
  std::vector<std::string> out;
  for (const JsonValue& item : array.items())
    out.push_back(item.text());
  return out;
}

class ExportRequests : public ::testing::Test {
 protected:
  ExportRequests() {
    for (const char* name : {"/a", "/b", "/c"})
      std::filesystem::create_directory(home.path() + name);
    a = home.path() + "/a";
    b = home.path() + "/b";
    c = home.path() + "/c";
    put_file(config, "NFSoRDMA_EXPORTS=" + file + "\n");
    put_file(file, a + " 192.0.2.0/24(rw) *(ro)\n");
    loop = EventLoop::create().value();
    start();
  }
  ~ExportRequests() override { service.reset(); }

  void start() {
    CommandLine line;
    line.config_file = config;
    service = std::make_unique<ExportService>(
        *loop, table, line, make_settings(line),
        ExportService::Hooks{[this](const std::vector<ExportEntry>& now) { told = now.size(); },
                             [this](const ReloadPlan& plan) {
                               if (plan.applies("NFSoRDMA_LOG_LEVEL"))
                                 level = plan.settings.config.log_level;
                             },
                             [this](const std::set<std::uint64_t>& devices) { left = devices; }});
    first = service->load();
  }
  /// The answer to {"request":"exports",MEMBERS}.
  JsonValue ask(const std::string& members) {
    const auto request = JsonValue::parse("{\"request\":\"exports\"" + members + "}");
    EXPECT_TRUE(request) << members;
    std::string answer;
    service->answer(*request, [&](std::string document) { answer = std::move(document); });
    while (answer.empty())
      loop->turn(std::chrono::seconds(10));
    auto parsed = JsonValue::parse(answer);
    EXPECT_TRUE(parsed) << answer;
    return parsed ? *parsed : JsonValue();
  }
  JsonValue change(const char* action, const std::string& client, const std::string& path,
                   const std::string& options = "") {
    return ask(",\"action\":\"" + std::string(action) + "\",\"client\":\"" + client +
               "\",\"path\":\"" + path + "\",\"options\":\"" + options + "\"");
  }
  ExportAccess access(const std::string& path, const char* peer) {
    std::string_view rest;
    ExportAccess out;
    const Export* entry = table.current().find_path(path, &rest);
    if (entry != nullptr && entry->path == path)
      table.access(*entry, SocketAddress::parse(peer, 700).value(), true, &out);
    return out;
  }

  TemporaryDirectory home;
  std::string a, b, c;
  std::string config = home.path() + "/rdma.conf";
  std::string file = home.path() + "/exports";
  ExportTable table;
  std::unique_ptr<EventLoop> loop;
  std::unique_ptr<ExportService> service;
  ExportService::Report first;
  std::size_t told = 0;
  std::string level;
  std::set<std::uint64_t> left;
};

TEST_F(ExportRequests, ListWhatIsInForce) {
  EXPECT_TRUE(first.ok);
  EXPECT_EQ(told, 1u);
  const JsonValue answer = ask("");
  ASSERT_EQ(answer["exports"].items().size(), 1u);
  const JsonValue& entry = answer["exports"].items()[0];
  EXPECT_EQ(entry["path"].text(), a);
  EXPECT_TRUE(entry["in_force"].truth());
  ASSERT_EQ(entry["clients"].items().size(), 2u);
  const JsonValue& client = entry["clients"].items()[0];
  EXPECT_EQ(client["client"].text(), "192.0.2.0/24");
  EXPECT_THAT(client["options"].text(), HasSubstr(",rw,root_squash"));
  EXPECT_EQ(client["file"].text(), file);
  EXPECT_EQ(client["line"].count(), 1u);
  EXPECT_FALSE(client["temporary"].truth());
}

TEST_F(ExportRequests, AMissingDirectoryIsListedAsNotInForce) {
  put_file(file, "/nonexistent *\n" + b + " *\n");
  EXPECT_TRUE(ask(",\"action\":\"reread\"")["done"].truth());
  const JsonValue answer = ask(",\"action\":\"list\"");
  ASSERT_EQ(answer["exports"].items().size(), 2u);
  EXPECT_FALSE(answer["exports"].items()[0]["in_force"].truth());
  EXPECT_TRUE(answer["exports"].items()[1]["in_force"].truth());
  EXPECT_EQ(answer["problems"].items().size(), 1u);
}

TEST_F(ExportRequests, WhatIsAddedLastsUntilTheFilesAreReadAgain) {
  const JsonValue added = change("add", "*", b, "rw,insecure");
  EXPECT_TRUE(added["done"].truth()) << added["error"].text();
  EXPECT_THAT(texts(added["changes"]), ElementsAre("export " + b + ": added"));
  EXPECT_FALSE(access(b, "192.0.2.7").read_only);
  EXPECT_TRUE(ask("")["exports"].items()[1]["clients"].items()[0]["temporary"].truth());
  EXPECT_EQ(told, 2u);
  const JsonValue again = ask(",\"action\":\"reread\"");
  EXPECT_THAT(texts(again["changes"]), ElementsAre("export " + b + ": removed"));
  EXPECT_FALSE(access(b, "192.0.2.7").allowed);
}

TEST_F(ExportRequests, AddingAClientAgainChangesItsOptions) {
  const JsonValue changed = change("add", "*", a + "/", "rw");
  EXPECT_THAT(texts(changed["changes"]), ElementsAre("export " + a + ": client *: ro -> rw"));
  EXPECT_FALSE(access(a, "198.51.100.1").read_only);
  ask(",\"action\":\"reread\"");
  EXPECT_TRUE(access(a, "198.51.100.1").read_only);
}

TEST_F(ExportRequests, AClientIsTheSameHoweverItIsWritten) {
  const JsonValue changed = change("add", "192.0.2.0/255.255.255.0", a, "ro");
  EXPECT_THAT(texts(changed["changes"]),
              ElementsAre("export " + a + ": client 192.0.2.0/255.255.255.0: rw -> ro"));
  EXPECT_TRUE(access(a, "192.0.2.7").read_only);
  EXPECT_TRUE(change("remove", "192.0.2.1/24", a)["done"].truth());
  EXPECT_TRUE(access(a, "192.0.2.7").read_only) << "as everyone";
}

TEST_F(ExportRequests, AnAddedNetworkThatNeverCountsIsTold) {
  const JsonValue added = change("add", "192.0.2.0/25", a, "ro");
  EXPECT_TRUE(added["done"].truth()) << added["error"].text();
  EXPECT_THAT(texts(added["notices"]),
              ElementsAre(HasSubstr("192.0.2.0/25 never counts: 192.0.2.0/24 stands before it")));
}

TEST_F(ExportRequests, WhatIsRemovedIsGoneAtOnce) {
  const JsonValue removed = change("remove", "*", a);
  EXPECT_THAT(texts(removed["changes"]), ElementsAre("export " + a + ": client *: removed"));
  EXPECT_FALSE(access(a, "198.51.100.1").allowed);
  EXPECT_TRUE(access(a, "192.0.2.7").allowed);
  EXPECT_TRUE(change("remove", "192.0.2.0/24", a)["done"].truth());
  EXPECT_TRUE(ask("")["exports"].items().empty());
}

TEST_F(ExportRequests, WhatCannotBeAddedOrRemovedIsToldAndChangesNothing) {
  EXPECT_THAT(change("add", "*", "/nonexistent")["error"].text(), HasSubstr("/nonexistent: "));
  EXPECT_THAT(change("add", "*", b, "rww")["error"].text(), HasSubstr("did you mean rw?"));
  EXPECT_THAT(change("add", "*", "b")["error"].text(), HasSubstr("no absolute path"));
  EXPECT_THAT(change("add", "@", b)["error"].text(), HasSubstr("@NAME"));
  EXPECT_THAT(change("add", "h) x(", b)["error"].text(), HasSubstr("no client with options"));
  EXPECT_EQ(change("remove", "h", a)["error"].text(),
            a + " is not exported to h, but to 192.0.2.0/24 *");
  EXPECT_EQ(change("remove", "*", b)["error"].text(), b + " is not exported");
  EXPECT_EQ(ask("")["exports"].items().size(), 1u);
  EXPECT_TRUE(access(a, "192.0.2.7").allowed);
}

/// A client that is added does not change what file handles of the others begin with, nor take the
/// fsid of another export away.
TEST_F(ExportRequests, AClientWithAnotherFsidIsRefused) {
  put_file(file, a + " 192.0.2.0/24(rw)\n" + b + " *(rw,fsid=5)\n");
  ASSERT_TRUE(ask(",\"action\":\"reread\"")["done"].truth());
  EXPECT_THAT(change("add", "10.1.2.3", a, "rw,fsid=5")["error"].text(),
              HasSubstr("fsid=5 is that of " + b + " in " + file + ":2 already"));
  EXPECT_THAT(change("add", "10.1.2.3", a, "rw,fsid=6")["error"].text(),
              testing::AllOf(HasSubstr(a + ": file handles that clients have go by their path"),
                             HasSubstr("would get fsid=6: leave fsid= out")));
  EXPECT_THAT(change("add", "*", b, "rw")["error"].text(), HasSubstr("get no fsid=: write fsid=5"));
  EXPECT_THAT(change("add", "10.1.2.3", b, "rw,fsid=6")["error"].text(),
              HasSubstr("give it one for all of its clients"));
  EXPECT_TRUE(access(a, "192.0.2.7").allowed);
  EXPECT_FALSE(access(a, "10.1.2.3").allowed);
  EXPECT_TRUE(access(b, "192.0.2.7").allowed);
  EXPECT_TRUE(change("add", "10.1.2.3", b, "rw,fsid=5")["done"].truth());
}

TEST_F(ExportRequests, TheClientThatHasTheFsidAloneStays) {
  put_file(file, b + " *(rw) 10.1.2.3(rw,fsid=5)\n");
  ASSERT_TRUE(ask(",\"action\":\"reread\"")["done"].truth());
  EXPECT_THAT(change("remove", "10.1.2.3", b)["error"].text(),
              HasSubstr("give another of its clients fsid=5 first"));
  EXPECT_TRUE(change("add", "*", b, "rw,fsid=5")["done"].truth());
  EXPECT_TRUE(change("remove", "10.1.2.3", b)["done"].truth());
  EXPECT_TRUE(access(b, "10.1.2.3").allowed);
}

/// Nor does it matter to it what became of the directories of others.
TEST_F(ExportRequests, AnAddedExportLeavesTheOthersAsTheyAre) {
  std::filesystem::rename(a, a + ".away");
  const JsonValue added = change("add", "*", b);
  EXPECT_TRUE(added["done"].truth()) << added["error"].text();
  EXPECT_THAT(texts(added["problems"]),
              ElementsAre(HasSubstr("what was open before is served on")));
  EXPECT_TRUE(access(a, "192.0.2.7").allowed);
  EXPECT_TRUE(access(b, "192.0.2.7").allowed);
}

TEST_F(ExportRequests, RereadingTellsWhatChanged) {
  put_file(file, a + " 192.0.2.0/24(ro)\n" + c + " *\n");
  put_file(config, "NFSoRDMA_EXPORTS=" + file + "\nNFSoRDMA_LOG_LEVEL=debug\nNFSoRDMA_PORT=7\n");
  const JsonValue answer = ask(",\"action\":\"reread\"");
  EXPECT_TRUE(answer["done"].truth());
  EXPECT_THAT(texts(answer["changes"]),
              ElementsAre("NFSoRDMA_PORT: 20049 -> 7 takes effect at the next start",
                          "NFSoRDMA_LOG_LEVEL: info -> debug",
                          "export " + a + ": client 192.0.2.0/24: rw -> ro",
                          "export " + a + ": client *: removed", "export " + c + ": added"));
  EXPECT_EQ(level, "debug");
  EXPECT_EQ(service->settings().config.port, 20049u);
  EXPECT_TRUE(access(c, "192.0.2.7").allowed);
}

TEST_F(ExportRequests, RereadingMistakesChangesNothing) {
  put_file(file, b + " *(rww)\n");
  JsonValue answer = ask(",\"action\":\"reread\"");
  EXPECT_FALSE(answer["done"].truth());
  EXPECT_THAT(texts(answer["problems"]), ElementsAre(HasSubstr("exports:1:")));
  put_file(file, b + " *\n");
  put_file(config, "NFSoRDMA_PROT=1\n");
  answer = ask(",\"action\":\"reread\"");
  EXPECT_FALSE(answer["done"].truth());
  EXPECT_THAT(texts(answer["problems"]), ElementsAre(HasSubstr("did you mean NFSoRDMA_PORT?")));
  EXPECT_TRUE(access(a, "192.0.2.7").allowed);
  EXPECT_FALSE(access(b, "192.0.2.7").allowed);
}

TEST_F(ExportRequests, EveryoneWhoAskedForAReloadIsAnswered) {
  int answered = 0;
  for (int i = 0; i < 3; ++i) {
    service->reload([&](const ExportService::Report& report) {
      EXPECT_TRUE(report.ok);
      if (++answered == 3) loop->stop();
    });
  }
  loop->run();
  EXPECT_EQ(answered, 3);
}

/// At the limit of processes of a service or a container the server serves on.
TEST_F(ExportRequests, AReloadNeedsNoFurtherThread) {
  bool answered = false;
  {
    const NoMoreThreads limit;
    ASSERT_TRUE(NoMoreThreads::hold());
    service->reload([&](const ExportService::Report&) { answered = true; });
  }
  while (!answered)
    loop->turn(std::chrono::seconds(10));
}

TEST_F(ExportRequests, WithoutAThreadTheStartSaysSo) {
  std::filesystem::permissions(home.path(), std::filesystem::perms(0755));
  const NoMoreThreads limit;
  ASSERT_TRUE(NoMoreThreads::hold());
  start();
  EXPECT_FALSE(first.ok);
  ASSERT_FALSE(first.problems.empty());
  EXPECT_THAT(first.problems.back().text(), HasSubstr("starting a thread"));
}

/// A name service that hangs, say, with an exports file that is a pipe nobody writes to.
TEST_F(ExportRequests, ItStopsInTimeWhileSomethingHangs) {
  EXPECT_TRUE(service->stop(std::chrono::steady_clock::now()));  // nothing ran yet
  start();
  ask(",\"action\":\"reread\"");
  std::filesystem::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  service->reload(nullptr);
  // It is in open() once there is a reader.
  UniqueFd writer;
  while (!writer)
    writer.reset(::open(file.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_FALSE(service->stop(std::chrono::steady_clock::now()));
  writer.reset();  // ends the file, and the wait
  EXPECT_TRUE(service->stop(std::chrono::steady_clock::now() + std::chrono::seconds(20)));
}

TEST_F(ExportRequests, AnExportThatWaitsForAMountIsServedWhileThereIsOne) {
  put_file(file, b + " *(rw,mp)\n");
  EXPECT_EQ(ask(",\"action\":\"reread\"")["problems"].items().size(), 1u);
  EXPECT_FALSE(access(b, "192.0.2.7").allowed);
  MountedTmpfs disk;
  NFSRDMA_MOUNT(disk, b, "size=1m");
  while (!access(b, "192.0.2.7").allowed)
    loop->turn(std::chrono::seconds(10));
  EXPECT_TRUE(ask("")["exports"].items()[0]["in_force"].truth());
  ASSERT_EQ(::umount2(b.c_str(), MNT_DETACH), 0);  // it is in use
  while (access(b, "192.0.2.7").allowed)
    loop->turn(std::chrono::seconds(10));
  EXPECT_FALSE(ask("")["exports"].items()[0]["in_force"].truth());
}

/// And is not let in by the next rule that matches.
TEST_F(ExportRequests, WithoutTheMountOnlyTheClientThatAsksForItIsRefused) {
  put_file(file, b + " 192.0.2.0/24(rw,mp=" + c + ") *(ro)\n");
  JsonValue answer = ask(",\"action\":\"reread\"");
  EXPECT_TRUE(answer["done"].truth());
  EXPECT_TRUE(answer["problems"].items().empty());
  EXPECT_TRUE(access(b, "198.51.100.1").allowed);
  EXPECT_FALSE(access(b, "192.0.2.7").allowed);
  answer = ask(",\"action\":\"explain\",\"client\":\"192.0.2.7\"");
  const JsonValue& entry = answer["addresses"].items().at(0)["exports"].items().at(0);
  EXPECT_FALSE(entry["allowed"].truth());
  EXPECT_TRUE(entry["rules"].items().at(0)["decides"].truth());
  EXPECT_EQ(entry["refused"].text(), "nothing is mounted at " + c + " (option mountpoint)");
}

TEST_F(ExportRequests, AClientThatWaitsForAMountIsServedWhileThereIsOne) {
  put_file(file, b + " 192.0.2.0/24(rw,mp=" + c + ") *(ro)\n");
  ask(",\"action\":\"reread\"");
  MountedTmpfs disk;
  NFSRDMA_MOUNT(disk, c, "size=1m");
  while (!access(b, "192.0.2.7").allowed)
    loop->turn(std::chrono::seconds(10));
  EXPECT_FALSE(access(b, "192.0.2.7").read_only);
  ASSERT_EQ(::umount2(c.c_str(), MNT_DETACH), 0);
  while (access(b, "192.0.2.7").allowed)
    loop->turn(std::chrono::seconds(10));
  EXPECT_TRUE(access(b, "198.51.100.1").allowed);
  EXPECT_TRUE(left.empty()) << "the directory is what it was";
}

/// The file system that appears over an exported directory is what is exported from then on, and
/// the directory again when it is gone.
TEST_F(ExportRequests, AFileSystemMountedOverAnExportIsServed) {
  const auto device = [this] { return table.current().exports.at(0)->top->device; };
  const std::uint64_t before = device();
  MountedTmpfs disk;
  NFSRDMA_MOUNT(disk, a, "size=1m");
  while (device() == before)
    loop->turn(std::chrono::seconds(10));
  EXPECT_EQ(device(), stat_of(a).st_dev);
  ask(",\"action\":\"explain\",\"client\":\"192.0.2.7\"");  // behind the look at the mounts
  EXPECT_EQ(left, std::set<std::uint64_t>{before});
  EXPECT_TRUE(access(a, "192.0.2.7").allowed);
  ASSERT_EQ(::umount2(a.c_str(), MNT_DETACH), 0);  // it is in use
  while (device() != before)
    loop->turn(std::chrono::seconds(10));
}

TEST_F(ExportRequests, WhatAReloadLeavesOutIsAmongTheChanges) {
  std::filesystem::rename(a, a + ".away");
  JsonValue answer = ask(",\"action\":\"reread\"");
  EXPECT_TRUE(answer["done"].truth());
  EXPECT_THAT(texts(answer["changes"]),
              ElementsAre("export " + a +
                          ": left out: open the exported directory: " + std::strerror(ENOENT)));
  EXPECT_THAT(texts(answer["left_out"]), ElementsAre(a));
  EXPECT_FALSE(access(a, "192.0.2.7").allowed);
  std::filesystem::rename(a + ".away", a);
  answer = ask(",\"action\":\"reread\"");
  EXPECT_THAT(texts(answer["changes"]), ElementsAre("export " + a + ": is there now"));
  EXPECT_TRUE(answer["left_out"].items().empty());
  std::filesystem::rename(a, a + ".away");
  std::filesystem::create_directory(a);
  answer = ask(",\"action\":\"reread\"");
  EXPECT_THAT(texts(answer["changes"]),
              ElementsAre("export " + a + ": another directory is there now, and served"));
}

/// Nobody could look, so nobody knows that it is gone: here for want of descriptors.
TEST_F(ExportRequests, AnExportThatCannotBeLookedAtIsServedOn) {
  const ParsedExports parsed = parse_exports(a + " *(rw)\n", "test");
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{3, limit.rlim_max};
  ConfigProblems problems;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  table.reload(parsed.entries, &problems);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].message, HasSubstr("what was open before is served on"));
  EXPECT_FALSE(access(a, "198.51.100.1").read_only);
}

TEST_F(ExportRequests, ExplainNamesEachRuleAndTheOneThatDecides) {
  const JsonValue answer = ask(",\"action\":\"explain\",\"client\":\"192.0.2.7\"");
  ASSERT_EQ(answer["addresses"].items().size(), 1u) << answer["error"].text();
  const JsonValue& entry = answer["addresses"].items()[0]["exports"].items().at(0);
  EXPECT_EQ(entry["path"].text(), a);
  ASSERT_EQ(entry["rules"].items().size(), 2u);
  const JsonValue& network = entry["rules"].items()[0];
  EXPECT_TRUE(network["matches"].truth());
  EXPECT_TRUE(network["decides"].truth());
  EXPECT_EQ(network["why"].text(), "the address is in it");
  const JsonValue& everyone = entry["rules"].items()[1];
  EXPECT_TRUE(everyone["matches"].truth());
  EXPECT_FALSE(everyone["decides"].truth());
  EXPECT_TRUE(entry["allowed"].truth());
  EXPECT_EQ(entry["client"].text(), "192.0.2.0/24");
  EXPECT_EQ(entry["squash"]["root"]["uid"].count(), 65534u);
  EXPECT_EQ(entry["squash"]["user_1000"]["uid"].count(), 1000u);
  EXPECT_EQ(entry["squash"]["auth_none"]["gid"].count(), 65534u);
}

TEST_F(ExportRequests, ExplainSaysWhenNoRuleMatches) {
  change("remove", "*", a);
  const JsonValue answer =
      ask(",\"action\":\"explain\",\"client\":\"198.51.100.1\",\"path\":\"" + a + "/below\"");
  const JsonValue& entry = answer["addresses"].items().at(0)["exports"].items().at(0);
  EXPECT_FALSE(entry["allowed"].truth());
  EXPECT_EQ(entry["rules"].items().at(0)["why"].text(), "the address is not in it");
}

TEST_F(ExportRequests, ExplainSaysThatAnExportIsNotInForceAndWhy) {
  put_file(file, home.path() + " *(ro)\n" + a + "/below *(ro)\n" + b + " *(ro,mountpoint)\n" +
                     "/nonexistent *(ro,mountpoint)\n");
  EXPECT_TRUE(ask(",\"action\":\"reread\"")["done"].truth());
  const std::string explain = ",\"action\":\"explain\",\"client\":\"192.0.2.7\"";
  EXPECT_EQ(ask(explain + ",\"path\":\"/nonexistent/x\"")["error"].text(),
            "/nonexistent is in the exports, but not in force: nothing is mounted there (option "
            "mountpoint)");
  // Where the one above it is served, that is explained, too.
  const JsonValue inside = ask(explain + ",\"path\":\"" + b + "/x\"");
  EXPECT_EQ(inside["addresses"].items().at(0)["exports"].items().at(0)["path"].text(), home.path());
  ASSERT_EQ(inside["not_in_force"].items().size(), 1u);
  EXPECT_EQ(inside["not_in_force"].items()[0]["path"].text(), b);
  EXPECT_EQ(inside["not_in_force"].items()[0]["why"].text(),
            "nothing is mounted there (option mountpoint)");
  EXPECT_EQ(ask(explain + ",\"path\":\"" + c + "\"")["not_in_force"].items().size(), 0u);
  EXPECT_EQ(ask(explain)["not_in_force"].items().size(), 3u);
}

TEST_F(ExportRequests, ExplainKnowsWhatItCannotExplain) {
  EXPECT_THAT(
      ask(",\"action\":\"explain\",\"client\":\"192.0.2.7\",\"path\":\"/elsewhere\"")["error"]
          .text(),
      HasSubstr("/elsewhere is not exported, nor is anything above it"));
  EXPECT_THAT(ask(",\"action\":\"explain\"")["error"].text(), HasSubstr("needs a client"));
  EXPECT_THAT(ask(",\"action\":\"explode\"")["error"].text(), HasSubstr("expected list, add"));
}

}  // namespace
}  // namespace nfsrdma::test
