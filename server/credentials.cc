// SPDX-License-Identifier: Apache-2.0
// Identities of callers and the per-thread switching between them. See credentials.h.
#include "server/credentials.h"

#include <grp.h>
#include <linux/capability.h>
#include <sodium.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "rpcrdma/base/log.h"
#include "server/group_source.h"

namespace nfsrdma {

namespace {

/// What the current thread's file system identity is.
struct ThreadIdentity {
  bool known = false;     // false: as the process started
  std::uint64_t tag = 0;  // of the caller whose gid and groups are in force
  std::uint32_t uid = 0;  // fsuid in force
};
thread_local ThreadIdentity t_identity;

struct Capabilities {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};

  bool load() { return ::syscall(SYS_capget, &header, data) == 0; }
  bool store() { return ::syscall(SYS_capset, &header, data) == 0; }
  void set_effective(unsigned cap, bool on) {
    const std::uint32_t bit = 1u << (cap % 32);
    std::uint32_t& word = data[cap / 32].effective;
    word = on ? word | (bit & data[cap / 32].permitted) : word & ~bit;
  }
  bool permitted(unsigned cap) const {
    return (data[cap / 32].permitted & (1u << (cap % 32))) != 0;
  }
};

/// The effective set of a thread that serves a root caller. The kernel puts CAP_FSETID back each
/// time the thread returns to uid 0, so this runs after each such return.
bool drop_forbidden_capabilities() {
  Capabilities caps;
  if (!caps.load()) return false;
  caps.set_effective(CAP_FSETID, false);
  caps.set_effective(CAP_SYS_RESOURCE, false);
  return caps.store();
}

bool probe_switching() {
  if (::geteuid() != 0) return false;
  Capabilities caps;
  return caps.load() && caps.permitted(CAP_SETUID) && caps.permitted(CAP_SETGID);
}

const std::uint8_t* tag_key() {
  static const auto key = [] {
    std::array<std::uint8_t, crypto_shorthash_KEYBYTES> bytes{};
    randombytes_buf(bytes.data(), bytes.size());
    return bytes;
  }();
  return key.data();
}

/// setfsuid reports the old value only; asking with an invalid one tells whether it took.
bool set_fsuid(std::uint32_t uid) {
  ::setfsuid(uid);
  return static_cast<std::uint32_t>(::setfsuid(static_cast<uid_t>(-1))) == uid;
}
bool set_fsgid(std::uint32_t gid) {
  ::setfsgid(gid);
  return static_cast<std::uint32_t>(::setfsgid(static_cast<gid_t>(-1))) == gid;
}

bool become(const CallerIdentity& identity) {
  ThreadIdentity& thread = t_identity;
  thread.known = false;
  if (::syscall(SYS_setgroups, identity.group_count, identity.groups.data()) != 0) return false;
  if (!set_fsgid(identity.gid)) return false;
  if (!set_fsuid(identity.uid)) return false;
  if (identity.uid == 0 && !drop_forbidden_capabilities()) return false;
  thread = {true, identity.tag, identity.uid};
  return true;
}

}  // namespace

void CallerIdentity::seal() {
  std::array<std::uint32_t, kMaxGroups + 3> words;
  words[0] = uid;
  words[1] = gid;
  words[2] = group_count;
  std::copy_n(groups.data(), group_count, words.data() + 3);
  std::uint8_t out[crypto_shorthash_BYTES];
  crypto_shorthash(out, reinterpret_cast<const unsigned char*>(words.data()),
                   (group_count + 3) * sizeof words[0], tag_key());
  std::memcpy(&tag, out, sizeof tag);
}

void map_identity(const RpcCredentials& credentials, const SquashRule& rule, GroupSource* source,
                  CallerIdentity* identity) {
  identity->group_count = 0;
  if (rule.all_squash || credentials.flavor == RpcCredentials::Flavor::kNone) {
    identity->uid = rule.anon_uid;
    identity->gid = rule.anon_gid;
    identity->seal();
    return;
  }
  identity->uid = credentials.uid;
  identity->gid = credentials.gid;
  if (source == nullptr || !source->groups(credentials.uid, identity)) {
    identity->group_count =
        std::min<std::uint32_t>(credentials.group_count, RpcCredentials::kMaxGroups);
    std::copy_n(credentials.groups.data(), identity->group_count, identity->groups.data());
  }
  if (rule.root_squash) {
    if (identity->uid == 0) identity->uid = rule.anon_uid;
    if (identity->gid == 0) identity->gid = rule.anon_gid;
    for (std::uint32_t i = 0; i < identity->group_count; ++i) {
      if (identity->groups[i] == 0) identity->groups[i] = rule.anon_gid;
    }
  }
  // uid -1 means "no change" to the kernel; such a caller is nobody.
  if (identity->uid == ~0u) identity->uid = rule.anon_uid;
  if (identity->gid == ~0u) identity->gid = rule.anon_gid;
  for (std::uint32_t i = 0; i < identity->group_count; ++i) {
    if (identity->groups[i] == ~0u) identity->groups[i] = rule.anon_gid;
  }
  identity->seal();
}

bool can_switch_identity() {
  static const bool can = probe_switching();
  return can;
}

bool owns_every_file() {
  static const bool owns = [] {
    Capabilities caps;
    return can_switch_identity() && caps.load() && caps.permitted(CAP_FOWNER);
  }();
  return owns;
}

void prepare_serving_thread() {
  if (can_switch_identity() && !drop_forbidden_capabilities()) {
    log_warning("cannot drop CAP_FSETID: set-id bits of files may survive writes by root");
  }
}

void prepare_serving_process() {
  ::umask(0);
}

AsCaller::AsCaller(const CallerIdentity& identity) : ok_(true) {
  if (!can_switch_identity()) return;
  const ThreadIdentity& thread = t_identity;
  if (thread.known && thread.tag == identity.tag && thread.uid == identity.uid) return;
  ok_ = become(identity);
}

AsServer::AsServer() : restore_uid_(0), switched_(false) {
  ThreadIdentity& thread = t_identity;
  if (!can_switch_identity() || !thread.known || thread.uid == 0) return;
  restore_uid_ = thread.uid;
  switched_ = true;
  ::setfsuid(0);
}

AsServer::~AsServer() {
  if (switched_ && !set_fsuid(restore_uid_)) t_identity.known = false;
}

WithFsetid::WithFsetid() : raised_(false) {
  const ThreadIdentity& thread = t_identity;
  if (!can_switch_identity() || !thread.known || thread.uid != 0) return;
  Capabilities caps;
  if (!caps.load()) return;
  caps.set_effective(CAP_FSETID, true);
  raised_ = caps.store();
}

WithFsetid::~WithFsetid() {
  if (raised_ && !drop_forbidden_capabilities()) t_identity.known = false;
}

}  // namespace nfsrdma
