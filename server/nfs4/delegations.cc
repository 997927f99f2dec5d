// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/delegations.h"

#include <utility>

#include "server/nfs4/server_state.h"

namespace nfsrdma::nfs4 {

namespace {

constexpr Duration kTick = std::chrono::seconds(1);

}  // namespace

Delegations::Delegations(ServerState& state, std::uint32_t boot,
                         const DelegationTable::Limits& limits)
    : state_(state), table_(boot, limits), recaller_(state) {}

Result<void> Delegations::start() {
  NFSRDMA_TRY(leases_, KernelLeases::create([this](std::uint64_t key) { on_break(key); }));
  auto watches =
      NameWatches::create(leases_->loop(), [this](std::uint64_t key) { on_change(key); });
  if (watches.ok()) watches_ = std::move(watches).value();
  state_.caller.lines().start(leases_->loop());
  timer_ = std::make_unique<Timer>([this] {
    std::lock_guard lock(state_.mutex);
    ticking_ = false;
    tick();
  });
  return {};
}

void Delegations::stop() {
  if (leases_ != nullptr) leases_->stop();
}

Delegations::~Delegations() {
  stop();
}

bool Delegations::may_give(ClientId client, const FileKey& file) const {
  return leases_ != nullptr && state_.caller.reaches(client) &&
         table_.may_grant(client, file, state_.now()) && !state_.opens.is_written(file);
}

UniqueFd Delegations::take_lease(int path_fd) const {
  return leases_->take_read(path_fd);
}

const Delegation& Delegations::give(ClientId client, const FileKey& file, ByteSpan handle,
                                    UniqueFd lease) {
  const Delegation& made = table_.grant(client, file, {handle.begin(), handle.end()});
  given_.store(table_.size(), std::memory_order_release);
  leases_->keep(made.number, std::move(lease));
  return made;
}

void Delegations::watch(DelegationNumber number, int path_fd) {
  if (watches_ == nullptr || !watches_->watch(number, path_fd)) return;
  std::lock_guard lock(state_.mutex);
  // It may have been given back meanwhile.
  const Delegation* delegation = table_.find(number);
  const bool gone = delegation == nullptr || delegation->phase == Delegation::Phase::kRevoked;
  if (gone) watches_->drop(number);
}

/// Short of a lease: clients that are told to come back later do not do so for ever.
TimePoint Delegations::deadline() const {
  return state_.now() + state_.lease() * 2 / 3;
}

/// The delegation has to be revoked before the kernel takes its lease away by itself.
TimePoint Delegations::deadline_of_lease() const {
  const Duration patience = KernelLeases::break_time() * 2 / 3;
  return std::min(deadline(), state_.now() + patience);
}

bool Delegations::recall(const FileKey& file, ClientId by) {
  if (table_.size() == 0) return false;
  state_.end_expired(table_.holders(file, by));
  std::vector<DelegationNumber> fresh;
  const bool any = table_.recall(file, by, deadline(), &fresh);
  for (const DelegationNumber number : fresh)
    recaller_.begin(number);
  if (any) watch_time();
  return any;
}

void Delegations::on_break(DelegationNumber number) {
  std::lock_guard lock(state_.mutex);
  const Delegation* delegation = table_.find(number);
  if (delegation == nullptr) return;
  if (state_.end_expired({delegation->client})) return;
  recall_one(number, deadline_of_lease());
}

/// A local process did what the holder was promised that nobody does; now it can only be told.
void Delegations::on_change(DelegationNumber number) {
  std::lock_guard lock(state_.mutex);
  if (table_.find(number) != nullptr) recall_one(number, deadline());
}

void Delegations::recall_one(DelegationNumber number, TimePoint deadline) {
  if (!table_.recall_one(number, deadline)) return;
  recaller_.begin(number);
  watch_time();
}

DelegationTable::Status Delegations::give_back(ClientId client, const Stateid& stateid,
                                               const FileKey& file) {
  DelegationNumber number = 0;
  const auto status = table_.give_back(client, stateid, file, &number);
  if (status != DelegationTable::Status::kOk) return status;
  drop({number});
  state_.let_go_of(file);
  return status;
}

void Delegations::end_client(ClientId client) {
  drop(table_.end_client(client));
}

void Delegations::drop(const std::vector<DelegationNumber>& numbers) {
  given_.store(table_.size(), std::memory_order_release);
  if (leases_ == nullptr) return;
  for (const DelegationNumber number : numbers) {
    leases_->drop(number);
    if (watches_ != nullptr) watches_->drop(number);
  }
}

void Delegations::tick() {
  const TimePoint now = state_.now();
  const std::vector<DelegationNumber> overdue = table_.revoke_due(now);
  drop(overdue);
  for (const DelegationNumber number : overdue) {
    const Delegation& revoked = *table_.find(number);
    const FileKey file = revoked.file;
    Client* client = state_.clients.find(revoked.client);
    if (client == nullptr || !client->has_sessions) table_.forget(number);
    if (client != nullptr) state_.count_holds(*client);
    state_.let_go_of(file);
  }
  recaller_.tick();
  if (table_.recalled() != 0 || !recaller_.idle()) watch_time();
}

/// A timer belongs to its loop's thread.
void Delegations::watch_time() {
  if (std::exchange(ticking_, true) || leases_ == nullptr) return;
  leases_->loop().post([this] { timer_->arm_after(leases_->loop(), kTick); });
}

bool Delegations::in_the_way(dev_t device, ino_t inode, std::uint64_t by) {
  std::lock_guard lock(state_.mutex);
  return recall(file_key(device, inode), by);
}

}  // namespace nfsrdma::nfs4
