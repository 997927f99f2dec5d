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
/// What files of a bench consist of: what they are filled with, and what loads write.
constexpr std::byte kFilling{0xa5};
constexpr std::byte kWritten{0x5a};
constexpr std::size_t kLeastHead = 512;     // fewer may be like that by chance
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
  std::uint64_t blocks() const { return result.file_bytes / options.block_bytes; }
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
  std::vector<std::byte> buffer(run.options.block_bytes, kWritten);
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
  std::vector<std::byte> buffer(kFillBlock, kFilling);
  while (fill.next < fill.size && !fill.error) {
    const std::uint64_t offset = fill.next;
    const std::uint64_t length = std::min(kFillBlock, fill.size - offset);
    fill.next += length;
    auto written = co_await fill.mount.write(fill.op, fill.file, offset, {buffer.data(), length},
                                             Stability::kUnstable);
    if (!written.ok()) fill.error = written.error();
  }
}

/// Writes the bytes from `begin` on, so that the file has `size` of them.
Task<Result<void>> fill_file(AsyncMount& mount, const OpContext& op, const FileHandle& file,
                             std::uint64_t begin, std::uint64_t size) {
  Fill fill{mount, op, file, size, begin};
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

/// `name: what`, for people, with an error for the program.
Error refused(const std::string& name, const std::string& what, int number, std::string* detail) {
  *detail = name + ": " + what;
  return {Errc::kInvalid, number, "bench"};
}

/// Of an empty file. Its head comes first: by that the next run knows it, whatever becomes of this.
Task<Result<void>> fill_new(Run& run, AsyncMount& mount) {
  const std::uint64_t size = run.options.file_bytes;
  const std::uint64_t head = std::min<std::uint64_t>(size, kMostHead);
  NFSRDMA_CO_CHECK_OK(co_await fill_file(mount, run.op, run.file, 0, head));
  if (!reads(run.options.load)) co_return Result<void>();
  co_return co_await fill_file(mount, run.op, run.file, head, size);
}

Task<Result<bool>> may_write(Run& run, AsyncMount& mount, std::uint64_t size) {
  if (run.options.overwrite) co_return true;
  std::vector<std::byte> head(std::min<std::uint64_t>(size, kMostHead));
  NFSRDMA_CO_TRY(const ReadResult read, co_await mount.read(run.op, run.file, 0, head));
  head.resize(read.count);
  co_return is_bench_data(head);
}

/// run.file, which has `size` bytes, becomes what the load needs, or the load is content with it.
Task<Result<void>> fit(Run& run, AsyncMount& mount, const std::string& name, std::uint64_t size,
                       std::string* detail) {
  const BenchOptions& options = run.options;
  if (!moves_data(options.load)) co_return Result<void>();
  if (size == 0) co_return co_await fill_new(run, mount);
  if (reads(options.load) && size >= options.file_bytes) co_return Result<void>();
  NFSRDMA_CO_TRY(const bool ours, co_await may_write(run, mount, size));
  if (reads(options.load) && ours) {
    co_return co_await fill_file(mount, run.op, run.file, size, options.file_bytes);
  }
  if (reads(options.load)) {
    run.result.file_bytes = size;
    if (run.blocks() > 0) co_return Result<void>();
    const std::string what = fmt::format("has {} bytes, less than one block (--block)", size);
    co_return refused(name, what, EINVAL, detail);
  }
  if (ours) co_return Result<void>();
  co_return refused(name, "has data that bench did not write; --overwrite writes into it", EEXIST,
                    detail);
}

/// Where the load works; without a file, where that is to be made.
struct Ground {
  PathParent where;
  std::optional<PathNode> file;
};

/// The URL's object, or a file in it when that is a directory. Sets run.directory.
Task<Result<Ground>> find_ground(Run& run, AsyncMount& mount, const std::string& rest) {
  const Load load = run.options.load;
  PathTree tree(mount, rest);
  Result<PathNode> node = co_await tree.resolve(run.op, "", true);
  if (!node.ok() && node.error().sys != ENOENT) co_return node.error();
  Ground ground;
  if (node.ok() && load == Load::kGetattr) {
    ground.file = *node;
    co_return std::move(ground);
  }
  if (node.ok() && node->attributes.type == FileType::kDirectory) {
    ground.where = {node->handle, "nfs-rdma-bench.data"};
    node = co_await tree.child(run.op, ground.where.directory, ground.where.name);
    if (!node.ok() && node.error().sys != ENOENT) co_return node.error();
  } else {
    NFSRDMA_CO_TRY(ground.where, co_await tree.parent(run.op, ""));
  }
  run.directory = ground.where.directory;
  if (node.ok()) ground.file = *node;
  co_return std::move(ground);
}

/// Makes ground.file. Somebody else may do so at the same time: then it is his.
Task<Result<void>> make_file(Run& run, AsyncMount& mount, Ground& ground) {
  SetAttributes set;
  set.mode = 0644;
  const PathParent& where = ground.where;
  auto made = co_await mount.create(run.op, where.directory, where.name, CreateMode::kGuarded, set);
  if (made.ok()) {
    ground.file.emplace();
    ground.file->handle = made->handle;
    co_return Result<void>();
  }
  if (made.error().sys != EEXIST) co_return made.error();
  NFSRDMA_CO_TRY(const LookupResult found,
                 co_await mount.lookup(run.op, where.directory, where.name));
  NFSRDMA_CO_TRY(const Attributes attributes, co_await mount.getattr(run.op, found.handle));
  ground.file = PathNode{found.handle, attributes};
  co_return Result<void>();
}

/// Finds or makes what the load works on.
Task<Result<void>> prepare(Run& run, AsyncMount& mount, const std::string& rest,
                           std::string* detail) {
  const Load load = run.options.load;
  if (load == Load::kNull) co_return Result<void>();
  Result<Ground> ground = co_await find_ground(run, mount, rest);
  if (!ground.ok()) {
    *detail = rest + ": " + std::strerror(errno_of(ground.error()));
    co_return ground.error();
  }
  if (load == Load::kMeta) co_return Result<void>();
  Result<void> done;
  if (!ground->file) done = co_await make_file(run, mount, *ground);
  const std::string name = ground->where.name.empty() ? rest : ground->where.name;
  if (done.ok()) {
    const Attributes& attributes = ground->file->attributes;
    run.file = ground->file->handle;
    if (moves_data(load) && attributes.type != FileType::kRegular) {
      co_return refused(name, "is no file", EINVAL, detail);
    }
    done = co_await fit(run, mount, name, attributes.size, detail);
  }
  if (!done.ok() && detail->empty()) *detail = name + ": " + done.error().message();
  co_return std::move(done);
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

bool is_bench_data(ByteSpan head) {
  return head.size() >= kLeastHead && std::all_of(head.begin(), head.end(), [](std::byte one) {
           return one == kFilling || one == kWritten;
         });
}

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
  result->file_bytes = options.file_bytes;
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
