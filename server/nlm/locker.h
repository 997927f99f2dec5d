// SPDX-License-Identifier: Apache-2.0
// Takes and releases the locks and shares of NLM, in the tables of NFSv4's state and in the kernel
// (nfs4/lock_mirror.h), so that clients of all versions and processes of this machine keep each
// other out.
//
// Threads: those that may block, without ServerState::mutex.
#pragma once

#include <functional>
#include <optional>

#include "server/nfs4/server_state.h"
#include "server/nlm/waits.h"
#include "xdr/nlm4.h"

namespace nfsrdma::nlm {

/// The lock-owner of a request, as OpenStates knows it: `svid` and `oh` together.
std::string owner_name(std::uint32_t svid, ByteSpan oh);
/// The other way round. An owner of NFSv4 has no svid: 0, and its name for `oh`, in its bytes.
void split_owner(const nfs4::Client* client, const std::string& name, std::uint32_t* svid,
                 ByteSpan* oh);

/// The range that `offset` and `length` name, a length of 0 being to the end of the file; empty
/// where there is no such (NLM4_FBIG).
std::optional<ByteRange> range_of(std::uint64_t offset, std::uint64_t length);
std::uint64_t wire_length(const ByteRange& range);

struct LockOrder {
  Wish wish;
  bool reclaim = false;
  /// NM_LOCK: nobody notifies that host after a restart.
  bool monitored = true;
  /// Asked under the mutex, as the lock is about to be entered: is it still wanted? Empty: it is.
  std::function<bool()> wanted{};
};

struct LockResult {
  /// NLM4_GRANTED, NLM4_DENIED, NLM4_DENIED_NOLOCKS, NLM4_DENIED_GRACE_PERIOD: ask later.
  xdr::nlm4_stats stat = xdr::nlm4_stats::NLM4_GRANTED;
  /// With NLM4_DENIED, whose it is: a client's, or a process of this machine (client 0).
  std::optional<nfs4::OpenStates::Holder> holder{};
  bool unwanted = false;  // wanted() said no; nothing was changed
};

/// `file`: pinned by the caller.
LockResult take_lock(nfs4::ServerState& state, FileEntry& file, const LockOrder& order);
/// NLM4_GRANTED with `holder` empty: nobody is in the way.
LockResult test_lock(nfs4::ServerState& state, const FileEntry& file, const Wish& wish);
/// Also of what is not held. NLM4_GRANTED or NLM4_DENIED_NOLOCKS. `wanted`: asked under the mutex;
/// when it says no, nothing is done.
xdr::nlm4_stats release_lock(nfs4::ServerState& state, FileEntry& file, const Wish& wish,
                             const std::function<bool()>& wanted = {});

xdr::nlm4_stats take_share(nfs4::ServerState& state, FileEntry& file, nfs4::ClientId client,
                           const std::string& owner, const nfs4::Share& share, bool reclaim);
void release_share(nfs4::ServerState& state, FileEntry& file, nfs4::ClientId client,
                   const std::string& owner);

}  // namespace nfsrdma::nlm
