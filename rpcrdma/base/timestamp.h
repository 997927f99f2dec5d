// SPDX-License-Identifier: Apache-2.0
// What every layer asks of a file's timestamps.
#pragma once

#include <ctime>

namespace nfsrdma {

inline bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace nfsrdma
