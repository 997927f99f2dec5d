// SPDX-License-Identifier: Apache-2.0
// The kernel's own handles of objects: name_to_handle_at(2), open_by_handle_at(2).
#pragma once

#include <fcntl.h>

#include "rpcrdma/base/unique_fd.h"
#include "server/filehandle.h"

namespace nfsrdma {

struct KernelHandle {
  file_handle header;
  unsigned char body[HandleParts::kMaxBody];
};

/// Opens O_PATH what `parts` (scheme kKernel) stand for, whoever this thread acts for, in the file
/// system in which `beside`, no O_PATH, is. 0 or an errno: ESTALE for what is not there (any more),
/// EPERM for a server without CAP_DAC_READ_SEARCH.
int open_kernel_handle(int beside, const HandleParts& parts, UniqueFd* fd);

}  // namespace nfsrdma
