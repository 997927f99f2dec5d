// SPDX-License-Identifier: Apache-2.0
// A call in the backward direction that remembers how it ended.
#pragma once

#include <functional>
#include <vector>

#include "rpcrdma/call.h"

namespace nfsrdma::test {

/// An RPC call message of `words` words: xid, CALL, and a count from there on.
inline std::vector<std::byte> backward_message(std::size_t words) {
  std::vector<std::byte> out(words * 4);
  for (std::size_t i = 1; i < words; ++i)
    store_be32(out.data() + i * 4, static_cast<std::uint32_t>(i - 1));
  return out;
}

/// The least that is a reply: xid, REPLY, MSG_ACCEPTED, no verifier, SUCCESS.
inline std::vector<std::byte> reply_to(std::uint32_t xid) {
  std::vector<std::byte> out(24);
  store_be32(out.data(), xid);
  store_be32(out.data() + 4, 1);
  return out;
}

class BackwardProbe final : public BackwardCall {
 public:
  explicit BackwardProbe(std::size_t words = 10) : bytes_(backward_message(words)) {
    message = bytes_;
  }
  void on_complete() override {
    ++completions;
    answer.assign(reply.begin(), reply.end());
    if (done) done();
  }
  /// kSystem stands for "not yet" and for success.
  Errc how() const { return completions == 1 && !ok ? error.code : Errc::kSystem; }

  int completions = 0;
  std::vector<std::byte> answer;
  std::function<void()> done;

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace nfsrdma::test
