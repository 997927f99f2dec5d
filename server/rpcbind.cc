// SPDX-License-Identifier: Apache-2.0
#include "server/rpcbind.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "rpcrdma/base/bytes.h"
#include "xdr/rpc.h"
#include "xdr/rpcb.h"
#include "xdr/universal_address.h"

namespace nfsrdma {

namespace {

constexpr std::uint32_t kLastFragment = 0x80000000u;
// A list of thousands of entries, each of some 60 bytes.
constexpr std::size_t kMaxReply = std::size_t{256} << 10;

std::string owner() {
  return std::to_string(::geteuid());
}

bool is_any(const SocketAddress& address) {
  if (!address.is_v6()) {
    return reinterpret_cast<const sockaddr_in*>(address.data())->sin_addr.s_addr == INADDR_ANY;
  }
  return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(address.data())->sin6_addr);
}

void set_patience(int fd, std::chrono::milliseconds patience) {
  timeval tv{};
  tv.tv_sec = patience.count() / 1000;
  tv.tv_usec = (patience.count() % 1000) * 1000;
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
}

Result<void> read_all(int fd, std::byte* to, std::size_t n) {
  while (n > 0) {
    ssize_t got = ::recv(fd, to, n, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("rpcbind: receive");
    if (got == 0) return Error{Errc::kClosed, 0, "rpcbind: closed"};
    to += got;
    n -= static_cast<std::size_t>(got);
  }
  return {};
}

Result<void> write_all(int fd, const std::byte* from, std::size_t n) {
  while (n > 0) {
    ssize_t sent = ::send(fd, from, n, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return system_error("rpcbind: send");
    from += sent;
    n -= static_cast<std::size_t>(sent);
  }
  return {};
}

}  // namespace

std::vector<RpcbEntry> rpcb_entries(std::uint32_t program, std::uint32_t version,
                                    const std::string& netid, const SocketAddress& listener) {
  const std::uint16_t port = listener.port();
  std::vector<RpcbEntry> entries;
  // A link-local scope has no place in a universal address.
  std::string host = listener.host_text();
  host = host.substr(0, host.find('%'));
  if (listener.is_v6()) {
    entries.push_back({program, version, netid + "6", xdr::format_universal_address(host, port)});
    if (is_any(listener)) {
      entries.push_back({program, version, netid, xdr::format_universal_address("0.0.0.0", port)});
    }
  } else {
    entries.push_back({program, version, netid, xdr::format_universal_address(host, port)});
  }
  return entries;
}

std::string rpcb_entries_text(const std::vector<RpcbEntry>& entries) {
  using Program = std::pair<std::uint32_t, std::uint32_t>;
  std::vector<std::pair<Program, std::string>> netids;
  for (const RpcbEntry& entry : entries) {
    const Program program{entry.program, entry.version};
    const auto known = std::ranges::find(netids, program, &decltype(netids)::value_type::first);
    if (known == netids.end()) {
      netids.emplace_back(program, entry.netid);
    } else {
      known->second += ", " + entry.netid;
    }
  }
  std::string text;
  for (const auto& [program, its] : netids) {
    text += fmt::format("{}{} version {} ({})", text.empty() ? "program " : ", ", program.first,
                        program.second, its);
  }
  return text;
}

RpcbindRegistrar::~RpcbindRegistrar() {
  unregister_all();
}

RpcbindRegistrar::Outcome RpcbindRegistrar::register_all(const std::vector<RpcbEntry>& entries) {
  Outcome outcome;
  outcome.there = connect().ok();
  if (!outcome.there) return outcome;
  for (const RpcbEntry& entry : entries) {
    if (!outcome.left_out.empty()) {
      outcome.left_out.push_back(entry);
      continue;
    }
    auto done = ask(static_cast<std::uint32_t>(xdr::rpcbproc::RPCBPROC_SET), entry);
    if (!done.ok()) {
      outcome.left_out.push_back(entry);
      continue;
    }
    outcome.reachable = true;
    if (*done) {
      registered_.push_back(entry);
      outcome.registered.push_back(entry);
    } else {
      outcome.refused.push_back(entry);
    }
  }
  socket_.reset();
  return outcome;
}

void RpcbindRegistrar::unregister_all() {
  if (registered_.empty()) return;
  auto there = list();
  for (const RpcbEntry& entry : registered_) {
    if (!there.ok()) break;
    if (std::ranges::find(*there, entry) == there->end()) continue;
    if (!ask(static_cast<std::uint32_t>(xdr::rpcbproc::RPCBPROC_UNSET), entry).ok()) break;
  }
  registered_.clear();
  socket_.reset();
}

Result<void> RpcbindRegistrar::connect() {
  if (socket_) return {};
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  if (!where_.socket_path.empty() && where_.socket_path.size() < sizeof local.sun_path) {
    std::memcpy(local.sun_path, where_.socket_path.c_str(), where_.socket_path.size() + 1);
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) return system_error("socket");
    set_patience(fd.get(), where_.patience);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&local), sizeof local) == 0) {
      socket_ = std::move(fd);
      return {};
    }
  }
  if (where_.port == 0) return Error{Errc::kNotFound, 0, "rpcbind"};
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return system_error("socket");
  set_patience(fd.get(), where_.patience);
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_port = htons(where_.port);
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) != 0) {
    return system_error("rpcbind: connect");
  }
  socket_ = std::move(fd);
  return {};
}

