// SPDX-License-Identifier: Apache-2.0
// The one seam between the RPC-over-RDMA code and the networks below it. Three fabrics stand
// behind it: verbs/ (librdmacm + libibverbs), iwarp/ (MPA/DDP/RDMAP over a TCP socket, in this
// process) and sim/ (deterministic, for tests). Code above the seam never learns which one it has,
// except to report it.
//
// The model is verbs': a Device owns protection domains, completion queues and shared receive
// queues; a QueuePair takes work requests and reports each exactly once on its completion queue.
//
// Contracts that every fabric keeps (tests/unit/rpcrdma/fabric_contract_test.cc checks them):
//  * Threads: every object belongs to the thread of the EventLoop it was made with. The exception
//    is Incoming, which may be moved to another thread before start().
//  * Order: Sends and RDMA Writes leave in the order posted. The peer sees the data of a Write
//    complete before it sees a later Send. RDMA Reads start and complete in order among
//    themselves; later Sends and Writes do not wait for them unless `fence` is set.
//  * A completion of a Send or Write means that its memory may be reused, nothing more.
//  * Completions of one queue pair's send queue arrive in posting order. Unsignalled work that
//    succeeds reports nothing and is retired by the next signalled completion of the queue pair;
//    unsignalled work that fails reports always.
//  * When a queue pair breaks (or disconnect() is called), everything still posted completes once
//    with kFlushed, after the one that failed, and then the handler hears on_disconnected() once.
//    Receives posted to a shared receive queue stay posted.
//  * Nothing that a peer sends can make a call abort or touch memory outside of what was posted
//    or registered for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/base/result.h"
#include "rpcrdma/base/socket_address.h"

namespace nfsrdma {

enum class FabricKind : std::uint8_t { kVerbs, kIwarp, kSimulated };

/// "verbs", "iwarp", "sim".
const char* fabric_name(FabricKind kind);

/// What a region allows. Local reading and writing is always allowed; remote access must be asked
/// for, and only for the bytes and the time of one operation.
enum class Access : std::uint8_t {
  kLocal,        // never reachable from the network
  kRemoteRead,   // the peer may RDMA Read it (a Read chunk)
  kRemoteWrite,  // the peer may RDMA Write it (a Write or Reply chunk)
  kReadSink,     // target of our own RDMA Reads; on iWARP the response names it by handle, so
                 // fabrics admit Read Responses to it and nothing else where they can
};

struct DeviceInfo {
  std::string name;  // "iwarp", "mlx5_0", "siw0"
  FabricKind kind = FabricKind::kIwarp;
  std::uint32_t max_send_sge = 1;
  std::uint32_t max_read_sge = 1;        // SGEs in one RDMA Read
  std::uint32_t max_inbound_reads = 1;   // IRD we can offer
  std::uint32_t max_outbound_reads = 1;  // ORD we can use
  std::uint32_t max_send_depth = 0;      // work requests on one send queue
  bool send_with_invalidate = false;     // kSendWithInvalidate can be posted
  bool remote_invalidation = false;      // regions may be invalidated by the peer's Send
  bool read_sink_needs_handle = false;   // RDMA Read sinks must be registered as kReadSink
};

class ProtectionDomain;
class QueuePair;

/// Registered memory. Move-only; destruction withdraws it: from then on no remote access reaches
/// it. Does not own the bytes, which must stay valid while it lives.
class MemoryRegion {
 public:
  MemoryRegion() = default;
  MemoryRegion(ProtectionDomain& domain, MutableByteSpan bytes, std::uint32_t lkey,
               std::uint32_t handle, std::uint64_t remote_offset, std::uint64_t token)
      : domain_(&domain),
        bytes_(bytes),
        lkey_(lkey),
        handle_(handle),
        remote_offset_(remote_offset),
        token_(token) {}
  inline MemoryRegion(MemoryRegion&& other) noexcept;
  inline MemoryRegion& operator=(MemoryRegion&& other) noexcept;
  inline ~MemoryRegion();

  explicit operator bool() const { return domain_ != nullptr; }
  MutableByteSpan bytes() const { return bytes_; }
  std::uint32_t lkey() const { return lkey_; }
  /// The 32-bit tag that goes into chunk segments (rkey, STag).
  std::uint32_t handle() const { return handle_; }
  /// The remote offset of bytes()[0], as goes into chunk segments.
  std::uint64_t remote_offset() const { return remote_offset_; }
  /// The fabric's own name for it.
  std::uint64_t token() const { return token_; }
  inline void reset();

 private:
  ProtectionDomain* domain_ = nullptr;
  MutableByteSpan bytes_;
  std::uint32_t lkey_ = 0;
  std::uint32_t handle_ = 0;
  std::uint64_t remote_offset_ = 0;
  std::uint64_t token_ = 0;
};

class ProtectionDomain {
 public:
  virtual ~ProtectionDomain() = default;
  /// Remote access, where given, is limited to `scope`'s connection where the fabric can (iwarp),
  /// and to this domain elsewhere. `scope` is required for remote access, which a peer surely has
  /// once it learns the handle from a Send that is posted on `scope` later.
  virtual Result<MemoryRegion> register_memory(MutableByteSpan bytes, Access access,
                                               const QueuePair* scope) = 0;

