// SPDX-License-Identifier: Apache-2.0
// CallContext: a FileCall with results in NFSv3's words.
#pragma once

#include "server/files/entry_names.h"
#include "server/files/file_call.h"
#include "server/nfs3/attributes.h"
#include "server/nfs3/status.h"
#include "xdr/nfs3.h"

namespace nfsrdma::nfs3 {

class CallContext : public FileCall {
 public:
  using FileCall::FileCall;

  /// After an error with would_block() the procedure returns kWouldBlock.
  xdr::nfsstat3 resolve(const xdr::nfs_fh3& handle, Use use, Resolved* object) {
    return status_of_errno(FileCall::resolve(handle.data, use, object));
  }
  /// Of what was looked up and not opened; absent as post_op(const Resolved&) says.
  xdr::post_op_attr attributes_of(const struct stat& st, std::uint64_t fsid) {
    DelegationGuard* guard = server().delegations;
    if (guard != nullptr && guard->hides(st.st_dev, st.st_ino)) return {};
    return post_op(st, fsid);
  }
  /// kReplyDurable when there is something to wait for. `status_mark` is where the result begins;
  /// `failure_words` as in Request.
  Outcome outcome(std::size_t status_mark, std::size_t failure_words = 2) {
    if (request().durable_fd[0] == -1) return Outcome::kReply;
    request().status_mark = status_mark;
    request().failure_words = failure_words;
    return Outcome::kReplyDurable;
  }
};

}  // namespace nfsrdma::nfs3
