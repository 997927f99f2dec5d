// SPDX-License-Identifier: Apache-2.0
#include "server/host_calls.h"

#include <netinet/in.h>

#include <array>
#include <utility>

#include "rpcrdma/base/host_name.h"
#include "xdr/rpc.h"
#include "xdr/rpc_auth.h"
#include "xdr/rpcb.h"
#include "xdr/universal_address.h"

namespace nfsrdma {

namespace {

constexpr std::size_t kMostUnderWay = 1024;  // of one program on one host
constexpr std::size_t kMostLines = 512;
constexpr Duration kPortLife = std::chrono::seconds(60);
constexpr Duration kSweepInterval = std::chrono::seconds(30);

/// The first word, the xid, is set by the CallbackLine.
std::vector<std::byte> make_message(std::uint32_t program, std::uint32_t version,
                                    std::uint32_t procedure, const std::string* machine,
                                    ByteSpan arguments) {
  std::vector<std::byte> message(1024 + arguments.size());
  xdr::rpc_msg call;
  call.mtype = xdr::msg_type::CALL;
  call.cbody.prog = program;
  call.cbody.vers = version;
  call.cbody.proc = procedure;
  std::array<std::byte, xdr::kMaxAuthBytes> room;
  xdr::Encoder credential(room);
  if (machine != nullptr) {
    xdr::authsys_parms parms;
    parms.machinename = std::string_view(*machine).substr(0, xdr::kMaxMachineName);
    xdr::encode(credential, parms);
    call.cbody.cred = {xdr::auth_flavor::AUTH_SYS, credential.bytes()};
  }
  xdr::Encoder out(message);
  xdr::encode(out, call);
  out.fixed_opaque(arguments);
  message.resize(out.size());
  return message;
}

/// What follows the header of a reply that says SUCCESS; false for all else.
bool read_reply(ByteSpan reply, xdr::Decoder* results) {
  *results = xdr::Decoder(reply);
  xdr::rpc_msg header;
  return xdr::decode(*results, header) && header.mtype == xdr::msg_type::REPLY &&
         header.rbody.stat == xdr::reply_stat::MSG_ACCEPTED &&
         header.rbody.areply.stat == xdr::accept_stat::SUCCESS;
}

std::vector<std::byte> port_question(const HostCalls::Target& target) {
  std::array<std::byte, 256> room;
  xdr::Encoder arguments(room);
  // The port mapper, which all rpcbinds are too, knows ports of IPv4 alone.
  if (!target.host.is_v6()) {
    xdr::encode(arguments, xdr::mapping{target.program, target.version, IPPROTO_TCP, 0});
    return make_message(xdr::kRpcbProgram, xdr::kPmapVersion,
                        static_cast<std::uint32_t>(xdr::pmapproc::PMAPPROC_GETPORT), nullptr,
                        arguments.bytes());
  }
  xdr::encode(arguments, xdr::rpcb{target.program, target.version, "tcp6", "", ""});
  return make_message(xdr::kRpcbProgram, xdr::kRpcbVersion4,
                      static_cast<std::uint32_t>(xdr::rpcbproc::RPCBPROC_GETADDR), nullptr,
                      arguments.bytes());
}

/// 0: it is not registered, or that is no answer.
std::uint16_t port_in(const HostCalls::Target& target, ByteSpan reply) {
  xdr::Decoder results{ByteSpan()};
  if (!read_reply(reply, &results)) return 0;
  if (!target.host.is_v6()) {
    xdr::PmapPort port;
    const bool good = xdr::decode(results, port) && port.port <= UINT16_MAX;
    return good ? static_cast<std::uint16_t>(port.port) : 0;
  }
  xdr::RpcbAddress address;
  if (!xdr::decode(results, address)) return 0;
  const auto universal = xdr::parse_universal_address(address.uaddr);
  return universal ? universal->port : 0;
}

}  // namespace

/// One program of one host.
struct HostCalls::Line {
  Target target;
  std::unique_ptr<CallbackLine> rpcbind, program;
  bool asking = false;
  bool moved = false;           // a call got no answer: the port is asked for again
  std::deque<Pending> waiting;  // for the port
  std::map<std::uint64_t, Done> under_way;
  TimePoint used{};

