// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/open_delegation.h"

#include <cerrno>
#include <utility>

#include "server/nfs4/wire_values.h"

namespace nfsrdma::nfs4 {

namespace {

using xdr::open_claim_type4;
using xdr::why_no_delegation4;

/// May the client want one? Read delegations are for those who read.
bool is_wanted(const xdr::OPEN4args& args) {
  if ((args.share_access & xdr::OPEN4_SHARE_ACCESS_BOTH) != xdr::OPEN4_SHARE_ACCESS_READ) {
    return false;
  }
  switch (args.claim.claim) {
    case open_claim_type4::CLAIM_NULL:
    case open_claim_type4::CLAIM_FH:
      break;
    case open_claim_type4::CLAIM_PREVIOUS:
      if (args.claim.delegate_type != xdr::open_delegation_type4::OPEN_DELEGATE_READ) return false;
      break;
    default:  // it has one
      return false;
  }
  switch (args.share_access & xdr::OPEN4_SHARE_ACCESS_WANT_DELEG_MASK) {
    case xdr::OPEN4_SHARE_ACCESS_WANT_NO_PREFERENCE:
    case xdr::OPEN4_SHARE_ACCESS_WANT_READ_DELEG:
    case xdr::OPEN4_SHARE_ACCESS_WANT_ANY_DELEG:
      return true;
    default:
      return false;
  }
}

/// There is no lease while we have the file open for writing ourselves, as the cache has a file
/// that was just made or written. So it is let go of, and opened anew. False: that cannot be.
bool reopen_unwritten(Compound& compound, CurrentHandle& file) {
  ServerState& state = compound.state();
  if (file.object.file->unstable.load(std::memory_order_acquire)) return false;
  const FileKey key = file_key(*file.object.file);
  compound.server().files.forget(file.handle);
  CurrentHandle again;
  again.kind = file.kind;
  again.handle = file.handle;
  again.parts = file.parts;
  FileCall call(compound.server(), compound.request());
  // Not by compound.enter(): the OPEN is done and must not be run again.
  if (call.admit(again.parts, Use::kLook) != 0 ||
      compound.server().resolver.open(call.exported(), again.handle, again.parts, &again.object) !=
          0) {
    return false;
  }
  if (compound.current.object.file && file_key(*compound.current.object.file) == key) {
    compound.current = again.copy();
  }
  file = std::move(again);
  std::lock_guard lock(state.mutex);
  state.hold_instead(FilePin::another(*file.object.file));
  return true;
}

bool give(Compound& compound, CurrentHandle& file, xdr::OPEN4resok& res) {
  ServerState& state = compound.state();
  const FileKey key = file_key(*file.object.file);
  {
    std::lock_guard lock(state.mutex);
    if (!state.delegations.may_give(compound.client_id(), key)) return false;
  }
  UniqueFd lease = state.delegations.take_lease(file.object.file->path_fd());
  if (!lease && errno == EAGAIN && reopen_unwritten(compound, file)) {
    lease = state.delegations.take_lease(file.object.file->path_fd());
  }
  if (!lease) return false;
  DelegationNumber number = 0;
  {
    std::lock_guard lock(state.mutex);
    Client* client = state.clients.find(compound.client_id());
    if (client == nullptr || !state.delegations.may_give(client->id, key)) return false;
    const Delegation& given =
        state.delegations.give(client->id, key, file.handle.bytes(), std::move(lease));
    state.count_holds(*client);
    number = given.number;
    res.delegation.read.stateid = to_wire(state.delegations.table().stateid_of(given));
  }
  state.delegations.watch(number, file.object.file->path_fd());
  res.delegation.delegation_type = xdr::open_delegation_type4::OPEN_DELEGATE_READ;
  xdr::open_read_delegation4& read = res.delegation.read;
  // Nobody is let in by the delegation alone: for every user, the client asks by ACCESS.
  read.permissions.type = xdr::ACE4_ACCESS_ALLOWED_ACE_TYPE;
  read.permissions.who = "EVERYONE@";
  return true;
}

void say_why_not(const Compound& compound, const xdr::OPEN4args& args, xdr::OPEN4resok& res) {
  if (compound.minor_version() == 0) return;
  const std::uint32_t want = args.share_access & xdr::OPEN4_SHARE_ACCESS_WANT_DELEG_MASK;
  if (want == xdr::OPEN4_SHARE_ACCESS_WANT_NO_PREFERENCE) return;
  res.delegation.delegation_type = xdr::open_delegation_type4::OPEN_DELEGATE_NONE_EXT;
  res.delegation.od_whynone.ond_why =
      want == xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG ? why_no_delegation4::WND4_NOT_WANTED
      : want == xdr::OPEN4_SHARE_ACCESS_WANT_CANCEL ? why_no_delegation4::WND4_CANCELLED
                                                    : why_no_delegation4::WND4_RESOURCE;
}

}  // namespace

bool offer_delegation(Compound& compound, const xdr::OPEN4args& args, CurrentHandle& file,
                      xdr::OPEN4resok& res) {
  if (is_wanted(args) && give(compound, file, res)) return true;
  say_why_not(compound, args, res);
  return false;
}

}  // namespace nfsrdma::nfs4
