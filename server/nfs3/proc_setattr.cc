// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <mutex>

#include "server/files/set_attributes.h"
#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

namespace {

bool guard_holds(const xdr::sattrguard3& guard, const struct stat& now) {
  return !guard.check || guard.obj_ctime == fattr3_of(now, 0).ctime;
}

/// Of two guarded calls that saw the same ctime one is to fail: nobody looks while another one is
/// between looking and changing. Nor does anybody wait for it: where its file system hangs, each
/// would take a worker away.
std::mutex& guard_of(const FileEntry& file) {
  static std::array<std::mutex, 64> stripes;
  return stripes[(file.inode() ^ file.device()) % stripes.size()];
}

}  // namespace

Outcome setattr(ServerContext& server, Request& request, xdr::Decoder& decoder,
                xdr::Encoder& result) {
  xdr::SETATTR3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  const std::size_t mark = result.mark();
  CallContext call(server, request);
  xdr::SETATTR3res res;
  Resolved object;
  res.status = call.resolve(args.object, Use::kChange, &object);
  if (call.would_block()) return Outcome::kWouldBlock;
  if (res.status != xdr::nfsstat3::NFS3_OK) {
    xdr::encode(result, res);
    return Outcome::kReply;
  }
  std::unique_lock<std::mutex> alone;
  if (args.guard.check) {
    alone = std::unique_lock(guard_of(*object.file), std::try_to_lock);
    if (!alone) return Outcome::kWouldBlock;
  }
  WccScope wcc(server, object);
  const bool may = guard_holds(args.guard, wcc.before());
  NewAttributes values;
  if (!may) {
    res.status = xdr::nfsstat3::NFS3ERR_NOT_SYNC;
  } else if (!new_attributes(args.new_attributes, &values)) {
    res.status = xdr::nfsstat3::NFS3ERR_INVAL;
  } else {
    res.status = status_of_errno(set_attributes(call, object, values));
  }
  res.resok.obj_wcc = res.resfail.obj_wcc = wcc.finish();
  xdr::encode(result, res);
  if (res.status != xdr::nfsstat3::NFS3_OK) return Outcome::kReply;
  call.wait_for_metadata(object);
  return call.outcome(mark);
}

}  // namespace nfsrdma::nfs3
