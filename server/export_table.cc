// SPDX-License-Identifier: Apache-2.0
// Which exports there are and who may use them. See export_table.h; the file systems of an export
// are in export_mounts.cc.
#include "server/export_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <system_error>
#include <thread>

#include "rpcrdma/base/log.h"
#include "rpcrdma/base/path_text.h"
#include "server/export_mounts.h"

namespace nfsrdma {

namespace {

std::int64_t coarse_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec;
}

std::uint64_t hash64(std::string_view kind, std::string_view text) {
  static constexpr unsigned char kFixedKey[crypto_shorthash_KEYBYTES] = {'e', 'x', 'p',
                                                                         'o', 'r', 't'};
  const std::string both = std::string(kind) + std::string(text);
  std::uint8_t out[crypto_shorthash_BYTES];
  crypto_shorthash(out, reinterpret_cast<const unsigned char*>(both.data()), both.size(),
                   kFixedKey);
  std::uint64_t hash = 0;
  std::memcpy(&hash, out, sizeof hash);
  return hash;
}

bool is_by_name(const ExportClient& client) {
  return client.kind == ExportClient::Kind::kHost || client.kind == ExportClient::Kind::kWildcard ||
         client.kind == ExportClient::Kind::kNetgroup;
}

bool is_secure(const ExportClient& client) {
  return client.options.secure;
}

void fill_access(const ExportOptions& options, ExportAccess* access) {
  access->allowed = true;
  access->read_only = options.read_only;
  access->sync = options.sync;
  access->secure = options.secure;
  access->readdirplus = !options.no_readdirplus;
  access->insecure_locks = options.insecure_locks;
  access->acls = !options.no_acl;
  access->nohide = options.nohide;
  access->crossmnt = options.crossmnt;
  access->serves_sys = options.serves_sys;
  access->serves_none = options.serves_none;
  access->none_read_only = options.none_read_only;
  access->referral = options.referral;
  access->locations = options.locations.empty() ? nullptr : &options.locations;
  access->squash = {options.root_squash, options.all_squash, options.anon_uid, options.anon_gid};
}

std::string real_path_of(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  std::string out = resolved == nullptr ? path : resolved;
  std::free(resolved);
  return out;
}

/// What the entry says, with nothing open.
std::unique_ptr<Export> describe_export(const ExportEntry& entry) {
  auto out = std::make_unique<Export>();
  out->path = entry.path;
  out->clients = entry.clients;
  std::stable_sort(out->clients.begin(), out->clients.end(),
                   [](const auto& a, const auto& b) { return a.rank() < b.rank(); });
  for (const ExportClient& client : entry.clients) {
    out->crossmnt |= client.options.crossmnt;
    out->subtree_check |= client.options.subtree_check;
  }
  const std::string fsid = fsid_of(entry);
  out->id = fsid.empty() ? hash64("path:", entry.path) : hash64("fsid:", fsid);
  out->is_root = fsid == "0";
  return out;
}

Result<void> open_export(const ExportEntry& entry, SchemeChoice choice, Export* out) {
  NFSRDMA_TRY(ExportPlace place, open_export_place(entry));
  NFSRDMA_TRY(out->top, open_mount(std::move(place.root), 0, choice));
  out->unmounted = std::move(place.unmounted);
  out->real_path = real_path_of(entry.path);
  const std::string fsid = fsid_of(entry);
  if (!fsid.empty()) {
    std::uint64_t number = 0;
    auto [end, error] = std::from_chars(fsid.data(), fsid.data() + fsid.size(), number);
    const bool is_number = error == std::errc() && end == fsid.data() + fsid.size();
    out->top->fsid = is_number ? number : out->id;
  }
  return {};
}

/// Serves on what was open of the same export before; false: there was none.
bool keep_open(const ExportSnapshot& before, Export* out) {
  const Export* known = before.find(out->id);
  if (known == nullptr || known->path != out->path) return false;
  out->top = known->top;
  out->real_path = known->real_path;
  out->unmounted = known->unmounted;
  return true;
}

/// As one writes it: IPv4 as such, and without an interface.
std::string address_text(const SocketAddress& peer) {
  std::string text = peer.host_text();
  constexpr std::string_view kMapped = "::ffff:";
  if (text.starts_with(kMapped) && text.find('.') != std::string::npos)
    text.erase(0, kMapped.size());
  return text.substr(0, text.find('%'));
}

std::atomic<std::uint64_t> next_instance{1};

}  // namespace

