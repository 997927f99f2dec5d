// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/share_reservations.h"

#include <algorithm>
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

}  // namespace

const ShareReservations::Open* ShareReservations::find(OpenId id) const {
  const auto open =
      std::find_if(opens_.begin(), opens_.end(), [id](const Open& o) { return o.id == id; });
  return open == opens_.end() ? nullptr : &*open;
}

bool ShareReservations::open(OpenId id, const Share& share) {
  NFSRDMA_CHECK(share.access <= 3 && share.deny <= 3);
  Open* own = nullptr;
  for (Open& other : opens_) {
    if (other.id == id) own = &other;
    // Also what this very owner has denied (the pseudo code of RFC 8881 9.7 knows no owners).
    if ((share.access & other.share.deny) != 0 || (share.deny & other.share.access) != 0) {
      return false;
    }
  }
  if (own == nullptr) own = &opens_.emplace_back(Open{id, {}, {}});
  add(&own->share, share);
  std::uint16_t& count = own->asked[number_of(share)];
  if (count < kMost) ++count;
  return true;
}

bool ShareReservations::undo(OpenId id, const Share& share) {
  auto* open = const_cast<Open*>(find(id));
  if (open == nullptr) return false;
  std::uint16_t& count = open->asked[number_of(share)];
  if (count > 0 && count < kMost) --count;
  Share sum;
  bool any = false;
  for (unsigned i = 0; i < kCombinations; ++i) {
    if (open->asked[i] == 0) continue;
    add(&sum, combination(i));
    any = true;
  }
  open->share = sum;
  if (any) return true;
  close(id);
  return false;
}

ShareReservations::Downgrade ShareReservations::downgrade(OpenId id, const Share& share) {
  auto* open = const_cast<Open*>(find(id));
  NFSRDMA_CHECK(open != nullptr);
  if (!valid(share)) return Downgrade::kInvalid;
  // The OPENs that may stay are those within the new share; together they must make it up.
  Share sum;
  std::array<std::uint16_t, kCombinations> stay{};
  for (unsigned i = 0; i < kCombinations; ++i) {
    if (open->asked[i] == 0 || !within(combination(i), share)) continue;
    add(&sum, combination(i));
    stay[i] = open->asked[i];
  }
  if (sum != share) return Downgrade::kInvalid;
  open->share = share;
  open->asked = stay;
  return Downgrade::kDone;
}

void ShareReservations::close(OpenId id) {
  std::erase_if(opens_, [id](const Open& open) { return open.id == id; });
}

bool ShareReservations::allows(std::uint8_t access, OpenId own) const {
  return std::none_of(opens_.begin(), opens_.end(), [access, own](const Open& open) {
    return open.id != own && (open.share.deny & access) != 0;
  });
}

Share ShareReservations::share(OpenId id) const {
  const Open* open = find(id);
  return open == nullptr ? Share{} : open->share;
}

}  // namespace nfsrdma::nfs4
