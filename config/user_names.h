// SPDX-License-Identifier: Apache-2.0
// Users and groups by number and by name, as this host has them, and the domain that their names
// are in for NFSv4 (RFC 8881 5.9): both ends of a mount say who owns a file by "name@domain".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace nfsrdma {

/// The user database. Tests supply their own.
class NameService {
 public:
  virtual ~NameService() = default;
  // All may block. Nothing: there is no such user or group.
  virtual std::optional<std::uint32_t> uid_of(const std::string& user) = 0;
  virtual std::optional<std::uint32_t> gid_of(const std::string& group) = 0;
  virtual std::optional<std::string> user_of(std::uint32_t uid) = 0;
  virtual std::optional<std::string> group_of(std::uint32_t gid) = 0;
};
/// getpwnam_r and its kind.
std::unique_ptr<NameService> make_system_name_service();

/// `Domain` of `[General]` in the text of an idmapd.conf; "" when it has none.
std::string idmap_domain(std::string_view idmapd_conf);
/// The domain of this host's NFSv4 users: that of /etc/idmapd.conf, else what follows the first dot
/// of the host's full name, else "localdomain" (as libnfsidmap). May block: for a program's start.
std::string system_idmap_domain();

}  // namespace nfsrdma
