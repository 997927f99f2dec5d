// SPDX-License-Identifier: Apache-2.0
// Every operation of the C++ library against a real server: libnfsrdma_operations URL, where URL is
// an empty directory that we may write to. Ends with 0 when all is as expected, else says what is
// not.
#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "nfsrdma/client.h"

namespace {

using nfsrdma::client::File;
using nfsrdma::client::FileTime;
using nfsrdma::client::LockRange;
using nfsrdma::client::LockType;
using nfsrdma::client::Mount;
using nfsrdma::client::SeekWhat;
using nfsrdma::client::ShareDeny;

int failures = 0;

void expect(bool condition, const char* what, int line) {
  if (condition) return;
  std::fprintf(stderr, "libnfsrdma_operations.cc:%d: %s\n", line, what);
  ++failures;
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)

template <typename T>
bool fails_with(const nfsrdma::client::Result<T>& result, int number) {
  return !result.ok() && result.error_number() == number;
}

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    seed = seed * 1664525 + 1013904223;
    bytes[i] = static_cast<std::byte>(seed >> 24);
  }
  return bytes;
}

void files(Mount& mount) {
  auto file = mount.open("data", O_RDWR | O_CREAT | O_EXCL, 0640);
  EXPECT(file.ok());
  if (!file) return;
  const std::vector<std::byte> data = pattern(5'000'001, 1);
  auto written = file->pwrite(data, 3);
  EXPECT(written.ok() && *written == data.size());
  EXPECT(file->fsync().ok());
  std::vector<std::byte> back(data.size() + 100);
  auto count = file->pread(back, 3);
  EXPECT(count.ok() && *count == data.size());
  EXPECT(std::equal(data.begin(), data.end(), back.begin()));
  count = file->pread(back, 100'000'000);
  EXPECT(count.ok() && *count == 0);
  auto status = file->stat();
  EXPECT(status.ok() && status->st_size == 5'000'004 && (status->st_mode & 07777) == 0640);
  EXPECT(file->truncate(10).ok());
  EXPECT(mount.stat("data")->st_size == 10);
  EXPECT(file->close().ok());
  EXPECT(fails_with(file->pread(back, 0), EBADF));
  EXPECT(fails_with(mount.open("data", O_RDWR | O_CREAT | O_EXCL), EEXIST));
  EXPECT(mount.truncate("data", 4096).ok());
  EXPECT(mount.stat("data")->st_size == 4096);
  EXPECT(mount.open("data", O_WRONLY | O_TRUNC).ok());
  EXPECT(mount.stat("/data")->st_size == 0);
  EXPECT(fails_with(mount.open("none", O_RDONLY), ENOENT));
  EXPECT(fails_with(mount.open("data/x", O_RDONLY), ENOTDIR));
  EXPECT(fails_with(mount.open("data", O_RDONLY | O_DIRECTORY), ENOTDIR));
  EXPECT(fails_with(mount.open("", O_WRONLY), EISDIR));
}

