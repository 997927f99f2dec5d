// SPDX-License-Identifier: Apache-2.0
#include "client/doctor/end_to_end.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <random>

#include "client/async_mount.h"
#include "client/default_fabrics.h"
#include "client/library/loop_driver.h"
#include "client/path_tree.h"
#include "client/rpc_client.h"
#include "client/transport_order.h"
#include "rpcrdma/base/host_name.h"
#include "xdr/nfs3_constants.h"
#include "xdr/nfs4_compound.h"

namespace nfsrdma::doctor {

namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t kFileBytes = 1 << 20;  // far beyond what fits inline
constexpr double kServerTick = 0.010;        // seconds: times of files are no finer at times

double ms_since(Steady::time_point start) {
  return std::chrono::duration<double, std::milli>(Steady::now() - start).count();
}

double wall_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

MountSettings only_by(MountSettings settings, TransportKind kind,
                      std::chrono::milliseconds patience) {
  settings.proto = kind == TransportKind::kTcp ? ProtoChoice::kTcp : ProtoChoice::kRdma;
  settings.fabric = kind == TransportKind::kVerbs   ? FabricChoice::kVerbs
                    : kind == TransportKind::kIwarp ? FabricChoice::kIwarp
                                                    : FabricChoice::kAuto;
  settings.connections = 1;
  settings.soft = true;
  settings.timeo = patience;
  settings.retrans = 0;
  settings.connect_timeout = patience;
  settings.mount_connect_timeout = patience;
  settings.first_answers = patience;
  return settings;
}

// --- NULL ---

Task<Result<void>> null_once(RpcClient& rpc, const OpContext& op, std::uint32_t version) {
  RpcCallLease call = rpc.prepare(xdr::kNfsProgram, version, 0, op);
  co_return co_await call->run();
}

Task<Result<void>> null_task(RpcClient& rpc, const OpContext& op, NullAnswer* answer) {
  NFSRDMA_CO_CHECK_OK(co_await rpc.connect(&answer->error));
  Result<void> done = Error{};
  // A server may have been told to serve one of them only.
  for (std::uint32_t version : {xdr::kNfsV3, xdr::kNfsV4}) {
    const auto start = Steady::now();
    done = co_await null_once(rpc, op, version);
    answer->milliseconds = ms_since(start);
    answer->nfs_version = version;
    if (done.ok()) break;
  }
  if (!rpc.connections().empty()) answer->connection = rpc.connections().front();
  co_await rpc.yield();
  co_return done;
}

// --- data ---

using Failed = DataAnswer::Failed;

struct Exchange {
  const OpContext& op;
  DataAnswer* answer;
  std::vector<std::byte> data, back;
  FileHandle directory, file;
  std::string name;

  Error fail(Failed step, const char* what, const Error& error) const {
    answer->failed = step;
    answer->error_number = errno_of(error);
    if (answer->error.empty()) answer->error = fmt::format("{}: {}", what, error.message());
    return error;
  }
};

std::string file_name() {
  return fmt::format(".nfs-rdma-doctor.{}.{}.{:08x}", host_name(), ::getpid(),
                     std::random_device{}());
}

std::vector<std::byte> random_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::mt19937_64 generator{std::random_device{}()};
  for (std::byte& one : bytes)
    one = static_cast<std::byte>(generator());
  return bytes;
}

Task<Result<void>> write_it(AsyncMount& mount, Exchange& x) {
  const double before = wall_seconds();
  const auto start = Steady::now();
  auto written = co_await mount.write(x.op, x.file, 0, x.data, Stability::kFileSync);
  x.answer->write_ms = ms_since(start);
  const double after = wall_seconds();
  if (!written.ok()) co_return x.fail(Failed::kWrite, "WRITE", written.error());
  auto now = co_await mount.getattr(x.op, x.file);
  if (!now.ok()) co_return x.fail(Failed::kWrite, "GETATTR", now.error());
  const double theirs =
      static_cast<double>(now->mtime.tv_sec) + static_cast<double>(now->mtime.tv_nsec) / 1e9;
  x.answer->skew = theirs - (before + after) / 2;
  x.answer->skew_uncertainty = (after - before) / 2 + kServerTick;
  co_return Result<void>();
}

Task<Result<void>> read_it(AsyncMount& mount, Exchange& x) {
  x.back.assign(x.data.size(), std::byte{0});
  const auto start = Steady::now();
  auto got = co_await mount.read(x.op, x.file, 0, x.back);
  x.answer->read_ms = ms_since(start);
  if (!got.ok()) co_return x.fail(Failed::kRead, "READ", got.error());
  x.back.resize(got->count);
  x.answer->bytes = x.data.size();
  x.answer->checksum = checksum_of(x.back);
  if (x.back != x.data) {
    co_return x.fail(Failed::kDiffers, "READ", Error{Errc::kProtocol, EIO, "other data"});
  }
  co_return Result<void>();
}

Task<Result<void>> write_and_read(AsyncMount& mount, Exchange& x) {
  const TransferStats before = mount.totals();
  NFSRDMA_CO_CHECK_OK(co_await write_it(mount, x));
  NFSRDMA_CO_CHECK_OK(co_await read_it(mount, x));
  if (!mount.connections().empty()) x.answer->connection = mount.connections().front();
  const TransferStats after = mount.totals();
  TransferStats& mine = x.answer->connection.stats;
  mine.rdma_read_bytes = after.rdma_read_bytes - before.rdma_read_bytes;
  mine.rdma_write_bytes = after.rdma_write_bytes - before.rdma_write_bytes;
  mine.inline_bytes = after.inline_bytes - before.inline_bytes;
  co_return Result<void>();
}

