// SPDX-License-Identifier: Apache-2.0
// What the fabric keeps for one EventLoop: STags, work entries, the scratch space for socket calls,
// handshakes and sockets on their way out. All on the loop's thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/fabric.h"
#include "rpcrdma/iwarp/fpdu_receiver.h"
#include "rpcrdma/iwarp/half_open.h"
#include "rpcrdma/iwarp/iwarp_fabric.h"
#include "rpcrdma/iwarp/mpa_connect.h"
#include "rpcrdma/iwarp/pcap_tap.h"
#include "rpcrdma/iwarp/stag_table.h"
#include "rpcrdma/iwarp/transmit_scratch.h"
#include "rpcrdma/iwarp/work_pool.h"

namespace nfsrdma::iwarp {

class IwarpQueuePair;

/// What all of a fabric's objects share. Thread-safe.
class FabricState {
 public:
  explicit FabricState(const IwarpOptions& options);

  const IwarpOptions options;
  HalfOpenLimit half_open;
  std::unique_ptr<PcapTap> tap;  // null: none
  /// Sockets on their way out (IwarpDevice::linger()), of all loops.
  std::atomic<std::uint32_t> lingering{0};

  /// The kind of request to begin with: what worked with `peer`, if that was learnt lately.
  MpaAttempt remembered_attempt(const SocketAddress& peer, TimePoint now);
  void remember_attempt(const SocketAddress& peer, MpaAttempt attempt, TimePoint now);

 private:
  struct Remembered {
    MpaAttempt attempt = MpaAttempt::kPlain;
    TimePoint learnt{};
  };
  std::mutex mutex_;
  std::unordered_map<std::string, Remembered> attempts_;  // guarded by mutex_; not for kPlain
};

/// Lives until release()d; for objects that nobody outside holds.
class DeviceOwned : public ListNode<DeviceOwned> {
 public:
  virtual ~DeviceOwned() = default;
  /// The loop turns no more: does what there is to do, without waiting. True: not all that was sent
  /// has arrived, and destruction may throw it away.
  virtual bool still_sends() { return false; }
};

class IwarpDevice final : public Device, private Deferred {
 public:
  IwarpDevice(FabricState& fabric, EventLoop& loop);
  ~IwarpDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Result<std::unique_ptr<ProtectionDomain>> create_protection_domain() override;
  Result<std::unique_ptr<CompletionQueue>> create_completion_queue(EventLoop& loop,
                                                                   CompletionHandler& handler,
                                                                   std::uint32_t depth) override;
  Result<std::unique_ptr<SharedReceiveQueue>> create_shared_receive_queue(
      ProtectionDomain& domain, std::uint32_t depth) override;

  FabricState& fabric() { return fabric_; }
  EventLoop& loop() { return loop_; }
  StagTable& stags() { return stags_; }
  WorkPool& work() { return work_; }
  ReceiveScratch& receive_scratch() { return receive_scratch_; }
  TransmitScratch& transmit_scratch() { return transmit_scratch_; }
  /// For what strangers can make us say.
  bool may_log() { return log_limit_.allow(); }

  /// Connections by number: STags name their connection so.
  std::uint64_t attach(IwarpQueuePair& queue_pair);
  void detach(std::uint64_t number) { queue_pairs_.erase(number); }
  IwarpQueuePair* find(std::uint64_t number);

  void adopt(std::unique_ptr<DeviceOwned> owned) { live_.push_back(*owned.release()); }
  /// Destroys it at the end of the turn.
  void release(DeviceOwned& owned);
  /// Closes a socket politely: sends FIN (unless the peer must be the first), reads what still
  /// comes until the peer's FIN, but not for longer than the options say. When as many linger as
  /// may, the oldest of this loop is closed for it.
  void linger(UniqueFd fd, bool peer_closes_first);

 private:
  void run_deferred() override;
  bool any_still_sends();

  FabricState& fabric_;
  EventLoop& loop_;
  DeviceInfo info_;
  StagTable stags_;
  WorkPool work_;
  ReceiveScratch receive_scratch_;
  TransmitScratch transmit_scratch_;
  RateLimit log_limit_{10, std::chrono::seconds(10)};
  std::uint64_t next_number_ = 1;
  std::unordered_map<std::uint64_t, IwarpQueuePair*> queue_pairs_;
  IntrusiveList<DeviceOwned, DeviceOwned> live_;
  IntrusiveList<DeviceOwned, DeviceOwned> lingering_;  // the oldest first
  IntrusiveList<DeviceOwned, DeviceOwned> dead_;
};

}  // namespace nfsrdma::iwarp
