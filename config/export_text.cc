// SPDX-License-Identifier: Apache-2.0
#include "config/export_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace nfsrdma {

namespace {

using Words = std::vector<std::string>;

/// Blanks, quotes and the like, and those of `more`, as \ooo.
std::string escaped(const std::string& text, std::string_view more) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte > ' ' && byte != 0x7f && c != '"' && c != '\\' && c != '#' &&
                       more.find(c) == std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("\\{:03o}", byte);
  }
  return out;
}

/// A path inside of an option list.
std::string escaped_value(const std::string& path) {
  return escaped(path, ",()");
}

/// refer=/a@h+i:/b@[::1]
std::string locations_text(const ExportOptions& options) {
  std::string out = options.referral ? "refer=" : "replicas=";
  for (std::size_t i = 0; i < options.locations.size(); ++i) {
    const FsLocation& location = options.locations[i];
    out += (i == 0 ? "" : ":") + escaped_value(location.path) + "@";
    for (std::size_t host = 0; host < location.servers.size(); ++host) {
      const std::string& name = location.servers[host];
      out += host == 0 ? "" : "+";
      out += name.find(':') == std::string::npos ? name : "[" + name + "]";
    }
  }
  return out;
}

/// What may differ between flavours of sec=, and the flavours.
void add_security(const ExportOptions& o, Words* words) {
  const bool alike = o.serves_sys == o.serves_none && o.read_only == o.none_read_only;
  auto add_squash = [&] {
    words->emplace_back(o.root_squash ? "root_squash" : "no_root_squash");
    words->emplace_back(o.all_squash ? "all_squash" : "no_all_squash");
  };
  if (o.serves_sys) {
    if (!alike) words->emplace_back("sec=sys");
    words->emplace_back(o.read_only ? "ro" : "rw");
    add_squash();
  }
  if (o.serves_none && !alike) {
    words->emplace_back("sec=none");
    words->emplace_back(o.none_read_only ? "ro" : "rw");
  }
}

Words words_of(const ExportOptions& o) {
  Words words;
  auto add = [&words](std::string word) { words.push_back(std::move(word)); };
  add(o.sync ? "sync" : "async");
  add(o.write_delay ? "wdelay" : "no_wdelay");
  add(o.nohide ? "nohide" : "hide");
  if (o.crossmnt) add("crossmnt");
  add(o.secure ? "secure" : "insecure");
  add(o.subtree_check ? "subtree_check" : "no_subtree_check");
  add(o.insecure_locks ? "insecure_locks" : "secure_locks");
  if (o.no_readdirplus) add("nordirplus");
  if (o.no_acl) add("no_acl");
  if (o.need_mountpoint) {
    add(o.mountpoint_path.empty() ? "mountpoint"
                                  : "mountpoint=" + escaped_value(o.mountpoint_path));
  }
  if (!o.fsid.empty()) add("fsid=" + o.fsid);
  add(fmt::format("anonuid={}", o.anon_uid));
  add(fmt::format("anongid={}", o.anon_gid));
  if (!o.locations.empty()) add(locations_text(o));
  add_security(o, &words);  // last: what follows a sec= would be of its flavours alone
  return words;
}

std::string joined(const Words& words) {
  return words.empty() ? "-" : fmt::format("{}", fmt::join(words, ","));
}

/// Those of `words` that `others` lacks. What belongs to a flavour of sec= is one word with it.
Words without(const Words& words, const Words& others) {
  Words out;
  for (const std::string& word : words) {
    if (std::ranges::find(others, word) == others.end()) out.push_back(word);
  }
  return out;
}

/// "sec=none" and "rw" behind it become "sec=none,rw", so that they are compared together.
Words grouped(const Words& words) {
  Words out;
  bool inside = false;
  for (const std::string& word : words) {
    if (inside && !word.starts_with("sec=")) {
      out.back() += "," + word;
    } else {
      out.push_back(word);
    }
    inside = inside || word.starts_with("sec=");
  }
  return out;
}

}  // namespace

std::string options_text(const ExportOptions& options) {
  return joined(words_of(options));
}

std::pair<std::string, std::string> changed_options(const ExportOptions& before,
                                                    const ExportOptions& after) {
  const Words was = grouped(words_of(before));
  const Words is = grouped(words_of(after));
  return {joined(without(was, is)), joined(without(is, was))};
}

std::string escaped_path(const std::string& path) {
  return escaped(path, "");
}

}  // namespace nfsrdma
