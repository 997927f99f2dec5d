// SPDX-License-Identifier: Apache-2.0
#include "client/rpc_call.h"

#include "client/rpc_client.h"
#include "xdr/rpc.h"

namespace nfsrdma {
namespace {

Error accept_error(xdr::accept_stat stat) {
  switch (stat) {
    case xdr::accept_stat::PROG_UNAVAIL:
      return {Errc::kUnsupported, EPROTONOSUPPORT, "RPC: the server lacks the program"};
    case xdr::accept_stat::PROG_MISMATCH:
      return {Errc::kUnsupported, EPROTONOSUPPORT, "RPC: the server lacks the program's version"};
    case xdr::accept_stat::PROC_UNAVAIL:
      return {Errc::kUnsupported, EOPNOTSUPP, "RPC: the server lacks the procedure"};
    case xdr::accept_stat::GARBAGE_ARGS:
      return {Errc::kProtocol, EIO, "RPC: the server could not decode the arguments"};
    default:
      return {Errc::kProtocol, EIO, "RPC: the server reported a system error"};
  }
}

/// EACCES, with what may help: the words are all that a user gets.
Error denial(const xdr::rejected_reply& reply) {
  if (reply.stat == xdr::reject_stat::RPC_MISMATCH) {
    return {Errc::kUnsupported, EPROTONOSUPPORT, "RPC: the server lacks version 2 of RPC"};
  }
  switch (reply.auth) {
    case xdr::auth_stat::AUTH_TOOWEAK:
      return {Errc::kRefused, EACCES,
              "RPC: the server wants stronger authentication than AUTH_SYS (Kerberos?), which is "
              "the only one that this client has"};
    case xdr::auth_stat::AUTH_BADCRED:
    case xdr::auth_stat::AUTH_REJECTEDCRED:
      // knfsd says the first to hosts that are in no export.
      return {Errc::kRefused, EACCES,
              "RPC: the server rejects this host or its caller: is this host among the clients of "
              "an export?"};
    default:
      return {Errc::kRefused, EACCES, "RPC: the server denied the call"};
  }
}

Error transport_error(const Error& error) {
  const int number = error.code == Errc::kInvalid ? EMSGSIZE : EIO;
  return {error.code, error.sys != 0 ? error.sys : number, error.where};
}

}  // namespace

RpcCallLease::~RpcCallLease() {
  if (call_ != nullptr) call_->client_.release(*call_);
}

bool RpcCall::start() {
  if (encoder_->overflowed()) {
    failed_ = true;
    failure_ = {Errc::kInvalid, ENAMETOOLONG, "encode the call"};
    state_ = State::kDone;
    return true;
  }
  ByteSpan encoded = encoder_->bytes();
  if (encoder_->payloads().empty()) {
    head = encoded;
    tail = {};
    has_payload = false;
    payload = {};
  } else {
    // In NFSv3 nothing follows a payload in the arguments; in a COMPOUND the other operations do.
    const xdr::PayloadReference& reference = encoder_->payloads().front();
    head = encoded.first(reference.head_bytes);
    tail = encoded.subspan(reference.head_bytes);
    has_payload = true;
    payload = reference.bytes;
  }
  return client_.start(*this);
}

Result<void> RpcCall::outcome() const {
  if (failed_) return failure_;
  return {};
}

void RpcCall::on_complete() {
  connection_->call_returned(*this, ok);
  if (!ok) {
    if (error.code == Errc::kClosed) {
      connection_->requeue(*this);
    } else {
      finish(transport_error(error));
    }
    return;
  }
  parse_reply();
  finish();
}

void RpcCall::parse_reply() {
  xdr::Decoder decoder(reply, reduced);
  const std::uint32_t reply_xid = decoder.u32();
  const std::uint32_t type = decoder.u32();
  xdr::reply_body body;
  if (!xdr::decode(decoder, body) || reply_xid != xid ||
      type != static_cast<std::uint32_t>(xdr::msg_type::REPLY)) {
    failed_ = true;
    failure_ = {Errc::kProtocol, EIO, "RPC: undecodable reply"};
  } else if (body.stat == xdr::reply_stat::MSG_DENIED) {
    failed_ = true;
    failure_ = denial(body.rreply);
  } else if (body.areply.stat != xdr::accept_stat::SUCCESS) {
    failed_ = true;
    failure_ = accept_error(body.areply.stat);
  } else {
    results_.emplace(decoder);
  }
}

void RpcCall::on_cancel() {
  if (connection_ != nullptr) connection_->withdraw(*this);
  finish({Errc::kSystem, EINTR, "interrupted"});
}

void RpcCall::finish(Error why) {
  failed_ = true;
  failure_ = why;
  finish();
}

void RpcCall::finish() {
  Cancellable::unlink();
  connection_ = nullptr;
  state_ = State::kDone;
  if (waiter_) std::exchange(waiter_, nullptr).resume();
}

}  // namespace nfsrdma
