// SPDX-License-Identifier: Apache-2.0
// Nfs3Operations: POSIX ACLs, by NFSACL (xdr/nfsacl3.h), on the connection that NFS has. That the
// server does not know the program is found out by the first call, and remembered.
//
// SETACL replaces both ACLs of a directory: what is not to change is asked for in front of it and
// sent along, as Linux's client does. So of two hosts that set different ones at once one may be
// lost.
#include "client/nfs3/call.h"
#include "client/nfs3/operations.h"
#include "rpcrdma/nfsacl_entries.h"

namespace nfsrdma {
namespace {

using nfs3::Answer;
using nfs3::call;
using nfs3::from_wire;
using nfs3::status_error;
using nfs3::to_wire;
using xdr::aclproc3;
using xdr::nfsstat3;

constexpr std::size_t kEntryBytes = 12;
/// Of a call or a reply, beside the entries: a handle or attributes, status, mask and counts.
constexpr std::size_t kOtherBytes = 256;
constexpr std::uint32_t kAccessMask = xdr::NFS_ACL | xdr::NFS_ACLCNT;
constexpr std::uint32_t kInitialMask = xdr::NFS_DFACL | xdr::NFS_DFACLCNT;

constexpr nfs3::ProcedureNumber number_of(aclproc3 procedure) {
  return {xdr::kNfsAclProgram, xdr::kNfsAclV3, static_cast<std::uint32_t>(procedure)};
}

/// As long as the protocol lets the ACLs of `mask` be.
std::size_t most_bytes(std::uint32_t mask) {
  constexpr std::size_t kOne = xdr::kNfsAclMaxEntries * kEntryBytes;
  return kOtherBytes + ((mask & xdr::NFS_ACL) != 0 ? kOne : 0) +
         ((mask & xdr::NFS_DFACL) != 0 ? kOne : 0);
}

/// False: nonsense. No entries are no ACL.
bool take_acl(std::uint32_t count, const xdr::EncodedArray<xdr::aclent>& entries,
              std::optional<PosixAcl>* acl) {
  if (count != entries.count) return false;
  if (entries.empty()) return true;
  return from_aclents(entries, &acl->emplace()) == AclVerdict::kGood;
}

/// The entries of `acl`, in `memory`.
xdr::EncodedArray<xdr::aclent> encode_entries(const PosixAcl& acl, AclOwners owners,
                                              std::uint32_t flag, std::vector<std::byte>& memory) {
  const std::vector<xdr::aclent> entries = to_aclents(acl, owners, flag);
  memory.resize(entries.size() * kEntryBytes);
  xdr::Encoder encoder(memory);
  return xdr::encode_array<xdr::aclent>(encoder, entries);
}

}  // namespace

Error Nfs3Operations::without_acls(const Error& error) {
  if (error.code != Errc::kUnsupported) return error;
  // That the server lacks the procedure alone is no reason to ask no more for the other one.
  if (error.sys == EPROTONOSUPPORT) posix_acls_ = false;
  return {Errc::kUnsupported, EOPNOTSUPP, error.where};
}

Task<Result<FoundPosixAcls>> Nfs3Operations::getacl(const OpContext& op, const FileHandle& file,
                                                    std::uint32_t mask) {
  const xdr::GETACL3args args{to_wire(file), mask};
  Result<Answer<xdr::GETACL3res>> answer = co_await call<xdr::GETACL3res>(
      *rpc_, op, number_of(aclproc3::ACLPROC3_GETACL), args, {.max_results = most_bytes(mask)});
  if (!answer.ok()) co_return without_acls(answer.error());
  const xdr::GETACL3res& result = answer->value;
  if (result.status != nfsstat3::NFS3_OK) co_return status_error(result.status, "GETACL");
  const xdr::secattr& got = result.resok.acl;
  FoundPosixAcls found;
  found.attributes = from_wire(result.resok.attr);
  const bool access =
      (mask & xdr::NFS_ACL) == 0 || take_acl(got.aclcnt, got.aclents, &found.access);
  const bool initial =
      (mask & xdr::NFS_DFACL) == 0 || take_acl(got.dfaclcnt, got.dfaclents, &found.initial);
  if ((got.mask & mask) != mask || !access || !initial) {
    co_return Error{Errc::kProtocol, EIO, "GETACL: not what was asked for, or no ACL"};
  }
  co_return found;
}

Task<Result<FoundPosixAcls>> Nfs3Operations::get_posix_acls(const OpContext& op,
                                                            const FileHandle& file, bool access,
                                                            bool initial) {
  if (!posix_acls_) co_return Error{Errc::kUnsupported, EOPNOTSUPP, "GETACL"};
  co_return co_await getacl(op, file, (access ? kAccessMask : 0) | (initial ? kInitialMask : 0));
}

Task<Result<Wcc>> Nfs3Operations::set_posix_acl(const OpContext& op, const FileHandle& file,
                                                const PosixAclChange& change) {
  if (!posix_acls_) co_return Error{Errc::kUnsupported, EOPNOTSUPP, "SETACL"};
  if (change.acl && change.acl->entries() > xdr::kNfsAclMaxEntries) {
    co_return Error{Errc::kSystem, ENOSPC, "SETACL: too many entries"};
  }
  std::optional<PosixAcl> access, initial;
  (change.initial ? initial : access) = change.acl;
  if (change.of_directory) {
    const std::uint32_t other = change.initial ? kAccessMask : kInitialMask;
    NFSRDMA_CO_TRY(FoundPosixAcls now, co_await getacl(op, file, other));
    if (change.initial) {
      access = std::move(now.access);
    } else {
      initial = std::move(now.initial);
    }
  }
  if (!access) {
    NFSRDMA_CO_TRY(const Attributes attributes, co_await getattr(op, file));
    access = PosixAcl::of_mode(attributes.mode);
  }

  const AclOwners owners{change.uid, change.gid};
  std::vector<std::byte> access_memory, initial_memory;
  xdr::SETACL3args args{to_wire(file), {}};
  args.acl.mask = xdr::NFS_ACL;
  args.acl.aclents = encode_entries(*access, owners, 0, access_memory);
  args.acl.aclcnt = args.acl.aclents.count;
  if (change.of_directory) args.acl.mask |= xdr::NFS_DFACL;
  if (initial) {
    args.acl.dfaclents = encode_entries(*initial, owners, xdr::NFS_ACL_DEFAULT, initial_memory);
    args.acl.dfaclcnt = args.acl.dfaclents.count;
  }
  const std::size_t arguments = kOtherBytes + access_memory.size() + initial_memory.size();
  Result<Answer<xdr::SETACL3res>> answer = co_await call<xdr::SETACL3res>(
      *rpc_, op, number_of(aclproc3::ACLPROC3_SETACL), args, {.arguments = arguments});
  if (!answer.ok()) co_return without_acls(answer.error());
  const xdr::SETACL3res& result = answer->value;
  if (result.status != nfsstat3::NFS3_OK) co_return status_error(result.status, "SETACL");
  Wcc wcc;
  wcc.after = from_wire(result.resok.attr);
  co_return wcc;
}

}  // namespace nfsrdma