void stable_files(Mount& mount) {
  auto file = mount.open("stable", O_WRONLY | O_CREAT | O_SYNC);
  EXPECT(file.ok());
  const std::vector<std::byte> data = pattern(100'000, 2);
  EXPECT(file->pwrite(data, 0).ok());
  EXPECT(fails_with(file->pread(std::span<std::byte>(), 0), EBADF));
  EXPECT(file->close().ok());
  mount.set_unstable_limit(1 << 20);
  auto large = mount.open("large", O_RDWR | O_CREAT);
  const std::vector<std::byte> block = pattern(700'000, 3);
  for (unsigned i = 0; i < 8; ++i)
    EXPECT(large->pwrite(block, i * block.size()).ok());
  EXPECT(large->close().ok());
  EXPECT(mount.stat("large")->st_size == static_cast<off_t>(8 * block.size()));
}

std::vector<std::byte> content_of(Mount& mount, const char* path) {
  auto file = mount.open(path, O_RDONLY);
  if (!file) return {};
  std::vector<std::byte> bytes(1 << 20);
  auto count = file->pread(bytes, 0);
  bytes.resize(count ? *count : 0);
  return bytes;
}

void whole_files(Mount& mount) {
  for (const std::size_t size : {0u, 1u, 4095u, 4096u, 65535u, 65536u, 65537u, 300'001u}) {
    const std::vector<std::byte> data = pattern(size, 7);
    EXPECT(mount.write_file("whole", data, 0640).ok());
    EXPECT(content_of(mount, "whole") == data);
    EXPECT((mount.stat("whole")->st_mode & 07777) == 0640);
    // What is there is replaced, and stays what it is.
    const std::vector<std::byte> other = pattern(size / 2, 8);
    EXPECT(mount.write_file("/whole", other, 0600).ok());
    EXPECT(content_of(mount, "whole") == other);
    EXPECT((mount.stat("whole")->st_mode & 07777) == 0640);
    EXPECT(mount.unlink("whole").ok());
  }
  const std::vector<std::byte> data = pattern(100, 9);
  EXPECT(mount.write_file("behind", {}).ok());
  EXPECT(mount.symlink("behind", "in-front").ok());
  EXPECT(mount.write_file("in-front", data).ok());
  EXPECT(content_of(mount, "behind") == data);
  EXPECT(S_ISLNK(mount.lstat("in-front")->st_mode));
  // A link that leads nowhere yet.
  EXPECT(mount.mkdir("far").ok());
  EXPECT(mount.symlink("far/new", "ahead").ok());
  EXPECT(fails_with(mount.open("ahead", O_WRONLY), ENOENT));
  EXPECT(fails_with(mount.open("ahead", O_WRONLY | O_CREAT | O_EXCL), EEXIST));
  EXPECT(mount.open("ahead", O_WRONLY | O_CREAT, 0600).ok());
  EXPECT(mount.stat("far/new").ok() && S_ISLNK(mount.lstat("ahead")->st_mode));
  EXPECT(mount.unlink("far/new").ok());
  EXPECT(mount.write_file("ahead", data).ok());
  EXPECT(content_of(mount, "far/new") == data);
  EXPECT(mount.unlink("far/new").ok() && mount.unlink("ahead").ok() && mount.rmdir("far").ok());
  EXPECT(fails_with(mount.open("none/x", O_WRONLY | O_CREAT), ENOENT));
  EXPECT(mount.mkdir("a-dir").ok());
  EXPECT(fails_with(mount.write_file("a-dir", data), EISDIR));
  EXPECT(fails_with(mount.write_file("", data), EISDIR));
  EXPECT(fails_with(mount.write_file("none/x", data), ENOENT));
  EXPECT(fails_with(mount.write_file("in-front/x", data), ENOTDIR));
  EXPECT(mount.rmdir("a-dir").ok());
}

/// The version that it was mounted with.
std::string version;

void locks(Mount& mount) {
  auto one = mount.open("locked", O_RDWR | O_CREAT);
  auto two = mount.open("locked", O_RDWR);
  auto reader = mount.open("locked", O_RDONLY);
  EXPECT(one.ok() && two.ok() && reader.ok());
  const LockRange all{LockType::kExclusive};
  auto first = one->lock(all);
  EXPECT(first.ok());
  EXPECT(fails_with(two->lock(all), EAGAIN));
  EXPECT(
      fails_with(two->lock({LockType::kShared, 100, 1}, std::chrono::milliseconds(300)), EAGAIN));
  EXPECT(fails_with(reader->lock(all), EBADF));
  auto found = two->test_lock({LockType::kShared, 7, 1});
  EXPECT(found.ok() && found->has_value());
  EXPECT((**found).type == LockType::kExclusive && (**found).offset == 0 && (**found).length == 0);
  EXPECT(fails_with(one->lock({LockType::kShared, UINT64_MAX, 2}), EINVAL));
  // Whoever waits has it when it is free.
  std::thread waiter([&] {
    EXPECT(two->lock({LockType::kExclusive, 10, 10}, std::chrono::milliseconds::max()).ok());
  });
  EXPECT(one->pwrite(pattern(64, 3), 0).ok());
  EXPECT(one->unlock(0, 32).ok());
  waiter.join();
  std::vector<std::byte> seen(64);
  EXPECT(*two->pread(seen, 0) == 64 && seen == pattern(64, 3));
  EXPECT(one->lock({LockType::kShared, 40, 8}).ok());
  EXPECT(reader->lock({LockType::kShared, 0, 8}).ok());
  EXPECT(fails_with(one->lock({LockType::kExclusive, 0, 4}), EAGAIN));
  EXPECT(reader->close().ok());
  EXPECT(one->lock({LockType::kExclusive, 0, 4}).ok());
  EXPECT(one->close().ok() && two->close().ok());
  EXPECT(mount.unlink("locked").ok());
}

/// Opened, and removed by somebody else: readable as long as it is open where the server knows it.
void held_open(Mount& mount) {
  EXPECT(mount.write_file("held", pattern(5000, 4)).ok());
  auto file = mount.open("held", O_RDONLY);
  auto again = mount.open("held", O_RDWR);
  EXPECT(file.ok() && again.ok());
  EXPECT(again->close().ok());
  EXPECT(mount.unlink("held").ok());
  std::vector<std::byte> seen(5000);
  auto count = file->pread(seen, 0);
  const bool promised = version == "4.1" || version == "4.2";
  EXPECT(count.ok() ? seen == pattern(5000, 4) : !promised && count.error_number() == ESTALE);
  EXPECT(file->close().ok());
}

/// Among two clients and the Files of one. By 4.0 the server hears of opens that deny something,
/// and of no others.
void denials(Mount& mount, const char* url) {
  if (version == "3") {
    EXPECT(fails_with(mount.open("denied", O_RDWR | O_CREAT, 0644, ShareDeny::kWrite), EOPNOTSUPP));
    EXPECT(fails_with(mount.stat("denied"), ENOENT));
    return;
  }
  const bool all_heard = version != "4.0";
  auto other = Mount::open(url);
  EXPECT(other.ok());
  if (!other) return;
  auto one = mount.open("denied", O_RDWR | O_CREAT | O_EXCL, 0644, ShareDeny::kWrite);
  EXPECT(one.ok());
  if (!one) return;
  EXPECT(one->pwrite(pattern(3000, 6), 0).ok());
  EXPECT(one->lock({LockType::kExclusive}).ok());
  auto reader = other->open("denied", O_RDONLY);
  EXPECT(reader.ok());
  if (all_heard) EXPECT(fails_with(other->open("denied", O_RDWR), EACCES));
  EXPECT(fails_with(other->open("denied", O_RDWR, 0, ShareDeny::kRead), EACCES));
  EXPECT(fails_with(other->open("denied", O_RDONLY, 0, ShareDeny::kRead), EACCES));
  EXPECT(fails_with(mount.open("denied", O_WRONLY), EACCES));
  EXPECT(fails_with(mount.open("denied", O_WRONLY | O_CREAT | O_EXCL), EEXIST));
  EXPECT(fails_with(mount.open("", O_RDONLY | O_DIRECTORY, 0, ShareDeny::kRead), EINVAL));
  EXPECT(one->unlock().ok() && one->fsync().ok());
  std::vector<std::byte> seen(3000);
  EXPECT(*reader->pread(seen, 0) == 3000 && seen == pattern(3000, 6));
  // Its end is not to be waited for.
  EXPECT(one->close().ok());
  EXPECT(fails_with(other->open("denied", O_RDWR, 0, ShareDeny::kBoth), EACCES));
  EXPECT(reader->close().ok());
  {
    auto alone = other->open("denied", O_RDWR | O_CREAT, 0644, ShareDeny::kBoth);
    EXPECT(alone.ok());
    EXPECT(alone->truncate(1000).ok() && alone->pwrite(pattern(10, 7), 1000).ok());
    if (all_heard) EXPECT(fails_with(mount.open("denied", O_RDONLY), EACCES));
    EXPECT(fails_with(mount.open("denied", O_RDONLY, 0, ShareDeny::kWrite), EACCES));
    EXPECT(fails_with(other->open("denied", O_RDONLY), EACCES));
    if (version == "4.2") {
      EXPECT(*alone->seek(0, SeekWhat::kHole) >= 1010);
      EXPECT(alone->allocate(0, 1010).ok() && alone->deallocate(500, 1).ok());
      auto copy = other->open("denied-2", O_RDWR | O_CREAT, 0600, ShareDeny::kBoth);
      EXPECT(copy.ok() && *alone->copy_range(0, *copy, 0, 1010) == 1010);
    }
  }
  if (version == "4.2") EXPECT(mount.unlink("denied-2").ok());
  auto again = mount.open("denied", O_RDWR, 0, ShareDeny::kRead);
  EXPECT(again.ok() && again->stat()->st_size == 1010);
  EXPECT(again->close().ok() && mount.unlink("denied").ok());
}

void space(Mount& mount) {
  auto from = mount.open("holes", O_RDWR | O_CREAT);
  auto to = mount.open("copy", O_RDWR | O_CREAT);
  EXPECT(from.ok() && to.ok());
  const std::vector<std::byte> data = pattern(8192, 5);
  EXPECT(from->pwrite(data, 1 << 20).ok());
  auto begins = from->seek(0, SeekWhat::kData);
  if (version != "4.2") {
    EXPECT(fails_with(begins, ENOSYS));
  } else {
    EXPECT(begins.ok() && *begins == 1 << 20);
    EXPECT(*from->seek(1 << 20, SeekWhat::kHole) == (1 << 20) + 8192);
    EXPECT(fails_with(from->seek(2 << 20, SeekWhat::kData), ENXIO));
    auto copied = from->copy_range(1 << 20, *to, 0, UINT64_MAX / 2);
    EXPECT(copied.ok() && *copied == 8192);
    std::vector<std::byte> seen(8192);
    EXPECT(*to->pread(seen, 0) == 8192 && seen == data);
    EXPECT(*from->copy_range(4 << 20, *to, 0, 10) == 0);
    EXPECT(to->allocate(0, 1 << 16).ok());
    EXPECT(to->stat()->st_size == 1 << 16);
    EXPECT(to->deallocate(0, 4096).ok());
    EXPECT(*to->seek(0, SeekWhat::kData) == 4096);
    auto reader = mount.open("copy", O_RDONLY);
    EXPECT(fails_with(reader->allocate(0, 1), EBADF));
    EXPECT(fails_with(to->copy_range(0, *reader, 0, 1), EBADF));
  }
  EXPECT(from->close().ok() && to->close().ok());
  EXPECT(mount.unlink("holes").ok() && mount.unlink("copy").ok());
}

void names(Mount& mount) {
  EXPECT(mount.mkdir("dir", 0755).ok());
  EXPECT(fails_with(mount.mkdir("dir"), EEXIST));
  EXPECT(mount.rename("data", "dir/moved").ok());
  EXPECT(fails_with(mount.stat("data"), ENOENT));
  EXPECT(mount.link("dir/moved", "second").ok());
  EXPECT(mount.stat("second")->st_nlink == 2);
  EXPECT(fails_with(mount.rmdir("dir"), ENOTEMPTY));
  EXPECT(mount.symlink("dir/moved", "soft").ok());
  EXPECT(*mount.readlink("soft") == "dir/moved");
  EXPECT(S_ISLNK(mount.lstat("soft")->st_mode));
  EXPECT(mount.stat("soft")->st_ino == mount.stat("second")->st_ino);
  EXPECT(mount.stat("dir/../soft").ok());
  EXPECT(fails_with(mount.readlink("second"), EINVAL));
  EXPECT(mount.symlink("loop", "loop").ok());
  EXPECT(fails_with(mount.stat("loop"), ELOOP));
  EXPECT(fails_with(mount.open("soft", O_RDONLY | O_NOFOLLOW), ELOOP));
  EXPECT(mount.unlink("second").ok());
  EXPECT(fails_with(mount.unlink("second"), ENOENT));
  EXPECT(fails_with(mount.unlink(std::string(300, 'x')), ENAMETOOLONG));
}

void attributes(Mount& mount) {
  EXPECT(mount.chmod("soft", 0600).ok());
  EXPECT((mount.stat("dir/moved")->st_mode & 07777) == 0600);
  const FileTime access{FileTime::Kind::kValue, {1'000'000'000, 1000}};
  const FileTime change{FileTime::Kind::kValue, {1'100'000'000, 2000}};
  EXPECT(mount.utimens("dir/moved", access, change).ok());
  auto status = mount.stat("dir/moved");
  EXPECT(status->st_atim.tv_sec == 1'000'000'000 && status->st_mtim.tv_nsec == 2000);
  EXPECT(mount.utimens("dir/moved", {}, {FileTime::Kind::kNow, {}}).ok());
  EXPECT(mount.stat("dir/moved")->st_atim.tv_sec == 1'000'000'000);
  EXPECT(mount.stat("dir/moved")->st_mtim.tv_sec > 1'700'000'000);
  const auto owner = mount.stat("dir/moved");
  EXPECT(mount.chown("dir/moved", owner->st_uid, static_cast<gid_t>(-1)).ok());
  EXPECT(mount.lchown("soft", owner->st_uid, owner->st_gid).ok());
  auto sizes = mount.statfs();
  EXPECT(sizes.ok() && sizes->total_bytes > 0 && sizes->read_size >= 4096 && sizes->name_max > 0);
}

void directories(Mount& mount) {
  EXPECT(mount.mkdir("many").ok());
  constexpr int kCount = 1000;
  for (int i = 0; i < kCount; ++i) {
    EXPECT(mount.open("many/name-" + std::to_string(i), O_WRONLY | O_CREAT, 0644).ok());
  }
  auto plain = mount.readdir("many");
  auto plus = mount.readdirplus("many");
  EXPECT(plain.ok() && plain->size() == kCount);
  EXPECT(plus.ok() && plus->size() == kCount);
  std::vector<std::string> seen;
  for (const auto& entry : *plus) {
    seen.push_back(entry.name);
    EXPECT(entry.attributes && S_ISREG(entry.attributes->st_mode));
  }
  std::sort(seen.begin(), seen.end());
  EXPECT(std::unique(seen.begin(), seen.end()) == seen.end());
  EXPECT(fails_with(mount.readdir("dir/moved"), ENOTDIR));
  for (const auto& entry : *plain)
    EXPECT(mount.unlink("many/" + entry.name).ok());
  EXPECT(mount.rmdir("many").ok());
}

/// Several threads on one mount, each with its file.
void threads(Mount& mount) {
  std::vector<std::thread> workers;
  std::vector<int> wrong(4, 0);
  for (unsigned id = 0; id < 4; ++id) {
    workers.emplace_back([&mount, &wrong, id] {
      const std::string name = "thread-" + std::to_string(id);
      auto file = mount.open(name, O_RDWR | O_CREAT);
      if (!file) {
        wrong[id] = 1;
        return;
      }
      const std::vector<std::byte> data = pattern(300'000, id);
      std::vector<std::byte> back(data.size());
      for (int round = 0; round < 10; ++round) {
        auto written = file->pwrite(data, 0);
        auto count = file->pread(back, 0);
        if (!written || !count || back != data || !mount.stat(name)) ++wrong[id];
      }
      if (!file->close()) ++wrong[id];
    });
  }
  for (std::thread& worker : workers)
    worker.join();
  EXPECT(std::count(wrong.begin(), wrong.end(), 0) == 4);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: libnfsrdma_operations URL VERSION\n");
    return 2;
  }
  version = argv[2];
  std::string detail;
  auto mount = Mount::open(argv[1], &detail);
  if (!mount) {
    std::fprintf(stderr, "%s\n", detail.c_str());
    return 1;
  }
  files(*mount);
  stable_files(*mount);
  whole_files(*mount);
  locks(*mount);
  held_open(*mount);
  denials(*mount, argv[1]);
  space(*mount);
  names(*mount);
  attributes(*mount);
  directories(*mount);
  threads(*mount);
  EXPECT(mount->connections().size() == 1);
  EXPECT(fails_with(Mount::open("nfs://127.0.0.1/x?vers=9", &detail), EINVAL));
  return failures == 0 ? 0 : 1;
}
