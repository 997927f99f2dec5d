// SPDX-License-Identifier: Apache-2.0
// The small parts of the tool.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "client/counted.h"
#include "client/status_source.h"
#include "client/tool/arguments.h"
#include "client/tool/bench.h"
#include "client/tool/commands.h"
#include "client/tool/format.h"
#include "client/tool/histogram.h"
#include "client/tool/mounted_server.h"
#include "client/tool/progress.h"
#include "client/tool/side.h"
#include "client/tool/status_verdict.h"
#include "rpcrdma/base/json_value.h"
#include "rpcrdma/base/unique_fd.h"
#include "tests/support/temporary_directory.h"

namespace nfsrdma::tool {
namespace {

std::string listed(const Words& words) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_ls(words), kExitOk);
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

TEST(List, WhatIsNamedIsShownWhateverItsName) {
  const test::TemporaryDirectory top;
  const std::string hidden = top.path() + "/./.hidden", one = top.path() + "/one";
  test::put_file(hidden, "x");
  test::put_file(one, "x");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(top.path());
  EXPECT_EQ(listed({"./one"}), "./one\n");
  EXPECT_EQ(listed({".hidden"}), ".hidden\n");
  EXPECT_EQ(listed({"-d", "."}), ".\n");
  EXPECT_EQ(listed({"."}), "one\n");
  EXPECT_EQ(listed({"-a", "."}), ".hidden\none\n");
  std::filesystem::current_path(before);
}

TEST(ParseBytes, TakesUnits) {
  EXPECT_EQ(parse_bytes("0"), 0u);
  EXPECT_EQ(parse_bytes("4k"), 4096u);
  EXPECT_EQ(parse_bytes("1M"), 1048576u);
  EXPECT_EQ(parse_bytes("2g"), 2147483648u);
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const char* text : {"", "k", "-1", "1kb", "1.5M", "1x", "99999999999999999T"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(Counted, OneIsNotMany) {
  EXPECT_EQ(counted(0, "client"), "0 clients");
  EXPECT_EQ(counted(1, "NFSv4 client"), "1 NFSv4 client");
  EXPECT_EQ(counted(2, "lock"), "2 locks");
}

TEST(Histogram, PercentilesAreWithinTheirBuckets) {
  Histogram histogram;
  for (std::uint64_t i = 1; i <= 100'000; ++i)
    histogram.add(i);
  EXPECT_NEAR(static_cast<double>(histogram.percentile(0.5)), 50'000, 50'000 * 0.016);
  EXPECT_NEAR(static_cast<double>(histogram.percentile(0.99)), 99'000, 99'000 * 0.016);
  EXPECT_EQ(histogram.least(), 1u);
  EXPECT_EQ(histogram.most(), 100'000u);
  EXPECT_DOUBLE_EQ(histogram.mean(), 50'000.5);
}

TEST(Histogram, TakesTheLargestValues) {
  Histogram histogram;
  histogram.add(UINT64_MAX);
  histogram.add(0);
  EXPECT_EQ(histogram.count(), 2u);
  EXPECT_EQ(histogram.percentile(1), UINT64_MAX);
}

TEST(BenchData, IsKnownByItsHead) {
  std::vector<std::byte> head(kMostHead, std::byte{0xa5});
  std::fill_n(head.begin(), 1000, std::byte{0x5a});
  EXPECT_TRUE(is_bench_data(head));
  EXPECT_TRUE(is_bench_data(ByteSpan(head).first(512)));
  EXPECT_FALSE(is_bench_data(ByteSpan(head).first(511)));
  EXPECT_FALSE(is_bench_data({}));
  head.back() = std::byte{0};
  EXPECT_FALSE(is_bench_data(head));
}

TEST(JsonValue, ReadsWhatTheStatusDocumentHas) {
  auto value = JsonValue::parse(R"({"a":[{"b":"x\"\u00e4"},2.5],"c":true,"d":null})");
  ASSERT_TRUE(value);
  EXPECT_EQ((*value)["a"].items()[0]["b"].text(), "x\"\xc3\xa4");
  EXPECT_DOUBLE_EQ((*value)["a"].items()[1].number(), 2.5);
  EXPECT_TRUE((*value)["c"].truth());
  EXPECT_EQ((*value)["none"].kind(), JsonValue::Kind::kNull);
}

TEST(JsonValue, RefusesBrokenText) {
  for (const char* text : {"", "{", "[1,", "{\"a\"}", "\"x", "1 2", "tru", "\"\\u12\"", "nul"}) {
    EXPECT_FALSE(JsonValue::parse(text)) << text;
  }
}

TEST(JsonValue, BoundsItsDepth) {
  EXPECT_FALSE(JsonValue::parse(std::string(100'000, '[')));
}

int verdict_of(const std::string& connections) {
  return status_verdict(*JsonValue::parse("{\"connections\":[" + connections + "]}"));
}

TEST(StatusVerdict, SaysWhetherRdmaIsInUse) {
  EXPECT_EQ(verdict_of(R"({"fabric":"iwarp"},{"fabric":"verbs"})"), 0);
  EXPECT_EQ(verdict_of(R"({"fabric":"iwarp"},{"fabric":"tcp"})"), 2);
  EXPECT_EQ(verdict_of(R"({"fabric":"tcp"})"), 3);
  EXPECT_EQ(verdict_of(""), 4);
}

TEST(StatusVerdict, CountsTheServersBehindReferrals) {
  const auto with_referral = [](const std::string& fabric) {
    return status_verdict(*JsonValue::parse(
        R"({"connections":[{"fabric":"iwarp"}],"referrals":[{"connections":[{"fabric":")" + fabric +
        R"("}]}]})"));
  };
  EXPECT_EQ(with_referral("iwarp"), 0);
  EXPECT_EQ(with_referral("tcp"), 2);
}

TEST(ProgressLine, ShowsShareRateAndRest) {
  const std::string line = progress_line(50 << 20, 100 << 20, 5, 79);
  EXPECT_NE(line.find("50 %"), std::string::npos) << line;
  EXPECT_NE(line.find("10.0 MiB/s"), std::string::npos) << line;
  EXPECT_NE(line.find("0:05 left"), std::string::npos) << line;
  EXPECT_LE(line.size(), 79u);
}

TEST(ProgressLine, FitsNarrowTerminals) {
  EXPECT_LE(progress_line(1, 2, 1, 20).size(), 20u);
}

TEST(ModeText, ShowsTypeAndSpecialBits) {
  EXPECT_EQ(mode_text(S_IFDIR | 01755), "drwxr-xr-t");
  EXPECT_EQ(mode_text(S_IFREG | 04644), "-rwSr--r--");
  EXPECT_EQ(mode_text(S_IFLNK | 0777), "lrwxrwxrwx");
}

TEST(LastComponent, IgnoresSlashesAtTheEnd) {
  EXPECT_EQ(last_component("a/b/"), "b");
  EXPECT_EQ(last_component("/"), "");
  EXPECT_EQ(last_component("nfs://h/x/y"), "y");
}

// --- where status comes from ---

class StatusSourceTest : public testing::Test {
 protected:
  StatusSourceTest() {
    char name[] = "/tmp/nfs-rdma-status.XXXXXX";
    directory_ = ::mkdtemp(name);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(address.sun_path, sizeof address.sun_path - 1);
    listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    EXPECT_EQ(::listen(listener_.get(), 0), 0);
  }
  ~StatusSourceTest() override { std::filesystem::remove_all(directory_); }
  std::string path() const { return directory_ + "/sock"; }

  std::string directory_;
  UniqueFd listener_;
  std::string why_;
};

TEST_F(StatusSourceTest, ADaemonThatHangsIsGivenUpOn) {
  // The first waits for an answer, the later ones for room in the backlog.
  std::vector<UniqueFd> others;
  for (int i = 0; i < 3; ++i) {
    auto answer = fetch_status(path(), &why_, std::chrono::milliseconds(50));
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().sys, ETIMEDOUT);
    EXPECT_EQ(why_, path() + ": no answer in 0.05 s; the daemon hangs");
  }
}

TEST_F(StatusSourceTest, ADaemonThatNeverEndsItsAnswerIsGivenUpOn) {
  std::thread trickle([this] {
    UniqueFd fd(::accept(listener_.get(), nullptr, nullptr));
    pollfd gone{fd.get(), POLLRDHUP, 0};
    while (::send(fd.get(), "x", 1, MSG_NOSIGNAL) == 1 && ::poll(&gone, 1, 1) == 0) {
    }
  });
  auto answer = fetch_status(path(), &why_, std::chrono::milliseconds(100));
  trickle.join();
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().sys, ETIMEDOUT);
}

