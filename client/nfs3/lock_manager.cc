// SPDX-License-Identifier: Apache-2.0
#include "client/nfs3/lock_manager.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <random>

#include "client/request_ends.h"
#include "rpcrdma/base/host_name.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma::nfs3 {
namespace {

using xdr::nlm4_stats;
using xdr::nlmproc4;

const Error kNoManager{Errc::kUnsupported, ENOLCK, "the server has no lock manager"};

constexpr Duration kAgainFirst = std::chrono::milliseconds(200);
constexpr Duration kAgainLongest = std::chrono::seconds(5);
/// NLM has names of 1024 bytes; what servers make of them (file names, host names) has 255.
constexpr std::size_t kMaxHostName = 200;
/// NSM numbers a host that is up by odd ones. A caller of ours lives once.
constexpr std::int32_t kState = 1;

bool lacks_the_program(const Error& error) {
  return error.code == Errc::kUnsupported && error.sys == EPROTONOSUPPORT;
}
bool lacks_the_procedure(const Error& error) {
  return error.code == Errc::kUnsupported && error.sys == EOPNOTSUPP;
}

/// An owner on the wire, for as long as this lives.
class OwnerHandle {
 public:
  OwnerHandle(const LockCaller& caller, std::uint32_t svid) {
    store_be64(bytes_.data(), caller.id);
    store_be32(bytes_.data() + 8, svid);
  }
  ByteSpan bytes() const { return bytes_; }

 private:
  std::array<std::byte, 12> bytes_;
};

xdr::nlm4_lock to_wire(const LockCaller& caller, const NlmRange& what, const OwnerHandle& owner) {
  xdr::nlm4_lock lock;
  lock.caller_name = caller.name;
  lock.fh = what.file.bytes();
  lock.oh = owner.bytes();
  lock.svid = what.svid;
  lock.l_offset = what.range.first;
  lock.l_len = what.range.last == UINT64_MAX ? 0 : length_of(what.range);
  return lock;
}

FileLock from_wire(const xdr::nlm4_holder& holder) {
  FileLock lock;
  lock.kind = holder.exclusive ? LockKind::kWrite : LockKind::kRead;
  lock.range = {holder.l_offset, UINT64_MAX};
  if (holder.l_len != 0 && holder.l_len <= UINT64_MAX - holder.l_offset) {
    lock.range.last = holder.l_offset + holder.l_len - 1;
  }
  return lock;
}

}  // namespace

LockCaller LockCaller::make() {
  const std::string host = host_name();
  std::random_device random;
  LockCaller caller;
  caller.id = (std::uint64_t{random()} << 32) | random();
  // What is unique comes first: "host" and "host.anything" count as one host with servers that
  // know of domains, ours among them.
  caller.name = fmt::format("nfs-rdma-{}-{:016x}.{}", ::getpid(), caller.id,
                            std::string_view(host).substr(0, kMaxHostName));
  return caller;
}

std::uint32_t LockCaller::svid(LockOwnerId owner) const {
  // Linux's client counts from 0. A pid_t there, so it stays positive; and 0 may mean nobody.
  constexpr std::uint32_t kFirst = 1u << 24;
  constexpr std::uint32_t kCount = (1u << 31) - kFirst;
  return kFirst + static_cast<std::uint32_t>((id % kCount + owner) % kCount);
}

LockManager::LockManager(RpcClient& nfs, std::unique_ptr<LockManagerWays> ways)
    : nfs_(nfs), ways_(std::move(ways)), pauses_(nfs.environment()) {
  nfs_.set_on_lost([this] { lost(Place::kNfs); });
}

LockManager::~LockManager() {
  nfs_.set_on_lost(nullptr);
  abort();
}

void LockManager::abort() {
  if (std::exchange(aborted_, true)) return;
  if (own_ != nullptr) own_->abort_all();
  found_.wake_all();
}

void LockManager::lost(Place place) {
  if (place_ == place && on_lost_) on_lost_();
}

std::string LockManager::place() const {
  if (place_ == Place::kUnknown) return {};
  return place_ == Place::kNfs ? "NFS connection" : address_.text();
}

// --- where it is ---

Task<Result<RpcClient*>> LockManager::reach(const OpContext& op) {
  while (finding_) {
    const bool woken = co_await found_.wait(op.cancel);
    if (!woken) co_return kInterrupted;
  }
  if (aborted_) co_return kStopped;
  if (place_ == Place::kItsOwn) {
    std::string ignored;
    Result<void> connected = co_await own_->connect(&ignored, op.cancel);
    if (connected.ok()) co_return own_.get();
    if (connected.error().sys == EINTR) co_return connected.error();
    // Its next one listens elsewhere.
    place_ = Place::kUnknown;
    co_return co_await reach(op);
  }
  if (place_ == Place::kNfs) co_return &nfs_;
  const TimePoint now = nfs_.environment().now();
  if (!ever_found_ && absent_since_ && now - *absent_since_ < kAbsent) co_return kNoManager;
  finding_ = true;
  Result<void> found = co_await find(op);
  finding_ = false;
  found_.wake_all();
  if (!found.ok()) co_return found.error();
  co_return place_ == Place::kNfs ? &nfs_ : own_.get();
}

