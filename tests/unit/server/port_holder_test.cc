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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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

TEST_F(PortHolder, SaysTheOptionAndTheKey) {
  EXPECT_THAT(port_holder(question_), HasSubstr("--port or NFSoRDMA_PORT in rdma.conf"));
  question_.option = "--tcp-port";
  question_.key = "NFSoRDMA_TCP_PORT";
  EXPECT_THAT(port_holder(question_), HasSubstr("--tcp-port or NFSoRDMA_TCP_PORT in rdma.conf"));
}

// In the unit of the service /proc/fs/nfsd is empty, and the threads are all that is seen.
TEST_F(PortHolder, TheKernelsServerIsKnownByItsThreads) {
  tcp_table("net/tcp", 2049, "0A");
  question_.port = 2049;
  EXPECT_THAT(port_holder(question_), HasSubstr("of siw"));
  write("77/comm", "nfsd\n");
  write("77/cmdline", "");
  EXPECT_THAT(port_holder(question_),
              AllOf(HasSubstr("the kernel's NFS server runs here and has it, most likely"),
                    HasSubstr("systemctl stop nfs-server"), Not(HasSubstr("siw"))));
  question_.port = 2050;
  tcp_table("net/tcp", 2050, "0A");
  EXPECT_THAT(port_holder(question_), Not(HasSubstr("kernel's NFS server")));
}

TEST_F(PortHolder, TheKernelsServerIsKnownByItsCounts) {
  question_.tcp_socket = false;
  write("net/rpc/nfsd", "rc 0 0 0\nth 0 0 0.000\n");
  EXPECT_THAT(port_holder(question_), HasSubstr("another RDMA server"));
  write("net/rpc/nfsd", "rc 0 0 0\nth 8 0 0.000\n");
  EXPECT_THAT(port_holder(question_),
              AllOf(HasSubstr("kernel's NFS server runs here and has it, most likely"),
                    HasSubstr("rdma resource show cm_id")));
  // Where its ports can be read this is none of them.
  write("fs/nfsd/portlist", "tcp 2049\n");
  EXPECT_THAT(port_holder(question_), HasSubstr("another RDMA server"));
}

TEST_F(PortHolder, AProgramOfTheNameIsNotTheKernels) {
  tcp_table("net/tcp", 20049, "0A");
  write("77/comm", "nfsd\n");
  write("77/cmdline", "nfsd --serve");
  EXPECT_THAT(port_holder(question_), HasSubstr("of siw"));
}

TEST_F(PortHolder, UsersOfListenersAreRead) {
  tcp_table("net/tcp", 20049, "0A");
  EXPECT_THAT(listening_users(proc_.string(), 20049), ElementsAre("0"));
  EXPECT_THAT(listening_users(proc_.string(), 2049), IsEmpty());
}

/// What the service sees, which may not look into other processes.
PortFacts hidden_facts(std::set<std::string> users) {
  PortFacts facts;
  facts.inodes = {"777"};
  facts.users = std::move(users);
  facts.holder.hidden = true;
  facts.as_root = true;
  return facts;
}

TEST(HiddenPortHolder, ItsUserIsNamedAndWhatTellsMore) {
  const PortQuestion question{.port = 20049};
  PortFacts facts = hidden_facts({"0"});
  EXPECT_EQ(port_holder(question, facts),
            "a process of root has it (this service may not look which one, 'ss -ltnp sport = "
            ":20049' in a shell of root does): end that or choose another with --port or "
            "NFSoRDMA_PORT in rdma.conf");
  facts.users = {"4294967"};
  EXPECT_THAT(port_holder(question, facts), HasSubstr("a process of user 4294967 has it"));
  facts.as_root = false;
  EXPECT_THAT(port_holder(question, facts), HasSubstr("as root 'ss -ltnp sport = :20049' tells"));
}

TEST(HiddenPortHolder, TheKernelsServerIsLikelyWhereItRuns) {
  const PortQuestion question{.port = 2049, .option = "--tcp-port", .key = "NFSoRDMA_TCP_PORT"};
  PortFacts facts = hidden_facts({"0"});
  facts.others.kernel = true;
  EXPECT_THAT(port_holder(question, facts),
              AllOf(HasSubstr("the kernel's NFS server runs here and has it, most likely"),
                    HasSubstr("NFSoRDMA_TCP_PORT"), HasSubstr("'ss -ltnp sport = :2049'")));
  facts.users = {"1000"};
  EXPECT_THAT(port_holder(question, facts), Not(HasSubstr("kernel")));
}

TEST(HiddenPortHolder, ItsUnitIsNamedWhereThatIsKnown) {
  PortFacts facts = hidden_facts({"0"});
  facts.cgroup = Cgroup{"holder.service", {"812 (python3)"}, false};
  EXPECT_THAT(port_holder({.port = 20049}, facts),
              HasSubstr("process 812 (python3), the one of holder.service, has it: end that or"));
  facts.cgroup = Cgroup{"session-3.scope", {"800 (bash)", "812 (nc)"}, true};
  EXPECT_THAT(port_holder({.port = 20049}, facts),
              HasSubstr("a process of root in session-3.scope has it, one of 800 (bash), 812 (nc) "
                        "and others ("));
}

TEST(HiddenPortHolder, AnotherServerOfThisProgramIsLikelyWhereItRuns) {
  PortFacts facts = hidden_facts({"0"});
  facts.others.daemons = {"4711"};
  EXPECT_THAT(port_holder({.port = 20049}, facts),
              HasSubstr("most likely the other nfs-rdmad that runs (process 4711;"));
}

}  // namespace
}  // namespace nfsrdma
