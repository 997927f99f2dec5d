// SPDX-License-Identifier: Apache-2.0
// NFSv3 results, all procedures: what a server may send to the client.
#include "tests/support/xdr_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nfsrdma::testing;
  fuzz_one_of(Nfs3Results{}, std::as_bytes(std::span(data, size)));
  return 0;
}