Task<Result<void>> LockManager::find(const OpContext& op) {
  auto nothing = [](xdr::Decoder&) { return true; };
  const xdr::Void none;
  Result<void> answered = co_await ask_at(nfs_, op, nlmproc4::NLMPROC4_NULL, none, nothing);
  if (aborted_) co_return kStopped;
  std::string detail;
  if (answered.ok()) {
    place_ = Place::kNfs;
  } else if (lacks_the_program(answered.error()) || lacks_the_procedure(answered.error()) ||
             answered.error().code == Errc::kRefused) {
    answered = co_await find_elsewhere(op, &detail);
    if (aborted_) co_return kStopped;
    if (answered.ok()) place_ = Place::kItsOwn;
  } else {
    co_return answered;  // of the connection, not of NLM
  }
  if (answered.ok()) {
    ever_found_ = true;
    absent_since_.reset();
    told_ = false;
    log_info("NFSv3: locks by NLM: {}", place());
    co_return answered;
  }
  if (answered.error().sys == EINTR) co_return answered;
  if (!ever_found_ || !absent_since_) absent_since_ = nfs_.environment().now();
  if (!std::exchange(told_, true)) {
    log_warning(
        "NFSv3: no locks: the server's lock manager (NLM) cannot be reached: not on the NFS "
        "connection; {}; mount with nolock where locks need not hold between hosts",
        detail);
  }
  co_return kNoManager;
}

Task<Result<void>> LockManager::find_elsewhere(const OpContext& op, std::string* detail) {
  std::string why;
  Result<std::optional<SocketAddress>> found = co_await ways_->find(op.cancel, &why);
  if (!found.ok()) {
    *detail = "rpcbind: " + why;
    co_return found.error();
  }
  if (!*found) {
    *detail = "rpcbind: not registered";
    co_return kNoManager;
  }
  if (aborted_) co_return kStopped;
  address_ = **found;
  if (own_ == nullptr) {
    own_ = ways_->connect_to(address_);
    own_->set_on_lost([this] { lost(Place::kItsOwn); });
  } else {
    own_->redirect({{TransportKind::kTcp, address_, nullptr}});
  }
  Result<void> connected = co_await own_->connect(&why, op.cancel);
  if (connected.ok()) {
    auto nothing = [](xdr::Decoder&) { return true; };
    const xdr::Void none;
    connected = co_await ask_at(*own_, op, nlmproc4::NLMPROC4_NULL, none, nothing);
    if (!connected.ok()) why = connected.error().message();
  }
  if (!connected.ok()) *detail = fmt::format("{}: {}", address_.text(), why);
  co_return connected;
}

// --- calls ---

bool LockManager::again(const Error& why, TimePoint started) {
  const TimePoint now = nfs_.environment().now();
  const RpcClientOptions& options = nfs_.options();
  const bool patient = !options.soft || now - started < options.timeo * (options.retrans + 1);
  if (why.sys == ENOLCK && why.code == Errc::kUnsupported) {
    // A server that has just restarted may not have it yet.
    return ever_found_ && patient && absent_since_ && now - *absent_since_ < kAbsent;
  }
  const bool out_of_reach =
      place_ == Place::kItsOwn && (why.code == Errc::kTimedOut || why.code == Errc::kClosed);
  if (!out_of_reach && !lacks_the_program(why)) return false;
  place_ = Place::kUnknown;
  return patient;
}

template <typename Args, typename Parse>
Task<Result<void>> LockManager::ask_at(RpcClient& rpc, const OpContext& op, nlmproc4 procedure,
                                       const Args& args, Parse parse) {
  RpcCallLease call =
      rpc.prepare(xdr::kNlmProgram, xdr::kNlmV4, static_cast<std::uint32_t>(procedure), op);
  call->arguments(args);
  // A cookie of ours and a status; TEST tells an owner.
  const bool tells_owner = procedure == nlmproc4::NLMPROC4_TEST;
  call->set_max_results(tells_owner ? xdr::kNlmMaxNetobj + 128 : 128);
  NFSRDMA_CO_CHECK_OK(co_await call->run());
  if (!parse(call->results())) co_return Error{Errc::kProtocol, EIO, "undecodable NLM result"};
  co_return Result<void>();
}

