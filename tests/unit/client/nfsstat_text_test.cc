// SPDX-License-Identifier: Apache-2.0
// nfs-rdma status --nfsstat: the layout of nfsstat -s, of made-up documents.
#include "client/tool/nfsstat_text.h"

#include <gtest/gtest.h>

namespace nfsrdma::tool {
namespace {

std::string text_of(const char* document) {
  return nfsstat_text(*JsonValue::parse(document));
}

/// From `title` to the empty line.
std::string table(const std::string& text, const std::string& title) {
  const std::size_t start = text.find(title);
  if (start == std::string::npos) return {};
  return text.substr(start, text.find("\n\n", start) + 1 - start);
}

constexpr const char* kDocument = R"({
  "totals":{"calls":1234,"rejected":5,"rejected_auth":2},
  "procedures":[
    {"program":"NFSv3","name":"GETATTR","calls":30,"on_workers":0},
    {"program":"NFSv3","name":"READ","calls":60,"on_workers":0},
    {"program":"NFSv3","name":"COMMIT","calls":10,"on_workers":0},
    {"program":"NFSv4","name":"COMPOUND","calls":3,"on_workers":0},
    {"program":"MOUNTv3","name":"MNT","calls":77,"on_workers":0}],
  "operations":[
    {"program":"NFSv4","name":"SEQUENCE","fabric":"tcp","calls":1},
    {"program":"NFSv4","name":"SEQUENCE","fabric":"verbs","calls":2},
    {"program":"NFSv4","name":"OPEN_DOWNGRADE","fabric":"tcp","calls":3},
    {"program":"NFSv4","name":"REMOVEXATTR","fabric":"tcp","calls":4},
    {"program":"NFSv4","name":"ILLEGAL","fabric":"tcp","calls":9}]})";

TEST(NfsstatText, TellsBadCallsApart) {
  EXPECT_EQ(table(text_of(kDocument), "Server rpc stats:"),
            "Server rpc stats:\n"
            "calls      badcalls   badfmt     badauth    badclnt\n"
            "1234       5          3          2          0       \n");
}

TEST(NfsstatText, HasTheProceduresOfVersion3InTheirOrder) {
  EXPECT_EQ(
      table(text_of(kDocument), "Server nfs v3:"),
      "Server nfs v3:\n"
      "null             getattr          setattr          lookup           access           \n"
      "0         0%     30       30%     0         0%     0         0%     0         0%     \n"
      "readlink         read             write            create           mkdir            \n"
      "0         0%     60       60%     0         0%     0         0%     0         0%     \n"
      "symlink          mknod            remove           rmdir            rename           \n"
      "0         0%     0         0%     0         0%     0         0%     0         0%     \n"
      "link             readdir          readdirplus      fsstat           fsinfo           \n"
      "0         0%     0         0%     0         0%     0         0%     0         0%     \n"
      "pathconf         commit           \n"
      "0         0%     10       10%     \n");
}

TEST(NfsstatText, HasProceduresAndOperationsOfVersion4) {
  const std::string text = text_of(kDocument);
  EXPECT_EQ(table(text, "Server nfs v4:"),
            "Server nfs v4:\n"
            "null             compound         \n"
            "0         0%     3       100%     \n");
  const std::string operations = table(text, "Server nfs v4 operations:");
  EXPECT_TRUE(operations.starts_with(
      "Server nfs v4 operations:\n"
      "op0-unused       op1-unused       op2-future       access           close            \n"
      "0         0%     0         0%     0         0%     0         0%     0         0%     \n"
      "commit           create           delegpurge       delegreturn      getattr          \n"))
      << operations;
  EXPECT_NE(
      operations.find("\nopen_conf        open_dgrd        putfh            putpubfh         "
                      "putrootfh        \n0         0%     3        30%     0         0%     "),
      std::string::npos)
      << operations;
  EXPECT_NE(operations.find("secinfononam     sequence         set_ssv "), std::string::npos)
      << operations;
  EXPECT_TRUE(operations.ends_with("removexattr      \n4        40%     \n")) << operations;
}

TEST(NfsstatText, VersionsThatNobodyUsedHaveNoTable) {
  EXPECT_EQ(text_of(R"({"totals":{"calls":0,"rejected":0,"rejected_auth":0},
                        "procedures":[],"operations":[]})"),
            "Server rpc stats:\n"
            "calls      badcalls   badfmt     badauth    badclnt\n"
            "0          0          0          0          0       \n\n");
}

TEST(NfsstatText, AnOlderServerHasNoBadauth) {
  EXPECT_NE(text_of(R"({"totals":{"calls":7,"rejected":3}})")
                .find("\n7          3          3          0"),
            std::string::npos);
}

}  // namespace
}  // namespace nfsrdma::tool
