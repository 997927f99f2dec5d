// SPDX-License-Identifier: Apache-2.0
// One NFSv3 call: arguments out, result in, JUKEBOX ("later") waited for. The result holds views
// into the reply: use it up before the next co_await.
#pragma once

#include <algorithm>

#include "client/nfs3/convert.h"
#include "client/rpc_client.h"
#include "xdr/nfs3.h"

namespace nfsrdma::nfs3 {

/// What a call needs besides its arguments.
struct CallShape {
  MutableByteSpan sink{};         // for READ data or a link's text
  std::size_t max_results = 512;  // bytes of results without what goes into the sink
};

template <typename Res>
struct Answer {
  Res value;
  bool resent = false;  // went out again after a lost connection
};

inline constexpr Duration kJukeboxFirst = std::chrono::milliseconds(100);
inline constexpr Duration kJukeboxLongest = std::chrono::seconds(5);

/// `args` and `op` stay in place until the Task is done.
template <typename Res, typename Args>
Task<Result<Answer<Res>>> call(RpcClient& rpc, const OpContext& op, xdr::nfsproc3 procedure,
                               const Args& args, CallShape shape = {}) {
  const TimePoint started = rpc.environment().now();
  for (Duration wait = kJukeboxFirst;; wait = std::min(2 * wait, kJukeboxLongest)) {
    {
      RpcCallLease call =
          rpc.prepare(xdr::kNfsProgram, xdr::kNfsV3, static_cast<std::uint32_t>(procedure), op);
      call->arguments(args);
      call->set_sink(shape.sink);
      call->set_max_results(shape.max_results);
      Result<void> outcome = co_await call->run();
      if (!outcome.ok()) co_return outcome.error();
      Answer<Res> answer;
      answer.resent = call->resent();
      if constexpr (!std::is_same_v<Res, xdr::Void>) {
        if (!xdr::decode(call->results(), answer.value)) {
          co_return Error{Errc::kProtocol, EIO, "undecodable NFS result"};
        }
        if (answer.value.status != xdr::nfsstat3::NFS3ERR_JUKEBOX) co_return answer;
      } else {
        co_return answer;
      }
    }
    const Duration limit = rpc.options().timeo * (rpc.options().retrans + 1);
    if (rpc.options().soft && rpc.environment().now() - started >= limit) {
      co_return Error{Errc::kTimedOut, ETIMEDOUT, "the server keeps saying: later"};
    }
    co_await rpc.sleep(wait, op.cancel);
  }
}

}  // namespace nfsrdma::nfs3
