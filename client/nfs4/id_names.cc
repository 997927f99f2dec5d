// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/id_names.h"

#include <grp.h>
#include <pwd.h>

#include <array>
#include <charconv>

namespace nfsrdma::nfs4 {

std::uint32_t IdNames::id_of(std::string_view text, Known& known,
                             std::uint32_t (*look_up)(const std::string& name)) {
  std::uint32_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  if (auto found = known.find(text); found != known.end()) return found->second;
  if (known.size() >= kMostKnown) known.clear();
  const std::uint32_t id = look_up(std::string(text.substr(0, text.find('@'))));
  known.emplace(text, id);
  return id;
}

std::uint32_t IdNames::user_id(const std::string& name) {
  std::array<char, 16384> room;
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(name.c_str(), &entry, room.data(), room.size(), &found) != 0 || found == nullptr)
    return kNobody;
  return found->pw_uid;
}

std::uint32_t IdNames::group_id(const std::string& name) {
  std::array<char, 16384> room;
  group entry{};
  group* found = nullptr;
  if (::getgrnam_r(name.c_str(), &entry, room.data(), room.size(), &found) != 0 || found == nullptr)
    return kNobody;
  return found->gr_gid;
}

}  // namespace nfsrdma::nfs4
