// SPDX-License-Identifier: Apache-2.0
// The system's name service behind HostNames. Both directions have to agree: who owns a reverse
// zone can claim any name in it.
#include <netdb.h>
#include <netinet/in.h>
#include <strings.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <mutex>

#include "server/export_table.h"

namespace nfsrdma {

namespace {

std::string lower(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

Error no_answer() {
  return Error{Errc::kNotFound, 0, "the name service does not answer"};
}

/// What the name service says of `peer`: its name and, where it knows them (/etc/hosts), aliases.
Result<std::vector<std::string>> claimed_names(const SocketAddress& peer) {
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
  // Only these say that there is none; TRY_AGAIN, NO_RECOVERY and the like that nobody could tell.
  if (found == nullptr && error != HOST_NOT_FOUND && error != NO_DATA) return no_answer();
  if (found == nullptr) return names;
  names.push_back(lower(found->h_name));
  constexpr std::size_t kMostNames = 32;
  for (char** alias = found->h_aliases; *alias != nullptr && names.size() < kMostNames; ++alias)
    names.push_back(lower(*alias));
  return names;
}

/// The addresses of `host`.
Result<std::vector<SocketAddress>> known_addresses(const std::string& host) {
  std::vector<SocketAddress> addresses;
  if (host == "*") return addresses;  // glibc takes it for this host
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (error == EAI_NONAME || error == EAI_NODATA || error == EAI_ADDRFAMILY) return addresses;
  if (error != 0) return no_answer();
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next)
    addresses.emplace_back(entry->ai_addr, entry->ai_addrlen);
  ::freeaddrinfo(list);
  return addresses;
}

class SystemHostNames final : public HostNames {
 public:
  Result<std::vector<std::string>> names_of(const SocketAddress& peer) override {
    NFSRDMA_TRY(const std::vector<std::string> claimed, claimed_names(peer));
    std::vector<std::string> names;
    bool all_told = true;
    for (const std::string& name : claimed) {
      const auto addresses = known_addresses(name);
      all_told = all_told && addresses.ok();
      if (addresses.ok() &&
          std::ranges::any_of(addresses.value(), [&](const SocketAddress& address) {
            return address.same_host(peer);
          })) {
        names.push_back(name);
      }
    }
    if (names.empty() && !all_told) return no_answer();
    return names;
  }
  Result<std::vector<SocketAddress>> addresses_of(const std::string& host) override {
    return known_addresses(host);
  }
  /// innetgr(3) would take a member without a host for every host, which exports(5) does not.
  Result<bool> in_netgroup(const std::string& group, const std::string& host) override {
    // The enumeration belongs to the process; nothing else here uses it.
    static std::mutex enumerating;
    std::lock_guard lock(enumerating);
    bool found = false;
    errno = 0;
    const bool known = ::setnetgrent(group.c_str()) != 0;
    // As far as the sources of netgroups say so; a group that none knows is no error.
    const bool failed = !known && (errno == EAGAIN || errno == ETIMEDOUT || errno == ECONNREFUSED);
    if (known) {
      char *member = nullptr, *user = nullptr, *domain = nullptr;
      std::vector<char> room(4096);
      while (!found && ::getnetgrent_r(&member, &user, &domain, room.data(), room.size()) == 1) {
        // "-" is how they write that there is none.
        found = member != nullptr && host != "-" && ::strcasecmp(member, host.c_str()) == 0;
      }
    }
    ::endnetgrent();
    if (failed) return no_answer();
    return found;
  }
};

}  // namespace

std::unique_ptr<HostNames> make_system_host_names() {
  return std::make_unique<SystemHostNames>();
}

}  // namespace nfsrdma
