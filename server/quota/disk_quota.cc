// SPDX-License-Identifier: Apache-2.0
#include "server/quota/disk_quota.h"

#include <linux/quota.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <limits>

#include "server/credentials.h"

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443  // Linux 5.14
#endif

namespace nfsrdma {

namespace {

struct Question {
  int fd = -1;
  dev_t device = 0;
  QuotaKind kind = QuotaKind::kUser;
  std::uint32_t id = 0;
  int error = 0;  // the answer
  if_dqblk answer{};
};

/// The calling thread becomes who is asked about. Raw system calls: those of glibc change all
/// threads.
bool become_owner(const Question& question) {
  constexpr auto kSame = static_cast<uid_t>(-1);
  switch (question.kind) {
    case QuotaKind::kUser:
      return ::syscall(SYS_setresuid, kSame, question.id, kSame) == 0;
    case QuotaKind::kGroup:
      return ::syscall(SYS_setresgid, kSame, question.id, kSame) == 0;
    case QuotaKind::kProject:
      return true;
  }
  return false;
}

int ask_by_descriptor(Question& question, unsigned command) {
  return ::syscall(SYS_quotactl_fd, question.fd, command, question.id, &question.answer) == 0
             ? 0
             : errno;
}

int ask_by_device(Question& question, unsigned command) {
  char device[64];
  std::snprintf(device, sizeof device, "/dev/block/%u:%u", major(question.device),
                minor(question.device));
  return ::syscall(SYS_quotactl, command, device, question.id, &question.answer) == 0 ? 0 : errno;
}

int ask(Question& question) {
  if (can_switch_identity() && !become_owner(question)) return errno;
  const unsigned command = QCMD(Q_GETQUOTA, static_cast<unsigned>(question.kind));
  const int error = ask_by_descriptor(question, command);
  // Older kernels have no such call. It takes the question for a change, too, which it refuses
  // where the export is mounted read-only.
  return error == ENOSYS || error == EROFS ? ask_by_device(question, command) : error;
}

void* answer(void* argument) {
  auto& question = *static_cast<Question*>(argument);
  question.error = ask(question);
  return nullptr;
}

constexpr std::uint32_t kMost32 = std::numeric_limits<std::uint32_t>::max();

std::uint32_t fitting(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, kMost32));
}

std::uint64_t shifted_up(std::uint64_t value, unsigned shift) {
  const std::uint64_t rest = value & ((std::uint64_t{1} << shift) - 1);
  return (value >> shift) + (rest != 0 ? 1 : 0);
}

/// Seconds that are left; 0 is for "none runs", so the very end counts as past.
std::uint32_t time_left(std::time_t end, std::time_t now) {
  if (end == 0) return 0;
  const std::int64_t left = std::int64_t{end} - std::int64_t{now};
  const std::int64_t bounded = std::clamp<std::int64_t>(
      left, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
  return static_cast<std::uint32_t>(bounded == 0 ? -1 : bounded);
}

}  // namespace

int read_disk_quota(int fd, dev_t device, QuotaKind kind, std::uint32_t id, DiskQuota* quota) {
  if (id == ~0u) return ESRCH;  // would mean "as I am" to the kernel
  Question question{.fd = fd, .device = device, .kind = kind, .id = id};
  pthread_t thread;
  if (const int error = ::pthread_create(&thread, nullptr, answer, &question)) return error;
  ::pthread_join(thread, nullptr);
  if (question.error != 0) return question.error;
  const if_dqblk& from = question.answer;
  quota->hard_blocks = from.dqb_bhardlimit;
  quota->soft_blocks = from.dqb_bsoftlimit;
  quota->used_bytes = from.dqb_curspace;
  quota->hard_files = from.dqb_ihardlimit;
  quota->soft_files = from.dqb_isoftlimit;
  quota->used_files = from.dqb_curinodes;
  quota->block_time = static_cast<std::time_t>(from.dqb_btime);
  quota->file_time = static_cast<std::time_t>(from.dqb_itime);
  return 0;
}

xdr::rquota rquota_of(const DiskQuota& quota, std::time_t now) {
  constexpr unsigned kBlockBits = 10;
  constexpr unsigned kMostBits = 30;  // of a block's size, which is a signed number
  const std::uint64_t used = shifted_up(quota.used_bytes, kBlockBits);
  const std::uint64_t largest = std::max({quota.hard_blocks, quota.soft_blocks, used});
  const unsigned too_many = static_cast<unsigned>(std::bit_width(largest >> 32));
  // What rounding up makes of the largest number has to fit as well.
  const bool overflows = too_many > 0 && shifted_up(largest, too_many) > kMost32;
  const unsigned shift = std::min(too_many + (overflows ? 1 : 0), kMostBits - kBlockBits);
  xdr::rquota out;
  out.rq_bsize = std::int32_t{1} << (kBlockBits + shift);
  out.rq_active = true;
  out.rq_bhardlimit = fitting(shifted_up(quota.hard_blocks, shift));
  out.rq_bsoftlimit = fitting(shifted_up(quota.soft_blocks, shift));
  out.rq_curblocks = fitting(shifted_up(used, shift));
  out.rq_fhardlimit = fitting(quota.hard_files);
  out.rq_fsoftlimit = fitting(quota.soft_files);
  out.rq_curfiles = fitting(quota.used_files);
  out.rq_btimeleft = time_left(quota.block_time, now);
  out.rq_ftimeleft = time_left(quota.file_time, now);
  return out;
}

}  // namespace nfsrdma
