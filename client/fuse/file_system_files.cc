// SPDX-License-Identifier: Apache-2.0
// Open files: close-to-open consistency, reading past data that is still on its way, and changes
// of attributes in the right order with writes.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "client/fuse/file_system.h"

namespace nfsrdma {

std::uint32_t rights_for(int flags) {
  // The kernel opens programs with this flag to execute them (its FMODE_EXEC).
  constexpr int kOpenForExec = 0x20;
  if (flags & kOpenForExec) return access_bits::kExecute;
  switch (flags & O_ACCMODE) {
    case O_WRONLY:
      return access_bits::kModify;
    case O_RDWR:
      return access_bits::kRead | access_bits::kModify;
    default:
      return access_bits::kRead;
  }
}

std::uint32_t open_access(int flags) {
  using namespace access_bits;
  const std::uint32_t rights = rights_for(flags);
  if ((rights & kExecute) != 0) return kRead;  // programs are read
  return rights & (kRead | kModify);
}

Task<int> FileSystem::open_there(RequestContext context, NodeRef node, std::uint32_t rights) {
  using namespace access_bits;
  OpenFor how;
  if (node->is_regular()) {
    how.access = rights & (kRead | kModify);
    if ((how.access & kModify) != 0) co_await give_way_to_writer(context, node);
    how.execute = (rights & kExecute) != 0;
    if (how.execute) how.access |= kRead;  // programs are read
    how.delegation = wants_delegation(*node, how.access);
  }
  const bool believed = promised(*node) || !options.close_to_open;
  const bool ask = how.delegation || !believed || !node->timer.fresh(loop.now());
  std::optional<FilePlace> place;
  if (how.delegation && remote.opens_by_name()) place = place_of(*node);
  if (place) context.place = &*place;
  const std::uint64_t before = node->applied_at;
  if (int error = co_await permit(context, node, rights, ask, how)) co_return error;
  // ACCESS came back without attributes.
  if (ask && node->applied_at == before) co_return co_await getattr(context, node);
  co_return 0;
}

/// What the kernel has of the data and does not count any more is dropped before the open is
/// answered, and nothing is dropped while somebody reads or writes:
///
///   With the data, the kernel drops attributes and takes none from answers that are on their way.
///   A read(2) then goes by the size from before: it ends too early, or in zeros.
///   Pages of a write(2) are unlocked on their way here where they are whole. When they are
///   dropped, somebody may read what the server had before, and that stays in the cache. When the
///   kernel hears meanwhile, in the answer to a stat, that the file is shorter than it believes, it
///   fills the last page with zeros from there on, and those are what is written.
///
/// So who is to write has it hear the size first, which no reply to an open tells. But ESTALE makes
/// open(2) go the way again, asking for each name, and these replies do.
Task<int> FileSystem::settle_pages(RequestContext context, NodeRef node, bool writes) {
  const pid_t pid = context.interrupt == nullptr ? 0 : context.interrupt->pid;
  const bool clean = node->pages_dropped == node->pages_outdated;
  if (!clean && !co_await drop_pages_now(std::move(context), node)) co_return EINTR;
  if (!writes) co_return 0;
  const auto back = std::find_if(node->sent_back.begin(), node->sent_back.end(),
                                 [pid](const SentBack& one) { return one.pid == pid; });
  if (back != node->sent_back.end()) {
    // The kernel goes only once: the file was not opened by a name, or has got shorter again.
    if (back->told && back->drops == node->drops) node->kernel_size_high = false;
    node->sent_back.erase(back);
    co_return 0;
  }
  if (!node->kernel_size_high) co_return 0;
  constexpr std::size_t kMostSentBack = 64;
  if (node->sent_back.size() >= kMostSentBack) node->sent_back.clear();
  node->sent_back.push_back({pid, node->drops, false});
  co_return ESTALE;
}

Task<int> FileSystem::open(RequestContext context, NodeRef node, int flags, bool* keep_cache) {
  ++node->opening;
  ++open_files_;
  node->openers.add(context.caller, open_access(flags));
  const int error = co_await open_there(context, node, rights_for(flags));
  --node->opening;
  --open_files_;
  if (error != 0) {
    remove_opener(node, context.caller, open_access(flags));
    remove_silly_unless_used(node);  // given meanwhile
    close_there_unless_open(node);
    co_return error;
  }
  count_open(*node);  // from here on the file has to stay, whoever removes its name
  const bool writes = (open_access(flags) & access_bits::kModify) != 0;
  if (const int unsettled = co_await settle_pages(context, node, writes)) {
    close(node, context.caller, flags);
    co_return unsettled;
  }
  // False: there is news again. The kernel drops its pages by itself then.
  *keep_cache = node->pages_dropped == node->pages_outdated;
  co_return 0;
}

Task<int> FileSystem::make_open(RequestContext context, NodeRef directory, std::string name,
                                Maker maker, int flags, NodeRef* node, bool* keep_cache) {
  int error = co_await make(context, directory, name, std::move(maker), node);
  const bool made = error == 0;
  if (!made && (error != EEXIST || (flags & O_EXCL) != 0)) co_return error;
  // Somebody was faster: an ordinary open.
  if (!made) error = co_await lookup(context, directory, name, node);
  if (error != 0) co_return error;
  if (!(*node)->is_regular()) {
    // In an answer to CREATE the kernel takes nothing else: it says EIO, and never closes it.
    close_there_unless_open(*node);
    co_return ESTALE;
  }
  if (made) {
    // Who makes a file may use it, whatever its mode says.
    adopt_open(**node, context.caller, flags);
    *keep_cache = true;
    co_return 0;
  }
  error = co_await open(context, *node, flags, keep_cache);
  if (error != 0 || !(flags & O_TRUNC)) co_return error;
  SetAttributes empty;
  empty.size = 0;
  error = co_await permit_cut(context, *node, flags);
  if (error == 0) error = co_await setattr(context, *node, empty);
  if (error != 0) close(*node, context.caller, flags);
  co_return error;
}

Task<int> FileSystem::write_out(RequestContext context, NodeRef node, std::uint64_t* errors_told) {
  if (node->writer == nullptr) co_return 0;
  const int error = co_await node->writer->flush(context, node, true);
  co_return error == 0 ? node->writer->take_error(errors_told) : error;
}

Task<int> FileSystem::write_out_at_close(RequestContext context, NodeRef node, bool writes,
                                         std::uint64_t* errors_told) {
  // Whose data it is waits for it, and hears of what becomes of it: who only reads would wait for
  // all that somebody else goes on writing, and hold him up at last.
  if (!writes || node->writer == nullptr) co_return 0;
  if (!may_keep_back(*node)) co_return co_await write_out(context, node, errors_told);
  node->writer->write_back(node);
  co_return node->writer->take_error(errors_told);
}

void FileSystem::close(NodeRef node, const CallerRef& caller, int flags) {
  --open_files_;
  --node->opens;
  remove_opener(node, caller, open_access(flags));
  if (node->opens > 0) return;
  node->unlink();
  remove_silly_unless_used(node);
  if (remote.holds(node->handle)) {
    if (node->opening == 0) tasks.spawn(close_there(node));
  } else if (node->writer != nullptr) {
    node->writer->write_back(node);
  }
}

Task<int> FileSystem::setattr(RequestContext context, NodeRef node, SetAttributes set) {
  if (node->writer != nullptr && !node->writer->idle()) {
    // A WRITE behind it would change the times again, or undo the cut; one that has to be
    // rewritten after a restart of the server would, too.
    const bool times = set.mtime.has_value() || set.atime.has_value() || set.size.has_value();
    if (int error = co_await node->writer->flush(context, node, times)) co_return error;
  }
  if (set.size) co_await give_way_to_writer(context, node);
  co_await give_way_to_change(context, node);
  const std::uint64_t started = begin_request();
  ++node->changes_running;
  auto answer = co_await remote.setattr(context, node->handle, set);
  // NFSv4 does not say what was before. This much can only be somebody else's.
  if (answer.ok() && answer->after && !answer->before && !set.size && !set.mtime &&
      node->has_attributes && node->changes_running == 1 &&
      (answer->after->size != node->attributes.size ||
       !same_time(answer->after->mtime, node->attributes.mtime))) {
    foreign_change(*node, *answer->after);
  }
  apply_change(*node, answer.ok() ? *answer : Wcc{}, started);
  --node->changes_running;
  if (!answer.ok()) co_return failed(*node, answer.error());
  if (const int error = stale_if_removed(*node)) co_return error;
  if (set.mode || set.uid || set.gid) node->access.clear();
  if (set.size && node->writer != nullptr) node->writer->data().truncated(*set.size);
  if (!node->timer.fresh(loop.now()) && !answer->after) co_return co_await getattr(context, node);
  co_return 0;
}

Task<int> FileSystem::read(RequestContext context, NodeRef node, std::uint64_t offset,
                           MutableByteSpan sink, std::size_t* count) {
  const auto unstable = [&] {
    return node->writer != nullptr && node->writer->data().unstable(offset, sink.size());
  };
  const auto pending_end = [&]() -> std::uint64_t {
    return node->writer == nullptr ? 0 : node->writer->data().pending_end();
  };
  std::uint64_t pending_before = 0;
  // What is unstable when it is asked for may be lost, and is read again then. (What becomes
  // unstable meanwhile is written at the same time: either will do.)
  for (bool again = true; again;) {
    if (node->writer != nullptr) {
      if (int error = co_await node->writer->settle(context, node, offset, sink.size())) {
        co_return error;
      }
    }
    const bool was_unstable = unstable();
    if (was_unstable) context.answer = nullptr;
    pending_before = pending_end();
    const std::uint64_t started = begin_request();
    auto answer = co_await remote.read(context, node->handle, offset, sink);
    if (!answer.ok()) co_return failed(*node, answer.error());
    apply(*node, answer->attributes, started);
    *count = std::min(answer->count, sink.size());
    again = was_unstable && unstable() && node->writer->data().in_doubt();
  }
  // A short answer tells the kernel where the file ends. When data further on is still with us, or
  // was when this was asked, it does not end there: what lies between is a hole.
  const std::uint64_t size = std::max(pending_before, pending_end());
  if (*count < sink.size() && offset + *count < size) {
    const std::size_t wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(sink.size(), size - offset));
    std::memset(sink.data() + *count, 0, wanted - *count);
    *count = wanted;
  }
  co_return 0;
}

