// SPDX-License-Identifier: Apache-2.0
// Every wire type of xdr/ that is a whole message, arguments or a result, as a list for tests.
#pragma once

#include <tuple>
#include <type_traits>

#include "xdr/mount3.h"
#include "xdr/nfs3.h"
#include "xdr/nfsacl3.h"
#include "xdr/nlm4.h"
#include "xdr/nsm1.h"
#include "xdr/rpc.h"
#include "xdr/rpcb.h"
#include "xdr/rquota.h"

namespace nfsrdma::testing {

template <typename... T>
struct TypeList {
  /// Container<T...>, for instance ::testing::Types.
  template <template <typename...> typename Container>
  using In = Container<T...>;
  static constexpr std::size_t kSize = sizeof...(T);
};

namespace detail {
template <typename... A, typename... B>
TypeList<A..., B...> join(TypeList<A...>, TypeList<B...>);
template <typename... P>
TypeList<typename P::Args...> args_of(std::tuple<P...>*);
template <typename... P>
TypeList<typename P::Res...> results_of(std::tuple<P...>*);
template <typename Null, typename... P>
std::tuple<P...>* without_null(std::tuple<Null, P...>*);
}  // namespace detail

using Nfs3Args =
    decltype(detail::args_of(detail::without_null(static_cast<xdr::Nfs3Procedures*>(nullptr))));
using Nfs3Results =
    decltype(detail::results_of(detail::without_null(static_cast<xdr::Nfs3Procedures*>(nullptr))));
using Mount3Types = TypeList<xdr::dirpath, xdr::mountres3, xdr::mountlist, xdr::exports>;
using NfsAcl3Types = TypeList<xdr::GETACL3args, xdr::GETACL3res, xdr::SETACL3args, xdr::SETACL3res>;
using RquotaTypes = TypeList<xdr::getquota_args, xdr::ext_getquota_args, xdr::setquota_args,
                             xdr::ext_setquota_args, xdr::getquota_rslt>;
using Nlm4Types = TypeList<xdr::nlm4_testargs, xdr::nlm4_testres, xdr::nlm4_lockargs,
                           xdr::nlm4_cancargs, xdr::nlm4_unlockargs, xdr::nlm4_res,
                           xdr::nlm4_shareargs, xdr::nlm4_shareres, xdr::nlm4_notify>;
using Nsm1Types = TypeList<xdr::sm_name, xdr::my_id, xdr::mon_id, xdr::sm_mon, xdr::stat_chge,
                           xdr::sm_stat, xdr::sm_stat_res, xdr::sm_status>;
using RpcbTypes = TypeList<xdr::mapping, xdr::pmaplist, xdr::PmapPort, xdr::rpcb, xdr::rpcblist,
                           xdr::RpcbAddress, xdr::RpcbDone>;
using RpcTypes = TypeList<xdr::rpc_msg, xdr::authsys_parms>;

using AllWireTypes = decltype(detail::join(
    detail::join(detail::join(Nfs3Args{}, Nfs3Results{}), detail::join(Mount3Types{}, RpcbTypes{})),
    detail::join(RpcTypes{}, detail::join(detail::join(Nlm4Types{}, Nsm1Types{}),
                                          detail::join(NfsAcl3Types{}, RquotaTypes{})))));

}  // namespace nfsrdma::testing
