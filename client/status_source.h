// SPDX-License-Identifier: Apache-2.0
// Where a status document comes from: the control socket of a server or of a FUSE mount. Both
// answer the line `status` with one JSON document (server/control.h, client/mount/status_socket.h).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rpcrdma/base/result.h"

namespace nfsrdma {

/// How long a daemon may take to answer.
inline constexpr std::chrono::milliseconds kStatusPatience{5000};

/// Asks on `socket_path`, blocking, for `patience` at most. On an error *why is one line for
/// people; Error::sys is ETIMEDOUT when somebody is there but does not answer.
Result<std::string> fetch_status(const std::string& socket_path, std::string* why,
                                 std::chrono::milliseconds patience = kStatusPatience);

/// What it means when nothing comes from one.
inline constexpr const char* kSilence = "the daemon hangs";

/// The same with another request: a word, or a JSON object on one line. `silence`: what *why says
/// that it means when nothing comes.
Result<std::string> ask_control(const std::string& socket_path, std::string_view request,
                                std::string* why,
                                std::chrono::milliseconds patience = kStatusPatience,
                                const char* silence = kSilence);

/// In /tmp, where the sockets of users without XDG_RUNTIME_DIR are, anybody can have been first. Is
/// a process of `user` believed that answers at `path`? Those of root, of whoever asks, and of the
/// user whom the directory is named after.
bool is_believed_at(const std::string& path, uid_t user);

/// A request that is answered line by line, as things happen. Blocking.
class ControlLines {
 public:
  ControlLines();
  ~ControlLines();
  /// Connects and asks. On an error *why as above.
  Result<void> open(const std::string& socket_path, std::string_view request, std::string* why);
  /// The next line, without its end; nothing when the server has closed. Waits for as long as it
  /// takes.
  std::optional<std::string> next();
  /// Instead of lines, bytes as they come: at most `room`, 0 at the end, less than that (errno) on
  /// an error or a signal.
  ssize_t read(std::span<char> room);
  /// To be watched for input when nothing is buffered.
  int fd() const;

 private:
  class Connection;
  std::unique_ptr<Connection> connection_;
};

/// The control sockets that the mount at (or above) `directory` can have, likeliest first; empty
/// with *why when nothing of ours is mounted there. Never asks the mount itself: it may wait for a
/// server that is gone.
std::vector<std::string> mount_status_sockets(const std::string& directory, std::string* why);
/// The status of that mount; on an error *why in one line.
Result<std::string> fetch_mount_status(const std::string& directory, std::string* why);

}  // namespace nfsrdma
