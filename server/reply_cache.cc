// SPDX-License-Identifier: Apache-2.0
// See reply_cache.h. Each stripe is a small cache of its own: a hash table of entries, and the
// clients that own them in a heap by bytes held, the largest first.
#include "server/reply_cache.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "rpcrdma/base/check.h"

namespace nfsrdma {

class ReplyCache::Entry : public ListNode<Entry> {
 public:
  Key key;
  std::size_t hash = 0;
  Entry* next_in_bucket = nullptr;
  Client* client = nullptr;
  std::uint64_t connection = 0;
  ReplayWaiter* waiter = nullptr;
  TimePoint finished{};
  std::uint32_t body_size = 0;
  bool running = false;
  bool brief = false;
  std::unique_ptr<std::byte[]> long_body;
  std::array<std::byte, kInlineBody> body;

  const std::byte* results() const { return long_body ? long_body.get() : body.data(); }
  std::size_t cost() const { return sizeof(Entry) + (long_body ? body_size : 0); }
};

struct ReplyCache::Client {
  std::array<std::uint8_t, 16> address{};
  std::size_t bytes = 0;
  std::size_t heap_index = 0;
  std::size_t entries = 0;
  // Oldest first; running ones are in no list.
  IntrusiveList<Entry, Entry> finished;
  IntrusiveList<Entry, Entry> brief;
  std::size_t brief_count = 0;
  Entry* oldest() {
    return brief_count > kFewBrief || finished.empty() ? brief.front() : finished.front();
  }
};

namespace {

struct AddressHash {
  std::size_t operator()(const std::array<std::uint8_t, 16>& a) const {
    std::uint64_t high, low;
    std::memcpy(&high, a.data(), 8);
    std::memcpy(&low, a.data() + 8, 8);
    return (high * 0x9e3779b97f4a7c15u) ^ (low * 0xc2b2ae3d27d4eb4fu) ^ (low >> 29);
  }
};

std::uint32_t crc32c(std::uint32_t seed, const void* bytes, std::size_t size) {
  // The library takes a pointer to non-const and does not write.
  return ::crc32_iscsi(static_cast<unsigned char*>(const_cast<void*>(bytes)),
                       static_cast<int>(size), seed);
}

}  // namespace

struct alignas(64) ReplyCache::Stripe {
  mutable std::mutex mutex;
  std::size_t max_bytes = 0;
  std::size_t bytes = 0;
  std::vector<Entry*> buckets;
  std::unordered_map<std::array<std::uint8_t, 16>, std::unique_ptr<Client>, AddressHash> clients;
  std::vector<Client*> heap;  // the client that holds most in front
  std::vector<std::unique_ptr<Entry[]>> slabs;
  std::vector<Entry*> free;
  Stats stats;
  static constexpr std::size_t kSlab = 16;

