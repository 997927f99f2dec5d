// SPDX-License-Identifier: Apache-2.0
// Error: what an operation that can fail in normal operation reports. 16 bytes, never allocates.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>

namespace nfsrdma {

enum class Errc : std::uint8_t {
  kSystem,       // a system call failed; Error::sys holds errno
  kProtocol,     // the peer broke the protocol
  kTimedOut,     // a deadline passed
  kClosed,       // the connection (or object) is gone
  kRefused,      // the peer said no
  kExhausted,    // a bounded resource is used up; trying later may work
  kInvalid,      // the caller's argument cannot be served
  kUnsupported,  // not possible with this device, kernel or build
  kNotFound,
};

struct [[nodiscard]] Error {
  Errc code = Errc::kSystem;
  std::int32_t sys = 0;    // errno, 0 when it says nothing
  const char* where = "";  // static string naming the step that failed

  /// One line for people: "connect: Connection refused".
  std::string message() const;
};

/// The current errno as an Error.
inline Error system_error(const char* where) {
  return Error{Errc::kSystem, errno, where};
}
inline Error system_error(const char* where, int err) {
  return Error{Errc::kSystem, err, where};
}

}  // namespace nfsrdma
