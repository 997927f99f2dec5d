// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/delegation_opens.h"

#include <algorithm>

#include "client/nfs4/convert.h"
#include "client/nfs4/opened.h"
#include "client/nfs4/owner_bytes.h"
#include "client/occasion.h"

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfs_opnum4;
using xdr::nfsstat4;

/// OPENs and OPEN_CONFIRMs for one delegation, before something must be wrong.
constexpr int kTries = 5;
/// Between attempts to open what may be open (soft mounts), to close it.
constexpr Duration kRetryFirst = std::chrono::seconds(1);
constexpr Duration kRetryLongest = std::chrono::seconds(15);

}  // namespace

/// Shared: who asked may be gone before it is done.
struct DelegationOpens::Request {
  Request(const AuthSys& its_identity, const FileHandle& its_file, const FilePlace& its_place,
          std::uint32_t its_access, std::shared_ptr<OpenCompanion> its_companion)
      : identity(its_identity),
        file(its_file),
        place(its_place),
        access(its_access),
        with(std::move(its_companion)) {}

  const AuthSys identity;
  const FileHandle file;
  const FilePlace place;
  const std::uint32_t access;
  std::shared_ptr<OpenCompanion> with;
  FileHandle found;  // what is open
  std::optional<Opened> opened;
  Occasion done;
};

Task<void> DelegationOpens::open(const OpContext& op, const FileHandle& file,
                                 const FilePlace& place, std::uint32_t access,
                                 std::shared_ptr<OpenCompanion> with) {
  if (tasks_.stopped()) co_return;
  auto request = std::make_shared<Request>(op.identity, file, place, access, std::move(with));
  tasks_.spawn(carry_out(request));
  [[maybe_unused]] const bool waited = co_await request->done.wait(op.cancel);
}

/// What is no answer, and not for want of time, is not waited for without end.
DelegationOpens::Step DelegationOpens::unanswered(const Error& error) {
  return error.code == Errc::kTimedOut ? Step::kTimedOut : Step::kUnreadable;
}

Task<DelegationOpens::Step> DelegationOpens::open_once(Request& request, const OpContext& op,
                                                       Owner& owner) {
  const OwnerBytes bytes(owner.number);
  bool opened = false;
  auto build = [&](CompoundWriter& out) {
    if (opened) {
      // But "later" came behind that, and by now the name may lead elsewhere.
      out.op(nfs_opnum4::OP_PUTFH, put(request.found));
      request.with->build(out);
      return;
    }
    xdr::OPEN4args args;
    args.seqid = owner.sequence.send(session_);
    args.share_access = request.access;
    args.share_deny = xdr::OPEN4_SHARE_DENY_NONE;
    args.owner = bytes.of(session_);
    args.claim.claim = xdr::open_claim_type4::CLAIM_NULL;
    args.claim.file = request.place.name;
    out.op(nfs_opnum4::OP_PUTFH, put(request.place.directory));
    out.op(nfs_opnum4::OP_OPEN, args);
    out.op(nfs_opnum4::OP_GETFH);
    request.with->build(out);
  };
  bool reached = false;
  auto parse = [&](CompoundReader& in) {
    xdr::OPEN4res got;
    xdr::GETFH4res object;
    reached = in.next(nfs_opnum4::OP_PUTFH);  // the last time that it went out
    if (!reached) return;
    if (opened) return parse_companion(request, in);
    if (!next_in_sequence(in, nfs_opnum4::OP_OPEN, got, owner.sequence)) return;
    request.opened.emplace(got.resok4);
    request.found = {};
    if (!in.next(nfs_opnum4::OP_GETFH, object)) return;
    request.found = FileHandle(object.resok4.object.data);
    opened = true;
    if (!is_good(request)) return;
    request.opened->delegation.reset();
    request.with->opened(got.resok4.delegation);
    parse_companion(request, in);
  };
  Result<Ending> end =
      co_await call_in_sequence(session_, op, {.max_results = 2048}, owner.sequence, build, parse);
  if (!end.ok()) co_return unanswered(end.error());
  if (end->resent && !reached && !opened) co_return Step::kUnreadable;
  if (end->status == nfsstat4::NFS4ERR_BAD_SEQID) co_return Step::kOutOfStep;
  co_return is_to_be_confirmed(request) ? Step::kOnceMore : Step::kDone;
}

/// A delegation of another file goes back, and so does one that an OPEN brings which is not
/// confirmed.
bool DelegationOpens::is_good(const Request& request) {
  return request.opened && !request.opened->unconfirmed && request.found == request.file;
}

void DelegationOpens::parse_companion(Request& request, CompoundReader& in) {
  if (is_good(request)) request.with->parse(in);
}

bool DelegationOpens::is_to_be_confirmed(const Request& request) {
  return request.opened && request.opened->unconfirmed && request.found == request.file;
}

Task<DelegationOpens::Step> DelegationOpens::confirm(Request& request, const OpContext& op,
                                                     Owner& owner) {
  Result<nfsstat4> said =
      co_await settle_open(session_, op, request.found, owner.sequence, *request.opened);
  if (!said.ok()) co_return unanswered(said.error());
  co_return *said == nfsstat4::NFS4_OK ? Step::kOnceMore : Step::kDone;
}

Task<void> DelegationOpens::carry_out(RequestRef request) {
  OpContext op;
  op.identity = request->identity;
  op.cancel = &tasks_.stopping();
  Result<void> allowed = co_await session_.allow_opens(op);
  OpenOwners::OwnerPtr owner = owners_.take(request->identity);
  Step step = Step::kDone;
  Duration wait = kRetryFirst;
  for (int tried = 0; allowed.ok() && !tasks_.stopped();) {
    const bool confirms = is_to_be_confirmed(*request);
    if (confirms) {
      step = co_await confirm(*request, op, *owner);
    } else {
      step = co_await open_once(*request, op, *owner);
    }
    if (step == Step::kDone) break;
    if (step != Step::kTimedOut && ++tried == kTries) break;
    if (step == Step::kTimedOut || step == Step::kUnreadable) {
      request->done.come();
      co_await session_.pause(wait, &tasks_.stopping());
      wait = std::min(2 * wait, kRetryLongest);
      if (!confirms) owner->sequence.ask_once_more();
    }
    if (step == Step::kOutOfStep) {
      owners_.forget_idle();
      owner = owners_.take(request->identity);
      request->opened.reset();
    }
  }
  request->done.come();
  // What is open and has no handle cannot be closed.
  const bool lost = request->opened && request->found.empty();
  bool in_step = (step == Step::kDone || step == Step::kOnceMore) && !lost;
  if (request->opened && !lost && !tasks_.stopped()) {
    // Also behind an answer that never came: the file may be open from a run before that.
    const bool closed =
        co_await close_for_good(session_, op, request->found, owner->sequence, *request->opened);
    in_step = in_step && closed;
  }
  if (in_step && !tasks_.stopped()) owners_.give_back(std::move(owner));
  // Nobody is to be told of a delegation any more.
  request->with.reset();
}

}  // namespace nfsrdma::nfs4
