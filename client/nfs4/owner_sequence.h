// SPDX-License-Identifier: Apache-2.0
// OwnerSequence: the sequence ids of an open-owner or lock-owner of minor version 0, as its client
// counts them (RFC 7530, section 9.1.7). One request of an owner is under way at a time. The server
// runs a request if its number is the next one, and answers that of the last one again; which
// errors leave a number unused is a list.
//
// A request that was given up (soft mounts) may have run or not. Then the next one is tried with
// the highest number that could be right, and the lower ones one by one behind it: a number that is
// too high is refused and does nothing, one that was used would be answered for another request.
//
// Minor versions from 1 on have slots for that: the numbers are 0 there, and nothing is counted.
#pragma once

#include <cstdint>
#include <utility>

#include "client/nfs4/call.h"

namespace nfsrdma::nfs4 {

/// Does an answer with this status use the number up? All do but these.
constexpr bool counts_in_sequence(xdr::nfsstat4 status) {
  switch (status) {
    case xdr::nfsstat4::NFS4ERR_STALE_CLIENTID:
    case xdr::nfsstat4::NFS4ERR_STALE_STATEID:
    case xdr::nfsstat4::NFS4ERR_BAD_STATEID:
    case xdr::nfsstat4::NFS4ERR_BAD_SEQID:
    case xdr::nfsstat4::NFS4ERR_BADXDR:
    case xdr::nfsstat4::NFS4ERR_RESOURCE:
    case xdr::nfsstat4::NFS4ERR_NOFILEHANDLE:
    case xdr::nfsstat4::NFS4ERR_MOVED:
      return false;
    default:
      return true;
  }
}

class OwnerSequence {
 public:
  /// The number of the request that is being encoded.
  std::uint32_t send(const Session& session) {
    if (session.minor() > 0) return 0;
    sent_ = true;
    return next_;
  }
  /// The result of the operation that carried it.
  void answered(xdr::nfsstat4 status) {
    if (!sent_) return;
    sent_ = false;
    if (status == xdr::nfsstat4::NFS4ERR_BAD_SEQID) {
      stepped_back_ = next_ != lowest_;
      if (stepped_back_) --next_;
    } else if (counts_in_sequence(status)) {
      lowest_ = ++next_;
    }
  }
  /// Behind the last answer. Without one, nobody knows what has become of the request; or when it
  /// is that of a second run, which ended in front of this operation.
  void over(bool any_answer, bool resent = false) {
    if (sent_ && (!any_answer || resent)) ++next_;
    sent_ = false;
  }
  /// What was not answered, or another request in its place, is to go by the lowest number that
  /// could be right: if the server has run it, it answers that once more, and runs this one
  /// otherwise.
  void ask_once_more() { next_ = lowest_; }
  /// After NFS4ERR_BAD_SEQID: there is another number to be tried.
  bool stepped_back() { return std::exchange(stepped_back_, false); }

 private:
  std::uint32_t next_ = 1;
  std::uint32_t lowest_ = 1;  // that the server may wait for
  bool sent_ = false;
  bool stepped_back_ = false;
};

/// CompoundReader::next() of an operation in the sequence of `owner`.
template <typename Res>
bool next_in_sequence(CompoundReader& in, xdr::nfs_opnum4 number, Res& result,
                      OwnerSequence& owner) {
  const std::uint32_t before = in.taken();
  const bool good = in.next(number, result);
  if (in.taken() > before) owner.answered(result.status);
  return good;
}

/// call(), of a COMPOUND with one operation in the sequence of `owner`, or of `other`: a LOCK is in
/// that of its open-owner when it is the first.
template <typename Build, typename Parse>
Task<Result<Ending>> call_in_sequence(Session& session, const OpContext& op, CallShape shape,
                                      OwnerSequence& owner, Build& build, Parse& parse,
                                      OwnerSequence* other = nullptr) {
  for (;;) {
    Result<Ending> end = co_await call(session, op, shape, build, parse);
    const bool resent = end.ok() && end->resent;
    owner.over(end.ok(), resent);
    bool stepped_back = owner.stepped_back();
    if (other != nullptr) {
      other->over(end.ok(), resent);
      stepped_back |= other->stepped_back();
    }
    if (!end.ok()) co_return end;
    if (end->status != xdr::nfsstat4::NFS4ERR_BAD_SEQID || !stepped_back) co_return end;
  }
}

}  // namespace nfsrdma::nfs4
