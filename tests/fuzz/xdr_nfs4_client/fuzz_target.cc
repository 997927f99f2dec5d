// SPDX-License-Identifier: Apache-2.0
// NFSv4 as a client reads it: results of all operations, arguments of callbacks, and attributes.
#include "tests/support/xdr_fuzz.h"
#include "tests/support/xdr_nfs4_types.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nfsrdma::testing;
  fuzz_one_of<Shrinks::kMay>(Nfs4ClientReads{}, std::as_bytes(std::span(data, size)));
  return 0;
}
