// SPDX-License-Identifier: Apache-2.0
// Terminal: a screen that is drawn again and again, and the keys that are pressed meanwhile.
#pragma once

#include <signal.h>
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
  /// False: nobody takes it any more (the reader of a pipe is gone).
  bool draw(const std::string& text);
  /// Waits. True: somebody wants to leave (q, or a signal). Signals of the keyboard come here
  /// alone: Ctrl-Z gives the screen back until the program is continued.
  bool wait(std::chrono::milliseconds time);

 private:
  void take_over();
  void give_back();

  sigset_t outside_{};  // the signals that are blocked outside of wait()
  bool is_one_ = false;
  bool reads_keys_ = false;
  termios saved_{};
};

}  // namespace nfsrdma::tool
