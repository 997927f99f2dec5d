// SPDX-License-Identifier: Apache-2.0
// The system's name service behind HostNames. Both directions have to agree: who owns a reverse
// zone can claim any name in it.
#include <netdb.h>

#include <algorithm>
#include <cctype>

#include "server/export_table.h"

namespace nfsrdma {

namespace {

class SystemHostNames final : public HostNames {
 public:
  std::vector<std::string> names_of(const SocketAddress& peer) override {
    char host[NI_MAXHOST];
    if (::getnameinfo(peer.data(), peer.length(), host, sizeof host, nullptr, 0, NI_NAMEREQD) !=
        0) {
      return {};
    }
    std::string name(host);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const SocketAddress& address : addresses_of(name)) {
      if (address.same_host(peer)) return {name};
    }
    return {};
  }
  std::vector<SocketAddress> addresses_of(const std::string& host) override {
    auto found = SocketAddress::resolve(host, 0);
    return found.ok() ? std::move(found).value() : std::vector<SocketAddress>{};
  }
};

}  // namespace

std::unique_ptr<HostNames> make_system_host_names() {
  return std::make_unique<SystemHostNames>();
}

}  // namespace nfsrdma
