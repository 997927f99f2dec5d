// SPDX-License-Identifier: Apache-2.0
// What a path of this server is that a client names, as MOUNT and RQUOTA have them. As with mountd,
// it is looked at with the server's own rights, the export is the one in which the path lies as it
// is given or as what it really is behind symbolic links, the innermost of those that are for the
// caller's host, and who may use none is told nothing about what exists.
#pragma once

#include <string>
#include <string_view>

#include "server/procedure.h"
#include "server/vfs/resolver.h"

namespace nfsrdma {

/// Does the export's `secure` count? rpc.rquotad asks for no privileged port, which ordinary users'
/// quota(1) has none of.
enum class Ports : std::uint8_t { kAsExported, kAny };

/// The directory or file that `path`, normalised (mount_program.h), leads to. 0 or an errno: EACCES
/// when it lies in no export that the caller's host may use; EAGAIN when that is not known yet, or
/// too many others are followed to where they lead, to be run again a moment later
/// (Outcome::kWouldBlock). *access: how it may use that export. `refusal` is for the log: "may not
/// mount". May block.
int find_exported(ServerContext& server, const Request& request, const std::string& path,
                  std::string_view refusal, Ports ports, Resolved* found, ExportAccess* access);

}  // namespace nfsrdma
