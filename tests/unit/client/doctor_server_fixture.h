// SPDX-License-Identifier: Apache-2.0
// A server behind a made-up network, for the checks of nfs-rdma doctor SERVER.
#pragma once

#include "tests/unit/client/doctor_fixture.h"

namespace nfsrdma::doctor {

class ServerTest : public DoctorTest {
 protected:
  ServerTest() { visit_.settings.host = "server.example.org"; }

  void resolved() { static_cast<void>(check_dns(visit_)); }
  void answers(TransportKind kind) {
    NullAnswer answer;
    answer.answered = true;
    answer.milliseconds = 0.25;
    answer.nfs_version = 3;
    answer.reached = {Reached::How::kOpen};
    answer.connection.transport = kind;
    answer.connection.device = kind == TransportKind::kTcp ? "" : transport_name(kind);
    answer.connection.peer = address("192.0.2.1", 20049);
    answer.connection.inline_send = answer.connection.inline_recv = 4096;
    answer.connection.credits = 64;
    answer.connection.ord = 16;
    answer.connection.ird = 32;
    network_.nulls[kind] = answer;
  }
  void silent(TransportKind kind, const std::string& why) {
    network_.nulls[kind] = NullAnswer{.error = why};
  }
  void cannot(TransportKind kind, const std::string& why) {
    network_.nulls[kind] = NullAnswer{.tried = false, .error = why};
  }
  static DataAnswer good_data(TransportKind kind) {
    DataAnswer data;
    data.done = true;
    data.nfs_version = "4.2";
    data.bytes = 1 << 20;
    data.checksum = 0x1234;
    data.write_ms = 2;
    data.read_ms = 1;
    data.connection.transport = kind;
    data.connection.stats.rdma_read_bytes = is_rdma(kind) ? 1 << 20 : 0;
    data.connection.stats.rdma_write_bytes = is_rdma(kind) ? 1 << 20 : 0;
    data.skew = 0.05;
    data.skew_uncertainty = 0.01;
    return data;
  }

  FakeNetwork network_;
  ServerVisit visit_{.host = host_, .network = network_, .settings = {}};
};

}  // namespace nfsrdma::doctor
