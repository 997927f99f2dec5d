// SPDX-License-Identifier: Apache-2.0
// What a procedure of NFS or MOUNT looks like to the dispatcher, and the other way round.
//
// A procedure is a plain function: it decodes its arguments, does the work with system calls under
// the caller's credentials, and encodes its result. It runs on the shard's thread first. When the
// work could block there (data not in the page cache, a slow file system) it says kWouldBlock
// before it did anything, and is run again from the start on a worker thread with may_block set.
// Nothing suspended, nothing shared: linear text on both sides.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/call.h"
#include "xdr/decoder.h"
#include "xdr/encoder.h"

namespace nfsrdma {

class ServerContext;  // server/server_context.h: exports, file handles, vfs, statistics

/// What the RPC header says about the caller, before any squashing (that depends on the export).
struct RpcCredentials {
  enum class Flavor : std::uint8_t { kNone, kSys };
  Flavor flavor = Flavor::kNone;
  std::uint32_t uid = 65534;
  std::uint32_t gid = 65534;
  static constexpr std::size_t kMaxGroups = 16;  // AUTH_SYS's limit (RFC 5531, appendix A)
  std::array<std::uint32_t, kMaxGroups> groups{};
  std::uint32_t group_count = 0;
  /// Under integrity or privacy nothing may be reduced (RPCSEC_GSS, later).
  bool may_reduce = true;
};

/// One operation of a COMPOUND that was run, for the statistics.
struct OperationTime {
  std::uint32_t number = 0;
  std::uint32_t status = 0;
  std::uint64_t ns = 0;
};

/// What a procedure with several steps keeps while it waits between them (NFSv4's COMPOUND). Such a
/// procedure goes on where it stopped when it is run again; its result so far stays in the encoder.
class Progress {
 public:
  /// On the loop's thread, once the reply is all that is left to do: everything that it had to wait
  /// for has come. `commit_error`: errno of the fsync that the reply waited for, 0 without one. May
  /// change the result.
  virtual void finish(xdr::Encoder& result, int commit_error) = 0;
  /// The call is over, answered or not. On the loop's thread; the object is not used after it.
  virtual void release() = 0;
  /// What was run, in order. Valid until release().
  virtual std::span<const OperationTime> operations() const { return {}; }

 protected:
  ~Progress() = default;
};

enum class Outcome : std::uint8_t {
  kReply,         // the result is encoded: send it
  kWouldBlock,    // nothing was done: run again on a worker thread with may_block set; where it was
                  // set, a moment later (ExportTable::access). Then without Progress
  kNeedBuffer,    // nothing was done: run again when the pool has `buffer_wanted` bytes
  kNeedRoom,      // the same, when the result has room for `room_wanted` bytes. Only with Progress
  kReplyDurable,  // encoded; send it once `durable_fd`'s changes are on stable storage
  kGarbageArgs,   // the arguments do not decode: RPC GARBAGE_ARGS
  kSystemError,   // RPC SYSTEM_ERR
  kDrop,          // no reply
};

/// One call being served. Pooled by the dispatcher; on one thread at a time.
struct Request {
  Call* call = nullptr;
  RpcCredentials credentials;
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::uint32_t procedure = 0;
  bool may_block = false;

  /// Memory for the result's payload (READ, READLINK). Acquired on the shard's thread only, i.e.
  /// while !may_block; kept across a kWouldBlock.
  Buffer payload;
  /// Of `size` bytes at least, to be written to.
  bool has_memory(std::size_t size) const {
    return payload && payload.window() == nullptr && payload.size() >= size;
  }
  std::size_t buffer_wanted = 0;
  std::size_t room_wanted = 0;

  /// Set by procedures that have one, until it is released.
  Progress* progress = nullptr;
  /// There is no memory to be had now, and the call holds too much to wait for it: a procedure with
  /// Progress does with what it has, and does not ask again.
  bool no_memory = false;

  /// Of what goes through the duplicate request cache: false when it turned out to be harmless.
  bool remember = true;

