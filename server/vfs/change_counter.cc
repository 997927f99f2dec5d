// SPDX-License-Identifier: Apache-2.0
#include "server/vfs/change_counter.h"

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace nfsrdma {

namespace {

std::uint64_t clock_value() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return change_of_time(now);
}

}  // namespace

ChangeCounter::ChangeCounter() : stripes_(std::make_unique<std::array<Stripe, kStripes>>()) {}
ChangeCounter::~ChangeCounter() = default;

ChangeCounter::Stripe& ChangeCounter::stripe_of(std::uint64_t device, std::uint64_t inode) const {
  static_assert(kStripes == std::size_t{1} << 11);
  return (*stripes_)[(inode ^ (device << 17)) * 0x9e3779b97f4a7c15u >> 53];
}

ChangeCounter::Remembered* ChangeCounter::Stripe::find(const Inode& inode) {
  for (Remembered& one : remembered) {
    if (one.value != 0 && one.of == inode) return &one;
  }
  return nullptr;
}

void ChangeCounter::Stripe::remember(const Inode& inode, std::uint64_t value) {
  Remembered* place = find(inode);
  if (place == nullptr) {
    // Values are times: the smallest is the oldest, and free places have 0.
    place = &*std::min_element(remembered.begin(), remembered.end(),
                               [](const auto& a, const auto& b) { return a.value < b.value; });
    if (place->value == 0) busy.fetch_add(1);
  }
  *place = {inode, value};
}

bool ChangeCounter::Stripe::ended_since(const Inode& inode, Moment moment) const {
  const std::uint64_t last = ends.load();
  if (last - moment > kPerStripe) return true;  // who knows
  for (std::uint64_t i = moment; i < last; ++i) {
    if (ended[i % kPerStripe] == inode) return true;
  }
  return false;
}

ChangeCounter::Moment ChangeCounter::now(std::uint64_t device, std::uint64_t inode) const {
  return stripe_of(device, inode).ends.load();
}

std::uint64_t ChangeCounter::value(const struct stat& attributes, Moment read_after) {
  const std::uint64_t of_time = change_of_time(attributes.st_ctim);
  Stripe& stripe = stripe_of(attributes.st_dev, attributes.st_ino);
  // In this order: a change that is not busy any more has been counted as ended.
  if (stripe.busy.load() == 0 && stripe.ends.load() == read_after) return of_time;
  std::lock_guard lock(stripe.mutex);
  const Inode inode{attributes.st_dev, attributes.st_ino};
  const Remembered* remembered = stripe.find(inode);
  const std::uint64_t told = remembered == nullptr ? of_time : std::max(of_time, remembered->value);
  for (Change* change = stripe.active; change != nullptr; change = change->next_) {
    if (change->device_ == inode.device && change->inode_ == inode.inode) {
      change->told_ = std::max(change->told_, told);
    }
  }
  // The attributes may be from the middle of a change that has ended since: what is told next must
  // be another value.
  if (stripe.ended_since(inode, read_after)) stripe.remember(inode, told + 1);
  return told;
}

int ChangeCounter::look(int fd, std::uint64_t device, std::uint64_t inode, struct stat* attributes,
                        std::uint64_t* value_out) {
  constexpr int kAttempts = 4;
  Moment moment = 0;
  for (int i = 0; i < kAttempts; ++i) {
    moment = now(device, inode);
    if (::fstat(fd, attributes) != 0) return errno;
    if (now(device, inode) == moment) break;
  }
  *value_out = value(*attributes, moment);
  return 0;
}

ChangeCounter::Change::Change(ChangeCounter& counter, std::uint64_t device, std::uint64_t inode)
    : stripe_(counter.stripe_of(device, inode)), device_(device), inode_(inode) {
  std::lock_guard lock(stripe_.mutex);
  for (Change* other = stripe_.active; other != nullptr; other = other->next_) {
    if (other->device_ == device && other->inode_ == inode) alone_ = other->alone_ = false;
  }
  next_ = stripe_.active;
  stripe_.active = this;
  stripe_.busy.fetch_add(1);
}

ChangeCounter::Change::~Change() {
  if (!ended_) end(0);
}

std::uint64_t ChangeCounter::Change::before(const struct stat& attributes) {
  std::uint64_t value = change_of_time(attributes.st_ctim);
  std::lock_guard lock(stripe_.mutex);
  if (const Remembered* remembered = stripe_.find({device_, inode_})) {
    value = std::max(value, remembered->value);
  }
  told_ = std::max(told_, value);
  before_ = value;
  told_before_ = true;
  return value;
}

std::uint64_t ChangeCounter::Change::finish(const struct stat& after) {
  return end(change_of_time(after.st_ctim));
}

void ChangeCounter::Change::unlink() {
  Change** link = &stripe_.active;
  while (*link != this)
    link = &(*link)->next_;
  *link = next_;
}

/// Others that are under way must end with yet another value: this one is about to be told.
void ChangeCounter::Change::tell_others(std::uint64_t value) {
  for (Change* other = stripe_.active; other != nullptr; other = other->next_) {
    if (other->device_ == device_ && other->inode_ == inode_) {
      other->told_ = std::max(other->told_, value);
    }
  }
}

std::uint64_t ChangeCounter::Change::give_up() {
  std::lock_guard lock(stripe_.mutex);
  unlink();
  tell_others(before_);
  // Attributes that were read meanwhile are as good as if this had never begun.
  stripe_.busy.fetch_sub(1);
  ended_ = true;
  return before_;
}

std::uint64_t ChangeCounter::Change::end(std::uint64_t after) {
  std::lock_guard lock(stripe_.mutex);
  const Inode inode{device_, inode_};
  unlink();
  if (!told_before_) told_ = std::max(told_, clock_value());
  const Remembered* remembered = stripe_.find(inode);
  std::uint64_t value = std::max(after, remembered == nullptr ? 0 : remembered->value);
  value = std::max(value, told_ + 1);
  // Once remembered, always: who has read attributes before this change and asks only now must not
  // be told less than others were before.
  if (value > after || remembered != nullptr) stripe_.remember(inode, value);
  tell_others(value);
  stripe_.ended[stripe_.ends.load() % kPerStripe] = inode;
  stripe_.ends.fetch_add(1);
  stripe_.busy.fetch_sub(1);  // last, see value()
  ended_ = true;
  return value;
}

}  // namespace nfsrdma
