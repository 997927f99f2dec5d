// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/id_names.h"

#include <charconv>
#include <optional>

#include "rpcrdma/base/log.h"

namespace nfsrdma::nfs4 {
namespace {

bool parse_number(std::string_view text, std::uint32_t* number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

template <typename LookUp>
std::uint32_t IdNames::id_of(std::string_view text, Ids& known, LookUp look_up) {
  std::uint32_t number = 0;
  if (parse_number(text, &number)) return number;
  if (auto found = known.find(text); found != known.end()) return found->second;
  if (known.size() >= kMostKnown) known.clear();
  const std::optional<std::uint32_t> id = look_up(std::string(text.substr(0, text.find('@'))));
  return known.emplace(text, id.value_or(kNobody)).first->second;
}

template <typename LookUp>
std::string IdNames::text_of(std::uint32_t id, Texts& known, LookUp look_up) {
  std::string number = std::to_string(id);
  if (!sends_names_) return number;
  if (auto found = known.find(id); found != known.end()) return found->second;
  if (known.size() >= kMostKnown) known.clear();
  const std::optional<std::string> name = look_up(id);
  std::uint32_t would_be = 0;
  const bool usable = name && !name->empty() && !parse_number(*name, &would_be) &&
                      name->size() + 1 + domain_.size() <= kTextBytes;
  return known.emplace(id, usable ? *name + "@" + domain_ : std::move(number)).first->second;
}

std::uint32_t IdNames::uid(std::string_view owner) {
  return id_of(owner, users_, [this](const std::string& name) { return service_->uid_of(name); });
}
std::uint32_t IdNames::gid(std::string_view group) {
  return id_of(group, groups_, [this](const std::string& name) { return service_->gid_of(name); });
}
std::string IdNames::owner(std::uint32_t uid) {
  return text_of(uid, user_texts_, [this](std::uint32_t id) { return service_->user_of(id); });
}
std::string IdNames::group(std::uint32_t gid) {
  return text_of(gid, group_texts_, [this](std::uint32_t id) { return service_->group_of(id); });
}

bool IdNames::refused(bool by_name) {
  if (by_name) return false;
  if (!sends_names_) {
    domain_ = domain_of_host_();
    sends_names_ = true;
    log_notice("the server takes no numbers for owners of files; it gets names, @{}", domain_);
  }
  return true;
}

}  // namespace nfsrdma::nfs4
