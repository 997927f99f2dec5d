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
  // -1 is nobody's: system calls that take it for "as it was" fail for whom it is to stand for.
  if (n < INT32_MIN || n >= UINT32_MAX || n == -1) return false;
  *id = static_cast<std::uint32_t>(n);
  return true;
}

std::string_view set_anon_uid(ExportOptions& o, std::string_view v) {
  return parse_id(v, &o.anon_uid) ? std::string_view() : "a user id (number, but not -1)";
}
std::string_view set_anon_gid(ExportOptions& o, std::string_view v) {
  return parse_id(v, &o.anon_gid) ? std::string_view() : "a group id (number, but not -1)";
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
  // Handles go by the text: one number is one text, however it was written.
  o.fsid = is_uuid ? std::string(v) : std::to_string(number);
  return {};
}

std::string_view set_transport_security(ExportOptions&, std::string_view v) {
  // A list that admits what is served; the others of it cannot come.
  for (std::string_view rest = v; !rest.empty();) {
    const std::string_view kind = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), kind.size() + 1));
    if (kind == "none") return {};
  }
  return "none, or a list with it (RPC-with-TLS is not supported)";
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
/// ExportOptionList knows which flavours they are for.
std::string_view by_flavor(ExportOptions&, std::string_view) {
  return {};
}

#define SETS(field, value)                 \
  [](ExportOptions& o, std::string_view) { \
    o.field = value;                       \
    return std::string_view();             \
  }

const OptionWord kWords[] = {
    {"ro", Value::kNone, by_flavor},
    {"rw", Value::kNone, by_flavor},
    {"sync", Value::kNone, SETS(sync, true)},
    {"async", Value::kNone, SETS(sync, false)},
    {"secure", Value::kNone, SETS(secure, true)},
    {"insecure", Value::kNone, SETS(secure, false)},
    {"root_squash", Value::kNone, by_flavor},
    {"no_root_squash", Value::kNone, by_flavor},
    {"all_squash", Value::kNone, by_flavor},
    {"no_all_squash", Value::kNone, by_flavor},
    {"anonuid", Value::kNeeded, set_anon_uid},
    {"anongid", Value::kNeeded, set_anon_gid},
    {"fsid", Value::kNeeded, set_fsid},
    {"crossmnt", Value::kNone, SETS(crossmnt, true)},
    {"nocrossmnt", Value::kNone, SETS(crossmnt, false)},
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
    {"sec", Value::kNeeded, by_flavor},
    {"xprtsec", Value::kNeeded, set_transport_security},
    {"secure_locks", Value::kNone, SETS(insecure_locks, false)},
    {"auth_nlm", Value::kNone, SETS(insecure_locks, false)},
    {"insecure_locks", Value::kNone, SETS(insecure_locks, true)},
    {"no_auth_nlm", Value::kNone, SETS(insecure_locks, true)},
    {"no_acl", Value::kNone, SETS(no_acl, true)},
    {"acl", Value::kNone, SETS(no_acl, false)},
    {"nordirplus", Value::kNone, SETS(no_readdirplus, true)},
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

// Flavours of sec= that others serve. With sys or none in the list they are left out.
constexpr std::string_view kUnservedFlavors[] = {"krb5",   "krb5i",   "krb5p",  "lkey",   "lkeyi",
                                                 "lkeyp",  "spkm3",   "spkm3i", "spkm3p", "spkm-3",
                                                 "lkey-3", "lkey-3i", "lkey-3p"};

}  // namespace

bool ExportOptionList::set_flavors(std::string_view list, std::string* problem,
                                   std::string* notice) {
  active_ = {false, false};
  std::vector<std::string_view> unserved;
  for (bool more = true; more;) {
    const std::size_t colon = list.find(':');
    const std::string_view flavor = list.substr(0, colon);
    more = colon != std::string_view::npos;
    list.remove_prefix(more ? colon + 1 : list.size());
    if (flavor == "sys" || flavor == "unix") {
      active_.sys = true;
    } else if (flavor == "none" || flavor == "null") {
      active_.none = true;
    } else if (std::ranges::find(kUnservedFlavors, flavor) != std::end(kUnservedFlavors)) {
      unserved.push_back(flavor);
    } else {
      *problem = fmt::format(
          "sec: '{}' is no flavour, expected sys, none or a list such as sys:none", flavor);
      return false;
    }
  }
  if (!flavors_named_) options_.serves_sys = options_.serves_none = false;
  options_.serves_sys |= active_.sys;
  options_.serves_none |= active_.none;
  flavors_named_ = true;
  last_flavors_ = words_ - 1;
  if (!unserved.empty()) {
    *notice =
        fmt::format("sec: {} is not served, nor what is said for it", fmt::join(unserved, ", "));
  }
  return true;
}

void ExportOptionList::set_rights(std::string_view name) {
  if (name == "ro" || name == "rw") {
    if (active_.sys) options_.read_only = name == "ro";
    if (active_.none) options_.none_read_only = name == "ro";
  }
  if (!active_.sys) return;  // whoever comes with AUTH_NONE is anonymous in any case
  if (name == "root_squash" || name == "no_root_squash")
    options_.root_squash = name == "root_squash";
  if (name == "all_squash" || name == "no_all_squash") options_.all_squash = name == "all_squash";
}

bool ExportOptionList::finish(std::string* problem, std::size_t* at) {
  // What nobody can use makes no difference between two lists.
  const ExportOptions defaults;
  if (!options_.serves_none) options_.none_read_only = defaults.none_read_only;
  if (!options_.serves_sys) {
    options_.read_only = defaults.read_only;
    options_.root_squash = defaults.root_squash;
    options_.all_squash = defaults.all_squash;
  }
  if (options_.serves_sys || options_.serves_none) return true;
  *at = last_flavors_;
  *problem =
      "sec: Kerberos is not supported by this version, expected sys, none or a list with one of "
      "them";
  return false;
}

bool ExportOptionList::apply(std::string_view word, std::string* problem, std::string* notice) {
  ++words_;
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
    if (name == "sec") return set_flavors(value, problem, notice);
    if (row.apply == by_flavor) set_rights(name);
    const std::string_view expected = row.apply(options_, value);
    if (!expected.empty()) {
      return fail(fmt::format("{}: '{}' is wrong, expected {}", name, value, expected));
    }
    if (!row.notice.empty()) *notice = fmt::format("{} {}", name, row.notice);
    return true;
  }
  return fail(unknown_option(name));
}

}  // namespace nfsrdma
