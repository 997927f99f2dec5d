// SPDX-License-Identifier: Apache-2.0
#include "server/nsm/status_monitor.h"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "rpcrdma/base/host_name.h"
#include "rpcrdma/base/log.h"
#include "server/credentials.h"
#include "xdr/nlm4.h"

namespace nfsrdma::nsm {

namespace {

constexpr Duration kTick = std::chrono::seconds(1);
constexpr Duration kFirstPause = std::chrono::seconds(2);
constexpr Duration kLongestPause = std::chrono::seconds(60);
/// As sm-notify: who was not reached by then is told no more.
constexpr Duration kPatience = std::chrono::minutes(15);
constexpr std::size_t kMostUnderWay = 64;

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id.empty() ? "unknown" : id;
}

/// Of a life of the server: the same one never comes again.
std::int32_t state_of(std::uint32_t boot) {
  return static_cast<std::int32_t>((boot & 0x3fffffff) << 1 | 1);
}

template <typename Args>
std::vector<std::byte> encoded(const Args& args) {
  std::array<std::byte, 4096> room;
  xdr::Encoder out(room);
  xdr::encode(out, args);
  return {out.bytes().begin(), out.bytes().end()};
}

constexpr std::uint32_t number(xdr::nsmproc1 procedure) {
  return static_cast<std::uint32_t>(procedure);
}

SocketAddress loopback() {
  auto address = SocketAddress::parse("127.0.0.1", 0);
  NFSRDMA_CHECK(address.ok());
  return *address;
}

/// A host's address in 16 bytes, as IPv6 has them.
std::array<std::byte, xdr::kNsmPrivate> address_bytes(const SocketAddress& address) {
  std::array<std::byte, xdr::kNsmPrivate> out{};
  if (address.is_v6()) {
    std::memcpy(out.data(), &reinterpret_cast<const sockaddr_in6*>(address.data())->sin6_addr, 16);
  } else {
    out[10] = out[11] = std::byte{0xff};
    std::memcpy(&out[12], &reinterpret_cast<const sockaddr_in*>(address.data())->sin_addr, 4);
  }
  return out;
}

SocketAddress address_of(const std::array<std::byte, xdr::kNsmPrivate>& bytes) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  std::memcpy(&address.sin6_addr, bytes.data(), 16);
  return {reinterpret_cast<const sockaddr*>(&address), sizeof address};
}

/// Is the host that this is about the one at `from`, which calls itself `name`?
bool is_about(const Monitored& one, const SocketAddress& from, std::string_view name) {
  auto address = SocketAddress::parse(one.mon_name, 0);
  return address.ok() ? address->same_host(from) : nlm::same_host_name(one.mon_name, name);
}

}  // namespace

Result<std::unique_ptr<StatusMonitor>> StatusMonitor::start(nlm::LockService& locks,
                                                            CallingThread& caller,
                                                            const std::string& state_dir) {
  std::string why;
  std::unique_ptr<nfs4::RecordStorage> storage =
      nfs4::FileRecordStorage::open(state_dir + "/nsm", &why);
  if (storage == nullptr) {
    log_error("{}", why);
    return Error{Errc::kInvalid, 0, "hosts that are monitored"};
  }
  const auto read = storage->read();
  if (!read.ok()) {
    log_error("{}: {}; to start all the same, move it away", storage->name(),
              read.error().message());
    return Error{Errc::kInvalid, 0, "hosts that are monitored"};
  }
  const std::optional<std::string>& text = read.value();
  std::optional<std::vector<Monitored>> all = std::vector<Monitored>{};
  if (text) all = from_text(*text);
  if (!all) {
    log_warning(
        "{} is damaged: hosts that lock managers of this machine had monitored are not told "
        "of its restart",
        storage->name());
    all.emplace();
  }
  std::unique_ptr<StatusMonitor> monitor(
      new StatusMonitor(locks, caller, std::move(storage), std::move(*all), boot_id()));
  monitor->add_notices();
  return monitor;
}

StatusMonitor::StatusMonitor(nlm::LockService& locks, CallingThread& caller,
                             std::unique_ptr<nfs4::RecordStorage> storage,
                             std::vector<Monitored> all, std::string boot_id)
    : locks_(locks),
      caller_(caller),
      state_(state_of(locks.state().boot())),
      host_(host_name()),
      boot_id_(std::move(boot_id)),
      storage_(std::move(storage)),
      monitored_(std::move(all)),
      timer_([this] { on_time(); }),
      again_([this] { ask_other_again(); }) {}

struct StatusMonitor::Found {
  std::mutex mutex;
  std::map<std::string, SocketAddress> addresses;  // without a family: not found yet
  bool over = false;                               // nobody wants to know any more
};

StatusMonitor::~StatusMonitor() {
  if (found_ == nullptr) return;
  std::lock_guard guard(found_->mutex);
  found_->over = true;
}

