// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/op_table.h"

#include <array>

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfsstat4;
using enum xdr::nfs_opnum4;

constexpr auto kInside = SessionRule::kInside;
constexpr bool kHandle = true, kSaved = true, kChanges = true, kPayload = true, kOnly40 = true;
constexpr bool no = false;

// clang-format off
constexpr std::array kOperations{
    //        number                since only 4.0   session                 handle   saved   changes   payload
    Operation{OP_ACCESS,               0, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_CLOSE,                0, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_COMMIT,               0, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_CREATE,               0, no,      kInside,                kHandle, no,     kChanges, kPayload},
    Operation{OP_DELEGPURGE,           0, no,      kInside,                no,      no,     kChanges, no},
    Operation{OP_DELEGRETURN,          0, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_GETATTR,              0, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_GETFH,                0, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_LINK,                 0, no,      kInside,                kHandle, kSaved, kChanges, no},
    Operation{OP_LOCK,                 0, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_LOCKT,                0, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_LOCKU,                0, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_LOOKUP,               0, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_LOOKUPP,              0, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_NVERIFY,              0, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_OPEN,                 0, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_OPENATTR,             0, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_OPEN_CONFIRM,         0, kOnly40, kInside,                kHandle, no,     kChanges, no},
    Operation{OP_OPEN_DOWNGRADE,       0, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_PUTFH,                0, no,      kInside,                no,      no,     no,       no},
    Operation{OP_PUTPUBFH,             0, no,      kInside,                no,      no,     no,       no},
    Operation{OP_PUTROOTFH,            0, no,      kInside,                no,      no,     no,       no},
    Operation{OP_READ,                 0, no,      kInside,                kHandle, no,     no,       kPayload},
    Operation{OP_READDIR,              0, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_READLINK,             0, no,      kInside,                kHandle, no,     no,       kPayload},
    Operation{OP_REMOVE,               0, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_RENAME,               0, no,      kInside,                kHandle, kSaved, kChanges, no},
    Operation{OP_RENEW,                0, kOnly40, kInside,                no,      no,     no,       no},
    Operation{OP_RESTOREFH,            0, no,      kInside,                no,      no,     no,       no},
    Operation{OP_SAVEFH,               0, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_SECINFO,              0, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_SETATTR,              0, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_SETCLIENTID,          0, kOnly40, kInside,                no,      no,     kChanges, no},
    Operation{OP_SETCLIENTID_CONFIRM,  0, kOnly40, kInside,                no,      no,     kChanges, no},
    Operation{OP_VERIFY,               0, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_WRITE,                0, no,      kInside,                kHandle, no,     kChanges, kPayload},
    Operation{OP_RELEASE_LOCKOWNER,    0, kOnly40, kInside,                no,      no,     kChanges, no},
    Operation{OP_BACKCHANNEL_CTL,      1, no,      kInside,                no,      no,     kChanges, no},
    Operation{OP_BIND_CONN_TO_SESSION, 1, no,      SessionRule::kAlone,    no,      no,     kChanges, no},
    Operation{OP_EXCHANGE_ID,          1, no,      SessionRule::kEither,   no,      no,     kChanges, no},
    Operation{OP_CREATE_SESSION,       1, no,      SessionRule::kEither,   no,      no,     kChanges, no},
    Operation{OP_DESTROY_SESSION,      1, no,      SessionRule::kEither,   no,      no,     kChanges, no},
    Operation{OP_FREE_STATEID,         1, no,      kInside,                no,      no,     kChanges, no},
    Operation{OP_GET_DIR_DELEGATION,   1, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_GETDEVICEINFO,        1, no,      kInside,                no,      no,     no,       no},
    Operation{OP_GETDEVICELIST,        1, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_LAYOUTCOMMIT,         1, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_LAYOUTGET,            1, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_LAYOUTRETURN,         1, no,      kInside,                no,      no,     kChanges, no},
    Operation{OP_SECINFO_NO_NAME,      1, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_SEQUENCE,             1, no,      SessionRule::kSequence, no,      no,     kChanges, no},
    Operation{OP_SET_SSV,              1, no,      kInside,                no,      no,     kChanges, no},
    Operation{OP_TEST_STATEID,         1, no,      kInside,                no,      no,     no,       no},
    Operation{OP_WANT_DELEGATION,      1, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_DESTROY_CLIENTID,     1, no,      SessionRule::kEither,   no,      no,     kChanges, no},
    Operation{OP_RECLAIM_COMPLETE,     1, no,      kInside,                no,      no,     kChanges, no},
    Operation{OP_ALLOCATE,             2, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_COPY,                 2, no,      kInside,                kHandle, kSaved, kChanges, no},
    Operation{OP_COPY_NOTIFY,          2, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_DEALLOCATE,           2, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_IO_ADVISE,            2, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_LAYOUTERROR,          2, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_LAYOUTSTATS,          2, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_OFFLOAD_CANCEL,       2, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_OFFLOAD_STATUS,       2, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_READ_PLUS,            2, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_SEEK,                 2, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_WRITE_SAME,           2, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_CLONE,                2, no,      kInside,                kHandle, kSaved, kChanges, no},
    Operation{OP_GETXATTR,             2, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_SETXATTR,             2, no,      kInside,                kHandle, no,     kChanges, no},
    Operation{OP_LISTXATTRS,           2, no,      kInside,                kHandle, no,     no,       no},
    Operation{OP_REMOVEXATTR,          2, no,      kInside,                kHandle, no,     kChanges, no},
};
// clang-format on

constexpr bool in_order() {
  for (std::size_t i = 0; i < kOperations.size(); ++i) {
    if (static_cast<std::uint32_t>(kOperations[i].number) != i + xdr::kNfs4FirstOperation) {
      return false;
    }
  }
  return kOperations.size() == xdr::kNfs4LastOperation - xdr::kNfs4FirstOperation + 1;
}
static_assert(in_order());

}  // namespace

const Operation* find_operation(std::uint32_t number) {
  if (number < xdr::kNfs4FirstOperation || number > xdr::kNfs4LastOperation) return nullptr;
  return &kOperations[number - xdr::kNfs4FirstOperation];
}

nfsstat4 check_place(std::uint32_t number, std::uint32_t minor_version, std::uint32_t index,
                     std::uint32_t count, bool in_session) {
  const Operation* operation = find_operation(number);
  const bool known = operation != nullptr && operation->since <= minor_version;
  if (minor_version == 0) return known ? nfsstat4::NFS4_OK : nfsstat4::NFS4ERR_OP_ILLEGAL;
  if (!known) return nfsstat4::NFS4ERR_OP_ILLEGAL;
  switch (operation->session) {
    case SessionRule::kSequence:
      return index == 0 ? nfsstat4::NFS4_OK : nfsstat4::NFS4ERR_SEQUENCE_POS;
    case SessionRule::kAlone:
      return count == 1 ? nfsstat4::NFS4_OK : nfsstat4::NFS4ERR_NOT_ONLY_OP;
    case SessionRule::kEither:
      return in_session || count == 1 ? nfsstat4::NFS4_OK : nfsstat4::NFS4ERR_NOT_ONLY_OP;
    case SessionRule::kInside:
      break;
  }
  if (!in_session) return nfsstat4::NFS4ERR_OP_NOT_IN_SESSION;
  return operation->only_4_0 ? nfsstat4::NFS4ERR_NOTSUPP : nfsstat4::NFS4_OK;
}

}  // namespace nfsrdma::nfs4
