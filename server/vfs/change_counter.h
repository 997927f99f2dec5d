// SPDX-License-Identifier: Apache-2.0
// ChangeCounter: the change attribute of NFSv4 (RFC 7530 5.8.1.4, RFC 8881 5.8.1.4).
//
// Its value is ctime in nanoseconds. That alone is not enough: before Linux 6.13, and on file
// systems without fine-grained times after it, ctime goes on by ticks of up to 10 ms, so two
// changes can leave the same one; and the kernel sets ctime before it copies what is written, so
// whoever looks meanwhile sees the new ctime with old bytes. So the counter knows the changes under
// way (Change), and what has been told of an inode since they began; where ctime does not exceed
// that when a change ends, it remembers a larger value for the inode. What is told is the larger of
// the two.
//
// Promised, for changes made through this server, whatever shard and NFS version made them, as long
// as the clock is not set back:
//   - who looks after a change has ended never sees a value that was told before it had;
//   - values do not go backwards.
// Changes by local processes count as far as their ctime tells. Values that ctime does not have are
// remembered for kInodes inodes, the latest ones, and until the server ends; after that it is ctime
// again: nanoseconds less, which clients take for one more change. (Lost for good is then only the
// difference to what was told between two changes within one tick.) With fine-grained times nothing
// has to be remembered but after parallel changes of one inode.
//
// change_attr_type is NFS4_CHANGE_TYPE_IS_TIME_METADATA (RFC 7862 12.2.3): derived from
// time_metadata, and no counter of changes.
//
// For any thread. Looking takes no lock unless something about an inode that shares the stripe is
// under way or remembered; nothing allocates.
#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace nfsrdma {

/// What ctime alone says.
inline std::uint64_t change_of_time(const timespec& ctime) {
  constexpr std::uint64_t kNanoseconds = 1'000'000'000;
  return static_cast<std::uint64_t>(ctime.tv_sec) * kNanoseconds +
         static_cast<std::uint64_t>(ctime.tv_nsec);
}

class ChangeCounter {
  struct Stripe;

 public:
  static constexpr std::size_t kInodes = 16384;

  ChangeCounter();
  ~ChangeCounter();
  ChangeCounter(const ChangeCounter&) = delete;
  ChangeCounter& operator=(const ChangeCounter&) = delete;

  /// When attributes are about to be read.
  using Moment = std::uint64_t;
  Moment now(std::uint64_t device, std::uint64_t inode) const;
  /// The change attribute of an inode whose attributes were read after `read_after` was taken. An
  /// old moment is not wrong, but may make the next value differ without need.
  std::uint64_t value(const struct stat& attributes, Moment read_after);
  /// fstat() and value() in one. 0 or an errno.
  int look(int fd, std::uint64_t device, std::uint64_t inode, struct stat* attributes,
           std::uint64_t* value);

  /// One change of one inode: construct before it is made, tell the attributes from before it, and
  /// finish() with those from after it. A change that is not finished is taken to have been made.
  class Change {
   public:
    Change(ChangeCounter& counter, std::uint64_t device, std::uint64_t inode);
    ~Change();
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

    /// Attributes read since construction, or before it when nothing of the inode has been changed
    /// through the server meanwhile. Returns change_info4.before. Left out, the value is larger
    /// after the change than the clock.
    std::uint64_t before(const struct stat& attributes);
    /// Ends the change. Returns change_info4.after.
    std::uint64_t finish(const struct stat& after);
    /// Ends what turned out to be no change: it failed, or there was nothing to do. The value
    /// stays. Returns change_info4.before and .after.
    std::uint64_t give_up();
    /// change_info4.atomic, after finish(): no other change of the inode through this server while
    /// this one was under way.
    bool alone() const { return alone_; }

   private:
    friend class ChangeCounter;
    std::uint64_t end(std::uint64_t after);
    // With the stripe's mutex:
    void unlink();
    void tell_others(std::uint64_t value);

    Stripe& stripe_;
    const std::uint64_t device_;
    const std::uint64_t inode_;
    // What follows is guarded by the stripe's mutex.
    Change* next_ = nullptr;
    std::uint64_t before_ = 0;
    std::uint64_t told_ = 0;  // the largest value that anybody got while or before this runs
    bool told_before_ = false;
    bool alone_ = true;
    bool ended_ = false;
  };

 private:
  static constexpr std::size_t kPerStripe = 8;
  static constexpr std::size_t kStripes = kInodes / kPerStripe;

  struct Inode {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    bool operator==(const Inode&) const = default;
  };
  struct Remembered {
    Inode of;
    std::uint64_t value = 0;  // 0: free
  };
  struct alignas(64) Stripe {
    std::atomic<std::uint64_t> ends{0};  // changes that have ended
    std::atomic<std::uint32_t> busy{0};  // changes under way and values remembered
    std::mutex mutex;                    // what follows
    Change* active = nullptr;
    std::array<Remembered, kPerStripe> remembered;
    std::array<Inode, kPerStripe> ended;  // the last ones, by their number

    Remembered* find(const Inode& inode);
    void remember(const Inode& inode, std::uint64_t value);
    bool ended_since(const Inode& inode, Moment moment) const;
  };

  Stripe& stripe_of(std::uint64_t device, std::uint64_t inode) const;

  std::unique_ptr<std::array<Stripe, kStripes>> stripes_;
};

}  // namespace nfsrdma
