// SPDX-License-Identifier: Apache-2.0
#include "server/nlm/lock_service.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <utility>

#include "rpcrdma/base/check.h"
#include "server/vfs/record_locks.h"

namespace nfsrdma::nlm {

namespace {

using nfs4::Client;
using nfs4::ClientId;
using nfs4::ClientTable;
using nfs4::file_key;
using nfs4::FileKey;
using enum xdr::nlm4_stats;

/// A host that does not say that it knows of a lock is called that often. Then the lock stays with
/// it, since it may know; unless no call can have arrived.
constexpr int kMostCalls = 30;
constexpr int kMostVainCalls = 3;

std::string name_of(const Client& client) {
  SocketAddress address;
  std::string name;
  parse_host_key(client.owner.id.substr(ClientTable::kHostPrefix.size()), &address, &name);
  return name;
}

}  // namespace

LockService::LockService(nfs4::ServerState& state, CallingThread& caller, const Options& options)
    : state_(state), caller_(caller), options_(options), waits_(Waits::Limits{}), timer_([this] {
        on_time();
      }) {
  {
    std::lock_guard guard(state_.mutex);
    state_.lock_notifier.watch(this);
  }
  giver_ = std::thread([this] { give_locks(); });
  caller_.loop().post([this] { timer_.arm_after(caller_.loop(), options_.look_again); });
}

LockService::~LockService() {
  {
    std::lock_guard guard(state_.mutex);
    state_.lock_notifier.watch(nullptr);
    stopping_ = true;
    more_.notify_all();
  }
  giver_.join();
}

// --- hosts ---

ClientId LockService::admit(const Host& host, std::int32_t state) {
  std::lock_guard guard(state_.mutex);
  state_.sweep_locked();
  ClientTable::Answer answer =
      state_.clients.add_host(host_key(host.peer, host.name), state_.now());
  state_.take_in(answer, host.peer.host_text());
  if (answer.client == nullptr) return 0;
  state_.came_from(*answer.client, host.peer.host_text());
  const auto [known, is_new] = known_.try_emplace(answer.client->id);
  known->second.host = host;
  if (known->second.state == 0) known->second.state = state;
  if (is_new && new_host_) new_host_(host);
  return answer.client->id;
}

ClientId LockService::find(const Host& host) {
  std::lock_guard guard(state_.mutex);
  const Client* client = state_.clients.find_host(host_key(host.peer, host.name));
  return client != nullptr ? client->id : 0;
}

void LockService::release(const FileScope& files, bool waiting) {
  const auto is_among = [&files](const Wait& wait) { return files.has(**wait.pin); };
  std::vector<Wait> ended;  // closes files: without the mutex
  std::lock_guard guard(state_.mutex);
  if (waiting) ended = waits_.take(is_among);
  for (auto given = given_.begin(); given != given_.end();) {
    if (!is_among(given->second.wait)) {
      ++given;
      continue;
    }
    ended.push_back(std::move(given->second.wait));
    given = given_.erase(given);
  }
}

bool LockService::host_restarted(const SocketAddress& from, std::string_view name,
                                 std::int32_t state) {
  std::unique_lock lock(state_.mutex);
  std::vector<std::unique_ptr<Client>> ended;
  for (Client* client : state_.clients.hosts_with(host_key(from, ""))) {
    if (name != kEveryName && !same_host_name(name_of(*client), name)) continue;
    // Notifications are repeated, also behind locks of the host's new life. Where one of those came
    // even before the first notification, it goes with the older ones, as with Linux's server:
    // which life a lock is of cannot be told, since Linux's clients have one number for all
    // namespaces.
    const auto known = known_.find(client->id);
    if (state != 0 && known != known_.end() && known->second.state == state) continue;
    ended.push_back(state_.clients.end(*client));
  }
  if (ended.empty()) return false;
  log_info("host {} ({}) holds no locks of NFSv3 any more", name, from.host_text());
  state_.end_clients(std::move(ended));
  lock.unlock();
  state_.take_released();
  return true;
}

void LockService::on_client_ended(ClientId client) {
  known_.erase(client);
  waits_.end_client(client);
  std::erase_if(given_,
                [client](const auto& entry) { return entry.second.wait.wish.client == client; });
}

void LockService::tell_of_new_hosts(std::function<void(const Host&)> tell) {
  std::lock_guard guard(state_.mutex);
  new_host_ = std::move(tell);
  for (const auto& [id, known] : known_)
    new_host_(known.host);
}

// --- locks ---

LockResult LockService::lock(FilePin file, const Request& request) {
  LockResult result = lock_or_wait(std::move(file), request);
  const Wish& wish = request.order.wish;
  log_debug("{} {} locks {} to {} {}{}: {}", request.host.peer.host_text(), request.host.name,
            wish.range.first, wish.range.last,
            wish.kind == LockKind::kWrite ? "to write" : "to read",
            request.order.reclaim ? ", as before the restart" : "", xdr::enum_name(result.stat));
  return result;
}

LockResult LockService::lock_or_wait(FilePin file, const Request& request) {
  const Wish& wish = request.order.wish;
  const FileKey key = file_key(*file);
  LockOrder order = request.order;
  // As the lock is entered: what was given before and is about to be taken back stays.
  order.wanted = [&] {
    forget_given(key, wish);
    waits_.cancel(key, wish);
    return true;
  };
  LockResult result = take_lock(state_, *file, order);
  // Whoever keeps the locks of such a file is not asked by the thread that gives them: it may hang,
  // and the others with it. The client asks again.
  const bool remote =
      request.block && result.stat == NLM4_DENIED && on_remote_file_system(file->path_fd());
  std::lock_guard guard(state_.mutex);
  if (result.stat != NLM4_DENIED || !request.block) return result;
  if (closes_circle(key, wish)) {
    result.stat = NLM4_DEADLCK;
    return result;
  }
  if (remote) {
    result.stat = NLM4_BLOCKED;
    return result;
  }
  Wait wait;
  wait.wish = wish;
  wait.file = key;
  wait.host = request.host;
  wait.handle.assign(request.handle.begin(), request.handle.end());
  wait.local_holder = result.holder && result.holder->client == 0;
  wait.pin = std::make_shared<FilePin>(std::move(file));
  result.stat = waits_.add(std::move(wait)) ? NLM4_BLOCKED : NLM4_DENIED_NOLOCKS;
  // Whoever was in the way may have gone before this was entered.
  if (result.stat == NLM4_BLOCKED) on_unlocked(key);
  return result;
}

bool LockService::closes_circle(const FileKey& file, const Wish& wish) {
  return waits_.closes_circle(file, wish, [this](const FileKey& at, const Wish& waiting) {
    const auto holder =
        state_.opens.test_lock({waiting.client, 0}, waiting.owner, at, waiting.kind, waiting.range);
    return holder ? Wish{holder->client, holder->owner, holder->held.kind, holder->held.range}
                  : Wish{};
  });
}

xdr::nlm4_stats LockService::cancel(const FileEntry& file, const Wish& wish) {
  std::lock_guard guard(state_.mutex);
  const bool waited = waits_.cancel(file_key(file), wish);
  log_debug("a lock that is waited for is cancelled: {}",
            waited ? "done" : "it was not waited for");
  return waited ? NLM4_GRANTED : NLM4_DENIED;
}

xdr::nlm4_stats LockService::unlock(FileEntry& file, const Wish& wish) {
  {
    std::lock_guard guard(state_.mutex);
    forget_given(file_key(file), wish);
    // After a CANCEL that was lost, say.
    waits_.remove_within(file_key(file), wish);
  }
  return release_lock(state_, file, wish);
}

/// The owner has said something of that range: nobody has to tell it any more.
void LockService::forget_given(const FileKey& file, const Wish& wish) {
  std::erase_if(given_, [&](const auto& entry) {
    const Wait& wait = entry.second.wait;
    return wait.file == file && wait.wish.client == wish.client && wait.wish.owner == wish.owner &&
           wait.wish.range.overlaps(wish.range);
  });
}

// --- giving what is free ---

void LockService::on_unlocked(const FileKey& file) {
  if (!waits_.has_file(file)) return;
  freed_.insert(file);
  more_.notify_one();
}

void LockService::give_locks() {
  ::pthread_setname_np(::pthread_self(), "nlm-locks");
  std::unique_lock lock(state_.mutex);
  while (true) {
    more_.wait(lock, [this] { return stopping_ || !freed_.empty() || !returned_.empty(); });
    if (stopping_) return;
    const std::vector<std::uint64_t> returned = std::exchange(returned_, {});
    std::vector<Wait> waiting;
    if (!freed_.empty()) {
      waiting = waits_.of_file(*freed_.begin());
      freed_.erase(freed_.begin());
    }
    lock.unlock();
    for (const std::uint64_t id : returned)
      take_back(id);
    for (const Wait& wait : waiting)
      give(wait);
    waiting.clear();
    state_.take_released();
    lock.lock();
  }
}

/// Unless its owner has asked for it again meanwhile.
void LockService::take_back(std::uint64_t id) {
  Wait wait;
  {
    std::lock_guard guard(state_.mutex);
    const auto found = given_.find(id);
    if (found == given_.end()) return;
    wait = found->second.wait;
  }
  release_lock(state_, **wait.pin, wait.wish, [this, id] { return given_.erase(id) != 0; });
}

void LockService::give(const Wait& wait) {
  LockOrder order{wait.wish};
  // It may be cancelled at any moment. With the mutex: it is in one of the tables all the time.
  order.wanted = [this, &wait] {
    if (!waits_.remove(wait.id)) return false;
    given_[wait.id] = Given{wait};
    return true;
  };
  const LockResult result = take_lock(state_, **wait.pin, order);
  if (result.unwanted) return;
  std::lock_guard guard(state_.mutex);
  const auto given = given_.find(wait.id);
  if (result.stat == NLM4_GRANTED) {
    if (given != given_.end()) caller_.loop().post([this, id = wait.id] { tell(id); });
    return;
  }
  Wait again = wait;
  // Nobody tells us when a process of this machine unlocks, nor when the server is ready.
  again.local_holder = !result.holder || result.holder->client == 0;
  // It had been taken out for it, unless it was cancelled.
  if (given != given_.end())
    given_.erase(given);
  else if (!waits_.contains(wait.id))
    return;
  waits_.add(std::move(again));
}

/// Nobody tells us when they unlock.
void LockService::look_at_local_holders() {
  std::lock_guard guard(state_.mutex);
  for (const FileKey& file : waits_.behind_local_holders())
    on_unlocked(file);
}

/// They hold nothing, perhaps, and are there nevertheless.
void LockService::keep_who_waits() {
  std::lock_guard guard(state_.mutex);
  for (const ClientId id : waits_.clients()) {
    if (Client* client = state_.clients.find(id)) state_.clients.renew(*client, state_.now());
  }
}

// --- telling ---

void LockService::tell(std::uint64_t id) {
  std::array<std::byte, 4096> room;
  xdr::Encoder arguments(room);
  HostCalls::Target target;
  {
    std::lock_guard guard(state_.mutex);
    const auto found = given_.find(id);
    if (found == given_.end() || found->second.under_way) return;
    Given& given = found->second;
    const Wait& wait = given.wait;
    given.under_way = true;
    ++given.calls;
    target = {wait.host.peer, wait.host.local, xdr::kNlmProgram, xdr::kNlmV4};
    xdr::nlm4_testargs args;
    std::array<std::byte, 8> cookie;
    store_be64(cookie.data(), id);
    args.cookie = cookie;
    args.exclusive = wait.wish.kind == LockKind::kWrite;
    args.alock.caller_name = wait.host.name;
    args.alock.fh = wait.handle;
    split_owner(state_.clients.find(wait.wish.client), wait.wish.owner, &args.alock.svid,
                &args.alock.oh);
    args.alock.l_offset = wait.wish.range.first;
    args.alock.l_len = wire_length(wait.wish.range);
    xdr::encode(arguments, args);
  }
  NFSRDMA_CHECK(!arguments.overflowed());
  const ByteSpan bytes = arguments.bytes();
  caller_.calls().call(
      target, static_cast<std::uint32_t>(xdr::nlmproc4::NLMPROC4_GRANTED),
      {bytes.begin(), bytes.end()},
      [this, id](HostCalls::End end, ByteSpan results) { told(id, end, results); });
}

void LockService::told(std::uint64_t id, HostCalls::End end, ByteSpan results) {
  xdr::nlm4_res res;
  res.stat = NLM4_DENIED_GRACE_PERIOD;  // not now
  if (end == HostCalls::End::kAnswered) {
    xdr::Decoder decoder(results);
    if (!xdr::decode(decoder, res)) res.stat = NLM4_DENIED_GRACE_PERIOD;
  }
  std::lock_guard guard(state_.mutex);
  const auto found = given_.find(id);
  if (found == given_.end()) return;
  Given& given = found->second;
  log_debug("{} {} is told that it has a lock: {}", given.wait.host.peer.host_text(),
            given.wait.host.name,
            end == HostCalls::End::kAnswered  ? xdr::enum_name(res.stat)
            : end == HostCalls::End::kNotSent ? "it cannot be called"
                                              : "no answer");
  given.under_way = false;
  given.may_know |= end == HostCalls::End::kNoAnswer;
  if (res.stat == NLM4_GRANTED) {
    given_.erase(found);
    return;
  }
  const bool not_now = res.stat == NLM4_DENIED_GRACE_PERIOD;
  const bool vain = !given.may_know && given.calls >= kMostVainCalls;
  if (not_now && !vain && given.calls < kMostCalls) {
    given.again = caller_.loop().now() + options_.call_again;
    return;
  }
  // Whoever waited is gone, or cannot be told: the lock is free for others. A host that waits
  // nevertheless asks again.
  if (!not_now || !given.may_know) {
    given.under_way = true;  // it is told no more
    returned_.push_back(id);
    more_.notify_one();
  } else {
    given_.erase(found);
  }
}

void LockService::on_time() {
  timer_.arm_after(caller_.loop(), options_.look_again);
  look_at_local_holders();
  keep_who_waits();
  std::vector<std::uint64_t> due;
  {
    std::lock_guard guard(state_.mutex);
    for (const auto& [id, given] : given_) {
      if (!given.under_way && given.calls > 0 && caller_.loop().now() >= given.again)
        due.push_back(id);
    }
  }
  for (const std::uint64_t id : due)
    tell(id);
}

void LockService::answer(const Host& host, xdr::nlmproc4 procedure,
                         std::vector<std::byte> results) {
  caller_.loop().post([this, host, procedure, results = std::move(results)]() mutable {
    const HostCalls::Target target{host.peer, host.local, xdr::kNlmProgram, xdr::kNlmV4};
    caller_.calls().call(target, static_cast<std::uint32_t>(procedure), std::move(results),
                         [](HostCalls::End, ByteSpan) {});
  });
}

}  // namespace nfsrdma::nlm
