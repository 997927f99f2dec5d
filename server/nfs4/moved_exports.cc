// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/moved_exports.h"

#include <algorithm>
#include <mutex>

#include "server/nfs4/server_state.h"

namespace nfsrdma::nfs4 {
namespace {

/// Under one hold of the mutex.
constexpr std::size_t kFilesAtOnce = 256;

/// For all of its clients: what has moved for some is none of the others' business, who could not
/// find out that it was not meant for them.
bool is_elsewhere(const Export& entry) {
  return !entry.clients.empty() &&
         std::ranges::all_of(entry.clients,
                             [](const ExportClient& client) { return client.options.referral; });
}

}  // namespace

void MovedExports::look(const ExportSnapshot& exports) {
  if (generation_.load(std::memory_order_acquire) == exports.generation) return;
  std::set<std::uint64_t> fresh;
  {
    std::lock_guard lock(state_.mutex);
    const std::uint64_t before = generation_.load(std::memory_order_relaxed);
    if (before >= exports.generation) return;  // another thread was here first, with newer ones
    std::set<std::uint64_t> elsewhere;
    for (const auto& entry : exports.exports)
      if (is_elsewhere(*entry)) elsewhere.insert(entry->id);
    std::ranges::set_difference(elsewhere, elsewhere_, std::inserter(fresh, fresh.end()));
    if (before == 0) fresh.clear();
    elsewhere_ = std::move(elsewhere);
    // What has come back.
    for (auto& [client, its] : told_)
      std::erase_if(its, [this](const auto& one) { return !elsewhere_.contains(one.first); });
    std::erase_if(told_, [](const auto& one) { return one.second.empty(); });
    any_.store(!told_.empty(), std::memory_order_release);
    generation_.store(exports.generation, std::memory_order_release);
  }
  if (!fresh.empty()) note_holders(fresh);
}

void MovedExports::note_holders(const std::set<std::uint64_t>& exports) {
  FileKey last;
  for (bool more = true; more;) {
    std::lock_guard lock(state_.mutex);
    const TimePoint until = state_.now() + kToldOfMoves;
    const auto note = [&](ClientId client, std::uint64_t export_id) {
      const Client* const its = state_.clients.find(client);
      const bool has_sessions = its != nullptr && !its->locks_by_nlm && its->minor_version > 0;
      if (has_sessions && elsewhere_.contains(export_id)) told_[client][export_id] = until;
    };
    more = state_.visit_held(last, kFilesAtOnce, [&](const FileKey& key, const FileEntry& file) {
      last = key;
      const std::uint64_t export_id = file.parts().export_id;
      if (!exports.contains(export_id)) return true;
      for (const auto& open : state_.opens.of_file(key).opens)
        note(open.client, export_id);
      for (const Delegation* delegation : state_.delegations.table().of_file(key))
        note(delegation->client, export_id);
      return true;
    });
    any_.store(!told_.empty(), std::memory_order_release);
  }
}

bool MovedExports::to_be_told(ClientId client, TimePoint now) const {
  const auto its = told_.find(client);
  return its != told_.end() &&
         std::ranges::any_of(its->second, [now](const auto& one) { return now < one.second; });
}

void MovedExports::heard(ClientId client, std::uint64_t export_id) {
  const auto its = told_.find(client);
  if (its == told_.end()) return;
  its->second.erase(export_id);
  if (its->second.empty()) told_.erase(its);
  any_.store(!told_.empty(), std::memory_order_release);
}

}  // namespace nfsrdma::nfs4
