// SPDX-License-Identifier: Apache-2.0
#include "client/client_environment.h"

#include "client/call_endpoint.h"

namespace nfsrdma {
namespace {

class LoopAlarm final : public Alarm {
 public:
  LoopAlarm(EventLoop& loop, std::function<void()> fire) : loop_(loop), timer_(std::move(fire)) {}
  void set(TimePoint when) override { timer_.arm(loop_, when); }
  void cancel() override { timer_.cancel(); }
  bool armed() const override { return timer_.armed(); }

 private:
  EventLoop& loop_;
  Timer timer_;
};

}  // namespace

std::unique_ptr<Alarm> LoopEnvironment::make_alarm(std::function<void()> fire) {
  return std::make_unique<LoopAlarm>(loop_, std::move(fire));
}

std::unique_ptr<ClientTransport> LoopEnvironment::make_transport(
    const TransportCandidate& candidate, Duration connect_timeout,
    ClientTransportHandler& handler) {
  if (candidate.fabric == nullptr) {
    TcpClientOptions options = tcp_;
    options.connect_timeout = connect_timeout;
    options.local_port = candidate.local_port;
    return make_tcp_transport(loop_, candidate.address, options, handler);
  }
  RdmaClientOptions options = rdma_;
  options.connect_timeout = connect_timeout;
  return make_rdma_transport(loop_, *candidate.fabric, candidate.address, options, handler);
}

Result<std::unique_ptr<CallEndpoint>> LoopEnvironment::make_call_endpoint(
    const SocketAddress& address, CallAnswer answer) {
  return make_tcp_call_endpoint(loop_, address, std::move(answer));
}

}  // namespace nfsrdma
