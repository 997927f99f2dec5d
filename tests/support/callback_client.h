// SPDX-License-Identifier: Apache-2.0
// CallbackClient: what a client of Nfs4Harness sees of the server's callbacks, and what it answers.
// All sessions of the harness share one connection, and so one CallbackClient.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "tests/support/nfs4_harness.h"
#include "tests/support/xdr_bytes.h"
#include "xdr/nfs4_callback.h"

namespace nfsrdma::test {

/// A CB_COMPOUND of CB_SEQUENCE and one operation.
template <typename Args>
struct CallbackSeen {
  xdr::CB_SEQUENCE4args sequence;
  xdr::nfs_cb_opnum4 operation{};
  Args args;
};

class CallbackClient {
 public:
  explicit CallbackClient(Nfs4Harness& harness) : harness_(harness) {}

  /// The calls to clients that have come; waits a while for the first, which the kernel may have
  /// caused.
  std::vector<BackwardCall*>& calls() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    auto& calls = harness_.connection().backward;
    while (calls.empty() && std::chrono::steady_clock::now() < end)
      harness_.connection().loop().turn(std::chrono::milliseconds(10));
    return calls;
  }
  bool is_quiet() {
    harness_.connection().loop().turn(Duration::zero());
    return harness_.connection().backward.empty();
  }

  template <typename Args>
  static CallbackSeen<Args> read(const BackwardCall& call) {
    CallbackSeen<Args> out;
    xdr::Decoder decoder = past_header(call, &out.sequence, &out.operation);
    EXPECT_TRUE(xdr::decode(decoder, out.args) && decoder.at_end());
    return out;
  }
  /// The oldest call is answered: CB_SEQUENCE with NFS4_OK, its operation with `status` and
  /// `result`.
  void answer(xdr::nfsstat4 status = xdr::nfsstat4::NFS4_OK,
              const std::vector<std::byte>& result = {}) {
    BackwardCall& call = *calls().at(0);
    complete(call, reply_to(call, status, result));
  }
  static std::vector<std::byte> reply_to(const BackwardCall& call, xdr::nfsstat4 status,
                                         const std::vector<std::byte>& result = {}) {
    CallbackSeen<int> seen;
    past_header(call, &seen.sequence, &seen.operation);
    std::vector<std::byte> reply = testing::words({5, 1, 0, 0, 0, 0});
    const auto add = [&reply](const std::vector<std::byte>& more) {
      reply.insert(reply.end(), more.begin(), more.end());
    };
    const auto word = static_cast<std::uint32_t>(status);
    add(testing::words({word, 0, 2, 11, 0}));
    add({seen.sequence.csa_sessionid.begin(), seen.sequence.csa_sessionid.end()});
    add(testing::words({seen.sequence.csa_sequenceid, seen.sequence.csa_slotid, 3, 3}));
    add(testing::words({static_cast<std::uint32_t>(seen.operation), word}));
    add(result);
    return reply;
  }
  static xdr::nfs_cb_opnum4 operation_of(const BackwardCall& call) {
    CallbackSeen<int> seen;
    past_header(call, &seen.sequence, &seen.operation);
    return seen.operation;
  }
  void complete(BackwardCall& call, const std::vector<std::byte>& reply) {
    std::erase(harness_.connection().backward, &call);
    call.ok = true;
    call.reply = reply;
    call.on_complete();
  }
  /// The oldest call ends without an answer.
  void fail(Errc code) {
    BackwardCall& call = *calls().at(0);
    std::erase(harness_.connection().backward, &call);
    call.ok = false;
    call.error = Error{code, 0, "the test"};
    call.on_complete();
  }

 private:
  static xdr::Decoder past_header(const BackwardCall& call, xdr::CB_SEQUENCE4args* sequence,
                                  xdr::nfs_cb_opnum4* operation) {
    xdr::Decoder decoder(call.message);
    xdr::rpc_msg header;
    xdr::CB_COMPOUND4args head;
    EXPECT_TRUE(xdr::decode(decoder, header) && xdr::decode(decoder, head));
    EXPECT_EQ(header.cbody.prog, 0x40000000u);
    EXPECT_EQ(head.argarray_len, 2u);
    EXPECT_EQ(decoder.u32(), static_cast<std::uint32_t>(xdr::nfs_cb_opnum4::OP_CB_SEQUENCE));
    EXPECT_TRUE(xdr::decode(decoder, *sequence));
    *operation = static_cast<xdr::nfs_cb_opnum4>(decoder.u32());
    return decoder;
  }

  Nfs4Harness& harness_;
};

}  // namespace nfsrdma::test
