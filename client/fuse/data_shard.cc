// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/data_shard.h"

#include <pthread.h>

#include "rpcrdma/base/log.h"

namespace nfsrdma {

/// One READ or WRITE on its way to the shard and back. Shared, since the word that it is cancelled
/// may still be in the shard's mailbox when it is over.
struct DataShard::Transfer final : Cancellable, std::enable_shared_from_this<Transfer> {
  Transfer(DataShard& s, const OpContext& its_op, const FileHandle& its_file) : shard(s) {
    op.identity = its_op.identity;
    op.cancel = &token;
    if (its_op.right != nullptr) {
      right = *its_op.right;
      op.right = &right;
    }
    file = its_file;
  }

  static Error interrupted() { return {Errc::kSystem, EINTR, "interrupted"}; }

  void on_cancel() override {
    shard.loop_->post([self = shared_from_this()] { self->token.cancel(); });
  }

  std::size_t bytes() const { return into.size() + data.size(); }

  DataShard& shard;
  OpContext op;
  DataRight right;
  CancelToken token;  // of the shard's thread
  FileHandle file;
  std::uint64_t offset = 0;
  MutableByteSpan into;
  ByteSpan data;
  Stability stability = Stability::kUnstable;
  bool is_read = false;
  ReadAnswer* answer = nullptr;
  // Until the shard has carried it out:
  Result<ReadResult> was_read = interrupted();
  Result<WriteResult> was_written = interrupted();
  std::coroutine_handle<> waiter;
};

/// Suspends a coroutine of the main thread while the transfer is on the shard. What is cancelled
/// already does not go there.
struct DataShard::HandOver {
  CancelToken* cancel;  // of the main thread, may be null
  std::shared_ptr<Transfer> transfer;

