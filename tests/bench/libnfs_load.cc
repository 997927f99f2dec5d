// SPDX-License-Identifier: Apache-2.0
// libnfs_load: the same asynchronous load of NFSv3 or 4.0 on any server, through libnfs over TCP
// (one connection, one thread), so that in a comparison only the servers differ.
//
//   libnfs_load URL PHASE [--depth D] [--seconds T] [--size MiB] [--files N] [--block BYTES]
//               [--server-cpu FILE]
//
// URL: nfs://127.0.0.1/export?version=3&nfsport=P&mountport=P, or version=4
// PHASE: fill, seqread, seqwrite (1 MiB), randread, randwrite (4 KiB), null (of NFSv3), getattr,
//        openclose, create, stat, unlink, readdir
// FILE: CPU time of the server's control group (cpuacct.usage or cpu.stat), read at both ends of
// the phase, so that mount and COMMIT are not counted. Prints one line of JSON: operations,
// seconds, bytes, latency, CPU seconds of this process and of the server.
#include <fcntl.h>
#include <nfsc/libnfs.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

// After libnfs.h, which defines what these two need.
#include <nfsc/libnfs-raw.h>

#include <nfsc/libnfs-raw-nfs.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Load {
  nfs_context* nfs = nullptr;
  /// That one, and for `openclose` further ones, one for each call under way: libnfs goes through
  /// the sequence ids of its one open-owner without waiting for replies, which have to be in order.
  std::vector<nfs_context*> contexts;
  nfsfh* file = nullptr;
  std::string phase;
  std::size_t block = 0;
  std::uint64_t file_size = std::uint64_t{1} << 30;
  std::uint64_t limit = 0;  // operations; 0: until `deadline`
  Clock::time_point deadline;
  std::uint64_t issued = 0;
  std::uint64_t done = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t random = 88172645463325252ull;
  std::vector<float> latency_us;
};

Load load;

struct Slot {
  nfs_context* nfs = nullptr;
  std::vector<char> data;
  Clock::time_point started;
};

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "libnfs_load: %s: %s: %s\n", load.phase.c_str(), what,
               load.nfs != nullptr ? nfs_get_error(load.nfs) : "");
  std::exit(2);
}

std::uint64_t next_random() {
  load.random ^= load.random << 13;
  load.random ^= load.random >> 7;
  load.random ^= load.random << 17;
  return load.random;
}

void submit(Slot& slot);

void finish(Slot& slot) {
  load.latency_us.push_back(
      std::chrono::duration<float, std::micro>(Clock::now() - slot.started).count());
  ++load.done;
  --load.in_flight;
  submit(slot);
}

void on_io(int status, nfs_context*, void* data, void* private_data) {
  auto& slot = *static_cast<Slot*>(private_data);
  if (status != static_cast<int>(load.block)) die("short or failed I/O");
  // libnfs hands READ data out in its own buffer; a user needs it in his.
  if (load.phase.ends_with("read")) std::memcpy(slot.data.data(), data, load.block);
  finish(slot);
}
void on_done(int status, nfs_context*, void*, void* private_data) {
  if (status < 0) die("operation");
  finish(*static_cast<Slot*>(private_data));
}
void on_created(int status, nfs_context* nfs, void* data, void* private_data) {
  if (status < 0) die("create");
  if (nfs_close_async(nfs, static_cast<nfsfh*>(data), on_done, private_data) < 0) die("close");
}
void on_opened(int status, nfs_context* nfs, void* data, void* private_data) {
  if (status < 0) die("open");
  if (nfs_close_async(nfs, static_cast<nfsfh*>(data), on_done, private_data) < 0) die("close");
}
void on_null(rpc_context*, int status, void*, void* private_data) {
  if (status != 0) die("null");
  finish(*static_cast<Slot*>(private_data));
}

std::uint64_t next_offset(std::uint64_t index) {
  if (load.phase.starts_with("rand")) {
    return next_random() % (load.file_size / load.block) * load.block;
  }
  return index * load.block % load.file_size;
}

