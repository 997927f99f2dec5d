// SPDX-License-Identifier: Apache-2.0
// LockCall: what every procedure of NLM does first: who calls, which file it is about, and whether
// he may lock it. On the stack of the procedure, on a worker's thread.
#pragma once

#include "server/files/file_call.h"
#include "server/nlm/lock_service.h"
#include "xdr/nlm4.h"

namespace nfsrdma::nlm {

/// Where the call came from, as the host `name`.
Host caller_of(const Request& request, std::string_view name);

class LockCall {
 public:
  LockCall(ServerContext& server, Request& request)
      : server_(server), request_(request), call_(server, request) {}

  enum class Use : std::uint8_t {
    kTake,     // LOCK, SHARE: the host becomes known
    kTest,     // TEST: as LOCK, but nothing is taken
    kRelease,  // UNLOCK, CANCEL, UNSHARE: whoever may not lock any more may still let go, from a
               // port that the export's `secure` admits
  };
  /// NLM4_GRANTED: all below is there. `state`: of the host's status monitor, 0 if it is not told.
  xdr::nlm4_stats find(const xdr::nlm4_lock& lock, bool exclusive, Use use, std::int32_t state = 0);
  xdr::nlm4_stats find(const xdr::nlm4_share& share, Use use);

  /// The handle was good, and the host may use the export.
  bool admitted() const { return admitted_; }
  FileEntry& file() { return *object_.file; }
  FilePin take_file() { return std::move(object_.file); }
  const Host& host() const { return host_; }
  const Wish& wish() const { return wish_; }

 private:
  /// `writes`: wants to write. `excludes`: wants others, who may have the file open under a
  /// delegation that the server knows nothing of, to be kept out.
  xdr::nlm4_stats find_file(ByteSpan handle, bool writes, bool excludes, Use use);
  xdr::nlm4_stats find_host(Use use, std::int32_t state);
  bool find_held(ByteSpan handle);
  xdr::nlm4_stats check_port();
  bool may_lock(bool writes);
  bool holds_some();

  ServerContext& server_;
  Request& request_;
  FileCall call_;
  Resolved object_;
  bool admitted_ = false;
  Host host_;
  Wish wish_;
};

}  // namespace nfsrdma::nlm
