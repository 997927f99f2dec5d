// SPDX-License-Identifier: Apache-2.0
// SYMLINK. The text is the client's business: it is kept as it came and never followed here.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "server/nfs3/new_object.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

namespace {

int make_link(int directory, std::string_view name, ByteSpan text) {
  if (text.empty() || std::find(text.begin(), text.end(), std::byte{0}) != text.end()) {
    return EINVAL;
  }
  char target[PATH_MAX];
  if (text.size() >= sizeof target) return ENAMETOOLONG;
  std::memcpy(target, text.data(), text.size());
  target[text.size()] = '\0';
  return ::symlinkat(target, directory, EntryName(name).c_str()) == 0 ? 0 : errno;
}

}  // namespace

Outcome symlink(ServerContext& server, Request& request, xdr::Decoder& decoder,
                xdr::Encoder& result) {
  xdr::SYMLINK3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  return make_object<xdr::SYMLINK3res>(
      server, request, args.where, result,
      [&](CallContext& call, Resolved& directory, Resolved& object) {
        if (const int error = make_link(directory.file->path_fd(), args.where.name,
                                        args.symlink.symlink_data.bytes)) {
          return error;
        }
        return finish_object(call, directory, args.where.name, args.symlink.symlink_attributes, 0,
                             &object);
      });
}

}  // namespace nfsrdma::nfs3
