// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/credits.h"

namespace nfsrdma {

namespace {
// Replies after which the use of the grant is judged anew.
constexpr std::uint32_t kWindow = 64;
}  // namespace

bool ConnectionCredits::open() {
  // 8, then 4, 2 and 1.
  granted_ = ledger_.take(std::max(1u, ledger_.limits().initial >> ledger_.eighths_granted()));
  return granted_ > 0;
}

void ConnectionCredits::on_call(std::uint32_t requested, std::uint32_t outstanding) {
  requested_ = std::clamp(requested, 1u, std::max(1u, ledger_.limits().maximum));
  peak_ = std::max(peak_, outstanding);
  outstanding_ = outstanding;
  if (on_their_way_ > 0 && --on_their_way_ == 0) before_ = 0;
}

std::uint32_t ConnectionCredits::wish() const {
  if (granted_ >= requested_) return 0;
  const std::uint32_t used = ledger_.is_short() ? peak_ : peak_ * 4;
  if (used < granted_) return 0;
  return std::min(granted_, requested_ - granted_);
}

std::uint32_t ConnectionCredits::on_reply() {
  if (outstanding_ > 0) --outstanding_;
  ledger_.give_back(retiring_);
  retiring_ = 0;
  if (const std::uint32_t wanted = wish(); wanted > 0) {
    granted_ += ledger_.take(wanted);
  } else if (granted_ > requested_) {
    shrink();
  } else if (++replies_ >= kWindow) {
    if (ledger_.is_short() && peak_ * 2 < granted_) shrink();
    replies_ = 0;
    peak_ = 0;
  }
  return granted_;
}

void ConnectionCredits::shrink() {
  const std::uint32_t target = std::clamp(std::max(peak_ * 2, 1u), 1u, requested_);
  if (target >= granted_) return;
  before_ = std::max(before_, granted_);
  on_their_way_ = before_ - std::min(before_ - 1, outstanding_);
  retiring_ = granted_ - target;
  granted_ = target;
}

}  // namespace nfsrdma
