// SPDX-License-Identifier: Apache-2.0
// NFS version 4, all minor versions: everything, and the tables of operations with their types.
//
// No type holds a whole COMPOUND: see nfs4_compound.h. with_operation() leads from a number that
// was received to the types of its arguments and its result.
#pragma once

#include <tuple>

#include "xdr/nfs4_attributes.h"
#include "xdr/nfs4_callback.h"
#include "xdr/nfs4_client_id.h"
#include "xdr/nfs4_compound.h"
#include "xdr/nfs4_copy.h"
#include "xdr/nfs4_delegation.h"
#include "xdr/nfs4_directory.h"
#include "xdr/nfs4_exchange_id.h"
#include "xdr/nfs4_getattr.h"
#include "xdr/nfs4_handles.h"
#include "xdr/nfs4_io.h"
#include "xdr/nfs4_layout.h"
#include "xdr/nfs4_lock.h"
#include "xdr/nfs4_names.h"
#include "xdr/nfs4_open.h"
#include "xdr/nfs4_operations.h"
#include "xdr/nfs4_secinfo.h"
#include "xdr/nfs4_session.h"
#include "xdr/nfs4_space.h"
#include "xdr/nfs4_stateid.h"
#include "xdr/nfs4_status.h"
#include "xdr/nfs4_types.h"
#include "xdr/nfs4_xattr.h"
#include "xdr/void.h"

