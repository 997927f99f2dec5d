// SPDX-License-Identifier: Apache-2.0
// What other threads do between the steps of an operation.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
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

// A slow READLINK goes to a worker, which wants more memory for a second text of the loop's thread;
// that must not send the call back for being slow before it has got any.
TEST(Meanwhile, ASecondSlowReadlinkGetsItsRoom) {
  Nfs4Harness nfs;
  const std::string text(1000, 't');
  ASSERT_EQ(::symlink(text.c_str(), nfs.path("link").c_str()), 0);
  const FileHandle link = nfs.lookup(nfs.root(), "link");
  std::optional<HeldCalls> held;
  // As slow as a file system that is far away.
  const auto slow = [] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(8);
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  nfs.on_its_thread([&] { held.emplace(SYS_readlinkat, slow); });
  const Operations4 one = Operations4().putfh(link).add<OP_READLINK>();
  Reply4 reply;
  for (int i = 0; i < 60 && !reply.ran_on_worker; ++i)
    reply = nfs.run(one);
  ASSERT_TRUE(reply.ran_on_worker);
  reply = nfs.run(Operations4().putfh(link).add<OP_READLINK>().putfh(link).add<OP_READLINK>());
  ASSERT_EQ(reply.status, NFS4_OK);
  EXPECT_TRUE(reply.ran_on_worker);
  for (std::size_t nth : {0, 1})
    EXPECT_EQ(as_text(reply.get<OP_READLINK>(nth).resok4.link.bytes), text);
}

}  // namespace
}  // namespace nfsrdma::test
