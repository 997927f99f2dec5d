// SPDX-License-Identifier: Apache-2.0
// Records of clients. See client_records.h.
//
// The log: a line of magic, 16 random bytes (the key of the checksums, so that no client can choose
// an owner string that looks like records), then records of
//   u8 type, u8 zero, be16 length of the body, 8 bytes checksum, body
// The checksum is SipHash-2-4 over the record's place in the file (be64), its first four bytes and
// its body. Types:
//   B  be32 number of the life, be32 count of records that follow at once
//   P  owner: may reclaim in this life
//   A  owner: has state in this life
//   R  owner: has none, and may not reclaim
//   L  owner, of a P or A before: has lost a delegation in this life
//   K  owner, of a P or A before: had lost one before, and may not reclaim any in this life
//   G  the grace period is over: all P that have not become A are gone, and all K
// The file is written anew, aside, at each start and when it has grown: B and what it counts (with
// P and A the L and K of these) are
// there as a whole or not at all. Behind them records are appended one by one, each synced before
// the next. So only the very last record may be incomplete; it was never acknowledged and is
// ignored. Whatever else does not fit is damage.
#include "server/nfs4/client_records.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <utility>

#include "rpcrdma/base/bytes.h"

namespace nfsrdma::nfs4 {

namespace {

constexpr std::string_view kMagicAnyVersion = "nfs-rdma nfs4 clients ";
constexpr std::string_view kMagic = "nfs-rdma nfs4 clients 1\n";
constexpr std::size_t kKey = crypto_shorthash_KEYBYTES;
constexpr std::size_t kChecksum = crypto_shorthash_BYTES;
constexpr std::size_t kHead = 4 + kChecksum;
constexpr std::size_t kMaxRecord = kHead + ClientRecords::kMaxOwner;
static_assert(kKey == 16 && kChecksum == 8);

// A log below this is not worth the trouble of a new one.
constexpr std::size_t kSmallLog = 64 << 10;
// A clock that says more than this (the year 2097) is wrong; taking it would use up the numbers.
constexpr std::uint64_t kLastPlausibleClock = 0xf0000000;

void append_be(std::string* out, std::uint64_t value, int bytes) {
  while (bytes-- > 0)
    out->push_back(static_cast<char>(value >> (8 * bytes)));
}

std::string checksum(std::string_view key, std::size_t place, std::string_view head,
                     std::string_view body) {
  std::string covered;
  append_be(&covered, place, 8);
  covered.append(head).append(body);
  std::string out(kChecksum, '\0');
  crypto_shorthash(reinterpret_cast<unsigned char*>(out.data()),
                   reinterpret_cast<const unsigned char*>(covered.data()), covered.size(),
                   reinterpret_cast<const unsigned char*>(key.data()));
  return out;
}

std::string encode_record(std::string_view key, std::size_t place, char type,
                          std::string_view body) {
  std::string out;
  out.push_back(type);
  out.push_back('\0');
  append_be(&out, body.size(), 2);
  out += checksum(key, place, out, body);
  return out.append(body);
}

struct Record {
  char type = 0;
  std::string_view body;
};

/// The record that begins at `place`; false when none does.
bool decode_record(std::string_view file, std::string_view key, std::size_t place, Record* record) {
  if (file.size() - place < kHead) return false;
  const std::string_view head = file.substr(place, 4);
  const std::size_t length = load_be16(as_bytes(head).data() + 2);
  if (length > ClientRecords::kMaxOwner || file.size() - place - kHead < length) return false;
  record->type = head[0];
  record->body = file.substr(place + kHead, length);
  return checksum(key, place, head, record->body) == file.substr(place + 4, kChecksum);
}

/// The owners of `all`, or of those the ones of which `which` holds.
template <typename Owners, typename Which>
std::set<std::string> names_of(const Owners& all, Which which) {
  std::set<std::string> out;
  for (const auto& [owner, lost] : all) {
    if (which(lost)) out.insert(owner);
  }
  return out;
}

}  // namespace

ClientRecords::Lost* ClientRecords::Contents::find(std::string_view owner) {
  for (Owners* owners : {&current, &previous}) {
    if (const auto found = owners->find(owner); found != owners->end()) return &found->second;
  }
  return nullptr;
}

void ClientRecords::Contents::end_grace() {
  previous.clear();
  for (auto& [owner, lost] : current)
    lost.before = false;
}

/// Reads a log. What is wrong with it is a phrase for people, or null.
class ClientRecords::Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  const char* read(Contents* out) {
    if (!file_.starts_with(kMagic)) {
      return file_.starts_with(kMagicAnyVersion) ? "written by a newer version of nfs-rdmad"
                                                 : "not a log of NFSv4 clients";
    }
    if (file_.size() < kMagic.size() + kKey) return "cut short";
    key_ = file_.substr(kMagic.size(), kKey);
    place_ = kMagic.size() + kKey;
    if (const char* wrong = read_beginning(out)) return wrong;
    Record record;
    while (place_ < file_.size()) {
      if (!decode_record(file_, key_, place_, &record)) return judge_end();
      if (const char* wrong = apply(record, out)) return wrong;
      place_ += kHead + record.body.size();
    }
    return nullptr;
  }

