// SPDX-License-Identifier: Apache-2.0
#include "server/calling_thread.h"

#include <pthread.h>

namespace nfsrdma {

Result<std::unique_ptr<CallingThread>> CallingThread::start(std::uint16_t rpcbind_port) {
  NFSRDMA_TRY(auto loop, EventLoop::create());
  return std::unique_ptr<CallingThread>(new CallingThread(std::move(loop), rpcbind_port));
}

CallingThread::CallingThread(std::unique_ptr<EventLoop> loop, std::uint16_t rpcbind_port)
    : loop_(std::move(loop)), calls_(std::make_unique<HostCalls>(*loop_, rpcbind_port)) {
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "host-calls");
    loop_->run();
  });
}

void CallingThread::stop() {
  if (!thread_.joinable()) return;
  loop_->stop();
  thread_.join();
  calls_.reset();
}

}  // namespace nfsrdma
