// SPDX-License-Identifier: Apache-2.0
// nfs-rdma doctor SERVER: NULL calls, data and clocks, over a made-up network.
#include <cerrno>

#include "tests/unit/client/doctor_server_fixture.h"

namespace nfsrdma::doctor {
namespace {

using EndToEnd = ServerTest;

// --- NULL ---

TEST_F(EndToEnd, AnswerTellsWhatWasAgreedOn) {
  answers(TransportKind::kIwarp);
  cannot(TransportKind::kVerbs, "verbs: no RDMA device");
  answers(TransportKind::kTcp);
  resolved();
  EXPECT_TRUE(
      says(check_null_iwarp(visit_), Verdict::kOk,
           "NULL of NFSv3 answered in 0.25 ms by 192.0.2.1:20049; inline 4096 out, 4096 in, "
           "credits 64, read depth 32 in, 16 out"));
  EXPECT_TRUE(says(check_null_verbs(visit_), Verdict::kSkipped, "no RDMA device"));
  EXPECT_EQ(check_null_tcp(visit_).verdict(), Verdict::kOk);
  EXPECT_TRUE(says(check_transport(visit_), Verdict::kOk, "RDMA works, by iwarp"));
  EXPECT_EQ(network_.null_calls, 3);  // each once
}

TEST_F(EndToEnd, SmallInlineAndReadDepthAreNotes) {
  answers(TransportKind::kIwarp);
  network_.nulls[TransportKind::kIwarp].connection.inline_send = 1024;
  network_.nulls[TransportKind::kIwarp].connection.ird = 1;
  resolved();
  const CheckResult result = check_null_iwarp(visit_);
  EXPECT_TRUE(says(result, Verdict::kNote, "1024 bytes only"));
  EXPECT_TRUE(says(result, Verdict::kNote, "one RDMA Read under way"));
}

TEST_F(EndToEnd, OneFabricIsEnough) {
  answers(TransportKind::kVerbs);
  silent(TransportKind::kIwarp, "connect: Connection refused");
  silent(TransportKind::kTcp, "connect: Connection refused");
  resolved();
  EXPECT_TRUE(says(check_null_iwarp(visit_), Verdict::kNote, "Connection refused"));
  EXPECT_TRUE(says(check_null_tcp(visit_), Verdict::kNote, "Connection refused"));
  EXPECT_EQ(check_transport(visit_).verdict(), Verdict::kOk);
}

TEST_F(EndToEnd, TcpAloneIsAProblem) {
  silent(TransportKind::kIwarp, "connect: Connection refused");
  silent(TransportKind::kVerbs, "address resolution: timed out");
  answers(TransportKind::kTcp);
  resolved();
  EXPECT_TRUE(says(check_null_iwarp(visit_), Verdict::kWarning, "refused", "ss -ltn"));
  EXPECT_TRUE(says(check_null_verbs(visit_), Verdict::kWarning, "timed out", "4791/udp"));
  EXPECT_TRUE(
      says(check_transport(visit_), Verdict::kProblem, "by TCP only", "NFSoRDMA_FABRIC=auto"));
}

TEST_F(EndToEnd, TcpAloneIsFineWhereItWasAskedFor) {
  visit_.settings.proto = ProtoChoice::kTcp;
  answers(TransportKind::kTcp);
  resolved();
  EXPECT_EQ(check_null_iwarp(visit_).verdict(), Verdict::kSkipped);
  EXPECT_TRUE(says(check_transport(visit_), Verdict::kOk, "TCP, as asked for"));
  EXPECT_EQ(network_.null_calls, 1);
}

TEST_F(EndToEnd, NothingThatAnswersIsAProblem) {
  for (TransportKind kind : kTransports)
    silent(kind, "connect: timed out");
  resolved();
  EXPECT_TRUE(says(check_transport(visit_), Verdict::kProblem,
                   "no NFS server answers at server.example.org", "systemctl status nfs-rdma"));
}

// --- data ---

TEST_F(EndToEnd, WithoutPathItSaysHowToGiveOne) {
  answers(TransportKind::kIwarp);
  resolved();
  static_cast<void>(check_null_iwarp(visit_));
  EXPECT_TRUE(says(check_data_iwarp(visit_), Verdict::kSkipped, "no exported directory",
                   "nfs-rdma doctor --path /EXPORT server.example.org:20049 "));
  EXPECT_TRUE(says(check_skew(visit_), Verdict::kSkipped, "a file made there", "--path"));
  EXPECT_TRUE(network_.paths.empty());
}

TEST_F(EndToEnd, RemedyIsTheCommandLineAsItWasGivenWithAPath) {
  answers(TransportKind::kIwarp);
  resolved();
  for (const auto& [given, shown] : std::vector<std::pair<std::string, std::string>>{
           {"nfs://[2001:db8::1]:2050?vers=3&tcpport=31000",
            "--path /EXPORT 'nfs://[2001:db8::1]:2050?vers=3&tcpport=31000' "},
           {"[2001:db8::1]:2050", "--path /EXPORT '[2001:db8::1]:2050' "},
           {"server:2050", "--path /EXPORT server:2050 "}}) {
    visit_.server = given;
    EXPECT_TRUE(says(check_data_iwarp(visit_), Verdict::kSkipped, "no exported directory",
                     "nfs-rdma doctor " + shown));
  }
}

class Data : public EndToEnd {
 protected:
  Data() {
    for (TransportKind kind : kTransports)
      answers(kind);
    visit_.has_path = true;
    visit_.settings.path = "/srv/data";
    resolved();
    static_cast<void>(check_null_iwarp(visit_));
  }
  /// The exchange over iWARP that fails there; to be changed further.
  DataAnswer& fails(DataAnswer::Failed where, int number, const std::string& error) {
    DataAnswer& data = network_.data[TransportKind::kIwarp];
    data = DataAnswer();
    data.failed = where;
    data.error_number = number;
    data.error = error;
    return data;
  }
};

TEST_F(Data, ThatWentByRdmaIsShownByTheCounters) {
  network_.data[TransportKind::kIwarp] = good_data(TransportKind::kIwarp);
  EXPECT_TRUE(
      says(check_data_iwarp(visit_), Verdict::kOk,
           "NFS version 4.2: 1048576 bytes written (524 MB/s) and read back (1049 MB/s), checksum "
           "0000000000001234; RDMA Read 1048576 bytes, RDMA Write 1048576 bytes"));
  EXPECT_EQ(network_.paths, std::vector<std::string>{"/srv/data"});
}

TEST_F(Data, ThatWentInlineIsAProblemOnAFabricAndNoneOnTcp) {
  network_.data[TransportKind::kVerbs] = good_data(TransportKind::kVerbs);
  network_.data[TransportKind::kVerbs].connection.stats.rdma_write_bytes = 0;
  network_.data[TransportKind::kTcp] = good_data(TransportKind::kTcp);
  EXPECT_TRUE(says(check_data_verbs(visit_), Verdict::kProblem, "did not go by RDMA"));
  EXPECT_EQ(check_data_tcp(visit_).verdict(), Verdict::kOk);
}

TEST_F(Data, ThatDiffersIsAProblem) {
  DataAnswer data = good_data(TransportKind::kIwarp);
  data.done = false;
  data.failed = DataAnswer::Failed::kDiffers;
  network_.data[TransportKind::kIwarp] = data;
  EXPECT_TRUE(says(check_data_iwarp(visit_), Verdict::kProblem, "is not what was written"));
}

TEST_F(Data, DirectoryThatIsReadOnlyIsANote) {
  fails(DataAnswer::Failed::kCreate, EROFS, "making a file: Read-only file system");
  EXPECT_TRUE(
      says(check_data_iwarp(visit_), Verdict::kNote, "Read-only file system", "root_squash"));
}

TEST_F(Data, ServerThatWaitsForItsClientsIsAWarning) {
  fails(DataAnswer::Failed::kCreate, ETIMEDOUT,
        "making a file: the server keeps saying: later: Connection timed out");
  EXPECT_TRUE(says(check_data_iwarp(visit_), Verdict::kWarning, "restarted lately", "try again"));
}

TEST_F(Data, PathThatIsNotExportedIsAProblem) {
  fails(DataAnswer::Failed::kMount, EACCES, "MOUNT: not exported to this host");
  EXPECT_TRUE(
      says(check_data_iwarp(visit_), Verdict::kProblem, "not exported", "nfs-rdma.exports(5)"));
}

TEST_F(Data, FileThatStaysBehindIsNamed) {
  fails(DataAnswer::Failed::kRemove, EACCES, "REMOVE: Permission denied").file =
      "server:/srv/data/.nfs-rdma-doctor.x";
  EXPECT_TRUE(says(check_data_iwarp(visit_), Verdict::kWarning, "could not be removed",
                   "server:/srv/data/.nfs-rdma-doctor.x"));
}

TEST_F(Data, FileThatStaysBehindAfterAnotherFailureIsNamedToo) {
  DataAnswer& data = fails(DataAnswer::Failed::kRead, EIO, "READ: Input/output error");
  data.left_behind = true;
  data.file = "server:/srv/data/.nfs-rdma-doctor.x";
  const CheckResult result = check_data_iwarp(visit_);
  EXPECT_TRUE(says(result, Verdict::kProblem, "READ: Input/output error"));
  EXPECT_TRUE(says(result, Verdict::kWarning, "could not be removed",
                   "server:/srv/data/.nfs-rdma-doctor.x"));
}

TEST_F(Data, IsNotTriedWhereNothingAnswered) {
  visit_.nulls[0]->answered = false;
  EXPECT_TRUE(says(check_data_iwarp(visit_), Verdict::kSkipped, "no connection that way"));
}

TEST_F(Data, ClockSkew) {
  const auto with = [&](double skew) {
    DataAnswer data = good_data(TransportKind::kIwarp);
    data.skew = skew;
    network_.data[TransportKind::kIwarp] = data;
    visit_.data = {};
    static_cast<void>(check_data_iwarp(visit_));
    return check_skew(visit_);
  };
  EXPECT_TRUE(says(with(0.5), Verdict::kOk, "0.500 s ahead"));
  EXPECT_TRUE(says(with(-30), Verdict::kWarning, "30.000 s behind", "chrony"));
  EXPECT_TRUE(says(with(3600), Verdict::kProblem, "Kerberos"));
}

}  // namespace
}  // namespace nfsrdma::doctor
