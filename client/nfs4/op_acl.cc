// SPDX-License-Identifier: Apache-2.0
// Nfs4Operations: ACLs (RFC 8881, section 6). They go from the server to applications and back as
// they are on the wire, so that whoever set one knows what it means; here it is only made sure that
// what is sent can be read.
#include "client/nfs4/attributes_result.h"
#include "client/nfs4/call.h"
#include "client/nfs4/operations.h"

namespace nfsrdma {
namespace {

using nfs4::call;
using nfs4::CompoundReader;
using nfs4::CompoundWriter;
using nfs4::Ending;
using nfs4::kAttributes;
using nfs4::next_attributes;
using nfs4::put;
using nfs4::status_error;
using xdr::bitmap4;
using xdr::fattr4_number;
using xdr::nfs_opnum4;
using xdr::nfsstat4;

constexpr bitmap4 kAcl = bitmap4::of({fattr4_number::FATTR4_ACL});
constexpr bitmap4 kAclAbility =
    bitmap4::of({fattr4_number::FATTR4_SUPPORTED_ATTRS, fattr4_number::FATTR4_ACLSUPPORT});
/// Results of the other operations in front of the ACL.
constexpr std::size_t kOtherResults = 1024;
/// Arguments beside the ACL: a handle, a stateid and what goes in front.
constexpr std::size_t kOtherArguments = 1024;
/// A server has no end of file systems.
constexpr std::size_t kMostFileSystems = 1024;

Error no_acls(const char* where) {
  return {Errc::kUnsupported, EOPNOTSUPP, where};
}

bool is_acl(ByteSpan bytes) {
  xdr::Decoder decoder(bytes);
  xdr::fattr4_acl acl;
  return xdr::decode(decoder, acl) && decoder.at_end();
}

}  // namespace

Task<Result<bool>> Nfs4Operations::acls_in(const OpContext& op, const FileHandle& file,
                                           std::uint64_t fsid) {
  if (auto known = acl_file_systems_.find(fsid); known != acl_file_systems_.end()) {
    co_return known->second;
  }
  bool found = false;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAclAbility});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::GETATTR4res got;
    xdr::FileAttributes4 values;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_GETATTR, got)) return;
    const auto decoded = xdr::decode_attributes(got.resok4.obj_attributes, values);
    // As Linux's client: who can allow nothing has no ACLs.
    found = decoded.outcome == xdr::AttributeDecoding::kOk &&
            values.supported_attrs.has(fattr4_number::FATTR4_ACL) &&
            (values.aclsupport & xdr::ACL4_SUPPORT_ALLOW_ACL) != 0;
  };
  NFSRDMA_CO_TRY(Ending end, co_await call(session_, op, {}, build, parse));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "GETATTR");
  if (acl_file_systems_.size() >= kMostFileSystems) acl_file_systems_.clear();
  acl_file_systems_[fsid] = found;
  co_return found;
}

Task<Result<std::string>> Nfs4Operations::get_acl(const OpContext& op, const FileHandle& file) {
  std::string acl;
  bool there = false;
  bool sound = false;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAcl});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::GETATTR4res got;
    if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_GETATTR, got)) return;
    const xdr::fattr4& attributes = got.resok4.obj_attributes;
    there = attributes.attrmask == kAcl;
    sound = there && is_acl(attributes.attr_vals);
    if (sound) acl = as_text(attributes.attr_vals);
  };
  const std::size_t room = std::min<std::size_t>(kMaxAclBytes, session_.max_read()) + kOtherResults;
  NFSRDMA_CO_TRY(Ending end, co_await call(session_, op, {.max_results = room}, build, parse));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "GETATTR");
  if (!there) co_return no_acls("GETATTR");
  if (!sound) co_return Error{Errc::kProtocol, EIO, "GETATTR: undecodable ACL"};
  co_return acl;
}

Task<Result<Wcc>> Nfs4Operations::set_acl(const OpContext& op, const FileHandle& file,
                                          ByteSpan acl) {
  if (acl.size() > std::min<std::size_t>(kMaxAclBytes, session_.max_write())) {
    co_return Error{Errc::kSystem, E2BIG, "SETATTR"};
  }
  if (!is_acl(acl)) co_return Error{Errc::kInvalid, EINVAL, "SETATTR: no ACL"};
  Wcc wcc;
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(file));
    out.op(nfs_opnum4::OP_SETATTR, xdr::SETATTR4args{{}, {kAcl, acl}});
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::SETATTR4res result;
    if (!in.next(nfs_opnum4::OP_PUTFH)) return;
    if (in.next(nfs_opnum4::OP_SETATTR, result)) next_attributes(in, names_, &wcc.after);
  };
  const std::size_t arguments = acl.size() + kOtherArguments;
  NFSRDMA_CO_TRY(Ending end,
                 co_await call(session_, op, {.once = true, .arguments = arguments}, build, parse));
  if (end.status != nfsstat4::NFS4_OK) co_return status_error(end.status, "SETATTR");
  co_return wcc;
}

}  // namespace nfsrdma
