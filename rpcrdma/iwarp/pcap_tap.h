// SPDX-License-Identifier: Apache-2.0
// Writes what passes through our sockets as a pcap stream with made-up IP and TCP headers, so that
// tshark can take it apart. For tests and for bug reports; costs a copy of everything.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <functional>
#include <mutex>

#include "rpcrdma/base/bytes.h"
#include "rpcrdma/base/socket_address.h"
#include "rpcrdma/base/unique_fd.h"

namespace nfsrdma::iwarp {

class PcapTap {
 public:
  using Sink = std::function<void(ByteSpan)>;

  /// Both forget errors: a tap must not break the connection. `sink` is called under a lock.
  explicit PcapTap(Sink sink);
  static Sink to_file(const std::string& path);

  /// One connection as seen from this end.
  class Stream {
   public:
    Stream() = default;

   private:
    friend class PcapTap;
    bool open_ = false;
    SocketAddress local_;
    SocketAddress peer_;
    std::uint32_t sent_ = 0;
    std::uint32_t received_ = 0;
  };

  /// The TCP handshake. `initiator`: this end connected.
  void open(Stream& stream, const SocketAddress& local, const SocketAddress& peer, bool initiator);
  void data(Stream& stream, bool outgoing, const iovec* pieces, std::size_t bytes);
  void data(Stream& stream, bool outgoing, ByteSpan bytes);
  void close(Stream& stream);

 private:
  void packet(Stream& stream, bool outgoing, std::uint8_t flags, ByteSpan payload);

  std::mutex mutex_;
  Sink sink_;
};

}  // namespace nfsrdma::iwarp
