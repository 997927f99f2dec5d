// SPDX-License-Identifier: Apache-2.0
#include "client/nfs4/callback_place.h"

#include <random>
#include <utility>

#include "client/nfs4/callbacks.h"
#include "rpcrdma/base/log.h"
#include "xdr/universal_address.h"

namespace nfsrdma::nfs4 {

CallbackPlace::CallbackPlace(RpcClient& rpc, std::optional<CalledAt> at, CallAnswer answer)
    : rpc_(rpc), at_(std::move(at)), answer_(std::move(answer)) {
  std::random_device random;
  program_ = Callbacks::kProgram + random() % Callbacks::kPrograms;
  ident_ = random();
}

SocketAddress CallbackPlace::wanted() const {
  if (at_->address.family() != AF_UNSPEC) return at_->address;
  for (const ConnectionInfo& info : rpc_.connections()) {
    // With a scope it means something on this machine alone.
    const bool has_scope = info.local.host_text().find('%') != std::string::npos;
    if (info.local.family() != AF_UNSPEC && !has_scope) return info.local;
  }
  return {};
}

bool CallbackPlace::listen() {
  // What a call has begun may have come here: the endpoint is not to go while it is answered.
  if (!at_ || answering_) return false;
  SocketAddress told = wanted();
  if (told.family() == AF_UNSPEC) return false;
  if (endpoint_ != nullptr && told_.same_host(told)) return false;
  close();
  told.set_port(at_->port);
  const CallAnswer answer = [this](ByteSpan call, MutableByteSpan room) {
    answering_ = true;
    const std::size_t bytes = answer_(call, room);
    answering_ = false;
    return bytes;
  };
  Result<std::unique_ptr<CallEndpoint>> made = rpc_.environment().make_call_endpoint(told, answer);
  if (!made.ok() && made.error().sys == EADDRNOTAVAIL) {
    // Of a machine in front of this one, which hands on what comes to it.
    const SocketAddress any =
        told.is_v6() ? SocketAddress::any_v6(at_->port) : SocketAddress::any_v4(at_->port);
    made = rpc_.environment().make_call_endpoint(any, answer);
  }
  if (!made.ok()) {
    if (std::exchange(complained_, true)) return true;
    log_warning("NFSv4.0: no delegations: cannot listen at {} for the server's callbacks: {}",
                told.text(), made.error().message());
    return true;
  }
  endpoint_ = std::move(*made);
  told.set_port(endpoint_->address().port());
  told_ = told;
  universal_ = xdr::format_universal_address(told_.host_text(), told_.port());
  return true;
}

void CallbackPlace::close() {
  endpoint_.reset();
}

xdr::cb_client4 CallbackPlace::location() const {
  xdr::cb_client4 out;
  out.cb_program = program_;
  out.cb_location.na_r_netid = told_.is_v6() ? "tcp6" : "tcp";
  if (is_open()) out.cb_location.na_r_addr = universal_;
  return out;
}

std::string CallbackPlace::text() const {
  return is_open() ? told_.text() : std::string();
}

}  // namespace nfsrdma::nfs4
