// SPDX-License-Identifier: Apache-2.0
// Lists of NFSv4 types, ours and rpcgen's, and what has to hold for each of them. The types of a
// list are in one test: a test per type takes minutes to compile.
#pragma once

#include "tests/property/oracle/nfs4_prelude.h"  // before all others

#include <gtest/gtest.h>

#include "tests/property/oracle/compare.h"
#include "tests/property/oracle/nfs4_session_convert.h"

#define NFS4_PAIR(type) Pair<xdr::type, ::type, xdr_##type, Limits::kForgetsBits>

namespace nfsrdma::oracle {

template <typename... P>
struct PairList {
  template <typename F>
  static void for_each(F f) {
    (f.template operator()<P>(), ...);
  }
};

class Nfs4Oracle : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { limit_memory(); }
};

template <typename Pairs>
void same_bytes_both_ways() {
  Pairs::for_each([]<typename P>() {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    compare_random_values<P>(200);
  });
}
template <typename Pairs>
void same_judgement_of_damaged_bytes() {
  Pairs::for_each([]<typename P>() {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    compare_damaged_bytes<P>(1000);
  });
}

}  // namespace nfsrdma::oracle
