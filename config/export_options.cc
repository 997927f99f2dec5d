// SPDX-License-Identifier: Apache-2.0
// The option words of exports(5), one row each.
#include "config/export_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "config/edit_distance.h"
#include "config/fs_locations.h"

namespace nfsrdma {

namespace {

enum class Value : std::uint8_t { kNone, kOptional, kNeeded };

/// Sets the option; an empty answer means good, otherwise it is what was expected.
using Apply = std::string_view (*)(ExportOptions& options, std::string_view value);

struct OptionWord {
  std::string_view name;
  Value value;
  Apply apply;
  std::string_view notice = {};  // for words that change nothing here
};

bool parse_id(std::string_view text, std::uint32_t* id) {
  // -2 and the like are the old way to write "nobody".
  std::int64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (n < INT32_MIN || n > UINT32_MAX) return false;
  *id = static_cast<std::uint32_t>(n);
  return true;
}

std::string_view set_anon_uid(ExportOptions& o, std::string_view v) {
  return parse_id(v, &o.anon_uid) ? std::string_view() : "a user id (number)";
}
std::string_view set_anon_gid(ExportOptions& o, std::string_view v) {
  return parse_id(v, &o.anon_gid) ? std::string_view() : "a group id (number)";
}

std::string_view set_fsid(ExportOptions& o, std::string_view v) {
  if (v == "root") return o.fsid = "0", std::string_view();
  std::uint32_t number = 0;
  auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), number);
  const bool is_number = error == std::errc() && end == v.data() + v.size();
  const auto hex = [](char c) {
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
  };
  const bool is_uuid =
      std::count_if(v.begin(), v.end(), hex) == 32 && std::all_of(v.begin(), v.end(), [&](char c) {
        return hex(c) || c == '-' || c == ':' || c == '.';
      });
  if (!is_number && !is_uuid) return "a number, root, or a UUID";
  o.fsid = v;
  return {};
}

std::string_view set_security(ExportOptions&, std::string_view v) {
  return v == "sys" ? std::string_view()
                    : "sys (Kerberos and sec=none are not supported by this version)";
}
std::string_view set_transport_security(ExportOptions&, std::string_view v) {
  return v == "none" ? std::string_view() : "none (RPC-with-TLS is not supported)";
}
std::string_view set_mountpoint(ExportOptions& o, std::string_view v) {
  if (!v.empty() && v.front() != '/') return "an absolute path";
  o.need_mountpoint = true;
  o.mountpoint_path = v;
  return {};
}
std::string_view set_referral(ExportOptions& o, std::string_view v) {
  o.referral = true;
  return parse_fs_locations(v, &o.locations);
}
std::string_view set_replicas(ExportOptions& o, std::string_view v) {
  o.referral = false;
  return parse_fs_locations(v, &o.locations);
}
std::string_view ignore(ExportOptions&, std::string_view) {
  return {};
}

#define SETS(field, value)                 \
  [](ExportOptions& o, std::string_view) { \
    o.field = value;                       \
    return std::string_view();             \
  }

const OptionWord kWords[] = {
    {"ro", Value::kNone, SETS(read_only, true)},
    {"rw", Value::kNone, SETS(read_only, false)},
    {"sync", Value::kNone, SETS(sync, true)},
    {"async", Value::kNone, SETS(sync, false)},
    {"secure", Value::kNone, SETS(secure, true)},
    {"insecure", Value::kNone, SETS(secure, false)},
    {"root_squash", Value::kNone, SETS(root_squash, true)},
    {"no_root_squash", Value::kNone, SETS(root_squash, false)},
    {"all_squash", Value::kNone, SETS(all_squash, true)},
    {"no_all_squash", Value::kNone, SETS(all_squash, false)},
    {"anonuid", Value::kNeeded, set_anon_uid},
    {"anongid", Value::kNeeded, set_anon_gid},
    {"fsid", Value::kNeeded, set_fsid},
    {"crossmnt", Value::kNone, SETS(crossmnt, true)},
    {"nohide", Value::kNone, SETS(nohide, true)},
    {"hide", Value::kNone, SETS(nohide, false)},
    {"subtree_check", Value::kNone, SETS(subtree_check, true)},
    {"no_subtree_check", Value::kNone, SETS(subtree_check, false)},
    {"wdelay", Value::kNone, SETS(write_delay, true)},
    {"no_wdelay", Value::kNone, SETS(write_delay, false)},
    {"mountpoint", Value::kOptional, set_mountpoint},
    {"mp", Value::kOptional, set_mountpoint},
    {"refer", Value::kNeeded, set_referral},
    {"replicas", Value::kNeeded, set_replicas},
    {"sec", Value::kNeeded, set_security},
    {"xprtsec", Value::kNeeded, set_transport_security},
    {"secure_locks", Value::kNone, SETS(insecure_locks, false)},
    {"auth_nlm", Value::kNone, SETS(insecure_locks, false)},
    {"insecure_locks", Value::kNone, SETS(insecure_locks, true)},
    {"no_auth_nlm", Value::kNone, SETS(insecure_locks, true)},
    {"no_acl", Value::kNone, ignore, "has no effect: the NFSACL protocol is not served"},
    {"acl", Value::kNone, ignore, "has no effect: the NFSACL protocol is not served"},
    {"no_pnfs", Value::kNone, ignore, "has no effect: pNFS is not served"},
};
#undef SETS

// Words of exports(5) that ask for something which this server does not do: refused with the
// reason, since ignoring them would change who can see what, or how.
struct RefusedWord {
  std::string_view name;
  std::string_view reason;
};
constexpr RefusedWord kRefused[] = {
    {"pnfs", "pNFS is not served"},
    {"security_label", "security labels are not supported"},
    {"nordirplus", "READDIRPLUS cannot be switched off"},
};

std::string unknown_option(std::string_view name) {
  std::vector<std::string_view> names;
  for (const OptionWord& word : kWords)
    names.push_back(word.name);
  std::string_view nearest = nearest_word(name, names);
  std::string text = fmt::format("unknown option '{}'", name);
  if (!nearest.empty()) return text + fmt::format(", did you mean {}?", nearest);
  return text + ", expected an option of nfs-rdma.exports(5) such as rw, sync or root_squash";
}

}  // namespace

bool apply_export_option(std::string_view word, ExportOptions& options, std::string* problem,
                         std::string* notice) {
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const bool has_value = equals != std::string_view::npos;
  const std::string_view value = has_value ? word.substr(equals + 1) : std::string_view();
  auto fail = [&](std::string text) { return *problem = std::move(text), false; };
  for (const RefusedWord& refused : kRefused) {
    if (refused.name == name) return fail(fmt::format("{}: {}", name, refused.reason));
  }
  for (const OptionWord& row : kWords) {
    if (row.name != name) continue;
    if (has_value && row.value == Value::kNone) {
      return fail(fmt::format("{} takes no value, expected ',' or the end of the list", name));
    }
    if ((!has_value || value.empty()) && row.value == Value::kNeeded) {
      return fail(fmt::format("{} needs a value, expected {}=...", name, name));
    }
    std::string_view expected = row.apply(options, value);
    if (!expected.empty()) {
      return fail(fmt::format("{}: '{}' is wrong, expected {}", name, value, expected));
    }
    if (!row.notice.empty()) *notice = fmt::format("{} {}", name, row.notice);
    return true;
  }
  return fail(unknown_option(name));
}

}  // namespace nfsrdma
