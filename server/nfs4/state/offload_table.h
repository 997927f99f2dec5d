// SPDX-License-Identifier: Apache-2.0
// OffloadTable: the copies that go on behind their replies, by copy stateid (RFC 7862 4.8, 15.8,
// 15.9): how far each has come, how it ended, and for how long that is to be known: until the
// client has answered CB_OFFLOAD or has sent OFFLOAD_CANCEL.
//
// Who copies, and how clients are told, is for the caller. Stateids share their form with those of
// OpenStates and DelegationTable and have numbers of their own.
//
// Pure: no I/O, no clock. The caller serialises. An Offload* holds until the next call that may end
// it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rpcrdma/base/bytes.h"
#include "server/nfs4/state/open_states.h"

namespace nfsrdma::nfs4 {

using OffloadNumber = std::uint64_t;

struct Offload {
  OffloadNumber number = 0;
  ClientId client = 0;
  /// Who of the client asked for it, and may cancel it (RFC 7862 4.1.2).
  std::string principal;
  /// The file that is written, as the client named it.
  std::vector<std::byte> handle;
  /// The write verifier from before the first byte.
  Verifier verifier{};
  std::uint64_t copied = 0;  // bytes, from the start and without gaps
  bool ended = false;
  int error = 0;  // errno; 0 until it has ended, and when that was well
};

class OffloadTable {
 public:
  /// Both count copies that go on as well as those whose end the client has not acknowledged.
  struct Limits {
    std::size_t all = 64;  // each holds two files open
    std::size_t per_client = 8;
  };
  /// `boot` differs each time the server starts: stateids from before are nobody's.
  OffloadTable(std::uint32_t boot, const Limits& limits) : boot_(boot), limits_(limits) {}

  using Status = OpenStates::Status;

  /// Does the number of such a stateid belong here?
  static bool is_one(const Stateid& stateid);

  bool may_begin(ClientId client) const;
  /// After may_begin().
  const Offload& begin(ClientId client, const std::string& principal, ByteSpan handle,
                       const Verifier& verifier);
  Stateid stateid_of(const Offload& offload) const;

  /// Null when it is no more.
  const Offload* find(OffloadNumber number) const;
  /// OFFLOAD_STATUS: of that client, on that file. Null: NFS4ERR_BAD_STATEID.
  const Offload* find(ClientId client, const Stateid& stateid, ByteSpan handle) const;
  /// TEST_STATEID.
  Status test(ClientId client, const Stateid& stateid) const;
  /// FREE_STATEID: kLocksHeld while it goes on, which OFFLOAD_CANCEL ends. After that the client
  /// needs to be told of its end no more.
  Status free(ClientId client, const Stateid& stateid);
  /// OFFLOAD_CANCEL: it is no more. 0: NFS4ERR_BAD_STATEID, also where somebody else began it.
  OffloadNumber cancel(ClientId client, const std::string& principal, const Stateid& stateid,
                       ByteSpan handle);

  /// `bytes` more have been copied. False: it is no more, nobody wants the rest.
  bool advance(OffloadNumber number, std::uint64_t bytes);
  /// Nothing more will be copied. `error`: errno, 0 for well. Nothing when it is no more.
  void end(OffloadNumber number, int error);
  /// Those whose end the client is to be told.
  const std::set<OffloadNumber>& ended() const { return ended_; }
  /// The client knows how it ended. Nothing when it is no more.
  void acknowledged(OffloadNumber number);
  /// The client is gone.
  void end_client(ClientId client);

  std::size_t size() const { return all_.size(); }

 private:
  void erase(OffloadNumber number);

  const std::uint32_t boot_;
  const Limits limits_;
  std::uint64_t last_count_ = 0;
  std::map<OffloadNumber, Offload> all_;
  std::map<ClientId, std::set<OffloadNumber>> by_client_;
  std::set<OffloadNumber> ended_;
};

}  // namespace nfsrdma::nfs4
