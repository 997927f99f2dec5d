// SPDX-License-Identifier: Apache-2.0
#include "server/vfs/fd_cache.h"

#include <fcntl.h>

#include <algorithm>
#include <functional>
#include <future>

#include "tests/support/nfs3_harness.h"

namespace nfsrdma::test {
namespace {

class Cache : public ::testing::Test {
 protected:
  FileHandle handle(std::uint32_t number) {
    HandleParts parts;
    parts.body_size = 4;
    std::memcpy(parts.body.data(), &number, sizeof number);
    return codec.seal(parts);
  }
  FdCache::Opened opened(std::uint32_t number) {
    FdCache::Opened out;
    out.handle = handle(number);
    out.path_fd.reset(::open(home.path().c_str(), O_PATH));
    ::fstat(out.path_fd.get(), &out.attributes);
    return out;
  }
  static std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  HandleCodec codec{HandleCodec::Key{1}};
  TemporaryDirectory home;
  WriteVerifier verifier;
  FileSyncs syncs{verifier};
};

TEST_F(Cache, FindsWhatWasInserted) {
  FdCache cache(syncs, 1000);
  EXPECT_FALSE(cache.find(handle(1)));
  const FilePin inserted = cache.insert(opened(1));
  const FilePin found = cache.find(handle(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(&*found, &*inserted);
  EXPECT_FALSE(cache.find(handle(2)));
}

TEST_F(Cache, TheFirstOfTwoInsertsStays) {
  FdCache cache(syncs, 1000);
  const FilePin first = cache.insert(opened(1));
  const FilePin second = cache.insert(opened(1));
  EXPECT_EQ(&*first, &*second);
  EXPECT_EQ(cache.size(), 1u);
}

TEST_F(Cache, IsBounded) {
  FdCache cache(syncs, 256);
  for (std::uint32_t i = 0; i < 5000; ++i)
    cache.insert(opened(i));
  EXPECT_LE(cache.size(), cache.capacity());
  EXPECT_EQ(cache.capacity(), 256u);
}

TEST_F(Cache, PinnedEntriesAreNotEvicted) {
  FdCache cache(syncs, 256);
  const FilePin pinned = cache.insert(opened(0));
  for (std::uint32_t i = 1; i < 5000; ++i)
    cache.insert(opened(i));
  struct stat st;
  EXPECT_EQ(::fstat(pinned->path_fd(), &st), 0);
  EXPECT_TRUE(cache.find(handle(0)));
}

TEST_F(Cache, EntriesWithUnstableDataAreNotEvicted) {
  FdCache cache(syncs, 256);
  cache.insert(opened(0))->unstable = true;
  for (std::uint32_t i = 1; i < 5000; ++i)
    cache.insert(opened(i));
  EXPECT_TRUE(cache.find(handle(0)));
}

TEST_F(Cache, ForgottenEntriesAreNotFoundAndStayOpenWhilePinned) {
  FdCache cache(syncs, 1000);
  FilePin pin = cache.insert(opened(1));
  const int fd = pin->path_fd();
  cache.forget(handle(1));
  EXPECT_FALSE(cache.find(handle(1)));
  struct stat st;
  EXPECT_EQ(::fstat(fd, &st), 0);
  pin.reset();
  EXPECT_EQ(::fstat(fd, &st), -1);
}

class CachedFile : public Cache {
 protected:
  void SetUp() override {
    const std::string path = home.path() + "/file";
    UniqueFd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
    ASSERT_TRUE(made);
  }
  FilePin insert(FdCache& cache, int flags, std::uint8_t rights = 0) {
    FdCache::Opened out;
    out.handle = handle(1);
    out.path_fd.reset(::open((home.path() + "/file").c_str(), flags | O_CLOEXEC));
    out.path_rights = rights;
    ::fstat(out.path_fd.get(), &out.attributes);
    attributes = out.attributes;
    return cache.insert(std::move(out));
  }
  void open_for_writing(FdCache& cache, FileEntry& file) {
    int fd = -1;
    EXPECT_EQ(cache.data_fd(file, CallerIdentity{}, kRightWrite, attributes, &fd), 0);
  }
  /// Of descriptors that read alone a lease is to be had then, and only then.
  bool is_written() {
    const UniqueFd fd(::open((home.path() + "/file").c_str(), O_RDONLY | O_CLOEXEC));
    return ::fcntl(fd.get(), F_SETLEASE, F_RDLCK) != 0;
  }
  struct stat attributes {};
};

TEST_F(CachedFile, EndOfWritingClosesTheDescriptorThatWrites) {
  FdCache cache(syncs, 1000);
  FilePin file = insert(cache, O_PATH);
  EXPECT_FALSE(is_written());
  open_for_writing(cache, *file);
  EXPECT_TRUE(is_written());
  cache.end_writing(std::move(file));
  EXPECT_FALSE(is_written());
  EXPECT_EQ(cache.size(), 1u);
  file = cache.find(handle(1));
  ASSERT_TRUE(file);
  open_for_writing(cache, *file);
  EXPECT_TRUE(is_written());
}

TEST_F(CachedFile, EndOfWritingForgetsWhatWasOpenedToWriteAtFirst) {
  FdCache cache(syncs, 1000);
  cache.end_writing(insert(cache, O_RDWR, kRightRead | kRightWrite));
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_FALSE(is_written());
}

TEST_F(CachedFile, EndOfWritingLeavesAloneWhatOthersUseOrIsNotSynced) {
  FdCache cache(syncs, 1000);
  FilePin file = insert(cache, O_PATH);
  open_for_writing(cache, *file);
  cache.end_writing(FilePin::another(*file));
  EXPECT_TRUE(is_written());
  file->unstable = true;
  cache.end_writing(std::move(file));
  EXPECT_TRUE(is_written());
}

TEST_F(Cache, IdleEntriesAreClosed) {
  FdCache cache(syncs, 1000);
  const std::size_t before = open_descriptors();
  for (std::uint32_t i = 0; i < 100; ++i)
    cache.insert(opened(i));
  EXPECT_GE(open_descriptors(), before + 100);
  for (std::uint64_t i = 0; i < 2 * FdCache::kIdleSeconds; ++i)
    cache.sweep();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(Cache, EntriesInUseAreNotIdle) {
  FdCache cache(syncs, 1000);
  cache.insert(opened(1));
  for (std::uint64_t i = 0; i < 4 * FdCache::kIdleSeconds; ++i) {
    cache.sweep();
    EXPECT_TRUE(cache.find(handle(1)));
  }
}

TEST_F(Cache, IdleEntriesWithUnstableDataAreSyncedBeforeTheyAreClosed) {
  FdCache cache(syncs, 1000);
  {
    FdCache::Opened file = opened(1);
    file.path_fd.reset(::open((home.path() + "/f").c_str(), O_RDWR | O_CREAT, 0600));
    ::fstat(file.path_fd.get(), &file.attributes);
    file.path_rights = kRightRead | kRightWrite;
    const FilePin pin = cache.insert(std::move(file));
    ASSERT_EQ(::pwrite(pin->path_fd(), "x", 1, 0), 1);
    pin->unstable = true;
  }
  for (std::uint64_t i = 0; i <= FdCache::kIdleSeconds; ++i)
    cache.sweep();
  {
    const FilePin pin = cache.find(handle(1));
    ASSERT_TRUE(pin) << "closed without a sync";
    EXPECT_FALSE(pin->unstable);
  }
  for (std::uint64_t i = 0; i < 2 * FdCache::kIdleSeconds; ++i)
    cache.sweep();
  EXPECT_EQ(cache.size(), 0u);
}

TEST_F(Cache, AFileSystemThatHangsKeepsNoOtherFromBeingClosed) {
  FdCache cache(syncs, 1000);
  int fd = -1;
  {
    FdCache::Opened file = opened(1);
    file.path_fd.reset(::open((home.path() + "/f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    fd = file.path_fd.get();
    ::fstat(fd, &file.attributes);
    file.path_rights = kRightRead | kRightWrite;
    cache.insert(std::move(file))->unstable = true;
  }
  std::promise<void> began, goes_on;
  std::thread hangs([&] {
    syncs.run({fd}, [&] {
      began.set_value();
      goes_on.get_future().wait();
      return 0;
    });
  });
  began.get_future().wait();
  for (std::uint64_t i = 0; i <= FdCache::kIdleSeconds; ++i)
    cache.begin_sweep();
  FdCache::Opened elsewhere = opened(2), there = opened(3);
  elsewhere.attributes.st_dev ^= 1;
  there.attributes.st_dev = stat_of(home.path() + "/f").st_dev;
  cache.insert(std::move(elsewhere));
  cache.insert(std::move(there));
  for (std::uint64_t i = 0; i <= FdCache::kIdleSeconds; ++i)
    cache.begin_sweep();
  EXPECT_FALSE(cache.find(handle(2)));
  EXPECT_TRUE(cache.find(handle(3))) << "closing it could hang, too";
  goes_on.set_value();
  hangs.join();
  for (std::uint64_t i = 0; i < 3 * FdCache::kIdleSeconds; ++i)
    cache.sweep();
  EXPECT_EQ(cache.size(), 0u);
}

TEST_F(Cache, AnErrorOfASweepIsOnRecordForWhoWritesMeanwhile) {
  FdCache cache(syncs, 1000);
  const std::uint64_t before = verifier.value();
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reading(ends[0]);
  FilePin pin;
  {
    FdCache::Opened cannot_be_synced = opened(1);
    cannot_be_synced.path_fd.reset(ends[1]);
    cannot_be_synced.path_rights = kRightRead | kRightWrite;
    cache.insert(std::move(cannot_be_synced))->unstable = true;
  }
  for (std::uint64_t i = 0; i <= FdCache::kIdleSeconds; ++i)
    cache.sweep();
  EXPECT_EQ(syncs.failures(), 1u);
  EXPECT_EQ(syncs.failed_since(0, {ends[1]}), EINVAL);
  EXPECT_NE(verifier.value(), before);
}

/// What the kernel says of a caller who is not the file's owner.
class RememberedRights : public CachedFile {
 protected:
  void SetUp() override {
    NFSRDMA_NEEDS_ROOT();
    CachedFile::SetUp();
    file = insert(cache, O_PATH);
    set_mode(0644);
    for (CallerIdentity* one : {&somebody, &another})
      one->uid = one->gid = one == &somebody ? 1234 : 1235;
    somebody.seal();
    another.seal();
  }
  void set_mode(mode_t mode) const { EXPECT_EQ(::chmod((home.path() + "/file").c_str(), mode), 0); }
  /// As if the last change had been an hour ago.
  struct stat settled() const {
    struct stat out {};
    EXPECT_EQ(::fstat(file->path_fd(), &out), 0);
    out.st_ctim.tv_sec -= 3600;
    return out;
  }
  /// On a thread of its own: it keeps the caller's identity until it needs another.
  static void as(const CallerIdentity& who, const std::function<void()>& what) {
    std::thread([&] {
      AsCaller acting(who);
      what();
    }).join();
  }
  std::uint8_t rights(const CallerIdentity& who, const struct stat& at, std::uint8_t wanted) {
    std::uint8_t out = 0;
    as(who, [&] { out = cache.rights(*file, who, at, wanted); });
    return out;
  }
  int open_for_reading(const CallerIdentity& who, const struct stat& at) {
    int error = -1;
    as(who, [&] {
      int fd = -1;
      error = cache.data_fd(*file, who, kRightRead, at, &fd);
    });
    return error;
  }
  static constexpr std::uint8_t kBoth = kRightRead | kRightWrite;
  FdCache cache{syncs, 1000};
  FilePin file;
  CallerIdentity somebody, another;
};

TEST_F(RememberedRights, AreAskedForOnceWhileNothingChanges) {
  const struct stat before = settled();
  EXPECT_EQ(rights(somebody, before, kBoth), kRightRead);
  set_mode(0777);
  EXPECT_EQ(rights(somebody, before, kBoth), kRightRead) << "remembered";
  EXPECT_EQ(rights(somebody, before, kRightWrite), 0) << "a part of it";
  EXPECT_EQ(rights(somebody, before, kRightExecute), kRightExecute) << "not asked before";
  EXPECT_EQ(rights(another, before, kBoth), kBoth) << "of him nothing was known";
  EXPECT_EQ(rights(somebody, settled(), kBoth), kBoth) << "another mode";
}

TEST_F(RememberedRights, EndWithAnyChangeOfTheFileAndWithTime) {
  const struct stat before = settled();
  EXPECT_EQ(rights(somebody, before, kRightWrite), 0);
  set_mode(0666);
  struct stat later = before;  // as when an ACL was set, which need not show in the mode
  later.st_ctim.tv_nsec ^= 1;
  EXPECT_EQ(rights(somebody, later, kRightWrite), kRightWrite);
  set_mode(0644);
  EXPECT_EQ(rights(somebody, later, kRightWrite), kRightWrite);
  for (std::uint64_t i = 0; i <= FdCache::kGrantSeconds; ++i)
    cache.sweep();
  EXPECT_EQ(rights(somebody, later, kRightWrite), 0);
}

/// A second change within one tick of the kernel's clock leaves the same ctime.
TEST_F(RememberedRights, AreNotTakenFromAFileThatHasJustChanged) {
  struct stat now = settled();
  ::clock_gettime(CLOCK_REALTIME, &now.st_ctim);
  EXPECT_EQ(rights(somebody, now, kRightWrite), 0);
  set_mode(0666);
  EXPECT_EQ(rights(somebody, now, kRightWrite), kRightWrite);
}

/// Nor after a change of our own, such as a WRITE: the ctime is just as new.
TEST_F(RememberedRights, AreNotCarriedOverAChangeOfOurOwn) {
  const struct stat before = settled();
  EXPECT_EQ(rights(somebody, before, kRightWrite), 0);
  struct stat after = before;
  after.st_ctim.tv_nsec ^= 1;
  cache.note_own_change(*file, before, after);
  set_mode(0666);
  EXPECT_EQ(rights(somebody, after, kRightWrite), kRightWrite);
}

TEST_F(RememberedRights, DoNotContainWhatAnOwnerMayWhateverTheModeSays) {
  ASSERT_EQ(::chown((home.path() + "/file").c_str(), somebody.uid, somebody.gid), 0);
  set_mode(0);
  const struct stat before = settled();
  EXPECT_EQ(open_for_reading(somebody, before), 0);
  EXPECT_EQ(rights(somebody, before, kRightRead), 0);
  EXPECT_EQ(open_for_reading(somebody, before), 0) << "nor the reverse";
}

TEST_F(Cache, ManyThreadsAgree) {
  FdCache cache(syncs, 256);
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 2000; ++i) {
        const std::uint32_t number = (i * 7 + static_cast<std::uint32_t>(t)) % 400;
        FilePin pin = cache.find(handle(number));
        if (!pin) pin = cache.insert(opened(number));
        if (!(pin->handle() == handle(number))) ++wrong;
        if (i % 50 == 0) cache.forget(handle(number));
        if (i % 97 == 0) cache.sweep();
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace nfsrdma::test
