// SPDX-License-Identifier: Apache-2.0
#include "config/user_names.h"

#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <vector>

#include "config/text_file.h"
#include "rpcrdma/base/host_name.h"

namespace nfsrdma {
namespace {

bool same_text(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

/// One of getpwnam_r, getgrgid_r and their kind, with as much room as it wants.
template <typename Entry, typename Function, typename Key>
bool ask(Function function, Key key, Entry* entry, std::vector<char>* room) {
  constexpr std::size_t kFirst = 4096;
  constexpr std::size_t kMost = 1u << 20;  // a group of many members
  for (std::size_t size = kFirst; size <= kMost; size *= 4) {
    room->resize(size);
    Entry* found = nullptr;
    const int error = function(key, entry, room->data(), room->size(), &found);
    if (error != ERANGE) return error == 0 && found != nullptr;
  }
  return false;
}

class SystemNames final : public NameService {
 public:
  std::optional<std::uint32_t> uid_of(const std::string& user) override {
    passwd entry{};
    std::vector<char> room;
    if (!ask(::getpwnam_r, user.c_str(), &entry, &room)) return std::nullopt;
    return entry.pw_uid;
  }
  std::optional<std::uint32_t> gid_of(const std::string& group_name) override {
    group entry{};
    std::vector<char> room;
    if (!ask(::getgrnam_r, group_name.c_str(), &entry, &room)) return std::nullopt;
    return entry.gr_gid;
  }
  std::optional<std::string> user_of(std::uint32_t uid) override {
    passwd entry{};
    std::vector<char> room;
    if (!ask(::getpwuid_r, uid, &entry, &room)) return std::nullopt;
    return entry.pw_name;
  }
  std::optional<std::string> group_of(std::uint32_t gid) override {
    group entry{};
    std::vector<char> room;
    if (!ask(::getgrgid_r, gid, &entry, &room)) return std::nullopt;
    return entry.gr_name;
  }
};

/// What follows the first dot of this host's full name.
std::string host_domain() {
  const std::string name = host_name();
  if (name.empty()) return {};
  std::string full = name;
  addrinfo hints{};
  hints.ai_flags = AI_CANONNAME;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) == 0) {
    if (found->ai_canonname != nullptr &&
        std::string_view(found->ai_canonname).find('.') != std::string_view::npos) {
      full = found->ai_canonname;
    }
    ::freeaddrinfo(found);
  }
  const std::size_t dot = full.find('.');
  return dot == std::string::npos ? std::string() : full.substr(dot + 1);
}

}  // namespace

std::unique_ptr<NameService> make_system_name_service() {
  return std::make_unique<SystemNames>();
}

std::string idmap_domain(std::string_view idmapd_conf) {
  bool general = false;
  while (!idmapd_conf.empty()) {
    const std::string_view line = trimmed(idmapd_conf.substr(0, idmapd_conf.find('\n')));
    idmapd_conf.remove_prefix(std::min(idmapd_conf.size(), idmapd_conf.find('\n')));
    if (idmapd_conf.starts_with('\n')) idmapd_conf.remove_prefix(1);
    if (line.starts_with('['))
      general = same_text(trimmed(line.substr(0, line.find(']'))), "[General");
    if (!general || line.starts_with('#') || line.starts_with(';')) continue;
    const std::size_t equals = line.find('=');
    if (equals == line.npos || !same_text(trimmed(line.substr(0, equals)), "Domain")) continue;
    return std::string(trimmed(line.substr(equals + 1)));
  }
  return {};
}

std::string system_idmap_domain() {
  constexpr std::size_t kLargest = 65536;
  std::string text;
  ConfigProblems unread;  // not there: the usual case
  std::string domain;
  if (read_text_file("/etc/idmapd.conf", kLargest, &text, &unread)) domain = idmap_domain(text);
  if (domain.empty()) domain = host_domain();
  return domain.empty() ? "localdomain" : domain;
}

}  // namespace nfsrdma
