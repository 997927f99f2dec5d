// SPDX-License-Identifier: Apache-2.0
// What a client has open and locked in a file system, on its way from the server that the file
// system has left to the one that it is on now (migration, RFC 8881 11.11, RFC 7530 8.4). Only the
// version of NFS that made it knows what is in it.
#pragma once

#include <functional>

#include "client/nfs_types.h"

namespace nfsrdma {

class MovedState {
 public:
  virtual ~MovedState() = default;
};

/// Is this file in the file system that has moved?
using WhichFiles = std::function<bool(const FileHandle&)>;

}  // namespace nfsrdma
