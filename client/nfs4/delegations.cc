// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/delegations.h"

#include <algorithm>
#include <limits>

#include "client/nfs4/call.h"
#include "client/nfs4/convert.h"
#include "client/nfs4/owner_bytes.h"
#include "client/nfs4/stateid_check.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfs_opnum4;
using xdr::nfsstat4;
using xdr::open_delegation_type4;
using xdr::stateid4;

constexpr Duration kRetryFirst = std::chrono::seconds(1);
constexpr Duration kRetryLongest = std::chrono::seconds(15);
/// The server says so with each SEQUENCE until it is content, some of them for good.
constexpr Duration kCheckEvery = std::chrono::seconds(5);
constexpr Duration kCheckLongest = std::chrono::minutes(10);
/// Leases without any use after which one is given back.
constexpr int kUnusedLeases = 2;
/// Given back at once, of those that are not in the table.
constexpr unsigned kMostStrays = 16;

std::uint64_t limit_of(const xdr::nfs_space_limit4& limit) {
  // All there is: no promise that there will be room for it.
  constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
  if (limit.limitby == xdr::limit_by4::NFS_LIMIT_SIZE) {
    return limit.filesize == kNoLimit ? 0 : limit.filesize;
  }
  const std::uint64_t blocks = limit.mod_blocks.num_blocks;
  return blocks * limit.mod_blocks.bytes_per_block;  // two 32-bit numbers
}

}  // namespace

Delegations::Delegations(Session& session)
    : session_(session), pauses_(session.rpc().environment()) {
  session_.set_delegations(this);
}

Delegations::~Delegations() {
  stop();
}

void Delegations::stop() {
  if (stopped_) return;
  stopped_ = true;
  holder_ = nullptr;
  stopping_.cancel();
  pauses_.nudge();
}

void Delegations::granted(const FileHandle& file, const AuthSys& identity, std::uint32_t access,
                          const xdr::open_delegation4& delegation) {
  Row row;
  bool recalled = false;
  if (delegation.delegation_type == open_delegation_type4::OPEN_DELEGATE_READ) {
    row.kind = DelegationKind::kRead;
    row.stateid = delegation.read.stateid;
    recalled = delegation.read.recall;
  } else if (delegation.delegation_type == open_delegation_type4::OPEN_DELEGATE_WRITE) {
    row.kind = DelegationKind::kWrite;
    row.stateid = delegation.write.stateid;
    row.kept_back_limit = limit_of(delegation.write.space_limit);
    recalled = delegation.write.recall;
  } else {
    return;
  }
  if (stopped_) return;
  const auto known = rows_.find(file);
  if (known != rows_.end()) {
    // A server has one for a file and client at most: what it says last counts.
    const bool same = known->second.stateid.other == row.stateid.other;
    if (known->second.phase != Phase::kHeld && same) return;
    erase(known);
  }
  row.access = access;
  row.identity = identity;
  row.used = session_.rpc().environment().now();
  row.place = oldest_.insert(oldest_.end(), file);
  const auto made = rows_.emplace(file, row).first;
  if (recalled) leave(made);
  if (rows_.size() > kMost) keep_most(kMost);
  if (!std::exchange(watching_, true)) tasks_.spawn(watch_unused());
}

void Delegations::erase(Rows::iterator row) {
  oldest_.erase(row->second.place);
  rows_.erase(row);
}

void Delegations::touch(const Row& row) const {
  row.used = session_.rpc().environment().now();
  oldest_.splice(oldest_.end(), oldest_, row.place);
}

DelegationKind Delegations::held(const FileHandle& file) {
  const auto row = rows_.find(file);
  if (row == rows_.end() || row->second.phase != Phase::kHeld) return DelegationKind::kNone;
  // The server may have let others in.
  if (session_.lease_is_over()) return DelegationKind::kNone;
  touch(row->second);
  return row->second.kind;
}

stateid4 Delegations::stateid_for(const FileHandle& file, std::uint32_t access) const {
  if (rows_.empty()) return {};
  const auto row = rows_.find(file);
  if (row == rows_.end() || row->second.phase == Phase::kReturning) return {};
  const bool writes = (access & xdr::OPEN4_SHARE_ACCESS_WRITE) != 0;
  if (writes && row->second.kind != DelegationKind::kWrite) return {};
  if ((row->second.access & access) != access) return {};
  touch(row->second);
  return newest(session_, row->second.stateid);
}

std::optional<stateid4> Delegations::stateid_to_claim_by(const FileHandle& file) const {
  const auto row = rows_.find(file);
  if (row == rows_.end() || row->second.phase == Phase::kReturning) return std::nullopt;
  return newest(session_, row->second.stateid);
}

std::uint64_t Delegations::kept_back_limit(const FileHandle& file) const {
  const auto row = rows_.find(file);
  const bool held = row != rows_.end() && row->second.phase == Phase::kHeld;
  return held ? row->second.kept_back_limit : 0;
}

