// SPDX-License-Identifier: Apache-2.0
// NLM version 4, as a server: locks and shares of NFSv3 clients (X/Open C702, chapter 14), on the
// same transports as NFS and over UDP.
#pragma once

#include "server/procedure.h"

namespace nfsrdma {

ProgramTable nlm4_program();

}  // namespace nfsrdma
