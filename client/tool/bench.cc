// SPDX-License-Identifier: Apache-2.0
// Every connection is an AsyncMount of its own with `depth` workers; a worker is a coroutine that
// does one operation after the other until the time is up. Data is not verified (fio on the mount
// and the tests do that); an operation that fails counts as an error.
#include "client/tool/bench.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "client/library/url_opener.h"
#include "client/path_tree.h"
#include "client/rpc_client.h"
#include "rpcrdma/base/lasting_memory.h"

namespace nfsrdma::tool {
namespace {

using SteadyTime = std::chrono::steady_clock;

constexpr std::uint64_t kFillBlock = 1 << 20;
constexpr std::uint32_t kFillDepth = 8;
constexpr std::uint64_t kMaxErrors = 1000;  // then the server is not worth measuring

double cpu_now() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Run {
  const BenchOptions& options;
  BenchResult& result;
  OpContext op;
  FileHandle file;       // data loads and getattr
  FileHandle directory;  // meta
  SteadyTime::time_point end;
  std::uint64_t next_block = 0;
  std::mt19937_64 generator{42};
  std::uint64_t next_name = 0;
  std::uint64_t verifier = 0;

  bool over() const { return SteadyTime::now() >= end || result.errors >= kMaxErrors; }
  std::uint64_t blocks() const { return options.file_bytes / options.block_bytes; }
  std::uint64_t next_offset() {
    const bool random_order = options.load == Load::kRandRead || options.load == Load::kRandWrite;
    const std::uint64_t block = random_order ? generator() % blocks() : next_block++ % blocks();
    return block * options.block_bytes;
  }
  void count(SteadyTime::time_point began, std::uint64_t bytes) {
    const auto took = std::chrono::nanoseconds(SteadyTime::now() - began).count();
    result.latency.add(static_cast<std::uint64_t>(took));
    ++result.operations;
    result.bytes += bytes;
  }
  void fail(const Error& error) {
    if (result.errors++ == 0) result.first_error = error.message();
  }
};

Task<void> read_worker(Run& run, AsyncMount& mount) {
  std::vector<std::byte> buffer(run.options.block_bytes);
  const LastingMemory lasting(buffer);
  while (!run.over()) {
    const auto began = SteadyTime::now();
    auto read = co_await mount.read(run.op, run.file, run.next_offset(), buffer);
    if (!read.ok()) {
      run.fail(read.error());
    } else if (read->count != buffer.size()) {
      run.fail({Errc::kProtocol, EIO, "short read"});
    } else {
      run.count(began, read->count);
    }
  }
}

Task<void> write_worker(Run& run, AsyncMount& mount) {
  std::vector<std::byte> buffer(run.options.block_bytes, std::byte{0x5a});
  const LastingMemory lasting(buffer);
  const Stability how = run.options.stable ? Stability::kFileSync : Stability::kUnstable;
  while (!run.over()) {
    const auto began = SteadyTime::now();
    auto written = co_await mount.write(run.op, run.file, run.next_offset(), buffer, how);
    if (written.ok()) {
      run.count(began, written->count);
    } else {
      run.fail(written.error());
    }
  }
}

Task<void> null_worker(Run& run, AsyncMount& mount) {
  while (!run.over()) {
    const auto began = SteadyTime::now();
    auto answered = co_await mount.null(run.op);
    answered.ok() ? run.count(began, 0) : run.fail(answered.error());
  }
}

Task<void> getattr_worker(Run& run, AsyncMount& mount) {
  while (!run.over()) {
    const auto began = SteadyTime::now();
    auto attributes = co_await mount.getattr(run.op, run.file);
    attributes.ok() ? run.count(began, 0) : run.fail(attributes.error());
  }
}

/// create, lookup, remove: three operations each time.
Task<void> meta_worker(Run& run, AsyncMount& mount) {
  SetAttributes set;
  set.mode = 0644;
  while (!run.over()) {
    const std::string name = fmt::format("nfs-rdma-bench-{}-{}", ::getpid(), run.next_name++);
    auto began = SteadyTime::now();
    auto made = co_await mount.create(run.op, run.directory, name, CreateMode::kGuarded, set);
    if (!made.ok()) {
      run.fail(made.error());
      continue;
    }
    run.count(began, 0);
    began = SteadyTime::now();
    auto found = co_await mount.lookup(run.op, run.directory, name);
    found.ok() ? run.count(began, 0) : run.fail(found.error());
    began = SteadyTime::now();
    auto removed = co_await mount.remove(run.op, run.directory, name, &made->handle);
    removed.ok() ? run.count(began, 0) : run.fail(removed.error());
  }
}

Task<void> worker(Run& run, AsyncMount& mount) {
  switch (run.options.load) {
    case Load::kRead:
    case Load::kRandRead:
      return read_worker(run, mount);
    case Load::kWrite:
    case Load::kRandWrite:
      return write_worker(run, mount);
    case Load::kNull:
      return null_worker(run, mount);
    case Load::kGetattr:
      return getattr_worker(run, mount);
    case Load::kMeta:
      break;
  }
  return meta_worker(run, mount);
}

struct Fill {
  AsyncMount& mount;
  const OpContext& op;
  const FileHandle& file;
  std::uint64_t size;
  std::uint64_t next = 0;
  std::optional<Error> error{};
};

Task<void> fill_worker(Fill& fill) {
  std::vector<std::byte> buffer(kFillBlock, std::byte{0xa5});
  while (fill.next < fill.size && !fill.error) {
    const std::uint64_t offset = fill.next;
    const std::uint64_t length = std::min(kFillBlock, fill.size - offset);
    fill.next += length;
    auto written = co_await fill.mount.write(fill.op, fill.file, offset, {buffer.data(), length},
                                             Stability::kUnstable);
    if (!written.ok()) fill.error = written.error();
  }
}

/// Makes the file at least as long as the load needs it.
Task<Result<void>> fill_file(AsyncMount& mount, const OpContext& op, const FileHandle& file,
                             std::uint64_t size) {
  Fill fill{mount, op, file, size};
  TaskGroup workers;
  for (std::uint32_t i = 0; i < kFillDepth; ++i)
    workers.spawn(fill_worker(fill));
  co_await workers.wait();
  if (fill.error) co_return *fill.error;
  NFSRDMA_CO_CHECK_OK(co_await mount.commit(op, file, 0, 0));
  co_return Result<void>();
}

bool moves_data(Load load) {
  return load <= Load::kRandWrite;
}
bool reads(Load load) {
  return load == Load::kRead || load == Load::kRandRead;
}

/// Finds or makes what the load works on: the URL's object, or a file in it when that is a
/// directory.
Task<Result<void>> prepare(Run& run, AsyncMount& mount, const std::string& rest,
                           std::string* detail) {
  const BenchOptions& options = run.options;
  PathTree tree(mount, rest);
  if (options.load == Load::kNull) co_return Result<void>();
  auto node = co_await tree.resolve(run.op, "", true);
  const bool missing = !node.ok() && node.error().sys == ENOENT;
  if (!node.ok() && !missing) {
    *detail = rest + ": " + std::strerror(errno_of(node.error()));
    co_return node.error();
  }
  const bool is_directory = node.ok() && node->attributes.type == FileType::kDirectory;
  if (node.ok() && options.load == Load::kGetattr) {
    run.file = node->handle;
    co_return Result<void>();
  }
  PathParent where;
  if (is_directory) {
    where = {node->handle, "nfs-rdma-bench.data"};
  } else {
    NFSRDMA_CO_TRY(where, co_await tree.parent(run.op, ""));
  }
  run.directory = where.directory;
  if (options.load == Load::kMeta) co_return Result<void>();
  SetAttributes set;
  set.mode = 0644;
  auto made =
      co_await mount.create(run.op, where.directory, where.name, CreateMode::kUnchecked, set);
  if (!made.ok()) {
    *detail = where.name + ": " + std::strerror(errno_of(made.error()));
    co_return made.error();
  }
  run.file = made->handle;
  NFSRDMA_CO_TRY(Attributes now, co_await mount.getattr(run.op, run.file));
  if (reads(options.load) && now.size < options.file_bytes) {
    Result<void> filled = co_await fill_file(mount, run.op, run.file, options.file_bytes);
    if (!filled.ok()) *detail = "filling the file: " + filled.error().message();
    co_return std::move(filled);
  }
  co_return Result<void>();
}

Task<void> measure(Run& run, const std::vector<std::unique_ptr<AsyncMount>>& mounts) {
  const double cpu = cpu_now();
  const auto began = SteadyTime::now();
  run.end = began + std::chrono::duration_cast<SteadyTime::duration>(
                        std::chrono::duration<double>(run.options.seconds));
  TaskGroup workers;
  for (const auto& mount : mounts) {
    for (std::uint32_t i = 0; i < run.options.depth; ++i)
      workers.spawn(worker(run, *mount));
  }
  co_await workers.wait();
  run.result.seconds = std::chrono::duration<double>(SteadyTime::now() - began).count();
  run.result.cpu_seconds = cpu_now() - cpu;
}

}  // namespace

Task<Result<void>> run_load(EventLoop& loop, Fabrics fabrics, MountSettings settings,
                            const BenchOptions& options, BenchResult* result, std::string* detail) {
  settings.connections = 1;
  settings.idle_timeout = std::chrono::seconds(0);
  const auto block =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(options.block_bytes, 16u << 20));
  if (moves_data(options.load) && block > (1u << 20)) {
    // One call per block as far as the server allows.
    if (settings.rsize == 0) settings.rsize = block;
    if (settings.wsize == 0) settings.wsize = block;
  }
  std::string rest;
  std::vector<std::unique_ptr<AsyncMount>> mounts;
  NFSRDMA_CO_TRY(std::unique_ptr<AsyncMount> first,
                 co_await open_longest_export(loop, fabrics, settings, &rest, detail));
  first->set_observer(client::telling_of_silence(settings.host));  // and no other: it is one server
  mounts.push_back(std::move(first));
  Run run{options, *result, {}, {}, {}, {}};
  run.op.identity = settings.identity;
  Result<void> ready = co_await prepare(run, *mounts[0], rest, detail);
  while (ready.ok() && mounts.size() < options.connections) {
    settings.version = mounts[0]->settings().version;
    settings.put_off = mounts[0]->settings().put_off;
    auto next = co_await AsyncMount::attach(loop, fabrics, settings, mounts[0]->root(), detail);
    if (!next.ok()) {
      ready = next.error();
      break;
    }
    mounts.push_back(std::move(*next));
  }
  if (ready.ok()) {
    co_await measure(run, mounts);
    for (const auto& mount : mounts) {
      for (ConnectionInfo& info : mount->connections()) {
        result->connections.push_back(std::move(info));
      }
    }
    if (moves_data(options.load) && !reads(options.load)) {
      const auto began = SteadyTime::now();
      auto committed = co_await mounts[0]->commit(run.op, run.file, 0, 0);
      if (!committed.ok()) run.fail(committed.error());
      result->commit_seconds = std::chrono::duration<double>(SteadyTime::now() - began).count();
    }
  }
  for (const auto& mount : mounts)
    co_await mount->unmount();
  // The mounts go with nothing of theirs on the stack.
  co_await mounts[0]->rpc().yield();
  co_return std::move(ready);
}

}  // namespace nfsrdma::tool
