// SPDX-License-Identifier: Apache-2.0
// The delegations of a FakeNfs4Server: it gives what the test says.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "xdr/nfs4.h"

namespace nfsrdma {

struct FakeDelegations {
  // --- what the test sets: of the next OPENs that want one ---
  std::optional<xdr::open_delegation_type4> give;
  std::uint64_t space = 0;    // of a write delegation
  bool recall_again = false;  // in the very answer that gives one

  // --- what it looks at ---
  std::vector<std::uint64_t> given, returned;

  /// What the OPEN is answered with, as `stateid`; it is used when one is given.
  xdr::open_delegation4 of(std::uint32_t share_access, const xdr::stateid4& stateid) const {
    using enum xdr::open_delegation_type4;
    xdr::open_delegation4 out;
    if (!wanted(share_access)) return out;
    out.delegation_type = *give;
    if (*give == OPEN_DELEGATE_READ) {
      out.read.stateid = stateid;
      out.read.recall = recall_again;
    } else if (*give == OPEN_DELEGATE_WRITE) {
      out.write.stateid = stateid;
      out.write.recall = recall_again;
      out.write.space_limit.filesize = space;
    }
    return out;
  }
  bool wanted(std::uint32_t share_access) const {
    const std::uint32_t want = share_access & xdr::OPEN4_SHARE_ACCESS_WANT_DELEG_MASK;
    return give && want != xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
  }
};

}  // namespace nfsrdma
