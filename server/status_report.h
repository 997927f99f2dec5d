// SPDX-License-Identifier: Apache-2.0
// The status document (JSON) that the control socket answers with.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "config/exports_file.h"
#include "server/nfs4/state_report.h"
#include "server/reply_cache.h"
#include "server/shard.h"
#include "server/vfs/committer.h"

namespace nfsrdma {

struct StatusInputs {
  std::chrono::nanoseconds uptime{};
  std::vector<std::pair<std::string, std::string>> listeners;  // transport, address
  const std::vector<ExportEntry>* exports = nullptr;
  const std::vector<ShardReport>* shards = nullptr;
  ReplyCache::Stats replies;
  Committer::Stats commits;
  std::size_t cached_files = 0;
  std::uint64_t read_page_bytes = 0;         // of READs, sent from the page cache without a copy
  const nfs4::StateReport* state = nullptr;  // without NFSv4: null
};

/// Version of the document's form; it grows by new members without a new version.
inline constexpr int kStatusVersion = 1;

/// How many do not answer now: a file system that they wait for hangs.
std::size_t silent_shards(const std::vector<ShardReport>& shards);

/// Of all shards together, in the order of program, name and transport.
std::vector<CallCounts> sum_counts(const std::vector<ShardReport>& shards);

std::string make_status_document(const StatusInputs& inputs);

}  // namespace nfsrdma
