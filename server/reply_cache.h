// SPDX-License-Identifier: Apache-2.0
// ReplyCache: the duplicate request cache. A non-idempotent call that arrives a second time (the
// client lost its connection and sent it again) gets the first answer instead of being run again.
// Shared by all shards; every function may be called from any thread.
//
// What counts as the same call: the client's address without the port (a client that reconnects
// has another one), xid, program, version, procedure, and a checksum over the first bytes and the
// length of the arguments, since xids repeat. Not the credential: Linux before 5.1 encodes it anew
// with each retransmission, and writes the time into AUTH_SYS's stamp. Nor would much of the
// arguments be covered behind a long one.
//
// What is kept: the plain results, without RPC header, verifier or transport framing, so that the
// answer can be wrapped anew for whatever transport and flavour asks again.
//
// While the first is still running, a duplicate from another connection waits for its result
// (ReplayWaiter); one from the same connection is dropped, since the answer is on its way there.
//
// Bounds: a number of bytes for everything. When they are used up, the client that holds most loses
// its oldest finished answer. So whoever holds less than an equal share loses nothing, however
// busy the others are. Entries in progress are not lost; when nothing can be given up, the call is
// served without being remembered. Answers older than kLifetime do not count any more.
//
// Answers to WRITEs are kept briefly: a duplicate must not write again behind what the client wrote
// when it had the answer, but there are so many of them that they would push out everything else.
// So of each client only the last kMostBrief of a stripe are kept, and they go first where there
// are more than a few.
//
// Locks: stripes by key; each a leaf, held for some hundred nanoseconds. No allocation in the
// steady state: entries come from slabs.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/clock.h"
#include "rpcrdma/base/intrusive_list.h"
#include "rpcrdma/base/socket_address.h"

namespace nfsrdma {

/// A duplicate that waits for the first call's result.
class ReplayWaiter {
 public:
  virtual ~ReplayWaiter() = default;
  /// The first call ended: look again. Any thread, no lock held.
  virtual void on_original_done() = 0;
  /// Another duplicate waits instead; this one gets no answer. Any thread, no lock held.
  virtual void on_superseded() = 0;
};

class ReplyCache {
 public:
  static constexpr std::size_t kChecksummedBytes = 256;
  static constexpr std::chrono::minutes kLifetime{10};
  /// Results up to this size lie in the entry itself; a longer one is allocated.
  static constexpr std::size_t kInlineBody = 304;
  /// Longer results are not kept.
  static constexpr std::size_t kMaxBody = 64 << 10;
  static constexpr std::size_t kStripes = 8;
  /// Of a client, in each stripe: together four times the calls that a client has under way over
  /// RDMA, and little enough to stay in a processor's cache.
  static constexpr std::size_t kMostBrief = 64;
  /// So many have a place among the others.
  static constexpr std::size_t kFewBrief = kMostBrief / 4;
  enum class Keep : std::uint8_t { kLong, kBriefly };

  struct Key {
    std::array<std::uint8_t, 16> client{};
    std::uint32_t xid = 0;
    std::uint32_t program = 0;
    std::uint32_t version = 0;
    std::uint32_t procedure = 0;
    std::uint32_t checksum = 0;
    std::uint32_t length = 0;
    bool operator==(const Key&) const = default;
  };
  /// `arguments` is what the message holds behind the verifier, `reduced` what came beside it.
  static Key make_key(const SocketAddress& client, std::uint32_t xid, std::uint32_t program,
                      std::uint32_t version, std::uint32_t procedure, ByteSpan arguments,
                      ByteSpan reduced = {});

  enum class Verdict : std::uint8_t {
    kNew,       // run it, then finish() or abandon() the entry that *entry names
    kUncached,  // run it; there is no room to remember it
    kReplay,    // the results were copied into `room`
    kWait,      // the first is still running; `waiter` will be told
    kDrop,      // a duplicate of a call that is being answered on this very connection
  };
  class Entry;

  explicit ReplyCache(std::size_t max_bytes, const Clock& clock);
  ~ReplyCache();
  ReplyCache(const ReplyCache&) = delete;
  ReplyCache& operator=(const ReplyCache&) = delete;

  /// kReplay: *size results bytes are in `room`; when they do not fit *size is larger than `room`
  /// and nothing was copied (make room and ask again).
  Verdict begin(const Key& key, std::uint64_t connection, ReplayWaiter& waiter, Entry** entry,
                MutableByteSpan room, std::size_t* size);
  /// The call was run: keeps a copy of `results`.
  void finish(Entry* entry, ByteSpan results, Keep keep = Keep::kLong);
  /// The call was not run, or is not worth remembering: a duplicate runs again.
  void abandon(Entry* entry);

  struct Stats {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t evicted = 0;
    std::uint64_t uncached = 0;
  };
  Stats stats() const;

 private:
  struct Client;
  struct Stripe;

  Stripe& stripe_of(const Key& key, std::size_t* hash) const;
  void end(Entry* entry, ByteSpan results, bool keep, Keep how);

  const Clock& clock_;
  std::unique_ptr<Stripe[]> stripes_;
};

}  // namespace nfsrdma
