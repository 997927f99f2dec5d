// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/new_files.h"

#include <algorithm>

#include "client/nfs4/attributes_result.h"
#include "client/nfs4/opened.h"
#include "client/nfs4/owner_bytes.h"
#include "client/occasion.h"
#include "client/request_ends.h"

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfs_opnum4;
using xdr::nfsstat4;

/// Open-owners that are tried for one file, before something must be wrong.
constexpr int kOwners = 3;
/// Between attempts to open what may be open (soft mounts), to close it.
constexpr Duration kRetryFirst = std::chrono::seconds(1);
constexpr Duration kRetryLongest = std::chrono::seconds(15);
constexpr int kMostTried = 8;

/// Bytes of `asked` that need not be written once more.
std::size_t for_good(const xdr::WRITE4resok& written, std::size_t asked) {
  const bool stable = written.committed == xdr::stable_how4::FILE_SYNC4;
  return stable && written.count <= asked ? written.count : 0;
}

}  // namespace

/// Shared: who asked may be gone before it is done.
struct NewFiles::Request {
  Request(const AuthSys& its_identity, const FileHandle& its_directory, std::string_view its_name,
          const xdr::createhow4& its_how, const FirstUse& use)
      : identity(its_identity),
        directory(its_directory),
        name(its_name),
        access(share_access(use.open_for)),
        deny(use.deny),
        data(use.data.begin(), use.data.end()),
        how(its_how) {
    const bool both = how.mode == xdr::createmode4::EXCLUSIVE4_1;
    ByteSpan& kept = both ? how.ch_createboth.cva_attrs.attr_vals : how.createattrs.attr_vals;
    values.assign(kept.begin(), kept.end());
    kept = values;
    if (use.later != nullptr) {
      later_values.assign(use.later->attr_vals.begin(), use.later->attr_vals.end());
      later = {use.later->attrmask, later_values};
    }
    // Nothing else that goes with whoever asked.
    if (both) how.createattrs = {};
    if (!both) how.ch_createboth = {};
  }

  const AuthSys identity;
  const FileHandle directory;
  const std::string name;
  const std::uint32_t access;  // OPEN4_SHARE_ACCESS_ bits, to be kept; or 0
  const ShareDenial deny;
  const std::vector<std::byte> data;
  xdr::createhow4 how;
  std::vector<std::byte> values;
  std::optional<xdr::fattr4> later;
  std::vector<std::byte> later_values;
  bool finished = false;   // SETATTR was done
  bool given_up = false;   // without an answer
  bool abandoned = false;  // by who asked
  std::optional<Opened> opened;
  bool closed = false;  // where it was opened
  std::size_t written = 0;
  bool resent = false;
  bool doubtful = false;  // of two runs the second ended in front of OPEN
  Result<CreateResult> result = kStopped;
  Occasion done;
};

Task<Result<CreateResult>> NewFiles::make(const OpContext& op, const FileHandle& directory,
                                          std::string_view name, const xdr::createhow4& how,
                                          FirstUse use, bool* resent) {
  if (tasks_.stopped()) co_return kStopped;
  auto request = std::make_shared<Request>(op.identity, directory, name, how, use);
  tasks_.spawn(carry_out(request));
  const bool waited = co_await request->done.wait(op.cancel);
  request->abandoned = !waited;
  if (!waited) co_return kInterrupted;
  *resent = request->resent;
  if (use.written != nullptr) *use.written = request->written;
  if (use.finished != nullptr) *use.finished = request->finished;
  co_return std::move(request->result);
}

