// SPDX-License-Identifier: Apache-2.0
// Counts the heap allocations of this program (operator new) while counting is on.
#pragma once

#include <cstddef>

namespace nfsrdma::test {

/// Starts from 0.
void start_counting_allocations();
/// Allocations since the start.
std::size_t stop_counting_allocations();

}  // namespace nfsrdma::test