TEST_F(StatusSourceTest, TheAnswerIsTheDocument) {
  std::thread daemon([this] {
    UniqueFd fd(::accept(listener_.get(), nullptr, nullptr));
    char request[64];
    ASSERT_GT(::recv(fd.get(), request, sizeof request, 0), 0);
    ASSERT_EQ(::send(fd.get(), "{}\n", 3, MSG_NOSIGNAL), 3);
  });
  auto answer = fetch_status(path(), &why_);
  daemon.join();
  ASSERT_TRUE(answer.ok()) << why_;
  EXPECT_EQ(*answer, "{}\n");
}

TEST_F(StatusSourceTest, AMountPointIsOneOfOurs) {
  EXPECT_TRUE(mount_status_sockets("/proc", &why_).empty());
  EXPECT_EQ(why_, "/proc: no FUSE mount of nfs-rdma there");
  std::filesystem::create_symlink("loop", directory_ + "/loop");
  EXPECT_TRUE(mount_status_sockets(directory_ + "/loop", &why_).empty());
  EXPECT_EQ(why_, directory_ + "/loop: Too many levels of symbolic links");
  EXPECT_TRUE(mount_status_sockets(directory_ + "/absent", &why_).empty());
  EXPECT_EQ(why_, directory_ + "/absent: No such file or directory");
}

