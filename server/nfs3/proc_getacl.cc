// SPDX-License-Identifier: Apache-2.0
// GETACL. Whoever may ask for attributes may ask for the ACL, which says no more than who may do
// what; as with Linux's server, no right to the file is needed.
#include "rpcrdma/nfsacl_entries.h"
#include "server/nfs3/acl_program.h"
#include "server/nfs3/call_context.h"

namespace nfsrdma::nfs3 {

namespace {

using enum xdr::nfsstat3;

/// Where ACLs are not shown, or the file system has none, the mode is all that there is.
int acls_of(const CallContext& call, const Resolved& object, PosixAcls* acls) {
  const mode_t mode = object.attributes.st_mode;
  int error = EOPNOTSUPP;
  if (call.access().acls) error = read_posix_acls(object.file->path_fd(), mode, acls);
  if (error != EOPNOTSUPP) return error;
  *acls = {PosixAcl::of_mode(mode), std::nullopt};
  return 0;
}

/// The entries of one ACL, in `memory`, where they are asked for, and their number.
void add_entries(const std::vector<xdr::aclent>& entries, bool wanted,
                 std::vector<std::byte>& memory, std::uint32_t* count,
                 xdr::EncodedArray<xdr::aclent>* out) {
  constexpr std::size_t kEntry = 12;
  *count = static_cast<std::uint32_t>(entries.size());
  if (!wanted) return;
  memory.resize(entries.size() * kEntry);
  xdr::Encoder encoder(memory);
  *out = xdr::encode_array<xdr::aclent>(encoder, entries);
}

}  // namespace

Outcome getacl(ServerContext& server, Request& request, xdr::Decoder& decoder,
               xdr::Encoder& result) {
  xdr::GETACL3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  CallContext call(server, request);
  xdr::GETACL3res res;
  Resolved object;
  res.status = call.resolve(args.fh, Use::kLook, &object);
  if (call.would_block()) return Outcome::kWouldBlock;
  if (res.status == NFS3_OK) res.status = status_of_errno(call.may_see(*object.file));
  if (res.status == NFS3_OK && (args.mask & ~xdr::NFS_ACL_MASK) != 0) res.status = NFS3ERR_INVAL;
  PosixAcls acls;
  if (res.status == NFS3_OK) res.status = status_of_errno(acls_of(call, object, &acls));
  std::vector<std::byte> access_memory, initial_memory;
  if (res.status == NFS3_OK) {
    xdr::secattr& out = res.resok.acl;
    out.mask = args.mask;
    const AclOwners owners{object.attributes.st_uid, object.attributes.st_gid};
    std::vector<xdr::aclent> access, initial;
    if ((args.mask & (xdr::NFS_ACL | xdr::NFS_ACLCNT)) != 0) {
      access = to_aclents(acls.access, owners, 0);
    }
    if ((args.mask & (xdr::NFS_DFACL | xdr::NFS_DFACLCNT)) != 0 && acls.initial) {
      initial = to_aclents(*acls.initial, owners, xdr::NFS_ACL_DEFAULT);
    }
    // Some file systems keep more than the protocol can say.
    if (std::max(access.size(), initial.size()) > xdr::kNfsAclMaxEntries) {
      res.status = NFS3ERR_SERVERFAULT;
    }
    add_entries(access, (args.mask & xdr::NFS_ACL) != 0, access_memory, &out.aclcnt, &out.aclents);
    add_entries(initial, (args.mask & xdr::NFS_DFACL) != 0, initial_memory, &out.dfaclcnt,
                &out.dfaclents);
  }
  res.resok.attr = res.resfail.attr = post_op(object);
  xdr::encode(result, res);
  return Outcome::kReply;
}

}  // namespace nfsrdma::nfs3