Task<Result<void>> use_file(AsyncMount& mount, const std::string& rest, Exchange& x) {
  PathTree tree(mount, rest);
  auto directory = co_await tree.resolve(x.op, "", true);
  if (!directory.ok()) co_return x.fail(Failed::kMount, "looking for the path", directory.error());
  x.directory = directory->handle;
  SetAttributes set;
  set.mode = 0600;
  const OpenFor both{.access = access_bits::kRead | access_bits::kModify};
  auto made =
      co_await mount.create_open(x.op, x.directory, x.name, CreateMode::kExclusive, set, both);
  if (!made.ok()) co_return x.fail(Failed::kCreate, "making a file", made.error());
  x.file = made->handle;
  Result<void> done = co_await write_and_read(mount, x);
  mount.close(x.file);
  auto removed = co_await mount.remove(x.op, x.directory, x.name, &x.file);
  x.answer->left_behind = !removed.ok();
  if (!done.ok()) co_return done;
  if (!removed.ok()) co_return x.fail(Failed::kRemove, "REMOVE", removed.error());
  x.answer->done = true;
  co_return Result<void>();
}

Task<Result<std::unique_ptr<AsyncMount>>> exchange_task(EventLoop& loop, MountSettings settings,
                                                        Exchange& x) {
  std::string rest;
  const Fabrics fabrics = default_fabrics(settings.require_crc);
  auto mount = co_await open_longest_export(loop, fabrics, settings, &rest, &x.answer->error);
  if (!mount.ok()) co_return x.fail(Failed::kMount, "mounting", mount.error());
  x.answer->error.clear();
  x.answer->nfs_version = (*mount)->version();
  const Result<void> done = co_await use_file(**mount, rest, x);
  static_cast<void>(done.ok());  // in the answer
  co_await (*mount)->unmount();
  co_return std::move(*mount);
}

/// While it is there, who ends the process is told which file may be left behind.
class ToldWhenKilled {
 public:
  explicit ToldWhenKilled(const std::string& file) {
    text_ = "\nnfs-rdma: doctor: ended; this file may be left behind: " + file + "\n";
    struct sigaction tell {};
    tell.sa_handler = [](int number) {
      [[maybe_unused]] const ssize_t told = ::write(STDERR_FILENO, text_.data(), text_.size());
      ::raise(number);
    };
    tell.sa_flags = static_cast<int>(SA_RESETHAND);
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &tell, nullptr);
    }
  }
  ~ToldWhenKilled() {
    for (std::size_t i = 0; i < kSignals.size(); ++i)
      ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  ToldWhenKilled(const ToldWhenKilled&) = delete;
  ToldWhenKilled& operator=(const ToldWhenKilled&) = delete;

 private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
  static inline std::string text_;  // not changed while it may be read
  std::array<struct sigaction, 3> before_{};
};

}  // namespace

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (std::byte one : bytes) {
    sum ^= static_cast<std::uint64_t>(one);
    sum *= 0x100000001b3;
  }
  return sum;
}

/// What the outcome of a call says of the TCP connection below it. kTimedOut: there may have been
/// one, over which nothing came.
Reached reached_by(const Result<void>& done, const std::string& error) {
  if (done.ok()) return {Reached::How::kOpen};
  const int number = errno_of(done.error());
  if (done.error().code == Errc::kTimedOut || number == ETIMEDOUT) {
    return {Reached::How::kTimedOut};
  }
  if (number == EHOSTUNREACH || number == ENETUNREACH || number == EACCES || number == EPERM) {
    return {Reached::How::kUnreachable, error};
  }
  // A listener of ours or of siw may refuse as well, behind the connection.
  const bool by_tcp = error.find("TCP connect") != std::string::npos;
  return {by_tcp ? Reached::How::kRefused : Reached::How::kOpen};
}

NullAnswer call_null(LoopDriver& driver, const MountSettings& wanted, TransportKind kind,
                     std::chrono::milliseconds patience) {
  NullAnswer answer;
  const MountSettings settings = only_by(wanted, kind, patience);
  const Fabrics fabrics = default_fabrics(settings.require_crc);
  if (const TransportOrder order = transport_order(fabrics, settings); order.candidates.empty()) {
    answer.tried = false;
    answer.error = order.left_out;
    return answer;
  }
  OpContext op;
  op.identity = settings.identity;
  std::unique_ptr<RpcClient> rpc = make_rpc_client(driver.loop(), fabrics, settings);
  const Result<void> done = driver.run(null_task(*rpc, op, &answer));
  rpc.reset();
  answer.answered = done.ok();
  if (!done.ok() && answer.error.empty()) answer.error = "NULL: " + done.error().message();
  answer.reached = reached_by(done, answer.error);
  return answer;
}

DataAnswer exchange_data(LoopDriver& driver, const MountSettings& wanted, TransportKind kind,
                         std::chrono::milliseconds patience) {
  DataAnswer answer;
  const MountSettings settings = only_by(wanted, kind, patience);
  OpContext op;
  op.identity = settings.identity;
  Exchange x{op, &answer, random_bytes(kFileBytes), {}, {}, {}, file_name()};
  answer.file = settings.host + ":" + settings.path + "/" + x.name;
  const ToldWhenKilled told(answer.file);
  auto mount = driver.run(exchange_task(driver.loop(), settings, x));
  // With nothing of the mount on the stack.
  if (mount.ok()) driver.while_it_stands([&] { mount->reset(); });
  return answer;
}

}  // namespace nfsrdma::doctor
