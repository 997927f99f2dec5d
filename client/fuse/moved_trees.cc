// SPDX-License-Identifier: Apache-2.0
// ReferringRemote: file systems that move to another server while they are mounted (RFC 8881 11.11,
// RFC 7530 8.4). The first call that hears NFS4ERR_MOVED asks where to, opens a tree there, and
// sees that the server knows the files by the handles that we have; calls that come meanwhile wait
// for it. Then what is open is handed over at once, and all go on there. What cannot be followed is
// EREMOTE, and tried again after a while; a server that cannot be reached is waited for on a hard
// mount.
//
// Who asks whether something has moved asks for the object itself: of a RENAME or LINK the other
// directory may have, and fs_locations tells places (replicas) of what is here, too.
#include <fmt/format.h>

#include "client/fuse/referred_tree.h"
#include "rpcrdma/base/log.h"
#include "rpcrdma/base/terminal_text.h"

namespace nfsrdma {
namespace {

constexpr std::chrono::minutes kTellAgain{1};
/// Referrals that are known to lead to one file system, the newest ones.
constexpr std::size_t kMostWays = 16;

std::string text_of(const MountSettings& settings) {
  return terminal_text(settings.host + ":" + settings.path);
}

/// Is the directory `path` at `root` or below it?
bool is_within(std::string path, const std::string& root) {
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  if (root == "/" || path == root) return true;
  return path.starts_with(root) && path[root.size()] == '/';
}

constexpr Error kNotMoved{Errc::kSystem, EAGAIN, "it has not moved"};

/// Might it be another answer after a while, whatever anybody does here?
bool may_pass(const Error& error) {
  switch (error.sys) {
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

}  // namespace

void ReferringRemote::Move::add_way(const Referral& referral) {
  if (ways.size() == kMostWays) ways.erase(ways.begin());
  ways.push_back(referral);
}

bool ReferringRemote::has_in_it(const Move& move, const FileHandle& file) const {
  const Attributes* const last = holder_ == nullptr ? nullptr : holder_->last_attributes(file);
  return last != nullptr && number_of(file) == move.number && last->fsid == move.fsid &&
         (move.root.empty() || holder_->lies_below(file, move.root));
}

ReferringRemote::Tree* ReferringRemote::moved_to(const FileHandle& file) const {
  Move* const move = move_with(file);
  return move == nullptr ? nullptr : move->to;
}

ReferringRemote::Tree* ReferringRemote::moved_from(const FileHandle& directory,
                                                   const Referral& referral) const {
  for (const std::shared_ptr<Move>& move : moves_) {
    if (move->to == nullptr || move->number != number_of(directory)) continue;
    for (const Referral& way : move->ways)
      if (way.root == referral.root && way.targets == referral.targets) return move->to;
  }
  return nullptr;
}

std::shared_ptr<ReferringRemote::Move> ReferringRemote::move_of(const FileHandle& file,
                                                                std::uint64_t fsid) {
  for (const std::shared_ptr<Move>& move : moves_) {
    const bool other = move->number != number_of(file) || move->fsid != fsid;
    // Of one that is being looked for it is not known yet what is in it.
    if (!other && (move->moving || has_in_it(*move, file))) return move;
  }
  // A server may number file systems as it likes: those that led nowhere make room.
  if (moves_.size() >= kMostMoves) {
    std::erase_if(moves_, [](const std::shared_ptr<Move>& move) {
      return move->to == nullptr && !move->moving;
    });
  }
  if (moves_.size() >= kMostMoves) return nullptr;
  return moves_.emplace_back(std::make_shared<Move>(number_of(file), fsid));
}

ReferringRemote::Move* ReferringRemote::move_with(const FileHandle& file) const {
  for (const std::shared_ptr<Move>& move : moves_)
    if (move->to != nullptr && has_in_it(*move, file)) return move.get();
  return nullptr;
}

RequestContext ReferringRemote::nobody() {
  return {std::make_shared<const Caller>(), &leaving_};
}

Task<Result<void>> ReferringRemote::find_successor(const Move& move, There there, FileHandle file,
                                                   Successor* found, std::string* detail) {
  if (!follow_) co_return Error{Errc::kSystem, EREMOTE, "the mount has noreferrals"};
  Result<Attributes> still = co_await there.remote->getattr(nobody(), there.file);
  if (still.ok() || !is_moved_away(still.error())) {
    co_return still.ok() ? kNotMoved : still.error();
  }
  NFSRDMA_CO_TRY(found->referral, co_await there.remote->referral(nobody(), there.file, ""));
  if (trees_.size() >= kMostTrees) {
    *detail = fmt::format("this mount has met {} other servers already", kMostTrees);
    co_return Error{Errc::kSystem, ENFILE, "migration"};
  }
  if (move.lately >= kMostReferrals && loop_.refresh_now() - move.since < kTellAgain) {
    *detail = "it moves again and again";
    co_return Error{Errc::kSystem, ELOOP, "migration"};
  }
  const MountSettings& from = settings_of(there);
  found->trail = ReferralTrail(from);
  NFSRDMA_CO_TRY(found->open, co_await ways_.open(from, found->referral, &found->trail, detail));
  // Of one that goes on to somewhere else on the way, that counts.
  const std::string host = text_of(found->open->settings());
  Result<Attributes> known = co_await found->open->remote().getattr(nobody(), there.file);
  const Attributes* const last = holder_ == nullptr ? nullptr : holder_->last_attributes(file);
  const bool same =
      known.ok() && last != nullptr && known->type == last->type && known->fileid == last->fileid;
  if (!same) {
    *detail = fmt::format("{} does not know the files by the handles that they had{}{}", host,
                          known.ok() ? "" : ": ", known.ok() ? "" : known.error().message());
    co_return Error{Errc::kSystem, ESTALE, "migration"};
  }
  if (!is_within(from.path, found->referral.root)) {
    found->root = as_in(move.number, found->open->remote().root());
    if (!holder_->lies_below(file, found->root)) {
      *detail = fmt::format("{} is not the directory that has moved", host);
      co_return Error{Errc::kSystem, ESTALE, "migration"};
    }
  }
  found->attributes = *known;
  co_return Result<void>();
}

void ReferringRemote::use_successor(Move& move, const There& there, Successor found) {
  const auto number = static_cast<std::uint16_t>(trees_.size() + 1);
  std::string name = found.referral.root + " (moved)";
  Tree& to = *trees_.emplace_back(std::make_unique<Tree>(
      *this, number, std::move(name), std::move(found.referral),
      there.tree == nullptr ? 0 : there.tree->number, std::move(found.trail)));
  if (move.to == nullptr) move.root = found.root;
  to.origin = Tree::Origin{&move, found.attributes.fsid};
  to.open = std::move(found.open);
  if (holder_ != nullptr) to.open->remote().set_delegation_holder(&to);
  const auto which = [this, &move, from = there.tree](const FileHandle& theirs) {
    return has_in_it(move, from == nullptr ? theirs : from->as_known(theirs));
  };
  std::unique_ptr<MovedState> state = there.remote->hand_over(which);
  const TimePoint now = loop_.refresh_now();
  if (now - move.since >= kTellAgain) {
    move.since = now;
    move.lately = 0;
  }
  ++move.lately;
  move.to = &to;
  move.add_way(to.referral);
  move.failed = false;
  to.open->remote().take_over(std::move(state));
  log_notice("{} has moved to {}; what is open goes on there", terminal_text(to.referral.root),
             text_of(to.open->settings()));
}

void ReferringRemote::tell_not_followed(Move& move, const Referral& referral, const Error& error,
                                        const std::string& detail) {
  const TimePoint now = loop_.refresh_now();
  if (now < move.tell_again_at) return;
  move.tell_again_at = now + kTellAgain;
  log_warning("{} has moved to {} (NFS4ERR_MOVED), and cannot be followed: {}",
              referral.root.empty() ? "a file system" : terminal_text(referral.root),
              referral.targets.empty() ? "another server" : terminal_text(referral.text()),
              terminal_text(detail.empty() ? error.message() : detail));
}

Task<void> ReferringRemote::carry_over(std::shared_ptr<Move> of, FileHandle file, There there) {
  Move& move = *of;
  for (;;) {
    Successor found{{}, ReferralTrail(settings_), nullptr, {}, {}};
    std::string detail;
    Result<void> done = co_await find_successor(move, there, file, &found, &detail);
    // Other trees may have come meanwhile.
    if (done.ok() && trees_.size() >= kMostTrees) done = Error{Errc::kSystem, ENFILE, "migration"};
    if (done.ok() && !stopped_) {
      use_successor(move, there, std::move(found));
      break;
    }
    if (found.open != nullptr) co_await found.open->end();
    if (done.ok() || stopped_) break;
    const bool has_moved = done.error().sys != kNotMoved.sys;
    if (has_moved) tell_not_followed(move, found.referral, done.error(), detail);
    if (settings_.soft || !may_pass(done.error())) {
      move.failed = true;
      move.again_at = loop_.refresh_now() + (has_moved ? kBelieveFailure : Duration::zero());
      break;
    }
    // As with a server that does not answer, a hard mount has patience.
    Gate later;
    Timer timer([&later] { later.wake_all(); });
    timer.arm_after(loop_, kBelieveFailure);
    [[maybe_unused]] const bool woken = co_await later.wait(leaving_.token.get());
  }
  move.moving = false;
  move.changed.wake_all();
}

Task<Result<bool>> ReferringRemote::follow_move(RequestContext context, FileHandle file,
                                                There there) {
  const Attributes* const last = holder_ == nullptr ? nullptr : holder_->last_attributes(file);
  if (last == nullptr) co_return false;
  const std::uint64_t fsid = last->fsid;
  CancelToken* cancel = nullptr;
  if (context.interrupt != nullptr) cancel = context.interrupt->token.get();
  bool waited = false;
  for (;;) {
    if (known(file).remote != there.remote) co_return true;
    if (stopped_) co_return Error{Errc::kClosed, EIO, "the mount ends"};
    const std::shared_ptr<Move> move = move_of(file, fsid);
    if (move == nullptr) co_return false;
    const bool believed = move->failed && (waited || loop_.refresh_now() < move->again_at);
    if (!move->moving && believed) co_return false;
    if (!move->moving) {
      move->moving = true;
      opening_.spawn(carry_over(move, file, there));
    } else {
      const bool told = co_await move->changed.wait(cancel);
      if (!told) co_return Error{Errc::kSystem, EINTR, "migration"};
    }
    waited = true;
  }
}

}  // namespace nfsrdma
