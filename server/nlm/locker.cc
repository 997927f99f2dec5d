// SPDX-License-Identifier: Apache-2.0
#include "server/nlm/locker.h"

#include <cstring>
#include <utility>

namespace nfsrdma::nlm {

namespace {

using nfs4::Client;
using nfs4::ClientId;
using nfs4::file_key;
using nfs4::FileKey;
using nfs4::GracePeriod;
using nfs4::LockMirror;
using nfs4::OpenStates;
using nfs4::ServerState;
using enum xdr::nlm4_stats;

constexpr std::size_t kSvidBytes = 4;

OpenStates::Asker as_asker(ClientId client) {
  return {client, 0};
}

/// May it have state now, and has it no record yet? With the mutex.
xdr::nlm4_stats check_grace(ServerState& state, ClientId id, bool reclaim, bool* unrecorded) {
  Client* client = state.clients.find(id);
  if (client == nullptr) return NLM4_DENIED_GRACE_PERIOD;  // it has ended, and is made anew
  state.clients.renew(*client, state.now());
  const GracePeriod::Verdict verdict =
      reclaim ? state.grace.reclaim(client->owner.id, state.now())
              : state.grace.make_new(client->owner.id, false, state.now());
  // Who comes too late for a reclaim hears the same, as from Linux's server.
  if (verdict != GracePeriod::Verdict::kGo) return NLM4_DENIED_GRACE_PERIOD;
  *unrecorded = !client->recorded;
  return NLM4_GRANTED;
}

/// Before anybody is given anything: what others lost, and that this host may reclaim, is written
/// down.
bool write_down(ServerState& state, ClientId id, bool unrecorded) {
  if (state.must_settle() && !state.settle().ok()) return false;
  return !unrecorded || state.record(id).ok();
}

/// Who of the clients is in the way; those that are gone do not keep others out. With the mutex.
std::optional<OpenStates::Holder> find_holder(ServerState& state, const FileKey& file,
                                              const Wish& wish) {
  const auto ask = [&] {
    return state.opens.test_lock(as_asker(wish.client), wish.owner, file, wish.kind, wish.range);
  };
  auto holder = ask();
  while (holder && state.end_expired({holder->client}))
    holder = ask();
  return holder;
}

LockResult denied_by(const LockMirror::Holder& holder) {
  return {NLM4_DENIED, OpenStates::Holder{{0, holder.range, holder.kind}, 0, holder.who}};
}

/// The file may have lost the last that is held of it.
void let_go(ServerState& state, const FileKey& file, ClientId id, std::vector<FilePin>* closed) {
  if (!state.opens.is_open(file)) state.let_go_of(file, closed);
  if (Client* client = state.clients.find(id)) state.count_holds(*client);
}

}  // namespace

std::string owner_name(std::uint32_t svid, ByteSpan oh) {
  std::string name(kSvidBytes, '\0');
  store_be32(reinterpret_cast<std::byte*>(name.data()), svid);
  name.append(reinterpret_cast<const char*>(oh.data()), oh.size());
  return name;
}

void split_owner(const Client* client, const std::string& name, std::uint32_t* svid, ByteSpan* oh) {
  const ByteSpan bytes = as_bytes(name);
  if (client == nullptr || !client->locks_by_nlm || bytes.size() < kSvidBytes) {
    *svid = 0;
    *oh = bytes.first(std::min(bytes.size(), xdr::kNlmMaxNetobj));
    return;
  }
  *svid = load_be32(bytes.data());
  *oh = bytes.subspan(kSvidBytes);
}

std::optional<ByteRange> range_of(std::uint64_t offset, std::uint64_t length) {
  return byte_range(offset, length == 0 ? UINT64_MAX : length);
}

std::uint64_t wire_length(const ByteRange& range) {
  return range.last == UINT64_MAX ? 0 : range.last - range.first + 1;
}

LockResult take_lock(ServerState& state, FileEntry& file, const LockOrder& order) {
  const Wish& wish = order.wish;
  const FileKey key = file_key(file);
  LockMirror::Turn turn(state.lock_mirror, file, true);
  bool unrecorded = false;
  {
    std::lock_guard guard(state.mutex);
    const auto bad = check_grace(state, wish.client, order.reclaim, &unrecorded);
    if (bad != NLM4_GRANTED) return {bad};
    if (auto holder = find_holder(state, key, wish)) return {NLM4_DENIED, std::move(holder)};
  }
  if (!write_down(state, wish.client, unrecorded && order.monitored)) return {NLM4_DENIED_NOLOCKS};
  LockMirror::Holder machine;
  switch (turn.acquire(wish.kind, wish.range, &machine)) {
    case LockMirror::Outcome::kDone:
      break;
    case LockMirror::Outcome::kLater:
      return {NLM4_DENIED_GRACE_PERIOD};
    case LockMirror::Outcome::kDenied:
      return denied_by(machine);
  }
  std::lock_guard guard(state.mutex);
  // What was taken for it may be more than it has now.
  state.lock_mirror.note_ended(key, wish.range);
  Client* client = state.clients.find(wish.client);
  if (client == nullptr) return {NLM4_DENIED_GRACE_PERIOD};
  if (order.wanted && !order.wanted()) return {NLM4_DENIED, {}, true};
  std::optional<OpenStates::Holder> holder;
  const auto claim = order.reclaim ? nfs4::Claim::kHeld : nfs4::Claim::kNew;
  const auto answer = state.with_room(client, [&] {
    return state.opens.lock_file(wish.client, key, wish.owner, wish.kind, wish.range, &holder,
                                 claim);
  });
  if (answer.status == OpenStates::Status::kDenied) return {NLM4_DENIED, std::move(holder)};
  if (answer.status != OpenStates::Status::kOk) return {NLM4_DENIED_NOLOCKS};
  state.hold_file(FilePin::another(file));
  // A lock for writing may have become one for reading.
  state.lock_notifier.unlocked(key, wish.range);
  state.count_holds(*client);
  return {NLM4_GRANTED};
}

LockResult test_lock(ServerState& state, const FileEntry& file, const Wish& wish) {
  const FileKey key = file_key(file);
  LockMirror::Turn turn(state.lock_mirror, file, true);
  {
    std::lock_guard guard(state.mutex);
    if (!state.grace.over(state.now())) return {NLM4_DENIED_GRACE_PERIOD};
    if (auto holder = find_holder(state, key, wish)) return {NLM4_DENIED, std::move(holder)};
  }
  LockMirror::Holder machine;
  switch (turn.test(wish.kind, wish.range, &machine)) {
    case LockMirror::Outcome::kDone:
      return {NLM4_GRANTED};
    case LockMirror::Outcome::kLater:
      return {NLM4_DENIED_GRACE_PERIOD};
    case LockMirror::Outcome::kDenied:
      break;
  }
  return denied_by(machine);
}

xdr::nlm4_stats release_lock(ServerState& state, FileEntry& file, const Wish& wish,
                             const std::function<bool()>& wanted) {
  const FileKey key = file_key(file);
  // What is unlocked is free when this is answered; but a file whose locks another host keeps is
  // not waited for. The turn's end lets go.
  std::vector<FilePin> closed;
  std::optional<LockMirror::Turn> turn;
  if (state.lock_mirror.has_at_hand(key)) turn.emplace(state.lock_mirror, file, true);
  std::lock_guard guard(state.mutex);
  if (wanted && !wanted()) return NLM4_GRANTED;
  const auto answer = state.with_room(state.clients.find(wish.client), [&] {
    return state.opens.unlock_file(wish.client, key, wish.owner, wish.range);
  });
  if (answer.status != OpenStates::Status::kOk) return NLM4_DENIED_NOLOCKS;
  state.lock_mirror.note_ended(key, wish.range);
  state.lock_notifier.unlocked(key, wish.range);
  if (!turn) state.lock_mirror.settle_later(key);
  let_go(state, key, wish.client, &closed);
  return NLM4_GRANTED;
}

xdr::nlm4_stats take_share(ServerState& state, FileEntry& file, ClientId id,
                           const std::string& owner, const nfs4::Share& share, bool reclaim) {
  const FileKey key = file_key(file);
  bool unrecorded = false;
  {
    std::lock_guard guard(state.mutex);
    const auto bad = check_grace(state, id, reclaim, &unrecorded);
    if (bad != NLM4_GRANTED) return bad;
    state.end_expired(state.opens.in_the_way(as_asker(id), key, share));
  }
  if (!write_down(state, id, unrecorded)) return NLM4_DENIED_NOLOCKS;
  std::lock_guard guard(state.mutex);
  Client* client = state.clients.find(id);
  if (client == nullptr) return NLM4_DENIED_GRACE_PERIOD;
  const auto claim = reclaim ? nfs4::Claim::kHeld : nfs4::Claim::kNew;
  const auto answer =
      state.with_room(client, [&] { return state.opens.share_file(id, key, owner, share, claim); });
  if (answer.status == OpenStates::Status::kShareDenied) return NLM4_DENIED;
  if (answer.status != OpenStates::Status::kOk) return NLM4_DENIED_NOLOCKS;
  state.hold_file(FilePin::another(file));
  state.count_holds(*client);
  return NLM4_GRANTED;
}

void release_share(ServerState& state, FileEntry& file, ClientId id, const std::string& owner) {
  const FileKey key = file_key(file);
  std::vector<FilePin> closed;
  std::lock_guard guard(state.mutex);
  state.opens.unshare_file(id, key, owner);
  let_go(state, key, id, &closed);
}

}  // namespace nfsrdma::nlm
