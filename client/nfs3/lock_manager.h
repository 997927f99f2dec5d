// SPDX-License-Identifier: Apache-2.0
// LockManager: calls of NLM version 4 (xdr/nlm4.h), wherever a server has it. Ours serves NLM on
// the NFS connection itself; where that says that there is no such program, rpcbind knows the TCP
// port (Linux's lockd), and a connection of its own goes there.
//
//   unknown --NULL on the NFS connection--> on the NFS connection
//      |  ^                                     | the program is gone
//      |  +-------------------------------------+
//      |  +------------------------------ at a port of its own --+ cannot be reached there any more
//      +--- rpcbind, NULL there ---------------^
//      +--- neither: absent (ENOLCK), asked again after kAbsent
//
// A hard mount goes on until there is an answer, a soft one for as long as its calls may take. All
// calls may be made twice: whoever holds a lock may ask for it again, and unlock what it has not.
//
// On the loop's thread. `nfs` outlives this, which outlives its Tasks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/gate.h"
#include "client/nfs_types.h"
#include "client/pauses.h"
#include "client/rpc_client.h"
#include "xdr/nlm4.h"

namespace nfsrdma::nfs3 {

/// Who locks, to the server: this mount among all of this host and others, Linux's own lockd
/// included.
struct LockCaller {
  std::string name;
  std::uint64_t id = 0;

  /// Of this process.
  static LockCaller make();
  /// The number that the server tells owners apart by. Linux's server tells a host's owners apart
  /// by nothing else, and all mounts of a host are one to it: the mount's id is in it.
  std::uint32_t svid(LockOwnerId owner) const;
};

/// What LOCK, TEST and UNLOCK name.
struct NlmRange {
  FileHandle file;
  std::uint32_t svid = 0;
  LockKind kind = LockKind::kRead;
  ByteRange range;
};

/// How else than by the NFS connection the server can be reached.
class LockManagerWays {
 public:
  virtual ~LockManagerWays() = default;
  /// Where NLM is by TCP, as rpcbind has it; none: not registered.
  virtual Task<Result<std::optional<SocketAddress>>> find(CancelToken* cancel,
                                                          std::string* detail) = 0;
  virtual std::unique_ptr<RpcClient> connect_to(const SocketAddress& address) = 0;
};

class LockManager {
 public:
  /// Until a server that had none is asked again.
  static constexpr Duration kAbsent = std::chrono::seconds(60);

  LockManager(RpcClient& nfs, std::unique_ptr<LockManagerWays> ways);
  ~LockManager();
  /// `lost` is told when a connection to the manager broke; nothing of this may be called from
  /// there.
  void set_on_lost(std::function<void()> lost) { on_lost_ = std::move(lost); }
  /// Everything fails with EIO from now on. The NFS connection is the caller's business.
  void abort();

  // ENOLCK: the server has no lock manager, and what is said of that was said in the log.
  Task<Result<void>> null(const OpContext& op);
  enum class How : std::uint8_t { kNew, kReclaim };
  Task<Result<xdr::nlm4_stats>> lock(const OpContext& op, const LockCaller& as,
                                     const NlmRange& what, How how);
  Task<Result<xdr::nlm4_stats>> unlock(const OpContext& op, const LockCaller& as,
                                       const NlmRange& what);
  /// NLM4_DENIED: *holder is what is in the way.
  Task<Result<xdr::nlm4_stats>> test(const OpContext& op, const LockCaller& as,
                                     const NlmRange& what, FileLock* holder);
  /// The server lets go of all that `as` holds. Only where it is on_nfs_connection(): Linux's lockd
  /// takes the address for the caller, and would let go of what others of this host hold.
  Task<Result<void>> free_all(const OpContext& op, const LockCaller& as);
  bool on_nfs_connection() const { return place_ == Place::kNfs; }
  /// "", "NFS connection", "192.0.2.1:32803": for people.
  std::string place() const;
  RpcClient& nfs() { return nfs_; }

 private:
  enum class Place : std::uint8_t { kUnknown, kNfs, kItsOwn };

  template <typename Args, typename Parse>
  Task<Result<void>> ask(const OpContext& op, xdr::nlmproc4 procedure, const Args& args,
                         Parse parse);
  template <typename Args, typename Parse>
  Task<Result<void>> ask_at(RpcClient& rpc, const OpContext& op, xdr::nlmproc4 procedure,
                            const Args& args, Parse parse);
  Task<Result<RpcClient*>> reach(const OpContext& op);
  /// One at a time.
  Task<Result<void>> find(const OpContext& op);
  Task<Result<void>> find_elsewhere(const OpContext& op, std::string* detail);
  void lost(Place place);
  /// Is a call that ended with `why` to be made again? Forgets the place where that was.
  bool again(const Error& why, TimePoint started);

  RpcClient& nfs_;
  std::unique_ptr<LockManagerWays> ways_;
  std::function<void()> on_lost_;
  Pauses pauses_;
  Place place_ = Place::kUnknown;
  std::unique_ptr<RpcClient> own_;
  SocketAddress address_;  // of own_
  bool finding_ = false;
  Gate found_;
  bool ever_found_ = false;
  std::optional<TimePoint> absent_since_;
  bool told_ = false;
  bool aborted_ = false;
  bool unmonitored_ = false;  // the server refuses LOCK, and takes NM_LOCK
  std::uint32_t last_cookie_ = 0;
};

}  // namespace nfsrdma::nfs3