bool Delegations::gone(const FileHandle& file, const stateid4& used, nfsstat4 status) {
  const auto row = rows_.find(file);
  if (row == rows_.end()) return false;
  const AuthSys identity = row->second.identity;
  if (!forget(file, used)) return false;
  // check_all() does not come by it any more.
  if (is_revoked(status) && session_.minor() > 0) tasks_.spawn(free_revoked(identity, used));
  return true;
}

Task<void> Delegations::free_revoked(AuthSys identity, stateid4 stateid) {
  OpContext op;
  op.identity = identity;
  op.cancel = &stopping_;
  co_await free_stateid(session_, op, stateid);
}

bool Delegations::forget(const FileHandle& file, const stateid4& stateid) {
  const auto row = rows_.find(file);
  if (row == rows_.end() || row->second.stateid.other != stateid.other) return false;
  const bool told = row->second.phase != Phase::kHeld;
  erase(row);
  if (!told && holder_ != nullptr) holder_->give_up(file);
  return true;
}

// --- the end of one ---

void Delegations::leave(Rows::iterator row) {
  if (row->second.phase != Phase::kHeld) return;
  row->second.phase = Phase::kLeaving;
  const FileHandle file = row->first;  // the row may go
  if (holder_ != nullptr) {
    holder_->give_up(file);
  } else if (!stopped_) {
    tasks_.spawn(give_back_later(file));
  }
}

template <typename Enough>
void Delegations::leave_oldest(Enough enough) {
  // A copy: the holder may be done with one at once.
  std::vector<FileHandle> all(oldest_.begin(), oldest_.end());
  for (const FileHandle& file : all) {
    const auto row = rows_.find(file);
    if (row == rows_.end() || row->second.phase != Phase::kHeld) continue;
    if (enough(row->second)) return;
    leave(row);
  }
}

Task<void> Delegations::give_back_later(FileHandle file) {
  co_await give_back(file);
}

Task<void> Delegations::give_back_stray(FileHandle file, stateid4 stateid) {
  ++strays_;
  OpContext op;
  op.identity = session_.identity();
  op.cancel = &stopping_;
  [[maybe_unused]] const bool answered = co_await send_back(op, file, stateid);
  --strays_;
}

Task<void> Delegations::give_back(const FileHandle& file) {
  const FileHandle handle = file;
  const auto row = rows_.find(handle);
  if (row == rows_.end() || row->second.phase == Phase::kReturning || stopped_) co_return;
  row->second.phase = Phase::kReturning;
  const stateid4 stateid = row->second.stateid;
  const AuthSys identity = row->second.identity;
  OpContext op;
  op.identity = identity;
  op.cancel = &stopping_;
  const bool answered = co_await send_back(op, handle, stateid);
  if (answered || stopped_) co_return was_given_back(handle, stateid);
  tasks_.spawn(give_back_again(handle, stateid, identity));
}

void Delegations::was_given_back(const FileHandle& file, const stateid4& stateid) {
  const auto now = rows_.find(file);
  if (now != rows_.end() && now->second.stateid.other == stateid.other) erase(now);
}

Task<void> Delegations::give_back_again(FileHandle file, stateid4 stateid, AuthSys identity) {
  OpContext op;
  op.identity = identity;
  op.cancel = &stopping_;
  bool answered = false;
  for (Duration wait = kRetryFirst; !answered && !stopped_;
       wait = std::min(2 * wait, kRetryLongest)) {
    co_await pauses_.pause(wait, &stopping_);
    answered = co_await send_back(op, file, stateid);
  }
  was_given_back(file, stateid);
}

bool Delegations::may_be_in_the_way(const FileHandle& file) const {
  const auto row = rows_.find(file);
  return row != rows_.end() && row->second.kind == DelegationKind::kRead;
}

Task<void> Delegations::give_way(const FileHandle& file) {
  if (may_be_in_the_way(file)) co_await give_back(file);
}

Task<bool> Delegations::send_back(const OpContext& op, FileHandle file, stateid4 stateid) {
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_DELEGRETURN, xdr::DELEGRETURN4args{newest(session_, stateid)});
  };
  auto ignore = [](CompoundReader& in) { static_cast<void>(in); };
  Result<Ending> end = co_await call(session_, op, {.once = true}, build, ignore);
  if (!end.ok()) co_return end.error().code != Errc::kTimedOut;
  if (end->status == nfsstat4::NFS4ERR_MOVED) session_.acknowledge_later(file);
  // What is revoked the server keeps until it is told.
  if (stateid_is_gone(end->status)) {
    [[maybe_unused]] const bool valid = co_await still_valid(session_, op, stateid);
  }
  co_return true;
}

Task<void> Delegations::give_back_all(const OpContext& op) {
  holder_ = nullptr;
  constexpr int kTogether = 32;
  TaskGroup some;
  for (int i = 0; i < kTogether; ++i)
    some.spawn(give_back_some(op));
  co_await some.wait();
}

