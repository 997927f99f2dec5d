// SPDX-License-Identifier: Apache-2.0
// Group commit. See committer.h.
#include "server/vfs/committer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "rpcrdma/base/log.h"
#include "server/credentials.h"

namespace nfsrdma {

/// One inode of a batch.
struct Committer::Target {
  dev_t device;
  ino_t inode;
  int fd;
  bool data_only;  // for all who want it
  int error;
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

Committer::Committer(WriteVerifier& verifier, unsigned threads, Calls calls)
    : verifier_(verifier), calls_(calls) {
  for (unsigned i = 0; i < threads; ++i)
    threads_.emplace_back([this] { work(); });
}

Committer::~Committer() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_)
    thread.join();
}

void Committer::submit(CommitJob& job) {
  jobs_.fetch_add(1, std::memory_order_relaxed);
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back(&job);
  }
  wake_.notify_one();
}

int Committer::commit_now(std::array<int, CommitJob::kMaxFds> fds, bool data_only) {
  BlockingJob job;
  job.fds = fds;
  job.data_only = data_only;
  submit(job);
  return job.wait();
}

Committer::Stats Committer::stats() const {
  return {jobs_.load(std::memory_order_relaxed), syncs_.load(std::memory_order_relaxed),
          failures_.load(std::memory_order_relaxed)};
}

void Committer::work() {
  prepare_serving_thread();
  std::vector<CommitJob*> batch;
  std::vector<Target> targets;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      batch.swap(waiting_);
    }
    commit(batch, targets);
    batch.clear();
    targets.clear();
  }
}

void Committer::commit(std::vector<CommitJob*>& batch, std::vector<Target>& targets) {
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
      struct stat st {};
      if (alone) {
        st.st_ino = static_cast<ino_t>(fd);
      } else if (::fstat(fd, &st) != 0) {
        batch[j]->error_ = errno;
        continue;
      }
      std::size_t t = 0;
      while (t < targets.size() &&
             (targets[t].inode != st.st_ino || targets[t].device != st.st_dev)) {
        ++t;
      }
      if (t == targets.size()) targets.push_back({st.st_dev, st.st_ino, fd, true, 0});
      targets[t].data_only &= batch[j]->data_only;
      uses.push_back({j, t});
    }
  }
  for (Target& target : targets) {
    syncs_.fetch_add(1, std::memory_order_relaxed);
    if (calls_.sync(target.fd, target.data_only) == 0) continue;
    target.error = errno;
    failures_.fetch_add(1, std::memory_order_relaxed);
    // The kernel tells of lost pages once. Clients must send again whatever they did not commit.
    verifier_.renew();
    static thread_local RateLimit limit(10, std::chrono::seconds(10));
    if (limit.allow()) {
      log_error("fsync failed: {}; clients will resend unstable data",
                system_error("fsync", target.error).message());
    }
  }
  for (const Use& use : uses) {
    if (targets[use.target].error != 0) batch[use.job]->error_ = targets[use.target].error;
  }
  for (CommitJob* job : batch)
    job->finish(job->error_);
}

}  // namespace nfsrdma
