// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/device.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>

#include "rpcrdma/base/discard.h"
#include "rpcrdma/iwarp/completion_queue.h"
#include "rpcrdma/iwarp/protection_domain.h"
#include "rpcrdma/iwarp/receive_queue.h"
#include "rpcrdma/iwarp/tcp_driver.h"

namespace nfsrdma::iwarp {
namespace {

/// What a peer was refused for once may have been its moment, not its kind: the first and best kind
/// has its turn again after that.
constexpr Duration kRememberAttempt = std::chrono::minutes(10);

/// What a loop that ends waits for what its connections sent last, and how often it looks.
constexpr std::chrono::milliseconds kLastWords{500};
constexpr std::chrono::milliseconds kLook{2};

/// How many sockets of a fabric may linger. Clients that all end at once want many. Asked anew: a
/// daemon raises its limit of descriptors when it begins.
rlim_t lingering_limit(const IwarpOptions& options) {
  constexpr rlim_t kLeast = 64, kMost = 65'536;
  if (options.max_lingering != 0) return options.max_lingering;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kLeast;
  return std::clamp(limit.rlim_cur / 8, kLeast, kMost);
}

class LingeringSocket final : public DeviceOwned, private FdWatcher {
 public:
  LingeringSocket(IwarpDevice& device, UniqueFd fd, Duration limit)
      : device_(device), fd_(std::move(fd)), timer_([this] { device_.release(*this); }) {
    ++device_.fabric().lingering;
    if (!device_.loop().add(fd_.get(), EPOLLIN | EPOLLRDHUP, *this).ok()) limit = Duration::zero();
    timer_.arm_after(device_.loop(), limit);
  }
  ~LingeringSocket() override {
    device_.loop().remove(fd_.get(), *this);
    --device_.fabric().lingering;
  }

  bool still_sends() override {
    // From when each was left alone: the loops of a client that ends do not wait one by one.
    if (std::chrono::steady_clock::now() - since_ >= kLastWords) return false;
    int unacknowledged = 0;
    return discard_received(fd_.get()) && ::ioctl(fd_.get(), SIOCOUTQ, &unacknowledged) == 0 &&
           unacknowledged > 0;
  }

 private:
  void on_fd_ready(std::uint32_t) override {
    if (discard_received(fd_.get())) return;
    device_.loop().remove(fd_.get(), *this);
    device_.release(*this);
  }
  IwarpDevice& device_;
  UniqueFd fd_;
  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  Timer timer_;
};

std::unique_ptr<PcapTap> make_tap(const IwarpOptions& options) {
  if (options.pcap_hook) return std::make_unique<PcapTap>(options.pcap_hook);
  if (options.pcap_path.empty()) return nullptr;
  return std::make_unique<PcapTap>(PcapTap::to_file(options.pcap_path));
}

}  // namespace

FabricState::FabricState(const IwarpOptions& given)
    : options(given),
      half_open(given.max_half_open_per_address, given.max_half_open),
      tap(make_tap(given)) {}

MpaAttempt FabricState::remembered_attempt(const SocketAddress& peer, TimePoint now) {
  std::lock_guard lock(mutex_);
  auto found = attempts_.find(peer.text());
  if (found == attempts_.end()) return MpaAttempt::kPlain;
  if (now - found->second.learnt < kRememberAttempt) return found->second.attempt;
  attempts_.erase(found);
  return MpaAttempt::kPlain;
}

void FabricState::remember_attempt(const SocketAddress& peer, MpaAttempt attempt, TimePoint now) {
  std::lock_guard lock(mutex_);
  if (attempt == MpaAttempt::kPlain) {
    attempts_.erase(peer.text());
    return;
  }
  // That it works again tells nothing of the kinds that were not tried: the time runs on.
  Remembered& remembered = attempts_[peer.text()];
  if (remembered.attempt != attempt) remembered = {attempt, now};
}

IwarpDevice::IwarpDevice(FabricState& fabric, EventLoop& loop) : fabric_(fabric), loop_(loop) {
  info_.name = "iwarp";
  info_.kind = FabricKind::kIwarp;
  info_.max_send_sge = kMaxSge;
  info_.max_read_sge = 1;
  info_.max_inbound_reads =
      std::clamp<std::uint32_t>(fabric.options.max_inbound_reads, 1, kMpaMaxDepth);
  info_.max_outbound_reads = kMpaMaxDepth;
  info_.max_send_depth = 16384;
  info_.send_with_invalidate = true;
  info_.remote_invalidation = true;
  info_.read_sink_needs_handle = true;
}

IwarpDevice::~IwarpDevice() {
  // A socket that is closed before the peer has read all, and with anything unread, loses the rest:
  // the last replies of a server that shuts down.
  const auto end = std::chrono::steady_clock::now() + kLastWords;
  while (any_still_sends() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(kLook);
  for (auto* list : {&live_, &lingering_, &dead_}) {
    while (DeviceOwned* owned = list->pop_front())
      delete owned;
  }
}

bool IwarpDevice::any_still_sends() {
  bool any = false;
  lingering_.for_each([&any](DeviceOwned& owned) { any |= owned.still_sends(); });
  return any;
}

Result<std::unique_ptr<ProtectionDomain>> IwarpDevice::create_protection_domain() {
  return std::make_unique<IwarpDomain>(*this);
}

Result<std::unique_ptr<CompletionQueue>> IwarpDevice::create_completion_queue(
    EventLoop& loop, CompletionHandler& handler, std::uint32_t depth) {
  return std::make_unique<IwarpCompletionQueue>(loop, handler, depth);
}

Result<std::unique_ptr<SharedReceiveQueue>> IwarpDevice::create_shared_receive_queue(
    ProtectionDomain&, std::uint32_t depth) {
  return std::make_unique<IwarpReceiveQueue>(loop_, depth);
}

std::uint64_t IwarpDevice::attach(IwarpQueuePair& queue_pair) {
  const std::uint64_t number = next_number_++;
  queue_pairs_[number] = &queue_pair;
  return number;
}

IwarpQueuePair* IwarpDevice::find(std::uint64_t number) {
  auto found = queue_pairs_.find(number);
  return found == queue_pairs_.end() ? nullptr : found->second;
}

void IwarpDevice::release(DeviceOwned& owned) {
  dead_.push_back(owned);
  loop_.defer(*this);
}

void IwarpDevice::run_deferred() {
  while (DeviceOwned* owned = dead_.pop_front())
    delete owned;
}

void IwarpDevice::linger(UniqueFd fd, bool peer_closes_first) {
  if (!fd) return;
  if (!peer_closes_first) ::shutdown(fd.get(), SHUT_WR);
  const auto limit =
      peer_closes_first ? fabric_.options.reject_linger : fabric_.options.close_linger;
  // Nothing else counts them, and a stranger that is refused, or ended for what it sends, can be
  // back at once, while its last socket is still here: the oldest has had most of its time.
  // None of this loop's: nothing is deleted.
  if (fabric_.lingering >= lingering_limit(fabric_.options)) delete lingering_.pop_front();
  auto leaving = std::make_unique<LingeringSocket>(*this, std::move(fd), limit);
  lingering_.push_back(*leaving.release());
}

}  // namespace nfsrdma::iwarp
