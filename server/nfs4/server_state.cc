// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/server_state.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/sysmacros.h>

#include <cstring>
#include <ctime>
#include <set>
#include <utility>

#include "rpcrdma/base/log.h"
#include "server/credentials.h"
#include "server/kept_random.h"
#include "server/nfs4/wire_values.h"
#include "server/vfs/change_counter.h"

namespace nfsrdma::nfs4 {

namespace {

// What a session may be at most. Requests and replies carry as much beside their data.
constexpr std::uint32_t kMessageOverhead = 4096;
constexpr std::uint32_t kMostOperations = 64;
// The backchannel goes inside the inline threshold over RDMA.
constexpr std::uint32_t kBackMessage = 4096;
constexpr std::uint32_t kBackCached = 0;
constexpr std::uint32_t kBackOperations = 2;
constexpr std::uint32_t kBackSlots = 16;

const SteadyClock kSteadyClock;

constexpr KeptFile kOwnerFile{
    "server-owner", "nfs-rdma server owner 1\n",
    "server-owner is damaged, or of a newer version; to start all the same, "
    "move it away: clients of NFSv4 then lose locks and open files"};

/// What is held for some hundred instructions is soon free again: to sleep and to be woken up costs
/// several times that, to him who lets go as well. Of a mutex that nobody has locked yet;
/// std::mutex has no word for it.
void spin_before_sleeping(std::mutex& mutex) {
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
  ::pthread_mutex_destroy(mutex.native_handle());
  ::pthread_mutex_init(mutex.native_handle(), &attributes);
  ::pthread_mutexattr_destroy(&attributes);
}

/// Clients that hear of two servers of one owner, or one scope, take them for one (RFC 8881 2.10.4,
/// 2.10.5). So it is drawn and kept: no name of a machine says which of its clones it is.
Result<std::string> server_owner_of(const std::string& state_dir) {
  NFSRDMA_TRY(const KeptRandom drawn, load_or_draw(state_dir, kOwnerFile));
  std::string owner = "nfs-rdmad:";
  for (const std::uint8_t byte : drawn)
    owner += fmt::format("{:02x}", byte);
  return owner;
}

OwnerNames::Options owner_name_options(const ServerState::Options& options) {
  OwnerNames::Options out;
  out.domain = options.domain;
  out.send_names = options.send_owner_names;
  return out;
}

}  // namespace

FileKey file_key(dev_t device, ino_t inode) {
  // The kernel's numbers of devices have 32 bits (12 and 20). So the key fits into the string
  // itself: this runs for each READ.
  const std::uint64_t inode_part = inode;
  const std::uint32_t device_part = ::major(device) << 20 | ::minor(device);
  char bytes[sizeof inode_part + sizeof device_part];
  std::memcpy(bytes, &inode_part, sizeof inode_part);
  std::memcpy(bytes + sizeof inode_part, &device_part, sizeof device_part);
  return FileKey(bytes, sizeof bytes);
}
FileKey file_key(const FileEntry& file) {
  return file_key(file.device(), file.inode());
}

std::unique_ptr<ServerState> ServerState::create(const Options& options, std::string* why) {
  auto records =
      ClientRecords::open(options.state_dir, static_cast<std::uint64_t>(std::time(nullptr)), why);
  if (records == nullptr) return nullptr;
  // With nobody to wait for, there is no grace period.
  if (records->before().empty()) {
    if (const auto ended = records->end_grace(); !ended.ok()) {
      *why = options.state_dir + ": " + ended.error().message();
      return nullptr;
    }
  }
  // The records' lock is held: no other server has this directory, nor this owner.
  auto owner = server_owner_of(options.state_dir);
  if (!owner.ok()) {
    *why = options.state_dir + ": " + owner.error().message();
    return nullptr;
  }
  std::unique_ptr<ServerState> state(
      new ServerState(options, std::move(records), std::move(owner).value()));
  if (const auto started = state->delegations.start(); !started.ok()) {
    log_warning("no delegations are given: {}", started.error().message());
  }
  return state;
}

ServerState::ServerState(const Options& options, std::unique_ptr<ClientRecords> records,
                         std::string server_owner)
    : clients(records->boot(), {.clients = options.limits.clients, .lease = options.lease}),
      sessions(records->boot(), options.limits.sessions),
      opens(records->boot(), options.limits.opens),
      grace(records->before(), (options.clock != nullptr ? options.clock : &kSteadyClock)->now(),
            options.grace, records->lost_before()),
      owner_sequences(options.limits.owners, options.limits.all_owners),
      caller(*this),
      lock_notifier(*this),
      lock_mirror(*this, options.mirror_locks),
      delegations(*this, records->boot(), options.limits.delegations),
      offloads(*this, records->boot()),
      refusals(options.limits),
      moved_exports(*this),
      clock_(options.clock != nullptr ? *options.clock : kSteadyClock),
      lease_(options.lease),
      limits_(options.limits),
      server_owner_(std::move(server_owner)),
      owner_names_(owner_name_options(options)),
      records_(std::move(records)) {
  spin_before_sleeping(mutex);
  most_fore_.max_request = options.wtmax + kMessageOverhead;
  most_fore_.max_response = options.rtmax + kMessageOverhead;
  most_fore_.max_response_cached = limits_.reply_bytes;
  most_fore_.max_operations = kMostOperations;
  most_fore_.max_requests = limits_.slots;
  most_back_.max_request = most_back_.max_response = kBackMessage;
  most_back_.max_response_cached = kBackCached;
  most_back_.max_operations = kBackOperations;
  most_back_.max_requests = kBackSlots;
  grace_written_.store(grace.over(now()), std::memory_order_release);
}

ServerState::~ServerState() {
  // Their threads use all else.
  offloads.stop();
  lock_mirror.stop();
  delegations.stop();
  caller.lines().stop();
}

std::uint32_t ServerState::lease_seconds() const {
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::seconds>(lease_).count());
}

