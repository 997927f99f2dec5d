// SPDX-License-Identifier: Apache-2.0
// The wire types of NFS version 4 as lists for tests: what a server reads and what a client reads.
// Both read attributes. Apart from xdr_types.h: they are many, and slow to compile.
#pragma once

#include "tests/support/xdr_types.h"
#include "xdr/nfs4.h"

namespace nfsrdma::testing {

namespace detail {
template <typename... A, typename... B, typename... Rest>
auto join_all(TypeList<A...>, TypeList<B...>, Rest... rest) {
  if constexpr (sizeof...(Rest) == 0) {
    return TypeList<A..., B...>{};
  } else {
    return join_all(TypeList<A..., B...>{}, rest...);
  }
}
}  // namespace detail

using Nfs4Args = decltype(detail::args_of(static_cast<xdr::Nfs4Operations*>(nullptr)));
using Nfs4Results = decltype(detail::results_of(static_cast<xdr::Nfs4Operations*>(nullptr)));
using Nfs4CallbackArgs =
    decltype(detail::args_of(static_cast<xdr::Nfs4CallbackOperations*>(nullptr)));
using Nfs4CallbackResults =
    decltype(detail::results_of(static_cast<xdr::Nfs4CallbackOperations*>(nullptr)));

/// What comes from clients.
using Nfs4ServerReads = decltype(detail::join_all(
    TypeList<xdr::COMPOUND4args, xdr::CB_COMPOUND4res, xdr::FileAttributes4>{}, Nfs4Args{},
    Nfs4CallbackResults{}));
/// What comes from servers.
using Nfs4ClientReads = decltype(detail::join_all(
    TypeList<xdr::COMPOUND4res, xdr::CB_COMPOUND4args, xdr::FileAttributes4>{}, Nfs4Results{},
    Nfs4CallbackArgs{}));

/// Calls f.template operator()<T>() for every type of a list.
template <typename... T, typename F>
void for_each_type(TypeList<T...>, F f) {
  (f.template operator()<T>(), ...);
}

}  // namespace nfsrdma::testing
