// SPDX-License-Identifier: Apache-2.0
// In a file of its own, or the compiler takes the inlined malloc and free for a mismatch.
#include "tests/budget/counting_new.h"

#include <cstdlib>
#include <new>

namespace {
std::size_t g_allocations = 0;
bool g_counting = false;
}  // namespace

void* operator new(std::size_t size) {
  if (g_counting) ++g_allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace nfsrdma::test {

void start_counting_allocations() {
  g_allocations = 0;
  g_counting = true;
}

std::size_t stop_counting_allocations() {
  g_counting = false;
  return g_allocations;
}

}  // namespace nfsrdma::test
