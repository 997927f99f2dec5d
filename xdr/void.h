// SPDX-License-Identifier: Apache-2.0
// Void: arguments or results that take no bytes, so that every procedure has types for both.
#pragma once

#include "xdr/archive.h"

namespace nfsrdma::xdr {

struct Void {};
template <typename A, Is<Void> V>
void visit(A&, V&) {}

}  // namespace nfsrdma::xdr
