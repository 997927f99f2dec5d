// SPDX-License-Identifier: Apache-2.0
// Credits (RFC 8166, section 3.3): how many calls each client may have outstanding. All
// connections of a device share one queue of receive buffers, so the ledger hands out rights to
// it: the sum of all grants never exceeds the receives that are, or can at once be, posted.
//
// A connection starts small, grows while it uses what it has, and gives back at a reply when it
// does not and others need it. A lowered grant frees its share only one reply later, because calls
// sent under the old grant may still be on their way. An idle connection sends no call to whose
// reply a lower grant could be tied, so the first share, and what somebody gets who has one call
// at a time, is the smaller the more is handed out: thousands of idle clients fit.
#pragma once

#include <algorithm>
#include <cstdint>

namespace nfsrdma {

struct CreditLimits {
  std::uint32_t receives = 32'768;  // receive buffers of one device's shared queue at most
  std::uint32_t reserve = 64;       // never granted: messages that consume none (errors, DONE)
  std::uint32_t initial = 8;        // a connection's first grant
  std::uint32_t maximum = 128;      // a connection's largest grant
};

/// One device's account.
class CreditLedger {
 public:
  explicit CreditLedger(const CreditLimits& limits) : limits_(limits) {}

  const CreditLimits& limits() const { return limits_; }
  std::uint32_t capacity() const {
    return limits_.receives > limits_.reserve ? limits_.receives - limits_.reserve : 1;
  }
  std::uint32_t granted() const { return granted_; }
  std::uint32_t headroom() const { return capacity() - granted_; }
  /// An eighth is handed out: from then on what nobody uses is not for keeping.
  bool is_short() const { return std::uint64_t{granted_} * 8 >= capacity(); }
  /// Whole eighths of all there is that are handed out.
  std::uint32_t eighths_granted() const {
    return static_cast<std::uint32_t>(std::uint64_t{granted_} * 8 / capacity());
  }
  /// Receives that must be posted or in use for the grants in force.
  std::uint32_t receives_needed() const { return granted_ + limits_.reserve; }

  /// The device's queue holds no more than that. Before anything is granted.
  void limit_receives(std::uint32_t depth) {
    limits_.receives = std::min(limits_.receives, depth);
    limits_.reserve = std::min(limits_.reserve, limits_.receives / 4);
  }
  /// How many receives there really are: nothing is granted beyond them.
  void set_posted(std::uint32_t receives) { posted_ = receives; }

  /// Up to `wanted`, as far as there is headroom.
  std::uint32_t take(std::uint32_t wanted) {
    const std::uint32_t covered = posted_ > receives_needed() ? posted_ - receives_needed() : 0;
    std::uint32_t got = std::min({wanted, headroom(), covered});
    granted_ += got;
    return got;
  }
  void give_back(std::uint32_t credits) { granted_ -= std::min(credits, granted_); }

 private:
  CreditLimits limits_;
  std::uint32_t granted_ = 0;
  std::uint32_t posted_ = 0;
};

/// One connection's share.
class ConnectionCredits {
 public:
  explicit ConnectionCredits(CreditLedger& ledger) : ledger_(ledger) {}
  ConnectionCredits(const ConnectionCredits&) = delete;
  ConnectionCredits& operator=(const ConnectionCredits&) = delete;
  ~ConnectionCredits() { ledger_.give_back(granted_ + retiring_); }

  /// The first share; false when there is nothing left to give: refuse the connection.
  bool open();
  /// A call arrived that asks for `requested` credits; `outstanding` calls, it included, are open.
  void on_call(std::uint32_t requested, std::uint32_t outstanding);
  /// Credits that the next on_reply() will want to add: have receives for them posted before.
  std::uint32_t wish() const;
  /// The grant to send with the next reply. Never 0.
  std::uint32_t on_reply();

  std::uint32_t granted() const { return granted_; }
  /// What the client may have outstanding by any grant that it can know. Who keeps to it never has
  /// more receives than that.
  std::uint32_t allowed() const { return std::max(granted_ + retiring_, before_); }
  /// More calls than this open at once: the client ignores its grant. The slack is not in the
  /// ledger: who uses it is cut earlier when the receives run low (ResponderShard).
  std::uint32_t tolerated() const { return allowed() + kSlack; }

 private:
  static constexpr std::uint32_t kSlack = 32;
  void shrink();

  CreditLedger& ledger_;
  std::uint32_t granted_ = 0;
  std::uint32_t retiring_ = 0;  // given up at the last reply, freed at the next
  std::uint32_t requested_ = 1;
  // A grant that was lowered, until no call that was sent under it can still be on its way. Whoever
  // has n calls outstanding at most, m of which are here, has sent n - m at most that come behind.
  std::uint32_t before_ = 0;
  std::uint32_t on_their_way_ = 0;
  std::uint32_t outstanding_ = 0;  // as of the last call or reply
  std::uint32_t peak_ = 0;         // most calls outstanding since the window began
  std::uint32_t replies_ = 0;      // in this window
};

}  // namespace nfsrdma
