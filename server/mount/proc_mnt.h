// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/procedure.h"

namespace nfsrdma {

/// MNT: from a path to a file handle. The path is an export, or a directory below one.
Outcome proc_mnt(ServerContext& server, Request& request, xdr::Decoder& args, xdr::Encoder& result);

}  // namespace nfsrdma