 private:
  /// B and the records that it counts: written as a whole, so they are all there.
  const char* read_beginning(Contents* out) {
    Record record;
    if (!decode_record(file_, key_, place_, &record)) return "damaged";
    if (record.type != 'B' || record.body.size() != 8) return "damaged";
    const std::byte* body = as_bytes(record.body).data();
    out->boot = load_be32(body);
    place_ += kHead + record.body.size();
    for (std::uint32_t left = load_be32(body + 4); left > 0; --left) {
      if (!decode_record(file_, key_, place_, &record)) return "damaged";
      if (std::string_view("PALK").find(record.type) == std::string_view::npos) return "damaged";
      if (const char* wrong = apply(record, out)) return wrong;
      place_ += kHead + record.body.size();
    }
    return nullptr;
  }

  static const char* apply(const Record& record, Contents* out) {
    switch (record.type) {
      case 'P':
        out->previous.emplace(record.body, Lost());
        return nullptr;
      case 'A': {
        const Lost* known = out->find(record.body);
        const Lost lost = known == nullptr ? Lost() : *known;
        forget(record.body, &out->previous);
        out->current.emplace(record.body, lost);
        return nullptr;
      }
      case 'R':
        forget(record.body, &out->previous);
        forget(record.body, &out->current);
        return nullptr;
      case 'L':
      case 'K':
        if (Lost* lost = out->find(record.body)) {
          (record.type == 'L' ? lost->now : lost->before) = true;
        }
        return nullptr;
      case 'G':
        out->end_grace();
        return nullptr;
      default:
        return "written by a newer version of nfs-rdmad";
    }
  }

  static void forget(std::string_view owner, Owners* from) {
    if (const auto found = from->find(owner); found != from->end()) from->erase(found);
  }

  /// What is left is no record. The one that was being written when the server ended, or damage?
  const char* judge_end() const {
    if (file_.size() - place_ > kMaxRecord) return "damaged";
    Record record;
    for (std::size_t at = place_ + 1; at < file_.size(); ++at) {
      if (decode_record(file_, key_, at, &record)) return "damaged";
    }
    log_info("NFSv4 clients: a record that was never completed is ignored");
    return nullptr;
  }

  std::string_view file_;
  std::string_view key_;
  std::size_t place_ = 0;
};

std::unique_ptr<ClientRecords> ClientRecords::open(const std::string& state_dir,
                                                   std::uint64_t clock, std::string* why) {
  auto storage = FileRecordStorage::open(state_dir + "/nfs4-clients", why);
  if (storage == nullptr) return nullptr;
  return open(std::move(storage), clock, why);
}

std::unique_ptr<ClientRecords> ClientRecords::open(std::unique_ptr<RecordStorage> storage,
                                                   std::uint64_t clock, std::string* why) {
  if (sodium_init() < 0) {
    *why = "libsodium does not start";
    return nullptr;
  }
  auto file = storage->read();
  if (!file.ok()) {
    *why = fmt::format("{}: {}", storage->name(), file.error().message());
    return nullptr;
  }
  Contents contents;
  if (file->has_value()) {
    if (const char* wrong = Reader(**file).read(&contents)) {
      *why = fmt::format(
          "{}: {}; to start all the same, move it away: NFSv4 clients then lose the locks and open "
          "files that they had before this start",
          storage->name(), wrong);
      return nullptr;
    }
  }
  contents.previous.merge(contents.current);
  contents.current.clear();
  for (auto& [owner, lost] : contents.previous)
    lost = {lost.before || lost.now, false};
  if (++contents.boot == 0) contents.boot = 1;
  if (clock <= kLastPlausibleClock && clock > contents.boot) {
    contents.boot = static_cast<std::uint32_t>(clock);
  }
  std::unique_ptr<ClientRecords> records(
      new ClientRecords(std::move(storage), std::move(contents)));
  if (auto written = records->rewrite(); !written.ok()) {
    *why = fmt::format("{}: {}", records->storage_->name(), written.error().message());
    return nullptr;
  }
  return records;
}

