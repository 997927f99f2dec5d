// SPDX-License-Identifier: Apache-2.0
// The stages of a call: header and program (here), cache, room, run, conclude. Each may stop to
// wait and is entered again through ServedCall::Next.
#include "server/dispatch.h"

#include <algorithm>

#include "rpcrdma/base/check.h"
#include "rpcrdma/base/clock.h"
#include "rpcrdma/base/probe.h"
#include "server/nfs4/server_state.h"
#include "server/served_call.h"
#include "server/server_context.h"
#include "server/vfs/committer.h"

namespace nfsrdma {

namespace {

// Bytes of an accepted reply's header with any verifier.
constexpr std::size_t kReplyHeader = 24 + xdr::kMaxAuthBytes;

/// nfsstat3 of an fsync that failed.
std::uint32_t commit_status(int error) {
  switch (error) {
    case ENOSPC:
      return 28;  // NFS3ERR_NOSPC
    case EDQUOT:
      return 69;  // NFS3ERR_DQUOT
    case EROFS:
      return 30;  // NFS3ERR_ROFS
    default:
      return 5;  // NFS3ERR_IO
  }
}

void release_progress(Request& request) {
  if (Progress* progress = std::exchange(request.progress, nullptr)) progress->release();
}

bool is_cached(ServedCall& served) {
  const ProcedureRow& row = *served.row;
  const Replay replay = row.replay_of != nullptr ? row.replay_of(served.args) : row.replay;
  served.keep.reset();
  if (replay == Replay::kCached) served.keep = ReplyCache::Keep::kLong;
  if (replay == Replay::kCachedBriefly) served.keep = ReplyCache::Keep::kBriefly;
  return replay != Replay::kIdempotent;
}

}  // namespace

Dispatcher::Dispatcher(EventLoop& loop, const Shared& shared)
    : loop_(loop), shared_(shared), metrics_(shared.programs), times_stages_(shared.slow_ns != 0) {
  for (const ProgramTable& table : shared_.programs) {
    first_of_table_.push_back(stats_.size());
    for (const ProcedureRow& row : table.procedures) {
      ProcedureStats& stats = stats_.emplace_back();
      stats.program = table.name;
      stats.name = row.name;
    }
  }
}

Dispatcher::~Dispatcher() {
  NFSRDMA_CHECK(outstanding_ == 0);
}

void Dispatcher::on_connection_opened(ServerConnection& connection) {
  ++connections_;
  if (shared_.server != nullptr && shared_.server->nfs4 != nullptr) {
    shared_.server->nfs4->connection_opened(connection);
  }
}
void Dispatcher::on_connection_closed(ServerConnection& connection) {
  --connections_;
  if (shared_.server != nullptr && shared_.server->nfs4 != nullptr) {
    shared_.server->nfs4->connection_lost(connection.id);
  }
}

void Dispatcher::on_call(Call& call) {
  xdr::Decoder decoder = call.decoder();
  const std::uint32_t xid = decoder.u32();
  const auto type = static_cast<xdr::msg_type>(decoder.u32());
  // Replies and stumps cannot be answered.
  if (!decoder.ok() || type != xdr::msg_type::CALL) {
    ++rejected_;
    call.drop();
    return;
  }
  xdr::call_body header;
  const bool decoded = xdr::decode(decoder, header);
  if (header.rpcvers != xdr::kRpcVersion) return reject(call, xdr::denied_version(xid));
  if (!decoded) return reject(call, xdr::denied_auth(xid, xdr::auth_stat::AUTH_BADCRED));
  CallAuth auth;
  const xdr::auth_stat verdict = authenticate(header, auth);
  if (verdict != xdr::auth_stat::AUTH_OK) return reject(call, xdr::denied_auth(xid, verdict));
  Target target;
  if (!find_program(header, call, &target)) return;
  ServedCall& served = take(call);
  served.auth = auth;
  served.row = target.row;
  served.stats = target.stats;
  ++served.stats->calls;
  if (times_stages_) served.stages.dispatched = now_ns();
  NFSRDMA_PROBE(call_start, call.connection().id, xid, header.prog, header.vers, header.proc);
  Request& request = served.request;
  request.call = &call;
  request.credentials = auth.credentials;
  request.program = header.prog;
  request.version = header.vers;
  request.procedure = header.proc;
  if (shared_.committer != nullptr) request.failures_before = shared_.committer->failures();
  served.args = decoder;
  if (!auth.flavor->unwrap_arguments(auth, served.args)) {
    return reply_status(served, xdr::accept_stat::GARBAGE_ARGS);
  }
  start(served);
}

bool Dispatcher::find_program(const xdr::call_body& header, Call& call, Target* target) {
  std::uint32_t low = ~0u, high = 0;
  for (std::size_t i = 0; i < shared_.programs.size(); ++i) {
    const ProgramTable& table = shared_.programs[i];
    if (table.program != header.prog) continue;
    low = std::min(low, table.version);
    high = std::max(high, table.version);
    if (table.version != header.vers) continue;
    if (header.proc >= table.procedures.size() || table.procedures[header.proc].run == nullptr) {
      reject(call, xdr::accepted(call.xid(), xdr::accept_stat::PROC_UNAVAIL));
      return false;
    }
    target->row = &table.procedures[header.proc];
    target->stats = &stats_[first_of_table_[i] + header.proc];
    return true;
  }
  const bool known = low <= high;
  reject(call, known ? xdr::accepted(call.xid(), xdr::accept_stat::PROG_MISMATCH, {low, high})
                     : xdr::accepted(call.xid(), xdr::accept_stat::PROG_UNAVAIL));
  return false;
}

void Dispatcher::reject(Call& call, const xdr::rpc_msg& message) {
  ++rejected_;
  if (message.rbody.stat == xdr::reply_stat::MSG_DENIED &&
      message.rbody.rreply.stat == xdr::reject_stat::AUTH_ERROR) {
    ++rejected_auth_;
  }
  xdr::Encoder encoder(call.reply_room());
  xdr::encode(encoder, message);
  call.reply(encoder, Buffer());
}

void Dispatcher::start(ServedCall& served) {
  if (shared_.replies != nullptr && !served.cache_asked && is_cached(served) &&
      !begin_cached(served)) {
    return;
  }
  if (!served.reserved && !reserve(served)) return;
  const bool works =
      served.row->placement == Placement::kWorker ||
      (served.row->placement == Placement::kMeasured && served.stats->placement.on_workers());
  if (!works) return run(served);
  to_worker(served);
}

void Dispatcher::to_worker(ServedCall& served) {
  served.request.may_block = true;
  served.on_worker = true;
  ++served.stats->on_workers;
  shared_.workers->submit(served);
}

/// A worker said that it cannot be done now. It holds no worker meanwhile, but what came with it.
void Dispatcher::put_off(ServedCall& served) {
  constexpr auto kMoment = std::chrono::milliseconds(100);
  served.encoder.rewind(served.results_mark);
  put_off_.push_back(served);
  if (!again_.armed()) again_.arm_after(loop_, kMoment);
}

void Dispatcher::run_put_off() {
  while (ServedCall* served = put_off_.pop_front())
    to_worker(*served);
}

/// A reply header for `served`; the results go behind it.
void Dispatcher::begin_reply(ServedCall& served, xdr::accept_stat stat) {
  served.encoder = xdr::Encoder(served.call->reply_room());
  xdr::rpc_msg header = xdr::accepted(served.call->xid(), stat);
  header.rbody.areply.verf = served.auth.flavor->reply_verifier(served.auth);
  xdr::encode(served.encoder, header);
  served.results_mark = served.encoder.mark();
}

/// True: the call is to be run.
bool Dispatcher::begin_cached(ServedCall& served) {
  Call& call = *served.call;
  const Request& request = served.request;
  const ByteSpan reduced = call.reduced().empty() ? ByteSpan() : call.reduced().front().bytes;
  const ReplyCache::Key key =
      ReplyCache::make_key(call.connection().peer(), call.xid(), request.program, request.version,
                           request.procedure, served.args.rest(), reduced);
  // Results of an earlier call are copied to where they belong in the reply. Set before asking:
  // whoever runs the first call may hand this one back at any moment.
  served.next = ServedCall::Next::kStart;
  begin_reply(served, xdr::accept_stat::SUCCESS);
  const MutableByteSpan room = call.reply_room().subspan(served.results_mark);
  std::size_t size = 0;
  switch (shared_.replies->begin(key, call.connection().id, served, &served.entry, room, &size)) {
    case ReplyCache::Verdict::kNew:
    case ReplyCache::Verdict::kUncached:
      served.cache_asked = true;
      return true;
    case ReplyCache::Verdict::kReplay:
      if (size <= room.size()) {
        served.encoder.advance(size);
        send(served, false);
      } else if (call.reserve_reply(kReplyHeader + size)) {
        return begin_cached(served);
      } else {
        call.connection().buffers().wait_for_buffers(served, call.connection().buffer_share);
      }
      return false;
    case ReplyCache::Verdict::kWait:
      return false;
    case ReplyCache::Verdict::kDrop:
      drop(served);
      return false;
  }
  return false;
}

/// True: there is room for the reply.
bool Dispatcher::reserve(ServedCall& served) {
  Call& call = *served.call;
  if (served.row->reply_bytes != nullptr) {
    const std::size_t wanted = kReplyHeader + served.row->reply_bytes(*shared_.server, served.args);
    if (wanted > BufferPool::kMaxBuffer) {
      reply_status(served, xdr::accept_stat::GARBAGE_ARGS);
      return false;
    }
    if (wanted > Call::kInlineReply && !call.reserve_reply(wanted)) {
      served.next = ServedCall::Next::kStart;
      call.connection().buffers().wait_for_buffers(served, call.connection().buffer_share);
      return false;
    }
  }
  served.reserved = true;
  begin_reply(served, xdr::accept_stat::SUCCESS);
  return true;
}

/// On the loop's thread.
void Dispatcher::run(ServedCall& served) {
  const bool measured = served.row->placement == Placement::kMeasured;
  if (measured || times_stages_) served.request.started_ns = now_ns();
  if (times_stages_ && served.stages.begun == 0) served.stages.begun = served.request.started_ns;
  NFSRDMA_PROBE(run_start, served.call->connection().id, served.call->xid(), 0);
  xdr::Decoder args = served.args;
  std::uint64_t& ended = served.request.ended_ns;
  ended = 0;
  const Outcome outcome = served.row->run(*shared_.server, served.request, args, served.encoder);
  const bool placed = measured && outcome != Outcome::kWouldBlock;
  if (ended == 0 && (placed || times_stages_)) ended = now_ns();
  if (placed) {
    served.stats->placement.add((ended - served.request.started_ns) / served.request.work_units);
  }
  if (times_stages_) served.stages.ran = ended;
  if (outcome != Outcome::kReply) ended = 0;
  NFSRDMA_PROBE(run_end, served.call->connection().id, served.call->xid(), outcome);
  conclude(served, outcome);
}

void ServedCall::run_on_worker() {
  xdr::Decoder decoder = args;
  request.started_ns = now_ns();
  if (stages.begun == 0) stages.begun = request.started_ns;
  NFSRDMA_PROBE(run_start, call->connection().id, call->xid(), 1);
  outcome = row->run(*dispatcher.shared_.server, request, decoder, encoder);
  stages.ran = now_ns();
  request.ended_ns = 0;  // it has yet to come back to the loop's thread
  elapsed_ns = stages.ran - request.started_ns;
  NFSRDMA_PROBE(run_end, call->connection().id, call->xid(), outcome);
  if (outcome != Outcome::kReplyDurable || dispatcher.shared_.committer == nullptr) {
    return hand_back(Next::kConclude);
  }
  // Not by way of the loop, which would have nothing to do for it.
  wants_commit();
  dispatcher.shared_.committer->submit(*this);
}

void ServedCall::wants_commit() {
  fds = request.durable_fd;
  data_only = request.durable_data_only;
  since = request.durable_since();
}

void ServedCall::finish(int error) {
  commit_error = error;
  hand_back(Next::kCommitted);
}

void ServedCall::on_original_done() {
  hand_back(Next::kStart);
}
void ServedCall::on_superseded() {
  hand_back(Next::kDrop);
}

void ServedCall::on_buffers() {
  if (next == Next::kRun) {
    dispatcher.find_buffer(*this);
  } else if (next == Next::kGrow) {
    dispatcher.grow(*this);
  } else {
    dispatcher.start(*this);
  }
}

/// Any thread. The first to push onto an empty list wakes the loop.
void ServedCall::hand_back(Next what) {
  next = what;
  Dispatcher& owner = dispatcher;
  ServedCall* head = owner.mailbox_.load(std::memory_order_relaxed);
  do {
    next_in_mailbox = head;
  } while (!owner.mailbox_.compare_exchange_weak(head, this, std::memory_order_acq_rel));
  if (head == nullptr) owner.loop_.post([&owner] { owner.empty_mailbox(); });
}

void Dispatcher::empty_mailbox() {
  ServedCall* newest = mailbox_.exchange(nullptr, std::memory_order_acq_rel);
  ServedCall* oldest = nullptr;
  while (newest != nullptr) {
    ServedCall* before = newest->next_in_mailbox;
    newest->next_in_mailbox = oldest;
    oldest = newest;
    newest = before;
  }
  while (oldest != nullptr) {
    ServedCall& served = *oldest;
    oldest = served.next_in_mailbox;
    deliver(served);
  }
}

void Dispatcher::deliver(ServedCall& served) {
  switch (served.next) {
    case ServedCall::Next::kStart:
      return start(served);
    case ServedCall::Next::kRun:
      return find_buffer(served);
    case ServedCall::Next::kGrow:
      return grow(served);
    case ServedCall::Next::kConclude:
      came_from_worker(served);
      if (served.outcome == Outcome::kWouldBlock) return put_off(served);
      return conclude(served, served.outcome);
    case ServedCall::Next::kCommitted:
      came_from_worker(served);
      return committed(served);
    case ServedCall::Next::kDrop:
      return drop(served);
  }
}

/// Once for each time that a worker ran it.
void Dispatcher::came_from_worker(ServedCall& served) {
  if (!std::exchange(served.request.may_block, false)) return;
  if (served.row->placement != Placement::kMeasured) return;
  served.stats->placement.add(served.elapsed_ns / served.request.work_units);
}

void Dispatcher::conclude(ServedCall& served, Outcome outcome) {
  switch (outcome) {
    case Outcome::kReply:
      return send(served, true);
    case Outcome::kWouldBlock:
      if (served.request.progress == nullptr) served.encoder.rewind(served.results_mark);
      return to_worker(served);
    case Outcome::kNeedBuffer:
      if (served.request.progress == nullptr) served.encoder.rewind(served.results_mark);
      return lack_buffer(served);
    case Outcome::kNeedRoom:
      return grow(served);
    case Outcome::kReplyDurable:
      return commit(served);
    case Outcome::kGarbageArgs:
      return reply_status(served, xdr::accept_stat::GARBAGE_ARGS);
    case Outcome::kSystemError:
      return reply_status(served, xdr::accept_stat::SYSTEM_ERR);
    case Outcome::kDrop:
      return drop(served);
  }
}

/// Calls that wait for buffers while they hold some of the same stage would wait for each other
/// (BufferStage); those with much data of an earlier one would keep others from beginning.
bool Dispatcher::must_not_wait(const ServedCall& served) {
  constexpr std::size_t kLittle = 64u << 10;
  const Request& request = served.request;
  return request.progress != nullptr &&
         (request.payload || served.call->reply_room().size() > Call::kInlineReply ||
          served.call->request_bytes() > kLittle);
}

/// The procedure asked for request.buffer_wanted bytes (0: for whatever it did not get).
void Dispatcher::lack_buffer(ServedCall& served) {
  Request& request = served.request;
  // More than there ever is, or what it already has: asking again would not end.
  const bool hopeless =
      request.buffer_wanted > BufferPool::kMaxBuffer || request.has_memory(request.buffer_wanted);
  if (hopeless) return reply_status(served, xdr::accept_stat::SYSTEM_ERR);
  request.payload = Buffer();
  served.next = ServedCall::Next::kRun;
  if (request.buffer_wanted == 0) {
    return served.call->connection().buffers().wait_for_buffers(
        served, served.call->connection().buffer_share);
  }
  find_buffer(served);
}

/// Gets the buffer and goes on, or waits in line for it.
void Dispatcher::find_buffer(ServedCall& served) {
  Request& request = served.request;
  BufferPool& pool = served.call->connection().buffers();
  if (request.buffer_wanted > 0) {
    request.payload = pool.acquire(request.buffer_wanted);
    if (!request.payload) {
      if (!must_not_wait(served))
        return pool.wait_for_buffers(served, served.call->connection().buffer_share);
      request.no_memory = true;
    }
  }
  start(served);
}

/// The procedure asked for request.room_wanted bytes of room for its result, which is not empty.
void Dispatcher::grow(ServedCall& served) {
  Call& call = *served.call;
  const std::size_t wanted = served.encoder.size() + served.request.room_wanted;
  if (wanted > BufferPool::kMaxBuffer) return reply_status(served, xdr::accept_stat::SYSTEM_ERR);
  const ByteSpan written = served.encoder.bytes();
  const std::vector<std::byte> kept(written.begin(), written.end());
  if (!call.reserve_reply(wanted)) {
    if (must_not_wait(served)) {
      served.request.no_memory = true;
      return start(served);
    }
    served.next = ServedCall::Next::kGrow;
    return call.connection().buffers().wait_for_buffers(served, call.connection().buffer_share);
  }
  std::copy(kept.begin(), kept.end(), call.reply_room().begin());
  served.encoder.move_to(call.reply_room());
  start(served);
}

void Dispatcher::commit(ServedCall& served) {
  if (shared_.committer == nullptr) return send(served, true);
  served.wants_commit();
  shared_.committer->submit(served);
}

void Dispatcher::committed(ServedCall& served) {
  if (times_stages_) served.stages.committed = now_ns();
  NFSRDMA_PROBE(commit_end, served.call->connection().id, served.call->xid(), served.commit_error);
  if (served.request.progress != nullptr) {
    // It knows best what its result becomes.
  } else if (served.commit_error != 0) {
    xdr::Encoder& encoder = served.encoder;
    encoder.rewind(served.request.status_mark);
    encoder.u32(commit_status(served.commit_error));
    for (std::size_t i = 0; i < served.request.failure_words; ++i)
      encoder.u32(0);
  } else if (const std::size_t mark = served.request.verifier_mark; mark != 0) {
    // A sync of another file may have failed meanwhile: the client must see the verifier of now.
    const std::uint64_t verifier = shared_.server->verifier.value();
    served.encoder.patch_u32(mark, static_cast<std::uint32_t>(verifier >> 32));
    served.encoder.patch_u32(mark + 4, static_cast<std::uint32_t>(verifier));
  }
  send(served, true);
}

/// An accepted reply without results.
void Dispatcher::reply_status(ServedCall& served, xdr::accept_stat stat) {
  begin_reply(served, stat);
  served.request.payload = Buffer();
  release_progress(served.request);
  ++rejected_;
  send(served, false);
}

void Dispatcher::send(ServedCall& served, bool remember) {
  xdr::Encoder& encoder = served.encoder;
  if (served.request.progress != nullptr && !encoder.overflowed()) {
    served.request.progress->finish(encoder, std::exchange(served.commit_error, 0));
  }
  if (encoder.overflowed()) {
    if (trouble_.allow()) {
      log_error("{} {}: the result does not fit into {} bytes", served.stats->program,
                served.row->name, served.call->reply_room().size());
    }
    return reply_status(served, xdr::accept_stat::SYSTEM_ERR);
  }
  if (served.entry != nullptr) {
    NFSRDMA_CHECK(shared_.replies != nullptr);
    ReplyCache::Entry* entry = std::exchange(served.entry, nullptr);
    if (remember && served.request.remember && served.keep && encoder.payloads().empty()) {
      shared_.replies->finish(entry, encoder.bytes().subspan(served.results_mark), *served.keep);
    } else {
      shared_.replies->abandon(entry);
    }
  }
  NFSRDMA_CHECK(served.auth.flavor != nullptr);
  measure(served);
  served.auth.flavor->wrap_results(served.auth, encoder, served.results_mark);
  served.call->reply(encoder, std::move(served.request.payload));
  recycle(served);
}

void Dispatcher::drop(ServedCall& served) {
  if (served.entry != nullptr) {
    NFSRDMA_CHECK(shared_.replies != nullptr);
    shared_.replies->abandon(std::exchange(served.entry, nullptr));
  }
  served.call->drop();
  recycle(served);
}

ServedCall& Dispatcher::take(Call& call) {
  ServedCall* served = free_.pop_front();
  if (served == nullptr) {
    all_.push_back(std::make_unique<ServedCall>(*this));
    served = all_.back().get();
  }
  served->call = &call;
  ++outstanding_;
  return *served;
}

void Dispatcher::recycle(ServedCall& served) {
  release_progress(served.request);
  if (served.request.release != nullptr) served.request.release(served.request);
  served.request = Request();
  served.call = nullptr;
  served.stages = CallStages();
  served.commit_error = 0;
  served.on_worker = false;
  served.cache_asked = false;
  served.reserved = false;
  --outstanding_;
  free_.push_front(served);
}

}  // namespace nfsrdma
