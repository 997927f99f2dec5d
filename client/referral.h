// SPDX-License-Identifier: Apache-2.0
// Referrals (RFC 8881 11, RFC 7530 8): a directory of a server whose file system is on another
// one. LOOKUP finds the name, everything behind it is NFS4ERR_MOVED, and fs_locations says where to
// go. What that says comes from a server and goes into host names, paths and messages: it is
// checked here, once, and bounded. Values and arithmetic, no network; follow_referral.h goes there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/nfs_types.h"

namespace nfsrdma {

/// Hosts that count, of all locations together; a server of ours names no more.
inline constexpr std::size_t kMostReferralTargets = 64;
/// Bytes of a path in them, as PATH_MAX has it.
inline constexpr std::size_t kLongestReferralPath = 4095;
/// Bytes of a host's name.
inline constexpr std::size_t kLongestReferralHost = 255;
/// Servers that refer to another, one after the other, before it must be a mistake.
inline constexpr std::size_t kMostReferrals = 8;

/// One place where the file system is.
struct ReferralTarget {
  std::string host;        // name or address; "": the server that says so, where it was asked
  std::uint16_t port = 0;  // 0: the usual ones
  std::string path;        // absolute

  /// "host:/path", "[2001:db8::1]:/path", "192.0.2.1 port 20050:/path".
  std::string text() const;
  bool operator==(const ReferralTarget&) const = default;
};

struct Referral {
  std::string root;                     // where it is in the server's own tree, absolute
  std::vector<ReferralTarget> targets;  // one at least; in order of preference
  std::uint64_t fsid = 0;
  std::uint64_t mounted_on = 0;  // fileid of the directory there; 0: not told

  /// "host:/path or host2:/path", some of them.
  std::string text() const;
  /// How the directory is shown before anybody goes there, as Linux shows one that is still to be
  /// mounted on.
  Attributes attributes() const;
};

/// One that a walk down from a server's root came to.
struct ReferralMet {
  Referral referral;
  std::string path;  // from the server's root to the referral
  std::string rest;  // of what was to be walked, behind it; ""
};

/// Of lookup(): the name is there, and what it stands for on another server.
inline constexpr Error kReferralMet{Errc::kSystem, EREMOTE,
                                    "a referral to another server (NFS4ERR_MOVED)"};
inline bool is_referral_met(const Error& error) {
  // By the text: the same literal need not have one address in all of a program.
  return error.sys == kReferralMet.sys && std::string_view(error.where) == kReferralMet.where;
}

/// Of any operation: the object's own file system was here once.
inline constexpr Error kMovedAway{Errc::kSystem, EREMOTE,
                                  "the file system has moved to another server (NFS4ERR_MOVED)"};
inline bool is_moved_away(const Error& error) {
  return error.sys == kMovedAway.sys && std::string_view(error.where) == kMovedAway.where;
}

/// A server of fs_locations as RFC 8881 11.16 has it: a name, an IPv4 or IPv6 address with or
/// without ".p1.p2" for the port, or nothing. False: none of these.
bool parse_referral_server(std::string_view text, ReferralTarget* target);

/// Appends one name to *path. False: no name can be that, or the path is too long. Empty ones, with
/// which some servers write "/", are left out.
bool append_component(std::string_view name, std::string* path);

/// The target's path for what `met` was on the way to: its own, with what lies below the root of
/// the file system behind it. ENOENT: the root that the server names is not on the way;
/// ENAMETOOLONG.
Result<std::string> path_at_target(const ReferralMet& met, const ReferralTarget& target);

}  // namespace nfsrdma
