// SPDX-License-Identifier: Apache-2.0
// Group commit. See committer.h.
#include "server/vfs/committer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "rpcrdma/base/log.h"
#include "server/credentials.h"

namespace nfsrdma {

/// One inode of a batch, or one file system.
struct Committer::Target {
  dev_t device;
  ino_t inode;
  int fd;
  bool whole;      // the file system, whatever the inode
  bool data_only;  // for all who want it
  int error;

  bool is(const struct stat& st, bool all) const {
    return whole == all && device == st.st_dev && (whole || inode == st.st_ino);
  }
};

namespace {

int system_sync(int fd, bool data_only) {
  return data_only ? ::fdatasync(fd) : ::fsync(fd);
}

/// For commit_now().
class BlockingJob final : public CommitJob {
 public:
  void finish(int error) override {
    // Notified under the mutex: the waiter may destroy us as soon as it can take it.
    std::lock_guard lock(mutex_);
    error_ = error;
    done_ = true;
    done_signal_.notify_one();
  }
  int wait() {
    std::unique_lock lock(mutex_);
    done_signal_.wait(lock, [this] { return done_; });
    return error_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_signal_;
  bool done_ = false;
  int error_ = 0;
};

}  // namespace

Committer::Calls Committer::system_calls() {
  return {system_sync};
}

Committer::Committer(FileSyncs& syncs, unsigned threads, Calls calls)
    : file_syncs_(syncs), calls_(calls) {
  for (unsigned i = 0; i < threads; ++i)
    threads_.emplace_back([this] { work(files_); });
  threads_.emplace_back([this] { work(file_systems_); });
}

Committer::~Committer() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  files_.wake.notify_all();
  file_systems_.wake.notify_all();
  for (auto& thread : threads_)
    thread.join();
}

void Committer::submit(CommitJob& job) {
  jobs_.fetch_add(1, std::memory_order_relaxed);
  job.error_ = 0;  // whoever waits may have been here before
  const bool whole = std::ranges::any_of(
      job.fds, [](int fd) { return fd >= 0 && (fd & CommitJob::kWholeFileSystem) != 0; });
  Queue& queue = whole ? file_systems_ : files_;
  {
    std::lock_guard lock(mutex_);
    queue.waiting.push_back(&job);
  }
  queue.wake.notify_one();
}

int Committer::commit_now(std::array<int, CommitJob::kMaxFds> fds, bool data_only,
                          std::uint64_t since) {
  BlockingJob job;
  job.fds = fds;
  job.data_only = data_only;
  job.since = since;
  submit(job);
  return job.wait();
}

Committer::Stats Committer::stats() const {
  return {jobs_.load(std::memory_order_relaxed), syncs_.load(std::memory_order_relaxed),
          failures_.load(std::memory_order_relaxed)};
}

void Committer::work(Queue& queue) {
  prepare_serving_thread();
  std::vector<CommitJob*> batch;
  std::vector<Target> targets;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      queue.wake.wait(lock,
                      [&] { return take(queue, &batch) || (stop_ && queue.waiting.empty()); });
      if (batch.empty()) return;
      ++queue.syncing;
    }
    commit(batch, targets);
    batch.clear();
    targets.clear();
    std::lock_guard lock(mutex_);
    --queue.syncing;
    // What waited for this is taken here, next, and its end waits for nothing else.
    if (stop_) queue.wake.notify_all();
  }
}

/// All that need not wait for what another of these threads syncs just now: that one takes the
/// rest, when it has done so.
bool Committer::take(Queue& queue, std::vector<CommitJob*>* batch) {
  if (queue.syncing == 0) {
    batch->swap(queue.waiting);
  } else {
    const auto busy =
        std::stable_partition(queue.waiting.begin(), queue.waiting.end(),
                              [this](const CommitJob* job) { return !would_wait(*job); });
    batch->assign(queue.waiting.begin(), busy);
    queue.waiting.erase(queue.waiting.begin(), busy);
  }
  return !batch->empty();
}

bool Committer::would_wait(const CommitJob& job) const {
  return std::ranges::any_of(job.fds, [this](int fd) {
    return fd >= 0 && file_syncs_.busy({fd & ~CommitJob::kWholeFileSystem,
                                        (fd & CommitJob::kWholeFileSystem) != 0});
  });
}

void Committer::commit(const std::vector<CommitJob*>& batch, std::vector<Target>& targets) {
  // One target per inode; job by job, remember which targets are its own by descriptor identity.
  struct Use {
    std::size_t job;
    std::size_t target;
  };
  std::vector<Use> uses;
  // Those of one job are of different inodes, or the same descriptor twice (RENAME in a folder):
  // only several jobs need a look at what their descriptors stand for.
  const bool alone = batch.size() == 1;
  for (std::size_t j = 0; j < batch.size(); ++j) {
    for (int fd : batch[j]->fds) {
      if (fd < 0) continue;
      const bool whole = (fd & CommitJob::kWholeFileSystem) != 0;
      const int plain = fd & ~CommitJob::kWholeFileSystem;
      struct stat st {};
      if (alone) {
        st.st_dev = static_cast<dev_t>(whole ? fd : 0);
        st.st_ino = static_cast<ino_t>(fd);
      } else if (::fstat(plain, &st) != 0) {
        batch[j]->error_ = errno;
        continue;
      }
      std::size_t t = 0;
      while (t < targets.size() && !targets[t].is(st, whole))
        ++t;
      if (t == targets.size()) targets.push_back({st.st_dev, st.st_ino, plain, whole, true, 0});
      targets[t].data_only &= batch[j]->data_only;
      uses.push_back({j, t});
    }
  }
  for (Target& target : targets) {
    syncs_.fetch_add(1, std::memory_order_relaxed);
    target.error = file_syncs_.run({target.fd, target.whole}, [&] {
      return target.whole ? calls_.sync_all(target.fd) : calls_.sync(target.fd, target.data_only);
    });
    if (target.error == 0) continue;
    failures_.fetch_add(1, std::memory_order_relaxed);
    static thread_local RateLimit limit(10, std::chrono::seconds(10));
    if (limit.allow()) {
      log_error("fsync failed: {}; clients will resend unstable data",
                system_error("fsync", target.error).message());
    }
  }
  for (const Use& use : uses) {
    if (targets[use.target].error != 0) batch[use.job]->error_ = targets[use.target].error;
  }
  for (CommitJob* job : batch) {
    if (job->error_ == 0) job->error_ = overtaken(*job);
    job->finish(job->error_);
  }
}

/// The errno of a sync that has told of what the job's own then did not tell of; 0: there is none.
int Committer::overtaken(const CommitJob& job) const {
  if (file_syncs_.failures() <= job.since) return 0;
  for (const int fd : job.fds) {
    if (fd < 0) continue;
    const bool whole = (fd & CommitJob::kWholeFileSystem) != 0;
    const int plain = fd & ~CommitJob::kWholeFileSystem;
    if (const int error = file_syncs_.failed_since(job.since, {plain, whole})) return error;
  }
  return 0;
}

}  // namespace nfsrdma
