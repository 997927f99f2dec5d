// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/procedure.h"

namespace nfsrdma {

/// The whole list, or as much of it as a reply may have.
std::size_t export_reply_bytes(ServerContext& server, xdr::Decoder args);
Outcome proc_export(ServerContext& server, Request& request, xdr::Decoder& args,
                    xdr::Encoder& result);

}  // namespace nfsrdma
