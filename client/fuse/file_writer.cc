// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/file_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "client/fuse/file_system.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma {
namespace {

/// Wakes waiters when the request's caller is killed, for as long as it lives.
class WakeOnInterrupt {
 public:
  WakeOnInterrupt(Interrupt* interrupt, WaitList& list) : interrupt_(interrupt) {
    if (interrupt_ != nullptr) interrupt_->on_raise = [&list] { list.wake_all(); };
  }
  ~WakeOnInterrupt() {
    if (interrupt_ != nullptr) interrupt_->on_raise = nullptr;
  }
  bool raised() const { return interrupt_ != nullptr && interrupt_->raised; }

 private:
  Interrupt* interrupt_;
};

// A flush that has waited this often while others kept writing makes them wait.
constexpr int kPatience = 256;

}  // namespace

std::uint64_t default_write_budget() {
  const std::uint64_t memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                               static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::clamp(memory / 32, std::uint64_t{64} << 20, std::uint64_t{1} << 30);
}

FileWriter::FileWriter(FileSystem& file_system, Node& node, std::uint32_t write_size)
    : fs_(file_system), node_(node), behind_(write_size) {
  fs_.writers.push_back(*this);
}

FileWriter::~FileWriter() {
  // Of a file that is no more nobody misses it.
  if (lost() != 0 && lost() != ESTALE) {
    log_error("{}: data that was written is lost, and nobody was left to be told: {}",
              fs_.path_of(node_), std::strerror(error_));
  }
  fs_.budget.held -= accounted_;
}

void FileWriter::relieve(const NodeRef& node) {
  if (!fs_.budget.tight() || committing_ || !behind_.has_unstable()) return;
  fs_.tasks.spawn(commit(node));
}

void FileWriter::account(const NodeRef& node) {
  // The kernel may forget the file before its data is stable.
  keep_ = behind_.stable() ? nullptr : node;
  const std::uint64_t now = behind_.bytes_held();
  fs_.budget.held += now - accounted_;
  fs_.budget.most = std::max(fs_.budget.most, fs_.budget.held);
  const bool shrunk = now < accounted_;
  accounted_ = now;
  if (shrunk && !fs_.budget.full()) fs_.budget.room.wake_all();
}

void FileWriter::data_lost(int error) {
  if (lost() == 0) error_ = error;
  ++errors_;
  // The kernel's pages have what the server has not.
  fs_.pages_are_old(node_);
}

Task<int> FileWriter::write(RequestContext context, NodeRef node, std::uint64_t offset,
                            ByteSpan data, BlockRef block) {
  const auto must_wait = [this] { return holding_ || left_ > 0; };
  while (fs_.budget.full() || must_wait()) {
    if (fs_.budget.full()) fs_.write_back_all();
    WaitList& list = must_wait() ? changed_ : fs_.budget.room;
    WakeOnInterrupt wake(context.interrupt, list);
    if (wake.raised()) co_return EINTR;
    if (fs_.budget.full() || must_wait()) co_await list.wait();
  }
  last_writer_ = context.caller;
  if (block != nullptr && data.size() >= kAdoptFrom) {
    behind_.adopt(offset, block, static_cast<std::uint32_t>(data.data() - block->data()),
                  static_cast<std::uint32_t>(data.size()), context.caller);
  } else {
    behind_.write(offset, data, context.caller);
  }
  account(node);
  pump(node);
  relieve(node);
  co_return 0;
}

// Whoever is killed meanwhile leaves: what is sent may be done all the same, and must not be behind
// the end of his locks. So all of it is done, as with what was written behind.
Task<int> FileWriter::write_through(RequestContext context, NodeRef node, std::uint64_t offset,
                                    ByteSpan data, BlockRef block) {
  if (int error = co_await settle(context, node, offset, data.size())) co_return error;
  // It would come again, over the new data, should the server lose it; and it is not given up for
  // data that may never get there.
  while (behind_.unstable(offset, data.size())) {
    if (int error = co_await flush(context, node, true)) co_return error;
  }
  if (block == nullptr) {
    block = std::make_shared<DataBlock>(data.size());
    std::memcpy(block->data(), data.data(), data.size());
    data = ByteSpan(block->data(), data.size());
  }
  auto left = std::make_shared<bool>(false);
  const RequestContext nobody{context.caller, nullptr};
  const auto written = co_await fs_.to_the_end(
      context, write_to_the_end(nobody, node, offset, data, std::move(block), left));
  if (written) co_return *written;
  *left = true;
  ++left_;
  co_return EINTR;
}

Task<int> FileWriter::write_to_the_end(RequestContext context, NodeRef node, std::uint64_t offset,
                                       ByteSpan data, BlockRef block, std::shared_ptr<bool> left) {
  int error = 0;
  while (error == 0 && !data.empty()) {
    const ByteSpan piece = data.first(std::min<std::size_t>(data.size(), fs_.remote.write_size()));
    const std::uint64_t started = fs_.begin_request();
    ++node->changes_running;
    auto written =
        co_await fs_.remote.write(context, node->handle, offset, piece, Stability::kFileSync);
    fs_.apply_change(*node, written.ok() ? written->wcc : Wcc{}, started);
    --node->changes_running;
    if (!written.ok()) {
      error = errno_of(written.error());
    } else if (written->count == 0 || written->count > piece.size()) {
      error = EIO;
    } else {
      offset += written->count;
      data = data.subspan(written->count);
    }
  }
  (void)block;  // held until here
  if (*left) {
    --left_;
    changed_.wake_all();
  }
  co_return error;
}

