// SPDX-License-Identifier: Apache-2.0
// Arenas come from mmap, in granules of at least 2 MiB of one size class, and are kept until the
// pool dies; pages that were never used cost nothing. A class grows when its free list is empty
// and the budget allows one more buffer, so arenas never exceed the budget by more than a granule
// per class.
//
// Order among waiters: while somebody waits in a stage, acquire() refuses everyone else of it, or a
// stream of small requests could starve a large one for ever. Exempt is a message buffer for a call
// that is with the handler, because finishing a call may need one and frees more than it takes.
// Between stages the later ones are served first: what an earlier stage leaves free is enough for
// anybody of a later one. Nor do they starve the earlier ones, since all begin in kNewCall.
#include "rpcrdma/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define NFSRDMA_POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define NFSRDMA_UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define NFSRDMA_POISON(p, n) ((void)(p), (void)(n))
#define NFSRDMA_UNPOISON(p, n) ((void)(p), (void)(n))
#endif

namespace nfsrdma {

namespace {

struct SizeClass {
  std::size_t bytes;
  std::size_t per_arena;
};
// The extra 4 KiB in the large classes hold what surrounds a payload of a power of two.
constexpr SizeClass kSizeClasses[] = {
    {4096, 512},
    {64 << 10, 32},
    {256 << 10, 8},
    {(std::size_t{1} << 20) + 4096, 4},
    {BufferPool::kMaxBuffer, 1},
};

constexpr Duration kRetryAfter = std::chrono::milliseconds(200);

// What a call takes besides its data, whatever NFSoRDMA_INLINE is.
constexpr std::size_t kCallItself = 128 << 10;

// Whoever has waited that long may have others give way.
constexpr Duration kLongWait = std::chrono::seconds(10);
constexpr Duration kLookAtHolders = std::chrono::seconds(1);

/// What a peer may take for all that it holds, if others wait: half a minute, and time for half a
/// MiB a second.
Duration fair_time(std::size_t bytes) {
  constexpr Duration kLeast = std::chrono::seconds(30);
  constexpr Duration kMost = std::chrono::minutes(3);
  const auto mib = static_cast<Duration::rep>(bytes >> 20);
  return std::min(kLeast + mib * Duration(std::chrono::seconds(2)), kMost);
}

std::size_t class_for(std::size_t bytes) {
  std::size_t size_class = 0;
  while (kSizeClasses[size_class].bytes < bytes)
    ++size_class;
  return size_class;
}

}  // namespace

struct BufferPool::Arena {
  std::byte* data = nullptr;
  std::size_t size = 0;
  std::vector<MemoryRegion> regions;  // parallel to domains_

  ~Arena() {
    regions.clear();
    NFSRDMA_UNPOISON(data, size);
    if (data != nullptr) ::munmap(data, size);
  }
};

/// Serves the waiters from the loop, never from inside the release that made room.
class BufferPool::WakeWaiters final : public Deferred {
 public:
  explicit WakeWaiters(BufferPool& pool) : pool_(pool) {}

  void run_deferred() override {
    most_in_use_ = 0;
    for (std::size_t stage = kBufferStages; stage-- > 0;)
      serve(static_cast<BufferStage>(stage));
    // What those took and gave back who could not be served tells nothing new, only what came back
    // besides.
    if (pool_.in_use_ < most_in_use_) pool_.loop_.defer(*this);
  }

  bool serving() const { return serving_ != nullptr; }
  bool serving(BufferStage stage) const { return serving() && stage == stage_; }
  /// True when `waiter` is the one being served: it keeps its place.
  bool keeps_place(BufferWaiter& waiter, BufferStage stage) {
    if (serving_ != &waiter || stage != stage_) return false;
    enlisted_again_ = true;
    return true;
  }

 private:
  /// Until there is not enough for the first one: the others of its stage wait.
  void serve(BufferStage stage) {
    Turns& turns = pool_.turns_[static_cast<std::size_t>(stage)];
    stage_ = stage;
    enlisted_again_ = false;
    while (!enlisted_again_ && pool_.anybody_waits(turns)) {
      BufferShare::Turn& turn = *turns.front();
      BufferWaiter* waiter = turn.waiters.pop_front();
      turns.push_back(turn);  // not touched any more: its connection may end now
      const std::size_t before = pool_.in_use_;
      serving_ = waiter;
      waiter->on_buffers();
      serving_ = nullptr;
      if (enlisted_again_) most_in_use_ = std::max(most_in_use_, before);
    }
  }

