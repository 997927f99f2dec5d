// SPDX-License-Identifier: Apache-2.0
// See completion_queue.h.
#include "rpcrdma/verbs/completion_queue.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>

#include "rpcrdma/verbs/queue_pair.h"
#include "rpcrdma/verbs/receive_queue.h"
#include "rpcrdma/verbs/window.h"

namespace nfsrdma::verbs {

namespace {
// Each acknowledgement takes a mutex (ibv_ack_cq_events(3)).
constexpr unsigned kAckBatch = 64;
// Calls of the handler in one go; then the loop's others get their turn.
constexpr int kRounds = 8;

/// Whose interrupt a queue raises: all loops take turns with a device's, so that one CPU does not
/// serve all of them. Mounts are processes of one queue each, and do not all begin with the first.
int next_vector(const ibv_context& context) {
  if (context.num_comp_vectors <= 1) return 0;
  static std::mutex mutex;
  static std::unordered_map<const ibv_context*, unsigned> next;
  std::lock_guard lock(mutex);
  unsigned& turn = next.try_emplace(&context, static_cast<unsigned>(::getpid())).first->second;
  return static_cast<int>(turn++ % static_cast<unsigned>(context.num_comp_vectors));
}

/// Of `receives`, by a queue pair alone.
std::uint64_t most_taken(const VerbsCompletionQueue::Demand& demand, const ReceiveQueue& receives) {
  return demand.own_receives != 0 ? demand.own_receives : receives.depth();
}

/// By queue pairs that can take `taken`: buffers are posted once each, whoever takes them.
std::uint64_t most_ended(std::uint64_t taken, const ReceiveQueue& receives) {
  return std::min<std::uint64_t>(taken, receives.depth());
}
}  // namespace

Result<std::unique_ptr<CompletionQueue>> VerbsCompletionQueue::create(VerbsDevice& device,
                                                                      EventLoop& loop,
                                                                      CompletionHandler& handler,
                                                                      std::uint32_t depth) {
  std::unique_ptr<VerbsCompletionQueue> queue(new VerbsCompletionQueue(device, loop, handler));
  queue->channel_ =
      own(device.commands(), [&] { return ::ibv_create_comp_channel(device.context()); });
  if (!queue->channel_) return system_error("ibv_create_comp_channel");
  const int fd = queue->channel_->fd;
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
    return system_error("completion channel: O_NONBLOCK");
  }
  depth = std::clamp(depth, 1U, device.traits().max_completions);
  if (device.traits().memory_windows) {
    // Binds are ours: who asks for the queue knows nothing of them. Not every provider can make it
    // larger later.
    depth = std::min(depth + binds_beside(depth), device.traits().max_completions);
  }
  const int vector = next_vector(*device.context());
  queue->cq_ = own(device.commands(), [&] {
    return ::ibv_create_cq(device.context(), static_cast<int>(depth), nullptr,
                           queue->channel_.get(), vector);
  });
  if (!queue->cq_) return device.queue_refusal("ibv_create_cq", errno);
  if (!queue->arm()) return system_error("ibv_req_notify_cq");
  NFSRDMA_CHECK_OK(loop.add(fd, EPOLLIN, *queue));
  queue->watching_ = true;
  device.add_completion_queue(queue->get(), handler);
  return std::unique_ptr<CompletionQueue>(std::move(queue));
}

VerbsCompletionQueue::~VerbsCompletionQueue() {
  if (gone_ != nullptr) *gone_ = true;
  if (watching_) loop_.remove(channel_->fd, *this);
  device_.remove_completion_queue(get());
  acknowledge();
  cq_.reset();
  channel_.reset();
  device_.remove_user();
}

bool VerbsCompletionQueue::arm() {
  const auto call = [this] { return ::ibv_req_notify_cq(cq_.get(), 0); };
  // siw's is a store into memory that the kernel shares.
  armed_ = (device_.traits().siw ? call() : device_.data_call(call)) == 0;
  return armed_;
}

void VerbsCompletionQueue::acknowledge() {
  if (unacknowledged_ > 0) ::ibv_ack_cq_events(cq_.get(), unacknowledged_);
  unacknowledged_ = 0;
}

