// SPDX-License-Identifier: Apache-2.0
// ReferringRemote::Tree, one server's tree, and Move, a file system that has left one. Inside of
// referring_remote.cc and moved_trees.cc.
#pragma once

#include "client/fuse/referring_remote.h"

namespace nfsrdma {

struct ReferringRemote::Tree final : DelegationHolder {
  Tree(ReferringRemote& its_owner, std::uint16_t its_number, std::string its_name,
       Referral its_referral, std::uint16_t its_parent, ReferralTrail its_trail)
      : owner(its_owner),
        number(its_number),
        name(std::move(its_name)),
        referral(std::move(its_referral)),
        parent(its_parent),
        trail(std::move(its_trail)) {}

  void give_up(const FileHandle& file) override { owner.holder_->give_up(as_known(file)); }
  std::optional<HeldAttributes> held_attributes(const FileHandle& file) override {
    return owner.holder_->held_attributes(as_known(file));
  }
  void has_moved(const FileHandle& file) override { owner.holder_->has_moved(as_known(file)); }
  /// As the mount knows the server's handle. `theirs`: what the server says of it; null: nothing,
  /// and it is not in another file system than the one that moved here.
  FileHandle outwards(const FileHandle& file, const Attributes* theirs) const;
  /// The same of one that is known already.
  FileHandle as_known(const FileHandle& file) const;
  /// As the server knows it.
  FileHandle inwards(const FileHandle& file) const;
  /// Numbers of one server are not those of another.
  void tag(Attributes& attributes) const;

  /// Of a tree that a file system has moved to: which one, and its fsid there.
  struct Origin {
    const Move* move = nullptr;
    std::uint64_t fsid_there = 0;
  };

  ReferringRemote& owner;
  const std::uint16_t number;
  const std::string name;
  const Referral referral;
  const std::uint16_t parent;
  ReferralTrail trail;  // up to what referred here; once it is open, up to here
  std::optional<Origin> origin;
  std::unique_ptr<OpenTree> open;
  bool opening = false;
  std::optional<Error> failed;
  TimePoint again_at{};  // not tried before that
  Gate changed;
  bool gone = false;  // its root is: the name will lead to another
};

/// From the first time that it was asked for where it is no more.
struct ReferringRemote::Move {
  Move(std::uint16_t its_number, std::uint64_t its_fsid) : number(its_number), fsid(its_fsid) {}

  void add_way(const Referral& referral);

  const std::uint16_t number;
  const std::uint64_t fsid;
  /// The directory that it begins with, as the mount knows it; empty: all of that tree is in it.
  /// Others may have the same fsid: a server exports two directories of one file system.
  FileHandle root;
  Tree* to = nullptr;          // where it is now; null: not known yet
  std::vector<Referral> ways;  // that led there, the newest last
  bool moving = false;         // carry_over() runs
  bool failed = false;         // the last time
  TimePoint again_at{};
  TimePoint tell_again_at{};
  TimePoint since{};    // of the count:
  unsigned lately = 0;  // times that it has moved
  Gate changed;
};

}  // namespace nfsrdma
