// SPDX-License-Identifier: Apache-2.0
// NFSv3 arguments, all procedures: what a client may send to the server.
#include "tests/support/xdr_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nfsrdma::testing;
  fuzz_one_of(Nfs3Args{}, std::as_bytes(std::span(data, size)));
  return 0;
}
