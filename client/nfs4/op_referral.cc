// SPDX-License-Identifier: Apache-2.0
// Nfs4Operations: where a file system that is not here is (RFC 8881 11.4, 11.16; RFC 7530 8).
#include <bit>

#include "client/nfs4/call.h"
#include "client/nfs4/convert.h"
#include "client/nfs4/operations.h"
#include "client/nfs4/referral_decode.h"

namespace nfsrdma {
namespace {

using nfs4::call;
using nfs4::CompoundReader;
using nfs4::CompoundWriter;
using nfs4::Ending;
using nfs4::kMostLocations;
using nfs4::put;
using xdr::fattr4_number;
using xdr::nfs_opnum4;
using xdr::nfsstat4;

bool absolute_path(const xdr::pathname4& name, std::string* path) {
  path->clear();
  for (const xdr::component4& component : name.components) {
    if (!append_component(component.name, path)) return false;
  }
  if (path->empty()) *path = "/";
  return true;
}

}  // namespace

std::unique_ptr<MovedState> Nfs4Operations::hand_over(const WhichFiles& which) {
  // First: what is noted under a delegation is claimed where it is now.
  std::unique_ptr<MovedState> state = locks_.hand_over(which);
  delegations_.lose(which);
  return state;
}

Result<Referral> nfs4::referral_of(const xdr::FileAttributes4& values) {
  if (!values.attrmask.has(fattr4_number::FATTR4_FS_LOCATIONS)) {
    return Error{Errc::kNotFound, ENOENT, "the server does not say where the referral leads"};
  }
  Referral referral;
  if (!absolute_path(values.fs_locations.fs_root, &referral.root)) {
    return Error{Errc::kProtocol, EIO, "fs_root of the referral is no path"};
  }
  for (const xdr::fs_location4& location : values.fs_locations.locations) {
    ReferralTarget target;
    std::string path;
    if (!absolute_path(location.rootpath, &path)) continue;
    for (const xdr::component4& server : location.server) {
      if (referral.targets.size() == kMostReferralTargets) break;
      if (!parse_referral_server(server.name, &target)) continue;
      target.path = path;
      referral.targets.push_back(target);
    }
  }
  if (referral.targets.empty()) {
    return Error{Errc::kNotFound, ENOENT, "the referral names no server that can be asked"};
  }
  referral.fsid = values.fsid.major ^ std::rotl(values.fsid.minor, 32);
  if (values.attrmask.has(fattr4_number::FATTR4_MOUNTED_ON_FILEID)) {
    referral.mounted_on = values.mounted_on_fileid;
  }
  return referral;
}

Task<Result<Referral>> Nfs4Operations::referral(const OpContext& op, const FileHandle& directory,
                                                std::string_view name) {
  Result<Referral> found = Error{Errc::kProtocol, EIO, "GETATTR: attributes are missing"};
  auto build = [&](CompoundWriter& out) {
    out.op(nfs_opnum4::OP_PUTFH, put(directory));
    if (!name.empty()) out.op(nfs_opnum4::OP_LOOKUP, xdr::LOOKUP4args{name});
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{nfs4::kAbsentAttributes});
  };
  auto parse = [&](CompoundReader& in) {
    xdr::GETATTR4res got;
    xdr::FileAttributes4 values;
    if (!in.next(nfs_opnum4::OP_PUTFH)) return;
    if (!name.empty() && !in.next(nfs_opnum4::OP_LOOKUP)) return;
    if (!in.next(nfs_opnum4::OP_GETATTR, got)) return;
    if (xdr::decode_attributes(got.resok4.obj_attributes, values).outcome ==
        xdr::AttributeDecoding::kOk) {
      found = nfs4::referral_of(values);
    }
  };
  NFSRDMA_CO_TRY(Ending end,
                 co_await call(session_, op, {.max_results = kMostLocations}, build, parse));
  if (end.status != nfsstat4::NFS4_OK) co_return nfs4::status_error(end.status, "GETATTR");
  // Later versions have named the client with it.
  const bool names_client = session_.minor() > 0;
  if (name.empty() && !names_client) co_await session_.acknowledge_move(op, directory);
  co_return std::move(found);
}

}  // namespace nfsrdma
