// SPDX-License-Identifier: Apache-2.0
#include "server/export_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <latch>
#include <thread>

#include "tests/support/nfs3_harness.h"

namespace nfsrdma::test {
namespace {

/// 192.0.2.1 is a.example.org, both ways; nothing else has a name.
class FewNames final : public HostNames {
 public:
  explicit FewNames(int* questions, const bool* fails = nullptr)
      : questions_(questions), fails_(fails) {}
  Result<std::vector<std::string>> names_of(const SocketAddress& peer) override {
    std::vector<std::string> names;
    if (!ask()) return Error{Errc::kNotFound, 0, "no answer"};
    if (peer.host_text() == "192.0.2.1") names.emplace_back("a.example.org");
    return names;
  }
  Result<std::vector<SocketAddress>> addresses_of(const std::string& host) override {
    std::vector<SocketAddress> addresses;
    if (!ask()) return Error{Errc::kNotFound, 0, "no answer"};
    if (host == "a.example.org") addresses.push_back(SocketAddress::parse("192.0.2.1", 0).value());
    return addresses;
  }
  Result<bool> in_netgroup(const std::string& group, const std::string& host) override {
    if (!ask()) return Error{Errc::kNotFound, 0, "no answer"};
    if (group == "addresses")
      return host == "192.0.2.1" || host == "192.0.2.2" || host == "2001:db8::2";
    return (group == "full" && host == "a.example.org") || (group == "short" && host == "a");
  }

