// SPDX-License-Identifier: Apache-2.0
// nfs-rdma doctor: the table of checks, the two forms of the report, the command line.
#include "client/doctor/report.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>

#include "client/tool/arguments.h"
#include "client/tool/commands.h"
#include "rpcrdma/base/json_value.h"
#include "tests/unit/client/doctor_fixture.h"

namespace nfsrdma::doctor {
namespace {

using Report = DoctorTest;

std::vector<CheckResult> some_results() {
  CheckResult good{"devices", "RDMA"};
  good.ok("mlx5_0: mlx5_core, InfiniBand");
  CheckResult bad{"ports", "RDMA"};
  bad.ok("mlx5_0 port 1: ACTIVE").problem("mlx5_0 port 2: INIT", {"systemctl enable --now opensm"});
  CheckResult warned{"clock", "system"};
  warned.warning("not synchronised", {"apt install chrony"});
  CheckResult noted{"fuse", "system"};
  noted.note("for that user alone", {"echo user_allow_other"});
  CheckResult left{"data-iwarp", "end to end"};
  left.skipped("no exported directory was given", {"--path /EXPORT"});
  return {good, bad, warned, noted, left};
}

TEST(DoctorTable, EveryRowIsOneOfTheTwoKindsWithANameOfItsOwn) {
  std::set<std::string> ids;
  for (const CheckRow& row : check_rows()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    EXPECT_NE(row.of_host == nullptr, row.of_server == nullptr) << row.id;
    EXPECT_FALSE(std::string(row.about).empty()) << row.id;
    EXPECT_EQ(find_row(row.id), &row);
  }
  EXPECT_EQ(find_row("nonsense"), nullptr);
}

TEST(DoctorTable, HasTheChecksThatTheIssueNames) {
  for (const char* id :
       {"devices",       "ports",      "link-layer", "gids",       "gid-match",  "software",
        "ipoib",         "mtu",        "route",      "numa",       "memlock",    "modules",
        "kernel-nfsd",   "listeners",  "firewall",   "rpcbind",    "dns",        "skew",
        "fuse",          "null-iwarp", "null-verbs", "data-iwarp", "data-verbs", "clock",
        "configuration", "reach"}) {
    EXPECT_NE(find_row(id), nullptr) << id;
  }
}

TEST(DoctorTable, ManPageDescribesEveryCheckAndNoOther) {
  std::ifstream in(NFSRDMA_SOURCE_DIR "/man/nfs-rdma-doctor.8");
  ASSERT_TRUE(in.good());
  std::set<std::string> described, rows;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(".It Cm ")) described.insert(words_of(line)[2]);
  }
  for (const CheckRow& row : check_rows())
    rows.insert(row.id);
  EXPECT_EQ(described, rows);
}

TEST_F(Report, RunsTheHostsChecksAloneWithoutServer) {
  std::vector<std::string> begun;
  const auto results =
      run_checks(host_, nullptr, {}, [&](const CheckRow& row) { begun.emplace_back(row.id); });
  std::vector<std::string> ids;
  for (const CheckResult& result : results) {
    ids.push_back(result.id);
    EXPECT_FALSE(result.findings.empty()) << result.id;
    EXPECT_FALSE(result.area.empty()) << result.id;
  }
  EXPECT_EQ(begun, ids);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), "dns"), 0);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), "ports"), 1);
}

TEST_F(Report, OnlyWhatWasNamedRuns) {
  const auto results = run_checks(host_, nullptr, {"clock", "fuse"}, {});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].id, "clock");
}

TEST_F(Report, OneCheckIsNoneOfMany) {
  CheckResult good{"devices", "RDMA"};
  good.ok("mlx5_0: mlx5_core, InfiniBand");
  EXPECT_TRUE(
      report_text({good}, {})
          .ends_with("\n1 check: 1 ok, 0 notes, 0 warnings, 0 problems; 0 not looked at.\n"));
}

TEST_F(Report, TextHasProblemsLastWithTheirRemedies) {
  const std::string text = report_text(some_results(), {});
  EXPECT_TRUE(contains(text, "ok       devices        mlx5_0: mlx5_core, InfiniBand\n")) << text;
  EXPECT_TRUE(contains(text, "Not looked at: data-iwarp")) << text;
  EXPECT_TRUE(contains(text, "      --path /EXPORT\n")) << text;
  const std::size_t warnings = text.find(
      "Warnings, and what helps:\n  clock: not synchronised\n"
      "      apt install chrony\n");
  const std::size_t problems = text.find(
      "Problems, and what helps:\n  ports: mlx5_0 port 2: INIT\n"
      "      systemctl enable --now opensm\n");
  ASSERT_NE(warnings, std::string::npos) << text;
  ASSERT_NE(problems, std::string::npos) << text;
  EXPECT_LT(warnings, problems);
  EXPECT_TRUE(text.ends_with("5 checks: 1 ok, 1 note, 1 warning, 1 problem; 1 not looked at.\n"))
      << text;
  EXPECT_FALSE(contains(text, "echo user_allow_other"));
}

