// SPDX-License-Identifier: Apache-2.0
// IdNames: owners of files are texts in NFSv4 (RFC 8881, section 5.9): "1000", or "name@domain"
// from servers that map ids. Numbers are what this client sends, as Linux's does with AUTH_SYS;
// names that it receives are looked up in this machine's user database, the domain left aside, and
// remembered. What nobody here knows is 65534 (nobody).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace nfsrdma::nfs4 {

class IdNames {
 public:
  static constexpr std::uint32_t kNobody = 65534;

  /// May read the user database, once for each name.
  std::uint32_t uid(std::string_view owner) { return id_of(owner, users_, user_id); }
  std::uint32_t gid(std::string_view group) { return id_of(group, groups_, group_id); }

 private:
  using Known = std::map<std::string, std::uint32_t, std::less<>>;
  /// A server may have no end of names.
  static constexpr std::size_t kMostKnown = 4096;

  static std::uint32_t id_of(std::string_view text, Known& known,
                             std::uint32_t (*look_up)(const std::string& name));
  static std::uint32_t user_id(const std::string& name);
  static std::uint32_t group_id(const std::string& name);

  Known users_;
  Known groups_;
};

}  // namespace nfsrdma::nfs4