void ServerState::end_clients(std::vector<std::unique_ptr<Client>> ended) {
  // Each once, however many owners had it open.
  std::set<FileKey> files;
  for (const std::unique_ptr<Client>& client : ended) {
    sessions.end_client(*client);
    for (FileKey& file : delegations.table().files_of(client->id))
      files.insert(std::move(file));
    files.merge(opens.end_client(client->id));
    lock_notifier.client_ended(client->id);
    caller.lines().end_client(client->id);
    delegations.end_client(client->id);
    offloads.end_client(client->id);
    owner_sequences.end_client(client->id);
    moved_exports.end_client(client->id);
    grace.forget(client->owner.id);
    if (client->may_be_recorded) must_not_reclaim(*client);
  }
  for (const FileKey& file : files)
    let_go_of(file);
}

void ServerState::must_not_reclaim(Client& client) {
  // In a grace period the record of the life before counts until there is one of this life.
  const bool may = grace.reclaim(client.owner.id, now()) == GracePeriod::Verdict::kGo;
  client.recorded = false;
  if (!std::exchange(client.may_be_recorded, false) && !may) return;
  ended_owners_.push_back(client.owner.id);
  ended_count_.fetch_add(1, std::memory_order_release);
}

bool ServerState::lost_unknown(ClientId client) {
  const Client* its = clients.find(client);
  if (its == nullptr) return false;
  // In minor version 0 records have a word of their own for delegations that were revoked.
  return opens.revoked().any_unknown(client) ||
         (its->has_sessions && delegations.table().held(client).revoked != 0);
}

void ServerState::note_told(ClientId client, const Stateid& stateid) {
  if (!DelegationTable::is_one(stateid)) return opens.note_told(stateid);
  // Those that count stand against new ones.
  if (delegations.table().test(client, stateid) != OpenStates::Status::kAdminRevoked) return;
  delegations.table().forget(number_in(stateid));
  if (Client* its = clients.find(client)) count_holds(*its);
}

void ServerState::must_not_reclaim_delegations(const Client& client) {
  if (!client.may_be_recorded) return;
  lost_owners_.push_back(client.owner.id);
  ended_count_.fetch_add(1, std::memory_order_release);
}

bool ServerState::end_expired(const std::set<ClientId>& owners) {
  std::vector<std::unique_ptr<Client>> ended;
  for (const ClientId id : owners) {
    Client* client = clients.find(id);
    if (client != nullptr && clients.expired(*client, now())) ended.push_back(clients.end(*client));
  }
  const bool any = !ended.empty();
  end_clients(std::move(ended));
  return any;
}

