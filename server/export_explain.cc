// SPDX-License-Identifier: Apache-2.0
#include "server/export_explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/export_text.h"
#include "rpcrdma/base/json_writer.h"
#include "rpcrdma/base/path_text.h"
#include "server/export_mounts.h"
#include "server/export_overlay.h"

namespace nfsrdma {

namespace {

constexpr std::size_t kMostAddresses = 16;

std::string error_document(const std::string& what) {
  JsonWriter json;
  json.begin_object();
  json.field("version", 1);
  json.field("error", what);
  json.end_object();
  return json.take();
}

void write_client(JsonWriter& json, const ExportClient& client) {
  json.field("client", client.text);
  json.field("options", options_text(client.options));
  json.field("file", client.file);
  json.field("line", client.line);
  json.field("temporary", client.file == kTemporaryExport);
}

void write_ids(JsonWriter& json, const char* who, const CallerIdentity& identity) {
  json.key(who);
  json.begin_object();
  json.field("uid", identity.uid);
  json.field("gid", identity.gid);
  json.end_object();
}

/// Whom root, an ordinary user and somebody without a name become: by the very function that maps
/// the callers.
void write_squash(JsonWriter& json, const ExportOptions& options) {
  const SquashRule rule{options.root_squash, options.all_squash, options.anon_uid,
                        options.anon_gid};
  auto map = [&rule](RpcCredentials::Flavor flavor, std::uint32_t id) {
    RpcCredentials credentials;
    credentials.flavor = flavor;
    credentials.uid = credentials.gid = id;
    CallerIdentity identity;
    map_identity(credentials, rule, nullptr, &identity);
    return identity;
  };
  constexpr std::uint32_t kSomeUser = 1000;
  json.key("squash");
  json.begin_object();
  if (options.serves_sys) {
    write_ids(json, "root", map(RpcCredentials::Flavor::kSys, 0));
    write_ids(json, "user_1000", map(RpcCredentials::Flavor::kSys, kSomeUser));
  }
  if (options.serves_none) write_ids(json, "auth_none", map(RpcCredentials::Flavor::kNone, 0));
  json.end_object();
}

void write_export(JsonWriter& json, const ExportTable& table, const Export& entry,
                  const SocketAddress& peer) {
  const std::vector<ExportTable::RuleVerdict> rules = table.explain(entry, peer);
  const auto winner = std::ranges::find_if(rules, &ExportTable::RuleVerdict::matches);
  json.begin_object();
  json.field("path", entry.path);
  json.key("rules");
  json.begin_array();
  for (const ExportTable::RuleVerdict& rule : rules) {
    json.begin_object();
    write_client(json, *rule.client);
    json.field("matches", rule.matches);
    json.field("why", rule.why);
    json.field("decides", winner != rules.end() && rule.client == winner->client);
    json.end_object();
  }
  json.end_array();
  const bool unmounted = winner != rules.end() && winner->lacks_mount;
  json.field("allowed", winner != rules.end() && !unmounted);
  if (unmounted) {
    json.field("refused", "nothing is mounted at " + mount_wanted_by(*winner->client, entry.path) +
                              " (option mountpoint)");
  } else if (winner != rules.end()) {
    const ExportOptions& options = winner->client->options;
    json.field("client", winner->client->text);
    json.field("options", options_text(options));
    json.field("privileged_port_over_tcp", options.secure);
    write_squash(json, options);
  }
  json.end_object();
}

/// Exports that are not served now, of all or of those around `path` the nearest; that one only if
/// it is nearer than `served`.
std::vector<std::string> left_out(const ExportsInForce& exports, const std::string& path,
                                  const Export* served) {
  std::vector<std::string> out;
  for (const ExportEntry& entry : exports.entries) {
    if (is_in_force(exports, entry.path)) continue;
    if (path.empty()) {
      out.push_back(entry.path);
    } else if (lies_in(path, entry.path) &&
               entry.path.size() > (out.empty() ? served == nullptr ? 0 : served->path.size()
                                                : out.front().size())) {
      out.assign(1, entry.path);
    }
  }
  return out;
}

/// "nothing is mounted there (option mountpoint)".
std::string reason(const ExportsInForce& exports, const std::string& path) {
  return why_not_in_force(exports, path).substr(path.size() + 2);
}

std::vector<SocketAddress> addresses_of(const std::string& client) {
  if (auto numeric = SocketAddress::parse(client, 0); numeric.ok()) return {*numeric};
  auto found = SocketAddress::resolve(client, 0);
  if (!found.ok()) return {};
  std::vector<SocketAddress> out;
  for (const SocketAddress& address : *found) {
    const bool known = std::ranges::any_of(
        out, [&](const SocketAddress& other) { return other.same_host(address); });
    if (!known && out.size() < kMostAddresses) out.push_back(address);
  }
  return out;
}

}  // namespace

bool is_in_force(const ExportsInForce& exports, const std::string& path) {
  return std::ranges::find(exports.open, normal_path(path)) != exports.open.end();
}

std::string why_not_in_force(const ExportsInForce& exports, const std::string& path) {
  const std::string prefix = normal_path(path) + ": ";
  for (const ConfigProblem& problem : exports.problems) {
    if (problem.message.starts_with(prefix)) return problem.message;
  }
  return prefix + "cannot be exported";
}

std::string exports_document(const ExportsInForce& exports) {
  JsonWriter json;
  json.begin_object();
  json.field("version", 1);
  json.key("exports");
  json.begin_array();
  for (const ExportEntry& entry : exports.entries) {
    json.begin_object();
    json.field("path", entry.path);
    json.field("in_force", is_in_force(exports, entry.path));
    json.key("clients");
    json.begin_array();
    for (const ExportClient& client : entry.clients) {
      json.begin_object();
      write_client(json, client);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.key("problems");
  json.begin_array();
  for (const ConfigProblem& problem : exports.problems)
    json.value(problem.text());
  json.end_array();
  json.end_object();
  return json.take();
}

std::string explain_document(const ExportTable& table, const ExportsInForce& exports,
                             const std::string& client, const std::string& asked_path) {
  const std::string path = normal_path(asked_path);
  const std::vector<SocketAddress> addresses = addresses_of(client);
  if (addresses.empty())
    return error_document(
        fmt::format("'{}' is no address, and no host of that name is known", client));
  const ExportSnapshot& all = table.current();
  std::string_view rest;
  const Export* only = path.empty() ? nullptr : all.find_path(path, &rest);
  const std::vector<std::string> absent = left_out(exports, path, only);
  if (!path.empty() && only == nullptr && !absent.empty()) {
    return error_document(fmt::format("{} is in the exports, but not in force: {}", absent.front(),
                                      reason(exports, absent.front())));
  }
  if (!path.empty() && only == nullptr)
    return error_document(fmt::format("{} is not exported, nor is anything above it", path));
  JsonWriter json;
  json.begin_object();
  json.field("version", 1);
  json.field("client", client);
  json.key("addresses");
  json.begin_array();
  for (const SocketAddress& address : addresses) {
    json.begin_object();
    json.field("address", address.host_text());
    json.key("exports");
    json.begin_array();
    if (only == nullptr) {
      for (const auto& entry : all.exports)
        write_export(json, table, *entry, address);
    }
    // As mounting goes: where the inner ones are for others, an outer one may do.
    ExportAccess access;
    std::string_view below = rest;
    for (const Export* one = only; one != nullptr && !access.allowed;) {
      write_export(json, table, *one, address);
      table.access(*one, address, true, &access);
      if (!access.allowed) one = all.find_path(path, &below, ExportSnapshot::matched(path, below));
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.key("not_in_force");
  json.begin_array();
  for (const std::string& one : absent) {
    json.begin_object();
    json.field("path", one);
    json.field("why", reason(exports, one));
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace nfsrdma
