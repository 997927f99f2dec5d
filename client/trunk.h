// SPDX-License-Identifier: Apache-2.0
// Trunk: further addresses of a mount's server (session trunking, RFC 8881, section 2.10.5.1). Each
// has a further connection of the RpcClient (rpc_connection.h), and that carries calls from when
// the server has shown over it that it is the one of the session. When it is lost, its calls go by
// the other connections; it is made again, and the server asked again, while the mount is in use.
//
// Only over the transport that the mount itself has: a fallback is for the first address.
//
// On the RpcClient's thread. stop() ends all at once; nothing of this may be awaited when it is
// destroyed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/pauses.h"
#include "client/rpc_client.h"

namespace nfsrdma {

class Trunk {
 public:
  /// How long the server may take to connect and to say who it is.
  static constexpr std::chrono::seconds kPatience{5};

  /// NfsOperations::leads_here() or the like, over within op.cancel->cancel().
  using LeadsHere = std::function<Task<Result<bool>>(const OpContext& op, RpcConnection& way)>;

  /// What happens to addresses later: one of the threads of a mount tells it.
  enum class Log : std::uint8_t { kYes, kNo };

  /// `rpc` outlives it.
  Trunk(RpcClient& rpc, LeadsHere leads_here, Log log = Log::kNo);
  ~Trunk();
  Trunk(const Trunk&) = delete;
  Trunk& operator=(const Trunk&) = delete;

  /// Goes by `candidates`, too: one address. An error says in *detail, which outlives the Task, why
  /// not; that address is let go of then. EXDEV: another server is there. kUnsupported: the version
  /// knows no trunking. Over after kPatience.
  Task<Result<void>> join(std::vector<TransportCandidate> candidates, std::string* detail);
  void stop();

 private:
  struct Way;
  Task<Result<void>> show(Way& way, std::string* detail);
  Task<Result<void>> ask(Way& way, CancelToken& patience, std::string* detail);
  Task<void> keep(Way& way);
  Task<void> let_go(Way& way);

  RpcClient& rpc_;
  const LeadsHere leads_here_;
  const Log log_;
  std::vector<std::unique_ptr<Way>> ways_;
  Pauses pauses_;
  CancelToken stopping_;
  bool stopped_ = false;
  TaskGroup tasks_;
};

}  // namespace nfsrdma
