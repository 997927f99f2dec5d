// SPDX-License-Identifier: Apache-2.0
// One call of NFSv3, or of a program that speaks as it does (NFSACL): arguments out, result in,
// JUKEBOX ("later") waited for. The result holds views into the reply: use it up before the next
// co_await.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "client/nfs3/convert.h"
#include "client/rpc_client.h"
#include "xdr/nfs3.h"

namespace nfsrdma::nfs3 {

/// What a call needs besides its arguments.
struct CallShape {
  MutableByteSpan sink{};         // for READ data or a link's text
  std::size_t max_results = 512;  // bytes of results without what goes into the sink
  std::size_t arguments = 0;      // bytes, where they are more than handles and names
};

struct ProcedureNumber {
  std::uint32_t program;
  std::uint32_t version;
  std::uint32_t procedure;
};

template <typename Res>
struct Answer {
  Res value;
  bool resent = false;  // went out again after a lost connection
};

inline constexpr Duration kJukeboxFirst = std::chrono::milliseconds(100);
inline constexpr Duration kJukeboxLongest = std::chrono::seconds(5);

/// The longest name among the arguments; 0 without one.
template <typename Args>
std::size_t longest_name(const Args& args) {
  if constexpr (requires { args.what.name; }) {
    return args.what.name.size();
  } else if constexpr (requires { args.where.name; }) {
    return args.where.name.size();
  } else if constexpr (requires { args.object.name; }) {
    return args.object.name.size();
  } else if constexpr (requires { args.link.name; }) {
    return args.link.name.size();
  } else if constexpr (requires { args.from.name; }) {
    return std::max(args.from.name.size(), args.to.name.size());
  } else {
    return 0;
  }
}

/// Linux's server refuses to decode names over 255 bytes, where applications wait for ENAMETOOLONG.
/// Not refused here, because others may take longer ones.
inline Error call_error(const Error& error, std::size_t name) {
  constexpr std::size_t kUsualLongestName = 255;
  if (error.code != Errc::kProtocol || name <= kUsualLongestName) return error;
  return {Errc::kInvalid, ENAMETOOLONG, error.where};
}

/// The server has said "later" to that procedure for `so_far`.
inline void note_put_off(RpcClient& rpc, ProcedureNumber number, Duration so_far) {
  std::string_view name = "a call of NFSACL";
  if (number.program == xdr::kNfsProgram) {
    name = xdr::enum_name(static_cast<xdr::nfsproc3>(number.procedure));
    if (name.starts_with("NFSPROC3_")) name.remove_prefix(9);
  }
  rpc.put_off({NfsVersion{}, name, xdr::enum_name(xdr::nfsstat3::NFS3ERR_JUKEBOX), so_far});
}

/// `args` and `op` stay in place until the Task is done.
template <typename Res, typename Args>
Task<Result<Answer<Res>>> call(RpcClient& rpc, const OpContext& op, ProcedureNumber number,
                               const Args& args, CallShape shape = {}) {
  const TimePoint started = rpc.environment().now();
  std::optional<TimePoint> put_off_since;
  bool resent = false;  // what the server says "later" to may have run all the same
  for (Duration wait = kJukeboxFirst;; wait = std::min(2 * wait, kJukeboxLongest)) {
    {
      RpcCallLease call =
          rpc.prepare(number.program, number.version, number.procedure, op, shape.arguments);
      call->arguments(args);
      call->set_sink(shape.sink);
      call->set_max_results(shape.max_results);
      Result<void> outcome = co_await call->run();
      if (!outcome.ok()) co_return call_error(outcome.error(), longest_name(args));
      Answer<Res> answer;
      answer.resent = resent = resent || call->resent();
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
    const TimePoint now = rpc.environment().now();
    if (!put_off_since) put_off_since = now;
    note_put_off(rpc, number, now - *put_off_since);
    co_await rpc.sleep(wait, op.cancel);
  }
}

template <typename Res, typename Args>
Task<Result<Answer<Res>>> call(RpcClient& rpc, const OpContext& op, xdr::nfsproc3 procedure,
                               const Args& args, CallShape shape = {}) {
  const ProcedureNumber number{xdr::kNfsProgram, xdr::kNfsV3,
                               static_cast<std::uint32_t>(procedure)};
  return call<Res>(rpc, op, number, args, shape);
}

}  // namespace nfsrdma::nfs3
