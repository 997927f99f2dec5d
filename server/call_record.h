// SPDX-License-Identifier: Apache-2.0
// CallRecord: one answered call, for `nfs-rdma trace` and the log of slow requests. What was asked
// for and how long its stages took; no names, no data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "rpcrdma/base/socket_address.h"
#include "rpcrdma/connection_info.h"

namespace nfsrdma {

class ServedCall;

/// Times of one call on the steady clock, in ns; 0: that stage was not come to, or nobody asks.
struct CallStages {
  std::uint64_t arrived = 0;     // its message (or its last byte) was there
  std::uint64_t dispatched = 0;  // with its buffers, and what its Read chunks brought
  std::uint64_t begun = 0;       // the procedure runs, for the first time
  std::uint64_t ran = 0;         // the result is there
  std::uint64_t committed = 0;   // and what it waited for on stable storage
  std::uint64_t replied = 0;     // given to the transport
};

struct CallRecord {
  static constexpr std::size_t kMostOperations = 14;

  std::uint64_t connection = 0;  // ServerConnection::id
  SocketAddress peer;
  TransportKind transport = TransportKind::kTcp;
  std::uint32_t xid = 0;
  std::string_view program;    // "NFSv3"; of a table that lasts as long as the server
  std::string_view procedure;  // "READ"
  std::uint32_t uid = 0;       // as the call says
  bool has_status = false;
  std::uint32_t status = 0;  // nfsstat3, nfsstat4 or mountstat3
  std::uint64_t request_bytes = 0;
  std::uint64_t reply_bytes = 0;  // with payload
  bool on_worker = false;
  /// Of a COMPOUND: the numbers of its operations, not all when there are more.
  std::array<std::uint8_t, kMostOperations> operations{};
  std::uint8_t operation_count = 0;
  std::uint32_t more_operations = 0;
  std::int64_t wall_ns = 0;  // when it was answered, since 1970
  CallStages stages;

  std::uint64_t total_ns() const { return stages.replied - stages.arrived; }
};

/// "READ", or for a COMPOUND "SEQUENCE PUTFH READ". Without "OP_".
std::string describe_operations(const CallRecord& record);
/// "OK", "NOENT" or a number. "-" without one.
std::string describe_status(const CallRecord& record);
/// One line for people, as in the log of slow requests.
std::string describe_call(const CallRecord& record);
/// One JSON object on one line.
std::string call_json(const CallRecord& record);

}  // namespace nfsrdma
