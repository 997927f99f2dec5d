// SPDX-License-Identifier: Apache-2.0
// nfs-rdma status: what is said of NFSv4, of made-up documents.
#include "client/tool/nfs4_text.h"

#include <gtest/gtest.h>

namespace nfsrdma::tool {
namespace {

constexpr const char* kDocument = R"({
  "clients":3,"clients_active":2,"clients_courteous":1,"clients_expired":0,"in_grace":true,
  "sessions":4,"slots":130,"opens":12,"files":9,"locks":5,"delegations":6,
  "refused":{"clients":4,"sessions":0,"opens":0,"files":77,"locks":0,"locks_per_file":2,"owners":5},
  "limits":{"clients":100,"sessions_per_client":64,"slots_per_session":32,"slots":2000,
            "opens_per_client":50,"opens":500,"files":300,"locks_per_client":40,"locks":400,
            "delegations_per_client":10,"delegations":20,"kept_reply_bytes_per_slot":8192,
            "locks_per_file":30,"owners_per_client":60},
  "client_list":[{"name":"Linux NFSv4.2 host","minor_version":2,"address":"192.0.2.7",
    "state":"courteous","seconds_since_renewal":125,"sessions":1,"session_connections":4,
    "slots":64,"slots_in_use":3,"opens":1,"locks":5,"delegations":6,"delegations_recalled":2,"delegations_revoked":0}]})";

TEST(Nfs4Text, HasClientsCountsAndLimits) {
  EXPECT_EQ(
      nfs4_text(*JsonValue::parse(kDocument)),
      "nfs4    Linux NFSv4.2 host  4.2 from 192.0.2.7, courteous, renewed 2:05 ago\n"
      "        1 session on 4 connections, 3 of 64 slots in use; 1 open, 5 locks, 6 delegations "
      "(2 being recalled)\n"
      "        and 2 clients that hold no more than these\n"
      "NFSv4: 3 of 100 clients (2 active, 1 courteous, 0 expired); clients reclaim what they "
      "had; refused 4 times\n"
      "        sessions 4, of a client 64, with 32 slots each that keep 8192 bytes of a reply\n"
      "        slots 130 of 2000\n"
      "        opens 12 of 500, of a client 50\n"
      "        files 9 of 300; refused 77 times\n"
      "        locks 5 of 400, of a client 40\n"
      "        locks of a file 30; refused 2 times\n"
      "        delegations 6 of 20, of a client 10\n"
      "        owners of a client of version 4.0 60; refused 5 times\n");
}

TEST(Nfs4Text, IsNothingWithoutNfs4) {
  EXPECT_EQ(nfs4_text(*JsonValue::parse("null")), "");
}

TEST(Nfs4Text, AHostOfVersion3IsNoClientOfVersion4) {
  const auto document = JsonValue::parse(R"({"client_list":[
    {"name":"192.0.2.9 host","protocol":"NLM","address":"192.0.2.9","seconds_since_renewal":5,
     "locks":2}]})");
  const std::string text = nfs4_text(*document);
  EXPECT_NE(text.find("nlm     192.0.2.9 host  from 192.0.2.9, heard of 0:05 ago; 2 locks\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace nfsrdma::tool
