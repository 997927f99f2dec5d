// SPDX-License-Identifier: Apache-2.0
// KnownServer: what EXCHANGE_ID was asked with and what was answered. Whoever answers the same to
// the same question is the same server, by whatever address (RFC 8881, section 2.10.5): a session
// may go over connections to several of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "xdr/nfs4.h"

namespace nfsrdma::nfs4 {

struct KnownServer {
  std::string owner;  // co_ownerid: who we are
  xdr::verifier4 verifier{};
  std::uint64_t client_id = 0;
  std::uint64_t minor_id = 0;  // of eir_server_owner
  std::vector<std::byte> major_id;
  std::vector<std::byte> scope;

  /// Of an answer to exchange_id_args(owner, verifier).
  static KnownServer of(const std::string& owner, const xdr::verifier4& verifier,
                        const xdr::EXCHANGE_ID4resok& answer);
  bool operator==(const KnownServer&) const = default;
  /// The same server, which knows another client id of ours: it has restarted in between.
  bool same_but_for_the_client(const KnownServer& other) const {
    return minor_id == other.minor_id && major_id == other.major_id && scope == other.scope;
  }
};

/// `owner` outlives what is returned.
xdr::EXCHANGE_ID4args exchange_id_args(const std::string& owner, const xdr::verifier4& verifier);

}  // namespace nfsrdma::nfs4