Task<bool> NewFiles::open(Request& request, const OpContext& op, Owner& owner) {
  const OwnerBytes bytes(owner.number);
  CreateResult result;
  request.opened.reset();
  request.closed = false;
  const bool fill = !request.data.empty() && !request.given_up;
  const bool set = request.later && !request.given_up;
  const bool close = request.access == 0 && session_.minor() > 0 && !request.given_up;
  const bool in_pieces = close || session_.minor() == 0;
  auto build = [&](CompoundWriter& out) {
    if (in_pieces && !result.handle.empty()) {
      // It is made, but "later" came behind that: who asked writes, and it is closed by itself.
      out.op(nfs_opnum4::OP_PUTFH, put(result.handle));
      out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
      return;
    }
    xdr::OPEN4args args;
    args.seqid = owner.sequence.send(session_);
    args.share_access = request.access == 0 ? xdr::OPEN4_SHARE_ACCESS_WRITE : request.access;
    if (session_.minor() > 0) args.share_access |= xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
    // What is opened to be closed is in nobody's way.
    const bool stays = request.access != 0 && session_.minor() > 0 && !request.given_up;
    args.share_deny = stays ? share_deny(request.deny) : xdr::OPEN4_SHARE_DENY_NONE;
    args.owner = bytes.of(session_);
    if (!request.given_up) args.openhow = {xdr::opentype4::OPEN4_CREATE, request.how};
    args.claim.claim = xdr::open_claim_type4::CLAIM_NULL;
    args.claim.file = request.name;
    out.op(nfs_opnum4::OP_PUTFH, put(request.directory));
    out.op(nfs_opnum4::OP_SAVEFH);
    out.op(nfs_opnum4::OP_OPEN, args);
    out.op(nfs_opnum4::OP_GETFH);
    if (set) out.op(nfs_opnum4::OP_SETATTR, xdr::SETATTR4args{{}, *request.later});
    if (fill) {
      out.op(nfs_opnum4::OP_WRITE,
             xdr::WRITE4args{kCurrentStateid, 0, xdr::stable_how4::FILE_SYNC4, {request.data}});
    }
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
    if (close) out.op(nfs_opnum4::OP_CLOSE, xdr::CLOSE4args{0, kCurrentStateid});
    out.op(nfs_opnum4::OP_RESTOREFH);
    out.op(nfs_opnum4::OP_GETATTR, xdr::GETATTR4args{kAttributes});
  };
  bool reached = false;
  bool at_open = false;
  auto parse = [&](CompoundReader& in) {
    xdr::OPEN4res got;
    xdr::GETFH4res object;
    xdr::SETATTR4res finished;
    xdr::WRITE4res filled;
    xdr::CLOSE4res closed;
    reached = true;
    if (!in.next(nfs_opnum4::OP_PUTFH)) return;
    if (in_pieces && !result.handle.empty()) return next_attributes(in, names_, &result.attributes);
    // Made before, without a handle: EEXIST does not mean somebody else.
    request.resent |= request.opened.has_value();
    if (!in.next(nfs_opnum4::OP_SAVEFH)) return;
    at_open = true;
    if (!next_in_sequence(in, nfs_opnum4::OP_OPEN, got, owner.sequence)) return;
    request.opened.emplace(got.resok4);
    result.directory.change = from_wire(got.resok4.cinfo);
    if (!in.next(nfs_opnum4::OP_GETFH, object)) return;
    result.handle = FileHandle(object.resok4.object.data);
    if (set) {
      request.finished = in.next(nfs_opnum4::OP_SETATTR, finished);
      if (!request.finished) return;
    }
    if (fill) {
      if (!in.next(nfs_opnum4::OP_WRITE, filled)) return;
      request.written = for_good(filled.resok4, request.data.size());
    }
    next_attributes(in, names_, &result.attributes);
    if (close) {
      request.closed = in.next(nfs_opnum4::OP_CLOSE, closed);
      if (!request.closed) return;
    }
    if (in.next(nfs_opnum4::OP_RESTOREFH)) next_attributes(in, names_, &result.directory.after);
  };
  const CallShape shape{.max_results = 2048, .once = session_.minor() > 0};
  Result<Ending> end = co_await call_in_sequence(session_, op, shape, owner.sequence, build, parse);
  if (!end.ok()) {
    // What cannot be read may tell of something that was done.
    request.resent |= end.error().code == Errc::kProtocol;
    // Made before, and "later" behind that did not end in time: it is known, and is closed.
    if (in_pieces && !result.handle.empty()) {
      request.result = std::move(result);
    } else {
      request.result = end.error();
    }
    co_return false;
  }
  // A SEQUENCE that fails says nothing of the run before, whose answer was lost.
  request.resent |= end->resent || !reached;
  request.doubtful = end->resent && !at_open;
  // What is asked about the file when it is there may fail without harm, but for the handle.
  if (!result.handle.empty()) {
    request.result = std::move(result);
  } else if (end->status != nfsstat4::NFS4_OK) {
    request.result = status_error(end->status, "OPEN");
  } else {
    request.result = Error{Errc::kProtocol, EIO, "OPEN: empty file handle"};
  }
  co_return end->status == nfsstat4::NFS4ERR_BAD_SEQID;
}