void StatusMonitor::look_up(const std::shared_ptr<Found>& found) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  std::unique_lock lock(found->mutex);
  for (bool missing = true; missing && std::chrono::steady_clock::now() < until;) {
    missing = false;
    for (auto& [name, address] : found->addresses) {
      if (found->over) return;
      if (address.family() != AF_UNSPEC) continue;
      lock.unlock();
      // It may have several addresses; the first will do.
      auto resolved = SocketAddress::resolve(name, 0);
      lock.lock();
      const bool good = resolved.ok() && !resolved->empty();
      if (good) address = resolved->front();
      missing |= !good;
    }
    if (!missing) return;
    lock.unlock();
    std::this_thread::sleep_for(kFirstPause);
    lock.lock();
  }
}

void StatusMonitor::take_found() {
  if (found_ == nullptr) return;
  std::lock_guard guard(found_->mutex);
  for (Notice& notice : notices_) {
    if (notice.where.family() == AF_UNSPEC) notice.where = found_->addresses[notice.name];
  }
}

/// Before the thread knows of this object.
void StatusMonitor::add_notices() {
  std::vector<Notice> notices;
  for (const std::string& key : locks_.state().hosts_before()) {
    Notice notice;
    std::string name;
    if (!nlm::parse_host_key(key, &notice.where, &name)) continue;
    notice.my_name = host_;
    notice.state = state_;
    notices.push_back(std::move(notice));
  }
  std::vector<Monitored> still;
  for (Monitored& one : monitored_) {
    if (one.state == 0 && one.boot_id == boot_id_) {
      still.push_back(std::move(one));
    } else {
      // The machine has restarted, and its lock managers with it: they ask anew.
      add_untold(std::move(one));
    }
  }
  monitored_ = std::move(still);
  for (const Monitored& one : untold_) {
    Notice notice;
    notice.name = one.mon_name;
    notice.my_name = one.my_name;
    notice.state = one.state;
    notices.push_back(std::move(notice));
  }
  if (!write_down()) log_warning("{}: cannot be written", storage_->name());
  if (notices.empty()) return;
  log_info("telling {} hosts that this server has restarted, so that they reclaim their locks",
           notices.size());
  auto found = std::make_shared<Found>();
  for (const Notice& notice : notices) {
    if (notice.where.family() == AF_UNSPEC) found->addresses.try_emplace(notice.name);
  }
  if (!found->addresses.empty()) {
    found_ = found;
    std::thread([found] { look_up(found); }).detach();
  }
  caller_.loop().post([this, notices = std::move(notices)]() mutable {
    notices_ = std::move(notices);
    for (Notice& notice : notices_) {
      notice.next = caller_.loop().now();
      notice.until = caller_.loop().now() + kPatience;
      notice.pause = kFirstPause;
    }
    on_time();
  });
}

void StatusMonitor::add_untold(Monitored one) {
  // A restart of this server alone has the host hear of the same state again: by another one it
  // would take away what the machine has locked since.
  const bool is_new = one.state == 0;
  if (is_new) one.state = state_;
  const auto known = std::ranges::find_if(untold_, [&](const Monitored& other) {
    return other.mon_name == one.mon_name && other.my_name == one.my_name;
  });
  if (known == untold_.end()) {
    if (untold_.size() < kMostMonitored) untold_.push_back(std::move(one));
  } else if (is_new) {
    *known = std::move(one);
  }
}

bool StatusMonitor::write_down() {
  const AsServer privileged;
  std::vector<Monitored> all = monitored_;
  all.insert(all.end(), untold_.begin(), untold_.end());
  return storage_->replace(to_text(all)).ok();
}

/// Once for all who were told since the last time. Should the server end before, they are told
/// again, which changes nothing for them.
void StatusMonitor::strike_out_told() {
  if (!std::exchange(some_told_, false)) return;
  std::lock_guard guard(mutex_);
  std::set<std::pair<std::string_view, std::string_view>> told;
  for (const Notice& notice : notices_)
    if (notice.done) told.emplace(notice.name, notice.my_name);
  const auto is_told = [&told](const Monitored& one) {
    return told.contains({one.mon_name, one.my_name});
  };
  if (std::erase_if(untold_, is_told) == 0) return;
  if (!write_down()) log_warning("{}: cannot be written", storage_->name());
}

void StatusMonitor::on_time() {
  const TimePoint now = caller_.loop().now();
  take_found();
  std::size_t under_way = 0;
  for (const Notice& notice : notices_)
    under_way += notice.under_way ? 1 : 0;
  for (std::size_t i = 0; i < notices_.size() && under_way < kMostUnderWay; ++i) {
    Notice& notice = notices_[i];
    if (notice.under_way || notice.done || now < notice.next) continue;
    if (now >= notice.until) {
      log_notice("{} could not be told of the restart: what it had locked is free for others",
                 notice.name.empty() ? notice.where.host_text() : notice.name);
      notice.done = some_told_ = true;
      continue;
    }
    if (notice.where.family() == AF_UNSPEC) continue;
    send(i);
    ++under_way;
  }
  strike_out_told();
  const bool any = std::ranges::any_of(notices_, [](const Notice& n) { return !n.done; });
  if (any) {
    timer_.arm_after(caller_.loop(), kTick);
  } else if (under_way == 0) {
    notices_.clear();
  }
}

