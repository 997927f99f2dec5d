// SPDX-License-Identifier: Apache-2.0
// RPC call and reply headers and AUTH_SYS credentials.
#include "tests/support/xdr_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nfsrdma::testing;
  fuzz_one_of(RpcTypes{}, std::as_bytes(std::span(data, size)));
  return 0;
}