Task<int> FileSystem::append_offset(RequestContext context, NodeRef node, std::uint64_t* offset) {
  // The kernel asks nobody for the size before it appends: after a change elsewhere, seen at open
  // or behind a lock, it goes on with the old one. That the file is longer is to be believed also
  // when the kernel has been told: it may have let the answer go.
  if (node->writer != nullptr && node->writer->data().in_doubt()) {
    if (int error = co_await node->writer->flush(context, node, true)) co_return error;
  }
  if (node->kernel_size_old && !node->timer.fresh(loop.now())) {
    if (int error = co_await getattr_without_doubt(context, node)) co_return error;
  }
  const std::uint64_t end = visible(*node).size;
  if (end == *offset || (end < *offset && !node->kernel_size_old)) co_return 0;
  *offset = end;
  ++node->pages_outdated;  // it keeps the data as if it lay where it wanted it
  drop_pages(*node);
  co_return 0;
}

Task<std::optional<int>> FileSystem::to_the_end(RequestContext context, Task<int> work) {
  struct UnderWay {
    Occasion over;
    int result = 0;
    static Task<void> run(Task<int> work, std::shared_ptr<UnderWay> self) {
      self->result = co_await std::move(work);
      self->over.come();
    }
  };
  auto under_way = std::make_shared<UnderWay>();
  tasks.spawn(UnderWay::run(std::move(work), under_way));
  const bool over = co_await under_way->over.wait(cancel_of(context));
  if (!over) co_return std::nullopt;
  co_return under_way->result;
}

FileWriter& FileSystem::writer_of(Node& node) {
  if (node.writer == nullptr) {
    node.writer = std::make_unique<FileWriter>(*this, node, remote.write_size());
  }
  return *node.writer;
}

}  // namespace nfsrdma