 protected:
  friend class MemoryRegion;
  virtual void deregister(MemoryRegion& region) = 0;
};

inline MemoryRegion::MemoryRegion(MemoryRegion&& other) noexcept {
  *this = std::move(other);
}
inline MemoryRegion& MemoryRegion::operator=(MemoryRegion&& other) noexcept {
  if (this != &other) {
    reset();
    domain_ = std::exchange(other.domain_, nullptr);
    bytes_ = std::exchange(other.bytes_, {});
    lkey_ = other.lkey_;
    handle_ = other.handle_;
    remote_offset_ = other.remote_offset_;
    token_ = other.token_;
  }
  return *this;
}
inline MemoryRegion::~MemoryRegion() {
  reset();
}
inline void MemoryRegion::reset() {
  if (domain_ != nullptr) {
    domain_->deregister(*this);
    domain_ = nullptr;
  }
}

/// A piece of local memory in a work request. `lkey` is the containing region's; fabrics whose
/// adapter is this process ignore it.
struct Sge {
  std::byte* address = nullptr;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

enum class WorkOpcode : std::uint8_t { kSend, kSendWithInvalidate, kWrite, kRead, kReceive };

struct WorkRequest {
  std::uint64_t wr_id = 0;
  WorkOpcode opcode = WorkOpcode::kSend;
  bool signaled = true;
  bool fence = false;               // start only when all earlier RDMA Reads are complete
  std::span<const Sge> sges;        // gather list (Send, Write) or sink (Read); copied by post()
  std::uint32_t remote_handle = 0;  // Write, Read: where; SendWithInvalidate: what to invalidate
  std::uint64_t remote_offset = 0;  // Write, Read
  // Read: region that holds the sink when DeviceInfo::read_sink_needs_handle. Must outlive the
  // completion.
  const MemoryRegion* read_sink = nullptr;
};

enum class WorkStatus : std::uint8_t {
  kSuccess,
  kFlushed,  // never ran: the queue pair was already broken
  kFailed,   // ran and failed; the queue pair is broken now
};

struct WorkCompletion {
  std::uint64_t wr_id = 0;
  WorkOpcode opcode = WorkOpcode::kSend;
  WorkStatus status = WorkStatus::kSuccess;
  std::uint32_t byte_count = 0;  // kReceive: bytes in the message
  bool invalidated = false;      // kReceive: the Send invalidated `invalidated_handle`
  std::uint32_t invalidated_handle = 0;
  QueuePair* queue_pair = nullptr;  // kReceive from a shared queue: whose message it is
};

class CompletionHandler {
 public:
  virtual ~CompletionHandler() = default;
  /// Completions wait in the queue. Called on the loop's thread, at least once after the queue
  /// became non-empty; the handler polls until poll() gives fewer than it has room for, or comes
  /// back by itself for the rest.
  virtual void on_completions() = 0;
  /// The device is gone or broken. Its connections end by themselves; destroy what was made with it
  /// once the last one is gone, and make nothing new. A device that comes back is another Device.
  virtual void on_device_gone() {}
};

class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  /// Takes up to out.size() completions; returns how many.
  virtual std::size_t poll(std::span<WorkCompletion> out) = 0;
};

/// Receive buffers shared by the queue pairs of one shard, so that an idle connection holds none.
class SharedReceiveQueue {
 public:
  virtual ~SharedReceiveQueue() = default;
  virtual Result<void> post(std::uint64_t wr_id, Sge buffer) = 0;
  /// Receives that can be posted at the same time.
  virtual std::uint32_t depth() const = 0;
};

/// What the fabric found out about a connection, for people (status) and for limits.
struct QueuePairInfo {
  SocketAddress local;
  SocketAddress peer;
  std::uint32_t max_outbound_reads = 0;  // ORD: RDMA Reads that we may have outstanding
  std::uint32_t max_inbound_reads = 0;   // IRD
  bool crc = false;                      // iwarp: MPA CRC in use
  bool own_peer = false;                 // iwarp: the peer runs this software (large FPDUs)
  /// iwarp: nothing looks at what is sent but the kernel's sendmsg(), so it may be pages of a file
  /// (base/file_window.h), without an lkey.
  bool sends_file_pages = false;
  std::string detail;  // "MPA rev 2, FPDU <= 65160" or a device's port and GID
};

class QueuePairHandler {
 public:
  virtual ~QueuePairHandler() = default;
  /// Server side: the first message (or RTR) of the peer arrived, Sends may be posted.
  virtual void on_established() {}
  /// Once, when the connection is over for whatever reason, after everything was flushed to the
  /// completion queue. `why.code` is kClosed for an orderly close. The queue pair may be destroyed
  /// from a Deferred or posted item, not from inside this call.
  virtual void on_disconnected(Error why) = 0;
};

/// One connection's queues. Destruction disconnects; afterwards no memory is touched.
class QueuePair {
 public:
  virtual ~QueuePair() = default;
  /// Posts all of `requests` as one chain (one doorbell) or, on an error, as many as *posted says;
  /// those still complete (flushed). kExhausted when the send queue lacks the room.
  virtual Result<void> post(std::span<const WorkRequest> requests, std::size_t* posted) = 0;
  /// Orderly close: flushes what is queued for sending where the fabric can, then closes.
  virtual void disconnect() = 0;
  virtual const QueuePairInfo& info() const = 0;
  /// For the user of the queue pair; completions carry only the pointer to the queue pair.
  void* context = nullptr;
};

/// How to build a queue pair. Everything named must outlive it.
struct QueuePairOptions {
  ProtectionDomain* domain = nullptr;
  CompletionQueue* completions = nullptr;
  SharedReceiveQueue* receives = nullptr;
  QueuePairHandler* handler = nullptr;
  std::uint32_t send_depth = 256;
  std::uint32_t inbound_reads = 0;    // IRD wanted (client: Reads that the server may have open)
  std::uint32_t outbound_reads = 16;  // ORD wanted; the peer's IRD and the device limit it
  ByteSpan private_data;              // copied
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual Result<std::unique_ptr<ProtectionDomain>> create_protection_domain() = 0;
  virtual Result<std::unique_ptr<CompletionQueue>> create_completion_queue(
      EventLoop& loop, CompletionHandler& handler, std::uint32_t depth) = 0;
  virtual Result<std::unique_ptr<SharedReceiveQueue>> create_shared_receive_queue(
      ProtectionDomain& domain, std::uint32_t depth) = 0;
};

/// A peer that asks for a connection; its private data is here. Exactly one of accept() and
/// reject() is called; destruction without either rejects.
class ConnectRequest {
 public:
  virtual ~ConnectRequest() = default;
  /// Stays valid as long as the fabric. One Device object per loop and device: callers may key
  /// per-shard state on its address.
  virtual Device& device() = 0;
  virtual const SocketAddress& peer() const = 0;
  virtual ByteSpan private_data() const = 0;
  /// RDMA Reads that the peer lets us have outstanding (its IRD); 0: we must not read.
  virtual std::uint32_t peer_inbound_reads() const = 0;
  virtual Result<std::unique_ptr<QueuePair>> accept(const QueuePairOptions& options) = 0;
  virtual void reject(ByteSpan private_data) = 0;
};

class AcceptHandler {
 public:
  virtual ~AcceptHandler() = default;
  virtual void on_connect_request(std::unique_ptr<ConnectRequest> request) = 0;
};

/// A connection attempt that nobody looked at yet. The listener's thread gets it, any thread may
/// go on with it.
class Incoming {
 public:
  virtual ~Incoming() = default;
  /// Goes on with the handshake on `loop`'s thread (call it there). `handler` hears of it once the
  /// request is complete and sane; broken or slow handshakes end silently (counted, logged at a
  /// limited rate). Consumes the object. `handler` must outlive the fabric's use of `loop`.
  virtual void start(EventLoop& loop, AcceptHandler& handler) = 0;
};

class IncomingHandler {
 public:
  virtual ~IncomingHandler() = default;
  virtual void on_incoming(std::unique_ptr<Incoming> incoming) = 0;
};

/// Listens while it lives.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual const SocketAddress& address() const = 0;
};

