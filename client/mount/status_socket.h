// SPDX-License-Identifier: Apache-2.0
// StatusSocket: where `nfs-rdma status --mount DIR` asks. The same protocol as the server's control
// socket: a line with the word `status` (or a JSON object with "request":"status"), answered with
// one JSON document and a newline. On one loop's thread; bounded.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/mount/mount_point.h"
#include "rpcrdma/base/event_loop.h"

namespace nfsrdma {

/// The socket of the mount with this device number (st_dev of its files), for root's mounts in
/// /run/nfs-rdma, for those of ordinary users in $XDG_RUNTIME_DIR/nfs-rdma (or /tmp/nfs-rdma-UID).
std::string mount_socket_path(DeviceNumber device, uid_t mounted_by);
/// For whoever asks in another environment than it was mounted in (sudo, cron, another user): where
/// it can be, likeliest first.
std::vector<std::string> mount_socket_places(DeviceNumber device, uid_t mounted_by);

class StatusSocket final : public FdWatcher {
 public:
  static constexpr std::size_t kMostClients = 8;
  static constexpr std::size_t kMostRequestBytes = 4096;

  /// Replaces what is left of an earlier mount with the same number.
  static Result<std::unique_ptr<StatusSocket>> listen(EventLoop& loop, std::string path,
                                                      std::function<std::string()> make_document);
  /// Removes the socket.
  ~StatusSocket() override;

  void on_fd_ready(std::uint32_t events) override;

 private:
  class Client;
  StatusSocket(EventLoop& loop, UniqueFd fd, std::string path,
               std::function<std::string()> make_document);
  void remove(Client& client);
  void watch();

  EventLoop& loop_;
  UniqueFd fd_;
  Timer retry_;  // while there are no descriptors
  std::string path_;
  std::function<std::string()> make_document_;
  std::vector<std::shared_ptr<Client>> clients_;
};

}  // namespace nfsrdma
