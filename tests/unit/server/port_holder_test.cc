// SPDX-License-Identifier: Apache-2.0
#include "server/port_holder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace nfsrdma {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A /proc of the test's making.
class PortHolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "port_holder.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    proc_ = name;
    fs::create_directories(proc_ / "net");
    question_.port = 20049;
    question_.proc = proc_.string();
  }
  void TearDown() override { fs::remove_all(proc_); }

  void write(const std::string& file, const std::string& text) {
    fs::create_directories((proc_ / file).parent_path());
    std::ofstream(proc_ / file) << text;
  }
  /// Sockets: of `port` with `state`, inode 777.
  void tcp_table(const char* file, std::uint16_t port, const char* state) {
    write(file, fmt::format("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
                            "retrnsmt   uid  timeout inode\n"
                            "   0: 00000000:{:04X} 00000000:0000 {} 00000000:00000000 00:00000000 "
                            "00000000     0        0 777 1 0 100 0 0 10 0\n",
                            port, state));
  }
  void process(const std::string& pid, const std::string& name, const std::string& descriptor) {
    write(pid + "/comm", name + "\n");
    fs::create_directories(proc_ / pid / "fd");
    fs::create_symlink(descriptor, proc_ / pid / "fd" / "3");
  }

  fs::path proc_;
  PortQuestion question_;
};

TEST_F(PortHolder, NamesTheKernelsNfsServer) {
  write("fs/nfsd/portlist", "rdma 20049\ntcp 2049\n");
  EXPECT_THAT(port_holder(question_),
              AllOf(HasSubstr("kernel's NFS server has it ('rdma 20049'"),
                    HasSubstr("systemctl stop nfs-server"), HasSubstr("--port")));
  question_.tcp_socket = false;
  EXPECT_THAT(port_holder(question_), HasSubstr("kernel's NFS server has it ('rdma 20049'"));
}

TEST_F(PortHolder, IsNotMistakenByAnotherPortOfTheKernels) {
  write("fs/nfsd/portlist", "rdma 120049\ntcp 2049\n");
  EXPECT_THAT(port_holder(question_), HasSubstr("nothing is seen to listen there"));
}

TEST_F(PortHolder, NamesTheProcess) {
  tcp_table("net/tcp6", 20049, "0A");
  process("11", "sshd", "socket:[776]");
  process("42", "nfs-ganesha", "socket:[777]");
  EXPECT_THAT(port_holder(question_),
              AllOf(HasSubstr("process 42 (nfs-ganesha) has it"), HasSubstr("--port")));
}

TEST_F(PortHolder, ASocketOfNoProcessIsTheKernels) {
  tcp_table("net/tcp", 20049, "0A");
  process("11", "sshd", "socket:[776]");
  EXPECT_THAT(port_holder(question_),
              AllOf(HasSubstr("inside the kernel"), HasSubstr("siw"), HasSubstr("rdma resource")));
}

TEST_F(PortHolder, ConnectionsOfThePortDoNotCount) {
  tcp_table("net/tcp", 20049, "01");
  EXPECT_THAT(port_holder(question_), HasSubstr("nothing is seen to listen there"));
}

TEST_F(PortHolder, OurOwnEngineIsInTheWayOfIwarpDevices) {
  tcp_table("net/tcp", 20049, "0A");
  question_.tcp_socket = false;
  question_.our_iwarp_engine = true;
  EXPECT_THAT(port_holder(question_),
              AllOf(HasSubstr("our own iwarp engine"), HasSubstr("--fabric verbs")));
}

TEST_F(PortHolder, AnotherRdmaServerIsFoundWithRdmaResource) {
  question_.tcp_socket = false;
  EXPECT_THAT(port_holder(question_),
              AllOf(HasSubstr("another RDMA server"), HasSubstr("rdma resource show cm_id")));
}

TEST_F(PortHolder, SaysTheOptionOfTcp) {
  question_.option = "--tcp-port";
  EXPECT_THAT(port_holder(question_), HasSubstr("--tcp-port"));
}

}  // namespace
}  // namespace nfsrdma
