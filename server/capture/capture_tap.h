// SPDX-License-Identifier: Apache-2.0
// CaptureTap: the WireTap of one connection that is captured. Whatever fabric carries an RDMA
// connection, it is written as iWARP over TCP: that is what dissectors follow from the Ethernet
// frame to the data of the file, without having seen how the connection came about.
//
// The connection owns it; `buffer` outlives it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rpcrdma/connection_info.h"
#include "rpcrdma/wire_tap.h"
#include "server/capture/capture_buffer.h"
#include "server/capture/mpa_flow.h"
#include "server/capture/tcp_flow.h"

namespace nfsrdma {

class CaptureTap final : public WireTap {
 public:
  /// Of a record on TCP this much is kept whatever `snap` says: headers are whole.
  static constexpr std::uint64_t kLeastOfRecord = 1024;

  /// `fresh`: the connection has just been made. Otherwise it has a past that is not seen.
  CaptureTap(const ConnectionInfo& connection, bool fresh, std::uint64_t snap,
             CaptureBuffer& buffer);

  /// The connection has ended.
  void close();

  void on_receive(ByteSpan message) override;
  void on_send(std::span<const ByteSpan> pieces, std::optional<std::uint32_t> invalidated) override;
  void on_write(std::uint32_t handle, std::uint64_t offset,
                std::span<const ByteSpan> pieces) override;
  void on_read(const std::byte* sink, std::uint32_t handle, std::uint64_t offset,
               std::uint32_t length) override;
  void on_read_done(ByteSpan data) override;

 private:
  struct PendingRead {
    const std::byte* sink = nullptr;
    std::uint32_t length = 0;
    std::uint32_t sink_handle = 0;
  };
  void record(TcpFlow::From from, std::span<const ByteSpan> message);

  CaptureBuffer& buffer_;
  std::uint64_t snap_;
  TcpFlow tcp_;
  std::optional<MpaFlow> mpa_;  // none: a TCP connection
  // Our sinks have no handles that the client's side could tell apart, or none at all: each Read
  // gets one of its own, as dissectors know a Read by it.
  std::uint32_t next_sink_ = 0;
  std::vector<PendingRead> reads_;  // in their order
  std::vector<ByteSpan> pieces_;
};

/// How the connection is written: the client's and our address, with what was missing made up.
SocketAddress captured_client(const ConnectionInfo& connection);
SocketAddress captured_server(const ConnectionInfo& connection);

}  // namespace nfsrdma