bool ServerState::evict(ClientId id) {
  Client* client = clients.find(id);
  if (client == nullptr) return false;
  must_not_reclaim(*client);
  grace.exclude(client->owner.id);
  std::vector<std::unique_ptr<Client>> ended;
  ended.push_back(clients.end(*client));
  end_clients(std::move(ended));
  return true;
}

bool ServerState::revoke_file(const FileKey& file, std::map<ClientId, Lost>* lost) {
  const auto has_stateids = [this](ClientId id) {
    const Client* client = clients.find(id);
    return client != nullptr && !client->locks_by_nlm;
  };
  const auto states = opens.revoke_file(file, has_stateids, now());
  for (const auto& [id, what] : states) {
    Lost& its = (*lost)[id];
    its.opens += what.opens;
    its.locks += what.locks;
    Client* client = clients.find(id);
    if (client == nullptr) continue;
    // A host of NLM can say nothing, and hears of a restart by its record alone.
    const bool keeps_record = client->locks_by_nlm && opens.holds(id) != 0;
    if (!keeps_record) must_not_reclaim(*client);
    count_holds(*client);
  }
  const auto delegated = delegations.revoke_file(file);
  for (const auto& [id, count] : delegated)
    (*lost)[id].delegations += count;
  let_go_of(file);
  return !states.empty() || !delegated.empty();
}

bool ServerState::visit_held(const FileKey& after, std::size_t most,
                             const std::function<bool(const FileKey&, FileEntry&)>& visit) const {
  auto at = held_.upper_bound(after);
  for (bool on = true; on && most > 0 && at != held_.end(); --most, ++at)
    on = visit(at->first, *at->second);
  return at != held_.end();
}

void ServerState::hold_file(FilePin file) {
  FileKey key = file_key(*file);
  if (held_.contains(key)) return;
  held_by_handle_[text_of(file->handle().bytes())] = &*file;
  held_.emplace(std::move(key), std::move(file));
}

FilePin ServerState::hold_instead(FilePin file) {
  const auto held = held_.find(file_key(*file));
  if (held == held_.end()) return {};
  held_by_handle_.erase(text_of(held->second->handle().bytes()));
  held_by_handle_[text_of(file->handle().bytes())] = &*file;
  return std::exchange(held->second, std::move(file));
}

OpenStates::Status ServerState::test(const OpenStates::Asker& asker, const Stateid& stateid) const {
  if (DelegationTable::is_one(stateid)) return delegations.table().test(asker.client, stateid);
  if (OffloadTable::is_one(stateid)) return offloads.table().test(asker.client, stateid);
  return opens.test(asker, stateid);
}

bool ServerState::is_of_ended(const Stateid& stateid) const {
  return boot_in(stateid) == records_->boot() && !clients.may_own(number_in(stateid));
}

void ServerState::let_go_of(const FileKey& key, std::vector<FilePin>* closed) {
  // An open that ended took its locks along. Most had none, and nobody has to be looked for who
  // waited for them.
  if (opens.take_unlocked(key)) {
    lock_mirror.note_ended(key);
    lock_mirror.settle_later(key);
    lock_notifier.unlocked(key);
  } else {
    lock_notifier.other_ended(key);
  }
  const auto held = held_.find(key);
  if (held == held_.end() || opens.is_open(key) || delegations.table().has_file(key)) return;
  held_by_handle_.erase(text_of(held->second->handle().bytes()));
  if (closed != nullptr) {
    closed->push_back(std::move(held->second));
  } else {
    release_file(std::move(held->second));
  }
  held_.erase(held);
}

void ServerState::release_file(FilePin file) {
  released_.push_back(std::move(file));
  any_released_.store(true, std::memory_order_release);
}

std::vector<FilePin> ServerState::take_released() {
  if (!any_released_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex);
  any_released_.store(false, std::memory_order_release);
  return std::exchange(released_, {});
}

FilePin ServerState::held_file(ByteSpan handle) const {
  const auto found = held_by_handle_.find(text_of(handle));
  return found == held_by_handle_.end() ? FilePin() : FilePin::another(*found->second);
}