struct ExportTable::Question {
  Asking asking = Asking::kNever;
  /// Takes what was known for what could not be told the last time, and leaves it here to be asked.
  bool passes_over = false;
  std::vector<std::function<void()>> passed_over = {};
};

/// What the name service said, for a minute; what it said last for as long as it does not answer,
/// but no longer than a day: a mounted client is not to lose its files with the name service.
class ExportTable::Names : public std::enable_shared_from_this<Names> {
 public:
  Names(std::unique_ptr<HostNames> source, Seconds clock)
      : source_(std::move(source)), clock_(clock) {}

  /// Does `peer` have a name that `client` means? false with *known = false when that has to be
  /// asked for and may not be.
  bool matches(const ExportClient& client, const SocketAddress& peer, Question& question,
               bool* known) {
    std::vector<std::string> names;
    *known = names_of(peer, question, &names);
    if (!*known) return false;
    if (client.kind == ExportClient::Kind::kNetgroup)
      return in_netgroup(client, hosts_of(peer, names), question, known);
    for (const std::string& name : names) {
      if (client.matches_name(name)) return true;
    }
    if (client.kind != ExportClient::Kind::kHost) return false;
    Answer answer;
    *known =
        lookup("host " + client.text, question, &answer, [this, host = client.text](Answer& fresh) {
          return take(source_->addresses_of(host), &fresh.addresses);
        });
    return std::ranges::any_of(
        answer.addresses, [&](const SocketAddress& address) { return address.same_host(peer); });
  }

  /// The names that belong to `peer`; false: they have to be asked for.
  bool names_of(const SocketAddress& peer, Question& question, std::vector<std::string>* names) {
    Answer answer;
    const bool known =
        lookup("peer " + peer.host_text(), question, &answer,
               [this, peer](Answer& fresh) { return take(source_->names_of(peer), &fresh.names); });
    *names = std::move(answer.names);
    return known;
  }

  void limit(std::size_t most) {
    std::lock_guard lock(mutex_);
    most_ = most;
  }
  void keep_for(std::chrono::seconds lifetime) {
    std::lock_guard lock(mutex_);
    lifetime_ = lifetime.count();
  }
  /// Who still asks then, on a thread of its own, is not listened to, nor does it log any more.
  void end() {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }

 private:
  /// As what `peer` may be a member: by each of its names, by the part of it in front of the first
  /// dot, and by its address.
  static std::vector<std::string> hosts_of(const SocketAddress& peer,
                                           const std::vector<std::string>& names) {
    std::vector<std::string> hosts;
    for (const std::string& name : names) {
      hosts.push_back(name);
      if (name.find('.') != std::string::npos) hosts.push_back(name.substr(0, name.find('.')));
    }
    hosts.push_back(address_text(peer));
    return hosts;
  }

  bool in_netgroup(const ExportClient& client, const std::vector<std::string>& hosts,
                   Question& question, bool* known) {
    const std::string group(client.netgroup());
    for (const std::string& host : hosts) {
      Answer answer;
      *known = lookup(fmt::format("netgroup {} {}", group, host), question, &answer,
                      [this, group, host](Answer& fresh) {
                        return take(source_->in_netgroup(group, host), &fresh.member);
                      });
      if (!*known || answer.member) return answer.member;
    }
    return false;
  }