 private:
  bool ask() {
    ++*questions_;
    return fails_ == nullptr || !*fails_;
  }
  int* questions_;
  const bool* fails_;
};

SocketAddress peer(const char* host, std::uint16_t port = 700) {
  return SocketAddress::parse(host, port).value();
}

class Exports : public ::testing::Test {
 protected:
  /// Exports the temporary directory to `clients` (exports(5) syntax).
  void load(const std::string& clients) {
    const ParsedExports parsed = parse_exports(home.path() + " " + clients + "\n", "test");
    ASSERT_TRUE(parsed.ok()) << parsed.problems[0].text();
    ConfigProblems problems;
    table.reload(parsed.entries, &problems);
    ASSERT_TRUE(problems.empty()) << problems[0].text();
  }
  ExportAccess access(const SocketAddress& who) {
    ExportAccess out;
    EXPECT_EQ(table.access(*table.current().exports.at(0), who, true, &out),
              ExportTable::Verdict::kKnown);
    return out;
  }
  ExportAccess access(StubConnection& connection) {
    ExportAccess out;
    table.access(*table.current().exports.at(0), connection, true, &out);
    return out;
  }
  TemporaryDirectory home;
  int questions = 0;
  ExportTable table{std::make_unique<FewNames>(&questions)};
};

TEST_F(Exports, NetworksMatchByPrefix) {
  load("192.0.2.0/24(rw)");
  EXPECT_TRUE(access(peer("192.0.2.200")).allowed);
  EXPECT_FALSE(access(peer("192.0.3.1")).allowed);
}

TEST_F(Exports, V6NetworksMatch) {
  load("2001:db8::/32(rw)");
  EXPECT_TRUE(access(peer("2001:db8:1::1")).allowed);
  EXPECT_FALSE(access(peer("2001:db9::1")).allowed);
}

TEST_F(Exports, NetworksOfV6HaveNoV4AddressInThem) {
  load("::/0(rw)");
  EXPECT_TRUE(access(peer("2001:db8:1::1")).allowed);
  EXPECT_FALSE(access(peer("192.0.2.5")).allowed);
  EXPECT_FALSE(access(peer("::ffff:192.0.2.5")).allowed);
}

TEST_F(Exports, V4MappedAddressesMatchV4Networks) {
  load("192.0.2.0/24(rw)");
  EXPECT_TRUE(access(peer("::ffff:192.0.2.5")).allowed);
}

TEST_F(Exports, EveryoneIsTheLastResort) {
  load("*(ro) 192.0.2.0/24(rw)");
  EXPECT_FALSE(access(peer("192.0.2.5")).read_only);
  EXPECT_TRUE(access(peer("198.51.100.1")).read_only);
}

TEST_F(Exports, ASingleHostBeatsItsNetwork) {
  load("192.0.2.0/24(rw) 192.0.2.9(ro)");
  EXPECT_TRUE(access(peer("192.0.2.9")).read_only);
  EXPECT_FALSE(access(peer("192.0.2.10")).read_only);
}

TEST_F(Exports, OfNetworksTheFirstInTheFileDecides) {
  load("192.0.2.0/24(rw) 192.0.0.0/16(ro)");
  EXPECT_FALSE(access(peer("192.0.2.9")).read_only);
  EXPECT_TRUE(access(peer("192.0.3.9")).read_only);
  load("192.0.0.0/16(ro) 192.0.2.0/24(rw)");
  EXPECT_TRUE(access(peer("192.0.2.9")).read_only);
}

TEST_F(Exports, ANetgroupHasItsMembersByFullAndByShortName) {
  for (const char* group : {"@full", "@short"}) {
    load(std::string(group) + "(rw)");
    EXPECT_TRUE(access(peer("192.0.2.1")).allowed) << group;
    EXPECT_FALSE(access(peer("192.0.2.2")).allowed) << group;
  }
  load("@other(rw)");
  EXPECT_FALSE(access(peer("192.0.2.1")).allowed);
}

TEST_F(Exports, ANetgroupHasItsMembersByAddressWithANameOrWithout) {
  load("@addresses(rw)");
  for (const char* member : {"192.0.2.1", "192.0.2.2", "::ffff:192.0.2.2", "2001:db8::2"})
    EXPECT_TRUE(access(peer(member)).allowed) << member;
  EXPECT_FALSE(access(peer("192.0.2.3")).allowed);
  const auto verdicts = table.explain(*table.current().exports[0], peer("192.0.2.2"));
  EXPECT_EQ(verdicts.at(0).why, "its address is a member");
}

TEST_F(Exports, WildcardsBeatNetgroupsAndThoseEveryone) {
  load("*(ro,anonuid=1) @full(ro,anonuid=2) *.example.org(ro,anonuid=3)");
  EXPECT_EQ(access(peer("192.0.2.1")).squash.anon_uid, 3u);
  load("*(ro,anonuid=1) @full(ro,anonuid=2)");
  EXPECT_EQ(access(peer("192.0.2.1")).squash.anon_uid, 2u);
  EXPECT_EQ(access(peer("192.0.2.2")).squash.anon_uid, 1u);
}

TEST_F(Exports, NetgroupsAreNotAskedForOnALoopThreadAndThenKept) {
  load("@short(rw)");
  const Export& entry = *table.current().exports[0];
  ExportAccess out;
  EXPECT_EQ(table.access(entry, peer("192.0.2.1"), false, &out), ExportTable::Verdict::kWouldBlock);
  EXPECT_EQ(questions, 0);
  access(peer("192.0.2.1"));
  const int asked = questions;
  EXPECT_EQ(table.access(entry, peer("192.0.2.1"), false, &out), ExportTable::Verdict::kKnown);
  EXPECT_TRUE(out.allowed);
  EXPECT_EQ(questions, asked);
}

std::int64_t test_seconds = 1000;

/// A name service that falls silent denies nobody who was let in, for a day.
TEST(ExportNames, WhatWasSaidLastCountsWhileNobodyAnswers) {
  constexpr std::int64_t kDay = 24 * 3600;
  TemporaryDirectory home;
  int questions = 0;
  bool fails = false;
  test_seconds = 1000;
  ExportTable table(std::make_unique<FewNames>(&questions, &fails), SchemeChoice::kBest,
                    [] { return test_seconds; });
  for (const char* client : {"a.example.org", "*.example.org", "@full"}) {
    const ParsedExports parsed = parse_exports(home.path() + " " + client + "\n", "test");
    ConfigProblems problems;
    table.reload(parsed.entries, &problems);
    const auto allowed = [&](const char* host) {
      ExportAccess access;
      table.access(*table.current().exports.at(0), peer(host), true, &access);
      return access.allowed;
    };
    fails = false;
    EXPECT_TRUE(allowed("192.0.2.1")) << client;
    fails = true;
    test_seconds += 61;
    EXPECT_TRUE(allowed("192.0.2.1")) << client;
    EXPECT_FALSE(allowed("192.0.2.9")) << client;  // never was
    test_seconds += kDay - 70;
    EXPECT_TRUE(allowed("192.0.2.1")) << client;
    test_seconds += 70;
    EXPECT_FALSE(allowed("192.0.2.1")) << client;
    fails = false;
    test_seconds += 11;
    EXPECT_TRUE(allowed("192.0.2.1")) << client;
    test_seconds += 61;
  }
}

/// What it denies is denied at once.
TEST(ExportNames, AnAnswerThatThereIsNoneCounts) {
  TemporaryDirectory home;
  int questions = 0;
  bool fails = true;
  test_seconds = 1000;
  ExportTable table(std::make_unique<FewNames>(&questions, &fails), SchemeChoice::kBest,
                    [] { return test_seconds; });
  const ParsedExports parsed = parse_exports(home.path() + " *.example.org\n", "test");
  ConfigProblems problems;
  table.reload(parsed.entries, &problems);
  const Export& entry = *table.current().exports.at(0);
  ExportAccess access;
  table.access(entry, peer("192.0.2.1"), true, &access);
  EXPECT_FALSE(access.allowed);
  fails = false;
  test_seconds += 11;  // it is asked again soon
  table.access(entry, peer("192.0.2.1"), true, &access);
  EXPECT_TRUE(access.allowed);
}

/// Objects that were moved out of the export behind the back of a client that has their handles.
class SubtreeCheck : public ::testing::Test {
 protected:
  SubtreeCheck() : nfs_(options()) {}
  FileHandle handle(const std::string& name) { return nfs_.lookup(nfs_.root(), name); }
  nfsstat3 status(const FileHandle& of) { return nfs_.getattr(of).status; }
  std::string inside(const std::string& name) const { return home_.path() + "/export/" + name; }
  std::string outside(const std::string& name) const { return home_.path() + "/" + name; }
  HarnessOptions options() {
    HarnessOptions out;
    out.directory = home_.path() + "/export";
    out.exported.subtree_check = true;
    return out;
  }
  TemporaryDirectory home_;
  Nfs3Harness nfs_;
};

TEST_F(SubtreeCheck, IsForObjectsOfAllKinds) {
  std::filesystem::create_directory(inside("dir"));
  std::filesystem::create_symlink("target", inside("link"));
  ASSERT_EQ(::mkfifo(inside("fifo").c_str(), 0644), 0);
  put_file(inside("file"), "content");
  for (const char* name : {"dir", "link", "fifo", "file"}) {
    const FileHandle known = handle(name);
    EXPECT_EQ(status(known), NFS3_OK) << name;
    std::filesystem::rename(inside(name), outside(name));
    EXPECT_EQ(status(known), NFS3ERR_STALE) << name;
    std::filesystem::rename(outside(name), inside(name));
    EXPECT_EQ(status(known), NFS3_OK) << name;
  }
}

TEST_F(SubtreeCheck, FilesInDirectoriesThatWereMovedAreOutside) {
  std::filesystem::create_directory(inside("dir"));
  put_file(inside("dir/file"), "content");
  const FileHandle file = nfs_.lookup(handle("dir"), "file");
  EXPECT_EQ(nfs_.read(file, 0, 10), "content");
  std::filesystem::rename(inside("dir"), outside("dir"));
  EXPECT_EQ(status(file), NFS3ERR_STALE);
}

TEST_F(SubtreeCheck, RefusesNoFileThatMayHaveANameInside) {
  put_file(inside("file"), "content");
  const FileHandle file = handle("file");
  std::filesystem::create_hard_link(inside("file"), outside("other"));
  nfs_.restart();  // opens it by the name that the kernel has seen last
  EXPECT_EQ(nfs_.read(file, 0, 10), "content");
  std::filesystem::remove(inside("file"));
  nfs_.restart();
  EXPECT_EQ(status(file), NFS3ERR_STALE);
}

TEST_F(SubtreeCheck, RefusesNoFileThatWasRemovedAndIsOpen) {
  put_file(inside("file"), "content");
  const FileHandle file = handle("file");
  const UniqueFd open(::open(inside("file").c_str(), O_RDONLY | O_CLOEXEC));
  std::filesystem::remove(inside("file"));
  EXPECT_EQ(nfs_.read(file, 0, 10), "content");
}

/// No more answers are kept than there is room for.
class ManyNames : public ::testing::Test {
 protected:
  static constexpr int kRoom = 4096;
  void SetUp() override {
    test_seconds = 1000;
    ConfigProblems problems;
    table.reload(parse_exports(home.path() + " *.example.org\n", "test").entries, &problems);
  }
  bool is_known(const SocketAddress& who, bool may_ask = false) {
    ExportAccess out;
    return table.access(*table.current().exports.at(0), who, may_ask, &out) ==
           ExportTable::Verdict::kKnown;
  }
  void ask(const SocketAddress& who) { is_known(who, true); }
  static SocketAddress stranger(int number) {
    return peer(fmt::format("198.18.{}.{}", number / 256, number % 256).c_str());
  }
  void ask_strangers(int from, int to) {
    for (int i = from; i < to; ++i)
      ask(stranger(i));
  }
  int known_strangers() {
    int known = 0;
    for (int i = 0; i < kRoom; ++i)
      known += is_known(stranger(i)) ? 1 : 0;
    return known;
  }
  TemporaryDirectory home;
  int questions = 0;
  bool fails = false;
  ExportTable table{std::make_unique<FewNames>(&questions, &fails), SchemeChoice::kBest,
                    [] { return test_seconds; }};
};

TEST_F(ManyNames, ARenewedAnswerTakesNoRoom) {
  ask(peer("192.0.2.1"));
  test_seconds += 1;
  ask_strangers(0, kRoom - 1);
  test_seconds += 60;
  const int before = questions;
  ask(peer("192.0.2.1"));
  EXPECT_EQ(questions, before + 1);
  EXPECT_EQ(known_strangers(), kRoom - 1);
}

TEST_F(ManyNames, OneMoreTakesThePlaceOfTheOldest) {
  ask(stranger(7));
  test_seconds += 1;
  ask_strangers(0, kRoom);
  ask(peer("192.0.2.1"));
  EXPECT_TRUE(is_known(peer("192.0.2.1")));
  EXPECT_FALSE(is_known(stranger(7)));
  EXPECT_EQ(known_strangers(), kRoom - 1);
}

TEST_F(ManyNames, OneMoreTakesThePlaceOfThoseWithoutAnAnswerFirst) {
  ask_strangers(0, kRoom - 9);
  fails = true;
  ask_strangers(kRoom - 9, kRoom);
  EXPECT_EQ(known_strangers(), kRoom);
  ask(peer("192.0.2.1"));
  EXPECT_EQ(known_strangers(), kRoom - 9);
}

TEST_F(ManyNames, OneMoreTakesThePlaceOfThoseThatAreTooOldBeforeAll) {
  ask_strangers(0, kRoom - 9);
  test_seconds += 24 * 3600;
  fails = true;
  ask_strangers(kRoom - 9, kRoom);
  ask(peer("192.0.2.1"));
  EXPECT_EQ(known_strangers(), 9);  // that there is no answer is known for a moment
}

/// Clients may mount what an exported symbolic link leads to under its own name.
TEST_F(Exports, AnExportIsFoundByItsRealPath) {
  const std::string real = home.path() + "/real";
  const std::string link = home.path() + "/link";
  std::filesystem::create_directory(real);
  std::filesystem::create_symlink(real, link);
  const auto found = [&](const std::string& exports, const std::string& path) {
    ConfigProblems problems;
    table.reload(parse_exports(exports, "test").entries, &problems);
    std::string_view rest;
    const Export* entry = table.current().find_path(path, &rest);
    return entry == nullptr ? "nothing" : entry->path + " " + std::string(rest);
  };
  EXPECT_EQ(found(link + " *\n", link + "/x"), link + " x");
  EXPECT_EQ(found(link + " *\n", real + "/x"), link + " x");
  EXPECT_EQ(found(link + " *\n", real + "s"), "nothing");
  EXPECT_EQ(found(link + " *(fsid=1)\n" + real + " *\n", real), real + " ");
}

TEST_F(Exports, FlavorsOfSecArriveInTheAccess) {
  load("*(sec=none,rw)");
  EXPECT_FALSE(access(peer("192.0.2.5")).serves_sys);
  EXPECT_TRUE(access(peer("192.0.2.5")).serves_none);
  EXPECT_FALSE(access(peer("192.0.2.5")).none_read_only);
  load("*(rw)");
  EXPECT_TRUE(access(peer("192.0.2.5")).serves_sys);
  EXPECT_TRUE(access(peer("192.0.2.5")).serves_none);
}

TEST_F(Exports, HostNamesMatchTheirAddresses) {
  load("a.example.org(rw)");
  EXPECT_TRUE(access(peer("192.0.2.1")).allowed);
  EXPECT_FALSE(access(peer("192.0.2.2")).allowed);
}

TEST_F(Exports, WildcardsMatchNames) {
  load("*.example.org(rw)");
  EXPECT_TRUE(access(peer("192.0.2.1")).allowed);
  EXPECT_FALSE(access(peer("192.0.2.2")).allowed);
}

TEST_F(Exports, NetworksBeatWildcards) {
  load("*.example.org(rw) 192.0.2.0/24(ro)");
  EXPECT_TRUE(access(peer("192.0.2.1")).read_only);
}

TEST_F(Exports, NamesAreNotAskedForOnALoopThread) {
  load("a.example.org(rw)");
  const Export& entry = *table.current().exports[0];
  ExportAccess out;
  EXPECT_EQ(table.access(entry, peer("192.0.2.1"), false, &out), ExportTable::Verdict::kWouldBlock);
  EXPECT_EQ(questions, 0);
  access(peer("192.0.2.1"));
  EXPECT_EQ(table.access(entry, peer("192.0.2.1"), false, &out), ExportTable::Verdict::kKnown);
  EXPECT_TRUE(out.allowed);
}

TEST_F(Exports, AddressesNeverNeedTheNameService) {
  load("192.0.2.0/24(rw) *(ro)");
  access(peer("198.51.100.1"));
  EXPECT_EQ(questions, 0);
}

TEST_F(Exports, SecureRefusesHighPortsOverTcpOnly) {
  load("*(rw)");
  StubConnection low(peer("192.0.2.5", 1023), TransportKind::kTcp);
  StubConnection high(peer("192.0.2.5", 1024), TransportKind::kTcp);
  StubConnection rdma(peer("192.0.2.5", 40000), TransportKind::kIwarp);
  EXPECT_TRUE(access(low).allowed);
  EXPECT_FALSE(access(high).allowed);
  EXPECT_TRUE(access(rdma).allowed);
}

TEST_F(Exports, InsecureLetsHighPortsIn) {
  load("*(rw,insecure)");
  StubConnection high(peer("192.0.2.5", 40000), TransportKind::kTcp);
  EXPECT_TRUE(access(high).allowed);
}

TEST_F(Exports, AReloadCountsForKnownConnections) {
  load("*(rw)");
  StubConnection connection(peer("192.0.2.5"));
  EXPECT_FALSE(access(connection).read_only);
  load("*(ro)");
  EXPECT_TRUE(access(connection).read_only);
}

TEST_F(Exports, WhatExportsThatWereReplacedSaidIsNotRemembered) {
  load("*(rw)");
  StubConnection connection(peer("192.0.2.5"));
  const Export& old = *table.current().exports.at(0);
  load("*(ro)");
  // A call that began before the reload asks only now.
  ExportAccess got;
  EXPECT_EQ(table.access(old, connection, true, &got), ExportTable::Verdict::kKnown);
  EXPECT_FALSE(got.read_only);
  EXPECT_TRUE(access(connection).read_only);
}

TEST_F(Exports, SquashOptionsArriveInTheAccess) {
  load("*(rw,all_squash,anonuid=5,anongid=6,async)");
  const ExportAccess got = access(peer("192.0.2.5"));
  EXPECT_TRUE(got.squash.all_squash);
  EXPECT_EQ(got.squash.anon_uid, 5u);
  EXPECT_EQ(got.squash.anon_gid, 6u);
  EXPECT_FALSE(got.sync);
}

TEST_F(Exports, IdsComeFromThePathAndStay) {
  load("*(rw)");
  const std::uint64_t first = table.current().exports[0]->id;
  load("*(ro)");
  EXPECT_EQ(table.current().exports[0]->id, first);
}

TEST_F(Exports, FsidDecidesTheId) {
  load("*(rw,fsid=12)");
  const std::uint64_t with = table.current().exports[0]->id;
  load("*(rw)");
  EXPECT_NE(table.current().exports[0]->id, with);
}

TEST_F(Exports, AMissingDirectoryIsReportedAndTheOthersServed) {
  const ParsedExports parsed =
      parse_exports("/nonexistent *(ro)\n" + home.path() + " *(ro)\n", "file");
  ConfigProblems problems;
  table.reload(parsed.entries, &problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].line, 1u);
  EXPECT_EQ(table.current().exports.size(), 1u);
}

TEST_F(Exports, TheLongestPathIsFound) {
  const std::string below = home.path() + "/a";
  std::filesystem::create_directory(below);
  const ParsedExports parsed = parse_exports(home.path() + " *(ro)\n" + below + " *(rw)\n", "file");
  ConfigProblems problems;
  table.reload(parsed.entries, &problems);
  std::string_view rest;
  // `rest` points into the path that was asked for.
  const std::string inside = below + "/b/c";
  const std::string beside = home.path() + "/ab";
  EXPECT_EQ(table.current().find_path(inside, &rest)->path, below);
  EXPECT_EQ(rest, "b/c");
  EXPECT_EQ(table.current().find_path(beside, &rest)->path, home.path());
  EXPECT_EQ(rest, "ab");
  EXPECT_EQ(table.current().find_path("/elsewhere", &rest), nullptr);
}

/// A name service that answers when it is told to.
class SlowNames final : public HostNames {
 public:
  Result<std::vector<std::string>> names_of(const SocketAddress&) override {
    ++questions;
    if (std::latch* began = std::exchange(asked, nullptr)) {
      began->count_down();
      answer.wait();
    }
    return std::vector<std::string>{"a.example.org"};
  }
  Result<std::vector<SocketAddress>> addresses_of(const std::string&) override {
    return std::vector<SocketAddress>();
  }
  Result<bool> in_netgroup(const std::string&, const std::string&) override { return false; }

