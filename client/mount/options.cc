// SPDX-License-Identifier: Apache-2.0
#include "client/mount/options.h"

#include <fmt/format.h>

#include <vector>

#include "client/mount/option_table.h"
#include "config/edit_distance.h"

namespace nfsrdma {
namespace {

constexpr std::uint16_t kRdmaPort = 20049;  // RFC 5666's registration
constexpr std::uint16_t kTcpPort = 2049;

/// Splits at commas; a comma inside of double quotes belongs to the value.
std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> words;
  std::size_t start = 0;
  bool quoted = false;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '"') quoted = !quoted;
    if (i < list.size() && (list[i] != ',' || quoted)) continue;
    if (i > start) words.push_back(list.substr(start, i - start));
    start = i + 1;
  }
  return words;
}

bool has_prefix(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

const OptionRow* find_row(std::string_view name) {
  for (const OptionRow& row : mount_option_table()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string unknown_option(std::string_view name) {
  std::vector<std::string_view> known;
  for (const OptionRow& row : mount_option_table())
    known.push_back(row.name);
  std::string_view nearest = nearest_word(name, known);
  if (nearest.empty()) return fmt::format("unknown mount option '{}'", name);
  return fmt::format("unknown mount option '{}'; did you mean '{}'?", name, nearest);
}

/// One "name" or "name=value". Empty: fine, else the line for the user.
std::string apply(std::string_view word, MountOptions* options) {
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const bool has_value = equals != std::string_view::npos;
  const std::string_view value = has_value ? word.substr(equals + 1) : std::string_view();
  const OptionRow* row = find_row(name);
  if (row == nullptr) return unknown_option(name);
  if (row->value == OptionRow::Value::kRequired && value.empty()) {
    return fmt::format("mount option '{}' needs a value", name);
  }
  if (row->value == OptionRow::Value::kNone && has_value) {
    return fmt::format("mount option '{}' takes no value", name);
  }
  std::string problem = row->apply(*options, value);
  if (problem.empty()) return {};
  return fmt::format("mount option '{}': {}", word, problem);
}

const char* proto_text(const MountOptions& o) {
  const bool v6 = o.family == MountFamily::kV6;
  if (o.proto == MountProto::kRdma) return v6 ? "rdma6" : "rdma";
  if (o.proto == MountProto::kTcp) return v6 ? "tcp6" : "tcp";
  return "auto";
}
const char* fabric_text(MountFabric fabric) {
  if (fabric == MountFabric::kVerbs) return "verbs";
  return fabric == MountFabric::kIwarp ? "iwarp" : "auto";
}
const char* recovery_text(MountRecovery recovery) {
  if (recovery == MountRecovery::kSoft) return "soft";
  return recovery == MountRecovery::kSoftErr ? "softerr" : "hard";
}
const char* lookup_cache_text(LookupCache cache) {
  if (cache == LookupCache::kPositive) return "positive";
  return cache == LookupCache::kNone ? "none" : "all";
}

std::string_view local_lock_text(const MountOptions& options) {
  if (options.lock) return *options.lock ? "none" : "all";
  if (options.local_flock) return options.local_posix_locks ? "all" : "flock";
  return options.local_posix_locks ? "posix" : "none";
}

std::string cache_text(const MountOptions& o) {
  if (!o.attribute_cache) return "noac";
  return fmt::format("acregmin={},acregmax={},acdirmin={},acdirmax={}", o.acregmin.count(),
                     o.acregmax.count(), o.acdirmin.count(), o.acdirmax.count());
}

}  // namespace

std::uint16_t MountOptions::rdma_port() const {
  return port == 0 || proto == MountProto::kTcp ? kRdmaPort : port;
}

std::uint16_t MountOptions::effective_tcp_port() const {
  if (tcp_port != 0) return tcp_port;
  return proto == MountProto::kTcp && port != 0 ? port : kTcpPort;
}

std::vector<std::string> MountOptions::label_words() const {
  std::vector<std::string> words;
  for (const auto& [name, label] : labels)
    words.push_back(fmt::format("{}=\"{}\"", name, label));
  return words;
}

std::string MountOptions::text() const {
  std::string out = read_only ? "ro" : "rw";
  auto add = [&out](std::string_view word) {
    out += ',';
    out += word;
  };
  if (!suid) add("nosuid");
  if (dev) add("dev");
  if (!exec) add("noexec");
  for (const std::string& flag : vfs_flags)
    add(flag);
  for (const std::string& label : label_words())
    add(label);
  if (synchronous) add("sync");
  if (!version.any) add(fmt::format("vers={}", version.text()));
  add(fmt::format("proto={}", proto_text(*this)));
  if (proto != MountProto::kTcp) {
    add(fmt::format("fabric={},port={}", fabric_text(fabric), rdma_port()));
    if (require_crc) add("crc=require");
    if (inline_bytes != 0) add(fmt::format("inline={}", inline_bytes));
  }
  if (proto != MountProto::kRdma) add(fmt::format("tcpport={}", effective_tcp_port()));
  if (mount_port != 0) add(fmt::format("mountport={}", mount_port));
  if (mount_proto_tcp) add("mountproto=tcp");
  if (!reserved_port) add("noresvport");
  if (rsize != 0) add(fmt::format("rsize={}", rsize));
  if (wsize != 0) add(fmt::format("wsize={}", wsize));
  add(fmt::format("{},timeo={},retrans={},nconnect={}", recovery_text(recovery),
                  timeout.count() / 100, retransmissions, connections));
  if (discover_trunks) add("trunkdiscovery");
  if (discover_trunks && max_connect != 0) add(fmt::format("max_connect={}", max_connect));
  if (!client_address.empty()) add(fmt::format("clientaddr={}", client_address));
  if (callback_port != 0) add(fmt::format("callbackport={}", callback_port));
  if (credits != 0) add(fmt::format("credits={}", credits));
  if (shards != 0) add(fmt::format("shards={}", shards));
  add(cache_text(*this));
  if (!close_to_open) add("nocto");
  if (soft_revalidation) add("softreval");
  if (!readdirplus) add("nordirplus");
  if (!posix_acls) add("noacl");
  if (!referrals) add("noreferrals");
  add(fmt::format("lookupcache={},local_lock={},sec=sys", lookup_cache_text(lookup_cache),
                  local_lock_text(*this)));
  return out;
}

bool parse_mount_options(std::string_view list, bool sloppy, MountOptions* options,
                         std::string* error) {
  const std::vector<std::string_view> words = split(list);
  for (std::string_view word : words)
    sloppy |= word == "sloppy";
  for (std::string_view word : words) {
    // Comments of other programs in fstab (systemd's x-systemd.automount and the like).
    if (has_prefix(word, "x-") || has_prefix(word, "X-")) continue;
    options->given.emplace_back(word);
    if (sloppy && find_row(word.substr(0, word.find('='))) == nullptr) {
      options->notices.push_back(fmt::format("unknown mount option '{}' ignored (sloppy)", word));
      continue;
    }
    *error = apply(word, options);
    if (!error->empty()) return false;
  }
  return true;
}

bool finish_mount_options(MountOptions* options, std::string* error) {
  MountOptions& o = *options;
  if (o.names_fuse && !o.remount) {
    *error =
        "default_permissions, max_read, user_id and the like are FUSE's and not to be set: the "
        "server judges who may do what";
    return false;
  }
  if (o.acregmin > o.acregmax) {
    // nfs(5) lets a larger minimum win, as the kernel does.
    o.acregmax = o.acregmin;
  }
  if (o.acdirmin > o.acdirmax) o.acdirmax = o.acdirmin;
  if (o.proto == MountProto::kTcp && o.fabric != MountFabric::kAuto) {
    *error = fmt::format("fabric={} and proto=tcp exclude each other", fabric_text(o.fabric));
    return false;
  }
  if (o.proto == MountProto::kTcp && o.port != 0 && o.tcp_port != 0 && o.port != o.tcp_port) {
    *error = fmt::format("port={} and tcpport={} differ, and proto=tcp has one port", o.port,
                         o.tcp_port);
    return false;
  }
  if (o.minor_version) {
    *error = apply_minor_version(*o.minor_version, &o.version);
    if (!error->empty()) return false;
  }
  if (o.version.any && o.for_version_3) o.version = {};
  if (o.lock) o.local_posix_locks = o.local_flock = !*o.lock;
  if (o.max_connect > 1 && !o.discover_trunks && !o.remount) {
    o.notices.emplace_back("max_connect: without trunkdiscovery one address is used");
  }
  if (o.retry < std::chrono::minutes(0)) o.retry = std::chrono::minutes(o.background ? 10'000 : 2);
  return true;
}

std::string MountOptions::leave_out_of(std::uint32_t major) {
  if (major == 3 || local_lock_text(*this) == "none") return {};
  local_posix_locks = local_flock = false;
  lock.reset();
  return "nolock and local_lock= are for version 3; by version 4 the server has the locks";
}

bool parse_mount_source(std::string_view text, MountSource* source, std::string* error) {
  const std::string expected = fmt::format("'{}' is not of the form SERVER:/PATH", text);
  std::size_t colon = text.find(':');
  if (has_prefix(text, "[")) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos || bracket < 2) return *error = expected, false;
    source->host = text.substr(1, bracket - 1);
    colon = bracket + 1;
    if (colon >= text.size() || text[colon] != ':') return *error = expected, false;
  } else {
    if (colon == std::string_view::npos || colon == 0) return *error = expected, false;
    source->host = text.substr(0, colon);
  }
  std::string_view path = text.substr(colon + 1);
  if (path.empty() || path[0] != '/') {
    *error = expected;
    if (path.find(':') != std::string_view::npos) {
      *error += "; an IPv6 address stands in brackets: [2001:db8::1]:/PATH";
    }
    return false;
  }
  // One export has one spelling: no trailing slashes.
  while (path.size() > 1 && path.back() == '/')
    path.remove_suffix(1);
  source->path = path;
  return true;
}

}  // namespace nfsrdma