  static constexpr std::int64_t kLifetime = 60;
  /// For so much longer an answer is good for those who may not ask now.
  static constexpr std::int64_t kWhileAsked = 60;
  /// Of an answer that could not be had anew, and of none at all.
  static constexpr std::int64_t kKeepWhileFailing = 24 * 3600;
  static constexpr std::int64_t kRetry = 10;
  static constexpr std::size_t kMaxAnswers = 4096;
  struct Answer {
    std::int64_t until = 0;
    std::int64_t last_good = 0;  // when it was given
    bool given = false;          // false: the name service did not answer
    bool unanswered = false;     // the last time; what is here is from before
    std::vector<std::string> names;
    std::vector<SocketAddress> addresses;
    bool member = false;  // of a netgroup
  };

  template <typename T>
  static bool take(Result<T> told, T* to) {
    if (!told.ok()) return false;
    *to = std::move(told).value();
    return true;
  }

  /// After a question that was not answered, with the mutex held: the answer from before, if it is
  /// not too old.
  Answer answer_from_before(const std::string& key, std::int64_t now) {
    const auto known = answers_.find(key);
    const bool good = known != answers_.end() && known->second.given &&
                      now - known->second.last_good < kKeepWhileFailing;
    Answer kept = good ? known->second : Answer();
    kept.until = now + (good ? lifetime_ : kRetry);
    return kept;
  }

  /// Or none at all, which matches nobody.
  bool is_good_for_want_of_another(const Answer& old) const {
    return old.unanswered && (!old.given || clock_() - old.last_good < kKeepWhileFailing);
  }

  void warn(const std::string& key) {
    if (!warnings_.allow()) return;
    log_warning(
        "the name service does not answer ({}): clients that exports name by host, wildcard or "
        "netgroup are let in by what it said last, for a day at most, and others are not",
        key);
  }

  /// `ask` is false when there was no answer.
  template <typename Ask>
  bool lookup(const std::string& key, Question& question, Answer* answer, Ask ask) {
    const bool counted = question.asking == Asking::kWhileFewDo;
    {
      std::lock_guard lock(mutex_);
      if (find_locked(key, answer)) return true;
      if (question.asking == Asking::kNever) return false;
      if (const auto old = answers_.find(key); question.passes_over && old != answers_.end() &&
                                               is_good_for_want_of_another(old->second)) {
        *answer = old->second;
        question.passed_over.emplace_back([this, key, ask] { ask_beside(key, ask); });
        return true;
      }
      if (counted) {
        if (!may_ask_locked(key)) return false;
        asked_.insert(key);
      }
    }
    *answer = ask_now(key, counted, ask);
    return true;
  }

  /// On a thread of its own, if a call could ask now.
  template <typename Ask>
  void ask_beside(const std::string& key, Ask ask) {
    std::lock_guard lock(mutex_);
    // It may have been told meanwhile.
    if (Answer fresh; !may_ask_locked(key) || find_locked(key, &fresh)) return;
    asked_.insert(key);
    try {
      std::thread([self = shared_from_this(), key, ask] {
        self->ask_now(key, true, ask);
      }).detach();
    } catch (const std::system_error&) {
      asked_.erase(key);
    }
  }

  /// What it says, which is kept. `counted`: the key is in asked_.
  template <typename Ask>
  Answer ask_now(const std::string& key, bool counted, const Ask& ask) {
    Answer fresh;
    fresh.given = ask(fresh);
    std::lock_guard lock(mutex_);
    if (ended_) return fresh;
    if (counted) asked_.erase(key);
    fresh.last_good = clock_();
    fresh.until = fresh.last_good + lifetime_;
    if (!fresh.given) {
      warn(key);
      fresh = answer_from_before(key, fresh.last_good);
      fresh.unanswered = true;
    }
    if (!answers_.contains(key)) make_room_locked(clock_());
    answers_[key] = fresh;
    return fresh;
  }

