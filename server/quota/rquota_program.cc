// SPDX-License-Identifier: Apache-2.0
#include "server/quota/rquota_program.h"

#include <algorithm>
#include <ctime>

#include "server/mount/exported_path.h"
#include "server/mount/mount_program.h"
#include "server/server_context.h"
#include "xdr/rquota.h"

namespace nfsrdma {

namespace {

using xdr::Decoder;
using xdr::Encoder;
using xdr::gqr_status;

Outcome answer(gqr_status status, Encoder& result, const xdr::rquota& quota = {}) {
  xdr::encode(result, xdr::getquota_rslt{status, quota});
  return Outcome::kReply;
}

std::optional<QuotaKind> kind_of(std::int32_t type) {
  switch (type) {
    case xdr::kRquotaUser:
      return QuotaKind::kUser;
    case xdr::kRquotaGroup:
      return QuotaKind::kGroup;
    case xdr::kRquotaProject:
      return QuotaKind::kProject;
    default:
      return std::nullopt;
  }
}

/// May block.
Outcome look(ServerContext& server, Request& request, std::string_view path, std::int32_t type,
             std::int32_t id, Encoder& result) {
  const std::optional<QuotaKind> kind = kind_of(type);
  const auto wanted = static_cast<std::uint32_t>(id);
  if (!kind || !may_ask_quota(request.credentials, *kind, wanted)) {
    return answer(gqr_status::Q_EPERM, result);
  }
  const std::string where = quota_path(path, server.exports.current());
  Resolved found;
  ExportAccess access;
  const int missing = find_exported(server, request, where, "may not ask for quotas of",
                                    Ports::kAny, &found, &access);
  if (missing == EAGAIN) return Outcome::kWouldBlock;
  // Nothing is said of what lies outside of the client's exports.
  if (missing == EACCES) return answer(gqr_status::Q_EPERM, result);
  if (missing != 0) return answer(gqr_status::Q_NOQUOTA, result);
  DiskQuota quota;
  const int error =
      read_disk_quota(found.file->path_fd(), found.attributes.st_dev, *kind, wanted, &quota);
  if (error == EPERM || error == EACCES) return answer(gqr_status::Q_EPERM, result);
  if (error != 0) return answer(gqr_status::Q_NOQUOTA, result);
  return answer(gqr_status::Q_OK, result, rquota_of(quota, std::time(nullptr)));
}

Outcome proc_getquota1(ServerContext& server, Request& request, Decoder& args, Encoder& result) {
  xdr::getquota_args asked;
  if (!xdr::decode(args, asked) || !args.at_end()) return Outcome::kGarbageArgs;
  return look(server, request, asked.gqa_pathp, xdr::kRquotaUser, asked.gqa_uid, result);
}

Outcome proc_getquota2(ServerContext& server, Request& request, Decoder& args, Encoder& result) {
  xdr::ext_getquota_args asked;
  if (!xdr::decode(args, asked) || !args.at_end()) return Outcome::kGarbageArgs;
  return look(server, request, asked.gqa_pathp, asked.gqa_type, asked.gqa_id, result);
}

template <typename Args>
Outcome proc_setquota(ServerContext&, Request&, Decoder& args, Encoder& result) {
  Args asked;
  if (!xdr::decode(args, asked) || !args.at_end()) return Outcome::kGarbageArgs;
  return answer(gqr_status::Q_EPERM, result);
}

constexpr Replay kAgain = Replay::kIdempotent;

// The kernel answers for quotas that are turned on and for no others: both procedures say the same.
constexpr ProcedureRow kRows1[] = {
    {"NULL", null_procedure, kAgain, Placement::kInline},
    {"GETQUOTA", proc_getquota1, kAgain, Placement::kWorker},
    {"GETACTIVEQUOTA", proc_getquota1, kAgain, Placement::kWorker},
    {"SETQUOTA", proc_setquota<xdr::setquota_args>, kAgain, Placement::kInline},
    {"SETACTIVEQUOTA", proc_setquota<xdr::setquota_args>, kAgain, Placement::kInline},
};
constexpr ProcedureRow kRows2[] = {
    {"NULL", null_procedure, kAgain, Placement::kInline},
    {"GETQUOTA", proc_getquota2, kAgain, Placement::kWorker},
    {"GETACTIVEQUOTA", proc_getquota2, kAgain, Placement::kWorker},
    {"SETQUOTA", proc_setquota<xdr::ext_setquota_args>, kAgain, Placement::kInline},
    {"SETACTIVEQUOTA", proc_setquota<xdr::ext_setquota_args>, kAgain, Placement::kInline},
};
static_assert(std::size(kRows1) == xdr::kRquotaProcedureCount);
static_assert(std::size(kRows2) == xdr::kRquotaProcedureCount);

}  // namespace

ProgramTable rquota1_program() {
  return {xdr::kRquotaProgram, xdr::kRquotaV1, "RQUOTAv1", kRows1};
}
ProgramTable rquota2_program() {
  return {xdr::kRquotaProgram, xdr::kRquotaV2, "RQUOTAv2", kRows2};
}

bool may_ask_quota(const RpcCredentials& caller, QuotaKind kind, std::uint32_t id) {
  if (caller.flavor != RpcCredentials::Flavor::kSys) return false;
  if (caller.uid == 0) return true;
  if (kind == QuotaKind::kUser) return caller.uid == id;
  if (kind != QuotaKind::kGroup) return false;
  const std::span groups(caller.groups.data(), caller.group_count);
  return caller.gid == id || std::ranges::find(groups, id) != groups.end();
}

std::string quota_path(std::string_view path, const ExportSnapshot& exports) {
  if (path.starts_with('/')) return normalise_mount_path(path);
  std::string whole;
  for (const auto& entry : exports.exports) {
    if (entry->is_root) {
      whole = entry->path;
      break;
    }
  }
  whole += '/';
  whole += path;
  return normalise_mount_path(whole);
}

}  // namespace nfsrdma