void submit(Slot& slot) {
  if (load.limit != 0 ? load.issued >= load.limit : Clock::now() >= load.deadline) return;
  const std::uint64_t index = load.issued++;
  ++load.in_flight;
  slot.started = Clock::now();
  char name[64];
  std::snprintf(name, sizeof name, "/bench%06llu", static_cast<unsigned long long>(index));
  int rc = 0;
  if (load.phase == "fill" || load.phase.ends_with("write")) {
    rc = nfs_pwrite_async(load.nfs, load.file, next_offset(index), load.block, slot.data.data(),
                          on_io, &slot);
  } else if (load.phase.ends_with("read")) {
    rc = nfs_pread_async(load.nfs, load.file, next_offset(index), load.block, on_io, &slot);
  } else if (load.phase == "getattr") {
    rc = nfs_fstat64_async(load.nfs, load.file, on_done, &slot);
  } else if (load.phase == "openclose") {
    rc = nfs_open_async(slot.nfs, "/bench.dat", O_RDONLY, on_opened, &slot);
  } else if (load.phase == "null") {
    rc = rpc_nfs3_null_async(nfs_get_rpc_context(load.nfs), on_null, &slot);
  } else if (load.phase == "create") {
    rc = nfs_creat_async(load.nfs, name, 0644, on_created, &slot);
  } else if (load.phase == "stat") {
    rc = nfs_stat64_async(load.nfs, name, on_done, &slot);
  } else if (load.phase == "unlink") {
    rc = nfs_unlink_async(load.nfs, name, on_done, &slot);
  }
  if (rc < 0) die("submit");
}

void drive() {
  std::uint64_t seen = 0;
  int idle_rounds = 0;
  std::vector<pollfd> entries(load.contexts.size());
  while (load.in_flight > 0) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      nfs_context* nfs = load.contexts[i];
      entries[i] = {nfs_get_fd(nfs), static_cast<short>(nfs_which_events(nfs)), 0};
    }
    const int ready = ::poll(entries.data(), entries.size(), 1000);
    if (ready < 0 && errno != EINTR) die("poll");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (nfs_service(load.contexts[i], entries[i].revents) < 0) die("connection");
    }
    idle_rounds = load.done == seen && ready <= 0 ? idle_rounds + 1 : 0;
    if (idle_rounds > 20) die("no answer for 20 s");
    seen = load.done;
  }
}

void read_directory() {
  for (int round = 0; round < 3; ++round) {
    nfsdir* directory = nullptr;
    if (nfs_opendir(load.nfs, "/", &directory) != 0) die("opendir");
    while (nfs_readdir(load.nfs, directory) != nullptr)
      ++load.done;
    nfs_closedir(load.nfs, directory);
  }
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

// cgroup v1 has one number in nanoseconds, v2 "usage_usec N" among other lines.
double server_cpu_seconds(const char* path) {
  if (path == nullptr) return 0;
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) die(path);
  char text[512];
  text[std::fread(text, 1, sizeof text - 1, file)] = 0;
  std::fclose(file);
  if (const char* usage = std::strstr(text, "usage_usec ")) return std::atof(usage + 11) / 1e6;
  return std::atof(text) / 1e9;
}

void print_result(double seconds, double cpu, double server_cpu) {
  auto& lat = load.latency_us;
  std::sort(lat.begin(), lat.end());
  auto at = [&](double q) {
    return lat.empty() ? 0.0
                       : lat[static_cast<std::size_t>(static_cast<double>(lat.size() - 1) * q)];
  };
  const double ops = static_cast<double>(load.done);
  std::printf(
      "{\"phase\": \"%s\", \"operations\": %.0f, \"seconds\": %.4f, \"ops_per_second\": %.1f, "
      "\"bytes_per_second\": %.0f, \"latency_us\": {\"p50\": %.1f, \"p99\": %.1f}, "
      "\"cpu_seconds\": %.6f, \"server_cpu_seconds\": %.6f}\n",
      load.phase.c_str(), ops, seconds, ops / seconds,
      ops * static_cast<double>(load.block) / seconds, at(0.5), at(0.99), cpu, server_cpu);
}