  /// For one more answer: those go that are no good any more, then those that are none (of these
  /// there are as many as strangers like while nobody answers), and then the oldest.
  void make_room_locked(std::int64_t now) {
    if (answers_.size() < kMaxAnswers) return;
    std::erase_if(answers_, [now](const auto& one) {
      return one.second.given && now - one.second.last_good >= kKeepWhileFailing;
    });
    if (answers_.size() < kMaxAnswers) return;
    std::erase_if(answers_, [](const auto& one) { return !one.second.given; });
    if (answers_.size() < kMaxAnswers) return;
    answers_.erase(std::ranges::min_element(answers_, {},
                                            [](const auto& one) { return one.second.last_good; }));
  }

  bool may_ask_locked(const std::string& key) const {
    return !asked_.contains(key) && asked_.size() < most_;
  }

  /// A known client does not wait each minute for what most probably is as it was.
  bool find_locked(const std::string& key, Answer* answer) const {
    const auto found = answers_.find(key);
    if (found == answers_.end()) return false;
    const std::int64_t until = found->second.until + (may_ask_locked(key) ? 0 : kWhileAsked);
    if (until < clock_()) return false;
    *answer = found->second;
    return true;
  }

  std::unique_ptr<HostNames> source_;
  Seconds clock_;
  std::mutex mutex_;  // of what follows
  RateLimit warnings_{1, std::chrono::seconds(60)};
  std::map<std::string, Answer> answers_;
  std::set<std::string> asked_;                                 // by or for calls, now
  std::size_t most_ = std::numeric_limits<std::size_t>::max();  // of those
  std::int64_t lifetime_ = kLifetime;
  bool ended_ = false;
};

bool Export::lacks_mount_of(const ExportClient& client) const {
  return !unmounted.empty() && unmounted.contains(mount_wanted_by(client, path));
}

const Export* ExportSnapshot::find(std::uint64_t id) const {
  for (const auto& entry : exports) {
    if (entry->id == id) return entry.get();
  }
  return nullptr;
}

const Export* ExportSnapshot::find_at(dev_t device, ino_t inode, std::size_t nth) const {
  const auto found = by_inode_.find(inode);
  if (found == by_inode_.end()) return nullptr;
  for (const Export* entry : found->second) {
    if (entry->top->device == device && nth-- == 0) return entry;
  }
  return nullptr;
}

const Export* ExportSnapshot::find_path(std::string_view path, std::string_view* rest,
                                        std::size_t shorter_than) const {
  const Export* best = nullptr;
  std::string_view best_top;
  const auto consider = [&](const Export& entry, std::string_view top) {
    if (top.size() >= shorter_than || !lies_in(path, top)) return;
    if (best != nullptr && top.size() <= best_top.size()) return;
    best = &entry;
    best_top = top;
  };
  for (const auto& entry : exports)
    consider(*entry, entry->path);
  // Where an exported symbolic link leads to; an export that is named so itself comes first.
  for (const auto& entry : exports)
    consider(*entry, entry->real_path);
  if (best == nullptr) return nullptr;
  std::string_view below = path.substr(best_top.size());
  while (below.starts_with('/'))
    below.remove_prefix(1);
  *rest = below;
  return best;
}

ExportTable::ExportTable(std::unique_ptr<HostNames> names, SchemeChoice choice, Seconds clock)
    : instance_(next_instance.fetch_add(1)),
      choice_(choice),
      clock_(clock == nullptr ? coarse_seconds : clock),
      snapshot_(std::make_shared<ExportSnapshot>()),
      names_(std::make_shared<Names>(std::move(names), clock_)) {}

ExportTable::~ExportTable() {
  names_->end();
}