std::optional<Errc> NewFiles::failure_of(Request& request, FileHandle* file) {
  if (!request.result.ok()) return request.result.error().code;
  *file = request.result->handle;
  return std::nullopt;
}

bool NewFiles::perhaps_open(const Request& request, const Session& session) {
  if (request.result.ok()) return false;
  // In minor version 0 what OPEN has answered is all that there is.
  return session.minor() == 0 ? request.doubtful : request.opened || request.resent;
}

bool NewFiles::says_nothing(const Request& request, const Session& session) {
  if (request.result.ok()) return false;
  return session.minor() == 0 ? request.doubtful : request.result.error().sys == EIO;
}

Task<void> NewFiles::carry_out(RequestRef request) {
  OpContext op;
  op.identity = request->identity;
  op.cancel = &tasks_.stopping();
  OpenOwners::OwnerPtr owner = owners_.take(request->identity);
  bool again = true;
  for (int tried = 0; again && tried < kOwners; ++tried) {
    if (tried > 0) {
      owners_.forget_idle();
      owner = owners_.take(request->identity);
    }
    again = co_await open(*request, op, *owner);
  }
  FileHandle file;
  std::optional<Errc> failed = failure_of(*request, &file);
  const bool keep = request->access != 0 && session_.minor() > 0 && !request->abandoned &&
                    request->opened && !failed;
  if (keep) {
    // What goes with a verifier may want a SETATTR behind it.
    const bool unfinished = request->how.mode == xdr::createmode4::EXCLUSIVE4_1;
    locks_.adopt(file, request->identity, owner->number, request->access, request->deny,
                 request->opened->stateid, unfinished);
  }
  // Whatever made it, or not, has perhaps left it open.
  bool unknown = perhaps_open(*request, session_);
  request->done.come();
  const bool settled = keep || request->closed;
  if (settled && request->opened->delegation) {
    // That nobody has asked for.
    request->opened->unconfirmed = false;
    [[maybe_unused]] Result<nfsstat4> given =
        co_await settle_open(session_, op, file, owner->sequence, *request->opened);
  }
  if (settled) request->opened.reset();
  int tried = 0;
  for (Duration wait = kRetryFirst; (failed == Errc::kTimedOut || unknown) && !tasks_.stopped();
       wait = std::min(2 * wait, kRetryLongest)) {
    request->given_up = true;
    co_await session_.pause(wait, &tasks_.stopping());
    owner->sequence.ask_once_more();
    again = co_await open(*request, op, *owner);
    failed = failure_of(*request, &file);
    unknown = ++tried < kMostTried && says_nothing(*request, session_);
  }
  const bool answered = !failed || failed == Errc::kSystem;
  const bool lost = request->opened && file.empty();
  bool in_step = answered && !again && !lost && !tasks_.stopped();
  if (in_step && request->opened) {
    in_step = co_await close_for_good(session_, op, file, owner->sequence, *request->opened);
  }
  if (in_step && session_.minor() == 0 && !tasks_.stopped()) owners_.give_back(std::move(owner));
}

}  // namespace nfsrdma::nfs4