ClientRecords::ClientRecords(std::unique_ptr<RecordStorage> storage, Contents contents)
    : storage_(std::move(storage)),
      boot_(contents.boot),
      before_(names_of(contents.previous, [](const Lost&) { return true; })),
      lost_before_(names_of(contents.previous, [](const Lost& lost) { return lost.before; })),
      contents_(std::move(contents)) {}

Result<void> ClientRecords::rewrite() {
  std::string key(kKey, '\0');
  randombytes_buf(key.data(), key.size());
  std::string file(kMagic);
  file += key;
  std::string begin;
  append_be(&begin, contents_.boot, 4);
  std::string records;
  std::size_t count = 0;
  const std::size_t place = file.size() + kHead + 8;  // behind B
  const auto append = [&](char type, std::string_view owner) {
    records += encode_record(key, place + records.size(), type, owner);
    ++count;
  };
  for (const auto& [type, owners] :
       {std::pair('P', &contents_.previous), std::pair('A', &contents_.current)}) {
    for (const auto& [owner, lost] : *owners) {
      append(type, owner);
      if (lost.now) append('L', owner);
      if (lost.before) append('K', owner);
    }
  }
  append_be(&begin, count, 4);
  file += encode_record(key, file.size(), 'B', begin);
  file += records;
  must_rewrite_ = true;
  NFSRDMA_CHECK_OK(storage_->replace(file));
  must_rewrite_ = false;
  key_ = std::move(key);
  size_ = file.size();
  compact_ = 2 * size_ + kSmallLog;
  return {};
}

Result<void> ClientRecords::commit(char type, std::string_view owner) {
  if (!must_rewrite_ && size_ < compact_) {
    const std::string record = encode_record(key_, size_, type, owner);
    auto appended = storage_->append(record);
    if (appended.ok()) {
      size_ += record.size();
      return {};
    }
    if (complaints_.allow()) {
      log_warning("{}: {}: writing a new one", storage_->name(), appended.error().message());
    }
  }
  // Before anything else is appended: behind a record that is not whole nothing would be found.
  auto written = rewrite();
  if (!written.ok() && complaints_.allow()) {
    log_error("{}: {}", storage_->name(), written.error().message());
  }
  return written;
}

Result<void> ClientRecords::add(std::string_view owner) {
  if (owner.size() > kMaxOwner) return Error{Errc::kInvalid, 0, "the owner string is too long"};
  std::lock_guard lock(mutex_);
  const auto [added, fresh] = contents_.current.emplace(owner, Lost());
  if (!fresh) return {};
  auto reclaims = contents_.previous.find(owner);
  Owners::node_type kept;
  if (reclaims != contents_.previous.end()) {
    added->second = reclaims->second;
    kept = contents_.previous.extract(reclaims);
  }
  auto done = commit('A', owner);
  if (!done.ok()) {
    contents_.current.erase(added);
    if (!kept.empty()) contents_.previous.insert(std::move(kept));
  }
  return done;
}

Result<void> ClientRecords::remove(std::string_view owner) {
  std::lock_guard lock(mutex_);
  // In one of the two at most.
  auto* set = &contents_.current;
  auto found = set->find(owner);
  if (found == set->end()) {
    set = &contents_.previous;
    found = set->find(owner);
    if (found == set->end()) return {};
  }
  auto kept = set->extract(found);
  auto done = commit('R', kept.key());
  if (!done.ok()) set->insert(std::move(kept));
  return done;
}

Result<void> ClientRecords::lose_delegation(std::string_view owner) {
  std::lock_guard lock(mutex_);
  Lost* lost = contents_.find(owner);
  if (lost == nullptr || lost->now) return {};
  lost->now = true;
  auto done = commit('L', owner);
  if (!done.ok()) lost->now = false;
  return done;
}

Result<void> ClientRecords::end_grace() {
  std::lock_guard lock(mutex_);
  const auto lost_before = [](const auto& one) { return one.second.before; };
  if (contents_.previous.empty() && std::ranges::none_of(contents_.current, lost_before)) return {};
  Contents kept = contents_;
  contents_.end_grace();
  auto done = commit('G', {});
  if (!done.ok()) contents_ = std::move(kept);
  return done;
}

std::size_t ClientRecords::size() const {
  std::lock_guard lock(mutex_);
  return contents_.current.size();
}

}  // namespace nfsrdma::nfs4
