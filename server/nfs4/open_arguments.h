// SPDX-License-Identifier: Apache-2.0
// open_arguments (RFC 9754 6): what OPEN (op_open.cc) takes and heeds in minor version 2. By
// number: the wants are those of OPEN4_SHARE_ACCESS_WANT_*, in units of 0x100 up to 15 and by bit
// above.
#pragma once

#include "xdr/nfs4_attribute_types.h"
#include "xdr/nfs4_open.h"

namespace nfsrdma::nfs4 {

constexpr xdr::open_arguments4 open_arguments() {
  using enum xdr::open_claim_type4;
  using enum xdr::createmode4;
  constexpr auto number = [](std::uint32_t want) { return want >> 8; };
  xdr::open_arguments4 out;
  out.oa_share_access = xdr::bitmap4::of(
      {xdr::OPEN4_SHARE_ACCESS_READ, xdr::OPEN4_SHARE_ACCESS_WRITE, xdr::OPEN4_SHARE_ACCESS_BOTH});
  out.oa_share_deny = xdr::bitmap4::of({xdr::OPEN4_SHARE_DENY_NONE, xdr::OPEN4_SHARE_DENY_READ,
                                        xdr::OPEN4_SHARE_DENY_WRITE, xdr::OPEN4_SHARE_DENY_BOTH});
  out.oa_share_access_want = xdr::bitmap4::of({number(xdr::OPEN4_SHARE_ACCESS_WANT_ANY_DELEG),
                                               number(xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG),
                                               number(xdr::OPEN4_SHARE_ACCESS_WANT_CANCEL)});
  out.oa_open_claim = xdr::bitmap4::of(
      {CLAIM_NULL, CLAIM_PREVIOUS, CLAIM_DELEGATE_CUR, CLAIM_FH, CLAIM_DELEG_CUR_FH});
  out.oa_create_mode = xdr::bitmap4::of({UNCHECKED4, GUARDED4, EXCLUSIVE4, EXCLUSIVE4_1});
  return out;
}

}  // namespace nfsrdma::nfs4
