// SPDX-License-Identifier: Apache-2.0
// Turn: where those wait who want something one at a time, in the order in which they came. On one
// thread.
#pragma once

#include <utility>

#include "client/gate.h"

namespace nfsrdma {

class Turn : private Gate {
 public:
  using Gate::empty;
  using Gate::wait;

  /// Lets the next one go on, and those behind it for as long as nobody is `busy`. Who has nothing
  /// to wait for passes it on again before he returns to here: however many those are, they take no
  /// more stack than one. What it belongs to stays until this returns.
  void pass(const bool& busy) {
    if (std::exchange(passing_, true)) return;
    while (!busy && !empty())
      wake_one();
    passing_ = false;
  }

 private:
  bool passing_ = false;
};

}  // namespace nfsrdma
