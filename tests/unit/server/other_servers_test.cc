// SPDX-License-Identifier: Apache-2.0
// Who else serves NFS here, by a /proc of the test's making, and what is said of locks then.
#include "server/other_servers.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/exported_directory.h"

namespace nfsrdma::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class OtherServersTest : public ::testing::Test {
 protected:
  void process(const std::string& pid, const std::string& name, const std::string& command) {
    std::filesystem::create_directories(proc.path() + "/" + pid);
    put_file(proc.path() + "/" + pid + "/comm", name + "\n");
    put_file(proc.path() + "/" + pid + "/cmdline", command);
  }
  TemporaryDirectory proc;
};

TEST_F(OtherServersTest, AreSeenByTheNamesOfProcesses) {
  process("2", "kthreadd", "");
  EXPECT_FALSE(other_servers(proc.path()).kernel);
  process("70", "nfsd", "");
  process("80", "nfs-rdmad", "nfs-rdmad");
  const OtherServers seen = other_servers(proc.path());
  EXPECT_TRUE(seen.kernel);
  EXPECT_THAT(seen.daemons, ElementsAre("80"));
}

TEST_F(OtherServersTest, AreNotThisProcessNorItsParent) {
  process(std::to_string(::getpid()), "nfs-rdmad", "nfs-rdmad");
  process(std::to_string(::getppid()), "nfs-rdmad", "nfs-rdmad");
  EXPECT_THAT(other_servers(proc.path()).daemons, IsEmpty());
}

TEST_F(OtherServersTest, MountsOfVersion3AreFound) {
  std::filesystem::create_directories(proc.path() + "/self");
  put_file(proc.path() + "/self/mountinfo",
           "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
           "40 21 0:40 / /mnt/three rw shared:1 - nfs host:/a rw,vers=3,proto=tcp\n"
           "41 21 0:41 / /mnt/four rw - nfs4 host:/b rw,vers=4.2\n");
  EXPECT_THAT(kernel_mounts_of_v3(proc.path()), ElementsAre("/mnt/three"));
}

TEST(OtherLockManager, HasARemedyForEachThatIsPossible) {
  EXPECT_THAT(other_lock_manager({true, {}}, {}),
              AllOf(HasSubstr("systemctl disable --now nfs-server"), Not(HasSubstr("nolock"))));
  EXPECT_THAT(other_lock_manager({false, {"80", "81"}}, {}),
              AllOf(HasSubstr("process 80, 81"), HasSubstr("NFSoRDMA_NLM=no")));
  EXPECT_THAT(other_lock_manager({false, {}}, {"/mnt/three"}),
              AllOf(HasSubstr("/mnt/three"), HasSubstr("nolock")));
  EXPECT_THAT(other_lock_manager({true, {}}, {"/mnt"}), HasSubstr("nfs-server), or the kernel's"));
  EXPECT_THAT(other_lock_manager({}, {}), HasSubstr("rpcinfo"));
}

}  // namespace
}  // namespace nfsrdma::test
