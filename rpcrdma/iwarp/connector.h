// SPDX-License-Identifier: Apache-2.0
// The active side: TCP connect, MPA Request, Reply, and the ready-to-receive message where one was
// agreed on. A peer that drops the connection during MPA start-up is tried again with the other
// kinds of request (wire.md 1.9). What worked is tried first for some minutes, and only first: a
// listener that is busy drops connections as well, whatever kind they are of.
#pragma once

#include <string>
#include <vector>

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/iwarp/device.h"
#include "rpcrdma/iwarp/tcp_driver.h"

namespace nfsrdma::iwarp {

class IwarpConnector final : public Connector, private FdWatcher, private RtrWaiter {
 public:
  IwarpConnector(IwarpDevice& device, const SocketAddress& peer, ConnectHandler& handler);
  ~IwarpConnector() override;
  /// Calls the handler from the loop only.
  void start();

 private:
  enum class Step : std::uint8_t { kConnect, kRequest, kReply, kReady, kDone };

  void on_fd_ready(std::uint32_t events) override;
  void on_rtr_done() override;
  void on_rtr_failed(Error error) override;
  void on_timer();
  void connect();
  void connected();
  Result<void> send_request();
  void read_reply();
  void evaluate(const MpaFrame& reply);
  void build(const MpaAgreement& agreed, ByteSpan private_data);
  void succeed();
  /// The connection broke during MPA start-up: another kind of request may do.
  void start_up_failed(Error error);
  void fail_soon(Error error, const char* step);
  void fail(Error error, const std::string& what);
  void close_socket();

  IwarpDevice& device_;
  SocketAddress peer_;
  ConnectHandler& handler_;
  Timer timer_;
  Step step_ = Step::kConnect;
  UniqueFd fd_;
  bool watching_ = false;
  bool asked_device_ = false;
  MpaAttempt attempt_;
  int attempts_ = 1;
  QueuePairOptions options_;
  std::vector<std::byte> our_data_;
  MpaFrame request_;
  PcapTap::Stream tap_;
  MpaFrameBytes bytes_;
  std::size_t have_ = 0;
  std::vector<std::byte> their_data_;
  std::unique_ptr<IwarpQueuePair> queue_pair_;
  Error pending_error_{};
  const char* pending_step_ = nullptr;
};

}  // namespace nfsrdma::iwarp