Result<void> VerbsCompletionQueue::reserve(const Demand& demand, const ReceiveQueue& receives) {
  const auto found = fed_by_.find(&receives);
  const std::uint64_t before = found == fed_by_.end() ? 0 : found->second;
  const std::uint64_t after = before + most_taken(demand, receives);
  const std::uint64_t more =
      demand.sends + most_ended(after, receives) - most_ended(before, receives);
  if (!grow(reserved_ + more)) {
    if (refusals_.allow()) {
      log_warning(
          "verbs: {}: no further connection: its completion queue holds {} entries, {} are "
          "reserved, {} more are needed. More threads, fewer connections or a smaller send queue "
          "help",
          device_.info().name, cq_->cqe, reserved_, more);
    }
    return Error{Errc::kExhausted, 0, "completion queue full: too many connections"};
  }
  reserved_ += more;
  fed_by_[&receives] = after;
  return {};
}

void VerbsCompletionQueue::release(const Demand& demand, const ReceiveQueue& receives) {
  const auto found = fed_by_.find(&receives);
  const std::uint64_t before = found->second;
  const std::uint64_t after = before - most_taken(demand, receives);
  reserved_ -= demand.sends + most_ended(before, receives) - most_ended(after, receives);
  found->second = after;
  if (after == 0) fed_by_.erase(found);
}

bool VerbsCompletionQueue::grow(std::uint64_t entries) {
  const auto holds = [&] { return static_cast<std::uint64_t>(cq_->cqe) >= entries; };
  if (holds()) return true;
  const std::uint64_t limit = device_.traits().max_completions;
  if (entries > limit) return false;
  // By doubling: growing copies the queue.
  const auto size = static_cast<int>(std::min(std::bit_ceil(entries), limit));
  const int err = device_.commands().run([&] { return ::ibv_resize_cq(cq_.get(), size); });
  if (err != 0) log_debug("verbs: {}", device_.queue_refusal("ibv_resize_cq", err).message());
  return holds();
}

std::uint32_t VerbsCompletionQueue::attach(VerbsQueuePair& queue_pair, std::uint32_t number) {
  do {
    next_owner_ = (next_owner_ + 1) & WorkId::kOwnerMask;
  } while (by_owner_.count(next_owner_) != 0);
  by_owner_[next_owner_] = &queue_pair;
  by_number_[number] = &queue_pair;
  return next_owner_;
}

void VerbsCompletionQueue::take_out() {
  std::array<ibv_wc, 16> batch;
  for (int got; (got = ::ibv_poll_cq(cq_.get(), batch.size(), batch.data())) > 0;) {
    taken_.insert(taken_.end(), batch.begin(), batch.begin() + got);
  }
}

void VerbsCompletionQueue::discard_receives(VerbsQueuePair& queue_pair, std::uint32_t number) {
  take_out();
  const auto give_back = [this](const WorkId& id) {
    if (ReceiveQueue* receives = device_.receive_queue(id.owner); receives != nullptr) {
      receives->give_back(id.slot);
    }
    return true;
  };
  std::erase_if(ready_, [&](const Ready& ready) {
    return ready.completion.queue_pair == &queue_pair &&
           ready.completion.opcode == WorkOpcode::kReceive && give_back(ready.receive);
  });
  std::erase_if(taken_, [&](const ibv_wc& wc) {
    const WorkId id = WorkId::decode(wc.wr_id);
    return id.kind == WorkKind::kReceive && wc.qp_num == number && give_back(id);
  });
  by_number_.erase(number);
  if (!taken_.empty()) loop_.defer(*this);
}

void VerbsCompletionQueue::forget(VerbsQueuePair& queue_pair, std::uint32_t owner) {
  std::erase_if(taken_, [&](const ibv_wc& wc) {
    const WorkId id = WorkId::decode(wc.wr_id);
    return id.kind == WorkKind::kSendQueue && id.owner == owner;
  });
  std::erase_if(ready_,
                [&](const Ready& ready) { return ready.completion.queue_pair == &queue_pair; });
  by_owner_.erase(owner);
}

void VerbsCompletionQueue::report(const WorkCompletion& completion) {
  ready_.push_back({completion, {}});
  if (!polling_) loop_.defer(*this);
}

bool VerbsCompletionQueue::run_handler() {
  dry_ = false;
  handler_.on_completions();
  return dry_;
}

void VerbsCompletionQueue::drive() {
  bool gone = false;
  gone_ = &gone;
  driving_ = true;
  bool more = true;
  for (int round = 0; more && round < kRounds; ++round) {
    emptied_ = false;
    handler_.on_completions();
    if (gone) return;
    // A handler that leaves something comes back by itself.
    more = emptied_ && (fetch() || wait_for_more());
  }
  driving_ = false;
  gone_ = nullptr;
  if (more) loop_.defer(*this);
}

