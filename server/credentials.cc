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
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>

#include "rpcrdma/base/log.h"
#include "server/group_source.h"

namespace nfsrdma {

namespace {

/// What the current thread's file system identity is.
struct ThreadIdentity {
  bool known = false;      // false: the server's own, as the process started
  std::uint64_t tag = 0;   // of the caller whose gid and groups are in force
  std::uint32_t uid = 0;   // fsuid in force, but for AsServer
  unsigned as_server = 0;  // scopes of AsServer that have switched, one within the other
};
thread_local ThreadIdentity t_identity;

constexpr const char* kUserMap = "/proc/self/uid_map";
constexpr const char* kGroupMap = "/proc/self/gid_map";

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

/// A map of a user namespace (user_namespaces(7)). Without one, everybody is there.
class IdMap {
 public:
  explicit IdMap(const char* file) {
    std::ifstream map(file);
    everybody_ = !map;
    for (std::uint64_t inside = 0, outside = 0, count = 0; map >> inside >> outside >> count;)
      ranges_.emplace_back(inside, count);
  }
  bool has(std::uint32_t id) const {
    return everybody_ || std::ranges::any_of(ranges_, [id](const auto& range) {
             return id >= range.first && id - range.first < range.second;
           });
  }
  std::uint64_t size() const {
    std::uint64_t sum = everybody_ ? ~0u : 0;
    for (const auto& range : ranges_)
      sum += range.second;
    return sum;
  }

 private:
  bool everybody_ = false;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;  // first, and how many
};

/// The groups of a caller; what a user namespace may not have.
bool may_set_groups() {
  const std::uint32_t none = 0;
  return ::syscall(SYS_setgroups, 0, &none) == 0;
}

/// Once a minute, which of a caller's ids is the trouble.
void tell_of_unmapped(const CallerIdentity& identity) {
  const int error = errno;
  static std::mutex mutex;
  static RateLimit limit(1, std::chrono::seconds(60));
  {
    std::lock_guard lock(mutex);
    if (!limit.allow()) return;
  }
  if (!has_user(identity.uid)) {
    log_warning(
        "calls as uid {} fail: /proc/self/uid_map does not have it; map it into the user namespace "
        "of the server, or let the export make it another (all_squash, anonuid=)",
        identity.uid);
    return;
  }
  const IdMap groups(kGroupMap);
  std::uint32_t gid = identity.gid;
  for (const std::uint32_t group : identity.groups) {
    if (!groups.has(group)) gid = group;
  }
  if (!groups.has(gid)) {
    log_warning(
        "calls as uid {} with gid {} fail: /proc/self/gid_map does not have it; map it into the "
        "user namespace of the server, or let the export make it another (all_squash, anongid=)",
        identity.uid, gid);
    return;
  }
  log_warning("calls as uid {} fail: the kernel does not let the server act as it: {}",
              identity.uid, std::strerror(error));
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

bool take_on(const CallerIdentity& identity) {
  if (::syscall(SYS_setgroups, identity.groups.size(), identity.groups.data()) != 0) return false;
  if (!set_fsgid(identity.gid)) return false;
  if (!set_fsuid(identity.uid)) return false;
  return identity.uid != 0 || drop_forbidden_capabilities();
}

bool become(const CallerIdentity& identity) {
  ThreadIdentity& thread = t_identity;
  thread.known = take_on(identity);
  if (!thread.known) {
    // The caller before this one may still be in force, and AsServer switches known ones alone.
    const int error = errno;
    ::setfsuid(0);
    drop_forbidden_capabilities();
    errno = error;
    return false;
  }
  thread.tag = identity.tag;
  thread.uid = identity.uid;
  return true;
}

}  // namespace

void CallerIdentity::seal() {
  static thread_local std::vector<std::uint32_t> words;  // nothing is allocated for each call
  words.assign({uid, gid, static_cast<std::uint32_t>(groups.size())});
  words.insert(words.end(), groups.begin(), groups.end());
  std::uint8_t out[crypto_shorthash_BYTES];
  crypto_shorthash(out, reinterpret_cast<const unsigned char*>(words.data()),
                   words.size() * sizeof words[0], tag_key());
  std::memcpy(&tag, out, sizeof tag);
}

void map_identity(const RpcCredentials& credentials, const SquashRule& rule, GroupSource* source,
                  CallerIdentity* identity) {
  identity->groups.clear();
  if (rule.all_squash || credentials.flavor == RpcCredentials::Flavor::kNone) {
    identity->uid = rule.anon_uid;
    identity->gid = rule.anon_gid;
    identity->seal();
    return;
  }
  identity->uid = credentials.uid;
  identity->gid = credentials.gid;
  if (source != nullptr) {
    source->groups(credentials.uid, identity);
  } else {
    const std::size_t count =
        std::min<std::size_t>(credentials.group_count, RpcCredentials::kMaxGroups);
    identity->groups.assign(credentials.groups.data(), credentials.groups.data() + count);
  }
  if (rule.root_squash) {
    if (identity->uid == 0) identity->uid = rule.anon_uid;
    if (identity->gid == 0) identity->gid = rule.anon_gid;
    std::ranges::replace(identity->groups, 0u, rule.anon_gid);
  }
  // uid -1 means "no change" to the kernel; such a caller is nobody.
  if (identity->uid == ~0u) identity->uid = rule.anon_uid;
  if (identity->gid == ~0u) identity->gid = rule.anon_gid;
  std::ranges::replace(identity->groups, ~0u, rule.anon_gid);
  identity->seal();
}

bool has_user(std::uint32_t uid) {
  return IdMap(kUserMap).has(uid);
}

bool has_group(std::uint32_t gid) {
  return IdMap(kGroupMap).has(gid);
}

Switching probe_switching() {
  if (::geteuid() != 0) return {};
  Capabilities caps;
  if (!caps.load() || !caps.permitted(CAP_SETUID) || !caps.permitted(CAP_SETGID)) return {};
  if (IdMap(kUserMap).size() <= 1) {
    return {false,
            "its user namespace has nobody else (/proc/self/uid_map): map a range of users into it "
            "for callers to be themselves"};
  }
  bool groups = false;
  int error = 0;
  std::thread([&] {
    groups = may_set_groups();
    error = errno;
  }).join();
  if (groups) return {true, {}};
  return {false, std::string("it may not take on the groups of callers (setgroups: ") +
                     std::strerror(error) +
                     "): /proc/self/setgroups of its user namespace has to say allow"};
}

const Switching& switching() {
  static const Switching found = probe_switching();
  return found;
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
  if (!ok_) tell_of_unmapped(identity);
}

AsServer::AsServer() : switched_(false) {
  ThreadIdentity& thread = t_identity;
  if (!can_switch_identity() || !thread.known || thread.uid == 0) return;
  switched_ = true;
  if (thread.as_server++ == 0) ::setfsuid(0);
}

/// Only the outermost gives the caller's rights back.
AsServer::~AsServer() {
  ThreadIdentity& thread = t_identity;
  if (!switched_ || --thread.as_server != 0) return;
  if (!set_fsuid(thread.uid)) thread.known = false;
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
