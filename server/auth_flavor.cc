// SPDX-License-Identifier: Apache-2.0
// AUTH_NONE and AUTH_SYS (RFC 5531, section 10 and appendix A).
#include "server/auth_flavor.h"

#include <algorithm>

namespace nfsrdma {

namespace {

using xdr::auth_flavor;
using xdr::auth_stat;

class AuthNone final : public AuthFlavor {
 public:
  auth_flavor number() const override { return auth_flavor::AUTH_NONE; }
  auth_stat accept(const xdr::call_body&, CallAuth& auth) const override {
    // The RFC recommends an empty body; others are ignored, as elsewhere.
    auth.credentials = RpcCredentials();
    return auth_stat::AUTH_OK;
  }
};

class AuthSys final : public AuthFlavor {
 public:
  auth_flavor number() const override { return auth_flavor::AUTH_SYS; }
  auth_stat accept(const xdr::call_body& header, CallAuth& auth) const override {
    xdr::Decoder body(header.cred.body);
    xdr::authsys_parms parms;
    if (!xdr::decode(body, parms) || !body.at_end()) return auth_stat::AUTH_BADCRED;
    RpcCredentials& c = auth.credentials;
    c = RpcCredentials();
    c.flavor = RpcCredentials::Flavor::kSys;
    c.uid = parms.uid;
    c.gid = parms.gid;
    c.group_count = parms.gids.count;
    std::ranges::copy(parms.gids.view(), c.groups.begin());
    return auth_stat::AUTH_OK;
  }
};
static_assert(RpcCredentials::kMaxGroups == xdr::kMaxAuthSysGroups);

const AuthNone kNone;
const AuthSys kSys;

}  // namespace

auth_stat authenticate(const xdr::call_body& header, CallAuth& auth) {
  auth.flavor = &kNone;
  for (const AuthFlavor* flavor :
       {static_cast<const AuthFlavor*>(&kSys), static_cast<const AuthFlavor*>(&kNone)}) {
    if (flavor->number() != header.cred.flavor) continue;
    auth.flavor = flavor;
    return flavor->accept(header, auth);
  }
  // As Linux answers; clients go on to another flavour.
  return auth_stat::AUTH_BADCRED;
}

}  // namespace nfsrdma
