// SPDX-License-Identifier: Apache-2.0
#include "server/nfs3/new_object.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

Outcome symlink(ServerContext& server, Request& request, xdr::Decoder& decoder,
                xdr::Encoder& result) {
  xdr::SYMLINK3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  NewAttributes values;
  const bool good = new_attributes(args.symlink.symlink_attributes, &values);
  return make_object<xdr::SYMLINK3res>(
      server, request, args.where, result,
      [&](CallContext& call, Resolved& directory, Resolved& object) {
        if (!good) return EINVAL;
        if (const int error =
                make_symlink(directory, args.where.name, args.symlink.symlink_data.bytes)) {
          return error;
        }
        return finish_object(call, directory, args.where.name, values, S_IFLNK, &object);
      });
}

}  // namespace nfsrdma::nfs3
