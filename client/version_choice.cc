// SPDX-License-Identifier: Apache-2.0
#include "client/version_choice.h"

#include <cerrno>

namespace nfsrdma {
namespace {

/// PROG_UNAVAIL and PROG_MISMATCH, and NFS4ERR_MINOR_VERS_MISMATCH.
bool is_not_spoken(const Error& error) {
  return error.sys == EPROTONOSUPPORT;
}

}  // namespace

bool leads_to_version_3(const Error& error) {
  return is_not_spoken(error) || error.sys == ENOENT;
}

bool version_3_says_more(const Error& fourth, const Error& third) {
  // That nobody answers for version 3 or MOUNT is no news of a server that speaks version 4.
  const bool nobody = is_not_spoken(third) || third.code == Errc::kUnsupported;
  return is_not_spoken(fourth) || !nobody;
}

}  // namespace nfsrdma