void ServerState::count_holds(Client& client) const {
  client.holds = sessions.sessions_of(client.id) + opens.holds(client.id) +
                 delegations.table().holds(client.id);
}

Result<void> ServerState::settle() {
  std::lock_guard storage(storage_mutex_);
  return settle_locked();
}

/// What failed stays to be done.
Result<void> ServerState::write_down(std::vector<std::string>* owners,
                                     Result<void> (ClientRecords::*note)(std::string_view)) {
  std::vector<std::string> left;
  {
    std::lock_guard lock(mutex);
    left = std::exchange(*owners, {});
  }
  while (!left.empty()) {
    if (const auto noted = (records_.get()->*note)(left.back()); !noted.ok()) {
      std::lock_guard lock(mutex);
      owners->insert(owners->end(), left.begin(), left.end());
      return noted.error();
    }
    left.pop_back();
    ended_count_.fetch_sub(1, std::memory_order_release);
  }
  return {};
}

/// Whoever the thread acts for: the records are the server's.
Result<void> ServerState::settle_locked() {
  const AsServer privileged;
  // Whoever has ended since has no record to note a loss in.
  NFSRDMA_CHECK_OK(write_down(&lost_owners_, &ClientRecords::lose_delegation));
  NFSRDMA_CHECK_OK(write_down(&ended_owners_, &ClientRecords::remove));
  bool over = false;
  {
    std::lock_guard lock(mutex);
    over = grace.over(now());
  }
  if (over && !grace_written_.load(std::memory_order_acquire)) {
    NFSRDMA_CHECK_OK(records_->end_grace());
    grace_written_.store(true, std::memory_order_release);
  }
  return {};
}

/// From here on the record is taken back if the client ends, or loses what it had: whatever is to
/// be written down for that waits until nobody else writes, and so comes behind the record. None:
/// that has happened already.
std::optional<std::string> ServerState::begin_recording(ClientId id) {
  std::lock_guard lock(mutex);
  Client* client = clients.find(id);
  if (client == nullptr || lost_unknown(id)) return std::nullopt;
  client->may_be_recorded = true;
  return client->owner.id;
}

Result<void> ServerState::record(ClientId id) {
  std::lock_guard storage(storage_mutex_);
  // What an earlier life of the same client lost goes first.
  NFSRDMA_CHECK_OK(settle_locked());
  const std::optional<std::string> owner = begin_recording(id);
  if (!owner) return {};
  const AsServer privileged;
  if (while_recording) while_recording();
  NFSRDMA_CHECK_OK(records_->add(*owner));
  std::lock_guard lock(mutex);
  if (Client* client = clients.find(id)) client->recorded = client->may_be_recorded;
  return {};
}

bool ServerState::must_settle() const {
  return any_ended() || !grace_written_.load(std::memory_order_acquire);
}

std::vector<std::string> ServerState::hosts_before() const {
  std::vector<std::string> hosts;
  for (const std::string& owner : records_->before()) {
    if (owner.starts_with(ClientTable::kHostPrefix)) {
      hosts.push_back(owner.substr(ClientTable::kHostPrefix.size()));
    }
  }
  return hosts;
}

std::shared_ptr<const PseudoFs> ServerState::pseudo_fs(const ExportSnapshot& exports) {
  std::lock_guard lock(mutex);
  if (pseudo_fs_ != nullptr && pseudo_generation_ == exports.generation) return pseudo_fs_;
  std::vector<PseudoExport> list;
  for (const auto& entry : exports.exports)
    list.push_back({entry->id, entry->path, entry->is_root});
  timespec wall{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  pseudo_fs_ = std::make_shared<PseudoFs>(list, change_of_time(wall));
  pseudo_generation_ = exports.generation;
  return pseudo_fs_;
}

void ServerState::connection_opened(ServerConnection& connection) {
  std::lock_guard lock(mutex);
  caller.connection_opened(connection);
  speakers.connection_opened(connection.id);
}

void ServerState::connection_lost(ConnectionId connection) {
  std::lock_guard lock(mutex);
  sessions.connection_lost(connection);
  speakers.connection_lost(connection);
  caller.connection_lost(connection);
}

}  // namespace nfsrdma::nfs4
