// SPDX-License-Identifier: Apache-2.0
// NSM version 1, as a server: over TCP and UDP, beside NLM.
#pragma once

#include "server/procedure.h"

namespace nfsrdma {

ProgramTable nsm1_program();

}  // namespace nfsrdma
