// SPDX-License-Identifier: Apache-2.0
// Authentication flavours (RFC 5531, section 8) behind one seam. Each flavour is an object; each
// call carries a CallAuth that says which one accepted it and what it found. A flavour that
// protects messages (RPCSEC_GSS, later) overrides the protecting hooks and clears
// credentials.may_reduce, so that no payload leaves the protected message.
#pragma once

#include "server/procedure.h"
#include "xdr/decoder.h"
#include "xdr/encoder.h"
#include "xdr/rpc.h"

namespace nfsrdma {

class AuthFlavor;

/// What was found out about the caller of one call.
struct CallAuth {
  const AuthFlavor* flavor = nullptr;
  RpcCredentials credentials;
};

class AuthFlavor {
 public:
  virtual ~AuthFlavor() = default;
  virtual xdr::auth_flavor number() const = 0;
  /// Looks at credential and verifier; fills auth.credentials.
  virtual xdr::auth_stat accept(const xdr::call_body& header, CallAuth& auth) const = 0;
  /// The verifier of the reply.
  virtual xdr::opaque_auth reply_verifier(const CallAuth&) const { return {}; }
  /// Before the arguments are decoded, and after the results were encoded behind `results_mark`.
  virtual bool unwrap_arguments(const CallAuth&, xdr::Decoder&) const { return true; }
  virtual bool wrap_results(const CallAuth&, xdr::Encoder&, std::size_t /*results_mark*/) const {
    return true;
  }
};

/// Finds the flavour of a call and asks it. auth.flavor is set in any case.
xdr::auth_stat authenticate(const xdr::call_body& header, CallAuth& auth);

}  // namespace nfsrdma