  bool await_ready() const { return cancel != nullptr && cancel->cancelled(); }
  void await_suspend(std::coroutine_handle<> waiter) const {
    transfer->waiter = waiter;
    DataShard& shard = transfer->shard;
    ++shard.transfers_;
    shard.bytes_under_way_ += transfer->bytes();
    if (cancel != nullptr) cancel->enlist(*transfer);
    shard.loop_->post(
        [moved = transfer] { moved->shard.tasks_.spawn(moved->shard.carry_out(moved)); });
  }
  void await_resume() const {}
};

Result<std::unique_ptr<DataShard>> DataShard::start(EventLoop& main,
                                                    std::unique_ptr<ShardAttacher> attacher) {
  Result<std::unique_ptr<EventLoop>> loop = EventLoop::create();
  if (!loop.ok()) return loop.error();
  return std::unique_ptr<DataShard>(
      new DataShard(main, std::move(attacher), std::move(loop).value()));
}

DataShard::DataShard(EventLoop& main, std::unique_ptr<ShardAttacher> attacher,
                     std::unique_ptr<EventLoop> loop)
    : main_(main),
      loop_(std::move(loop)),
      attacher_(std::move(attacher)),
      thread_([this] { serve(); }) {}

DataShard::~DataShard() {
  NFSRDMA_CHECK(transfers_ == 0);
  loop_->stop();
  thread_.join();
}

void DataShard::serve() {
  ::pthread_setname_np(::pthread_self(), "data shard");
  tasks_.spawn(attach());
  loop_->run();
  if (mount_ != nullptr && !aborted_) tasks_.spawn(mount_->end_session());
  // No transfer is under way; attach() may be.
  while (tasks_.running() != 0)
    loop_->turn(Duration(-1));
  mount_.reset();
}

Task<void> DataShard::attach() {
  std::string detail;
  Result<std::unique_ptr<AsyncMount>> made = co_await attacher_->attach(*loop_, &detail);
  if (made.ok()) {
    mount_ = std::move(made).value();
    detail.clear();
  } else if (detail.empty()) {
    detail = made.error().message();
  }
  const bool usable = mount_ != nullptr;
  ShardReport first;
  if (usable) first = report();
  if (usable && aborted_) mount_->abort_all();
  main_.post([self = std::weak_ptr(self_), usable, detail, first] {
    if (auto alive = self.lock()) (*alive)->attached(usable, detail, first);
  });
}

void DataShard::attached(bool usable, std::string why, ShardReport first) {
  state_ = usable ? State::kUsable : State::kFailed;
  failure_ = std::move(why);
  last_report_ = std::move(first);
}

Task<void> DataShard::carry_out(std::shared_ptr<Transfer> transfer) {
  Transfer& t = *transfer;
  if (t.is_read) {
    Result<ReadResult> done = co_await mount_->read(t.op, t.file, t.offset, t.into);
    if (t.answer != nullptr && done.ok() && done->count == t.into.size()) t.answer->whole(t.into);
    t.was_read = std::move(done);
  } else {
    t.was_written = co_await mount_->write(t.op, t.file, t.offset, t.data, t.stability);
  }
  main_.post([moved = std::move(transfer)] { moved->shard.came_back(*moved); });
}

void DataShard::came_back(Transfer& transfer) {
  transfer.unlink();
  --transfers_;
  bytes_under_way_ -= transfer.bytes();
  transfer.waiter.resume();
}

Task<Result<ReadResult>> DataShard::read(const OpContext& op, const FileHandle& file,
                                         std::uint64_t offset, MutableByteSpan into,
                                         ReadAnswer* answer) {
  auto transfer = std::make_shared<Transfer>(*this, op, file);
  transfer->is_read = true;
  transfer->offset = offset;
  transfer->into = into;
  transfer->answer = answer;
  const HandOver hand_over{op.cancel, transfer};
  co_await hand_over;
  co_return std::move(transfer->was_read);
}

Task<Result<WriteResult>> DataShard::write(const OpContext& op, const FileHandle& file,
                                           std::uint64_t offset, ByteSpan data,
                                           Stability stability) {
  auto transfer = std::make_shared<Transfer>(*this, op, file);
  transfer->offset = offset;
  transfer->data = data;
  transfer->stability = stability;
  const HandOver hand_over{op.cancel, transfer};
  co_await hand_over;
  co_return std::move(transfer->was_written);
}

void DataShard::join_address(const SocketAddress& address) {
  ++joining_;
  loop_->post([this, address] { tasks_.spawn(join(address)); });
}

Task<void> DataShard::join(SocketAddress address) {
  std::string detail;
  Result<void> done;
  if (!aborted_) done = co_await mount_->join_address(address, &detail);
  if (!done.ok()) log_info("trunking: {}: {}", address.host_text(), detail);
  main_.post([self = std::weak_ptr(self_)] {
    if (auto alive = self.lock()) --(*alive)->joining_;
  });
}

void DataShard::abort_all() {
  loop_->post([this] {
    aborted_ = true;
    if (mount_ != nullptr) mount_->abort_all();
  });
}

ShardReport ShardReport::of(const AsyncMount& mount) {
  return {mount.connections(), mount.totals(), mount.calls_outstanding(), mount.exposed_regions()};
}

ShardReport DataShard::report() const {
  return ShardReport::of(*mount_);
}

std::shared_ptr<DataShard::Question> DataShard::ask() {
  auto question = std::make_shared<Question>();
  loop_->post([this, question] {
    std::lock_guard lock(question->mutex_);
    if (mount_ != nullptr) question->report_ = report();
    question->done_ = true;
    question->answered_.notify_one();
  });
  return question;
}

ShardReport DataShard::answer(Question& question, TimePoint deadline) {
  std::unique_lock lock(question.mutex_);
  const bool in_time =
      question.answered_.wait_until(lock, deadline, [&question] { return question.done_; });
  if (in_time) last_report_ = question.report_;
  return last_report_;
}

}  // namespace nfsrdma
