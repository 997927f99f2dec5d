// SPDX-License-Identifier: Apache-2.0
// The small procedures of MOUNT. proc_mnt.cc and proc_export.cc have the large ones.
#include "server/mount/mount_program.h"

#include "server/mount/mount_list.h"
#include "server/mount/proc_export.h"
#include "server/mount/proc_mnt.h"
#include "server/server_context.h"
#include "xdr/mount3.h"

namespace nfsrdma {

namespace {

using xdr::Decoder;
using xdr::Encoder;

/// A list that does not fit is cut; it is for people.
constexpr std::size_t kListBytes = 64 << 10;
std::size_t list_reply_bytes(ServerContext&, Decoder) {
  return kListBytes;
}

std::string caller_host(const Request& request) {
  return request.call->connection().peer().host_text();
}

Outcome proc_dump(ServerContext& server, Request&, Decoder& args, Encoder& result) {
  if (!args.at_end()) return Outcome::kGarbageArgs;
  server.mounts.for_each([&result](const MountList::Entry& entry) {
    const std::size_t mark = result.mark();
    result.boolean(true);
    xdr::encode(result, xdr::mountbody{entry.host, entry.directory});
    if (!result.overflowed() && result.room() >= 4) return true;
    result.rewind(mark);
    return false;
  });
  result.boolean(false);
  return Outcome::kReply;
}

Outcome proc_umnt(ServerContext& server, Request& request, Decoder& args, Encoder&) {
  xdr::dirpath path;
  if (!xdr::decode(args, path) || !args.at_end()) return Outcome::kGarbageArgs;
  server.mounts.remove(caller_host(request), normalise_mount_path(path.path));
  return Outcome::kReply;
}

Outcome proc_umntall(ServerContext& server, Request& request, Decoder& args, Encoder&) {
  if (!args.at_end()) return Outcome::kGarbageArgs;
  server.mounts.remove_all(caller_host(request));
  return Outcome::kReply;
}

constexpr Replay kAgain = Replay::kIdempotent;

const ProcedureRow kRows[] = {
    {"NULL", null_procedure, kAgain, Placement::kInline, nullptr},
    // Looks up paths and names of hosts, which may block.
    {"MNT", proc_mnt, kAgain, Placement::kWorker, nullptr},
    {"DUMP", proc_dump, kAgain, Placement::kInline, list_reply_bytes},
    {"UMNT", proc_umnt, kAgain, Placement::kInline, nullptr},
    {"UMNTALL", proc_umntall, kAgain, Placement::kInline, nullptr},
    {"EXPORT", proc_export, kAgain, Placement::kInline, export_reply_bytes},
};
static_assert(std::size(kRows) == xdr::kMount3ProcedureCount);

}  // namespace

ProgramTable mount3_program() {
  return {xdr::kMountProgram, xdr::kMountV3, "MOUNTv3", kRows};
}

std::string normalise_mount_path(std::string_view path) {
  std::string out;
  if (!path.starts_with('/') || path.find('\0') != std::string_view::npos) return out;
  while (!path.empty()) {
    path.remove_prefix(std::min(path.size(), path.find_first_not_of('/')));
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(part.size());
    if (part == "..") return {};
    if (part.empty() || part == ".") continue;
    out += '/';
    out += part;
  }
  return out.empty() ? "/" : out;
}

}  // namespace nfsrdma
