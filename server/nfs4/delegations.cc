// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/delegations.h"

#include <utility>

#include "server/nfs4/server_state.h"

namespace nfsrdma::nfs4 {

namespace {

constexpr Duration kTick = std::chrono::seconds(1);
/// Of a client of minor version 0, which cannot say that it knows: of so many it is told.
constexpr std::size_t kMostRevokedOfOld = 64;
/// The kernel's word of what the holder did itself comes within this time, or is taken for somebody
/// else's.
constexpr Duration kOwnChange = std::chrono::milliseconds(250);

}  // namespace

Delegations::Delegations(ServerState& state, std::uint32_t boot,
                         const DelegationTable::Limits& limits)
    : holder_attributes(state), state_(state), table_(boot, limits), recaller_(state) {}

Result<void> Delegations::start() {
  NFSRDMA_TRY(leases_, KernelLeases::create([this](std::uint64_t key) { on_break(key); }));
  auto watches =
      NameWatches::create(leases_->loop(), [this](std::uint64_t key) { on_change(key); });
  if (watches.ok()) watches_ = std::move(watches).value();
  state_.caller.lines().start(leases_->loop());
  timer_ = std::make_unique<Timer>([this] {
    {
      std::lock_guard lock(state_.mutex);
      ticking_ = false;
      tick();
    }
    finish();  // processes of this machine do not wait for that
  });
  return {};
}

void Delegations::finish() {
  const std::vector<FilePin> closed = state_.take_released();
  if (state_.any_ended()) (void)state_.settle();
}

void Delegations::finish_soon() {
  if (leases_ == nullptr) return finish();
  leases_->loop().post([this] { finish(); });
}

void Delegations::stop() {
  if (leases_ != nullptr) leases_->stop();
}

Delegations::~Delegations() {
  stop();
}

bool Delegations::may_give(ClientId client, const FileKey& file, Delegation::Kind kind) const {
  if (being_given_.contains(file)) return false;
  if (kind == Delegation::Kind::kWrite) return may_go_on(client, file);
  return leases_ != nullptr && state_.caller.reaches(client) &&
         table_.may_grant(client, file, kind, state_.now()) && !state_.opens.is_written(file);
}

/// A COPY that goes on behind its reply may outlive the opens that it began with.
bool Delegations::may_go_on(ClientId client, const FileKey& file) const {
  return leases_ != nullptr && state_.caller.reaches(client) &&
         table_.may_grant(client, file, Delegation::Kind::kWrite, state_.now()) &&
         !state_.opens.is_open_by_others(client, file) && !state_.offloads.any_running();
}

bool Delegations::begin_giving(ClientId client, const FileKey& file) {
  if (!may_give(client, file, Delegation::Kind::kWrite)) return false;
  being_given_.insert(file);
  return true;
}

UniqueFd Delegations::take_lease(int path_fd) const {
  return leases_->take_read(path_fd);
}

bool Delegations::take_write_lease(int fd) const {
  return leases_->take_write(fd);
}

void Delegations::drop_write_lease(int fd) const {
  leases_->drop_write(fd);
}

const Delegation& Delegations::give_read(ClientId client, const FileKey& file, ByteSpan handle,
                                         UniqueFd lease) {
  const Delegation& made =
      table_.grant(client, file, Delegation::Kind::kRead, {handle.begin(), handle.end()});
  given_.store(table_.size(), std::memory_order_release);
  leases_->keep(made.number, std::move(lease));
  return made;
}

const Delegation& Delegations::give_write(ClientId client, FilePin file, std::uint64_t change) {
  const ByteSpan handle = file->handle().bytes();
  const Delegation& made = table_.grant(client, file_key(*file), Delegation::Kind::kWrite,
                                        {handle.begin(), handle.end()});
  file->promised_to.store(client, std::memory_order_release);
  leases_->keep(made.number, file->path_fd());
  holder_attributes.begin(made.number, change);
  written_[made.number] = std::move(file);
  given_.store(table_.size(), std::memory_order_release);
  writers_.store(written_.size(), std::memory_order_release);
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

bool Delegations::recall(const FileKey& file, ClientId by, Wanted wanted) {
  if (table_.size() == 0) return false;
  state_.end_expired(table_.holders(file, by, wanted));
  std::vector<DelegationNumber> fresh;
  const bool any = table_.recall(file, by, wanted, deadline(), &fresh);
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

/// A local process did what the holder was promised that nobody does; now it can only be told. Or
/// the holder did it: the kernel does not say who.
void Delegations::on_change(DelegationNumber number) {
  std::lock_guard lock(state_.mutex);
  const Delegation* delegation = table_.find(number);
  if (delegation == nullptr || state_.now() < delegation->own_change_until) return;
  recall_one(number, deadline());
}

void Delegations::recall_one(DelegationNumber number, TimePoint deadline) {
  if (!table_.recall_one(number, deadline)) return;
  recaller_.begin(number);
  watch_time();
}

DelegationTable::Status Delegations::give_back(ClientId client, const Stateid& stateid,
                                               const FileKey& file, std::vector<FilePin>* closed) {
  DelegationNumber number = 0;
  const auto status = table_.give_back(client, stateid, file, &number);
  if (status != DelegationTable::Status::kOk) return status;
  drop({number}, closed);
  state_.let_go_of(file, closed);
  return status;
}

void Delegations::end_client(ClientId client) {
  drop(table_.end_client(client));
}

/// Until the client knows, it may not come back for it after a restart.
void Delegations::note_revoked(DelegationNumber number) {
  const Delegation& revoked = *table_.find(number);
  Client* client = state_.clients.find(revoked.client);
  const bool has_sessions = client != nullptr && client->has_sessions;
  // By an administrator, whoever uses it is told.
  if (!has_sessions && client != nullptr) {
    client->lost_delegation = true;
    client->told_until = {};
  }
  if (!has_sessions && !revoked.by_administrator) {
    table_.forget(number);
  } else if (!has_sessions) {
    table_.forget_revoked_but(revoked.client, kMostRevokedOfOld);
  }
  if (client == nullptr) return;
  if (has_sessions) {
    state_.must_not_reclaim(*client);  // until FREE_STATEID
  } else {
    state_.must_not_reclaim_delegations(*client);  // minor version 0 has none
  }
  state_.count_holds(*client);
}

std::map<ClientId, std::size_t> Delegations::revoke_file(const FileKey& file) {
  std::map<ClientId, std::size_t> lost;
  const std::vector<DelegationNumber> numbers = table_.revoke_file(file, state_.now());
  drop(numbers);
  for (const DelegationNumber number : numbers) {
    const Delegation* revoked = table_.find(number);
    if (revoked == nullptr) continue;  // it had to make room for others
    ++lost[revoked->client];
    note_revoked(number);
  }
  return lost;
}

void Delegations::drop(const std::vector<DelegationNumber>& numbers, std::vector<FilePin>* closed) {
  given_.store(table_.size(), std::memory_order_release);
  if (leases_ == nullptr) return;
  for (const DelegationNumber number : numbers) {
    leases_->drop(number);
    if (watches_ != nullptr) watches_->drop(number);
    const auto written = written_.find(number);
    if (written == written_.end()) continue;
    holder_attributes.end(number);
    written->second->promised_to.store(0, std::memory_order_release);
    if (closed != nullptr) {
      closed->push_back(std::move(written->second));
    } else {
      state_.release_file(std::move(written->second));
    }
    written_.erase(written);
  }
  writers_.store(written_.size(), std::memory_order_release);
}

void Delegations::tick() {
  const TimePoint now = state_.now();
  const std::vector<DelegationNumber> overdue = table_.revoke_due(now);
  drop(overdue);
  for (const DelegationNumber number : overdue) {
    const FileKey file = table_.find(number)->file;
    note_revoked(number);
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

/// Who lost a delegation with the lease must not come back for it after a restart, so that is
/// written down before anything is changed. A storage that fails shall not stop REMOVE, which may
/// be its cure: whoever asks again is let in.
bool Delegations::must_wait(const FileKey& file, std::uint64_t by, Wanted wanted) {
  if (table_.size() == 0) return false;
  const bool ended = state_.end_expired(table_.holders(file, by, wanted)) && state_.any_ended();
  if (ended) leases_->loop().post([this] { (void)state_.settle(); });
  return recall(file, by, wanted) || ended;
}

bool Delegations::in_the_way(dev_t device, ino_t inode, std::uint64_t by) {
  std::lock_guard lock(state_.mutex);
  const FileKey file = file_key(device, inode);
  if (must_wait(file, by, Wanted::kToChange)) return true;
  if (by != 0) table_.note_own_change(by, file, state_.now() + kOwnChange);
  return false;
}

bool Delegations::in_the_way_of_readers(dev_t device, ino_t inode, std::uint64_t by) {
  std::lock_guard lock(state_.mutex);
  return must_wait(file_key(device, inode), by, Wanted::kToRead);
}

bool Delegations::is_written(dev_t device, ino_t inode) {
  std::lock_guard lock(state_.mutex);
  return table_.writer(file_key(device, inode)) != nullptr;
}

}  // namespace nfsrdma::nfs4
