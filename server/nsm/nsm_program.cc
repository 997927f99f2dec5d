// SPDX-License-Identifier: Apache-2.0
// The procedures. What lock managers ask of their own host's monitor is for root of this machine
// alone: loopback, and a port below 1024.
#include "server/nsm/nsm_program.h"

#include "server/nsm/status_monitor.h"
#include "server/server_context.h"
#include "xdr/nsm1.h"

namespace nfsrdma {

namespace {

using nsm::Monitored;
using xdr::Decoder;
using xdr::Encoder;
using xdr::nsm_res;

bool is_local_root(const Request& request) {
  const SocketAddress& peer = request.call->connection().peer();
  return peer.is_loopback() && peer.has_reserved_port();
}

Monitored monitored_of(const xdr::mon_id& id) {
  Monitored out;
  out.mon_name = id.mon_name;
  out.my_name = id.id.my_name;
  out.my_prog = id.id.my_prog;
  out.my_vers = id.id.my_vers;
  out.my_proc = id.id.my_proc;
  return out;
}

/// Could that host be monitored?
Outcome proc_stat(ServerContext& server, Request& request, Decoder& decoder, Encoder& result) {
  xdr::sm_name args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  const bool could = is_local_root(request) && nsm::is_plain_name(args.mon_name);
  xdr::encode(result, xdr::sm_stat_res{could ? nsm_res::STAT_SUCC : nsm_res::STAT_FAIL,
                                       server.nsm->state()});
  return Outcome::kReply;
}

Outcome proc_mon(ServerContext& server, Request& request, Decoder& decoder, Encoder& result) {
  xdr::sm_mon args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  Monitored wanted = monitored_of(args.id);
  wanted.priv = args.priv;
  const bool done = is_local_root(request) && server.nsm->monitor(std::move(wanted));
  xdr::encode(result, xdr::sm_stat_res{done ? nsm_res::STAT_SUCC : nsm_res::STAT_FAIL,
                                       server.nsm->state()});
  return Outcome::kReply;
}

Outcome proc_unmon(ServerContext& server, Request& request, Decoder& decoder, Encoder& result) {
  xdr::mon_id args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  if (is_local_root(request)) server.nsm->unmonitor(monitored_of(args));
  xdr::encode(result, xdr::sm_stat{server.nsm->state()});
  return Outcome::kReply;
}

Outcome proc_unmon_all(ServerContext& server, Request& request, Decoder& decoder, Encoder& result) {
  xdr::my_id args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  if (is_local_root(request)) {
    server.nsm->unmonitor_all(args.my_prog, args.my_vers, args.my_proc);
  }
  xdr::encode(result, xdr::sm_stat{server.nsm->state()});
  return Outcome::kReply;
}

/// A test of others' recovery, which has no place in a server in use: nothing happens.
Outcome proc_simu_crash(ServerContext&, Request&, Decoder& args, Encoder&) {
  return args.at_end() ? Outcome::kReply : Outcome::kGarbageArgs;
}

Outcome proc_notify(ServerContext& server, Request& request, Decoder& decoder, Encoder&) {
  xdr::stat_chge args;
  if (!xdr::decode(decoder, args) || !decoder.at_end()) return Outcome::kGarbageArgs;
  server.nsm->notified(request.call->connection().peer(), args.mon_name, args.state);
  return Outcome::kReply;
}

constexpr Replay kAgain = Replay::kIdempotent;

const ProcedureRow kRows[] = {
    {"NULL", null_procedure, kAgain, Placement::kInline},
    {"STAT", proc_stat, kAgain, Placement::kInline},
    {"MON", proc_mon, kAgain, Placement::kWorker},
    {"UNMON", proc_unmon, kAgain, Placement::kWorker},
    {"UNMON_ALL", proc_unmon_all, kAgain, Placement::kWorker},
    {"SIMU_CRASH", proc_simu_crash, kAgain, Placement::kInline},
    {"NOTIFY", proc_notify, kAgain, Placement::kWorker},
};
static_assert(std::size(kRows) == xdr::kNsm1ProcedureCount);

}  // namespace

ProgramTable nsm1_program() {
  return {xdr::kNsmProgram, xdr::kNsmV1, "NSMv1", kRows};
}

}  // namespace nfsrdma
