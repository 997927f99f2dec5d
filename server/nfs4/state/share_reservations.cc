// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/share_reservations.h"

#include <limits>

#include "rpcrdma/base/check.h"

namespace nfsrdma::nfs4 {
namespace {

constexpr std::uint16_t kMost = std::numeric_limits<std::uint16_t>::max();

constexpr unsigned number_of(const Share& share) {
  return share.access + 4u * share.deny;
}
constexpr Share combination(unsigned number) {
  return {static_cast<std::uint8_t>(number % 4), static_cast<std::uint8_t>(number / 4)};
}
constexpr bool within(const Share& part, const Share& whole) {
  return (part.access & ~whole.access) == 0 && (part.deny & ~whole.deny) == 0;
}
void add(Share* sum, const Share& more) {
  sum->access |= more.access;
  sum->deny |= more.deny;
}
/// Takes what had `before` out of the counts, and what has `after` into them.
void recount(std::array<std::size_t, 2>* counts, std::uint8_t before, std::uint8_t after) {
  for (unsigned bit = 0; bit < 2; ++bit)
    (*counts)[bit] += ((after >> bit) & 1u) - std::size_t{(before >> bit) & 1u};
}
std::uint8_t bits_of(const std::array<std::size_t, 2>& counts) {
  return static_cast<std::uint8_t>((counts[0] != 0 ? kShareRead : 0) |
                                   (counts[1] != 0 ? kShareWrite : 0));
}

}  // namespace

void ShareReservations::change(Open& open, const Share& share) {
  recount(&access_, open.share.access, share.access);
  recount(&deny_, open.share.deny, share.deny);
  open.share = share;
}

void ShareReservations::end(Opens::iterator open) {
  change(open->second, {});
  opens_.erase(open);
}

Share ShareReservations::together() const {
  return {bits_of(access_), bits_of(deny_)};
}

bool ShareReservations::open(OpenId id, const Share& share) {
  NFSRDMA_CHECK(share.access <= 3 && share.deny <= 3);
  // Also what this very owner has denied (the pseudo code of RFC 8881 9.7 knows no owners).
  const Share there = together();
  if ((share.access & there.deny) != 0 || (share.deny & there.access) != 0) return false;
  Open& own = opens_[id];
  Share sum = own.share;
  add(&sum, share);
  change(own, sum);
  std::uint16_t& count = own.asked[number_of(share)];
  if (count < kMost) ++count;
  return true;
}

bool ShareReservations::undo(OpenId id, const Share& share) {
  const auto found = opens_.find(id);
  if (found == opens_.end()) return false;
  Open& open = found->second;
  std::uint16_t& count = open.asked[number_of(share)];
  if (count > 0 && count < kMost) --count;
  Share sum;
  bool any = false;
  for (unsigned i = 0; i < kCombinations; ++i) {
    if (open.asked[i] == 0) continue;
    add(&sum, combination(i));
    any = true;
  }
  if (any) {
    change(open, sum);
  } else {
    end(found);
  }
  return any;
}

ShareReservations::Downgrade ShareReservations::downgrade(OpenId id, const Share& share) {
  const auto found = opens_.find(id);
  NFSRDMA_CHECK(found != opens_.end());
  Open& open = found->second;
  if (!valid(share)) return Downgrade::kInvalid;
  // The OPENs that may stay are those within the new share; together they must make it up.
  Share sum;
  std::array<std::uint16_t, kCombinations> stay{};
  for (unsigned i = 0; i < kCombinations; ++i) {
    if (open.asked[i] == 0 || !within(combination(i), share)) continue;
    add(&sum, combination(i));
    stay[i] = open.asked[i];
  }
  if (sum != share) return Downgrade::kInvalid;
  change(open, share);
  open.asked = stay;
  return Downgrade::kDone;
}

void ShareReservations::close(OpenId id) {
  if (const auto found = opens_.find(id); found != opens_.end()) end(found);
}

bool ShareReservations::allows(std::uint8_t access, OpenId own) const {
  const std::uint8_t its = share(own).deny;
  for (unsigned bit = 0; bit < 2; ++bit) {
    if (((access >> bit) & 1u) != 0 && deny_[bit] > ((its >> bit) & 1u)) return false;
  }
  return true;
}

Share ShareReservations::share(OpenId id) const {
  const auto found = opens_.find(id);
  return found == opens_.end() ? Share{} : found->second.share;
}

}  // namespace nfsrdma::nfs4
