// SPDX-License-Identifier: Apache-2.0
// ReferringRemote: file systems that move to another server while they are mounted (RFC 8881 11.11,
// RFC 7530 8.4). The first call that hears NFS4ERR_MOVED asks where to, opens a tree there, and
// sees that the server knows the files by the handles that we have; calls that come meanwhile wait
// for it. Then what is open is handed over at once, and all go on there. What cannot be followed is
// EREMOTE, and tried again after a while.
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

RequestContext nobody() {
  return {std::make_shared<const Caller>(), nullptr};
}

}  // namespace

bool ReferringRemote::has_in_it(const Move& move, const FileHandle& file) const {
  const Attributes* const last = holder_ == nullptr ? nullptr : holder_->last_attributes(file);
  return last != nullptr && number_of(file) == move.number && last->fsid == move.fsid &&
         (move.root.empty() || holder_->lies_below(file, move.root));
}

ReferringRemote::Tree* ReferringRemote::moved_to(const FileHandle& file) const {
  for (const std::unique_ptr<Move>& move : moves_)
    if (move->to != nullptr && has_in_it(*move, file)) return move->to;
  return nullptr;
}

ReferringRemote::Tree* ReferringRemote::moved_from(const FileHandle& directory,
                                                   const Referral& referral) const {
  for (const std::unique_ptr<Move>& move : moves_) {
    if (move->to == nullptr || move->number != number_of(directory)) continue;
    for (const Referral& way : move->ways)
      if (way.root == referral.root && way.targets == referral.targets) return move->to;
  }
  return nullptr;
}

ReferringRemote::Move& ReferringRemote::move_of(const FileHandle& file, std::uint64_t fsid) {
  for (const std::unique_ptr<Move>& move : moves_) {
    const bool other = move->number != number_of(file) || move->fsid != fsid;
    // Of one that is being looked for it is not known yet what is in it.
    if (!other && (move->moving || has_in_it(*move, file))) return *move;
  }
  return *moves_.emplace_back(std::make_unique<Move>(number_of(file), fsid));
}

Task<Result<std::unique_ptr<OpenTree>>> ReferringRemote::open_successor(
    const There& there, const FileHandle& file, Referral* referral, Attributes* seen_there,
    ReferralTrail* trail, std::string* detail) {
  if (!follow_) co_return Error{Errc::kSystem, EREMOTE, "the mount has noreferrals"};
  Result<Attributes> still = co_await there.remote->getattr(nobody(), there.file);
  if (still.ok() || !is_moved_away(still.error())) {
    co_return still.ok() ? Error{Errc::kSystem, EAGAIN, "it has not moved"} : still.error();
  }
  NFSRDMA_CO_TRY(*referral, co_await there.remote->referral(nobody(), there.file, ""));
  if (trees_.size() >= kMostTrees) {
    *detail = fmt::format("this mount has met {} other servers already", kMostTrees);
    co_return Error{Errc::kSystem, ENFILE, "migration"};
  }
  const MountSettings& from = there.tree == nullptr ? settings_ : there.tree->open->settings();
  *trail = ReferralTrail(from);
  NFSRDMA_CO_TRY(std::unique_ptr<OpenTree> opened,
                 co_await ways_.open(from, *referral, trail, detail));
  // The directory that it is may have a name of its own there; what counts is the handle.
  Result<Attributes> known = co_await opened->remote().getattr(nobody(), there.file);
  const Attributes* const last = holder_ == nullptr ? nullptr : holder_->last_attributes(file);
  const bool same =
      known.ok() && last != nullptr && known->type == last->type && known->fileid == last->fileid;
  if (same) {
    *seen_there = *known;
    co_return std::move(opened);
  }
  *detail = fmt::format("{} does not know the files by the handles that they had{}{}",
                        text_of(opened->settings()), known.ok() ? "" : ": ",
                        known.ok() ? "" : known.error().message());
  co_await opened->end();
  rejected_.push_back(std::move(opened));
  co_return Error{Errc::kSystem, ESTALE, "migration"};
}

void ReferringRemote::use_successor(Move& move, const There& there, std::unique_ptr<Tree> tree) {
  Tree& to = *trees_.emplace_back(std::move(tree));
  const MountSettings& from = there.tree == nullptr ? settings_ : there.tree->open->settings();
  if (move.to == nullptr && !is_within(from.path, to.referral.root)) {
    move.root = as_in(move.number, to.open->remote().root());
  }
  const auto which = [this, &move, from = there.tree](const FileHandle& theirs) {
    return has_in_it(move, from == nullptr ? theirs : from->as_known(theirs));
  };
  if (holder_ != nullptr) to.open->remote().set_delegation_holder(&to);
  std::unique_ptr<MovedState> state;
  if (holder_ != nullptr) state = there.remote->hand_over(which);
  move.to = &to;
  move.ways.push_back(to.referral);
  move.failed = false;
  to.open->remote().take_over(std::move(state));
  log_notice("{} has moved to {}; what is open goes on there", terminal_text(to.referral.root),
             text_of(to.open->settings()));
}

Task<void> ReferringRemote::carry_over(Move& move, FileHandle file, There there) {
  rejected_.clear();
  Referral referral;
  Attributes seen_there;
  ReferralTrail trail(settings_);
  std::string detail;
  Result<std::unique_ptr<OpenTree>> opened =
      co_await open_successor(there, file, &referral, &seen_there, &trail, &detail);
  if (opened.ok() && !stopped_) {
    // Now, since other trees may have come meanwhile.
    const auto number = static_cast<std::uint16_t>(trees_.size() + 1);
    auto tree =
        std::make_unique<Tree>(*this, number, referral.root + " (moved)", std::move(referral),
                               there.tree == nullptr ? 0 : there.tree->number, std::move(trail));
    tree->origin = Tree::Origin{move.number, move.fsid, seen_there.fsid};
    tree->open = std::move(*opened);
    use_successor(move, there, std::move(tree));
  } else if (opened.ok()) {
    co_await (*opened)->end();
    rejected_.push_back(std::move(*opened));
  } else {
    const TimePoint now = loop_.refresh_now();
    const bool has_moved = opened.error().sys != EAGAIN;
    move.failed = true;
    move.again_at = has_moved ? now + kBelieveFailure : now;
    if (has_moved && now >= move.tell_again_at) {
      move.tell_again_at = now + kTellAgain;
      log_warning("{} has moved to {} (NFS4ERR_MOVED), and cannot be followed: {}",
                  referral.root.empty() ? "a file system" : terminal_text(referral.root),
                  referral.targets.empty() ? "another server" : terminal_text(referral.text()),
                  terminal_text(detail.empty() ? opened.error().message() : detail));
    }
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
    Move& move = move_of(file, fsid);
    const bool believed = move.failed && (waited || loop_.refresh_now() < move.again_at);
    if (!move.moving && believed) co_return false;
    if (!move.moving) {
      move.moving = true;
      opening_.spawn(carry_over(move, file, there));
    } else {
      const bool told = co_await move.changed.wait(cancel);
      if (!told) co_return Error{Errc::kSystem, EINTR, "migration"};
    }
    waited = true;
  }
}

}  // namespace nfsrdma
