// SPDX-License-Identifier: Apache-2.0
#include "client/fuse/mount_shards.h"

#include <algorithm>

namespace nfsrdma {
namespace {

// Status waits this long for the data shards.
constexpr std::chrono::seconds kReportPatience{2};

}  // namespace

bool MountShards::settled() const {
  return std::none_of(shards_.begin(), shards_.end(), [](const auto& shard) {
    return shard->state() == DataShard::State::kAttaching || shard->joining();
  });
}

std::vector<std::string> MountShards::drop_failed() {
  std::vector<std::string> why;
  std::erase_if(shards_, [&why](const auto& shard) {
    if (shard->state() != DataShard::State::kFailed) return false;
    why.push_back(shard->failure());
    return true;
  });
  return why;
}

DataShard* MountShards::choose(Awaited awaited, std::size_t bytes) const {
  const bool behind = awaited == Awaited::kNo && bytes >= kLarge;
  if (!behind && main_load_ < kBusy) return nullptr;
  if (bytes < kLarge && !spare_processors_) return nullptr;
  DataShard* best = nullptr;
  std::uint64_t least = behind ? UINT64_MAX : main_load_;
  for (const auto& shard : shards_) {
    const std::uint64_t load = shard->bytes_under_way() + shard->transfers_under_way() * kPerCall;
    if (load >= least) continue;
    least = load;
    best = shard.get();
  }
  return best;
}

void MountShards::join_address(const SocketAddress& address) {
  for (const auto& shard : shards_)
    shard->join_address(address);
}

void MountShards::abort_all() {
  main_.abort_all();
  for (const auto& shard : shards_)
    shard->abort_all();
}

std::vector<ShardReport> MountShards::report() {
  std::vector<std::shared_ptr<DataShard::Question>> questions;
  for (const auto& shard : shards_)
    questions.push_back(shard->ask());
  std::vector<ShardReport> reports;
  reports.push_back(ShardReport::of(main_));
  const TimePoint deadline = std::chrono::steady_clock::now() + kReportPatience;
  for (std::size_t i = 0; i < shards_.size(); ++i)
    reports.push_back(shards_[i]->answer(*questions[i], deadline));
  return reports;
}

ShardReport sum_of(const std::vector<ShardReport>& shards) {
  ShardReport sum;
  for (const ShardReport& shard : shards) {
    sum.totals += shard.totals;
    sum.calls_outstanding += shard.calls_outstanding;
    sum.exposed_regions += shard.exposed_regions;
  }
  return sum;
}

std::uint32_t connections_of_thread(std::uint32_t connections, std::uint32_t threads,
                                    std::uint32_t index) {
  return std::max(connections / threads + (index < connections % threads ? 1 : 0), 1u);
}

std::uint32_t default_mount_threads(std::uint32_t cpus) {
  return cpus < 2 ? 1 : 2;
}

}  // namespace nfsrdma