// A WRITE that fails before anything is sent ends within spawn(), and comes here again: the loop
// goes on with the next one, however many there are.
void FileWriter::pump(const NodeRef& node) {
  if (std::exchange(pumping_, true)) return;
  // A file that is flushed with a single WRITE needs no COMMIT.
  const bool alone = draining_ > 0 && behind_.single_write();
  while (flights_ < kMostFlights) {
    auto flight = behind_.next(draining_ > 0);
    if (!flight) break;
    ++flights_;
    fs_.tasks.spawn(send(node, *flight, alone ? Stability::kFileSync : Stability::kUnstable));
  }
  pumping_ = false;
}

Task<void> FileWriter::send(NodeRef node, WriteBehind::FlightRef flight, Stability stability) {
  const std::uint64_t started = fs_.begin_request();
  ++node->changes_running;
  const Extent& extent = flight->extent;
  auto written = co_await fs_.remote.write({extent.writer, nullptr}, node->handle, extent.offset,
                                           extent.bytes(), stability);
  if (!written.ok() || written->count == 0 || written->count > extent.length) {
    behind_.refused(flight);
    data_lost(written.ok() ? EIO : errno_of(written.error()));
  } else if (written->verifier_changed) {
    behind_.returned(flight);  // the server restarted between two parts of it
  } else {
    behind_.written(flight, static_cast<std::uint32_t>(written->count),
                    written->stability == Stability::kFileSync, written->verifier);
  }
  fs_.apply_change(*node, written.ok() ? written->wcc : Wcc{}, started);
  --node->changes_running;
  --flights_;
  account(node);
  pump(node);
  relieve(node);
  changed_.wake_all();
}

Task<void> FileWriter::commit(NodeRef node) {
  committing_ = true;
  const std::uint64_t mark = behind_.commit_mark();
  const bool in_doubt = behind_.in_doubt();
  const std::uint64_t started = fs_.begin_request();
  auto done = co_await fs_.remote.commit({last_writer_, nullptr}, node->handle);
  if (done.ok()) {
    behind_.committed(mark, done->verifier);
  } else {
    behind_.drop_unstable();
    data_lost(errno_of(done.error()));
  }
  fs_.apply_change(*node, done.ok() ? done->wcc : Wcc{}, started);
  // The size that the kernel was told meanwhile had it all.
  if (in_doubt) node->kernel_size_old = true;
  account(node);
  committing_ = false;
  changed_.wake_all();
}

Task<int> FileWriter::drain(RequestContext context, NodeRef node, bool commit_too) {
  WakeOnInterrupt wake(context.interrupt, changed_);
  for (int rounds = 0;; ++rounds) {
    if (wake.raised()) co_return EINTR;
    pump(node);
    if (rounds > kPatience) holding_ = true;
    if (!behind_.clean()) {
      if (under_way()) co_await changed_.wait();
      continue;
    }
    if (!commit_too || !behind_.has_unstable()) co_return 0;
    if (committing_) {
      co_await changed_.wait();
    } else {
      fs_.tasks.spawn(commit(node));
      if (committing_) co_await changed_.wait();
    }
  }
}

/// Writers that a flush keeps waiting go on behind the last one.
void FileWriter::end_draining() {
  if (--draining_ > 0 || !holding_) return;
  holding_ = false;
  changed_.wake_all();
}

Task<int> FileWriter::flush(RequestContext context, NodeRef node, bool commit_too) {
  // WRITEs that are sent again behind a restart may put what is from before it in doubt.
  while (!behind_.clean() || ((commit_too || behind_.in_doubt()) && behind_.has_unstable())) {
    const bool all = commit_too || behind_.in_doubt();
    ++draining_;
    const int error = co_await drain(context, node, all);
    end_draining();
    if (error != 0) co_return error;
    if (!behind_.in_doubt()) break;  // new data is for the next one
  }
  if (left_ == 0) co_return 0;
  co_return co_await wait_for_left(context);
}

Task<int> FileWriter::wait_for_left(RequestContext context) {
  WakeOnInterrupt wake(context.interrupt, changed_);
  while (left_ > 0 && !wake.raised())
    co_await changed_.wait();
  co_return wake.raised() ? EINTR : 0;
}

Task<int> FileWriter::settle(RequestContext context, NodeRef node, std::uint64_t offset,
                             std::uint64_t length) {
  if (left_ > 0) {
    if (int error = co_await wait_for_left(context)) co_return error;
  }
  while (behind_.in_doubt(offset, length)) {
    if (int error = co_await flush(context, node, true)) co_return error;
  }
  if (!behind_.pending(offset, length)) co_return 0;
  ++draining_;
  WakeOnInterrupt wake(context.interrupt, changed_);
  while (behind_.pending(offset, length) && !wake.raised()) {
    pump(node);
    if (behind_.pending(offset, length) && under_way()) co_await changed_.wait();
  }
  end_draining();
  co_return wake.raised() ? EINTR : 0;
}

Task<void> FileWriter::write_back_task(NodeRef node) {
  ++draining_;
  // Errors stay for the next fsync or close.
  [[maybe_unused]] int error = co_await drain({last_writer_, nullptr}, node, true);
  end_draining();
  writing_back_ = false;
}

void FileWriter::write_back(NodeRef node) {
  if (writing_back_ || behind_.stable()) return;
  writing_back_ = true;
  fs_.tasks.spawn(write_back_task(std::move(node)));
}

}  // namespace nfsrdma