  /// kReplyDurable: descriptors (owned by the vfs' fd cache or by the request, see close_fds) whose
  /// fsync makes the change durable; and where in the reply a status is to be patched should that
  /// fail.
  static constexpr std::size_t kMaxDurable = 3;
  /// Among them: there was no descriptor to be had for one. Its sync fails.
  static constexpr int kNotToBeSynced = std::numeric_limits<int>::max();
  std::array<int, kMaxDurable> durable_fd{-1, -1, -1};
  bool durable_data_only = false;  // fdatasync is enough
  /// Among them is what the call itself has changed: an error that another one's sync has told of
  /// meanwhile is an error of this call, too. (COMMIT has its verifier for that.)
  bool durable_own = false;
  /// Then this is CommitJob::since: as it was when the call came.
  std::uint64_t failures_before = ~std::uint64_t{0};
  std::uint64_t durable_since() const { return durable_own ? failures_before : ~std::uint64_t{0}; }
  std::size_t status_mark = 0;  // Encoder mark of the nfsstat3 word
  /// Then the reply becomes the status and this many zero words: the failed arm of the result
  /// without attributes (wcc_data: 2; LINK: 3; RENAME: 4).
  std::size_t failure_words = 2;
  /// COMMIT: Encoder mark of the 8 verifier bytes, which are to be those in force *after* the sync
  /// (ServerContext::verifier, big-endian): the dispatcher patches them. 0: none.
  std::size_t verifier_mark = 0;
  /// Whatever must stay alive until the reply left (fd cache pins). Released by the dispatcher.
  void (*release)(Request&) = nullptr;
  void* pinned[4] = {};

  /// NFSv4: the client (its clientid4) whose session or, in minor version 0, whose connection it
  /// is. 0: nobody that is known.
  std::uint64_t nfs4_client = 0;

  /// 50,000 ns is a normal metadata call; the dispatcher measures and decides where the next one of
  /// this kind runs. A procedure that did the work of several says so, each time it runs.
  std::uint64_t started_ns = 0;
  std::uint32_t work_units = 1;
  /// When it ended, where somebody looked at the clock then and the reply goes out at once: such a
  /// look costs as much as all the rest of the statistics. 0: nobody did.
  std::uint64_t ended_ns = 0;
};

using ProcedureFn = Outcome (*)(ServerContext& server, Request& request, xdr::Decoder& args,
                                xdr::Encoder& result);

/// NULL of every program but NFS, whose clients send it with anything.
inline Outcome null_procedure(ServerContext&, Request&, xdr::Decoder& args, xdr::Encoder&) {
  return args.at_end() ? Outcome::kReply : Outcome::kGarbageArgs;
}

enum class Replay : std::uint8_t {
  kIdempotent,     // running twice does no harm, or the procedure sees to it itself: not cached
  kOneAtATime,     // the same, but not while the first still runs: it is waited for
  kCached,         // goes into the duplicate request cache
  kCachedBriefly,  // the same, but there are so many of them that only a client's last are kept
};

enum class Placement : std::uint8_t {
  kInline,    // never blocks for long, or says kWouldBlock itself
  kMeasured,  // inline while the file system answers fast, on workers while it does not
  kWorker,    // always on a worker thread (fsync and the like)
};

struct ProcedureRow {
  std::string_view name;  // "READ"
  ProcedureFn run = nullptr;
  Replay replay = Replay::kIdempotent;
  Placement placement = Placement::kInline;
  /// Room that the result needs besides payload, when it is more than Call::kInlineReply:
  /// computed from the arguments. nullptr: fits.
  std::size_t (*reply_bytes)(ServerContext& server, xdr::Decoder args) = nullptr;
  /// Decides in place of `replay`, from the arguments. nullptr: `replay` decides.
  Replay (*replay_of)(xdr::Decoder args) = nullptr;
};

struct ProgramTable {
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::string_view name;  // "NFSv3"
  std::span<const ProcedureRow> procedures;
};

}  // namespace nfsrdma
