// SPDX-License-Identifier: Apache-2.0
// A progress line on a terminal: bar, share, rate and remaining time. Silent for the first seconds
// and when standard error is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace nfsrdma::tool {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Progress(bool wanted);
  ~Progress() { clear(); }

  void set_total(std::uint64_t bytes) { total_ = bytes; }
  /// `bytes` more are done.
  void advance(std::uint64_t bytes);
  /// Takes the line away, for messages.
  void clear();

 private:
  void draw(Clock::time_point now);

  bool wanted_;
  bool drawn_ = false;
  std::uint64_t total_ = 0;
  std::uint64_t done_ = 0;
  Clock::time_point started_ = Clock::now();
  Clock::time_point next_;
};

/// The line without carriage return, at most `columns` wide.
std::string progress_line(std::uint64_t done, std::uint64_t total, double seconds,
                          std::size_t columns);

}  // namespace nfsrdma::tool