TEST_F(Report, VerboseTextHasMore) {
  const std::string text = report_text(some_results(), {.verbose = true});
  EXPECT_TRUE(contains(text, "skipped  data-iwarp     no exported directory was given")) << text;
  EXPECT_TRUE(contains(text, "echo user_allow_other")) << text;
}

TEST_F(Report, LinesAreFoldedToTheTerminalAndHaveNoControls) {
  CheckResult result{"dns", "way"};
  result.ok("a\033[2Jb " + std::string(20, 'x') + " " + std::string(20, 'y') + " " +
            std::string(20, 'z'));
  const std::string text = report_text({result}, {.columns = 60});
  EXPECT_FALSE(contains(text, "\033"));
  for (const std::string& line : lines_of(text))
    EXPECT_LE(line.size(), 60u) << line;
}

TEST_F(Report, NamesFromElsewhereCommandNoTerminal) {
  CheckResult named{"dns", "server"};
  named.problem(
      "'a\xc2\x9b"
      "31m\x1b[2Jb': no such host",
      {"getent ahosts a\xc2\x9b"
       "31m"});
  const std::string text = report_text({named}, {});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
  EXPECT_NE(text.find("'a??31m?[2Jb': no such host"), std::string::npos) << text;
}

TEST_F(Report, JsonHasEveryCheckWithItsFindings) {
  port({});
  const std::string text = report_json(some_results(), host_, "server:2050");
  const auto document = JsonValue::parse(text);
  ASSERT_TRUE(document.has_value()) << text;
  EXPECT_EQ((*document)["version"].count(), 1u);
  EXPECT_EQ((*document)["host"].text(), "testhost");
  EXPECT_EQ((*document)["server"].text(), "server:2050");
  EXPECT_EQ((*document)["verdict"].text(), "problem");
  const auto& checks = (*document)["checks"].items();
  ASSERT_EQ(checks.size(), 5u);
  EXPECT_EQ(checks[1]["id"].text(), "ports");
  EXPECT_EQ(checks[1]["area"].text(), "RDMA");
  EXPECT_EQ(checks[1]["verdict"].text(), "problem");
  EXPECT_EQ(checks[1]["findings"].items().size(), 2u);
  EXPECT_EQ(checks[1]["findings"].items()[1]["seen"].text(), "mlx5_0 port 2: INIT");
  EXPECT_EQ(checks[1]["findings"].items()[1]["remedy"].items()[0].text(),
            "systemctl enable --now opensm");
  EXPECT_EQ(JsonValue::parse(report_json({}, host_, ""))->operator[]("server").kind(),
            JsonValue::Kind::kNull);
}

TEST_F(Report, JsonTellsOfRocePortsWhatTheOtherEndWantsToKnow) {
  port({});
  addresses_ = {{"eth0", address("192.0.2.9")}, {"eth1", address("198.51.100.9")}};
  file("/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode", "IB/RoCE v1\n");
  const auto document = JsonValue::parse(report_json({}, host_, ""));
  ASSERT_TRUE(document.has_value());
  const JsonValue& one = (*document)["roce_ports"].items().at(0);
  EXPECT_EQ(one["interface"].text(), "eth0");
  ASSERT_EQ(one["addresses"].items().size(), 1u);
  EXPECT_EQ(one["addresses"].items()[0].text(), "192.0.2.9");
  EXPECT_EQ(one["default_roce_mode"].text(), "RoCE v1");
}

TEST_F(Report, JsonIsWhatTheOtherEndComparesItsGidsWith) {
  port({.gid_types = {"RoCE v2"}});
  FakeNetwork network;
  ServerVisit visit{
      .host = host_, .network = network, .settings = {}, .other_end = report_json({}, host_, "")};
  EXPECT_TRUE(says(check_gid_match(visit), Verdict::kOk, "mlx5_0 port 1 there RoCE v2"));
}

TEST(DoctorVerdict, TheGravestCounts) {
  EXPECT_EQ(overall(some_results()), Verdict::kProblem);
  EXPECT_EQ(overall({}), Verdict::kSkipped);
  EXPECT_EQ(CheckResult{}.verdict(), Verdict::kSkipped);
  CheckResult noted;
  EXPECT_EQ(noted.skipped("x").ok("y").note("z").verdict(), Verdict::kNote);
}

/// run_doctor() with its output.
int doctor(std::vector<std::string> words, std::string* out = nullptr) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = tool::run_doctor(words);
  const std::string text = testing::internal::GetCapturedStdout();
  const std::string error = testing::internal::GetCapturedStderr();
  if (out != nullptr) *out = text + error;
  return code;
}

