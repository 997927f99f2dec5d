// SPDX-License-Identifier: Apache-2.0
// Session, when the server has given a part of what it holds for this client to another server
// together with a file system, and says so without saying which: SEQ4_STATUS_LEASE_MOVED with any
// answer (RFC 8881 11.11.9.2), or, in minor version 0, NFS4ERR_LEASE_MOVED instead of an answer to
// what has to do with any file system (RFC 7530 9.14). It goes on until the client has asked for
// each file system that has moved.
//
// So each file of which something is held is asked for, one after the other, and of each file
// system one to begin with. Where one has moved, its fs_locations are asked for as well, which is
// what servers wait for; whoever can go there (DelegationState::has_moved) is told.
//
// Minor version 0 has nothing in a COMPOUND that tells whose it is, as SEQUENCE does: RENEW is put
// behind that question, as Linux's client has it.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "client/nfs4/call.h"
#include "client/nfs4/convert.h"
#include "client/nfs4/referral_decode.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfs_opnum4;
using xdr::nfsstat4;

constexpr Duration kFindEvery = std::chrono::seconds(1);
constexpr Duration kFindLongest = std::chrono::minutes(5);
constexpr std::size_t kMostUnacknowledged = 64;
/// What nobody has where it is not (RFC 8881 11.4.1), unlike kAbsentAttributes.
constexpr xdr::bitmap4 kPresent = xdr::bitmap4::of({xdr::fattr4_number::FATTR4_TYPE});

}  // namespace

void Session::lease_moved() {
  const TimePoint now = rpc_.environment().now();
  if (finding_ || stopped_ || ended_ || now < find_again_at_) return;
  if (options_.source != nullptr) {
    find_again_at_ = now + kFindEvery;
    options_.source->lease_moved();
    return;
  }
  // A server that goes on saying so is believed less and less.
  const bool goes_on = now < find_again_at_ + find_every_;
  find_every_ = goes_on ? std::min(2 * find_every_, kFindLongest) : kFindEvery;
  finding_ = true;
  tasks_.spawn(find_what_moved());
}

Task<bool> Session::has_moved(const OpContext& op, FileHandle file) {
  auto present = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kPresent});
  };
  auto read = [](CompoundReader& in) {
    xdr::GETATTR4res got;
    if (in.next(nfs_opnum4::OP_PUTFH)) in.next(nfs_opnum4::OP_GETATTR, got);
  };
  // Without patience: a server of 4.0 might go on with NFS4ERR_LEASE_MOVED, for want of this. Who
  // says "later" will say again that something has moved.
  Result<Ending> end = co_await call(*this, op, {.patient = false}, present, read);
  if (!end.ok() || end->status != nfsstat4::NFS4ERR_MOVED) co_return false;
  co_await acknowledge_move(op, file);
  co_return true;
}

void Session::acknowledge_later(const FileHandle& file) {
  if (unacknowledged_.size() == kMostUnacknowledged) unacknowledged_.erase(unacknowledged_.begin());
  unacknowledged_.push_back(file);
}

Task<void> Session::acknowledge_move(const OpContext& op, FileHandle file) {
  OpContext as_owner;
  as_owner.identity = options_.identity;
  as_owner.cancel = op.cancel;
  bool heard = false;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAbsentAttributes});
    if (options_.minor == 0) out.op(nfs_opnum4::OP_RENEW, xdr::RENEW4args{client_id_});
  };
  auto read = [&](CompoundReader& in) {
    xdr::GETATTR4res got;
    heard = in.next(nfs_opnum4::OP_PUTFH) && in.next(nfs_opnum4::OP_GETATTR, got);
    if (!heard || options_.minor > 0) return;
    // Another one may have moved, too: NFS4ERR_LEASE_MOVED.
    xdr::Nfs4Result<xdr::Void> renewed;
    in.next(nfs_opnum4::OP_RENEW, renewed);
    heard = renewed.status != nfsstat4::NFS4ERR_DELAY;
  };
  const CallShape shape{.max_results = kMostLocations, .patient = false};
  const Result<Ending> asked = co_await call(*this, as_owner, shape, build, read);
  if (!asked.ok() || !heard) acknowledge_later(file);
}

/// Those of one file system behind the first of each: it tells of the others, as a rule.
std::size_t Session::sort_by_file_system(std::vector<HeldFile>* held) const {
  std::unordered_set<std::uint64_t> seen;
  const auto is_first = [&](const HeldFile& one) {
    const auto fsid =
        delegations_ == nullptr ? std::nullopt : delegations_->file_system_of(one.file);
    return !fsid || seen.insert(*fsid).second;
  };
  const auto others = std::stable_partition(held->begin(), held->end(), is_first);
  return static_cast<std::size_t>(others - held->begin());
}

Task<void> Session::find_what_moved() {
  OpContext op;
  op.identity = options_.identity;
  op.cancel = &stopping_;
  const std::vector<FileHandle> left = std::exchange(unacknowledged_, {});
  for (const FileHandle& file : left) {
    if (stopped_ || ended_) break;
    co_await acknowledge_move(op, file);
  }
  std::vector<HeldFile> held;
  for (const HeldFiles* const state :
       {static_cast<const HeldFiles*>(state_held_), static_cast<const HeldFiles*>(delegations_)}) {
    if (state == nullptr) continue;
    for (const FileHandle& file : state->files())
      held.push_back({state, file});
  }
  if (!held.empty()) {
    log_notice(
        "NFSv4.{}: the server says that something that is open here has moved to another server; "
        "looking what, of {} file{}",
        options_.minor, held.size(), held.size() == 1 ? "" : "s");
  }
  const std::size_t first_ones = sort_by_file_system(&held);
  bool found = false;
  for (std::size_t i = 0; i < held.size(); ++i) {
    // If that was not all, the server says so again.
    if (stopped_ || ended_ || (found && i >= first_ones)) break;
    const auto& [state, file] = held[i];
    // Those of a file system that was followed are with another session by now.
    if (!state->holds(file)) continue;
    const bool moved = co_await has_moved(op, file);
    found |= moved;
    if (moved && !stopped_ && delegations_ != nullptr) delegations_->has_moved(file);
  }
  find_again_at_ = rpc_.environment().now() + find_every_;
  finding_ = false;
}

}  // namespace nfsrdma::nfs4
