// SPDX-License-Identifier: Apache-2.0
// Runs something where whatever nests for each of many runs out of stack soon.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>
#include <functional>

namespace nfsrdma::test {

/// On a thread of its own, with a sixteenth of the usual stack, as threads of applications have.
inline void on_small_stack(std::function<void()> work) {
  constexpr std::size_t kBytes = std::size_t{512} << 10;
  pthread_attr_t attributes;
  ASSERT_EQ(::pthread_attr_init(&attributes), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&attributes, kBytes), 0);
  pthread_t thread{};
  const auto run = [](void* given) -> void* {
    (*static_cast<std::function<void()>*>(given))();
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, &attributes, run, &work), 0);
  ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
}

}  // namespace nfsrdma::test
