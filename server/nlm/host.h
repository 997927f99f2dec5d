// SPDX-License-Identifier: Apache-2.0
// A host that locks by NLM: who it says it is, and where it is. What it holds belongs to the pair
// of both (nfs4::ClientTable::add_host), so that no host can speak for another by its name, and
// hosts behind one address are told apart.
#pragma once

#include <string>
#include <string_view>

#include "rpcrdma/base/socket_address.h"

namespace nfsrdma::nlm {

struct Host {
  std::string name;     // caller_name
  SocketAddress peer;   // where its call came from; the port is that of the call
  SocketAddress local;  // where it came to: clients want to be called back from there
};

/// "192.0.2.7 name": under which its state is kept. Names are compared as those of hosts are, and
/// an address of IPv4 is one, whichever way it is written.
std::string host_key(const SocketAddress& peer, std::string_view name);
/// The other way round; false for what is no such key.
bool parse_host_key(std::string_view key, SocketAddress* peer, std::string* name);

/// Do both name one host, as far as names tell: the same, or one with its domain and one without?
bool same_host_name(std::string_view a, std::string_view b);

}  // namespace nfsrdma::nlm
