// SPDX-License-Identifier: Apache-2.0
#include "server/vfs/committer.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "tests/support/nfs3_harness.h"

namespace nfsrdma::test {
namespace {

std::atomic<int> sync_calls{0};
std::atomic<int> data_only_calls{0};
std::atomic<int> sync_error{0};
std::latch* hold = nullptr;
std::latch* entered = nullptr;

void wait_if_held() {
  if (entered == nullptr) return;
  std::exchange(entered, nullptr)->count_down();
  std::exchange(hold, nullptr)->wait();
}

int counted_sync(int, bool data_only) {
  ++sync_calls;
  if (data_only) ++data_only_calls;
  wait_if_held();
  if (sync_error == 0) return 0;
  errno = sync_error;
  return -1;
}

std::atomic<int> whole_calls{0};
int counted_sync_all(int fd) {
  ++whole_calls;
  wait_if_held();
  return ::fcntl(fd, F_GETFD) < 0 ? -1 : 0;
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
    sync_calls = data_only_calls = sync_error = whole_calls = 0;
    for (const char* name : {"/a", "/b"}) {
      files.emplace_back(::open((home.path() + name).c_str(), O_RDWR | O_CREAT, 0600));
    }
  }
  TemporaryDirectory home;
  std::vector<UniqueFd> files;
  WriteVerifier verifier;
  FileSyncs syncs{verifier};
};

TEST_F(Commits, SucceedsWhenTheSyncDoes) {
  Committer committer(syncs, 1, {counted_sync});
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false), 0);
  EXPECT_EQ(sync_calls, 1);
}

TEST_F(Commits, FailsAndRenewsTheVerifierWhenTheSyncDoes) {
  Committer committer(syncs, 1, {counted_sync});
  const std::uint64_t before = verifier.value();
  sync_error = EIO;
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false), EIO);
  EXPECT_NE(verifier.value(), before);
}

