// SPDX-License-Identifier: Apache-2.0
#include "server/capture/shard_capture.h"

#include "server/capture/capture_tap.h"

namespace nfsrdma {

ShardCapture::ShardCapture(EventLoop& loop, const Order& order)
    : filter_(order.filter), buffer_(loop, order.under_way, order.sink) {}

void ShardCapture::add(ServerConnection& connection, bool fresh) {
  if (!filter_.matches(connection)) return;
  connection.tap =
      std::make_unique<CaptureTap>(connection.describe(), fresh, filter_.snap, buffer_);
}

void ShardCapture::closed(ServerConnection& connection) {
  if (connection.tap == nullptr) return;
  static_cast<CaptureTap&>(*connection.tap).close();
  connection.tap.reset();
}

}  // namespace nfsrdma
