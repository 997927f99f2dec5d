// SPDX-License-Identifier: Apache-2.0
// The system's name service behind HostNames. Both directions have to agree: who owns a reverse
// zone can claim any name in it.
#include <netdb.h>
#include <netinet/in.h>
#include <strings.h>

#include <algorithm>
#include <cctype>
#include <mutex>

#include "server/export_table.h"

namespace nfsrdma {

namespace {

std::string lower(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

/// What the name service says of `peer`: its name and, where it knows them (/etc/hosts), aliases.
std::vector<std::string> claimed_names(const SocketAddress& peer) {
  const void* bytes = &reinterpret_cast<const sockaddr_in*>(peer.data())->sin_addr;
  bool v6 = peer.is_v6();
  if (v6) {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(peer.data())->sin6_addr;
    // An IPv4 address in IPv6's clothes has the names of the former.
    constexpr std::size_t kMappedAt = 12;
    v6 = !IN6_IS_ADDR_V4MAPPED(&address);
    bytes = v6 ? static_cast<const void*>(&address) : &address.s6_addr[kMappedAt];
  }
  hostent entry{};
  hostent* found = nullptr;
  int error = 0;
  constexpr std::size_t kMost = 1u << 16;
  std::vector<char> room(2048);
  while (::gethostbyaddr_r(bytes, v6 ? 16 : 4, v6 ? AF_INET6 : AF_INET, &entry, room.data(),
                           room.size(), &found, &error) == ERANGE &&
         room.size() < kMost) {
    room.resize(room.size() * 2);
  }
  std::vector<std::string> names;
  if (found == nullptr) return names;
  names.push_back(lower(found->h_name));
  constexpr std::size_t kMostNames = 32;
  for (char** alias = found->h_aliases; *alias != nullptr && names.size() < kMostNames; ++alias)
    names.push_back(lower(*alias));
  return names;
}

class SystemHostNames final : public HostNames {
 public:
  std::vector<std::string> names_of(const SocketAddress& peer) override {
    std::vector<std::string> names = claimed_names(peer);
    std::erase_if(names, [&](const std::string& name) {
      const std::vector<SocketAddress> addresses = addresses_of(name);
      return std::ranges::none_of(
          addresses, [&](const SocketAddress& address) { return address.same_host(peer); });
    });
    return names;
  }
  std::vector<SocketAddress> addresses_of(const std::string& host) override {
    auto found = SocketAddress::resolve(host, 0);
    return found.ok() ? std::move(found).value() : std::vector<SocketAddress>{};
  }
  /// innetgr(3) would take a member without a host for every host, which exports(5) does not.
  bool in_netgroup(const std::string& group, const std::string& host) override {
    // The enumeration belongs to the process; nothing else here uses it.
    static std::mutex enumerating;
    std::lock_guard lock(enumerating);
    bool found = false;
    if (::setnetgrent(group.c_str()) != 0) {
      char *member = nullptr, *user = nullptr, *domain = nullptr;
      std::vector<char> room(4096);
      while (!found && ::getnetgrent_r(&member, &user, &domain, room.data(), room.size()) == 1) {
        // "-" is how they write that there is none.
        found = member != nullptr && host != "-" && ::strcasecmp(member, host.c_str()) == 0;
      }
    }
    ::endnetgrent();
    return found;
  }
};

}  // namespace

std::unique_ptr<HostNames> make_system_host_names() {
  return std::make_unique<SystemHostNames>();
}

}  // namespace nfsrdma
