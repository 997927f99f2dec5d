// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/owner_names.h"

#include <strings.h>

#include <algorithm>
#include <charconv>
#include <ctime>

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

/// RFC 8881 5.9: decimal, without leading zeros. The largest number is no id: chown(2) takes it for
/// "leave it".
bool parse_number(std::string_view text, std::uint32_t* number) {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return false;
  *number = 0;
  const char* last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, *number);
  return error == std::errc() && end == last && *number != UINT32_MAX;
}

}  // namespace

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