Task<void> Delegations::give_back_some(const OpContext& op) {
  while (!rows_.empty() && !stopped_) {
    const auto row = rows_.begin();
    const FileHandle file = row->first;
    const stateid4 stateid = row->second.stateid;
    OpContext as_opener = op;
    as_opener.identity = row->second.identity;
    erase(row);
    [[maybe_unused]] const bool answered = co_await send_back(as_opener, file, stateid);
    if (op.cancel != nullptr && op.cancel->cancelled()) co_return;
  }
}

Task<void> Delegations::watch_unused() {
  while (!stopped_) {
    const Duration lease = session_.lease();
    co_await pauses_.pause(lease / 2, &stopping_, &stopped_);
    if (stopped_) break;
    const TimePoint limit = session_.rpc().environment().now() - kUnusedLeases * lease;
    // What is promised by a server that has not been heard of for a lease is promised no more.
    const bool over = session_.lease_is_over();
    leave_oldest([limit, over](const Row& row) { return !over && row.used > limit; });
    if (rows_.empty()) break;
  }
  watching_ = false;
}

// --- the server's word ---

void Delegations::all_lost() {
  Rows before;
  before.swap(rows_);
  oldest_.clear();
  for (const auto& [file, row] : before) {
    if (row.phase == Phase::kHeld && holder_ != nullptr) holder_->give_up(file);
  }
}

void Delegations::lose(const WhichFiles& which) {
  std::vector<FileHandle> told;
  for (auto row = rows_.begin(); row != rows_.end();) {
    const auto here = row++;
    if (!which(here->first)) continue;
    if (here->second.phase == Phase::kHeld) told.push_back(here->first);
    erase(here);
  }
  for (const FileHandle& file : told)
    if (holder_ != nullptr) holder_->give_up(file);
}

nfsstat4 Delegations::recall(const stateid4& stateid, const FileHandle& file) {
  const auto row = rows_.find(file);
  if (row == rows_.end() || row->second.stateid.other != stateid.other) {
    // It may be in an answer that is still on its way.
    if (asking_.contains(file) || stopped_) return nfsstat4::NFS4ERR_DELAY;
    if (strays_ >= kMostStrays) return nfsstat4::NFS4ERR_BAD_STATEID;
    tasks_.spawn(give_back_stray(file, stateid));
    return nfsstat4::NFS4_OK;
  }
  leave(row);
  return nfsstat4::NFS4_OK;
}

std::optional<HeldAttributes> Delegations::held_attributes(const FileHandle& file) {
  const auto row = rows_.find(file);
  if (row == rows_.end() || row->second.kind != DelegationKind::kWrite) return std::nullopt;
  return holder_ == nullptr ? std::nullopt : holder_->held_attributes(file);
}

void Delegations::has_moved(const FileHandle& file) {
  if (holder_ != nullptr) holder_->has_moved(file);
}

std::optional<std::uint64_t> Delegations::file_system_of(const FileHandle& file) const {
  const Attributes* const last = holder_ == nullptr ? nullptr : holder_->last_attributes(file);
  if (last == nullptr) return std::nullopt;
  return last->fsid;
}

void Delegations::keep_most(std::uint32_t most) {
  std::size_t held = 0;
  for (const auto& [file, row] : rows_)
    held += row.phase == Phase::kHeld ? 1u : 0u;
  leave_oldest([&](const Row&) {
    if (held <= most) return true;
    --held;
    return false;
  });
}

void Delegations::some_is_revoked() {
  const TimePoint now = session_.rpc().environment().now();
  const bool just_now = checked_at_ != TimePoint{} && now - checked_at_ < check_every_;
  if (checking_ || stopped_ || rows_.empty() || just_now) return;
  checking_ = true;
  checked_at_ = now;
  tasks_.spawn(check_all());
}

void Delegations::none_is_revoked() {
  // What it says next is news.
  check_every_ = std::min(check_every_, kCheckEvery);
}

Task<void> Delegations::check_all() {
  std::vector<FileHandle> all(oldest_.begin(), oldest_.end());
  bool found = false;
  for (const FileHandle& file : all) {
    const auto row = rows_.find(file);
    if (row == rows_.end() || row->second.phase == Phase::kReturning) continue;
    const stateid4 stateid = row->second.stateid;
    OpContext op;
    op.identity = row->second.identity;
    op.cancel = &stopping_;
    const bool valid = co_await still_valid(session_, op, stateid);
    if (stopped_) break;
    found |= !valid;
    static thread_local RateLimit limit(10, std::chrono::seconds(10));
    if (!valid && forget(file, stateid) && limit.allow()) {
      log_warning("NFSv4.{}: the server has revoked a delegation: it was not given back in time",
                  session_.minor());
    }
  }
  // A server that goes on saying so is believed less and less.
  check_every_ = found ? kCheckEvery : std::clamp(2 * check_every_, kCheckEvery, kCheckLongest);
  checking_ = false;
}

}  // namespace nfsrdma::nfs4
