// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/owner_names.h"

#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <ctime>
#include <vector>

#include "config/text_file.h"

namespace nfsrdma::nfs4 {

namespace {

std::int64_t coarse_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec;
}

bool same_text(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

/// RFC 8881 5.9: decimal, without leading zeros. The largest number is no id: chown(2) takes it for
/// "leave it".
bool parse_number(std::string_view text, std::uint32_t* number) {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return false;
  *number = 0;
  const char* last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, *number);
  return error == std::errc() && end == last && *number != UINT32_MAX;
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
  char name[HOST_NAME_MAX + 1] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return {};
  std::string full = name;
  addrinfo hints{};
  hints.ai_flags = AI_CANONNAME;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name, nullptr, &hints, &found) == 0) {
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

OwnerNames::OwnerNames(Options options, std::unique_ptr<NameService> service)
    : options_([&] {
        if (!options.seconds) options.seconds = coarse_seconds;
        return std::move(options);
      }()),
      service_(std::move(service)) {}

OwnerNames::Answer OwnerNames::uid_of(std::string_view who, bool may_block, std::uint32_t* uid) {
  return id_of(kUser, who, may_block, uid);
}

OwnerNames::Answer OwnerNames::gid_of(std::string_view who, bool may_block, std::uint32_t* gid) {
  return id_of(kGroup, who, may_block, gid);
}

OwnerNames::Answer OwnerNames::id_of(Kind kind, std::string_view who, bool may_block,
                                     std::uint32_t* id) {
  if (parse_number(who, id)) return Answer::kKnown;
  if (who == "nobody") {
    *id = kind == kUser ? options_.nobody_uid : options_.nobody_gid;
    return Answer::kKnown;
  }
  // The last one: user names may have an "@", domains may not.
  const std::size_t at = who.rfind('@');
  if (at == who.npos || at == 0 || options_.domain.empty() ||
      !same_text(who.substr(at + 1), options_.domain) || who.find('\0') != who.npos) {
    return Answer::kUnknown;
  }
  const std::string_view name = who.substr(0, at);
  Answers& answers = answers_[kind];
  {
    std::lock_guard lock(mutex_);
    auto found = answers.ids.find(name);
    if (found != answers.ids.end() && found->second.until >= options_.seconds()) {
      if (!found->second.value) return Answer::kUnknown;
      *id = *found->second.value;
      return Answer::kKnown;
    }
  }
  if (!may_block) return Answer::kWouldBlock;
  const std::string asked(name);
  Kept<std::uint32_t> fresh;
  fresh.value = kind == kUser ? service_->uid_of(asked) : service_->gid_of(asked);
  fresh.until = options_.seconds() + (fresh.value ? kKeep : kKeepUnknown);
  {
    std::lock_guard lock(mutex_);
    if (answers.ids.size() >= kMaxAnswers) answers.ids.clear();
    answers.ids[asked] = fresh;
  }
  if (!fresh.value) return Answer::kUnknown;
  *id = *fresh.value;
  return Answer::kKnown;
}

OwnerNames::Answer OwnerNames::user_text(std::uint32_t uid, bool may_block, Text room,
                                         std::string_view* text) {
  return text_of(kUser, uid, may_block, room, text);
}

OwnerNames::Answer OwnerNames::group_text(std::uint32_t gid, bool may_block, Text room,
                                          std::string_view* text) {
  return text_of(kGroup, gid, may_block, room, text);
}

OwnerNames::Answer OwnerNames::text_of(Kind kind, std::uint32_t id, bool may_block, Text room,
                                       std::string_view* text) {
  const auto put_number = [&] {
    char* end = std::to_chars(room.data(), room.data() + room.size(), id).ptr;
    *text = {room.data(), static_cast<std::size_t>(end - room.data())};
    return Answer::kKnown;
  };
  const auto put_name = [&](const std::string& name) {
    const std::size_t size = name.size() + 1 + options_.domain.size();
    // What we would not take back as the same is not sent either.
    std::uint32_t number;
    if (name.empty() || size > room.size() || parse_number(name, &number)) return put_number();
    char* end = std::copy(name.begin(), name.end(), room.data());
    *end++ = '@';
    std::copy(options_.domain.begin(), options_.domain.end(), end);
    *text = {room.data(), size};
    return Answer::kKnown;
  };
  if (!options_.send_names || options_.domain.empty()) return put_number();
  Answers& answers = answers_[kind];
  {
    std::lock_guard lock(mutex_);
    auto found = answers.names.find(id);
    if (found != answers.names.end() && found->second.until >= options_.seconds()) {
      return found->second.value ? put_name(*found->second.value) : put_number();
    }
  }
  if (!may_block) return Answer::kWouldBlock;
  Kept<std::string> fresh;
  fresh.value = kind == kUser ? service_->user_of(id) : service_->group_of(id);
  fresh.until = options_.seconds() + (fresh.value ? kKeep : kKeepUnknown);
  {
    std::lock_guard lock(mutex_);
    if (answers.names.size() >= kMaxAnswers) answers.names.clear();
    answers.names[id] = fresh;
  }
  return fresh.value ? put_name(*fresh.value) : put_number();
}

}  // namespace nfsrdma::nfs4
