// SPDX-License-Identifier: Apache-2.0
// What other threads do between the steps of an operation.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <optional>

#include "tests/support/held_calls.h"
#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

TEST(Meanwhile, ACommitDoesNotHaveWhatIsWrittenBehindIt) {
  Nfs4Harness nfs;
  const Open4 file = nfs.open(nfs.root(), "file");
  ASSERT_EQ(file.status, NFS4_OK);
  const FilePin entry = nfs.server().files.find(file.handle);
  ASSERT_TRUE(entry);
  std::atomic<bool> was_unstable{false};
  std::optional<HeldCalls> held;
  nfs.on_its_thread(
      [&] { held.emplace(SYS_pwrite64, [&] { was_unstable = entry->unstable.exchange(false); }); });
  EXPECT_EQ(nfs.write(file, 0, "data"), NFS4_OK);
  EXPECT_TRUE(was_unstable);
  EXPECT_TRUE(entry->unstable) << "nobody would sync it before its descriptor is closed";
}

TEST(Meanwhile, AFileThatWasMadeIsOpenedThoughTheRoomForItIsTaken) {
  nfs4::Limits limits = nfs4::ServerState::Options().limits;
  limits.opens.opens.per_client = 2;
  Nfs4Harness nfs({}, limits);
  ASSERT_EQ(nfs.open(nfs.root(), "first").status, NFS4_OK);
  // Another OPEN of the client, which was let in at the same time.
  std::atomic<nfs4::OpenStates::Status> other{nfs4::OpenStates::Status::kResource};
  std::atomic<bool> was_there{true};
  std::optional<HeldCalls> held;
  nfs.on_its_thread([&] {
    held.emplace(SYS_openat, [&] {
      if (other == nfs4::OpenStates::Status::kOk) return;
      was_there = std::filesystem::exists(nfs.path("file"));
      std::lock_guard lock(nfs.state().mutex);
      other = nfs.state()
                  .opens
                  .open({nfs.session.client, 2}, "other owner", nfs4::file_key(1, 2),
                        {nfs4::kShareRead, 0})
                  .status;
    });
  });
  EXPECT_EQ(nfs.open(nfs.root(), "file").status, NFS4_OK);
  EXPECT_EQ(other, nfs4::OpenStates::Status::kOk);
  EXPECT_FALSE(was_there);
  EXPECT_EQ(nfs.open(nfs.root(), "none").status, NFS4ERR_DELAY) << "a reserve is for nobody else";
  EXPECT_FALSE(std::filesystem::exists(nfs.path("none")));
}

}  // namespace
}  // namespace nfsrdma::test