TEST(DoctorCommandLine, UsageErrorsAreTwo) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--nonsense"},
                                             {"a", "b"},
                                             {"--only", "nonsense"},
                                             {"--timeout", "0"},
                                             {"--timeout", "61"},
                                             {"--path", "/srv"},
                                             {"--path", "srv", "server"},
                                             {"--other-end", "/no/such/file", "server"},
                                             {"--other-end", "/", "server"},
                                             {"--other-end", "/dev/null", "server"},
                                             {"--only", ""},
                                             {"--only", "transport"},
                                             {"--only", "devices,dns"},
                                             {"--list", "--json"},
                                             {"nfs://h/x?rsiz=1"}}) {
    std::string out;
    EXPECT_EQ(doctor(words, &out), tool::kExitUsage) << joined(words, " ");
    EXPECT_TRUE(contains(out, "nfs-rdma doctor: ")) << out;
  }
}

TEST_F(Report, OtherEndThatIsNoReportIsSaidToBeNone) {
  const auto said = [&](const std::string& text) {
    file("/there.json", text);
    std::string out;
    EXPECT_EQ(doctor({"--other-end", root_ + "/there.json", "server"}, &out), tool::kExitUsage);
    return out;
  };
  errno = ENOENT;  // of something long ago
  EXPECT_TRUE(contains(said(""), "the file is empty"));
  EXPECT_TRUE(contains(said("{\"roce_ports\": [}"), "it is no JSON"));
  EXPECT_TRUE(contains(said("{\"version\": 1}"), "it has no roce_ports"));
}

TEST_F(Report, StrictCountsWarnings) {
  // What of the host's checks comes out as a warning here, if any does.
  const Verdict now = overall(run_checks(real_host(), nullptr, {"clock"}, {}));
  EXPECT_EQ(doctor({"--only", "clock"}), tool::kExitOk);
  EXPECT_EQ(doctor({"--only", "clock", "--strict"}),
            now == Verdict::kWarning ? tool::kExitFailure : tool::kExitOk);
  EXPECT_EQ(exit_code(some_results(), false), 1);
  CheckResult warned{"clock", "system"};
  warned.warning("not synchronised", {"apt install chrony"});
  EXPECT_EQ(exit_code({warned}, false), 0);
  EXPECT_EQ(exit_code({warned}, true), 1);
  CheckResult noted{"fuse", "system"};
  noted.note("for that user alone");
  EXPECT_EQ(exit_code({noted}, true), 0);
}

TEST(DoctorCommandLine, ReportThatCannotBeWrittenIsAFailure) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--only", "clock"}, {"--only", "clock", "--json"}, {"--list"}}) {
    std::fflush(stdout);
    const int kept = ::dup(STDOUT_FILENO);
    ::dup2(full, STDOUT_FILENO);
    testing::internal::CaptureStderr();
    const int code = tool::run_doctor(words);
    const std::string error = testing::internal::GetCapturedStderr();
    std::clearerr(stdout);
    ::dup2(kept, STDOUT_FILENO);
    ::close(kept);
    EXPECT_EQ(code, tool::kExitFailure) << joined(words, " ");
    EXPECT_TRUE(contains(error, "cannot be written: No space left")) << error;
  }
  ::close(full);
}

TEST(DoctorCommandLine, ServerThatIsDeadFailsWhateverIsAsked) {
  // Bound and not listening: nobody else gets that port, and it refuses.
  SocketAddress at = address("127.0.0.1", 0);
  const int holder = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(holder, at.data(), at.length()), 0);
  const std::string port = std::to_string(SocketAddress::local_of(holder).value().port());
  const std::string server = "nfs://127.0.0.1:" + port + "?tcpport=" + port;
  for (const char* only : {"null-iwarp,transport", "transport", "reach", "null-iwarp", "null-verbs",
                           "null-tcp", "data-iwarp", "data-verbs", "data-tcp", "skew"}) {
    std::string out;
    EXPECT_EQ(doctor({"--timeout", "60", "--only", only, server}, &out), tool::kExitFailure)
        << only << "\n"
        << out;
  }
  ::close(holder);
}

TEST(DoctorCommandLine, HelpAndListAreZero) {
  std::string out;
  EXPECT_EQ(doctor({"--help"}, &out), tool::kExitOk);
  EXPECT_TRUE(contains(out, "--other-end"));
  EXPECT_EQ(doctor({"--list"}, &out), tool::kExitOk);
  EXPECT_EQ(lines_of(out).size(), check_rows().size());
}

TEST(DoctorCommandLine, NameThatCannotExistIsAProblem) {
  std::string out;
  EXPECT_EQ(doctor({"--only", "dns", "--json", "no-such-host.invalid"}, &out), tool::kExitFailure);
  const auto document = JsonValue::parse(trimmed(out));
  ASSERT_TRUE(document.has_value()) << out;
  EXPECT_EQ((*document)["verdict"].text(), "problem");
}

TEST(DoctorCommandLine, AddressAloneIsNoProblem) {
  EXPECT_EQ(doctor({"--only", "dns,route", "127.0.0.1"}), tool::kExitOk);
}

}  // namespace
}  // namespace nfsrdma::doctor