/// `message` has four bytes in front for the record mark.
Result<void> RpcbindRegistrar::exchange(std::vector<std::byte>& message,
                                        std::vector<std::byte>* reply) {
  store_be32(message.data(), kLastFragment | static_cast<std::uint32_t>(message.size() - 4));
  NFSRDMA_CHECK_OK(write_all(socket_.get(), message.data(), message.size()));
  reply->clear();
  for (;;) {
    std::byte mark[4];
    NFSRDMA_CHECK_OK(read_all(socket_.get(), mark, sizeof mark));
    const std::uint32_t word = load_be32(mark);
    const std::size_t length = word & ~kLastFragment;
    const std::size_t before = reply->size();
    if (length > kMaxReply - before) return Error{Errc::kProtocol, 0, "rpcbind: reply too long"};
    reply->resize(before + length);
    NFSRDMA_CHECK_OK(read_all(socket_.get(), reply->data() + before, length));
    if ((word & kLastFragment) != 0) return {};
    if (length == 0) return Error{Errc::kProtocol, 0, "rpcbind: empty fragment"};
  }
}

/// True when rpcbind did it.
Result<bool> RpcbindRegistrar::ask(std::uint32_t procedure, const RpcbEntry& entry) {
  std::vector<std::byte> reply;
  std::size_t results = 0;
  auto accepted = call(procedure, &entry, &reply, &results);
  if (!accepted.ok() || !*accepted) return accepted;
  xdr::Decoder decoder{ByteSpan(reply).subspan(results)};
  xdr::RpcbDone done;
  return xdr::decode(decoder, done) && done.done;
}

/// All that rpcbind has, of everybody.
Result<std::vector<RpcbEntry>> RpcbindRegistrar::list() {
  std::vector<std::byte> reply;
  std::size_t results = 0;
  auto accepted =
      call(static_cast<std::uint32_t>(xdr::rpcbproc::RPCBPROC_DUMP), nullptr, &reply, &results);
  if (!accepted.ok()) return accepted.error();
  xdr::Decoder decoder{ByteSpan(reply).subspan(results)};
  xdr::rpcblist listed;
  if (!*accepted || !xdr::decode(decoder, listed)) {
    return Error{Errc::kProtocol, 0, "rpcbind: no list"};
  }
  std::vector<RpcbEntry> entries;
  for (const xdr::rpcb& one : listed.entries)
    entries.push_back({one.r_prog, one.r_vers, std::string(one.r_netid), std::string(one.r_addr)});
  return entries;
}

/// True when rpcbind has done the call: its results begin at *results of *reply.
Result<bool> RpcbindRegistrar::call(std::uint32_t procedure, const RpcbEntry* entry,
                                    std::vector<std::byte>* reply, std::size_t* results) {
  NFSRDMA_CHECK_OK(connect());
  std::vector<std::byte> message(2048);
  xdr::Encoder encoder(MutableByteSpan(message).subspan(4));
  xdr::rpc_msg call;
  call.xid = ++xid_;
  call.cbody.prog = xdr::kRpcbProgram;
  call.cbody.vers = xdr::kRpcbVersion4;
  call.cbody.proc = procedure;
  xdr::encode(encoder, call);
  if (entry != nullptr) {
    const std::string me = owner();
    xdr::encode(encoder,
                xdr::rpcb{entry->program, entry->version, entry->netid, entry->address, me});
  }
  if (encoder.overflowed()) return Error{Errc::kInvalid, 0, "rpcbind: entry too long"};
  message.resize(4 + encoder.size());
  if (auto sent = exchange(message, reply); !sent.ok()) {
    socket_.reset();
    return sent.error();
  }
  xdr::Decoder decoder{ByteSpan(*reply)};
  xdr::rpc_msg answer;
  if (!xdr::decode(decoder, answer) || answer.mtype != xdr::msg_type::REPLY ||
      answer.xid != call.xid) {
    return Error{Errc::kProtocol, 0, "rpcbind: no reply to this call"};
  }
  *results = reply->size() - decoder.remaining();
  return answer.rbody.stat == xdr::reply_stat::MSG_ACCEPTED &&
         answer.rbody.areply.stat == xdr::accept_stat::SUCCESS;
}

}  // namespace nfsrdma