/// Armed before the last look: what comes later raises an event, what came before is seen. True: it
/// came before.
bool VerbsCompletionQueue::wait_for_more() {
  if (armed_) return false;
  if (!loop_.polls()) return arm() && fetch();
  loop_.look_at(*this);
  return false;
}

bool VerbsCompletionQueue::look(bool last) {
  if (armed_) return false;
  if (!fetch()) {
    if (!last) {
      loop_.look_at(*this);
      return false;
    }
    if (!arm() || !fetch()) return false;
  }
  drive();
  return true;
}

void VerbsCompletionQueue::run_deferred() {
  drive();
}

void VerbsCompletionQueue::on_fd_ready(std::uint32_t events) {
  if ((events & EPOLLIN) == 0) {
    loop_.remove(channel_->fd, *this);  // the device was unplugged
    watching_ = false;
    return;
  }
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  // Armed once, it raises one event.
  if (::ibv_get_cq_event(channel_.get(), &cq, &context) == 0) {
    armed_ = false;
    if (++unacknowledged_ >= kAckBatch) acknowledge();
  }
  drive();
}

std::size_t VerbsCompletionQueue::poll(std::span<WorkCompletion> out) {
  std::size_t count = take_ready(out);
  if (count < out.size() && !armed_ && !driving_) {
    arm();
    count += take_ready(out.subspan(count));
  }
  dry_ = emptied_ = count < out.size();
  return count;
}

bool VerbsCompletionQueue::deliver(const Ready& ready, WorkCompletion* out) {
  *out = ready.completion;
  if (out->opcode != WorkOpcode::kReceive) return true;
  ReceiveQueue* receives = device_.receive_queue(ready.receive.owner);
  return receives != nullptr && receives->take(ready.receive.slot, &out->wr_id);
}

std::size_t VerbsCompletionQueue::take_ready(std::span<WorkCompletion> out) {
  std::size_t count = 0;
  polling_ = true;
  for (;;) {
    while (count < out.size() && !ready_.empty()) {
      if (deliver(ready_.front(), &out[count])) ++count;
      ready_.pop_front();
    }
    if (count == out.size() || !translate_some()) break;
  }
  polling_ = false;
  return count;
}

bool VerbsCompletionQueue::fetch() {
  polling_ = true;
  while (ready_.empty() && translate_some()) {
  }
  polling_ = false;
  return !ready_.empty();
}

/// What was taken out early comes first.
bool VerbsCompletionQueue::translate_some() {
  if (!taken_.empty()) {
    const ibv_wc wc = taken_.front();
    taken_.pop_front();
    translate(wc);
    return true;
  }
  std::array<ibv_wc, 16> batch;
  const int got = ::ibv_poll_cq(cq_.get(), batch.size(), batch.data());
  for (int i = 0; i < got; ++i)
    translate(batch[static_cast<std::size_t>(i)]);
  return got > 0;
}

void VerbsCompletionQueue::translate(const ibv_wc& wc) {
  const WorkId id = WorkId::decode(wc.wr_id);
  if (id.kind == WorkKind::kReceive) return translate_receive(wc, id);
  if (auto owner = by_owner_.find(id.owner); owner != by_owner_.end()) {
    owner->second->send_ended(id.slot, wc.status);
  }
}

void VerbsCompletionQueue::translate_receive(const ibv_wc& wc, const WorkId& id) {
  ReceiveQueue* receives = device_.receive_queue(id.owner);
  if (receives == nullptr) return;
  auto found = by_number_.find(wc.qp_num);
  VerbsQueuePair* queue_pair = found == by_number_.end() ? nullptr : found->second;
  if (wc.status != IBV_WC_SUCCESS || queue_pair == nullptr || queue_pair->closed()) {
    receives->give_back(id.slot);
    if (queue_pair != nullptr) queue_pair->receive_failed(wc.status);
    return;
  }
  WorkCompletion completion;
  completion.opcode = WorkOpcode::kReceive;
  completion.byte_count = wc.byte_len;
  completion.queue_pair = queue_pair;
  if ((wc.wc_flags & device_.traits().invalidated_flag) != 0) {
    completion.invalidated = true;
    completion.invalidated_handle = wc.invalidated_rkey;
    queue_pair->invalidated(wc.invalidated_rkey);
  }
  queue_pair->message_arrived();
  ready_.push_back({completion, id});
}

}  // namespace nfsrdma::verbs
