// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "server/mount/mount_list.h"
#include "server/mount/mount_program.h"
#include "tests/support/nfs3_harness.h"
#include "xdr/mount3.h"

namespace nfsrdma {
namespace {

using testing::ElementsAre;

std::vector<std::string> all(const MountList& list) {
  std::vector<std::string> out;
  list.for_each([&out](const MountList::Entry& e) {
    out.push_back(e.host + ":" + e.directory);
    return true;
  });
  return out;
}

TEST(MountPath, IsNormalised) {
  EXPECT_EQ(normalise_mount_path("/a//b/./c/"), "/a/b/c");
  EXPECT_EQ(normalise_mount_path("/"), "/");
  EXPECT_EQ(normalise_mount_path("///"), "/");
}

TEST(MountPath, RelativePathsAndDotDotAreNone) {
  EXPECT_EQ(normalise_mount_path("a"), "");
  EXPECT_EQ(normalise_mount_path(""), "");
  EXPECT_EQ(normalise_mount_path("/a/../b"), "");
  EXPECT_EQ(normalise_mount_path(std::string_view("/a\0b", 4)), "");
}

TEST(MountPath, NamesThatOnlyBeginWithDotsAreNames) {
  EXPECT_EQ(normalise_mount_path("/..a/.b/..."), "/..a/.b/...");
}

TEST(MountList, KeepsOneEntryPerHostAndDirectory) {
  MountList list;
  list.add("h", "/a");
  list.add("h", "/b");
  list.add("h", "/a");
  EXPECT_THAT(all(list), ElementsAre("h:/b", "h:/a"));
}

TEST(MountList, RemovesOneOrAllOfAHost) {
  MountList list;
  list.add("h", "/a");
  list.add("h", "/b");
  list.add("i", "/a");
  list.remove("h", "/a");
  EXPECT_THAT(all(list), ElementsAre("h:/b", "i:/a"));
  list.remove_all("h");
  EXPECT_THAT(all(list), ElementsAre("i:/a"));
}

TEST(MountList, IsBounded) {
  MountList list;
  for (std::size_t i = 0; i < MountList::kMaxEntries + 10; ++i)
    list.add("h", std::to_string(i));
  EXPECT_EQ(all(list).size(), MountList::kMaxEntries);
  EXPECT_EQ(all(list).front(), "h:10");
}

TEST(MountProgram, HasTheSixProceduresOfVersion3) {
  const ProgramTable table = mount3_program();
  EXPECT_EQ(table.program, 100005u);
  EXPECT_EQ(table.version, 3u);
  ASSERT_EQ(table.procedures.size(), 6u);
  for (const ProcedureRow& row : table.procedures)
    EXPECT_NE(row.run, nullptr);
}

/// What EXPORT says, as the dispatcher asks for it.
class ExportList : public ::testing::Test {
 protected:
  /// `clients` of /a, and one of /b; the directories are in `home`.
  void share(std::size_t clients) {
    std::string text = home.path() + "/a ";
    for (std::size_t i = 0; i < clients; ++i)
      text += "h" + std::to_string(i) + ".example.org ";
    for (const char* name : {"/a", "/b"})
      std::filesystem::create_directory(home.path() + name);
    const ParsedExports parsed = parse_exports(text + "\n" + home.path() + "/b h\n", "test");
    ASSERT_TRUE(parsed.ok()) << parsed.problems[0].text();
    ConfigProblems problems;
    nfs.server().exports.reload(parsed.entries, &problems);
    ASSERT_TRUE(problems.empty()) << problems[0].text();
  }
  /// "/a 5000 h4999.example.org": how many groups there are, and the last one.
  std::vector<std::string> list(TransportKind transport, std::size_t most = 64u << 20) {
    const ProgramTable program = mount3_program();
    const ProcedureRow& row = program.procedures[5];
    test::StubConnection connection(SocketAddress::parse("192.0.2.7", 700).value(), transport);
    test::StubCall call(connection, {});
    Request request;
    request.call = &call;
    xdr::Decoder none = call.decoder();
    std::vector<std::byte> room(std::min(most, row.reply_bytes(nfs.server(), none)));
    xdr::Encoder result(room);
    EXPECT_EQ(row.run(nfs.server(), request, none, result), Outcome::kReply);
    EXPECT_FALSE(result.overflowed());
    size = result.size();
    xdr::Decoder decoder(result.bytes());
    xdr::exports exports;
    EXPECT_TRUE(xdr::decode(decoder, exports) && decoder.at_end());
    std::vector<std::string> out;
    for (const xdr::exportnode& node : exports.nodes) {
      std::string_view last;
      for (const xdr::groupnode& group : node.ex_groups)
        last = group.gr_name;
      out.push_back(fmt::format("{} {} {}", node.ex_dir.substr(home.path().size()),
                                node.ex_groups.count, last));
    }
    return out;
  }
  test::TemporaryDirectory home;
  test::Nfs3Harness nfs;
  std::size_t size = 0;
};

TEST_F(ExportList, IsWholeHoweverLongItIs) {
  share(10000);
  EXPECT_THAT(list(TransportKind::kTcp), ElementsAre("/a 10000 h9999.example.org", "/b 1 h"));
  EXPECT_GT(size, 256u << 10);
}

TEST_F(ExportList, ByRdmaIsNoLongerThanClientsArePreparedFor) {
  share(10000);
  const std::vector<std::string> lines = list(TransportKind::kIwarp);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], testing::EndsWith(" ..."));
  EXPECT_EQ(lines[1], "/b 1 h");
  EXPECT_LE(size, 256u << 10);
}

TEST_F(ExportList, AnExportThatDoesNotFitHidesNoOther) {
  share(1000);
  for (std::size_t room = 512; room < 1024; room += 4) {
    const std::vector<std::string> lines = list(TransportKind::kTcp, room);
    ASSERT_EQ(lines.size(), 2u) << room;
    EXPECT_THAT(lines[0], testing::EndsWith(" ..."));
    EXPECT_EQ(lines[1], "/b 1 h");
  }
}

TEST_F(ExportList, EndsWhereNotEvenThePathsFit) {
  share(1000);
  EXPECT_THAT(list(TransportKind::kTcp, 4), ElementsAre());
  const std::size_t one = 4 + 4 + round_up4((home.path() + "/a").size()) + 12 + 4 + 4;
  EXPECT_THAT(list(TransportKind::kTcp, one - 4), ElementsAre());
  EXPECT_THAT(list(TransportKind::kTcp, one), ElementsAre("/a 1 ..."));
}

}  // namespace
}  // namespace nfsrdma
