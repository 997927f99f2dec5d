// SPDX-License-Identifier: Apache-2.0
#include "server/nlm/lock_call.h"

#include <cerrno>

#include "server/files/access_rights.h"
#include "xdr/nfs3_constants.h"

namespace nfsrdma::nlm {

using enum xdr::nlm4_stats;

namespace {

/// Who is told of a grace period asks again by himself.
constexpr xdr::nlm4_stats kLater = NLM4_DENIED_GRACE_PERIOD;

}  // namespace

Host caller_of(const Request& request, std::string_view name) {
  const ServerConnection& connection = request.call->connection();
  return {std::string(name), connection.peer(), connection.local()};
}

xdr::nlm4_stats LockCall::find(const xdr::nlm4_lock& lock, bool exclusive, Use use,
                               std::int32_t state) {
  const auto range = range_of(lock.l_offset, lock.l_len);
  if (!range) return NLM4_FBIG;
  wish_.range = *range;
  wish_.kind = exclusive ? LockKind::kWrite : LockKind::kRead;
  wish_.owner = owner_name(lock.svid, lock.oh);
  host_ = caller_of(request_, lock.caller_name);
  const auto stat = find_file(lock.fh, exclusive, exclusive, use);
  return stat == NLM4_GRANTED ? find_host(use, state) : stat;
}

xdr::nlm4_stats LockCall::find(const xdr::nlm4_share& share, Use use) {
  wish_.owner.assign(reinterpret_cast<const char*>(share.oh.data()), share.oh.size());
  host_ = caller_of(request_, share.caller_name);
  const bool writes =
      (static_cast<std::uint32_t>(share.access) & std::uint32_t{nfs4::kShareWrite}) != 0;
  const bool denies = share.mode != xdr::fsh4_mode::FSM_DN;
  const auto stat = find_file(share.fh, writes, writes || denies, use);
  return stat == NLM4_GRANTED ? find_host(use, 0) : stat;
}

xdr::nlm4_stats LockCall::find_file(ByteSpan handle, bool writes, bool excludes, Use use) {
  if (use == Use::kRelease && find_held(handle)) return check_port();
  switch (call_.resolve(handle, nfsrdma::Use::kLook, &object_)) {
    case 0:
      admitted_ = true;
      break;
    case ESTALE:
    case ENOENT:
    case kBadHandle:
      return NLM4_STALE_FH;
    // Worth asking again: out of descriptors or memory, or the name service is asked who calls.
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EINTR:
      return kLater;
    default:
      return NLM4_FAILED;
  }
  if (!object_.file->is_regular()) return NLM4_FAILED;
  if (use == Use::kRelease) return NLM4_GRANTED;
  if (writes && call_.access().read_only) return NLM4_ROFS;
  if (!may_lock(writes) && !holds_some()) return NLM4_DENIED_NOLOCKS;
  // Under a delegation a client has locks that it has told nobody of. It is asked to give that
  // back, and whoever asks for this lock asks again when told of a grace period.
  const int promised = excludes && use == Use::kTake ? call_.may_change(*object_.file)
                                                     : call_.may_use(*object_.file);
  return promised == 0 ? NLM4_GRANTED : kLater;
}

/// What is locked is open, whatever has become of its name, the exports or the rights since.
bool LockCall::find_held(ByteSpan handle) {
  HandleParts parts;
  if (!server_.handles.open(handle, &parts)) return false;
  nfs4::ServerState& state = server_.nlm->state();
  std::lock_guard guard(state.mutex);
  object_.file = state.held_file(handle);
  return static_cast<bool>(object_.file);
}

/// Ordinary users of a host, who have no privileged port, do not let go of what others of it hold.
/// An export that is gone or for others now keeps nobody from that.
xdr::nlm4_stats LockCall::check_port() {
  const ServerConnection& connection = request_.call->connection();
  if (ExportTable::has_good_port(connection)) return NLM4_GRANTED;
  const Export* entry = server_.exports.current().find(object_.file->parts().export_id);
  if (entry == nullptr) return NLM4_GRANTED;
  ExportAccess access;
  if (server_.exports.access_by_any_port(*entry, connection, true, &access) ==
      ExportTable::Verdict::kWouldBlock) {
    return kLater;
  }
  return access.allowed && access.secure ? NLM4_FAILED : NLM4_GRANTED;
}

/// As Linux's server: the owner, or who may read the file (here: or write it), unless the export
/// says that lock managers do not tell who it is (insecure_locks).
bool LockCall::may_lock(bool writes) {
  if (call_.access().insecure_locks) return true;
  if (object_.attributes.st_uid == call_.caller().uid) return true;
  const std::uint32_t rights =
      access_granted(call_, object_, xdr::ACCESS3_READ | xdr::ACCESS3_MODIFY);
  return (rights & xdr::ACCESS3_READ) != 0 || (writes && (rights & xdr::ACCESS3_MODIFY) != 0);
}

/// Whoever has a lock of the file may ask for it again, behind a lost connection say, whatever its
/// mode has become.
bool LockCall::holds_some() {
  nfs4::ServerState& state = server_.nlm->state();
  std::lock_guard guard(state.mutex);
  const nfs4::Client* client = state.clients.find_host(host_key(host_.peer, host_.name));
  return client != nullptr &&
         state.opens.has_locked(client->id, nfs4::file_key(*object_.file), wish_.owner);
}

xdr::nlm4_stats LockCall::find_host(Use use, std::int32_t state) {
  LockService& service = *server_.nlm;
  wish_.client = use == Use::kTake ? service.admit(host_, state) : service.find(host_);
  return use == Use::kTake && wish_.client == 0 ? NLM4_DENIED_NOLOCKS : NLM4_GRANTED;
}

}  // namespace nfsrdma::nlm
