// SPDX-License-Identifier: Apache-2.0
// nfs-rdma clients: who uses a server, one line for each address.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "client/counted.h"
#include "client/tool/clients_text.h"
#include "client/tool/commands.h"
#include "client/tool/control.h"
#include "client/tool/format.h"
#include "client/tool/nfs4_text.h"
#include "client/tool/server_view.h"
#include "rpcrdma/base/json_writer.h"

namespace nfsrdma::tool {

namespace {

/// What clients of NFSv4, and lock managers of NFSv3, at one address hold.
struct Held {
  std::string ids, versions, states;
  std::uint64_t opens = 0, locks = 0, delegations = 0;
};

/// All that there are: by itself a server's status has those alone that hold most. One that does
/// not know the member answers with these.
constexpr const char* kRequest = R"({"request":"status","clients":100000})";

/// Clients that hold something, perhaps, and are not in the list.
std::uint64_t left_out(const JsonValue& document) {
  const std::uint64_t all = document["nfs4"]["clients"].count();
  const std::size_t listed = document["nfs4"]["client_list"].items().size();
  return all > listed ? all - listed : 0;
}

std::map<std::string, Held> held_by_address(const JsonValue& document) {
  std::map<std::string, Held> out;
  for (const JsonValue& client : document["nfs4"]["client_list"].items()) {
    Held& held = out[client["address"].text()];
    const auto add = [](std::string& list, const std::string& word) {
      if (("," + list + ",").find("," + word + ",") != std::string::npos) return;
      list += (list.empty() ? "" : ",") + word;
    };
    add(held.ids, client["id"].text());
    add(held.versions, protocol_of(client));
    add(held.states, client["state"].text());
    held.opens += client["opens"].count();
    held.locks += client["locks"].count();
    held.delegations += client["delegations"].count();
  }
  return out;
}

}  // namespace

std::string clients_text(const JsonValue& document) {
  const ServerSample sample = ServerSample::of(document);
  const ServerRates rates = ServerRates::between({}, sample);
  std::map<std::string, Held> held = held_by_address(document);
  const std::uint64_t unknown = left_out(document);
  std::string text = fmt::format(
      "{:<28} {:<11} {:>4} {:<8} {:>11} {:>12} {:>12} {:>6} {:>6} {:>6}  {}\n", "CLIENT", "OVER",
      "CONN", "STATE BY", "CALLS", "RDMA BYTES", "INLINE", "OPENS", "LOCKS", "DELEG", "STATE");
  const auto line = [&text, unknown](const std::string& address, const std::string& fabrics,
                                     const ServerSample::Client& client, const Held* its) {
    const char* none = its == nullptr && unknown > 0 ? "?" : "-";
    const auto count = [&](std::uint64_t Held::*member) {
      if (its != nullptr) return std::to_string(its->*member);
      return std::string(unknown > 0 ? "?" : "0");
    };
    text += fmt::format(
        "{:<28} {:<11} {:>4} {:<8} {:>11} {:>12} {:>12} {:>6} {:>6} {:>6}  {}\n", address, fabrics,
        client.connections.size(), its == nullptr || its->versions.empty() ? none : its->versions,
        client.calls,
        bytes_text(static_cast<double>(client.rdma_write_bytes + client.rdma_read_bytes)),
        bytes_text(static_cast<double>(client.inline_bytes)), count(&Held::opens),
        count(&Held::locks), count(&Held::delegations),
        its == nullptr || its->states.empty() ? none : its->states);
  };
  for (const ServerRates::Line& row : rates.clients) {
    const auto found = held.find(row.name);
    line(row.name, row.fabrics, sample.clients.at(row.name),
         found == held.end() ? nullptr : &found->second);
    held.erase(row.name);
  }
  // Those that are known but not connected.
  for (const auto& [address, its] : held)
    line(address, "-", {}, &its);
  if (unknown > 0) {
    text += fmt::format("... and {} of NFSv4 or NLM that the server does not list.\n",
                        counted(unknown, "client"));
  }
  if (sample.clients.empty() && held.empty() && unknown == 0) text = "No clients.\n";
  return text;
}

int run_clients(const Words& words) {
  Arguments arguments("clients", "[--server SOCKET] [--json]",
                      "Lists who uses a server: connections, what was moved over those that are "
                      "up, and what clients of\nNFSv4 hold.");
  add_server_option(arguments);
  arguments.add()("json", "a document with the members clients and nfs4_clients");
  if (auto code = arguments.parse(words, 0, 0)) return *code;
  const auto answer = ask_server("clients", server_socket(arguments), kRequest);
  if (!answer) return kExitFailure;
  if (!arguments.has("json")) {
    std::fputs(clients_text(answer->value).c_str(), stdout);
    return kExitOk;
  }
  std::fputs(clients_json(answer->value).c_str(), stdout);
  std::puts("");
  return kExitOk;
}

std::string clients_json(const JsonValue& document) {
  const ServerSample sample = ServerSample::of(document);
  JsonWriter json;
  json.begin_object();
  json.field("version", 1);
  json.key("clients");
  json.begin_array();
  for (const auto& [address, client] : sample.clients) {
    json.begin_object();
    json.field("address", address);
    json.list("fabrics", client.fabrics);
    json.field("connections", client.connections.size());
    json.field("calls", client.calls);
    json.field("calls_in_progress", client.calls_in_progress);
    json.field("credits", client.credits);
    json.field("rdma_write_bytes", client.rdma_write_bytes);
    json.field("rdma_read_bytes", client.rdma_read_bytes);
    json.field("inline_bytes", client.inline_bytes);
    json.field("p50_us", latency_percentile(client.latency, 0.50));
    json.field("p99_us", latency_percentile(client.latency, 0.99));
    json.end_object();
  }
  json.end_array();
  json.key("nfs4_clients");
  json.begin_array();
  for (const JsonValue& client : document["nfs4"]["client_list"].items()) {
    json.begin_object();
    for (const char* name : {"id", "name", "address", "state"})
      json.field(name, client[name].text());
    json.field("protocol", protocol_of(client));
    if (protocol_of(client) != "NLM") {
      json.field("minor_version", client["minor_version"].count());
    }
    for (const char* name : {"seconds_since_renewal", "sessions", "opens", "locks", "delegations",
                             "delegations_recalled"})
      json.field(name, client[name].count());
    json.end_object();
  }
  json.end_array();
  json.field("nfs4_clients_left_out", left_out(document));
  json.end_object();
  return json.take();
}

}  // namespace nfsrdma::tool
