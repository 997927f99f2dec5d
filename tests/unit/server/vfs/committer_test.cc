// SPDX-License-Identifier: Apache-2.0
#include "server/vfs/committer.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <latch>

#include "tests/support/nfs3_harness.h"

namespace nfsrdma::test {
namespace {

std::atomic<int> sync_calls{0};
std::atomic<int> data_only_calls{0};
std::atomic<int> sync_error{0};
std::latch* hold = nullptr;
std::latch* entered = nullptr;

int counted_sync(int, bool data_only) {
  ++sync_calls;
  if (data_only) ++data_only_calls;
  if (entered != nullptr) {
    std::exchange(entered, nullptr)->count_down();
    std::exchange(hold, nullptr)->wait();
  }
  if (sync_error == 0) return 0;
  errno = sync_error;
  return -1;
}

class Job final : public CommitJob {
 public:
  explicit Job(int fd, std::latch& all) : all_(all) { fds[0] = fd; }
  void finish(int error) override {
    result = error;
    all_.count_down();
  }
  int result = -1;

 private:
  std::latch& all_;
};

class Commits : public ::testing::Test {
 protected:
  void SetUp() override {
    sync_calls = data_only_calls = sync_error = 0;
    for (const char* name : {"/a", "/b"}) {
      files.emplace_back(::open((home.path() + name).c_str(), O_RDWR | O_CREAT, 0600));
    }
  }
  TemporaryDirectory home;
  std::vector<UniqueFd> files;
  WriteVerifier verifier;
};

TEST_F(Commits, SucceedsWhenTheSyncDoes) {
  Committer committer(verifier, 1, {counted_sync});
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false), 0);
  EXPECT_EQ(sync_calls, 1);
}

TEST_F(Commits, FailsAndRenewsTheVerifierWhenTheSyncDoes) {
  Committer committer(verifier, 1, {counted_sync});
  const std::uint64_t before = verifier.value();
  sync_error = EIO;
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false), EIO);
  EXPECT_NE(verifier.value(), before);
}

TEST_F(Commits, OneSyncPerInodeOfABatch) {
  std::latch first_entered(1), go(1), all(21);
  hold = &go;
  entered = &first_entered;
  Committer committer(verifier, 1, {counted_sync});
  Job first(files[0].get(), all);
  committer.submit(first);
  first_entered.wait();  // the rest gathers while this one is being written
  UniqueFd same_inode(::dup(files[0].get()));
  std::vector<std::unique_ptr<Job>> jobs;
  for (int i = 0; i < 20; ++i) {
    const int fd = i % 2 == 0 ? same_inode.get() : files[1].get();
    jobs.push_back(std::make_unique<Job>(fd, all));
    committer.submit(*jobs.back());
  }
  go.count_down();
  all.wait();
  EXPECT_EQ(sync_calls, 3);
  for (const auto& job : jobs)
    EXPECT_EQ(job->result, 0);
}

TEST_F(Commits, AFailureReachesEverybodyOfThatInodeAndNobodyElse) {
  std::latch first_entered(1), go(1), all(3);
  hold = &go;
  entered = &first_entered;
  Committer committer(verifier, 1, {[](int fd, bool data_only) {
                        counted_sync(fd, data_only);
                        struct stat st;
                        ::fstat(fd, &st);
                        errno = ENOSPC;
                        return st.st_size > 0 ? -1 : 0;
                      }});
  EXPECT_EQ(::ftruncate(files[0].get(), 1), 0);
  Job blocker(files[1].get(), all);
  committer.submit(blocker);
  first_entered.wait();
  Job bad(files[0].get(), all), good(files[1].get(), all);
  committer.submit(bad);
  committer.submit(good);
  go.count_down();
  all.wait();
  EXPECT_EQ(bad.result, ENOSPC);
  EXPECT_EQ(good.result, 0);
}

TEST_F(Commits, DataOnlyIsEnoughWhenAllWantNoMore) {
  Committer committer(verifier, 1, {counted_sync});
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, true), 0);
  EXPECT_EQ(data_only_calls, 1);
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false), 0);
  EXPECT_EQ(data_only_calls, 1);
}

TEST_F(Commits, AllDescriptorsOfAJobAreSynced) {
  Committer committer(verifier, 1, {counted_sync});
  EXPECT_EQ(committer.commit_now({files[0].get(), files[1].get(), -1}, false), 0);
  EXPECT_EQ(sync_calls, 2);
}

TEST_F(Commits, ADescriptorTwiceInAJobIsOneSync) {
  Committer committer(verifier, 1, {counted_sync});
  EXPECT_EQ(committer.commit_now({files[0].get(), files[0].get(), -1}, false), 0);
  EXPECT_EQ(sync_calls, 1);
}

TEST_F(Commits, ADescriptorThatCannotBeSyncedFailsItsJob) {
  Committer committer(verifier, 1, Committer::system_calls());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  UniqueFd reading(ends[0]), writing(ends[1]);
  EXPECT_EQ(committer.commit_now({files[0].get(), writing.get(), -1}, false), EINVAL);
}

TEST_F(Commits, EndingFinishesWhatWasSubmitted) {
  std::latch all(1);
  Job job(files[0].get(), all);
  {
    Committer committer(verifier, 1, {counted_sync});
    committer.submit(job);
  }
  EXPECT_EQ(job.result, 0);
}

TEST_F(Commits, RealFilesAreSynced) {
  Committer committer(verifier, 2);
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false), 0);
  EXPECT_EQ(committer.stats().syncs, 1u);
}

}  // namespace
}  // namespace nfsrdma::test
