// SPDX-License-Identifier: Apache-2.0
// ControlSocket: a unix stream socket on which `nfs-rdma status` asks. One request per connection:
// a line, either the word `status` or a JSON object with "request":"status"; the answer is one JSON
// document with a "version" member and a newline, then the connection is closed.
//
// On one loop's thread. Bounded: kMaxClients at a time, kMaxRequest bytes, kPatience each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rpcrdma/base/event_loop.h"

namespace nfsrdma {

class ControlSocket final : private FdWatcher {
 public:
  static constexpr std::size_t kMaxClients = 16;
  static constexpr std::size_t kMaxRequest = 4096;
  static constexpr std::chrono::seconds kPatience{10};
  /// Makes the status document and hands it over, now or later, on the loop's thread.
  using MakeStatus = std::function<void(std::function<void(std::string json)> done)>;

  /// Replaces a socket that nobody answers on; kRefused when another server does.
  static Result<std::unique_ptr<ControlSocket>> listen(EventLoop& loop, const std::string& path,
                                                       MakeStatus make_status);
  /// Removes the socket.
  ~ControlSocket() override;
  const std::string& path() const { return path_; }

 private:
  class Client;
  ControlSocket(EventLoop& loop, UniqueFd fd, std::string path, MakeStatus make_status);
  void on_fd_ready(std::uint32_t events) override;
  void answer(const std::shared_ptr<Client>& client, std::string_view request);
  void remove(Client& client);

  EventLoop& loop_;
  UniqueFd fd_;
  std::string path_;
  MakeStatus make_status_;
  std::vector<std::shared_ptr<Client>> clients_;
};

}  // namespace nfsrdma
