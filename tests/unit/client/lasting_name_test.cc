// SPDX-License-Identifier: Apache-2.0
#include "client/library/lasting_name.h"

#include <gtest/gtest.h>

#include <string>

namespace nfsrdma::client {
namespace {

/// Any thread may ask, and nobody knows how long another one uses what it was given.
TEST(LastingName, IsNoMemoryOfTheCaller) {
  for (const TransportKind kind : {TransportKind::kTcp, TransportKind::kIwarp,
                                   TransportKind::kVerbs, TransportKind::kSimulated}) {
    const std::string name = transport_name(kind);
    EXPECT_EQ(lasting_name(name), static_cast<const void*>(transport_name(kind)));
  }
  EXPECT_EQ(lasting_name("carrier pigeon"), nullptr);
}

}  // namespace
}  // namespace nfsrdma::client
