// SPDX-License-Identifier: Apache-2.0
// The responder's half of MPA start-up: reads the Request, hands it up, answers as told.
#pragma once

#include "rpcrdma/base/event_loop.h"
#include "rpcrdma/iwarp/device.h"

namespace nfsrdma::iwarp {

/// Waits for the whole Request, at most as long as the options say. Owned by the device.
class ResponderHandshake final : public DeviceOwned, private FdWatcher {
 public:
  ResponderHandshake(IwarpDevice& device, UniqueFd fd, const SocketAddress& peer,
                     HalfOpenLimit::Slot slot, AcceptHandler& handler);
  ~ResponderHandshake() override;
  void start();

 private:
  void on_fd_ready(std::uint32_t events) override;
  void give_up(const char* why);
  void complete(const MpaFrame& request);
  void stop_watching();

  IwarpDevice& device_;
  UniqueFd fd_;
  SocketAddress peer_;
  HalfOpenLimit::Slot slot_;
  AcceptHandler& handler_;
  Timer timer_;
  bool watching_ = false;
  PcapTap::Stream tap_;
  MpaFrameBytes bytes_;
  std::size_t have_ = 0;
};

}  // namespace nfsrdma::iwarp
