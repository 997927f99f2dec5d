// SPDX-License-Identifier: Apache-2.0
// rpcbind: our codec against libtirpc's own functions for the protocol, which rpcbind itself uses.
#include "xdr/rpcb.h"

#include <gtest/gtest.h>
#include <rpc/rpc.h>
// Needs the types of the one above.
#include <rpc/pmap_prot.h>

#include "tests/property/oracle/compare.h"

namespace nfsrdma::oracle {

void convert(Arena&, const xdr::mapping& from, ::pmap& to) {
  to = {from.prog, from.vers, from.prot, from.port};
}
void convert(Arena& arena, const xdr::pmaplist& from, ::pmaplist*& to) {
  ::pmaplist** link = &to;
  for (const xdr::mapping& item : from.mappings) {
    *link = arena.make<::pmaplist>();
    convert(arena, item, (*link)->pml_map);
    link = &(*link)->pml_next;
  }
}
void convert(Arena& arena, const xdr::rpcb& from, ::rpcb& to) {
  to = {from.r_prog, from.r_vers, arena.text(from.r_netid), arena.text(from.r_addr),
        arena.text(from.r_owner)};
}
void convert(Arena& arena, const xdr::rpcblist& from, ::rp__list*& to) {
  ::rp__list** link = &to;
  for (const xdr::rpcb& item : from.entries) {
    *link = arena.make<::rp__list>();
    convert(arena, item, (*link)->rpcb_map);
    link = &(*link)->rpcb_next;
  }
}
void convert(Arena& arena, const xdr::RpcbAddress& from, char*& to) {
  to = arena.text(from.uaddr);
}
void convert(Arena&, const xdr::PmapPort& from, unsigned& to) {
  to = from.port;
}
void convert(Arena&, const xdr::RpcbDone& from, int& to) {
  to = from.done;
}

namespace {

using Mapping = Pair<xdr::mapping, ::pmap, xdr_pmap>;
using MappingList = Pair<xdr::pmaplist, ::pmaplist*, xdr_pmaplist>;
using Entry = Pair<xdr::rpcb, ::rpcb, xdr_rpcb, Limits::kOracleHasOthers>;
using EntryList = Pair<xdr::rpcblist, ::rp__list*, xdr_rpcblist_ptr, Limits::kOracleHasOthers>;
using Address = Pair<xdr::RpcbAddress, char*, xdr_wrapstring, Limits::kOracleHasOthers>;
using Port = Pair<xdr::PmapPort, unsigned, xdr_u_int>;
using Done = Pair<xdr::RpcbDone, int, xdr_bool>;

template <typename P>
class RpcbOracle : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { limit_memory(); }
};
using Pairs = ::testing::Types<Mapping, MappingList, Entry, EntryList, Address, Port, Done>;
TYPED_TEST_SUITE(RpcbOracle, Pairs);
TYPED_TEST(RpcbOracle, SameBytesBothWays) {
  compare_random_values<TypeParam>(300);
}

// Not Address: libtirpc has no bound for it at all and asks for up to 4 GiB.
template <typename P>
class RpcbHostile : public RpcbOracle<P> {};
using BoundedPairs = ::testing::Types<Mapping, MappingList, Entry, EntryList, Port, Done>;
TYPED_TEST_SUITE(RpcbHostile, BoundedPairs);
TYPED_TEST(RpcbHostile, SameJudgementOfDamagedBytes) {
  compare_damaged_bytes<TypeParam>(2000);
}

}  // namespace
}  // namespace nfsrdma::oracle