  std::size_t calls() const { return waiting.size() + under_way.size(); }
};

HostCalls::HostCalls(EventLoop& loop, std::uint16_t rpcbind_port)
    : loop_(loop),
      rpcbind_port_(rpcbind_port),
      machine_(host_name()),
      sweep_([this] { sweep(); }) {}

HostCalls::~HostCalls() = default;

void HostCalls::call(const Target& target, std::uint32_t procedure,
                     std::vector<std::byte> arguments, Done done) {
  const std::string key = target.host.host_text() + ' ' +
                          (target.local.family() == AF_UNSPEC ? "" : target.local.host_text()) +
                          ' ' + std::to_string(target.program);
  if (!lines_.contains(key) && lines_.size() >= kMostLines) {
    sweep();
    if (lines_.size() >= kMostLines) return tell(std::move(done), End::kNotSent, {});
  }
  std::unique_ptr<Line>& slot = lines_[key];
  if (slot == nullptr) {
    slot = std::make_unique<Line>();
    slot->target = target;
  }
  Line& line = *slot;
  line.used = loop_.now();
  if (!sweep_.armed()) sweep_.arm_after(loop_, kSweepInterval);
  Pending pending{make_message(target.program, target.version, procedure, &machine_, arguments),
                  std::move(done)};
  if (line.moved && line.under_way.empty()) {
    line.program.reset();
    line.moved = false;
  }
  if (line.calls() >= kMostUnderWay) {
    tell(std::move(pending.done), End::kNotSent, {});
  } else if (line.program != nullptr) {
    send(line, std::move(pending));
  } else {
    line.waiting.push_back(std::move(pending));
    ask_for_port(line);
  }
}

void HostCalls::ask_for_port(Line& line) {
  if (std::exchange(line.asking, true)) return;
  if (line.rpcbind == nullptr) {
    SocketAddress where = line.target.host;
    where.set_port(rpcbind_port_);
    line.rpcbind = std::make_unique<CallbackLine>(
        loop_, where, CallbackLine::From{line.target.local, false},
        [this, &line](std::uint64_t, ByteSpan reply, bool) { heard_of_port(line, reply); });
  }
  line.rpcbind->send(0, port_question(line.target));
}

void HostCalls::heard_of_port(Line& line, ByteSpan reply) {
  line.asking = false;
  std::deque<Pending> waiting = std::exchange(line.waiting, {});
  SocketAddress where = line.target.host;
  where.set_port(reply.empty() ? std::uint16_t{0} : port_in(line.target, reply));
  if (where.port() == 0) {
    for (Pending& pending : waiting)
      tell(std::move(pending.done), End::kNotSent, {});
    return;
  }
  line.program =
      std::make_unique<CallbackLine>(loop_, where, CallbackLine::From{line.target.local, true},
                                     [this, &line](std::uint64_t key, ByteSpan answer, bool left) {
                                       ended(line, key, answer, left);
                                     });
  for (Pending& pending : waiting)
    send(line, std::move(pending));
}

void HostCalls::send(Line& line, Pending pending) {
  const std::uint64_t key = ++last_key_;
  line.under_way[key] = std::move(pending.done);
  line.program->send(key, std::move(pending.message));
}

/// By the line, which is not to be destroyed meanwhile: who is told may make the next call, so he
/// is told later.
void HostCalls::ended(Line& line, std::uint64_t key, ByteSpan reply, bool left) {
  const auto found = line.under_way.find(key);
  if (found == line.under_way.end()) return;
  Done done = std::move(found->second);
  line.under_way.erase(found);
  xdr::Decoder results{ByteSpan()};
  End end = left ? End::kNoAnswer : End::kNotSent;
  if (!reply.empty()) end = read_reply(reply, &results) ? End::kAnswered : End::kRefused;
  // It may have another port by now.
  line.moved = reply.empty();
  tell(std::move(done), end, end == End::kAnswered ? results.rest() : ByteSpan());
}

void HostCalls::tell(Done done, End end, ByteSpan results) {
  loop_.post([done = std::move(done), end, bytes = std::vector(results.begin(), results.end()),
              alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) done(end, bytes);
  });
}

void HostCalls::sweep() {
  std::erase_if(lines_, [this](const auto& entry) {
    Line& line = *entry.second;
    return line.calls() == 0 && !line.asking && loop_.now() - line.used >= kPortLife;
  });
  if (!lines_.empty()) sweep_.arm_after(loop_, kSweepInterval);
}

}  // namespace nfsrdma