  std::size_t bucket_of(std::size_t hash) const { return hash & (buckets.size() - 1); }
  Entry* find(const Key& key, std::size_t hash) const {
    for (Entry* e = buckets[bucket_of(hash)]; e != nullptr; e = e->next_in_bucket) {
      if (e->hash == hash && e->key == key) return e;
    }
    return nullptr;
  }
  void sift_up(std::size_t at);
  void sift_down(std::size_t at);
  void place(std::size_t at, Client* client) {
    heap[at] = client;
    client->heap_index = at;
  }
  void charge(Client& client, std::size_t n);
  void discharge(Client& client, std::size_t n);
  Client& client_of(const std::array<std::uint8_t, 16>& address);
  /// Frees the oldest answer of the largest holder that has one; false when all are running.
  bool evict_one();
  bool make_room(std::size_t wanted);
  Entry* take_entry();
  void remove(Entry& entry);
};

void ReplyCache::Stripe::sift_up(std::size_t at) {
  Client* moving = heap[at];
  while (at > 0 && heap[(at - 1) / 2]->bytes < moving->bytes) {
    place(at, heap[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  place(at, moving);
}

void ReplyCache::Stripe::sift_down(std::size_t at) {
  Client* moving = heap[at];
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= heap.size()) break;
    if (child + 1 < heap.size() && heap[child + 1]->bytes > heap[child]->bytes) ++child;
    if (heap[child]->bytes <= moving->bytes) break;
    place(at, heap[child]);
    at = child;
  }
  place(at, moving);
}

void ReplyCache::Stripe::charge(Client& client, std::size_t n) {
  bytes += n;
  client.bytes += n;
  sift_up(client.heap_index);
}

void ReplyCache::Stripe::discharge(Client& client, std::size_t n) {
  bytes -= n;
  client.bytes -= n;
  sift_down(client.heap_index);
}

ReplyCache::Client& ReplyCache::Stripe::client_of(const std::array<std::uint8_t, 16>& address) {
  std::unique_ptr<Client>& slot = clients[address];
  if (slot == nullptr) {
    slot = std::make_unique<Client>();
    slot->address = address;
    heap.push_back(slot.get());
    slot->heap_index = heap.size() - 1;
  }
  return *slot;
}

bool ReplyCache::Stripe::evict_one() {
  if (heap.empty()) return false;
  if (Entry* oldest = heap.front()->oldest()) {
    ++stats.evicted;
    remove(*oldest);
    return true;
  }
  // The largest holder only has calls that are running. Rare; look for the next largest.
  Client* largest = nullptr;
  for (Client* client : heap) {
    if (client->oldest() == nullptr) continue;
    if (largest == nullptr || client->bytes > largest->bytes) largest = client;
  }
  if (largest == nullptr) return false;
  ++stats.evicted;
  remove(*largest->oldest());
  return true;
}

bool ReplyCache::Stripe::make_room(std::size_t wanted) {
  if (wanted > max_bytes) return false;
  while (bytes > max_bytes - wanted) {
    if (!evict_one()) return false;
  }
  return true;
}

ReplyCache::Entry* ReplyCache::Stripe::take_entry() {
  if (free.empty()) {
    slabs.push_back(std::make_unique<Entry[]>(kSlab));
    free.reserve(slabs.size() * kSlab);
    for (std::size_t i = 0; i < kSlab; ++i)
      free.push_back(&slabs.back()[i]);
  }
  Entry* entry = free.back();
  free.pop_back();
  return entry;
}

void ReplyCache::Stripe::remove(Entry& entry) {
  Entry** link = &buckets[bucket_of(entry.hash)];
  while (*link != &entry)
    link = &(*link)->next_in_bucket;
  *link = entry.next_in_bucket;
  entry.unlink();
  Client& client = *entry.client;
  if (std::exchange(entry.brief, false)) --client.brief_count;
  discharge(client, entry.cost());
  --stats.entries;
  entry.long_body.reset();
  entry.waiter = nullptr;
  free.push_back(&entry);
  if (--client.entries > 0) return;
  Client* last = heap.back();
  heap.pop_back();
  if (last != &client) {
    const std::size_t hole = client.heap_index;
    place(hole, last);
    sift_up(hole);
    sift_down(last->heap_index);
  }
  clients.erase(client.address);
}

ReplyCache::ReplyCache(std::size_t max_bytes, const Clock& clock)
    : clock_(clock), stripes_(std::make_unique<Stripe[]>(kStripes)) {
  for (std::size_t i = 0; i < kStripes; ++i) {
    Stripe& stripe = stripes_[i];
    stripe.max_bytes = max_bytes / kStripes;
    stripe.buckets.resize(
        std::bit_ceil(std::max<std::size_t>(stripe.max_bytes / sizeof(Entry), 1)));
  }
}

ReplyCache::~ReplyCache() = default;

ReplyCache::Key ReplyCache::make_key(const SocketAddress& client, std::uint32_t xid,
                                     std::uint32_t program, std::uint32_t version,
                                     std::uint32_t procedure, ByteSpan arguments,
                                     ByteSpan reduced) {
  Key key;
  if (client.is_v6()) {
    std::memcpy(key.client.data(), &reinterpret_cast<const sockaddr_in6*>(client.data())->sin6_addr,
                16);
  } else {
    key.client[10] = key.client[11] = 0xff;
    std::memcpy(key.client.data() + 12,
                &reinterpret_cast<const sockaddr_in*>(client.data())->sin_addr, 4);
  }
  key.xid = xid;
  key.program = program;
  key.version = version;
  key.procedure = procedure;
  key.length = static_cast<std::uint32_t>(arguments.size() + reduced.size());
  key.checksum = ~0u;
  for (const ByteSpan part : {arguments, reduced})
    key.checksum = crc32c(key.checksum, part.data(), std::min(part.size(), kChecksummedBytes));
  return key;
}

ReplyCache::Stripe& ReplyCache::stripe_of(const Key& key, std::size_t* hash) const {
  static_assert(std::has_unique_object_representations_v<Key>);
  const std::uint64_t crc = crc32c(0x5bd1e995u, &key, sizeof key);
  *hash = static_cast<std::size_t>((crc * 0x9e3779b97f4a7c15u) >> 20);
  return stripes_[crc % kStripes];
}

ReplyCache::Verdict ReplyCache::begin(const Key& key, std::uint64_t connection,
                                      ReplayWaiter& waiter, Entry** entry, MutableByteSpan room,
                                      std::size_t* size) {
  std::size_t hash = 0;
  Stripe& stripe = stripe_of(key, &hash);
  const TimePoint now = clock_.now();
  ReplayWaiter* superseded = nullptr;
  Verdict verdict = Verdict::kNew;
  {
    std::lock_guard lock(stripe.mutex);
    Entry* found = stripe.find(key, hash);
    if (found != nullptr && !found->running && now - found->finished > kLifetime) {
      stripe.remove(*found);
      found = nullptr;
    }
    if (found == nullptr) {
      ++stripe.stats.misses;
      if (!stripe.make_room(sizeof(Entry))) {
        ++stripe.stats.uncached;
        return Verdict::kUncached;
      }
      Entry* made = stripe.take_entry();
      made->key = key;
      made->hash = hash;
      made->connection = connection;
      made->running = true;
      made->body_size = 0;
      made->client = &stripe.client_of(key.client);
      ++made->client->entries;
      made->next_in_bucket = stripe.buckets[stripe.bucket_of(hash)];
      stripe.buckets[stripe.bucket_of(hash)] = made;
      stripe.charge(*made->client, sizeof(Entry));
      ++stripe.stats.entries;
      *entry = made;
    } else if (!found->running) {
      ++stripe.stats.hits;
      *size = found->body_size;
      if (*size <= room.size()) std::memcpy(room.data(), found->results(), *size);
      verdict = Verdict::kReplay;
    } else if (found->connection == connection) {
      ++stripe.stats.hits;
      verdict = Verdict::kDrop;
    } else {
      ++stripe.stats.hits;
      superseded = std::exchange(found->waiter, &waiter);
      verdict = Verdict::kWait;
    }
  }
  if (superseded != nullptr) superseded->on_superseded();
  return verdict;
}

void ReplyCache::end(Entry* entry, ByteSpan results, bool keep, Keep how) {
  std::size_t hash = 0;
  Stripe& stripe = stripe_of(entry->key, &hash);
  ReplayWaiter* waiter = nullptr;
  {
    std::lock_guard lock(stripe.mutex);
    NFSRDMA_CHECK(entry->running);
    waiter = std::exchange(entry->waiter, nullptr);
    const bool is_long = results.size() > kInlineBody;
    keep = keep && results.size() <= kMaxBody && (!is_long || stripe.make_room(results.size()));
    if (!keep) {
      stripe.remove(*entry);
    } else {
      entry->body_size = static_cast<std::uint32_t>(results.size());
      if (is_long) {
        entry->long_body = std::make_unique<std::byte[]>(results.size());
        std::memcpy(entry->long_body.get(), results.data(), results.size());
        stripe.charge(*entry->client, results.size());
      } else if (!results.empty()) {
        std::memcpy(entry->body.data(), results.data(), results.size());
      }
      entry->running = false;
      entry->finished = clock_.now();
      Client& client = *entry->client;
      if (how == Keep::kLong) {
        client.finished.push_back(*entry);
      } else {
        entry->brief = true;
        client.brief.push_back(*entry);
        if (++client.brief_count > kMostBrief) stripe.remove(*client.brief.front());
      }
    }
  }
  if (waiter != nullptr) waiter->on_original_done();
}

void ReplyCache::finish(Entry* entry, ByteSpan results, Keep keep) {
  end(entry, results, true, keep);
}

void ReplyCache::abandon(Entry* entry) {
  end(entry, {}, false, Keep::kLong);
}

ReplyCache::Stats ReplyCache::stats() const {
  Stats sum;
  for (std::size_t i = 0; i < kStripes; ++i) {
    const Stripe& stripe = stripes_[i];
    std::lock_guard lock(stripe.mutex);
    sum.entries += stripe.stats.entries;
    sum.bytes += stripe.bytes;
    sum.hits += stripe.stats.hits;
    sum.misses += stripe.stats.misses;
    sum.evicted += stripe.stats.evicted;
    sum.uncached += stripe.stats.uncached;
  }
  return sum;
}

}  // namespace nfsrdma