void ExportTable::reload(const std::vector<ExportEntry>& entries, ConfigProblems* problems,
                         Keep keep) {
  auto fresh = std::make_shared<ExportSnapshot>();
  std::shared_ptr<const ExportSnapshot> before;
  {
    std::lock_guard lock(mutex_);
    before = snapshot_;
  }
  for (const ExportEntry& entry : entries) {
    std::unique_ptr<Export> opened = describe_export(entry);
    if (const auto done = open_export(entry, choice_, opened.get()); !done.ok()) {
      const bool kept =
          (keep == Keep::kAll || !is_absent(done.error())) && keep_open(*before, opened.get());
      problems->push_back({entry.file, entry.line, 0,
                           fmt::format("{}: {}{}", entry.path, done.error().message(),
                                       kept ? "; what was open before is served on" : "")});
      if (!kept) continue;
    }
    if (const Export* other = fresh->find(opened->id); other != nullptr) {
      problems->push_back({entry.file, entry.line, 0,
                           entry.path + ": " + other->path +
                               " has the same identity: give one of them another fsid="});
      continue;
    }
    opened->choice_ = choice_;
    opened->snapshot = fresh.get();
    fresh->by_inode_[opened->top->root_inode].push_back(opened.get());
    fresh->exports.push_back(std::move(opened));
  }
  std::lock_guard lock(mutex_);
  fresh->generation = generation_.load(std::memory_order_relaxed) + 1;
  snapshot_ = std::move(fresh);
  generation_.fetch_add(1, std::memory_order_release);
}

struct ExportTable::Held {
  std::uint64_t instance = 0;
  std::uint64_t generation = 0;
  std::shared_ptr<const ExportSnapshot> snapshot;

  static Held& of_thread() {
    thread_local Held held;
    return held;
  }
};

void ExportTable::let_go() {
  Held::of_thread() = {};
}

const ExportSnapshot& ExportTable::current() const {
  Held& held = Held::of_thread();
  const std::uint64_t generation = generation_.load(std::memory_order_acquire);
  if (held.instance != instance_ || held.generation != generation || !held.snapshot) {
    std::lock_guard lock(mutex_);
    held = {instance_, snapshot_->generation, snapshot_};
  }
  return *held.snapshot;
}

bool ExportTable::has_good_port(const ServerConnection& connection) {
  // Port numbers say nothing over RDMA (man page): only TCP is asked for a privileged one.
  return is_rdma(connection.transport()) || connection.peer().has_reserved_port();
}

void ExportTable::limit_questions(std::size_t most) {
  names_->limit(most);
}

void ExportTable::keep_answers_for(std::chrono::seconds lifetime) {
  names_->keep_for(lifetime);
}

ExportTable::Verdict ExportTable::judge(const Export& entry, const SocketAddress& peer,
                                        bool good_port, Asking asking, ExportAccess* access,
                                        bool* by_name) const {
  bool decided = false;
  // A call is not to wait for names that nobody could tell of before, but for those it needs.
  Question question{asking, asking == Asking::kWhileFewDo};
  Verdict verdict = go_through(entry, peer, good_port, question, access, by_name, &decided);
  if (verdict != Verdict::kKnown || question.passed_over.empty()) return verdict;
  if (!decided) {
    Question again{asking};
    return go_through(entry, peer, good_port, again, access, by_name, &decided);
  }
  for (const std::function<void()>& ask : question.passed_over)
    ask();
  return verdict;
}

ExportTable::Verdict ExportTable::go_through(const Export& entry, const SocketAddress& peer,
                                             bool good_port, Question& question,
                                             ExportAccess* access, bool* by_name,
                                             bool* decided) const {
  *access = {};
  *by_name = false;
  *decided = true;
  for (auto client = entry.clients.begin(); client != entry.clients.end(); ++client) {
    bool matches;
    if (is_by_name(*client)) {
      // Whichever of the rest it is, its port keeps it out: no name server is to know of that.
      access->wrong_port = !good_port && std::all_of(client, entry.clients.end(), is_secure);
      if (access->wrong_port) return Verdict::kKnown;
      *by_name = true;
      bool known = true;
      matches = names_->matches(*client, peer, question, &known);
      if (!known) return Verdict::kWouldBlock;
    } else {
      matches = client->matches_address(peer);
    }
    if (!matches) continue;
    // Nor does the next one decide in its place.
    if (entry.lacks_mount_of(*client)) return Verdict::kKnown;
    fill_access(client->options, access);
    access->wrong_port = access->secure && !good_port;
    access->allowed = !access->wrong_port;
    return Verdict::kKnown;
  }
  *decided = false;
  return Verdict::kKnown;
}

