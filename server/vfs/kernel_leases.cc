// SPDX-License-Identifier: Apache-2.0
#include "server/vfs/kernel_leases.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <vector>

#include "server/credentials.h"
#include "server/vfs/fd_cache.h"

namespace nfsrdma {

namespace {

/// A queued signal, so that two breaks are two; SIGIO says that the queue was full.
int break_signal() {
  return SIGRTMIN + 7;
}

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, break_signal());
  sigaddset(&set, SIGIO);
  return set;
}

}  // namespace

Result<std::unique_ptr<KernelLeases>> KernelLeases::create(OnBreak on_break) {
  std::unique_ptr<KernelLeases> leases(new KernelLeases(std::move(on_break)));
  NFSRDMA_TRY(leases->loop_, EventLoop::create());
  const sigset_t set = watched_signals();
  leases->signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!leases->signals_) return system_error("signalfd");
  leases->thread_ = std::thread([raw = leases.get()] { raw->serve(); });
  leases->tid_.wait(0);
  return leases;
}

KernelLeases::~KernelLeases() {
  stop();
}

void KernelLeases::stop() {
  if (!thread_.joinable()) return;
  loop_->stop();
  thread_.join();
}

void KernelLeases::serve() {
  ::pthread_setname_np(::pthread_self(), "leases");
  const sigset_t set = watched_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // A signalfd is ready for the signals of the thread that watches it.
  if (!loop_->add(signals_.get(), EPOLLIN, *this).ok()) signals_.reset();
  tid_.store(::gettid());
  tid_.notify_all();
  loop_->run();
  if (signals_) loop_->remove(signals_.get(), *this);
}

bool KernelLeases::take(int fd, int type) const {
  if (!signals_) {
    errno = ENOSYS;
    return false;
  }
  const f_owner_ex owner{F_OWNER_TID, tid_.load()};
  return ::fcntl(fd, F_SETOWN_EX, &owner) == 0 && ::fcntl(fd, F_SETSIG, break_signal()) == 0 &&
         ::fcntl(fd, F_SETLEASE, type) == 0;
}

UniqueFd KernelLeases::take_read(int path_fd) const {
  AsServer privileged;
  UniqueFd fd(reopen(path_fd, O_RDONLY));
  if (fd && !take(fd.get(), F_RDLCK)) {
    const int error = errno;
    fd.reset();
    errno = error;
  }
  return fd;
}

bool KernelLeases::take_write(int fd) const {
  AsServer privileged;
  return take(fd, F_WRLCK);
}

void KernelLeases::drop_write(int fd) {
  AsServer privileged;
  ::fcntl(fd, F_SETLEASE, F_UNLCK);
}

/// While it is being broken, the kernel tells the type that it has to become.
bool KernelLeases::is_broken(const Kept& lease) {
  return ::fcntl(lease.fd, F_GETLEASE) != lease.type;
}

void KernelLeases::keep(Key key, UniqueFd lease) {
  const int fd = lease.get();
  keep(key, Kept{fd, F_RDLCK, std::move(lease)});
}

void KernelLeases::keep(Key key, int write_lease) {
  keep(key, Kept{write_lease, F_WRLCK, {}});
}

void KernelLeases::keep(Key key, Kept lease) {
  const int fd = lease.fd;
  std::lock_guard lock(mutex_);
  by_fd_[fd] = key;
  // A break from before has been told to nobody.
  if (is_broken(lease)) loop_->post([this, fd] { check(fd); });
  kept_[key] = std::move(lease);
}

void KernelLeases::drop(Key key) {
  UniqueFd closed;  // without the lock
  std::lock_guard lock(mutex_);
  const auto found = kept_.find(key);
  if (found == kept_.end()) return;
  Kept& lease = found->second;
  by_fd_.erase(lease.fd);
  if (!lease.owned) drop_write(lease.fd);
  closed = std::move(lease.owned);
  kept_.erase(found);
}

std::size_t KernelLeases::size() const {
  std::lock_guard lock(mutex_);
  return kept_.size();
}

void KernelLeases::on_fd_ready(std::uint32_t) {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == static_cast<std::uint32_t>(SIGIO)) {
      check_all();
    } else {
      check(info.ssi_fd);
    }
  }
}

/// The number may be another lease's by now, so the kernel is asked.
void KernelLeases::check(int fd) {
  Key key = 0;
  {
    std::lock_guard lock(mutex_);
    const auto found = by_fd_.find(fd);
    if (found == by_fd_.end() || !is_broken(kept_.at(found->second))) return;
    key = found->second;
  }
  on_break_(key);
}

void KernelLeases::check_all() {
  std::vector<int> fds;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [fd, key] : by_fd_)
      fds.push_back(fd);
  }
  for (const int fd : fds)
    check(fd);
}

Duration KernelLeases::break_time() {
  constexpr int kDefault = 45;
  int seconds = 0;
  std::ifstream file("/proc/sys/fs/lease-break-time");
  if (!(file >> seconds)) seconds = kDefault;
  return std::chrono::seconds(std::max(seconds, 1));
}

}  // namespace nfsrdma
