// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <cerrno>

#include "server/nfs3/new_object.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

Outcome mkdir(ServerContext& server, Request& request, xdr::Decoder& decoder,
              xdr::Encoder& result) {
  xdr::MKDIR3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  NewAttributes values;
  const bool good = new_attributes(args.attributes, &values);
  return make_object<xdr::MKDIR3res>(
      server, request, args.where, result,
      [&](CallContext& call, Resolved& directory, Resolved& object) {
        if (!good) return EINVAL;
        const std::uint32_t mode = initial_mode(values);
        if (::mkdirat(directory.file->path_fd(), EntryName(args.where.name).c_str(), mode) != 0) {
          return errno;
        }
        return finish_object(call, directory, args.where.name, values, S_IFDIR | mode, &object);
      });
}

}  // namespace nfsrdma::nfs3