  BufferPool& pool_;
  BufferWaiter* serving_ = nullptr;
  BufferStage stage_{};
  bool enlisted_again_ = false;
  std::size_t most_in_use_ = 0;  // when somebody could not be served
};

BufferPool::BufferPool(EventLoop& loop, std::size_t budget)
    : loop_(loop),
      budget_(std::max(budget, kLeastBudget)),
      wake_waiters_(std::make_unique<WakeWaiters>(*this)),
      retry_([this] { loop_.defer(*wake_waiters_); }),
      watch_([this] { watch_holders(); }) {
  static_assert(std::size(kSizeClasses) == kClasses);
  static_assert(static_cast<std::size_t>(BufferStage::kWithHandler) + 1 == kBufferStages);
  // By stage; the last is for one call's largest result or payload.
  const std::size_t for_handler = kMaxBuffer;
  const std::size_t for_whole_calls = for_handler + kCallItself;
  const std::size_t for_data = for_whole_calls + most_data() + kCallItself;
  left_free_ = {for_data + budget_ / 16, for_data, for_whole_calls, for_handler, 0};
}

BufferPool::~BufferPool() {
  NFSRDMA_CHECK(in_use_ == 0);
}

Result<void> BufferPool::add_domain(ProtectionDomain& domain) {
  std::vector<MemoryRegion> made;
  made.reserve(arenas_.size());
  for (auto& arena : arenas_) {
    NFSRDMA_TRY(MemoryRegion region,
                domain.register_memory({arena->data, arena->size}, Access::kLocal, nullptr));
    made.push_back(std::move(region));
  }
  for (std::size_t i = 0; i < arenas_.size(); ++i) {
    arenas_[i]->regions.push_back(std::move(made[i]));
  }
  domains_.push_back(&domain);
  return {};
}

void BufferPool::remove_domain(ProtectionDomain& domain) {
  auto found = std::find(domains_.begin(), domains_.end(), &domain);
  if (found == domains_.end()) return;
  const auto index = found - domains_.begin();
  for (auto& arena : arenas_)
    arena->regions.erase(arena->regions.begin() + index);
  domains_.erase(found);
}

bool BufferPool::grow(std::size_t size_class) {
  if (arenas_.size() > UINT16_MAX) return false;
  const SizeClass& shape = kSizeClasses[size_class];
  auto arena = std::make_unique<Arena>();
  const std::size_t size = shape.bytes * shape.per_arena;
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  arena->data = static_cast<std::byte*>(memory);
  arena->size = size;
  for (ProtectionDomain* domain : domains_) {
    auto region = domain->register_memory({arena->data, size}, Access::kLocal, nullptr);
    if (!region.ok()) {
      why_not_ = region.error();
      return false;
    }
    arena->regions.push_back(std::move(region).value());
  }
  auto& list = free_[size_class];
  std::size_t of_class = shape.per_arena;
  for (auto& other : arenas_) {
    if (other->size == size) of_class += shape.per_arena;
  }
  list.reserve(of_class);  // so that release() never allocates
  for (std::size_t i = shape.per_arena; i-- > 0;) {
    list.push_back({arena->data + i * shape.bytes, static_cast<std::uint16_t>(arenas_.size())});
  }
  NFSRDMA_POISON(arena->data, size);
  arenas_.push_back(std::move(arena));
  return true;
}

std::size_t BufferPool::charge(std::size_t bytes) {
  return bytes > kMaxBuffer ? 0 : kSizeClasses[class_for(bytes)].bytes;
}

bool BufferPool::fits(std::size_t bytes, BufferStage stage) const {
  return bytes + left_free_[static_cast<std::size_t>(stage)] <= budget_ - in_use_;
}

bool BufferPool::must_wait(BufferStage stage) {
  return !wake_waiters_->serving(stage) && anybody_waits(turns_[static_cast<std::size_t>(stage)]);
}

Buffer BufferPool::acquire(std::size_t bytes, BufferStage stage) {
  Buffer buffer;
  if (bytes > kMaxBuffer) return buffer;
  const std::size_t size_class = class_for(bytes);
  const std::size_t size = kSizeClasses[size_class].bytes;
  if (!fits(size, stage)) return buffer;
  const bool passes = size_class == 0 && stage == BufferStage::kWithHandler;
  if (!passes && must_wait(stage)) return buffer;
  auto& list = free_[size_class];
  if (list.empty() && !grow(size_class)) {
    grow_failed_ = true;
    return buffer;
  }
  const Free free = list.back();
  list.pop_back();
  in_use_ += size;
  NFSRDMA_UNPOISON(free.data, size);
  buffer.pool_ = this;
  buffer.data_ = free.data;
  buffer.size_ = static_cast<std::uint32_t>(size);
  buffer.arena_ = free.arena;
  buffer.size_class_ = static_cast<std::uint8_t>(size_class);
  return buffer;
}

Buffer BufferPool::acquire_window(std::size_t bytes) {
  Buffer buffer;
  bytes = FileWindow::whole_pages(bytes);
  if (bytes > kMaxBuffer || !fits(bytes, BufferStage::kWithHandler)) return buffer;
  if (must_wait(BufferStage::kWithHandler)) return buffer;
  if (free_windows_.empty()) {
    if (window_count_ == kMostWindows) return buffer;
    std::unique_ptr<FileWindow> window = FileWindow::reserve(kMaxBuffer);
    if (window == nullptr) return buffer;
    free_windows_.reserve(kMostWindows);  // so that release() never allocates
    free_windows_.push_back(static_cast<std::uint16_t>(window_count_));
    windows_[window_count_++] = std::move(window);
  }
  const std::uint16_t index = free_windows_.back();
  free_windows_.pop_back();
  in_use_ += bytes;
  buffer.pool_ = this;
  buffer.data_ = windows_[index]->data();
  buffer.size_ = static_cast<std::uint32_t>(bytes);
  buffer.arena_ = index;
  buffer.size_class_ = kWindow;
  return buffer;
}

void BufferPool::release(Buffer& buffer) {
  if (FileWindow* window = buffer.window()) {
    // One that cannot be emptied stays where it is, unused.
    if (window->hide()) free_windows_.push_back(buffer.arena_);
  } else {
    NFSRDMA_POISON(buffer.data_, buffer.size_);
    free_[buffer.size_class_].push_back({buffer.data_, buffer.arena_});
  }
  in_use_ -= buffer.size_;
  // Of those who are being served WakeWaiters sees for itself: a waiter that gives back what was
  // not enough would be served again at once, and so on without an end.
  if (!wake_waiters_->serving() && anybody_waits()) loop_.defer(*wake_waiters_);
}

bool BufferPool::anybody_waits(Turns& turns) {
  while (BufferShare::Turn* turn = turns.front()) {
    if (!turn->waiters.empty()) return true;
    turn->unlink();
  }
  return false;
}

bool BufferPool::anybody_waits() {
  return std::any_of(turns_.begin(), turns_.end(),
                     [this](Turns& turns) { return anybody_waits(turns); });
}

std::size_t BufferPool::waiting() {
  std::size_t count = 0;
  for (Turns& turns : turns_) {
    turns.for_each([&count](BufferShare::Turn& turn) {
      turn.waiters.for_each([&count](BufferWaiter&) { ++count; });
    });
  }
  return count;
}

std::uint32_t BufferPool::lkey(const Buffer& buffer, const ProtectionDomain& domain) const {
  if (buffer.window() != nullptr) return 0;  // for fabrics that read memory without one
  const Arena& arena = *arenas_[buffer.arena_];
  for (std::size_t i = 0; i < domains_.size(); ++i) {
    if (domains_[i] == &domain) return arena.regions[i].lkey();
  }
  return 0;
}

void BufferPool::wait_for_buffers(BufferWaiter& waiter, BufferShare& share, BufferStage stage) {
  Turns& turns = turns_[static_cast<std::size_t>(stage)];
  BufferShare::Turn& turn = share.turns_[static_cast<std::size_t>(stage)];
  turn.share = &share;
  if (wake_waiters_->keeps_place(waiter, stage)) {
    turn.waiters.push_front(waiter);
    turns.push_front(turn);
    if (std::exchange(grow_failed_, false)) retry_.arm(loop_, loop_.now() + kRetryAfter);
    return;
  }
  waiter.since_ = loop_.now();
  turn.waiters.push_back(waiter);
  if (!turn.linked()) turns.push_back(turn);
  if (!watch_.armed()) watch_.arm_after(loop_, kLookAtHolders);
  // Something may have been released before the waiter enlisted.
  if (in_use_ == 0) loop_.defer(*wake_waiters_);
  // The system had no memory, or the device could not register it: no release will tell when that
  // is over.
  if (std::exchange(grow_failed_, false)) retry_.arm(loop_, loop_.now() + kRetryAfter);
}

/// Anybody of another host; of a share the first in a stage has waited for longest.
bool BufferPool::waits_for_long(const std::string& but_of_host) {
  bool found = false;
  const TimePoint long_ago = loop_.now() - kLongWait;
  for (Turns& turns : turns_) {
    turns.for_each([&](BufferShare::Turn& turn) {
      const BufferWaiter* first = turn.waiters.front();
      if (found || first == nullptr || first->since_ > long_ago) return;
      const BufferHolder* holder = turn.share->holder;
      found = holder == nullptr || holder->host() != but_of_host;
    });
  }
  return found;
}

void BufferPool::watch_holders() {
  if (!anybody_waits()) return;
  watch_.arm_after(loop_, kLookAtHolders);
  // Whoever waited in front may have gone, without anything being released.
  loop_.defer(*wake_waiters_);
  if (!waits_for_long({})) return;
  struct Overdue {
    std::size_t bytes = 0;
    std::vector<BufferHolder*> holders;
  };
  std::map<std::string, Overdue> hosts;
  holders_.for_each([&](BufferHolder& holder) {
    const HeldBuffers held = holder.held();
    if (held.bytes == 0 || held.since + fair_time(held.bytes) > loop_.now()) return;
    Overdue& of_host = hosts[holder.host()];
    of_host.bytes += held.bytes;
    of_host.holders.push_back(&holder);
  });
  std::erase_if(hosts, [this](const auto& host) { return !waits_for_long(host.first); });
  const auto most = std::max_element(hosts.begin(), hosts.end(), [](const auto& a, const auto& b) {
    return a.second.bytes < b.second.bytes;
  });
  if (most == hosts.end()) return;
  for (BufferHolder* holder : most->second.holders)
    holder->give_way();
}

std::size_t BufferPool::arena_bytes() const {
  std::size_t total = 0;
  for (const auto& arena : arenas_)
    total += arena->size;
  return total;
}

}  // namespace nfsrdma
