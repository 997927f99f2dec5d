// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/error.h"

#include <cstring>

namespace nfsrdma {

namespace {
const char* code_text(Errc code) {
  switch (code) {
    case Errc::kSystem:
      return "system error";
    case Errc::kProtocol:
      return "protocol error";
    case Errc::kTimedOut:
      return "timed out";
    case Errc::kClosed:
      return "closed";
    case Errc::kRefused:
      return "refused";
    case Errc::kExhausted:
      return "resource exhausted";
    case Errc::kInvalid:
      return "invalid argument";
    case Errc::kUnsupported:
      return "not supported";
    case Errc::kNotFound:
      return "not found";
  }
  return "error";
}
}  // namespace

std::string Error::message() const {
  std::string text = where;
  // What is not supported for no error number's sake says why in words: "no RDMA device".
  if (code == Errc::kUnsupported && sys == 0 && !text.empty()) return text;
  if (!text.empty()) text += ": ";
  if (sys != 0) {
    char buf[128];
    text += ::strerror_r(sys, buf, sizeof buf);
  } else {
    text += code_text(code);
  }
  return text;
}

}  // namespace nfsrdma