class ConnectHandler {
 public:
  virtual ~ConnectHandler() = default;
  /// The device is known: say how to build the queue pair (an Error gives up). `device` stays valid
  /// as long as the fabric.
  virtual Result<QueuePairOptions> on_device(Device& device) = 0;
  /// Connected: the client sends first. `private_data` is the server's, valid during the call.
  virtual void on_connected(std::unique_ptr<QueuePair> queue_pair, ByteSpan private_data) = 0;
  /// Gave up. `detail` is for people: what was tried and what happened.
  virtual void on_connect_failed(Error error, const std::string& detail) = 0;
};

/// A connection attempt of ours; destruction abandons it (no more calls to the handler). Stays
/// alive until one of the two final calls and may be destroyed inside them.
class Connector {
 public:
  virtual ~Connector() = default;
};

/// A kind of network. One per process; thread-safe, the objects it makes are not.
class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual FabricKind kind() const = 0;
  /// kUnsupported with a reason when this host cannot use it (no device, no driver).
  virtual Result<void> available() const = 0;
  virtual Result<std::unique_ptr<Listener>> listen(EventLoop& loop, const SocketAddress& address,
                                                   IncomingHandler& handler) = 0;
  virtual Result<std::unique_ptr<Connector>> connect(EventLoop& loop, const SocketAddress& peer,
                                                     ConnectHandler& handler) = 0;
  /// Frees what the fabric keeps for `loop` (its Device, handshakes). After every queue pair on
  /// it is gone; on its thread. The end of the loop does it at the latest.
  virtual void forget(EventLoop& loop) = 0;
  /// Regions of `loop` that a peer can name now; on its thread. 0 where nobody counts them.
  virtual std::size_t exposed_regions(EventLoop& loop) {
    static_cast<void>(loop);
    return 0;
  }
};

}  // namespace nfsrdma