void StatusMonitor::send(std::size_t index) {
  Notice& notice = notices_[index];
  notice.under_way = true;
  const HostCalls::Target target{notice.where, {}, xdr::kNsmProgram, xdr::kNsmV1};
  caller_.calls().call(target, number(xdr::nsmproc1::SM_NOTIFY),
                       encoded(xdr::stat_chge{notice.my_name, notice.state}),
                       [this, index](HostCalls::End end, ByteSpan) {
                         Notice& told = notices_[index];
                         told.under_way = false;
                         told.done = end == HostCalls::End::kAnswered;
                         some_told_ |= told.done;
                         told.next = caller_.loop().now() + told.pause;
                         told.pause = std::min(2 * told.pause, kLongestPause);
                       });
}

bool StatusMonitor::monitor(Monitored what) {
  if (!is_plain_name(what.mon_name) || !is_plain_name(what.my_name)) return false;
  what.boot_id = boot_id_;
  std::lock_guard guard(mutex_);
  const auto known =
      std::ranges::find_if(monitored_, [&](const Monitored& one) { return one.same_as(what); });
  if (known != monitored_.end()) {
    *known = std::move(what);
  } else if (monitored_.size() < kMostMonitored) {
    monitored_.push_back(std::move(what));
  } else {
    return false;
  }
  return write_down();
}

void StatusMonitor::unmonitor(const Monitored& what) {
  std::lock_guard guard(mutex_);
  if (std::erase_if(monitored_, [&](const Monitored& one) { return one.same_as(what); }) != 0) {
    write_down();
  }
}

void StatusMonitor::unmonitor_all(std::uint32_t my_prog, std::uint32_t my_vers,
                                  std::uint32_t my_proc) {
  std::lock_guard guard(mutex_);
  const auto gone = std::erase_if(monitored_, [&](const Monitored& one) {
    return one.my_prog == my_prog && one.my_vers == my_vers && one.my_proc == my_proc;
  });
  if (gone != 0) write_down();
}

void StatusMonitor::notified(const SocketAddress& from, std::string_view name, std::int32_t state) {
  if (name != nlm::LockService::kEveryName) locks_.host_restarted(from, name, state);
  std::lock_guard guard(mutex_);
  for (const Monitored& one : monitored_) {
    if (is_about(one, from, name)) pass_on(one, state);
  }
}

/// To the lock manager of this machine that asked for it.
void StatusMonitor::pass_on(const Monitored& to, std::int32_t state) {
  caller_.loop().post([this, to, state] {
    const HostCalls::Target target{loopback(), {}, to.my_prog, to.my_vers};
    caller_.calls().call(target, to.my_proc, encoded(xdr::sm_status{to.mon_name, state, to.priv}),
                         [](HostCalls::End, ByteSpan) {});
  });
}

void StatusMonitor::use_other(Duration ask_again) {
  caller_.loop().post([this, ask_again] { ask_again_ = ask_again; });
  locks_.tell_of_new_hosts([this](const nlm::Host& host) {
    caller_.loop().post([this, host] { ask_other(host, false); });
  });
}

void StatusMonitor::ask_other(const nlm::Host& host, bool again) {
  const std::string address = host.peer.host_text();
  xdr::sm_mon mon;
  mon.id.mon_name = address;
  mon.id.id = {"localhost", xdr::kNlmProgram, xdr::kNlmV4,
               static_cast<std::uint32_t>(xdr::nlmproc4::NLMPROC4_SM_NOTIFY)};
  mon.priv = address_bytes(host.peer);
  const HostCalls::Target target{loopback(), {}, xdr::kNsmProgram, xdr::kNsmV1};
  caller_.calls().call(
      target, number(xdr::nsmproc1::SM_MON), encoded(mon),
      [this, host, address, again](HostCalls::End end, ByteSpan results) {
        xdr::Decoder decoder(results);
        xdr::sm_stat_res res;
        const bool watches = end == HostCalls::End::kAnswered && xdr::decode(decoder, res) &&
                             res.res_stat == xdr::nsm_res::STAT_SUCC;
        if (watches) {
          if (again) log_notice("the status monitor of this machine watches {} now", address);
          return;
        }
        if (!again) {
          log_warning(
              "the status monitor of this machine does not watch {} yet: should that host "
              "restart before it does, its locks stay until nfs-rdma evict",
              address);
        }
        not_watched(host);
      });
}

void StatusMonitor::not_watched(const nlm::Host& host) {
  // Once: it may have been forgotten and have come back meanwhile.
  unwatched_.try_emplace(nlm::host_key(host.peer, host.name), host);
  if (!again_.armed()) again_.arm_after(caller_.loop(), ask_again_);
}

void StatusMonitor::ask_other_again() {
  for (const auto& [key, host] : std::exchange(unwatched_, {})) {
    if (locks_.find(host) != 0) ask_other(host, true);
  }
}

void StatusMonitor::told_by_other(const xdr::sm_status& status) {
  locks_.host_restarted(address_of(status.priv), nlm::LockService::kEveryName, status.state);
}

}  // namespace nfsrdma::nsm
