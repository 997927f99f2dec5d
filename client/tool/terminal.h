// SPDX-License-Identifier: Apache-2.0
// Terminal: a screen that is drawn again and again, and the keys that are pressed meanwhile.
#pragma once

#include <termios.h>

#include <chrono>
#include <cstddef>
#include <string>

namespace nfsrdma::tool {

class Terminal {
 public:
  /// Takes over the screen when standard output is a terminal; what was there comes back at the
  /// end.
  Terminal();
  ~Terminal();
  bool is_one() const { return is_one_; }
  std::size_t columns() const;
  std::size_t rows() const;
  void draw(const std::string& text);
  /// Waits. True: somebody wants to leave (q, or a signal).
  bool wait(std::chrono::milliseconds time);

 private:
  bool is_one_ = false;
  bool reads_keys_ = false;
  termios saved_{};
};

}  // namespace nfsrdma::tool
