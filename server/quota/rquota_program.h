// SPDX-License-Identifier: Apache-2.0
// RQUOTA versions 1 and 2 (xdr/rquota.h): quota(1) of clients. Version 2 knows quotas of groups and
// projects beside those of users.
//
// Answers as Linux's rpc.rquotad does unless it is told to let quotas be set: root of a client may
// ask for everybody, others for themselves and the groups that they come with; setting is refused.
// Root squashing does not count, as a root that is squashed could say that it is any user. Unlike
// there, the path has to lie in an export that the client may use.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/procedure.h"
#include "server/quota/disk_quota.h"

namespace nfsrdma {

class ExportSnapshot;

ProgramTable rquota1_program();
ProgramTable rquota2_program();

/// May the caller ask for that quota?
bool may_ask_quota(const RpcCredentials& caller, QuotaKind kind, std::uint32_t id);

/// A path as clients send it, as one of this server; "": none. Those of NFSv4 mounts may come
/// without the slash that they begin with (quota -m), and are paths from NFSv4's root then.
std::string quota_path(std::string_view path, const ExportSnapshot& exports);

}  // namespace nfsrdma
