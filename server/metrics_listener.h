// SPDX-License-Identifier: Apache-2.0
// Where Prometheus asks: GET /metrics by HTTP, on a TCP port or on a unix socket. The text is
// prometheus-cpp's; its Exposer is not used, since the threads of the HTTP server in it (civetweb,
// as Debian has it) get stacks of 100 KiB, which with the thread-local data of this program they
// overran at the first request. One request per connection is all that a scrape needs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/control.h"
#include "server/nfs_server.h"

namespace nfsrdma {

/// `where`: "127.0.0.1:9465", "[::1]:9465" or "/run/nfs-rdma/metrics.sock". Null with *why. On the
/// loop's thread; `server` outlives what it gives.
std::unique_ptr<ControlSocket> listen_for_metrics(EventLoop& loop, NfsServer& server,
                                                  const std::string& where, std::string* why);

/// Who asks while an answer is being made gets that one, too: however many scrape at a time, each
/// shard is asked once. `make` may tell the answer later; all on one thread.
std::function<void(ControlSocket::Done)> one_for_all(
    std::function<void(std::function<void(const std::string&)> tell)> make);

}  // namespace nfsrdma
