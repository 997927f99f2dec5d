// SPDX-License-Identifier: Apache-2.0
// Whose rights a call runs with. A CallerIdentity is the mapped (squashed) caller; AsCaller lends
// it to the current thread for every file system call in its scope, so that the kernel decides what
// is allowed, who owns new files, whose quota is charged and when set-id bits fall.
//
// Threads: uid, gid and groups for file access belong to a thread in Linux. All switching here is
// per thread by raw system calls (glibc's setgroups changes every thread). A thread that serves
// calls runs prepare_serving_thread() once. Each thread remembers what it is, so the same caller
// again costs nothing.
//
// Privilege: becoming an ordinary uid takes the file system capabilities out of the thread's
// effective set, and the kernel gives them back on return to uid 0. CAP_FSETID and CAP_SYS_RESOURCE
// stay out of it even for a root caller (decisions.md 1): otherwise set-id bits would survive its
// writes and it would eat reserved blocks and ignore quota.
//
// Without root: nothing is switched. Every caller then has the rights of the server's user,
// whatever uid it claims; new files belong to the server's user. can_switch_identity() says which.
// So it is for root of a user namespace that has nobody else in it (unshare -r).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "server/procedure.h"

namespace nfsrdma {

class GroupSource;  // server/group_source.h

struct CallerIdentity {
  /// As many as the kernel takes (NGROUPS_MAX). 16 from AUTH_SYS; more only with manage-gids.
  static constexpr std::size_t kMaxGroups = 65536;
  std::uint32_t uid = 65534;
  std::uint32_t gid = 65534;
  /// Keyed hash over all of the above; equal identities have equal tags, and nobody without the
  /// process' key can find two with the same (64 bits).
  std::uint64_t tag = 0;
  std::vector<std::uint32_t> groups;

  /// To be called after the last change of the fields above.
  void seal();
  bool is_root() const { return uid == 0; }
};

/// How an export changes callers; values of exports(5).
struct SquashRule {
  bool root_squash = true;
  bool all_squash = false;
  std::uint32_t anon_uid = 65534;
  std::uint32_t anon_gid = 65534;
};

/// The identity that `credentials` have under `rule`, as knfsd maps them: AUTH_NONE and all_squash
/// are anonymous; root_squash replaces uid 0, gid 0 and each group 0.
/// `source`, when not null, supplies the groups instead of the call (manage-gids) and may block.
void map_identity(const RpcCredentials& credentials, const SquashRule& rule, GroupSource* source,
                  CallerIdentity* identity);

/// Can this process act as other users?
struct Switching {
  bool can = false;
  /// Why root cannot, for people: in a user namespace it may have the capabilities, and no groups
  /// or nobody else to become. Empty: an ordinary user, or it can.
  std::string why_not;
};
/// Tries it, on a thread of its own.
Switching probe_switching();
/// What that found at the first call of this.
const Switching& switching();
inline bool can_switch_identity() {
  return switching().can;
}
/// Is there such a user, or group, in the user namespace of this process?
bool has_user(std::uint32_t uid);
bool has_group(std::uint32_t gid);
/// Does the kernel treat the process (AsServer) as the owner of every file? CAP_FOWNER.
bool owns_every_file();

/// Once per serving thread, before its first call: drops CAP_FSETID and CAP_SYS_RESOURCE from the
/// effective set. No-op for an ordinary user.
void prepare_serving_thread();
/// Once per process: umask 0, so that modes are applied as the client gave them (default ACLs are
/// the kernel's business).
void prepare_serving_process();

/// The current thread acts as `identity` until the scope ends, and afterwards *stays* so until
/// somebody needs something else: switching is lazy in both directions.
class AsCaller {
 public:
  explicit AsCaller(const CallerIdentity& identity);
  AsCaller(const AsCaller&) = delete;
  AsCaller& operator=(const AsCaller&) = delete;
  /// False when the kernel refused; then nothing may be done in the caller's name.
  bool ok() const { return ok_; }

 private:
  bool ok_;
};

/// The current thread has the server's own file system rights in this scope (open by handle,
/// override for owners), and the caller's again after it. One in the scope of another changes
/// nothing.
class AsServer {
 public:
  AsServer();
  ~AsServer();
  AsServer(const AsServer&) = delete;
  AsServer& operator=(const AsServer&) = delete;

 private:
  bool switched_;
};

/// A root caller sets the set-group-id bit on a file of a group that root is not in: needs
/// CAP_FSETID for that one system call. No-op unless the thread acts as uid 0.
class WithFsetid {
 public:
  WithFsetid();
  ~WithFsetid();
  WithFsetid(const WithFsetid&) = delete;
  WithFsetid& operator=(const WithFsetid&) = delete;

 private:
  bool raised_;
};

}  // namespace nfsrdma
