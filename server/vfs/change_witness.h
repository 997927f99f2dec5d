// SPDX-License-Identifier: Apache-2.0
// ChangeWitness: were the attributes before and after a change taken with no other change by this
// server in between? Only then may a reply carry pre-operation attributes (decisions.md 12). It is
// optimistic: nobody waits; an overlap merely leaves the attributes out. Counters are striped by
// inode, so two inodes that share a stripe can overlap, which errs on the safe side.
//
// Changes made by local processes are not seen. (A kernel server has the inode lock; from user
// space there is none to take.)
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace nfsrdma {

class ChangeWitness {
 public:
  /// What had been changed of an inode at one moment, to be compared later.
  using Seen = std::uint64_t;
  /// Take it before the attributes are read.
  Seen seen(std::uint64_t device, std::uint64_t inode) const {
    return stripes_[stripe_of(device, inode)].load(std::memory_order_acquire);
  }

  /// One change of one inode: construct before the attributes are read, ask after they were read
  /// again.
  class Watch {
   public:
    Watch(ChangeWitness& witness, std::uint64_t device, std::uint64_t inode)
        : stripe_(witness.stripes_[stripe_of(device, inode)]) {
      const std::uint64_t before = stripe_.fetch_add(kStarted, std::memory_order_acq_rel);
      alone_ = (before >> 32) == (before & 0xffffffff);
      ticket_ = before + kStarted;
    }
    ~Watch() { finish(); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    /// Are attributes read after `moment` those from before this change?
    bool nothing_between(Seen moment) const { return alone_ && moment + kStarted == ticket_; }
    /// True when nothing else changed the inode since construction. Ends the watch.
    bool undisturbed() {
      const bool quiet = alone_ && stripe_.load(std::memory_order_acquire) == ticket_;
      finish();
      return quiet;
    }

   private:
    void finish() {
      if (!finished_) {
        finished_ = true;
        // The halves are started and finished; both wrap at 32 bits without a carry between them.
        std::uint64_t now = stripe_.load(std::memory_order_relaxed);
        std::uint64_t next;
        do {
          next = (now & ~std::uint64_t{0xffffffff}) | ((now + 1) & 0xffffffff);
        } while (!stripe_.compare_exchange_weak(now, next, std::memory_order_acq_rel));
      }
    }
    std::atomic<std::uint64_t>& stripe_;
    std::uint64_t ticket_ = 0;
    bool alone_ = false;
    bool finished_ = false;
  };

 private:
  static constexpr std::uint64_t kStarted = std::uint64_t{1} << 32;
  static constexpr std::size_t kStripes = 1024;

  static std::size_t stripe_of(std::uint64_t device, std::uint64_t inode) {
    return (inode ^ (device << 17)) * 0x9e3779b97f4a7c15u >> 54;
  }
  std::array<std::atomic<std::uint64_t>, kStripes> stripes_{};
};

}  // namespace nfsrdma
