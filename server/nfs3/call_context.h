// SPDX-License-Identifier: Apache-2.0
// CallContext: one call on its way through a procedure: who calls, which export it is about, what
// must stay open until the reply is out. Lives on the stack of the procedure.
#pragma once

#include "server/nfs3/attributes.h"
#include "server/nfs3/status.h"
#include "server/procedure.h"
#include "server/server_context.h"
#include "xdr/nfs3.h"

namespace nfsrdma::nfs3 {

/// What is going to be done with an object.
enum class Use : std::uint8_t {
  kLook,
  kChange,  // NFS3ERR_ROFS where the export or its file system is read-only
};

class CallContext {
 public:
  CallContext(ServerContext& server, Request& request) : server_(server), request_(request) {}

  /// The object that `handle` names, with fresh attributes; from then on the thread acts as the
  /// (squashed) caller. After an error with would_block() the procedure returns kWouldBlock.
  xdr::nfsstat3 resolve(const xdr::nfs_fh3& handle, Use use, Resolved* object);
  bool would_block() const { return would_block_; }

  /// After resolve():
  const Export& exported() const { return *export_; }
  const ExportAccess& access() const { return access_; }
  const CallerIdentity& caller() const { return *caller_; }
  ServerContext& server() { return server_; }
  Request& request() { return request_; }

  /// The reply shall wait until the object's changes are on stable storage. The object stays open
  /// until then. Objects without a descriptor to sync (links, devices) are covered by their
  /// directory's.
  void wait_for(Resolved& object);
  /// The same, when the export is `sync`, for a change of names or attributes.
  void wait_for_metadata(Resolved& object) {
    if (access_.sync) wait_for(object);
  }
  /// kReplyDurable when there is something to wait for. `status_mark` is where the result begins;
  /// `failure_words` as in Request.
  Outcome outcome(std::size_t status_mark, std::size_t failure_words = 2);

 private:
  ServerContext& server_;
  Request& request_;
  const Export* export_ = nullptr;
  ExportAccess access_;
  const CallerIdentity* caller_ = nullptr;
  bool would_block_ = false;
  std::size_t durable_count_ = 0;
};

/// Names for objects to be made or removed: one component, neither "." nor "..". 0 or an errno;
/// `dots` is the one for those two.
int check_new_name(std::string_view name, int dots);

/// A name for system calls.
class EntryName {
 public:
  /// `name` has passed check_new_name().
  explicit EntryName(std::string_view name);
  const char* c_str() const { return text_; }

 private:
  char text_[256];
};

}  // namespace nfsrdma::nfs3