  int questions = 0;
  std::latch* asked = nullptr;  // the next question waits for `answer`
  std::latch answer{1};
};

class SlowExports : public ::testing::Test {
 protected:
  void load(const std::string& clients) {
    const ParsedExports parsed = parse_exports(home.path() + " " + clients + "\n", "test");
    ConfigProblems problems;
    table.reload(parsed.entries, &problems);
    ASSERT_TRUE(parsed.ok() && problems.empty());
  }
  /// Is the connection let in? Nothing: to be asked again later.
  std::optional<bool> allowed(StubConnection& connection) {
    ExportAccess out;
    const auto verdict = table.access(*table.current().exports.at(0), connection, true, &out);
    if (verdict == ExportTable::Verdict::kWouldBlock) return std::nullopt;
    return out.allowed;
  }
  /// Runs `meanwhile` while a thread's question is not answered.
  void while_asking(StubConnection& connection, const std::function<void()>& meanwhile) {
    std::latch began(1);
    names->asked = &began;
    std::optional<bool> answered;
    std::thread asking([&] { answered = allowed(connection); });
    began.wait();
    meanwhile();
    names->answer.count_down();
    asking.join();
    EXPECT_EQ(answered, true);
  }
  TemporaryDirectory home;
  SlowNames* names = new SlowNames;
  ExportTable table{std::unique_ptr<HostNames>(names)};
  StubConnection first{peer("192.0.2.1")}, same{peer("192.0.2.1")}, other{peer("192.0.2.2")};
};

TEST_F(SlowExports, OneAsksAndTheOthersComeAgain) {
  load("*.example.org(rw)");
  while_asking(first, [&] {
    EXPECT_EQ(allowed(same), std::nullopt);
    EXPECT_EQ(allowed(other), true) << "another question";
  });
  EXPECT_EQ(allowed(same), true);
  EXPECT_EQ(names->questions, 2);
}

TEST_F(SlowExports, FewAskAtATime) {
  table.limit_questions(1);
  load("*.example.org(rw)");
  while_asking(first, [&] { EXPECT_EQ(allowed(other), std::nullopt); });
  EXPECT_EQ(allowed(other), true);
}

TEST_F(SlowExports, WhatWasKnownIsGoodWhileItIsAskedAnew) {
  table.keep_answers_for(std::chrono::seconds(-1));
  load("*.example.org(rw)");
  EXPECT_EQ(allowed(first), true);
  load("*.example.org(rw)");  // what threads remember of connections is gone
  while_asking(first, [&] { EXPECT_EQ(allowed(same), true); });
  EXPECT_EQ(names->questions, 2);
  EXPECT_EQ(allowed(same), true) << "remembered by this thread";
}

TEST_F(SlowExports, WhomThePortKeepsOutIsNotAskedFor) {
  StubConnection high(peer("192.0.2.1", 40000), TransportKind::kTcp);
  load("*.example.org(rw) *(ro)");
  EXPECT_EQ(allowed(high), false);
  load("192.0.2.9(rw,insecure) *.example.org(rw) @group(rw)");
  EXPECT_EQ(allowed(high), false);
  EXPECT_EQ(names->questions, 0);
  load("*.example.org(rw) *(ro,insecure)");
  EXPECT_EQ(allowed(high), false) << "its name's line decides";
  EXPECT_EQ(names->questions, 1);
}

/// dead.example.org is never answered for but when `alive`; then it is 192.0.2.1. All have names.
class DeadName final : public HostNames {
 public:
  Result<std::vector<std::string>> names_of(const SocketAddress&) override {
    return std::vector<std::string>{"a.example.org"};
  }
  Result<std::vector<SocketAddress>> addresses_of(const std::string&) override {
    asked_by = std::this_thread::get_id();
    ++questions;
    if (!alive) return Error{Errc::kNotFound, 0, "no answer"};
    return std::vector<SocketAddress>{peer("192.0.2.1")};
  }
  Result<bool> in_netgroup(const std::string&, const std::string&) override { return false; }

