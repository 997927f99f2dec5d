// SPDX-License-Identifier: Apache-2.0
#include "server/capture/capture_filter.h"

#include "server/fabric_filter.h"

namespace nfsrdma {

bool CaptureFilter::matches(const ServerConnection& connection) const {
  if (!fabric.empty() && fabric != transport_name(connection.transport())) return false;
  return client.empty() || client == connection.peer().host_text();
}

bool CaptureFilter::parse(const JsonValue& request, CaptureFilter* out, std::string* problem) {
  out->client = request["client"].text();
  if (!out->client.empty()) {
    // In the form in which connections have it.
    auto address = SocketAddress::parse(out->client, 0);
    if (!address.ok()) {
      *problem = "client: '" + out->client + "' is no numeric address";
      return false;
    }
    out->client = address->host_text();
  }
  if (!parse_fabric(request, &out->fabric, problem)) return false;
  if (request["snap"].kind() == JsonValue::Kind::kNumber) out->snap = request["snap"].count();
  return true;
}

}  // namespace nfsrdma
