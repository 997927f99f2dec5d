// SPDX-License-Identifier: Apache-2.0
// One connection as `nfs-rdma status --json` shows it: the same keys on both ends.
#pragma once

#include <cstdint>
#include <optional>

#include "rpcrdma/base/json_writer.h"
#include "rpcrdma/connection_info.h"

namespace nfsrdma {

/// `shard`: the thread that it belongs to, where that is told. `more` writes further members.
template <typename More = void (*)(JsonWriter&)>
void write_connection(
    JsonWriter& json, const ConnectionInfo& info, std::optional<std::uint32_t> shard = {},
    More more = [](JsonWriter&) {}) {
  json.begin_object();
  json.field("id", info.id);
  json.field("fabric", transport_name(info.transport));
  json.field("device", info.device);
  json.field("peer", info.peer.text());
  json.field("local", info.local.text());
  json.field("inline_send", info.inline_send);
  json.field("inline_recv", info.inline_recv);
  json.field("credits", info.credits);
  json.field("calls_in_progress", info.calls_in_progress);
  json.field("ord", info.ord);
  json.field("ird", info.ird);
  json.field("remote_invalidation", info.remote_invalidation);
  json.field("crc", info.crc);
  json.field("rdma_write_bytes", info.stats.rdma_write_bytes);
  json.field("rdma_read_bytes", info.stats.rdma_read_bytes);
  json.field("inline_bytes", info.stats.inline_bytes);
  json.field("calls", info.stats.calls);
  json.field("replies", info.stats.replies);
  json.field("errors", info.stats.errors);
  json.field("age_seconds", info.age_seconds);
  json.field("detail", info.detail);
  json.field("fallback_reason", info.fallback_reason);
  if (shard) json.field("shard", *shard);
  more(json);
  json.end_object();
}

}  // namespace nfsrdma
