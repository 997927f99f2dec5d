// SPDX-License-Identifier: Apache-2.0
// An AsyncMount over a FakeEnvironment, by way of which the test plays the server.
#pragma once

#include "client/async_mount.h"
#include "client/rpc_client.h"
#include "tests/unit/client/fake_environment.h"

namespace nfsrdma {

struct FakeMount {
  std::unique_ptr<AsyncMount> mount;
  FakeEnvironment* environment;  // the mount's
};

/// `root` outlives the mount; rsize and wsize are `transfer_bytes`.
inline FakeMount make_fake_mount(EventLoop& loop, const FileHandle& root,
                                 std::uint32_t transfer_bytes) {
  auto environment = std::make_unique<FakeEnvironment>();
  FakeEnvironment* const its_environment = environment.get();
  RpcClientOptions options;
  options.candidates = {
      {TransportKind::kTcp, SocketAddress::parse("192.0.2.1", 2049).value(), nullptr}};
  options.put_off = std::make_shared<PutOff>("fake");
  FsInfo info;
  info.rtmax = info.wtmax = transfer_bytes;
  auto rpc = std::make_unique<RpcClient>(std::move(environment), options);
  MountSettings settings;
  settings.version = {};  // 3
  return {AsyncMount::over(loop, settings, std::move(rpc), {root, "/", 0}, info), its_environment};
}

}  // namespace nfsrdma
