// SPDX-License-Identifier: Apache-2.0
#include "server/control_requests.h"

#include <algorithm>

#include "rpcrdma/base/json_writer.h"
#include "rpcrdma/base/log.h"
#include "server/nfs4/holdings_report.h"

namespace nfsrdma {

namespace {

constexpr std::size_t kFilesShown = 1000;
constexpr std::size_t kMostFilesShown = 100000;
/// Clients of NFSv4 that the status document has one by one; as many as there may be.
constexpr std::size_t kClientsShown = 100;
constexpr std::size_t kMostClientsShown = 100000;

std::string evicted_document(const NfsServer::Evicted& evicted) {
  JsonWriter json;
  json.begin_object();
  json.field("version", 1);
  json.field("connections", evicted.connections);
  json.list("nfs4_clients", evicted.nfs4_clients);
  json.field("silent_shards", evicted.silent_shards);
  json.end_object();
  return json.take();
}

void evict(NfsServer& server, const JsonValue& request, ControlSocket::Done done) {
  const std::string who = request["client"].text();
  if (who.empty()) return done(control_error("evict needs a client: an address, or an id"));
  // An address in the form in which connections have it.
  auto address = SocketAddress::parse(who, 0);
  const std::string named = address.ok() ? address->host_text() : who;
  server.evict(named, [named, done = std::move(done)](const NfsServer::Evicted& evicted) {
    if (evicted.connections == 0 && evicted.nfs4_clients.empty() && evicted.silent_shards == 0) {
      return done(control_error("there is no client '" + named + "'"));
    }
    const LogField fields[] = {{"NFS_RDMA_CLIENT", named}};
    log_event(LogLevel::kNotice, fields,
              "client {} was evicted by the administrator: {} connection{}, {} NFSv4 client{}",
              named, evicted.connections, evicted.connections == 1 ? "" : "s",
              evicted.nfs4_clients.size(), evicted.nfs4_clients.size() == 1 ? "" : "s");
    if (evicted.silent_shards > 0) {
      log_warning(
          "{} threads do not answer, a file system hangs: connections of {} that they have "
          "end when they come round",
          evicted.silent_shards, named);
    }
    done(evicted_document(evicted));
  });
}

void locks(NfsServer& server, const JsonValue& request, const ControlSocket::Done& done) {
  if (server.context().nfs4 == nullptr) return done(control_error("NFSv4 is not served"));
  std::size_t most = request["most"].count();
  if (most == 0) most = kFilesShown;
  done(nfs4::report_holdings(*server.context().nfs4, std::min(most, kMostFilesShown)));
}

}  // namespace

void register_requests(ControlSocket& control, NfsServer& server) {
  control.on("status", [&server](const JsonValue& request, ControlSocket::Done done) {
    const std::size_t clients = request["clients"].count();
    server.collect_status(clients == 0 ? kClientsShown : std::min(clients, kMostClientsShown),
                          std::move(done));
  });
  control.on("locks", [&server](const JsonValue& request, const ControlSocket::Done& done) {
    locks(server, request, done);
  });
  control.on("evict", [&server](const JsonValue& request, ControlSocket::Done done) {
    evict(server, request, std::move(done));
  });
  control.on("release", [&server](const JsonValue& request, ControlSocket::Done done) {
    server.release(request["path"].text(), std::move(done));
  });
  control.on_stream("trace",
                    [&server](const JsonValue& request, std::shared_ptr<ControlStream> stream) {
                      server.trace().watch(request, std::move(stream));
                    });
  control.on_stream("capture",
                    [&server](const JsonValue& request, std::shared_ptr<ControlStream> stream) {
                      server.capture().start(request, std::move(stream));
                    });
  control.on("capture_stop", [&server](const JsonValue& request, const ControlSocket::Done& done) {
    done(server.capture().stop(request));
  });
}

}  // namespace nfsrdma
