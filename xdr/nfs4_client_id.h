// SPDX-License-Identifier: Apache-2.0
// NFS version 4.0: how a client makes itself known, and RENEW.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

struct nfs_client_id4 {
  verifier4 verifier{};
  std::span<const std::byte> id{};
};
template <typename A, Is<nfs_client_id4> V>
void visit(A& ar, V& v) {
  ar("verifier", v.verifier);
  ar.opaque("id", v.id, kNfs4OpaqueLimit);
}

struct cb_client4 {
  std::uint32_t cb_program = 0;
  netaddr4 cb_location{};
};
template <typename A, Is<cb_client4> V>
void visit(A& ar, V& v) {
  ar("cb_program", v.cb_program);
  ar("cb_location", v.cb_location);
}

struct SETCLIENTID4args {
  nfs_client_id4 client{};
  cb_client4 callback{};
  std::uint32_t callback_ident = 0;
};
template <typename A, Is<SETCLIENTID4args> V>
void visit(A& ar, V& v) {
  ar("client", v.client);
  ar("callback", v.callback);
  ar("callback_ident", v.callback_ident);
}

struct SETCLIENTID4resok {
  std::uint64_t clientid = 0;
  verifier4 setclientid_confirm{};
};
template <typename A, Is<SETCLIENTID4resok> V>
void visit(A& ar, V& v) {
  ar("clientid", v.clientid);
  ar("setclientid_confirm", v.setclientid_confirm);
}

struct SETCLIENTID4res {
  nfsstat4 status = nfsstat4::NFS4_OK;
  SETCLIENTID4resok resok4{};  // NFS4_OK
  netaddr4 client_using{};     // NFS4ERR_CLID_INUSE
};
template <typename A, Is<SETCLIENTID4res> V>
void visit(A& ar, V& v) {
  ar("status", v.status);
  if (v.status == nfsstat4::NFS4_OK) {
    ar("resok4", v.resok4);
  } else if (v.status == nfsstat4::NFS4ERR_CLID_INUSE) {
    ar("client_using", v.client_using);
  }
}

struct SETCLIENTID_CONFIRM4args {
  std::uint64_t clientid = 0;
  verifier4 setclientid_confirm{};
};
template <typename A, Is<SETCLIENTID_CONFIRM4args> V>
void visit(A& ar, V& v) {
  ar("clientid", v.clientid);
  ar("setclientid_confirm", v.setclientid_confirm);
}

using SETCLIENTID_CONFIRM4res = Nfs4Result<Void>;

struct RENEW4args {
  std::uint64_t clientid = 0;
};
template <typename A, Is<RENEW4args> V>
void visit(A& ar, V& v) {
  ar("clientid", v.clientid);
}

using RENEW4res = Nfs4Result<Void>;

}  // namespace nfsrdma::xdr
