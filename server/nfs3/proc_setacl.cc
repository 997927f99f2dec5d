// SPDX-License-Identifier: Apache-2.0
// SETACL. As the caller: the kernel lets the owner and root, where it is not squashed.
//
// A directory's default ACL becomes what is sent of it, and is removed where the call says nothing
// of it, as with Linux's server. The access ACL is left alone by a call that does not name it:
// Linux's server would leave what the mode says, which gives the owning group what the mask had.
#include "rpcrdma/nfsacl_entries.h"
#include "server/files/set_attributes.h"
#include "server/nfs3/acl_program.h"
#include "server/nfs3/call_context.h"

namespace nfsrdma::nfs3 {

namespace {

using enum xdr::nfsstat3;

/// What the call wants the ACLs to be.
struct WantedAcls {
  std::optional<PosixAcl> access;
  std::optional<PosixAcl> initial;
};

/// `named`: by the mask; then the entries count, and have to be as many as the count says.
AclVerdict read_acl(bool named, std::uint32_t count, const xdr::EncodedArray<xdr::aclent>& entries,
                    std::optional<PosixAcl>* acl) {
  if (!named) return AclVerdict::kGood;
  if (count != entries.count) return AclVerdict::kGarbage;
  if (entries.empty()) return AclVerdict::kGood;
  return from_aclents(entries, &acl->emplace());
}

AclVerdict read_acls(const xdr::secattr& from, WantedAcls* to) {
  if ((from.mask & ~xdr::NFS_ACL_MASK) != 0) return AclVerdict::kGarbage;
  const bool names_access = (from.mask & xdr::NFS_ACL) != 0;
  const AclVerdict access = read_acl(names_access, from.aclcnt, from.aclents, &to->access);
  const AclVerdict initial =
      read_acl((from.mask & xdr::NFS_DFACL) != 0, from.dfaclcnt, from.dfaclents, &to->initial);
  if (access == AclVerdict::kGarbage || initial == AclVerdict::kGarbage) {
    return AclVerdict::kGarbage;
  }
  // Every object has an access ACL.
  if (names_access && !to->access) return AclVerdict::kInvalid;
  return access == AclVerdict::kGood ? initial : access;
}

/// 0 or an errno.
int set_acls(CallContext& call, Resolved& object, const WantedAcls& wanted) {
  if (!call.access().acls) return kNoSuchAttribute;
  const mode_t mode = object.attributes.st_mode;
  if (wanted.initial && !S_ISDIR(mode)) return EACCES;
  PosixAcls acls;
  if (wanted.access) {
    acls.access = *wanted.access;
  } else if (const int error = read_posix_acls(object.file->path_fd(), mode, &acls)) {
    return error;
  }
  acls.initial = wanted.initial;
  NewAttributes values;
  values.acls = std::make_shared<const NewAcls>(NewAcls{acls, acls});
  return set_attributes(call, object, values);
}

}  // namespace

Outcome setacl(ServerContext& server, Request& request, xdr::Decoder& decoder,
               xdr::Encoder& result) {
  xdr::SETACL3args args;
  WantedAcls wanted;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  const AclVerdict verdict = read_acls(args.acl, &wanted);
  if (verdict == AclVerdict::kGarbage) return Outcome::kGarbageArgs;
  const std::size_t mark = result.mark();
  CallContext call(server, request);
  xdr::SETACL3res res;
  Resolved object;
  res.status = call.resolve(args.fh, Use::kChange, &object);
  if (call.would_block()) return Outcome::kWouldBlock;
  if (res.status != NFS3_OK) {
    xdr::encode(result, res);
    return Outcome::kReply;
  }
  WccScope wcc(server, object);
  res.status = verdict == AclVerdict::kInvalid ? NFS3ERR_INVAL
                                               : status_of_errno(set_acls(call, object, wanted));
  res.resok.attr = res.resfail.attr = wcc.finish().after;
  xdr::encode(result, res);
  if (res.status != NFS3_OK) return Outcome::kReply;
  call.wait_for_metadata(object);
  return call.outcome(mark, 1);
}

}  // namespace nfsrdma::nfs3
