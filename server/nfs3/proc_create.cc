// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "server/files/create_file.h"
#include "server/nfs3/new_object.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

namespace {

int to_new_file(const xdr::createhow3& how, NewFile* wanted) {
  switch (how.mode) {
    case xdr::createmode3::EXCLUSIVE:
      wanted->how = NewFile::How::kExclusive;
      wanted->verifier = how.verf;
      return 0;
    case xdr::createmode3::GUARDED:
      wanted->how = NewFile::How::kGuarded;
      break;
    case xdr::createmode3::UNCHECKED:
      break;
  }
  return new_attributes(how.obj_attributes, &wanted->attributes) ? 0 : EINVAL;
}

}  // namespace

Outcome create(ServerContext& server, Request& request, xdr::Decoder& decoder,
               xdr::Encoder& result) {
  xdr::CREATE3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  NewFile wanted;
  const int unusable = to_new_file(args.how, &wanted);
  return make_object<xdr::CREATE3res>(
      server, request, args.where, result,
      [&](CallContext& call, Resolved& directory, Resolved& object) {
        bool made = false;
        if (unusable != 0) return unusable;
        return create_file(call, directory, args.where.name, wanted, &object, &made);
      });
}

}  // namespace nfsrdma::nfs3
