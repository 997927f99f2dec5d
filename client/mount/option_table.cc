// SPDX-License-Identifier: Apache-2.0
#include "client/mount/option_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "rpcrdma/base/socket_address.h"
#include "rpcrdma/private_data.h"

namespace nfsrdma {
namespace {

using Value = OptionRow::Value;
using std::string;
using std::string_view;

constexpr std::uint32_t kLargestTransfer = 1u << 20;

std::optional<std::uint64_t> number(string_view text) {
  std::uint64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return n;
}

/// Reads a number of [low, high] into *target.
template <typename T>
string take_number(string_view text, std::uint64_t low, std::uint64_t high, T* target) {
  std::optional<std::uint64_t> n = number(text);
  if (!n || *n < low || *n > high) {
    return fmt::format("'{}' is not a number from {} to {}", text, low, high);
  }
  *target = static_cast<T>(*n);
  return {};
}

string take_seconds(string_view text, std::chrono::seconds* target) {
  std::uint32_t n = 0;
  string problem = take_number(text, 0, 86'400 * 365, &n);
  if (problem.empty()) *target = std::chrono::seconds(n);
  return problem;
}

/// rsize and wsize by nfs(5): a multiple of 1024, too small becomes 4096, too large the largest.
string take_transfer_size(string_view text, std::uint32_t* target) {
  std::optional<std::uint64_t> n = number(text);
  if (!n) return fmt::format("'{}' is not a number of bytes", text);
  if (*n == 0) {
    *target = 0;
  } else if (*n < 1024) {
    *target = 4096;
  } else {
    *target = static_cast<std::uint32_t>(std::min<std::uint64_t>(*n, kLargestTransfer)) & ~1023u;
  }
  return {};
}

string take_inline(MountOptions& o, string_view v) {
  string problem = take_number(v, 1024, 65'536, &o.inline_bytes);
  o.inline_bytes = valid_inline_size(o.inline_bytes);
  return problem;
}

/// Addresses at which no host can be called, in words; null: it may be one.
const char* not_a_host(const SocketAddress& address) {
  if (address.is_v6()) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(address.data())->sin6_addr;
    if (IN6_IS_ADDR_MULTICAST(&v6)) return "an address of many hosts";
    return IN6_IS_ADDR_V4MAPPED(&v6) ? "an IPv4 address: write it as one" : nullptr;
  }
  const in_addr& v4 = reinterpret_cast<const sockaddr_in*>(address.data())->sin_addr;
  const std::uint32_t bits = ntohl(v4.s_addr);
  return IN_MULTICAST(bits) || bits == INADDR_BROADCAST ? "an address of many hosts" : nullptr;
}

/// nfs(5): an address of ours; the one that is nobody's says that we want no callbacks.
string take_client_address(MountOptions& o, string_view v) {
  Result<SocketAddress> address = SocketAddress::parse(v, 0);
  if (!address.ok()) return fmt::format("'{}' is not an IPv4 or IPv6 address", v);
  const string text = address->host_text();
  if (text.find('%') != string::npos) {
    return fmt::format("'{}' means nothing to the server: it is an address of one link", v);
  }
  if (const char* why = not_a_host(*address)) return fmt::format("'{}' is {}", v, why);
  const SocketAddress nobody =
      address->is_v6() ? SocketAddress::any_v6(0) : SocketAddress::any_v4(0);
  o.callbacks = !address->same_host(nobody);
  o.client_address = text;
  return {};
}

string take_version(MountOptions& o, string_view v) {
  return parse_nfs_version(v, &o.version);
}

string take_proto(MountOptions& o, string_view v) {
  struct Row {
    string_view name;
    MountProto proto;
    MountFamily family;
  };
  static constexpr Row kRows[] = {{"auto", MountProto::kAuto, MountFamily::kAny},
                                  {"rdma", MountProto::kRdma, MountFamily::kAny},
                                  {"rdma6", MountProto::kRdma, MountFamily::kV6},
                                  {"tcp", MountProto::kTcp, MountFamily::kAny},
                                  {"tcp6", MountProto::kTcp, MountFamily::kV6}};
  for (const Row& row : kRows) {
    if (row.name != v) continue;
    o.proto = row.proto;
    o.family = row.family;
    return {};
  }
  return fmt::format("'{}' is not one of auto, rdma, rdma6, tcp, tcp6", v);
}

string take_mount_proto(MountOptions& o, string_view v) {
  if (v == "tcp" || v == "tcp6") {
    o.mount_proto_tcp = true;
  } else if (v == "rdma" || v == "rdma6" || v == "auto") {
    o.mount_proto_tcp = false;
  } else {
    return fmt::format("'{}' is not one of auto, rdma, rdma6, tcp, tcp6", v);
  }
  o.for_version_3 = true;  // as mount.nfs takes it
  return {};
}

string take_mount_version(MountOptions& o, string_view v) {
  if (v != "3") return fmt::format("'{}' is not supported; use mountvers=3", v);
  o.for_version_3 = true;
  return {};
}

string take_crc(MountOptions& o, string_view v) {
  if (v != "auto" && v != "require") return fmt::format("'{}' is not one of auto, require", v);
  o.require_crc = v == "require";
  return {};
}

string take_fabric(MountOptions& o, string_view v) {
  if (v == "auto") {
    o.fabric = MountFabric::kAuto;
  } else if (v == "verbs") {
    o.fabric = MountFabric::kVerbs;
  } else if (v == "iwarp") {
    o.fabric = MountFabric::kIwarp;
  } else {
    return fmt::format("'{}' is not one of auto, verbs, iwarp", v);
  }
  return {};
}

string take_lookup_cache(MountOptions& o, string_view v) {
  if (v == "all") {
    o.lookup_cache = LookupCache::kAll;
  } else if (v == "pos" || v == "positive") {
    o.lookup_cache = LookupCache::kPositive;
  } else if (v == "none") {
    o.lookup_cache = LookupCache::kNone;
  } else {
    return fmt::format("'{}' is not one of all, pos, positive, none", v);
  }
  return {};
}

string take_security(MountOptions&, string_view v) {
  if (v == "sys") return {};
  if (v == "none" || v.substr(0, 4) == "krb5") {
    return fmt::format("'{}' is not supported yet; use sec=sys", v);
  }
  return fmt::format("'{}' is not a security flavour; use sec=sys", v);
}

string take_local_lock(MountOptions& o, string_view v) {
  if (v != "all" && v != "none" && v != "flock" && v != "posix") {
    return fmt::format("'{}' is not one of all, flock, posix, none", v);
  }
  o.local_posix_locks = v == "all" || v == "posix";
  o.local_flock = v == "all" || v == "flock";
  return {};
}

string take_actimeo(MountOptions& o, string_view v) {
  string problem = take_seconds(v, &o.acregmin);
  if (problem.empty()) o.acregmax = o.acdirmin = o.acdirmax = o.acregmin;
  return problem;
}

string take_noac(MountOptions& o, string_view) {
  o.attribute_cache = false;
  o.synchronous = true;  // nfs(5): noac implies sync
  return {};
}

string take_timeo(MountOptions& o, string_view v) {
  std::uint32_t deciseconds = 0;
  string problem = take_number(v, 1, 36'000, &deciseconds);
  if (problem.empty()) o.timeout = std::chrono::milliseconds(deciseconds * 100);
  return problem;
}

string take_retry(MountOptions& o, string_view v) {
  unsigned minutes = 0;
  string problem = take_number(v, 0, 100'000, &minutes);
  if (problem.empty()) o.retry = std::chrono::minutes(minutes);
  return problem;
}

string ignore(MountOptions&, string_view) {
  return {};
}
string refuse_udp(MountOptions&, string_view) {
  return "UDP is not supported; use proto=rdma or proto=tcp";
}

/// Of FUSE: what mount(8) repeats of a mount that is there; else finish_mount_options() refuses it.
string at_remount(MountOptions& o, string_view) {
  o.names_fuse = true;
  return {};
}

template <bool MountOptions::*member, bool value>
string set(MountOptions& o, string_view) {
  o.*member = value;
  return {};
}
template <MountRecovery recovery>
string set_recovery(MountOptions& o, string_view) {
  o.recovery = recovery;
  return {};
}
template <bool value>
string take_lock(MountOptions& o, string_view) {
  o.lock = value;
  return {};
}
string take_readdirplus(MountOptions& o, string_view v) {
  if (!v.empty() && v != "none" && v != "force") {
    return fmt::format("'{}' is not one of none, force", v);
  }
  o.readdirplus = v != "none";
  return {};
}
string take_transport_security(MountOptions&, string_view v) {
  return v == "none" ? "" : "only none is supported: there is no RPC-with-TLS";
}
string take_fsc(MountOptions& o, string_view) {
  o.notices.emplace_back("fsc: there is no cache on disk; ignored");
  return {};
}

string take_migration(MountOptions& o, string_view) {
  o.notices.emplace_back(
      "migration: what moves is followed in any case, and its locks do not move along; ignored");
  return {};
}

/// Of SELinux. Quotes keep the commas of its categories together, here and in the kernel.
string take_label(MountOptions& o, const char* name, string_view v) {
  if (v.size() >= 2 && v.front() == '"' && v.back() == '"') v = v.substr(1, v.size() - 2);
  if (v.empty() || v.find('"') != string_view::npos) return "that is no label of SELinux";
  o.labels.insert_or_assign(name, v);
  return {};
}

// A label's name, too, is found again in the table.
#define LABEL(name)                                                                               \
  {                                                                                               \
    name, Value::kRequired, [](MountOptions& o, string_view v) { return take_label(o, name, v); } \
  }

// A vfs flag's name is found again in the table, so that one function serves all.
#define VFS_FLAG(name)                                     \
  {                                                        \
    name, Value::kNone, [](MountOptions& o, string_view) { \
      o.vfs_flags.emplace_back(name);                      \
      return string();                                     \
    }                                                      \
  }

constexpr OptionRow kTable[] = {
    // Transport.
    {"rdma", Value::kNone, [](MountOptions& o, string_view) { return take_proto(o, "rdma"); }},
    {"tcp", Value::kNone, [](MountOptions& o, string_view) { return take_proto(o, "tcp"); }},
    {"udp", Value::kNone, refuse_udp},
    {"proto", Value::kRequired, take_proto},
    {"fabric", Value::kRequired, take_fabric},
    {"crc", Value::kRequired, take_crc},
    {"vers", Value::kRequired, take_version},
    {"nfsvers", Value::kRequired, take_version},
    {"v2", Value::kNone, [](MountOptions& o, string_view) { return take_version(o, "2"); }},
    {"v3", Value::kNone, [](MountOptions& o, string_view) { return take_version(o, "3"); }},
    {"v4", Value::kNone, [](MountOptions& o, string_view) { return take_version(o, "4"); }},
    {"v4.0", Value::kNone, [](MountOptions& o, string_view) { return take_version(o, "4.0"); }},
    {"v4.1", Value::kNone, [](MountOptions& o, string_view) { return take_version(o, "4.1"); }},
    {"v4.2", Value::kNone, [](MountOptions& o, string_view) { return take_version(o, "4.2"); }},
    {"minorversion", Value::kRequired,
     [](MountOptions& o, string_view v) {
       return parse_minor_version(v, &o.minor_version.emplace());
     }},
    {"port", Value::kRequired,
     [](MountOptions& o, string_view v) { return take_number(v, 0, 65'535, &o.port); }},
    {"tcpport", Value::kRequired,
     [](MountOptions& o, string_view v) { return take_number(v, 1, 65'535, &o.tcp_port); }},
    {"mountport", Value::kRequired,
     [](MountOptions& o, string_view v) { return take_number(v, 0, 65'535, &o.mount_port); }},
    {"mountproto", Value::kRequired, take_mount_proto},
    {"mountvers", Value::kRequired, take_mount_version},
    {"nconnect", Value::kRequired,
     [](MountOptions& o, string_view v) { return take_number(v, 1, 16, &o.connections); }},
    {"credits", Value::kRequired,
     [](MountOptions& o, string_view v) { return take_number(v, 1, 1024, &o.credits); }},
    {"inline", Value::kRequired, take_inline},
    {"shards", Value::kRequired,
     [](MountOptions& o, string_view v) { return take_number(v, 1, 16, &o.shards); }},
    {"sec", Value::kRequired, take_security},
    {"xprtsec", Value::kRequired, take_transport_security},
    // Calls.
    {"rsize", Value::kRequired,
     [](MountOptions& o, string_view v) { return take_transfer_size(v, &o.rsize); }},
    {"wsize", Value::kRequired,
     [](MountOptions& o, string_view v) { return take_transfer_size(v, &o.wsize); }},
    {"hard", Value::kNone, set_recovery<MountRecovery::kHard>},
    {"soft", Value::kNone, set_recovery<MountRecovery::kSoft>},
    {"softerr", Value::kNone, set_recovery<MountRecovery::kSoftErr>},
    {"timeo", Value::kRequired, take_timeo},
    {"retrans", Value::kRequired,
     [](MountOptions& o, string_view v) { return take_number(v, 0, 1000, &o.retransmissions); }},
    {"retry", Value::kRequired, take_retry},
    {"bg", Value::kNone, set<&MountOptions::background, true>},
    {"fg", Value::kNone, set<&MountOptions::background, false>},
    {"intr", Value::kNone, ignore},
    {"nointr", Value::kNone, ignore},
    {"resvport", Value::kNone, set<&MountOptions::reserved_port, true>},
    {"noresvport", Value::kNone, set<&MountOptions::reserved_port, false>},
    {"max_connect", Value::kRequired,
     [](MountOptions& o, string_view v) { return take_number(v, 1, 16, &o.max_connect); }},
    {"clientaddr", Value::kRequired, take_client_address},
    {"callbackport", Value::kRequired,
     [](MountOptions& o, string_view v) { return take_number(v, 1, 65'535, &o.callback_port); }},
    {"trunkdiscovery", Value::kNone, set<&MountOptions::discover_trunks, true>},
    {"notrunkdiscovery", Value::kNone, set<&MountOptions::discover_trunks, false>},
    {"softreval", Value::kNone, set<&MountOptions::soft_revalidation, true>},
    {"nosoftreval", Value::kNone, set<&MountOptions::soft_revalidation, false>},
    // Caching.
    {"ac", Value::kNone, set<&MountOptions::attribute_cache, true>},
    {"noac", Value::kNone, take_noac},
    {"acregmin", Value::kRequired,
     [](MountOptions& o, string_view v) { return take_seconds(v, &o.acregmin); }},
    {"acregmax", Value::kRequired,
     [](MountOptions& o, string_view v) { return take_seconds(v, &o.acregmax); }},
    {"acdirmin", Value::kRequired,
     [](MountOptions& o, string_view v) { return take_seconds(v, &o.acdirmin); }},
    {"acdirmax", Value::kRequired,
     [](MountOptions& o, string_view v) { return take_seconds(v, &o.acdirmax); }},
    {"actimeo", Value::kRequired, take_actimeo},
    {"cto", Value::kNone, set<&MountOptions::close_to_open, true>},
    {"nocto", Value::kNone, set<&MountOptions::close_to_open, false>},
    {"lookupcache", Value::kRequired, take_lookup_cache},
    {"rdirplus", Value::kOptional, take_readdirplus},
    {"nordirplus", Value::kNone, set<&MountOptions::readdirplus, false>},
    {"fsc", Value::kOptional, take_fsc},
    {"nofsc", Value::kNone, ignore},
    {"sharecache", Value::kNone, ignore},
    {"nosharecache", Value::kNone, ignore},
    {"acl", Value::kNone, set<&MountOptions::posix_acls, true>},
    {"noacl", Value::kNone, set<&MountOptions::posix_acls, false>},
    // Referrals.
    {"referrals", Value::kNone, set<&MountOptions::referrals, true>},
    {"noreferrals", Value::kNone, set<&MountOptions::referrals, false>},
    {"migration", Value::kNone, take_migration},
    {"nomigration", Value::kNone, ignore},
    // Locks.
    {"lock", Value::kNone, take_lock<true>},
    {"nolock", Value::kNone, take_lock<false>},
    {"local_lock", Value::kRequired, take_local_lock},
    // mount(2).
    {"ro", Value::kNone, set<&MountOptions::read_only, true>},
    {"rw", Value::kNone, set<&MountOptions::read_only, false>},
    {"suid", Value::kNone, set<&MountOptions::suid, true>},
    {"nosuid", Value::kNone, set<&MountOptions::suid, false>},
    {"dev", Value::kNone, set<&MountOptions::dev, true>},
    {"nodev", Value::kNone, set<&MountOptions::dev, false>},
    {"exec", Value::kNone, set<&MountOptions::exec, true>},
    {"noexec", Value::kNone, set<&MountOptions::exec, false>},
    {"sync", Value::kNone, set<&MountOptions::synchronous, true>},
    {"async", Value::kNone, set<&MountOptions::synchronous, false>},
    VFS_FLAG("dirsync"),
    VFS_FLAG("noatime"),
    {"atime", Value::kNone, ignore},
    VFS_FLAG("nodiratime"),
    {"diratime", Value::kNone, ignore},
    LABEL("context"),
    LABEL("fscontext"),
    LABEL("defcontext"),
    LABEL("rootcontext"),
    {"relatime", Value::kNone, ignore},
    {"norelatime", Value::kNone, ignore},
    {"strictatime", Value::kNone, ignore},
    {"nostrictatime", Value::kNone, ignore},
    {"lazytime", Value::kNone, ignore},
    {"nolazytime", Value::kNone, ignore},
    {"remount", Value::kNone, set<&MountOptions::remount, true>},
    // What the kernel shows of a FUSE mount, and mount(8) repeats.
    {"user_id", Value::kRequired, at_remount},
    {"group_id", Value::kRequired, at_remount},
    {"allow_other", Value::kNone, set<&MountOptions::allow_other, true>},
    {"default_permissions", Value::kNone, at_remount},
    {"max_read", Value::kRequired, at_remount},
    {"blksize", Value::kRequired, at_remount},
    // For mount(8) and fstab only.
    {"defaults", Value::kNone, ignore},
    {"auto", Value::kNone, ignore},
    {"noauto", Value::kNone, ignore},
    {"user", Value::kOptional, ignore},
    {"nouser", Value::kNone, ignore},
    {"users", Value::kNone, ignore},
    {"owner", Value::kNone, ignore},
    {"group", Value::kNone, ignore},
    {"nofail", Value::kNone, ignore},
    {"_netdev", Value::kNone, ignore},
    {"comment", Value::kRequired, ignore},
    {"addr", Value::kRequired, ignore},
    {"sloppy", Value::kNone, ignore},  // seen to by parse_mount_options
};
#undef VFS_FLAG
#undef LABEL

}  // namespace

std::span<const OptionRow> mount_option_table() {
  return kTable;
}

}  // namespace nfsrdma