TEST(MountedServer, IsWhereTheMountsSourceAndOptionsSay) {
  const auto settings_of = [](const std::string& source, const std::string& options) {
    const auto status =
        JsonValue::parse(fmt::format(R"({{"source":"{}","options":"{}"}})", source, options));
    std::optional<MountSettings> settings(std::in_place);
    if (!status || !settings_of_status(*status, &*settings)) settings.reset();
    return settings;
  };
  auto found = settings_of("srv:/data", "rw,proto=auto,fabric=auto,port=20050,tcpport=2051,hard");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->host, "srv");
  EXPECT_EQ(found->proto, ProtoChoice::kAuto);
  EXPECT_EQ(found->rdma_port, 20050);
  EXPECT_EQ(found->tcp_port, 2051);
  found = settings_of("[2001:db8::1]:/a:/b", "ro,proto=rdma,fabric=iwarp,port=2050,crc=require");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->host, "2001:db8::1");
  EXPECT_EQ(found->fabric, FabricChoice::kIwarp);
  EXPECT_TRUE(found->require_crc);
  found = settings_of("192.0.2.1:/", "rw,proto=tcp,tcpport=2049,of_a_later_release=1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->proto, ProtoChoice::kTcp);
  EXPECT_FALSE(settings_of("no source", "rw"));
  EXPECT_FALSE(settings_of("srv:/data", "proto=pigeon"));
  EXPECT_FALSE(settings_of("", ""));
}

TEST(ToolUsage, WhatWouldBeLeftOutWithoutAWordIsAnError) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_exports({"--file", "/dev/null", "--json"}), kExitUsage);
  EXPECT_EQ(run_exports({"--file", "/dev/null", "--server", "/nonexistent"}), kExitUsage);
  EXPECT_EQ(run_exports({"--file", "/dev/null", "-o", "rw"}), kExitUsage);
  for (const char* much : {"inf", "1e300", "nan", "-1"})
    EXPECT_EQ(run_trace({"--server", "/nonexistent", "--slower-than", much}), kExitUsage) << much;
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace nfsrdma::tool
