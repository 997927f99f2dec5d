// SPDX-License-Identifier: Apache-2.0
// ACCESS: the kernel is asked (faccessat2 as the caller), so that ACLs and security modules count.
// The override that lets owners read and write whatever the mode says is not shown here, as in
// Linux's server.
#include "server/nfs3/call_context.h"
#include "server/nfs3/procedures.h"

namespace nfsrdma::nfs3 {

namespace {

struct Need {
  std::uint32_t bit;
  std::uint8_t rights;
  bool changes;
};

constexpr Need kDirectory[] = {
    {xdr::ACCESS3_READ, kRightRead, false},
    {xdr::ACCESS3_LOOKUP, kRightExecute, false},
    {xdr::ACCESS3_MODIFY, kRightWrite | kRightExecute, true},
    {xdr::ACCESS3_EXTEND, kRightWrite | kRightExecute, true},
    {xdr::ACCESS3_DELETE, kRightWrite | kRightExecute, true},
};
constexpr Need kOther[] = {
    {xdr::ACCESS3_READ, kRightRead, false},
    {xdr::ACCESS3_MODIFY, kRightWrite, true},
    {xdr::ACCESS3_EXTEND, kRightWrite, true},
    {xdr::ACCESS3_EXECUTE, kRightExecute, false},
};

std::uint32_t allowed(const FileEntry& file, std::uint32_t asked, bool read_only) {
  const std::span<const Need> needs =
      file.is_directory() ? std::span<const Need>(kDirectory) : std::span<const Need>(kOther);
  std::uint8_t wanted = 0;
  for (const Need& need : needs) {
    if ((asked & need.bit) != 0 && !(need.changes && read_only)) wanted |= need.rights;
  }
  const std::uint8_t have = FdCache::rights(file, wanted);
  std::uint32_t granted = 0;
  for (const Need& need : needs) {
    const bool ok = (have & need.rights) == need.rights && !(need.changes && read_only);
    if ((asked & need.bit) != 0 && ok) granted |= need.bit;
  }
  return granted;
}

}  // namespace

Outcome access(ServerContext& server, Request& request, xdr::Decoder& decoder,
               xdr::Encoder& result) {
  xdr::ACCESS3args args;
  if (!xdr::decode(decoder, args)) return Outcome::kGarbageArgs;
  CallContext call(server, request);
  xdr::ACCESS3res res;
  Resolved object;
  res.status = call.resolve(args.object, Use::kLook, &object);
  if (call.would_block()) return Outcome::kWouldBlock;
  res.resok.obj_attributes = res.resfail.obj_attributes = post_op(object);
  if (res.status == xdr::nfsstat3::NFS3_OK) {
    res.resok.access = allowed(*object.file, args.access, call.access().read_only);
  }
  xdr::encode(result, res);
  return Outcome::kReply;
}

}  // namespace nfsrdma::nfs3
