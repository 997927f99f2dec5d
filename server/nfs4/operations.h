// SPDX-License-Identifier: Apache-2.0
// The operations of NFS version 4, one file per noun (op_*.cc). Each gets its decoded arguments and
// fills its result but for the status, which it returns; runners.cc ties both to the numbers.
//
// An operation that has to wait returns compound.retry(...) before it changed anything.
#pragma once

#include "server/nfs4/compound.h"
#include "xdr/nfs4.h"

namespace nfsrdma::nfs4 {

/// Decodes the arguments of the operation at hand, runs it, encodes its result, status included.
/// Nothing is encoded when compound.is_retry().
using Runner = xdr::nfsstat4 (*)(Compound& compound, xdr::Decoder& args, xdr::Encoder& result);
/// Null: no server has to have it, and this one has not (NFS4ERR_NOTSUPP).
Runner runner_of(std::uint32_t number);

#define NFSRDMA_NFS4_OPERATION(name, NAME) \
  xdr::nfsstat4 name(Compound& compound, const xdr::NAME##4args & args, xdr::NAME##4res & res);
#define NFSRDMA_NFS4_PLAIN_OPERATION(name, NAME) \
  xdr::nfsstat4 name(Compound& compound, const xdr::Void& args, xdr::NAME##4res & res);

// op_handles.cc
NFSRDMA_NFS4_OPERATION(putfh, PUTFH)
NFSRDMA_NFS4_PLAIN_OPERATION(putrootfh, PUTROOTFH)
NFSRDMA_NFS4_PLAIN_OPERATION(getfh, GETFH)
NFSRDMA_NFS4_PLAIN_OPERATION(savefh, SAVEFH)
NFSRDMA_NFS4_PLAIN_OPERATION(restorefh, RESTOREFH)
// op_lookup.cc
NFSRDMA_NFS4_OPERATION(lookup, LOOKUP)
NFSRDMA_NFS4_PLAIN_OPERATION(lookupp, LOOKUPP)
NFSRDMA_NFS4_OPERATION(secinfo, SECINFO)
NFSRDMA_NFS4_OPERATION(secinfo_no_name, SECINFO_NO_NAME)
// op_attributes.cc
NFSRDMA_NFS4_OPERATION(access, ACCESS)
NFSRDMA_NFS4_OPERATION(verify, VERIFY)
NFSRDMA_NFS4_OPERATION(nverify, NVERIFY)
NFSRDMA_NFS4_OPERATION(setattr, SETATTR)
xdr::nfsstat4 getattr(Compound& compound, const xdr::GETATTR4args& args, xdr::Encoder& result);
// op_readdir.cc
xdr::nfsstat4 readdir(Compound& compound, const xdr::READDIR4args& args, xdr::Encoder& result);
// op_io.cc
NFSRDMA_NFS4_OPERATION(read, READ)
NFSRDMA_NFS4_OPERATION(write, WRITE)
NFSRDMA_NFS4_OPERATION(commit, COMMIT)
NFSRDMA_NFS4_PLAIN_OPERATION(readlink, READLINK)
// op_read_plus.cc
xdr::nfsstat4 read_plus(Compound& compound, const xdr::READ_PLUS4args& args, xdr::Encoder& result);
// op_names.cc
NFSRDMA_NFS4_OPERATION(create, CREATE)
NFSRDMA_NFS4_OPERATION(remove, REMOVE)
NFSRDMA_NFS4_OPERATION(rename, RENAME)
NFSRDMA_NFS4_OPERATION(link, LINK)
// op_open.cc
NFSRDMA_NFS4_OPERATION(open, OPEN)
// op_open_state.cc
NFSRDMA_NFS4_OPERATION(open_downgrade, OPEN_DOWNGRADE)
NFSRDMA_NFS4_OPERATION(close, CLOSE)
NFSRDMA_NFS4_OPERATION(test_stateid, TEST_STATEID)
NFSRDMA_NFS4_OPERATION(free_stateid, FREE_STATEID)
NFSRDMA_NFS4_OPERATION(delegreturn, DELEGRETURN)
// op_lock.cc
NFSRDMA_NFS4_OPERATION(lock, LOCK)
NFSRDMA_NFS4_OPERATION(lockt, LOCKT)
NFSRDMA_NFS4_OPERATION(locku, LOCKU)
// op_client.cc
NFSRDMA_NFS4_OPERATION(exchange_id, EXCHANGE_ID)
NFSRDMA_NFS4_OPERATION(destroy_clientid, DESTROY_CLIENTID)
NFSRDMA_NFS4_OPERATION(reclaim_complete, RECLAIM_COMPLETE)
// op_setclientid.cc
NFSRDMA_NFS4_OPERATION(setclientid, SETCLIENTID)
NFSRDMA_NFS4_OPERATION(setclientid_confirm, SETCLIENTID_CONFIRM)
NFSRDMA_NFS4_OPERATION(renew, RENEW)
NFSRDMA_NFS4_OPERATION(open_confirm, OPEN_CONFIRM)
NFSRDMA_NFS4_OPERATION(release_lockowner, RELEASE_LOCKOWNER)
// op_session.cc
xdr::nfsstat4 create_session(Compound& compound, const xdr::CREATE_SESSION4args& args,
                             xdr::Encoder& result);
NFSRDMA_NFS4_OPERATION(destroy_session, DESTROY_SESSION)
NFSRDMA_NFS4_OPERATION(sequence, SEQUENCE)
NFSRDMA_NFS4_OPERATION(bind_conn_to_session, BIND_CONN_TO_SESSION)
NFSRDMA_NFS4_OPERATION(backchannel_ctl, BACKCHANNEL_CTL)
// op_space.cc
NFSRDMA_NFS4_OPERATION(allocate, ALLOCATE)
NFSRDMA_NFS4_OPERATION(deallocate, DEALLOCATE)
NFSRDMA_NFS4_OPERATION(seek, SEEK)
NFSRDMA_NFS4_OPERATION(io_advise, IO_ADVISE)
// op_copy.cc
NFSRDMA_NFS4_OPERATION(copy, COPY)
NFSRDMA_NFS4_OPERATION(clone, CLONE)
NFSRDMA_NFS4_OPERATION(offload_cancel, OFFLOAD_CANCEL)
NFSRDMA_NFS4_OPERATION(offload_status, OFFLOAD_STATUS)
// op_xattr.cc
NFSRDMA_NFS4_OPERATION(getxattr, GETXATTR)
NFSRDMA_NFS4_OPERATION(setxattr, SETXATTR)
NFSRDMA_NFS4_OPERATION(listxattrs, LISTXATTRS)
NFSRDMA_NFS4_OPERATION(removexattr, REMOVEXATTR)

#undef NFSRDMA_NFS4_OPERATION
#undef NFSRDMA_NFS4_PLAIN_OPERATION

}  // namespace nfsrdma::nfs4
