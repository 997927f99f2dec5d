// SPDX-License-Identifier: Apache-2.0
// file_load: a load on one file through the kernel, for comparing FUSE mounts (scripts/bench).
//
//   file_load FILE seqread|seqwrite|randread|warm [--size MiB] [--seconds T] [--readers N]
//
// The cached pages of FILE are dropped (POSIX_FADV_DONTNEED) before each pass, and no pass touches
// a block twice, so that nothing is answered by the kernel's cache of the mount. `seqread` reads
// the file by 1 MiB, `randread` by 4 KiB with N readers, each over blocks of its own in random
// order. `seqwrite` overwrites it by 1 MiB, over and over; an fsync at the end is timed apart.
// `warm` reads FILE once and drops nothing: for the backing file.
// Prints one line of JSON; cached_before is the part of the file that was still cached after the
// drop, which should be 0.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLargeBlock = std::size_t{1} << 20;
constexpr std::size_t kSmallBlock = 4096;

struct Options {
  const char* file = nullptr;
  std::string phase;
  std::size_t size = std::size_t{1} << 30;
  double seconds = 3;
  unsigned readers = 32;
};

struct Totals {
  std::uint64_t operations = 0;
  double seconds = 0;
  double fsync_seconds = 0;
  double cached_before = 0;
};

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The part of the file's pages that the kernel holds.
double cached_part(int fd, std::size_t size) {
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return 0;  // a file system without mmap caches nothing we could see
  std::vector<unsigned char> pages((size + 4095) / 4096);
  if (::mincore(map, size, pages.data()) != 0) die("mincore");
  ::munmap(map, size);
  const auto held = std::count_if(pages.begin(), pages.end(), [](auto page) { return page & 1; });
  return static_cast<double>(held) / static_cast<double>(pages.size());
}

void drop_cache(int fd, const Options& options, Totals& totals) {
  if (::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0) die("posix_fadvise");
  totals.cached_before = std::max(totals.cached_before, cached_part(fd, options.size));
}

void read_block(int fd, char* buffer, std::size_t length, std::size_t offset) {
  for (std::size_t done = 0; done < length;) {
    ssize_t n = ::pread(fd, buffer + done, length - done, static_cast<off_t>(offset + done));
    if (n <= 0) die("pread");
    done += static_cast<std::size_t>(n);
  }
}

void read_sequentially(int fd, const Options& options, Totals& totals) {
  std::vector<char> buffer(kLargeBlock);
  const auto start = Clock::now();
  for (std::size_t offset = 0; offset < options.size; offset += kLargeBlock) {
    read_block(fd, buffer.data(), kLargeBlock, offset);
    ++totals.operations;
  }
  totals.seconds += since(start);
}

void write_sequentially(int fd, const Options& options, Totals& totals) {
  std::vector<char> buffer(kLargeBlock, 'w');
  const auto start = Clock::now();
  while (since(start) < options.seconds) {
    const std::size_t offset = totals.operations * kLargeBlock % options.size;
    for (std::size_t done = 0; done < kLargeBlock;) {
      ssize_t n =
          ::pwrite(fd, buffer.data() + done, kLargeBlock - done, static_cast<off_t>(offset + done));
      if (n <= 0) die("pwrite");
      done += static_cast<std::size_t>(n);
    }
    ++totals.operations;
  }
  totals.seconds = since(start);
  const auto sync_start = Clock::now();
  if (::fsync(fd) != 0) die("fsync");
  totals.fsync_seconds = since(sync_start);
}

// One reader's blocks in random order, up to the deadline. Returns how many were read.
std::uint64_t read_randomly(const Options& options, unsigned reader, Clock::time_point deadline) {
  int fd = ::open(options.file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) die(options.file);
  // Without this the kernel reads ahead and answers neighbours from its cache.
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
  std::vector<std::size_t> blocks(options.size / kSmallBlock / options.readers);
  std::iota(blocks.begin(), blocks.end(), blocks.size() * reader);
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937_64(reader));
  std::vector<char> buffer(kSmallBlock);
  std::uint64_t done = 0;
  for (std::size_t block : blocks) {
    if (Clock::now() >= deadline) break;
    read_block(fd, buffer.data(), kSmallBlock, block * kSmallBlock);
    ++done;
  }
  ::close(fd);
  return done;
}

void read_by_many(const Options& options, double seconds_left, Totals& totals) {
  const auto start = Clock::now();
  const auto deadline = start + std::chrono::duration_cast<Clock::duration>(
                                    std::chrono::duration<double>(seconds_left));
  std::atomic<std::uint64_t> done{0};
  std::vector<std::thread> readers;
  for (unsigned reader = 0; reader < options.readers; ++reader) {
    readers.emplace_back([&, reader] { done += read_randomly(options, reader, deadline); });
  }
  for (std::thread& reader : readers)
    reader.join();
  totals.operations += done;
  totals.seconds += since(start);
}

Totals run(const Options& options) {
  Totals totals;
  const bool writes = options.phase == "seqwrite";
  int fd = ::open(options.file, (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (fd < 0) die(options.file);
  if (writes) {
    drop_cache(fd, options, totals);
    write_sequentially(fd, options, totals);
  } else if (options.phase == "warm") {
    read_sequentially(fd, options, totals);
  } else {
    while (totals.seconds < options.seconds) {
      drop_cache(fd, options, totals);
      if (options.phase == "randread") {
        read_by_many(options, options.seconds - totals.seconds, totals);
      } else {
        read_sequentially(fd, options, totals);
      }
    }
  }
  ::close(fd);
  return totals;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (argc >= 3) {
    options.file = argv[1];
    options.phase = argv[2];
  }
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--size") options.size = std::strtoul(argv[i + 1], nullptr, 0) << 20;
    if (option == "--seconds") options.seconds = std::atof(argv[i + 1]);
    if (option == "--readers") {
      options.readers = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 0));
    }
  }
  const std::string& phase = options.phase;
  if ((phase != "seqread" && phase != "seqwrite" && phase != "randread" && phase != "warm") ||
      options.size == 0 || options.readers == 0) {
    std::fprintf(stderr,
                 "usage: file_load FILE seqread|seqwrite|randread|warm [--size MiB] "
                 "[--seconds T] [--readers N]\n");
    return 2;
  }
  const Totals totals = run(options);
  const double bytes = static_cast<double>(totals.operations) *
                       static_cast<double>(phase == "randread" ? kSmallBlock : kLargeBlock);
  std::printf(
      "{\"operations\": %llu, \"seconds\": %.4f, \"ops_per_second\": %.1f, "
      "\"bytes_per_second\": %.0f, \"fsync_seconds\": %.4f, \"cached_before\": %.4f}\n",
      static_cast<unsigned long long>(totals.operations), totals.seconds,
      static_cast<double>(totals.operations) / totals.seconds, bytes / totals.seconds,
      totals.fsync_seconds, totals.cached_before);
  return 0;
}
