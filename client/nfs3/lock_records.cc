// SPDX-License-Identifier: Apache-2.0
#include "client/nfs3/lock_records.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>

#include "config/default_paths.h"
#include "rpcrdma/base/log.h"

namespace nfsrdma::nfs3 {
namespace {

constexpr std::string_view kFirstLine = "nfs-rdma locks 1";
constexpr const char* kUnfinished = ".new-";
/// Somebody who makes a file has long been done with it.
constexpr std::time_t kUnfinishedFor = 3600;
/// Lines of owners that are gone are left until they are so many.
constexpr std::size_t kBytesOfTheGone = 16 << 10;
constexpr std::size_t kBytesBeforeAnew = 1 << 20;
constexpr std::size_t kMostBytes = 64 << 20;  // of a file that is read

std::string hex(ByteSpan bytes) {
  std::string text;
  for (const std::byte byte : bytes)
    text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

/// All of `text` as a number.
template <typename T>
bool number(std::string_view text, T* out, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::string_view next_word(std::string_view& line, char separator = ' ') {
  const std::size_t end = std::min(line.find(separator), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

bool parse_handle(std::string_view text, FileHandle* handle) {
  std::array<std::byte, FileHandle::kMaxBytes> bytes;
  if (text.size() % 2 != 0 || text.size() / 2 > bytes.size()) return false;
  for (std::size_t i = 0; i < text.size() / 2; ++i) {
    std::uint8_t value = 0;
    if (!number(text.substr(2 * i, 2), &value, 16)) return false;
    bytes[i] = std::byte{value};
  }
  *handle = FileHandle(ByteSpan(bytes).first(text.size() / 2));
  return !handle->empty();
}

bool parse_owner(std::string_view line, DeadRecord::Owner* owner) {
  if (!number(next_word(line), &owner->svid)) return false;
  if (!number(next_word(line), &owner->identity.uid)) return false;
  std::string_view groups = next_word(line);
  if (!number(next_word(groups, ','), &owner->identity.gid)) return false;
  std::vector<std::uint32_t> rest;
  while (!groups.empty()) {
    if (!number(next_word(groups, ','), &rest.emplace_back())) return false;
  }
  owner->identity.set_groups(rest);
  return parse_handle(line, &owner->file);
}

std::string head_of(const RecordedServer& server, const LockCaller& caller) {
  std::string text = std::string(kFirstLine) + "\n";
  for (const std::string& address : server.addresses)
    text += fmt::format("server {} {} {}\n", address, server.rdma_port, server.tcp_port);
  return text + fmt::format("caller {:016x} {}\n", caller.id, caller.name);
}

std::string line_of(std::uint32_t svid, const AuthSys& identity, const FileHandle& file) {
  std::string line = fmt::format("lock {} {} {}", svid, identity.uid, identity.gid);
  for (std::uint32_t i = 0; i < identity.group_count; ++i)
    line += fmt::format(",{}", identity.groups[i]);
  return line + " " + hex(file.bytes()) + "\n";
}

std::string key_of(std::uint32_t svid, const FileHandle& file) {
  std::string key(reinterpret_cast<const char*>(&svid), sizeof svid);
  key += as_text(file.bytes());
  return key;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool read_all(int fd, std::string* text) {
  char piece[4096];
  for (;;) {
    const ssize_t n = ::read(fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0;
    text->append(piece, static_cast<std::size_t>(n));
    if (text->size() > kMostBytes) return false;
  }
}

bool sync_directory(const std::string& directory) {
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd && ::fsync(fd.get()) == 0;
}

/// What a crash in the middle of making one has left behind.
void remove_unfinished(const std::string& path) {
  struct stat status {};
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd || ::fstat(fd.get(), &status) != 0) return;
  if (std::time(nullptr) - status.st_mtime < kUnfinishedFor) return;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
}

}  // namespace

RecordedServer RecordedServer::of(const MountSettings& settings) {
  RecordedServer server;
  const bool found = !settings.addresses_of_host.empty();
  for (const SocketAddress& address : found ? settings.addresses_of_host : settings.addresses)
    server.addresses.push_back(address.host_text());
  // Only those that this mount may use: another server of that host may have the others.
  if (settings.proto != ProtoChoice::kTcp) server.rdma_port = settings.rdma_port;
  if (settings.proto != ProtoChoice::kRdma) server.tcp_port = settings.tcp_port;
  return server;
}

bool RecordedServer::may_be(const RecordedServer& other) const {
  const bool by_rdma = rdma_port != 0 && rdma_port == other.rdma_port;
  const bool by_tcp = tcp_port != 0 && tcp_port == other.tcp_port;
  if (!by_rdma && !by_tcp) return false;
  return std::find_first_of(addresses.begin(), addresses.end(), other.addresses.begin(),
                            other.addresses.end()) != addresses.end();
}

/// The file is complete, and locked, before it has a name that others look at.
struct LockRecords::Making {
  std::string directory;
  std::string name;
  std::string text;
  bool sync = true;
  LockRecords* owner = nullptr;  // null: gone
  Occasion over;
  UniqueFd fd;
  int error = 0;

  std::string path() const { return directory + "/" + name; }
  void run() {
    if (make()) return;
    error = errno != 0 ? errno : EIO;
    fd.reset();
  }
  bool make() {
    const std::string parent = directory.substr(0, directory.rfind('/'));
    if (!parent.empty() && !make_directories(parent, 0700)) return false;
    if (!make_directories(directory, 0700)) return false;
    const std::string unfinished = directory + "/" + kUnfinished + name;
    constexpr int kFlags = O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    fd.reset(::open(unfinished.c_str(), kFlags, 0600));
    if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return false;
    if (!write_all(fd.get(), text) || (sync && ::fdatasync(fd.get()) != 0) ||
        ::rename(unfinished.c_str(), path().c_str()) != 0) {
      const int why = errno;
      ::unlink(unfinished.c_str());
      errno = why;
      return false;
    }
    if (sync) static_cast<void>(sync_directory(directory));
    return true;
  }
};

LockRecords::LockRecords(ClientEnvironment& environment, std::string directory,
                         RecordedServer server, LockCaller caller)
    : environment_(environment),
      directory_(std::move(directory)),
      caller_(std::move(caller)),
      head_(head_of(server, caller_)) {}

LockRecords::~LockRecords() {
  if (making_ != nullptr) making_->owner = nullptr;
  if (alive_.empty()) remove();
}

Task<void> LockRecords::begin(CancelToken* cancel) {
  if (state_ == State::kNone) {
    state_ = State::kMaking;
    making_ = std::make_shared<Making>();
    making_->directory = directory_;
    making_->name = fmt::format("{:016x}-{}", caller_.id, ++generation_);
    making_->text = head_;
    making_->owner = this;
    environment_.run_apart([making = making_] { making->run(); },
                           [making = making_] {
                             if (making->owner != nullptr) making->owner->made(*making);
                             making->over.come();
                           });
  }
  const std::shared_ptr<Making> making = making_;
  if (making == nullptr) co_return;
  [[maybe_unused]] const bool over = co_await making->over.wait(cancel);
}

void LockRecords::made(Making& making) {
  making_.reset();
  if (making.error != 0) return failed(making.error);
  take(making);
  for (const auto& [key, line] : alive_) {
    if (state_ == State::kThere) write(line);
  }
}

void LockRecords::take(Making& made) {
  state_ = State::kThere;
  fd_ = std::move(made.fd);
  path_ = made.path();
  bytes_ = made.text.size();
}

void LockRecords::failed(int number) {
  state_ = State::kFailed;
  log_notice(
      "NFSv3: {}: {}: if this program dies, the server keeps the locks that it has until it is "
      "told "
      "otherwise",
      directory_, std::strerror(number));
}

void LockRecords::write(std::string_view text) {
  if (!write_all(fd_.get(), text)) return failed(errno);
  bytes_ += text.size();
}

void LockRecords::note(std::uint32_t svid, const AuthSys& identity, const FileHandle& file) {
  const auto [line, is_new] = alive_.try_emplace(key_of(svid, file));
  if (!is_new) return;
  line->second = line_of(svid, identity, file);
  if (state_ != State::kThere) return;
  write(line->second);
  if (bytes_ > kBytesBeforeAnew) begin_anew();
}

void LockRecords::forget(std::uint32_t svid, const FileHandle& file) {
  alive_.erase(key_of(svid, file));
  if (state_ != State::kThere || !alive_.empty() || bytes_ < kBytesOfTheGone) return;
  if (::ftruncate(fd_.get(), static_cast<off_t>(head_.size())) == 0) bytes_ = head_.size();
}

void LockRecords::begin_anew() {
  std::size_t wanted = head_.size();
  for (const auto& [key, line] : alive_)
    wanted += line.size();
  if (wanted > bytes_ / 2) return;
  Making next;
  next.directory = directory_;
  next.name = fmt::format("{:016x}-{}", caller_.id, ++generation_);
  next.text = head_;
  for (const auto& [key, line] : alive_)
    next.text += line;
  next.sync = false;
  next.run();
  if (next.error != 0) return;  // the old one goes on
  ::unlink(path_.c_str());
  take(next);
}

void LockRecords::remove() {
  if (!path_.empty()) ::unlink(path_.c_str());
  path_.clear();
  fd_.reset();
  state_ = State::kNone;
}

// --- of others ---

bool parse_lock_record(std::string_view text, DeadRecord* record) {
  bool has_caller = false;
  for (bool first = true; !text.empty(); first = false) {
    // The end of a line that a machine's crash has cut off is not to be taken for a whole one.
    if (text.find('\n') == std::string_view::npos) break;
    std::string_view line = next_word(text, '\n');
    if (first && line != kFirstLine) return false;
    const std::string_view what = next_word(line);
    if (what == "server") {
      record->server.addresses.emplace_back(next_word(line));
      if (!number(next_word(line), &record->server.rdma_port)) return false;
      if (!number(line, &record->server.tcp_port)) return false;
    } else if (what == "caller") {
      if (!number(next_word(line), &record->caller.id, 16)) return false;
      record->caller.name = line;
      has_caller = !line.empty() && line.size() <= xdr::kNlmMaxName;
    } else if (what == "lock") {
      DeadRecord::Owner owner;
      // A hole where a crash has lost the middle; the rest counts.
      if (parse_owner(line, &owner)) record->owners.push_back(owner);
    }
  }
  return has_caller;
}

namespace {

bool read_record(DeadRecord* record) {
  std::string text;
  if (::lseek(record->fd.get(), 0, SEEK_SET) != 0 || !read_all(record->fd.get(), &text)) {
    return false;
  }
  record->server = {};
  record->owners.clear();
  return parse_lock_record(text, record);
}

}  // namespace

void DeadRecord::remove() {
  ::unlink(path.c_str());
}

std::vector<DeadRecord> dead_records(const std::string& directory, const RecordedServer& server) {
  std::vector<DeadRecord> found;
  DIR* entries = ::opendir(directory.c_str());
  if (entries == nullptr) return found;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string_view name = entry->d_name;
    DeadRecord record;
    record.path = directory + "/" + std::string(name);
    if (name.starts_with(kUnfinished)) remove_unfinished(record.path);
    if (name.starts_with(".")) continue;
    record.fd.reset(::open(record.path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status {};
    if (!record.fd || ::fstat(record.fd.get(), &status) != 0) continue;
    if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) continue;
    if (!read_record(&record) || !record.server.may_be(server)) continue;
    // Its maker lives, or somebody else sees to it; or has seen to it by now.
    if (::flock(record.fd.get(), LOCK_EX | LOCK_NB) != 0) continue;
    if (::fstat(record.fd.get(), &status) != 0 || status.st_nlink == 0) continue;
    // With the last that he wrote.
    if (read_record(&record)) found.push_back(std::move(record));
  }
  ::closedir(entries);
  return found;
}

}  // namespace nfsrdma::nfs3
