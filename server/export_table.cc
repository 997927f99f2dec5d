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
#include <map>

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

/// The fsid= of an entry, if any of its clients has one (exports(5) wants them all alike).
std::string fsid_option(const ExportEntry& entry) {
  for (const ExportClient& client : entry.clients) {
    if (!client.options.fsid.empty()) {
      return client.options.fsid == "root" ? "0" : client.options.fsid;
    }
  }
  return {};
}

bool is_by_name(const ExportClient& client) {
  return client.kind == ExportClient::Kind::kHost || client.kind == ExportClient::Kind::kWildcard ||
         client.kind == ExportClient::Kind::kNetgroup;
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

Result<std::unique_ptr<Export>> open_export(const ExportEntry& entry, SchemeChoice choice) {
  auto out = std::make_unique<Export>();
  out->path = entry.path;
  out->clients = entry.clients;
  std::stable_sort(out->clients.begin(), out->clients.end(),
                   [](const auto& a, const auto& b) { return a.rank() < b.rank(); });
  for (const ExportClient& client : entry.clients) {
    out->crossmnt |= client.options.crossmnt;
    out->subtree_check |= client.options.subtree_check;
  }
  NFSRDMA_TRY(UniqueFd root, open_export_place(entry));
  NFSRDMA_TRY(out->top, open_mount(std::move(root), 0, choice));
  out->real_path = real_path_of(entry.path);
  const std::string fsid = fsid_option(entry);
  out->id = fsid.empty() ? hash64("path:", entry.path) : hash64("fsid:", fsid);
  out->is_root = fsid == "0";
  if (!fsid.empty()) {
    std::uint64_t number = 0;
    auto [end, error] = std::from_chars(fsid.data(), fsid.data() + fsid.size(), number);
    const bool is_number = error == std::errc() && end == fsid.data() + fsid.size();
    out->top->fsid = is_number ? number : out->id;
  }
  return out;
}

std::atomic<std::uint64_t> next_instance{1};

}  // namespace

/// What the name service said, for a minute.
class ExportTable::Names {
 public:
  explicit Names(std::unique_ptr<HostNames> source) : source_(std::move(source)) {}

  /// Does `peer` have a name that `client` means? false with *known = false when that has to be
  /// asked for and may not be.
  bool matches(const ExportClient& client, const SocketAddress& peer, bool may_block, bool* known) {
    std::vector<std::string> names;
    *known = names_of(peer, may_block, &names);
    if (!*known) return false;
    if (client.kind == ExportClient::Kind::kNetgroup)
      return in_netgroup(client, names, may_block, known);
    for (const std::string& name : names) {
      if (client.matches_name(name)) return true;
    }
    if (client.kind != ExportClient::Kind::kHost) return false;
    Answer answer;
    *known = lookup("host " + client.text, may_block, &answer,
                    [&](Answer& fresh) { fresh.addresses = source_->addresses_of(client.text); });
    return std::ranges::any_of(
        answer.addresses, [&](const SocketAddress& address) { return address.same_host(peer); });
  }

  /// The names that belong to `peer`; false: they have to be asked for.
  bool names_of(const SocketAddress& peer, bool may_block, std::vector<std::string>* names) {
    Answer answer;
    const bool known = lookup("peer " + peer.host_text(), may_block, &answer,
                              [&](Answer& fresh) { fresh.names = source_->names_of(peer); });
    *names = std::move(answer.names);
    return known;
  }

 private:
  /// By each of its names, and by the part of it in front of the first dot.
  bool in_netgroup(const ExportClient& client, const std::vector<std::string>& names,
                   bool may_block, bool* known) {
    const std::string group(client.netgroup());
    for (const std::string& name : names) {
      for (std::size_t length : {name.size(), std::min(name.size(), name.find('.'))}) {
        const std::string host = name.substr(0, length);
        Answer answer;
        *known = lookup(fmt::format("netgroup {} {}", group, host), may_block, &answer,
                        [&](Answer& fresh) { fresh.member = source_->in_netgroup(group, host); });
        if (!*known || answer.member) return answer.member;
      }
    }
    return false;
  }

  static constexpr std::int64_t kLifetime = 60;
  static constexpr std::size_t kMaxAnswers = 4096;
  struct Answer {
    std::int64_t until = 0;
    std::vector<std::string> names;
    std::vector<SocketAddress> addresses;
    bool member = false;  // of a netgroup
  };