TEST_F(Commits, OneSyncPerInodeOfABatch) {
  std::latch first_entered(1), go(1), all(21);
  hold = &go;
  entered = &first_entered;
  Committer committer(syncs, 1, {counted_sync});
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
  Committer committer(syncs, 1, {[](int fd, bool data_only) {
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

/// As while a disk is gone and a call of another one takes its time.
TEST_F(Commits, ManyFailuresOfOneFileAreNotThoseOfOthers) {
  const std::uint64_t since = syncs.failures();
  const auto fails = [] {
    errno = EIO;
    return -1;
  };
  for (int i = 0; i < 3000; ++i)
    EXPECT_EQ(syncs.run({files[0].get()}, fails), EIO);
  EXPECT_EQ(syncs.failed_since(since, {files[0].get()}), EIO);
  EXPECT_EQ(syncs.failed_since(since, {files[1].get()}), 0);
  EXPECT_EQ(syncs.failed_since(since, {files[1].get(), true}), 0);
  EXPECT_EQ(syncs.failed_since(syncs.failures(), {files[0].get()}), 0);
  EXPECT_EQ(syncs.failed_since(syncs.failures() - 1, {files[0].get()}), EIO);
}

/// So many are not remembered: who cannot be told of for certain is told of it.
TEST_F(Commits, WhenVeryManyFilesFailAnyMayBeAmongThem) {
  EXPECT_EQ(syncs.run({files[0].get()}, [] { return errno = EIO, -1; }), EIO);
  const std::uint64_t since = syncs.failures();
  for (int i = 0; i < 1025; ++i) {
    const UniqueFd one(::open((home.path() + "/" + std::to_string(i)).c_str(),
                              O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(syncs.run({one.get()}, [] { return errno = EIO, -1; }), EIO);
    if (i == 1023) {
      EXPECT_EQ(syncs.failed_since(since, {files[1].get()}), 0);
    }
  }
  EXPECT_EQ(syncs.failed_since(since, {files[1].get()}), EIO);
  EXPECT_EQ(syncs.failed_since(syncs.failures(), {files[1].get()}), 0);
}

TEST_F(Commits, DataOnlyIsEnoughWhenAllWantNoMore) {
  Committer committer(syncs, 1, {counted_sync});
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, true), 0);
  EXPECT_EQ(data_only_calls, 1);
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false), 0);
  EXPECT_EQ(data_only_calls, 1);
}

TEST_F(Commits, AllDescriptorsOfAJobAreSynced) {
  Committer committer(syncs, 1, {counted_sync});
  EXPECT_EQ(committer.commit_now({files[0].get(), files[1].get(), -1}, false), 0);
  EXPECT_EQ(sync_calls, 2);
}

TEST_F(Commits, ADescriptorTwiceInAJobIsOneSync) {
  Committer committer(syncs, 1, {counted_sync});
  EXPECT_EQ(committer.commit_now({files[0].get(), files[0].get(), -1}, false), 0);
  EXPECT_EQ(sync_calls, 1);
}

TEST_F(Commits, ADescriptorThatCannotBeSyncedFailsItsJob) {
  Committer committer(syncs, 1, Committer::system_calls());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  UniqueFd reading(ends[0]), writing(ends[1]);
  EXPECT_EQ(committer.commit_now({files[0].get(), writing.get(), -1}, false), EINVAL);
}

TEST_F(Commits, AWholeFileSystemIsSyncedOnceForAll) {
  constexpr int kWhole = CommitJob::kWholeFileSystem;
  std::latch first_entered(1), go(1), all(4);
  hold = &go;
  entered = &first_entered;
  Committer committer(syncs, 1, {counted_sync, counted_sync_all});
  Job first(files[0].get() | kWhole, all);
  committer.submit(first);
  first_entered.wait();
  Job whole(files[0].get() | kWhole, all), same(files[1].get() | kWhole, all),
      file(files[0].get() | kWhole, all);
  for (Job* job : {&whole, &same, &file})
    committer.submit(*job);
  // Whoever wants a file alone does not wait for all that is written there.
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false), 0);
  EXPECT_EQ(first.result, -1);
  go.count_down();
  all.wait();
  EXPECT_EQ(whole_calls, 2);
  EXPECT_EQ(sync_calls, 1);
  EXPECT_EQ(committer.commit_now({files[0].get() | kWhole, files[0].get(), -1}, true), 0);
  EXPECT_EQ(whole_calls, 3);
  EXPECT_EQ(sync_calls, 2);
  EXPECT_EQ(committer.commit_now({Request::kNotToBeSynced, -1, -1}, false), EBADF);
}

TEST_F(Commits, FileSystemsOfOneJobAreSyncedEach) {
  Committer committer(syncs, 1, {counted_sync, counted_sync_all});
  const UniqueFd elsewhere(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  constexpr int kWhole = CommitJob::kWholeFileSystem;
  EXPECT_EQ(committer.commit_now({files[0].get() | kWhole, elsewhere.get() | kWhole, -1}, false),
            0);
  EXPECT_EQ(whole_calls, 2);
}

TEST_F(Commits, RealFileSystemsAreSynced) {
  Committer committer(syncs, 1);
  const int fd = files[0].get() | CommitJob::kWholeFileSystem;
  EXPECT_EQ(committer.commit_now({fd, -1, -1}, false), 0);
}

/// The kernel tells of lost pages once: the next sync says that all is well.
TEST_F(Commits, WhatWasChangedBeforeASyncFailedIsNotDurableBehindIt) {
  Committer committer(syncs, 1, {counted_sync, counted_sync_all});
  const std::uint64_t since = committer.failures();
  UniqueFd same_inode(::dup(files[0].get()));
  sync_error = EIO;
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false), EIO);
  sync_error = 0;
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false, since), EIO);
  EXPECT_EQ(committer.commit_now({files[1].get(), same_inode.get(), -1}, false, since), EIO);
  EXPECT_EQ(committer.commit_now({files[1].get(), -1, -1}, false, since), 0) << "another file";
  const int whole = files[0].get() | CommitJob::kWholeFileSystem;
  EXPECT_EQ(committer.commit_now({whole, -1, -1}, false, since), 0) << "they are told apart";
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false, committer.failures()), 0);
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false), 0);
}