std::vector<ExportTable::RuleVerdict> ExportTable::explain(const Export& entry,
                                                           const SocketAddress& peer) const {
  std::vector<std::string> names;
  const bool by_name = std::ranges::any_of(entry.clients, is_by_name);
  Question question{Asking::kAlways};
  if (by_name) names_->names_of(peer, question, &names);
  std::string named = names.empty() ? "it has no name that leads back to its address" : "it is";
  for (const std::string& name : names)
    named += (&name == &names.front() ? " " : ", ") + name;
  std::vector<RuleVerdict> out;
  for (const ExportClient& client : entry.clients) {
    RuleVerdict& verdict = out.emplace_back();
    verdict.client = &client;
    verdict.lacks_mount = entry.lacks_mount_of(client);
    if (is_by_name(client)) {
      bool known = true;
      verdict.matches = names_->matches(client, peer, question, &known);
      verdict.why = named;
      if (client.kind == ExportClient::Kind::kNetgroup) {
        verdict.why += verdict.matches ? ", a member" : ", no member";
        if (verdict.matches && names.empty()) verdict.why = "its address is a member";
      } else if (client.kind == ExportClient::Kind::kHost && verdict.matches &&
                 std::ranges::find(names, client.text) == names.end()) {
        verdict.why = "the host has that address";
      }
    } else {
      verdict.matches = client.matches_address(peer);
      verdict.why = client.kind == ExportClient::Kind::kEveryone ? "everyone"
                    : client.is_single_address()
                        ? (verdict.matches ? "that very address" : "another address")
                        : (verdict.matches ? "the address is in it" : "the address is not in it");
    }
  }
  return out;
}

ExportTable::Verdict ExportTable::access(const Export& entry, const SocketAddress& peer,
                                         bool may_block, ExportAccess* access) const {
  bool by_name;
  return judge(entry, peer, true, may_block ? Asking::kAlways : Asking::kNever, access, &by_name);
}

ExportTable::Verdict ExportTable::access_by_any_port(const Export& entry,
                                                     const ServerConnection& connection,
                                                     bool may_block, ExportAccess* access) const {
  bool by_name;
  return judge(entry, connection.peer(), true, may_block ? Asking::kWhileFewDo : Asking::kNever,
               access, &by_name);
}

ExportTable::Verdict ExportTable::access(const Export& entry, const ServerConnection& connection,
                                         bool may_block, ExportAccess* access) const {
  struct Remembered {
    std::uint64_t instance = 0;
    std::uint64_t generation = 0;
    std::uint64_t connection = 0;
    std::uint64_t export_id = 0;
    std::int64_t until = 0;  // 0: as long as the exports are the same
    ExportAccess access;
  };
  thread_local std::array<Remembered, 64> memory;
  // That of the entry, which may be of exports that were replaced meanwhile.
  const std::uint64_t generation = entry.snapshot->generation;
  Remembered& slot = memory[(connection.id * 7 + (entry.id >> 7)) % memory.size()];
  if (connection.id != 0 && slot.instance == instance_ && slot.generation == generation &&
      slot.connection == connection.id && slot.export_id == entry.id &&
      (slot.until == 0 || slot.until >= coarse_seconds())) {
    *access = slot.access;
    return Verdict::kKnown;
  }
  constexpr std::int64_t kRemember = 60;
  bool by_name;
  const Asking asking = may_block ? Asking::kWhileFewDo : Asking::kNever;
  const Verdict verdict =
      judge(entry, connection.peer(), has_good_port(connection), asking, access, &by_name);
  if (verdict == Verdict::kWouldBlock) return verdict;
  slot = {
      instance_, generation, connection.id, entry.id, by_name ? coarse_seconds() + kRemember : 0,
      *access};
  return verdict;
}

}  // namespace nfsrdma