  std::atomic<int> questions = 0;
  std::atomic<bool> alive = false;
  std::atomic<std::thread::id> asked_by;
};

std::atomic<std::int64_t> now_s = 1000;

class DeadExports : public ::testing::Test {
 protected:
  /// As somebody is treated who comes for the first time since `clients` were loaded.
  ExportAccess access(const std::string& clients) {
    const ParsedExports parsed = parse_exports(home.path() + " " + clients + "\n", "test");
    ConfigProblems problems;
    table.reload(parsed.entries, &problems);
    ExportAccess out;
    EXPECT_EQ(table.access(*table.current().exports.at(0), connection, true, &out),
              ExportTable::Verdict::kKnown);
    return out;
  }
  TemporaryDirectory home;
  DeadName* names = new DeadName;
  ExportTable table{std::unique_ptr<HostNames>(names), SchemeChoice::kBest,
                    [] { return now_s.load(); }};
  StubConnection connection{peer("192.0.2.1")};
};

/// Whom another line lets in was to wait for its time-out once a minute.
TEST_F(DeadExports, AskingForADeadNameAgainHoldsNobodyUp) {
  const std::string clients = "dead.example.org(ro) 192.0.2.0/24(rw)";
  EXPECT_FALSE(access(clients).read_only);
  EXPECT_EQ(names->asked_by.load(), std::this_thread::get_id()) << "nothing was known";
  now_s += 3600;
  names->alive = true;
  EXPECT_FALSE(access(clients).read_only);
  while (!access(clients).read_only)
    std::this_thread::yield();
  EXPECT_NE(names->asked_by.load(), std::this_thread::get_id());
  EXPECT_EQ(names->questions, 2);
}

TEST_F(DeadExports, WhoCanBeNobodyElseWaitsForTheName) {
  const std::string clients = "dead.example.org(rw)";
  EXPECT_FALSE(access(clients).allowed);
  now_s += 3600;
  names->alive = true;
  EXPECT_TRUE(access(clients).allowed);
  EXPECT_EQ(names->asked_by.load(), std::this_thread::get_id());
}

/// What was said last is good for a day, and is not waited for each minute either.
TEST_F(DeadExports, WhoIsKnownWaitsOnceForANameServiceThatIsSilent) {
  const std::string clients = "dead.example.org(rw)";
  names->alive = true;
  EXPECT_TRUE(access(clients).allowed);
  names->alive = false;
  now_s += 100;
  EXPECT_TRUE(access(clients).allowed);
  EXPECT_EQ(names->asked_by.load(), std::this_thread::get_id()) << "until then it had answered";
  now_s += 100;
  EXPECT_TRUE(access(clients).allowed);
  while (names->questions < 3)
    std::this_thread::yield();
  EXPECT_NE(names->asked_by.load(), std::this_thread::get_id());
}

}  // namespace
}  // namespace nfsrdma::test