TEST_F(Commits, TheSameOfWholeFileSystems) {
  Committer committer(syncs, 1, {counted_sync, [](int) {
                                   if (sync_error == 0) return 0;
                                   errno = sync_error;
                                   return -1;
                                 }});
  const std::uint64_t since = committer.failures();
  const int whole = files[0].get() | CommitJob::kWholeFileSystem;
  const int by_another = files[1].get() | CommitJob::kWholeFileSystem;
  sync_error = ENOSPC;
  EXPECT_EQ(committer.commit_now({whole, -1, -1}, false), ENOSPC);
  sync_error = 0;
  EXPECT_EQ(committer.commit_now({by_another, -1, -1}, false, since), ENOSPC);
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false, since), 0);
}

TEST_F(Commits, WhoIsKnownToBeSpareOfManyFailuresOfAnotherDoesNotFail) {
  Committer committer(syncs, 1, {counted_sync});
  const std::uint64_t since = committer.failures();
  sync_error = EIO;
  for (int i = 0; i < 2000; ++i)
    EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false), EIO);
  sync_error = 0;
  EXPECT_EQ(committer.commit_now({files[1].get(), -1, -1}, false, since), 0);
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false, since), EIO);
  EXPECT_EQ(committer.commit_now({files[1].get(), -1, -1}, false, committer.failures() - 1), 0);
}

TEST_F(Commits, AJobThatFailedOnceIsGoodForAnother) {
  Committer committer(syncs, 1, {counted_sync});
  std::latch twice(2);
  Job job(files[0].get(), twice);
  sync_error = EIO;
  committer.submit(job);
  // Finished, when the one behind it is.
  EXPECT_EQ(committer.commit_now({files[1].get(), -1, -1}, false), EIO);
  sync_error = 0;
  committer.submit(job);
  twice.wait();
  EXPECT_EQ(job.result, 0);
}

/// The next one could succeed before the failure is known that the kernel told the first one of.
TEST_F(Commits, OnlyOneSyncsADescriptorAtATime) {
  std::atomic<int> inside{0}, together{0};
  const auto sync = [&] {
    if (inside.fetch_add(1) != 0) ++together;
    std::this_thread::yield();
    inside.fetch_sub(1);
    return 0;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 1000; ++n)
        EXPECT_EQ(syncs.run({files[0].get()}, sync), 0);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(together, 0);
}

TEST_F(Commits, WhatAnotherThreadSyncsKeepsNobodyElseWaiting) {
  std::latch first_entered(1), go(1), others(1), all(2);
  hold = &go;
  entered = &first_entered;
  Committer committer(syncs, 2, {counted_sync});
  Job first(files[0].get(), all);
  committer.submit(first);
  first_entered.wait();
  // Held together by the time of the lock that submit() takes: both are one batch.
  Job same(files[0].get(), all), other(files[1].get(), others);
  committer.submit(same);
  committer.submit(other);
  others.wait();
  EXPECT_EQ(other.result, 0);
  EXPECT_EQ(same.result, -1);
  go.count_down();
  all.wait();
  EXPECT_EQ(same.result, 0);
}

TEST_F(Commits, EndingFinishesWhatWasSubmitted) {
  std::latch all(1);
  Job job(files[0].get(), all);
  {
    Committer committer(syncs, 1, {counted_sync});
    committer.submit(job);
  }
  EXPECT_EQ(job.result, 0);
}

TEST_F(Commits, RealFilesAreSynced) {
  Committer committer(syncs, 2);
  EXPECT_EQ(committer.commit_now({files[0].get(), -1, -1}, false), 0);
  EXPECT_EQ(committer.stats().syncs, 1u);
}

}  // namespace
}  // namespace nfsrdma::test
