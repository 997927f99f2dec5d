// SPDX-License-Identifier: Apache-2.0
// NSM arguments and results.
#include "tests/support/xdr_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nfsrdma::testing;
  fuzz_one_of(Nsm1Types{}, std::as_bytes(std::span(data, size)));
  return 0;
}