template <typename Args, typename Parse>
Task<Result<void>> LockManager::ask(const OpContext& op, nlmproc4 procedure, const Args& args,
                                    Parse parse) {
  const TimePoint started = nfs_.environment().now();
  for (Duration wait = kAgainFirst;; wait = std::min(2 * wait, kAgainLongest)) {
    Result<RpcClient*> rpc = co_await reach(op);
    Result<void> done;
    if (rpc.ok()) {
      done = co_await ask_at(**rpc, op, procedure, args, parse);
    } else {
      done = rpc.error();
    }
    if (done.ok() || aborted_) co_return done;
    if (op.cancel != nullptr && op.cancel->cancelled()) co_return kInterrupted;
    if (!again(done.error(), started)) co_return done;
    co_await pauses_.pause(wait, op.cancel);
  }
}

Task<Result<void>> LockManager::null(const OpContext& op) {
  auto nothing = [](xdr::Decoder&) { return true; };
  const xdr::Void none;
  co_return co_await ask(op, nlmproc4::NLMPROC4_NULL, none, nothing);
}

Task<Result<nlm4_stats>> LockManager::lock(const OpContext& op, const LockCaller& as,
                                           const NlmRange& what, How how) {
  const OwnerHandle owner(as, what.svid);
  std::array<std::byte, 4> cookie;
  store_be32(cookie.data(), ++last_cookie_);
  xdr::nlm4_lockargs args;
  args.cookie = cookie;
  args.exclusive = what.kind == LockKind::kWrite;
  args.alock = to_wire(as, what, owner);
  args.reclaim = how == How::kReclaim;
  args.state = kState;
  xdr::nlm4_res res;
  auto parse = [&res](xdr::Decoder& in) { return xdr::decode(in, res); };
  Result<void> done = Result<void>();
  if (!unmonitored_) {
    done = co_await ask(op, nlmproc4::NLMPROC4_LOCK, args, parse);
    if (!done.ok()) co_return done.error();
    if (res.stat != nlm4_stats::NLM4_DENIED_NOLOCKS) co_return res.stat;
  }
  // Linux's server says so, too, when its status monitor does not run or does not take us. It would
  // be of no use to us: nobody here hears what it says.
  done = co_await ask(op, nlmproc4::NLMPROC4_NM_LOCK, args, parse);
  if (!done.ok() && lacks_the_procedure(done.error())) {
    unmonitored_ = false;
    co_return nlm4_stats::NLM4_DENIED_NOLOCKS;
  }
  if (!done.ok()) co_return done.error();
  if (res.stat == nlm4_stats::NLM4_GRANTED) unmonitored_ = true;
  co_return res.stat;
}

Task<Result<nlm4_stats>> LockManager::unlock(const OpContext& op, const LockCaller& as,
                                             const NlmRange& what) {
  const OwnerHandle owner(as, what.svid);
  std::array<std::byte, 4> cookie;
  store_be32(cookie.data(), ++last_cookie_);
  xdr::nlm4_unlockargs args;
  args.cookie = cookie;
  args.alock = to_wire(as, what, owner);
  xdr::nlm4_res res;
  auto parse = [&res](xdr::Decoder& in) { return xdr::decode(in, res); };
  Result<void> done = co_await ask(op, nlmproc4::NLMPROC4_UNLOCK, args, parse);
  if (!done.ok()) co_return done.error();
  co_return res.stat;
}

Task<Result<nlm4_stats>> LockManager::test(const OpContext& op, const LockCaller& as,
                                           const NlmRange& what, FileLock* holder) {
  const OwnerHandle owner(as, what.svid);
  std::array<std::byte, 4> cookie;
  store_be32(cookie.data(), ++last_cookie_);
  xdr::nlm4_testargs args;
  args.cookie = cookie;
  args.exclusive = what.kind == LockKind::kWrite;
  args.alock = to_wire(as, what, owner);
  nlm4_stats stat = nlm4_stats::NLM4_FAILED;
  auto parse = [&stat, holder](xdr::Decoder& in) {
    xdr::nlm4_testres res;
    if (!xdr::decode(in, res)) return false;
    stat = res.test_stat.stat;
    if (stat == nlm4_stats::NLM4_DENIED) *holder = from_wire(res.test_stat.holder);
    return true;
  };
  Result<void> done = co_await ask(op, nlmproc4::NLMPROC4_TEST, args, parse);
  if (!done.ok()) co_return done.error();
  co_return stat;
}

Task<Result<void>> LockManager::free_all(const OpContext& op, const LockCaller& as) {
  auto nothing = [](xdr::Decoder&) { return true; };
  const xdr::nlm4_notify args{as.name, kState};
  co_return co_await ask(op, nlmproc4::NLMPROC4_FREE_ALL, args, nothing);
}

}  // namespace nfsrdma::nfs3