  template <typename Ask>
  bool lookup(const std::string& key, bool may_block, Answer* answer, Ask ask) {
    const std::int64_t now = coarse_seconds();
    {
      std::lock_guard lock(mutex_);
      auto found = answers_.find(key);
      if (found != answers_.end() && found->second.until >= now) {
        *answer = found->second;
        return true;
      }
    }
    if (!may_block) return false;
    Answer fresh;
    ask(fresh);
    fresh.until = coarse_seconds() + kLifetime;
    *answer = fresh;
    std::lock_guard lock(mutex_);
    if (answers_.size() >= kMaxAnswers) answers_.clear();
    answers_[key] = std::move(fresh);
    return true;
  }

  std::unique_ptr<HostNames> source_;
  std::mutex mutex_;
  std::map<std::string, Answer> answers_;
};

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

const Export* ExportSnapshot::find_path(std::string_view path, std::string_view* rest) const {
  const Export* best = nullptr;
  for (const auto& entry : exports) {
    const std::string_view top = entry->path;
    const bool inside =
        top == "/" || path == top ||
        (path.size() > top.size() && path.starts_with(top) && path[top.size()] == '/');
    if (inside && (best == nullptr || top.size() > best->path.size())) best = entry.get();
  }
  if (best == nullptr) return nullptr;
  std::string_view below = path.substr(best->path.size());
  while (below.starts_with('/'))
    below.remove_prefix(1);
  *rest = below;
  return best;
}

ExportTable::ExportTable(std::unique_ptr<HostNames> names, SchemeChoice choice)
    : instance_(next_instance.fetch_add(1)),
      choice_(choice),
      snapshot_(std::make_shared<ExportSnapshot>()),
      names_(std::make_unique<Names>(std::move(names))) {}

ExportTable::~ExportTable() = default;

void ExportTable::reload(const std::vector<ExportEntry>& entries, ConfigProblems* problems) {
  auto fresh = std::make_shared<ExportSnapshot>();
  for (const ExportEntry& entry : entries) {
    auto opened = open_export(entry, choice_);
    if (!opened.ok()) {
      problems->push_back(
          {entry.file, entry.line, 0, entry.path + ": " + opened.error().message()});
      continue;
    }
    if (const Export* other = fresh->find((*opened)->id); other != nullptr) {
      problems->push_back({entry.file, entry.line, 0,
                           entry.path + ": " + other->path +
                               " has the same identity: give one of them another fsid="});
      continue;
    }
    (*opened)->choice_ = choice_;
    (*opened)->snapshot = fresh.get();
    fresh->by_inode_[(*opened)->top->root_inode].push_back(opened->get());
    fresh->exports.push_back(std::move(*opened));
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

ExportTable::Verdict ExportTable::judge(const Export& entry, const SocketAddress& peer,
                                        bool may_block, ExportAccess* access, bool* by_name) const {
  *access = {};
  *by_name = false;
  for (const ExportClient& client : entry.clients) {
    bool matches;
    if (is_by_name(client)) {
      *by_name = true;
      bool known = true;
      matches = names_->matches(client, peer, may_block, &known);
      if (!known) return Verdict::kWouldBlock;
    } else {
      matches = client.matches_address(peer);
    }
    if (matches) {
      fill_access(client.options, access);
      return Verdict::kKnown;
    }
  }
  return Verdict::kKnown;
}

std::vector<ExportTable::RuleVerdict> ExportTable::explain(const Export& entry,
                                                           const SocketAddress& peer) const {
  std::vector<std::string> names;
  const bool by_name = std::ranges::any_of(entry.clients, is_by_name);
  if (by_name) names_->names_of(peer, true, &names);
  std::string named = names.empty() ? "it has no name that leads back to its address" : "it is";
  for (const std::string& name : names)
    named += (&name == &names.front() ? " " : ", ") + name;
  std::vector<RuleVerdict> out;
  for (const ExportClient& client : entry.clients) {
    RuleVerdict& verdict = out.emplace_back();
    verdict.client = &client;
    if (is_by_name(client)) {
      bool known = true;
      verdict.matches = names_->matches(client, peer, true, &known);
      verdict.why = named;
      if (client.kind == ExportClient::Kind::kNetgroup) {
        verdict.why += verdict.matches ? ", a member" : ", no member";
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
  return judge(entry, peer, may_block, access, &by_name);
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
  const Verdict verdict = judge(entry, connection.peer(), may_block, access, &by_name);
  if (verdict == Verdict::kWouldBlock) return verdict;
  // Port numbers say nothing over RDMA (man page): only TCP is asked for a privileged one.
  if (access->secure && !is_rdma(connection.transport()) &&
      !connection.peer().has_reserved_port()) {
    access->allowed = false;
  }
  slot = {
      instance_, generation, connection.id, entry.id, by_name ? coarse_seconds() + kRemember : 0,
      *access};
  return verdict;
}

}  // namespace nfsrdma
