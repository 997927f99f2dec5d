// SPDX-License-Identifier: Apache-2.0
// EXPORT: what is exported, and to whom; for people, and for clients that look for paths. Where a
// reply is too short for all of it each export is there, with some of its clients.
#include "server/mount/proc_export.h"

#include <algorithm>
#include <atomic>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/log.h"
#include "server/server_context.h"
#include "xdr/mount3.h"

namespace nfsrdma {

namespace {

constexpr std::size_t kWord = 4;  // "here comes another one", and what ends a list
/// Leaves room for the header in the largest buffer.
constexpr std::size_t kMostBytes = std::size_t{4} << 20;
static_assert(kMostBytes < BufferPool::kMaxBuffer);
/// Over RDMA a reply that is longer than the client is prepared for is an error. Ours takes this.
constexpr std::size_t kMostBytesByRdma = 256 << 10;
/// In place of the clients that are left out: a list without any would mean everyone.
constexpr std::string_view kOthers = "...";

constexpr std::size_t item_bytes(std::string_view text) {
  return kWord + 4 + round_up4(text.size());
}
constexpr std::size_t kOthersBytes = item_bytes(kOthers);

std::string_view directory(const Export& entry) {
  return std::string_view(entry.path).substr(0, xdr::kMountMaxPath);
}
std::string_view group(const ExportClient& client) {
  return std::string_view(client.text).substr(0, xdr::kMountMaxName);
}

std::size_t groups_bytes(const Export& entry) {
  std::size_t bytes = 0;
  for (const ExportClient& client : entry.clients)
    bytes += item_bytes(group(client));
  return bytes;
}
/// Without its groups.
std::size_t bare_bytes(const Export& entry) {
  return item_bytes(directory(entry)) + kWord;
}
/// The groups of none count more than kOthers does.
std::size_t shortest_bytes(const ExportSnapshot& snapshot) {
  std::size_t bytes = kWord;
  for (const auto& entry : snapshot.exports)
    bytes += bare_bytes(*entry) + kOthersBytes;
  return bytes;
}
std::size_t whole_bytes(const ExportSnapshot& snapshot) {
  std::size_t bytes = kWord;
  for (const auto& entry : snapshot.exports)
    bytes += bare_bytes(*entry) + groups_bytes(*entry);
  return bytes;
}

void write_groups(const Export& entry, std::size_t room, xdr::Encoder& result) {
  const auto write = [&](std::string_view name) {
    result.boolean(true);
    result.string(name);
  };
  const bool all = groups_bytes(entry) <= room && entry.clients.size() <= xdr::kMountMaxGroups;
  std::size_t left = all ? room : room - kOthersBytes;
  std::size_t most = all ? xdr::kMountMaxGroups : xdr::kMountMaxGroups - 1;
  for (const ExportClient& client : entry.clients) {
    const std::size_t bytes = item_bytes(group(client));
    if (bytes > left || most-- == 0) break;
    left -= bytes;
    write(group(client));
  }
  if (!all) write(kOthers);
  result.boolean(false);
}

/// Those at the end of what has no room for more than the paths.
void write_list(const ExportSnapshot& snapshot, std::size_t room, xdr::Encoder& result) {
  const std::size_t shortest = shortest_bytes(snapshot);
  const bool all = whole_bytes(snapshot) <= room;
  std::size_t spare = room > shortest ? room - shortest : 0;  // for groups, beyond kOthers
  std::size_t exports_left = snapshot.exports.size();
  std::size_t left = room - std::min(room, kWord);
  for (const auto& entry : snapshot.exports) {
    const std::size_t share = spare / exports_left--;
    if (!all && bare_bytes(*entry) + kOthersBytes > left) break;
    const std::size_t before = result.size();
    result.boolean(true);
    result.string(directory(*entry));
    write_groups(*entry, all ? left : kOthersBytes + share, result);
    const std::size_t used = result.size() - before;
    left -= used;
    spare = spare + bare_bytes(*entry) + kOthersBytes - used;
  }
  result.boolean(false);
}

/// Once for a set of exports.
void warn_of_cut_list(const ExportSnapshot& snapshot) {
  static std::atomic<std::uint64_t> warned{0};
  if (warned.exchange(snapshot.generation) == snapshot.generation) return;
  log_warning(
      "the list of exports is too long for the clients that ask for it (showmount -e): some "
      "clients of exports are left out of it, or exports at its end; this changes nobody's access");
}

}  // namespace

std::size_t export_reply_bytes(ServerContext& server, xdr::Decoder) {
  return std::min(whole_bytes(server.exports.current()), kMostBytes);
}

Outcome proc_export(ServerContext& server, Request& request, xdr::Decoder& args,
                    xdr::Encoder& result) {
  if (!args.at_end()) return Outcome::kGarbageArgs;
  const ExportSnapshot& snapshot = server.exports.current();
  const bool by_rdma = is_rdma(request.call->connection().transport());
  const std::size_t room = std::min(result.room(), by_rdma ? kMostBytesByRdma : kMostBytes);
  if (whole_bytes(snapshot) > room) warn_of_cut_list(snapshot);
  write_list(snapshot, room, result);
  return Outcome::kReply;
}

}  // namespace nfsrdma