namespace nfsrdma::xdr {

template <auto kNumber, typename ArgsType, typename ResType>
struct Nfs4Operation {
  static constexpr auto number = kNumber;
  using Args = ArgsType;
  using Res = ResType;
};

/// In the order of their numbers. The result of an operation that nobody knows is OP_ILLEGAL's.
using Nfs4Operations = std::tuple<
    Nfs4Operation<nfs_opnum4::OP_ACCESS, ACCESS4args, ACCESS4res>,
    Nfs4Operation<nfs_opnum4::OP_CLOSE, CLOSE4args, CLOSE4res>,
    Nfs4Operation<nfs_opnum4::OP_COMMIT, COMMIT4args, COMMIT4res>,
    Nfs4Operation<nfs_opnum4::OP_CREATE, CREATE4args, CREATE4res>,
    Nfs4Operation<nfs_opnum4::OP_DELEGPURGE, DELEGPURGE4args, DELEGPURGE4res>,
    Nfs4Operation<nfs_opnum4::OP_DELEGRETURN, DELEGRETURN4args, DELEGRETURN4res>,
    Nfs4Operation<nfs_opnum4::OP_GETATTR, GETATTR4args, GETATTR4res>,
    Nfs4Operation<nfs_opnum4::OP_GETFH, Void, GETFH4res>,
    Nfs4Operation<nfs_opnum4::OP_LINK, LINK4args, LINK4res>,
    Nfs4Operation<nfs_opnum4::OP_LOCK, LOCK4args, LOCK4res>,
    Nfs4Operation<nfs_opnum4::OP_LOCKT, LOCKT4args, LOCKT4res>,
    Nfs4Operation<nfs_opnum4::OP_LOCKU, LOCKU4args, LOCKU4res>,
    Nfs4Operation<nfs_opnum4::OP_LOOKUP, LOOKUP4args, LOOKUP4res>,
    Nfs4Operation<nfs_opnum4::OP_LOOKUPP, Void, LOOKUPP4res>,
    Nfs4Operation<nfs_opnum4::OP_NVERIFY, NVERIFY4args, NVERIFY4res>,
    Nfs4Operation<nfs_opnum4::OP_OPEN, OPEN4args, OPEN4res>,
    Nfs4Operation<nfs_opnum4::OP_OPENATTR, OPENATTR4args, OPENATTR4res>,
    Nfs4Operation<nfs_opnum4::OP_OPEN_CONFIRM, OPEN_CONFIRM4args, OPEN_CONFIRM4res>,
    Nfs4Operation<nfs_opnum4::OP_OPEN_DOWNGRADE, OPEN_DOWNGRADE4args, OPEN_DOWNGRADE4res>,
    Nfs4Operation<nfs_opnum4::OP_PUTFH, PUTFH4args, PUTFH4res>,
    Nfs4Operation<nfs_opnum4::OP_PUTPUBFH, Void, PUTPUBFH4res>,
    Nfs4Operation<nfs_opnum4::OP_PUTROOTFH, Void, PUTROOTFH4res>,
    Nfs4Operation<nfs_opnum4::OP_READ, READ4args, READ4res>,
    Nfs4Operation<nfs_opnum4::OP_READDIR, READDIR4args, READDIR4res>,
    Nfs4Operation<nfs_opnum4::OP_READLINK, Void, READLINK4res>,
    Nfs4Operation<nfs_opnum4::OP_REMOVE, REMOVE4args, REMOVE4res>,
    Nfs4Operation<nfs_opnum4::OP_RENAME, RENAME4args, RENAME4res>,
    Nfs4Operation<nfs_opnum4::OP_RENEW, RENEW4args, RENEW4res>,
    Nfs4Operation<nfs_opnum4::OP_RESTOREFH, Void, RESTOREFH4res>,
    Nfs4Operation<nfs_opnum4::OP_SAVEFH, Void, SAVEFH4res>,
    Nfs4Operation<nfs_opnum4::OP_SECINFO, SECINFO4args, SECINFO4res>,
    Nfs4Operation<nfs_opnum4::OP_SETATTR, SETATTR4args, SETATTR4res>,
    Nfs4Operation<nfs_opnum4::OP_SETCLIENTID, SETCLIENTID4args, SETCLIENTID4res>,
    Nfs4Operation<nfs_opnum4::OP_SETCLIENTID_CONFIRM, SETCLIENTID_CONFIRM4args,
                  SETCLIENTID_CONFIRM4res>,
    Nfs4Operation<nfs_opnum4::OP_VERIFY, VERIFY4args, VERIFY4res>,
    Nfs4Operation<nfs_opnum4::OP_WRITE, WRITE4args, WRITE4res>,
    Nfs4Operation<nfs_opnum4::OP_RELEASE_LOCKOWNER, RELEASE_LOCKOWNER4args, RELEASE_LOCKOWNER4res>,
    Nfs4Operation<nfs_opnum4::OP_BACKCHANNEL_CTL, BACKCHANNEL_CTL4args, BACKCHANNEL_CTL4res>,
    Nfs4Operation<nfs_opnum4::OP_BIND_CONN_TO_SESSION, BIND_CONN_TO_SESSION4args,
                  BIND_CONN_TO_SESSION4res>,
    Nfs4Operation<nfs_opnum4::OP_EXCHANGE_ID, EXCHANGE_ID4args, EXCHANGE_ID4res>,
    Nfs4Operation<nfs_opnum4::OP_CREATE_SESSION, CREATE_SESSION4args, CREATE_SESSION4res>,
    Nfs4Operation<nfs_opnum4::OP_DESTROY_SESSION, DESTROY_SESSION4args, DESTROY_SESSION4res>,
    Nfs4Operation<nfs_opnum4::OP_FREE_STATEID, FREE_STATEID4args, FREE_STATEID4res>,
    Nfs4Operation<nfs_opnum4::OP_GET_DIR_DELEGATION, GET_DIR_DELEGATION4args,
                  GET_DIR_DELEGATION4res>,
    Nfs4Operation<nfs_opnum4::OP_GETDEVICEINFO, GETDEVICEINFO4args, GETDEVICEINFO4res>,
    Nfs4Operation<nfs_opnum4::OP_GETDEVICELIST, GETDEVICELIST4args, GETDEVICELIST4res>,
    Nfs4Operation<nfs_opnum4::OP_LAYOUTCOMMIT, LAYOUTCOMMIT4args, LAYOUTCOMMIT4res>,
    Nfs4Operation<nfs_opnum4::OP_LAYOUTGET, LAYOUTGET4args, LAYOUTGET4res>,
    Nfs4Operation<nfs_opnum4::OP_LAYOUTRETURN, LAYOUTRETURN4args, LAYOUTRETURN4res>,
    Nfs4Operation<nfs_opnum4::OP_SECINFO_NO_NAME, SECINFO_NO_NAME4args, SECINFO_NO_NAME4res>,
    Nfs4Operation<nfs_opnum4::OP_SEQUENCE, SEQUENCE4args, SEQUENCE4res>,
    Nfs4Operation<nfs_opnum4::OP_SET_SSV, SET_SSV4args, SET_SSV4res>,
    Nfs4Operation<nfs_opnum4::OP_TEST_STATEID, TEST_STATEID4args, TEST_STATEID4res>,
    Nfs4Operation<nfs_opnum4::OP_WANT_DELEGATION, WANT_DELEGATION4args, WANT_DELEGATION4res>,
    Nfs4Operation<nfs_opnum4::OP_DESTROY_CLIENTID, DESTROY_CLIENTID4args, DESTROY_CLIENTID4res>,
    Nfs4Operation<nfs_opnum4::OP_RECLAIM_COMPLETE, RECLAIM_COMPLETE4args, RECLAIM_COMPLETE4res>,
    Nfs4Operation<nfs_opnum4::OP_ALLOCATE, ALLOCATE4args, ALLOCATE4res>,
    Nfs4Operation<nfs_opnum4::OP_COPY, COPY4args, COPY4res>,
    Nfs4Operation<nfs_opnum4::OP_COPY_NOTIFY, COPY_NOTIFY4args, COPY_NOTIFY4res>,
    Nfs4Operation<nfs_opnum4::OP_DEALLOCATE, DEALLOCATE4args, DEALLOCATE4res>,
    Nfs4Operation<nfs_opnum4::OP_IO_ADVISE, IO_ADVISE4args, IO_ADVISE4res>,
    Nfs4Operation<nfs_opnum4::OP_LAYOUTERROR, LAYOUTERROR4args, LAYOUTERROR4res>,
    Nfs4Operation<nfs_opnum4::OP_LAYOUTSTATS, LAYOUTSTATS4args, LAYOUTSTATS4res>,
    Nfs4Operation<nfs_opnum4::OP_OFFLOAD_CANCEL, OFFLOAD_CANCEL4args, OFFLOAD_CANCEL4res>,
    Nfs4Operation<nfs_opnum4::OP_OFFLOAD_STATUS, OFFLOAD_STATUS4args, OFFLOAD_STATUS4res>,
    Nfs4Operation<nfs_opnum4::OP_READ_PLUS, READ_PLUS4args, READ_PLUS4res>,
    Nfs4Operation<nfs_opnum4::OP_SEEK, SEEK4args, SEEK4res>,
    Nfs4Operation<nfs_opnum4::OP_WRITE_SAME, WRITE_SAME4args, WRITE_SAME4res>,
    Nfs4Operation<nfs_opnum4::OP_CLONE, CLONE4args, CLONE4res>,
    Nfs4Operation<nfs_opnum4::OP_GETXATTR, GETXATTR4args, GETXATTR4res>,
    Nfs4Operation<nfs_opnum4::OP_SETXATTR, SETXATTR4args, SETXATTR4res>,
    Nfs4Operation<nfs_opnum4::OP_LISTXATTRS, LISTXATTRS4args, LISTXATTRS4res>,
    Nfs4Operation<nfs_opnum4::OP_REMOVEXATTR, REMOVEXATTR4args, REMOVEXATTR4res>,
    Nfs4Operation<nfs_opnum4::OP_ILLEGAL, Void, Nfs4Result<Void>>>;

using Nfs4CallbackOperations = std::tuple<
    Nfs4Operation<nfs_cb_opnum4::OP_CB_GETATTR, CB_GETATTR4args, CB_GETATTR4res>,
    Nfs4Operation<nfs_cb_opnum4::OP_CB_RECALL, CB_RECALL4args, CB_RECALL4res>,
    Nfs4Operation<nfs_cb_opnum4::OP_CB_LAYOUTRECALL, CB_LAYOUTRECALL4args, CB_LAYOUTRECALL4res>,
    Nfs4Operation<nfs_cb_opnum4::OP_CB_NOTIFY, CB_NOTIFY4args, CB_NOTIFY4res>,
    Nfs4Operation<nfs_cb_opnum4::OP_CB_PUSH_DELEG, CB_PUSH_DELEG4args, CB_PUSH_DELEG4res>,
    Nfs4Operation<nfs_cb_opnum4::OP_CB_RECALL_ANY, CB_RECALL_ANY4args, CB_RECALL_ANY4res>,
    Nfs4Operation<nfs_cb_opnum4::OP_CB_RECALLABLE_OBJ_AVAIL, CB_RECALLABLE_OBJ_AVAIL4args,
                  CB_RECALLABLE_OBJ_AVAIL4res>,
    Nfs4Operation<nfs_cb_opnum4::OP_CB_RECALL_SLOT, CB_RECALL_SLOT4args, CB_RECALL_SLOT4res>,
    Nfs4Operation<nfs_cb_opnum4::OP_CB_SEQUENCE, CB_SEQUENCE4args, CB_SEQUENCE4res>,
    Nfs4Operation<nfs_cb_opnum4::OP_CB_WANTS_CANCELLED, CB_WANTS_CANCELLED4args,
                  CB_WANTS_CANCELLED4res>,
    Nfs4Operation<nfs_cb_opnum4::OP_CB_NOTIFY_LOCK, CB_NOTIFY_LOCK4args, CB_NOTIFY_LOCK4res>,
    Nfs4Operation<nfs_cb_opnum4::OP_CB_NOTIFY_DEVICEID, CB_NOTIFY_DEVICEID4args,
                  CB_NOTIFY_DEVICEID4res>,
    Nfs4Operation<nfs_cb_opnum4::OP_CB_OFFLOAD, CB_OFFLOAD4args, CB_OFFLOAD4res>,
    Nfs4Operation<nfs_cb_opnum4::OP_CB_ILLEGAL, Void, Nfs4Result<Void>>>;

namespace detail {
template <typename Number, typename F, typename... Operation>
bool with_row(std::tuple<Operation...>*, Number number, F&& f) {
  return ((Operation::number == number && (f(Operation{}), true)) || ...);
}
}  // namespace detail

/// Calls f with the row of `number`, a Nfs4Operation. False, and nothing called, when there is
/// none.
template <typename F>
bool with_operation(nfs_opnum4 number, F&& f) {
  return detail::with_row(static_cast<Nfs4Operations*>(nullptr), number, f);
}
template <typename F>
bool with_operation(nfs_cb_opnum4 number, F&& f) {
  return detail::with_row(static_cast<Nfs4CallbackOperations*>(nullptr), number, f);
}

}  // namespace nfsrdma::xdr
