// SPDX-License-Identifier: Apache-2.0
// CaptureFile: cuts the pcapng stream of a server into its blocks and writes them to a file, whole
// ones only, so that the file is valid wherever it ends. Of the statistics blocks, of which a file
// should have one, the last is kept for finish().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "client/tool/hand_over.h"

namespace nfsrdma::tool {

class CaptureFile {
 public:
  /// Writes to `fd`, which the caller owns. `most_packets`: those behind are left out; 0: none are.
  /// `close_file`: see hand_over(). `wait`: returns when `fd` takes something, or false when
  /// that is not to be waited for any more; of what may block no more is written than it takes
  /// then.
  CaptureFile(int fd, std::uint64_t most_packets, CloseFile close_file = ::close,
              std::function<bool(int fd)> wait = {});

  /// Takes what came. False with *why: it is no pcapng, or cannot be written.
  bool add(std::string_view bytes, std::string* why);
  /// Writes the statistics, if some came, and hands over all of it.
  bool finish(std::string* why);

  std::uint64_t packets() const { return packets_; }
  std::uint64_t bytes() const { return bytes_; }  // written
  std::uint64_t lost() const { return lost_; }    // as the server said last
  bool full() const { return most_packets_ > 0 && packets_ >= most_packets_; }

 private:
  void take_block(std::uint32_t type, std::string_view block);
  bool write(std::string_view bytes, std::string* why);

  int fd_;
  std::uint64_t most_packets_;
  CloseFile close_file_;
  std::function<bool(int fd)> wait_;
  std::size_t most_at_once_;
  std::uint64_t packets_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t lost_ = 0;
  std::string unfinished_;  // the block that is still coming
  std::string out_;         // whole ones
  std::string statistics_;  // the last block of them
};

}  // namespace nfsrdma::tool
