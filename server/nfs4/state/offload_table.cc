// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/state/offload_table.h"

#include <algorithm>

#include "rpcrdma/base/check.h"

namespace nfsrdma::nfs4 {

namespace {

/// Never 0, which would stand for "the last one" (RFC 7862 4.8); a copy's stateid never changes.
constexpr std::uint32_t kSeqid = 1;

}  // namespace

bool OffloadTable::is_one(const Stateid& stateid) {
  return kind_in(number_in(stateid)) == StateNumberKind::kOffload;
}

bool OffloadTable::may_begin(ClientId client) const {
  if (all_.size() >= limits_.all) return false;
  const auto its = by_client_.find(client);
  return its == by_client_.end() || its->second.size() < limits_.per_client;
}

const Offload& OffloadTable::begin(ClientId client, const std::string& principal, ByteSpan handle,
                                   const Verifier& verifier) {
  NFSRDMA_CHECK(may_begin(client));
  const OffloadNumber number =
      next_state_number(StateNumberKind::kOffload, client, &last_count_,
                        [this](StateNumber one) { return all_.contains(one); });
  Offload& made = all_[number];
  made.number = number;
  made.client = client;
  made.principal = principal;
  made.handle.assign(handle.begin(), handle.end());
  made.verifier = verifier;
  by_client_[client].insert(number);
  return made;
}

Stateid OffloadTable::stateid_of(const Offload& offload) const {
  return make_stateid(boot_, offload.number, kSeqid);
}

const Offload* OffloadTable::find(OffloadNumber number) const {
  const auto found = all_.find(number);
  return found == all_.end() ? nullptr : &found->second;
}

const Offload* OffloadTable::find(ClientId client, const Stateid& stateid, ByteSpan handle) const {
  if (test(client, stateid) != Status::kOk) return nullptr;
  const Offload* found = find(number_in(stateid));
  return std::ranges::equal(found->handle, handle) ? found : nullptr;
}

OffloadTable::Status OffloadTable::test(ClientId client, const Stateid& stateid) const {
  const Offload* found = find(number_in(stateid));
  // What it would be tells of the boot and the sequence number as well.
  const bool is_it = found != nullptr && found->client == client && stateid_of(*found) == stateid;
  return is_it ? Status::kOk : Status::kBadStateid;
}

OffloadTable::Status OffloadTable::free(ClientId client, const Stateid& stateid) {
  if (const Status status = test(client, stateid); status != Status::kOk) return status;
  const OffloadNumber number = number_in(stateid);
  if (!all_.at(number).ended) return Status::kLocksHeld;
  erase(number);
  return Status::kOk;
}

OffloadNumber OffloadTable::cancel(ClientId client, const std::string& principal,
                                   const Stateid& stateid, ByteSpan handle) {
  const Offload* found = find(client, stateid, handle);
  if (found == nullptr || found->principal != principal) return 0;
  const OffloadNumber number = found->number;
  erase(number);
  return number;
}

bool OffloadTable::advance(OffloadNumber number, std::uint64_t bytes) {
  const auto found = all_.find(number);
  if (found == all_.end()) return false;
  NFSRDMA_CHECK(!found->second.ended);
  found->second.copied += bytes;
  return true;
}

void OffloadTable::end(OffloadNumber number, int error) {
  const auto found = all_.find(number);
  if (found == all_.end()) return;
  found->second.ended = true;
  found->second.error = error;
  ended_.insert(number);
}

void OffloadTable::acknowledged(OffloadNumber number) {
  if (ended_.contains(number)) erase(number);
}

void OffloadTable::end_client(ClientId client) {
  const auto its = by_client_.find(client);
  if (its == by_client_.end()) return;
  const std::set<OffloadNumber> numbers = its->second;
  for (const OffloadNumber number : numbers)
    erase(number);
}

void OffloadTable::erase(OffloadNumber number) {
  const auto found = all_.find(number);
  NFSRDMA_CHECK(found != all_.end());
  const auto its = by_client_.find(found->second.client);
  its->second.erase(number);
  if (its->second.empty()) by_client_.erase(its);
  ended_.erase(number);
  all_.erase(found);
}

}  // namespace nfsrdma::nfs4