/// A mount of its own, and to the server another client than all others.
nfs_context* mount(const char* text) {
  static int mounts = 0;
  nfs_context* nfs = nfs_init_context();
  load.contexts.push_back(nfs);
  if (load.nfs == nullptr) load.nfs = nfs;
  nfs_url* url = nfs_parse_url_dir(nfs, text);
  if (url == nullptr) die("url");
  const std::string name = "load-" + std::to_string(::getpid()) + "-" + std::to_string(++mounts);
  nfs4_set_client_name(nfs, name.c_str());
  nfs_set_dircache(nfs, 0);
  nfs_set_timeout(nfs, 20'000);  // ms
  if (nfs_mount(nfs, url->server, url->path) != 0) die("mount");
  nfs_destroy_url(url);
  return nfs;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: libnfs_load URL PHASE [--depth D] [--seconds T] [--size MiB] [--files N] "
                 "[--block BYTES] [--server-cpu FILE]\n");
    return 2;
  }
  load.phase = argv[2];
  unsigned depth = 8;
  double seconds = 3;
  std::uint64_t files = 10000;
  std::uint64_t block = 0;
  const char* server_cpu_file = nullptr;
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--depth")
      depth = static_cast<unsigned>(std::atoi(argv[i + 1]));
    else if (option == "--seconds")
      seconds = std::atof(argv[i + 1]);
    else if (option == "--size")
      load.file_size = std::strtoull(argv[i + 1], nullptr, 0) << 20;
    else if (option == "--files")
      files = std::strtoull(argv[i + 1], nullptr, 0);
    else if (option == "--block")
      block = std::strtoull(argv[i + 1], nullptr, 0);
    else if (option == "--server-cpu")
      server_cpu_file = argv[i + 1];
    else
      die(("unknown option " + option).c_str());
  }
  mount(argv[1]);
  if (load.phase == "fill" || load.phase.starts_with("seq")) load.block = std::size_t{1} << 20;
  if (load.phase.starts_with("rand")) load.block = 4096;
  if (block != 0) load.block = block;
  if (load.block != 0 || load.phase == "getattr") {
    // libnfs makes files of NFSv4 by GUARDED4 alone.
    if (nfs_open(load.nfs, "/bench.dat", O_RDWR, &load.file) != 0 &&
        nfs_open2(load.nfs, "/bench.dat", O_RDWR | O_CREAT, 0644, &load.file) != 0) {
      die("open");
    }
  }
  if (load.phase == "fill") load.limit = load.file_size / load.block;
  if (load.phase == "create" || load.phase == "stat" || load.phase == "unlink") load.limit = files;

  load.latency_us.reserve(4'000'000);
  std::vector<Slot> slots(depth);
  for (Slot& slot : slots) {
    slot.data.assign(load.block, 'Z');
    const bool first = &slot == &slots.front();
    slot.nfs = first || load.phase != "openclose" ? load.nfs : mount(argv[1]);
  }
  const double server_cpu = server_cpu_seconds(server_cpu_file);
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  load.deadline =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  if (load.phase == "readdir") {
    read_directory();
  } else {
    for (Slot& slot : slots)
      submit(slot);
    drive();
  }
  print_result(std::chrono::duration<double>(Clock::now() - start).count(), cpu_seconds() - cpu,
               server_cpu_seconds(server_cpu_file) - server_cpu);
  if (load.phase == "fill" && nfs_fsync(load.nfs, load.file) != 0) die("fsync");
  if (load.file != nullptr) nfs_close(load.nfs, load.file);
  for (nfs_context* nfs : load.contexts)
    nfs_destroy_context(nfs);
  return 0;
}
