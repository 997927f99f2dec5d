// SPDX-License-Identifier: Apache-2.0
#include "client/tool/nfs4_text.h"

#include <fmt/format.h>

#include <iterator>

#include "client/counted.h"
#include "client/tool/format.h"

namespace nfsrdma::tool {

namespace {

using Out = std::back_insert_iterator<std::string>;

void add_client(Out out, const JsonValue& c) {
  // A lock manager of NFSv3 has nothing of all this but locks.
  if (protocol_of(c) == "NLM") {
    fmt::format_to(out, "nlm     {}  from {}, heard of {} ago; {}\n", c["name"].text(),
                   c["address"].text(), duration_text(c["seconds_since_renewal"].number()),
                   counted(c["locks"].count(), "lock"));
    return;
  }
  fmt::format_to(out, "nfs4    {}  {} from {}, {}, renewed {} ago\n", c["name"].text(),
                 protocol_of(c), c["address"].text(), c["state"].text(),
                 duration_text(c["seconds_since_renewal"].number()));
  fmt::format_to(out, "        {} on {}, {} of {} in use; {}, {}, {}",
                 counted(c["sessions"].count(), "session"),
                 counted(c["session_connections"].count(), "connection"), c["slots_in_use"].count(),
                 counted(c["slots"].count(), "slot"), counted(c["opens"].count(), "open"),
                 counted(c["locks"].count(), "lock"),
                 counted(c["delegations"].count(), "delegation"));
  if (c["delegations_recalled"].count() > 0) {
    fmt::format_to(out, " ({} being recalled)", c["delegations_recalled"].count());
  }
  if (c["delegations_revoked"].count() > 0) {
    fmt::format_to(out, ", {} revoked", c["delegations_revoked"].count());
  }
  fmt::format_to(out, "\n");
}

/// "; refused 3 times", or nothing.
std::string refusals_text(const JsonValue& nfs4, const char* what) {
  const std::uint64_t refused = nfs4["refused"][what].count();
  return refused == 0 ? "" : fmt::format("; refused {} times", refused);
}

/// "opens 12 of 1000000", and what a client may have of that.
void add_limit(Out out, const JsonValue& nfs4, const char* what, const char* per_client) {
  const JsonValue& limits = nfs4["limits"];
  fmt::format_to(out, "        {} {} of {}", what, nfs4[what].count(), limits[what].count());
  if (per_client != nullptr) {
    fmt::format_to(out, ", of a client {}", limits[per_client].count());
  }
  fmt::format_to(out, "{}\n", refusals_text(nfs4, what));
}

}  // namespace

std::string protocol_of(const JsonValue& client) {
  const std::string& told = client["protocol"].text();
  // Servers that do not tell it have clients of NFSv4 alone.
  return told.empty() ? fmt::format("4.{}", client["minor_version"].count()) : told;
}

std::string nfs4_text(const JsonValue& nfs4) {
  std::string text;
  if (nfs4.kind() != JsonValue::Kind::kObject) return text;
  const Out out(text);
  const auto& shown = nfs4["client_list"].items();
  for (const JsonValue& client : shown)
    add_client(out, client);
  const std::uint64_t all = nfs4["clients"].count();
  if (all > shown.size()) {
    fmt::format_to(out, "        and {} that hold no more than these\n",
                   counted(all - shown.size(), "client"));
  }
  const JsonValue& limits = nfs4["limits"];
  fmt::format_to(out, "NFSv4: {} of {} ({} active, {} courteous, {} expired){}{}\n", all,
                 counted(limits["clients"].count(), "client"), nfs4["clients_active"].count(),
                 nfs4["clients_courteous"].count(), nfs4["clients_expired"].count(),
                 nfs4["in_grace"].truth() ? "; clients reclaim what they had" : "",
                 refusals_text(nfs4, "clients"));
  fmt::format_to(out,
                 "        sessions {}, of a client {}, with {} slots each that keep {} bytes of a "
                 "reply{}\n",
                 nfs4["sessions"].count(), limits["sessions_per_client"].count(),
                 limits["slots_per_session"].count(), limits["kept_reply_bytes_per_slot"].count(),
                 refusals_text(nfs4, "sessions"));
  add_limit(out, nfs4, "slots", nullptr);
  add_limit(out, nfs4, "opens", "opens_per_client");
  add_limit(out, nfs4, "files", nullptr);
  add_limit(out, nfs4, "locks", "locks_per_client");
  fmt::format_to(out, "        locks of a file {}{}\n", limits["locks_per_file"].count(),
                 refusals_text(nfs4, "locks_per_file"));
  add_limit(out, nfs4, "delegations", "delegations_per_client");
  fmt::format_to(out, "        owners of a client of version 4.0 {}{}\n",
                 limits["owners_per_client"].count(), refusals_text(nfs4, "owners"));
  return text;
}

}  // namespace nfsrdma::tool
