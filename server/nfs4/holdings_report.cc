// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/holdings_report.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <mutex>
#include <span>
#include <vector>

#include "rpcrdma/base/json_writer.h"
#include "server/nfs4/refusals.h"
#include "server/nfs4/server_state.h"
#include "server/vfs/kernel_handle.h"
#include "server/vfs/proc_path.h"

namespace nfsrdma::nfs4 {

namespace {

/// Files that are looked at under one hold of the mutex, or fewer, with about so much in them.
constexpr std::size_t kFilesAtOnce = 32;
constexpr std::size_t kHoldingsAtOnce = 500;
/// What is told of one file, and in all, so that clients with many locks cannot make the document
/// larger than anybody wants to read.
constexpr std::size_t kMostOfFile = 10'000;
constexpr std::size_t kMostInAll = 100'000;

std::string path_of(int fd) {
  char text[PATH_MAX];
  const ssize_t n = ::readlink(ProcPath(fd).c_str(), text, sizeof text);
  return n <= 0 ? std::string("?") : std::string(text, static_cast<std::size_t>(n));
}

/// The descriptor of a file that this server made without a name at first (create_file.h) never
/// learns of the name: "#INODE (deleted)". The kernel has the name where it has the inode.
std::string path_of(const FileEntry& file) {
  std::string path = path_of(file.path_fd());
  const bool may_be_named = path.ends_with(" (deleted)") && file.path_is_data() &&
                            file.parts().scheme == HandleScheme::kKernel;
  struct stat st;
  if (!may_be_named || ::fstat(file.path_fd(), &st) != 0 || st.st_nlink == 0) return path;
  UniqueFd again;
  if (open_kernel_handle(file.path_fd(), file.parts(), &again) == 0) path = path_of(again.get());
  return path;
}

std::string_view share_word(std::uint8_t bits) {
  constexpr std::string_view kWords[] = {"none", "read", "write", "both"};
  return kWords[bits & 3];
}

std::string_view phase_word(Delegation::Phase phase) {
  switch (phase) {
    case Delegation::Phase::kHeld:
      return "held";
    case Delegation::Phase::kRecalled:
      return "recalled";
    case Delegation::Phase::kRevoked:
      break;
  }
  return "revoked";
}

/// Writes one file, with the mutex held.
class Writer {
 public:
  Writer(ServerState& state, JsonWriter& json) : state_(state), json_(json) {}

  /// How much of opens, locks and delegations has been written.
  std::size_t written() const { return written_; }

  void write(const FileKey& key, const FileEntry& file) {
    json_.begin_object();
    json_.field("path", path_of(file));
    const OpenStates::OfFile held = state_.opens.of_file(key);
    const std::vector<const Delegation*> delegations = state_.delegations.table().of_file(key);
    std::size_t room = kMostOfFile;
    const auto some = [&room](const auto& all) {
      const std::size_t count = std::min(room, all.size());
      room -= count;
      return std::span(all).first(count);
    };
    json_.key("opens");
    json_.begin_array();
    for (const auto& open : some(held.opens)) {
      json_.begin_object();
      client(open.client);
      json_.field("owner", printable(open.owner));
      json_.field("access", share_word(open.share.access));
      json_.field("deny", share_word(open.share.deny));
      json_.end_object();
    }
    json_.end_array();
    json_.key("locks");
    json_.begin_array();
    for (const OpenStates::Holder& lock : some(held.locks)) {
      json_.begin_object();
      client(lock.client);
      json_.field("owner", printable(lock.owner));
      json_.field("kind", lock.held.kind == LockKind::kWrite ? "write" : "read");
      json_.field("offset", lock.held.range.first);
      // To the end of the file, wherever that is, as 0: the way of fcntl(2).
      const std::uint64_t length = length_of(lock.held.range);
      json_.field("length", length == UINT64_MAX ? 0 : length);
      json_.end_object();
    }
    json_.end_array();
    json_.key("delegations");
    json_.begin_array();
    for (const Delegation* delegation : some(delegations)) {
      json_.begin_object();
      client(delegation->client);
      json_.field("kind", delegation->kind == Delegation::Kind::kWrite ? "write" : "read");
      json_.field("state", phase_word(delegation->phase));
      json_.end_object();
    }
    json_.end_array();
    if (held.opens.size() + held.locks.size() + delegations.size() > kMostOfFile) {
      json_.field("more", true);
    }
    json_.end_object();
    written_ += kMostOfFile - room;
  }

 private:
  void client(ClientId id) {
    const Client* known = state_.clients.find(id);
    json_.field("client", fmt::format("{:016x}", id));
    json_.field("address", known == nullptr ? std::string() : known->address);
  }

  ServerState& state_;
  JsonWriter& json_;
  std::size_t written_ = 0;
};

}  // namespace

std::string report_holdings(ServerState& state, std::size_t most) {
  JsonWriter json;
  json.begin_object();
  json.field("version", 1);
  json.key("files");
  json.begin_array();
  Writer writer(state, json);
  FileKey last;
  std::size_t left = most;
  bool more = true;
  while (more && left > 0 && writer.written() + kMostOfFile <= kMostInAll) {
    const std::size_t enough = writer.written() + kHoldingsAtOnce;
    std::lock_guard lock(state.mutex);
    more = state.visit_held(last, std::min(left, kFilesAtOnce),
                            [&](const FileKey& key, const FileEntry& file) {
                              writer.write(key, file);
                              last = key;
                              --left;
                              return writer.written() < enough;
                            });
  }
  json.end_array();
  json.field("more", more);
  json.end_object();
  return json.take();
}

}  // namespace nfsrdma::nfs4
