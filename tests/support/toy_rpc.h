// SPDX-License-Identifier: Apache-2.0
// A small RPC service and its client for transport tests. It borrows the numbers of NFSv3, so that
// code that knows where READ data lies in a reply (nfs_binding.h) works on it, and checks every
// byte: data is a function of a seed.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rpcrdma/call.h"
#include "rpcrdma/client_transport.h"

namespace nfsrdma::test {

enum ToyProcedure : std::uint32_t { kToyNull = 0, kToyRead = 6, kToyWrite = 7, kToyList = 16 };

inline std::byte pattern(std::uint32_t seed, std::size_t at) {
  return static_cast<std::byte>((seed + at * 7 + (at >> 8) * 13) & 0xff);
}
inline void fill_pattern(MutableByteSpan bytes, std::uint32_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = pattern(seed, i);
}
inline bool has_pattern(ByteSpan bytes, std::uint32_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != pattern(seed, i)) return false;
  }
  return true;
}

/// The pattern up to `kept`, and zeros: of a file that got shorter while it was sent.
inline bool ends_in_zeros(ByteSpan bytes, std::size_t kept, std::uint32_t seed) {
  const ByteSpan tail = bytes.subspan(kept);
  return has_pattern(bytes.first(kept), seed) &&
         std::all_of(tail.begin(), tail.end(), [](std::byte b) { return b == std::byte{0}; });
}

/// Server side. Answers at once, or when answer_held() is called.
class ToyHandler : public CallHandler {
 public:
  bool hold = false;  // keep calls instead of answering
  bool drop_all = false;
  std::size_t opened = 0, closed = 0, calls = 0, bad_calls = 0;
  std::deque<Call*> held;
  std::vector<std::uint32_t> xids;
  /// Reads are answered with pages of a file where the connection sends such; each is told of
  /// between being shown and being sent.
  std::function<void(int fd, FileWindow&)> on_shown;

  ServerConnection* newest = nullptr;  // connection; may be gone

  void on_connection_opened(ServerConnection& connection) override {
    ++opened;
    newest = &connection;
  }
  void on_connection_closed(ServerConnection&) override { ++closed; }
  void on_call(Call& call) override {
    ++calls;
    if (xids.size() < 100'000) xids.push_back(call.xid());
    if (drop_all) {
      call.drop();
    } else if (hold) {
      held.push_back(&call);
    } else {
      answer(call);
    }
  }
  void answer_held() {
    while (!held.empty()) {
      Call* call = held.front();
      held.pop_front();
      answer(*call);
    }
  }
  void answer(Call& call) {
    xdr::Decoder in = call.decoder();
    in.u32();
    in.u32();
    in.u32();
    in.u32();
    in.u32();
    const std::uint32_t procedure = in.u32();
    for (int i = 0; i < 4; ++i)
      in.u32();
    const std::uint32_t a = procedure == kToyNull ? 0 : in.u32();
    const std::uint32_t b = procedure == kToyNull ? 0 : in.u32();
    Buffer payload;
    std::size_t room = 256;
    if (procedure == kToyList) room += a;
    if (!call.reserve_reply(room)) {
      refuse(call);
      return;
    }
    if (procedure == kToyRead && a > 0) {
      payload = call.connection().buffers().acquire(a);
      if (!payload) {
        refuse(call);
        return;
      }
      fill_pattern({payload.data(), a}, b);
      if (on_shown && call.connection().sends_file_pages()) payload = as_file(call, payload, a);
    }
    xdr::Encoder out(call.reply_room());
    out.u32(call.xid());
    out.u32(1);
    for (int i = 0; i < 4; ++i)
      out.u32(0);
    if (procedure == kToyRead) {
      out.u32(0);
      out.u32(0);
      out.u32(a);
      out.u32(1);
      out.payload({payload.data(), a});
    } else if (procedure == kToyWrite) {
      const auto data = in.payload(16u << 20);
      const std::uint32_t trailer = in.u32();
      const bool good =
          in.at_end() && data.size() == a && has_pattern(data, b) && trailer == (a ^ b);
      if (!good) ++bad_calls;
      out.u32(good ? 0 : 1);
      out.u32(static_cast<std::uint32_t>(data.size()));
    } else if (procedure == kToyList) {
      std::vector<std::byte> list(a);
      fill_pattern(list, b);
      out.opaque(list);
    }
    call.reply(out, std::move(payload));
  }

 private:
  /// The same bytes as pages of a file.
  Buffer as_file(Call& call, const Buffer& payload, std::size_t size) {
    const UniqueFd file(::memfd_create("toy", MFD_CLOEXEC));
    EXPECT_EQ(::pwrite(file.get(), payload.data(), size, 0), static_cast<ssize_t>(size));
    Buffer window = call.connection().buffers().acquire_window(size);
    EXPECT_TRUE(window && window.window()->show(file.get(), 0, size) == FileWindow::Shown::kAll);
    on_shown(file.get(), *window.window());
    return window;
  }
  static void refuse(Call& call) {
    xdr::Encoder out(call.reply_room());
    for (std::uint32_t v : {call.xid(), 1u, 0u, 0u, 0u, 5u})
      out.u32(v);  // SYSTEM_ERR
    call.reply(out, {});
  }
};

/// Client side: one call and the check of its result.
class ToyCall : public ClientCall {
 public:
  ToyCall(std::uint32_t call_xid, std::uint32_t procedure, std::uint32_t size, std::uint32_t seed)
      : procedure_(procedure), size_(size), seed_(seed) {
    xid = call_xid;
    head_.resize(procedure == kToyNull ? 40 : procedure == kToyWrite ? 52 : 48);
    xdr::Encoder out(head_);
    for (std::uint32_t v : {xid, 0u, 2u, 100003u, 3u, procedure, 0u, 0u, 0u, 0u})
      out.u32(v);
    if (procedure != kToyNull) {
      out.u32(size);
      out.u32(seed);
    }
    max_reply = 24 + 64;
    if (procedure == kToyWrite) {
      out.u32(size);
      data_.resize(size);
      fill_pattern(data_, seed);
      has_payload = true;
      payload = data_;
      store_be32(tail_, size ^ seed);
      tail = ByteSpan(tail_, 4);
    } else if (procedure == kToyRead) {
      data_.resize(size);
      sink = data_;
    } else if (procedure == kToyList) {
      max_reply += size + 8;
    }
    head = head_;
  }

  void on_complete() override {
    ++completions;
    good = ok && check();
    if (done) done(*this);
  }

  /// What a read got, or a write sends.
  ByteSpan data() const { return data_; }

  std::function<void(ToyCall&)> done;
  int completions = 0;
  bool good = false;
  bool refused = false;  // the server lacked memory
  bool placed = false;   // the result came by RDMA Write (or straight into the sink)

 private:
  bool check() {
    xdr::Decoder in(reply, reduced);
    if (in.u32() != xid || in.u32() != 1) return false;
    for (int i = 0; i < 3; ++i) {
      if (in.u32() != 0) return false;
    }
    const std::uint32_t accepted = in.u32();
    refused = accepted == 5;
    if (accepted != 0) return false;
    if (procedure_ == kToyRead) {
      in.u32();
      in.u32();
      const std::uint32_t count = in.u32();
      in.u32();
      const auto data = in.payload(size_);
      placed = !reduced.empty();
      return in.at_end() && count == size_ && data.size() == size_ && has_pattern(data, seed_) &&
             (!placed || data.data() == data_.data());
    }
    if (procedure_ == kToyWrite) {
      const std::uint32_t status = in.u32();
      return status == 0 && in.u32() == size_ && in.at_end();
    }
    if (procedure_ == kToyList) {
      const auto list = in.opaque(size_);
      return in.at_end() && list.size() == size_ && has_pattern(list, seed_);
    }
    return in.at_end();
  }

  std::uint32_t procedure_;
  std::uint32_t size_;
  std::uint32_t seed_;
  std::vector<std::byte> head_;
  std::vector<std::byte> data_;
  std::byte tail_[4];
};

/// Remembers what a client transport said.
class TransportLog : public ClientTransportHandler {
 public:
  int ready = 0, closed = 0;
  Error why{};
  std::string detail;
  std::vector<std::vector<std::byte>> backward_calls;
  /// The bytes of the answer to each of them, xid, REPLY and zeros; 0: none.
  std::size_t backward_reply = 0;
  std::function<void()> on_backward;
  void on_transport_ready() override { ++ready; }
  std::size_t on_backward_call(ByteSpan call, MutableByteSpan room) override {
    backward_calls.emplace_back(call.begin(), call.end());
    std::fill(room.begin(), room.end(), std::byte{0});
    store_be32(room.data(), load_be32(call.data()));
    store_be32(room.data() + 4, 1);
    if (on_backward) on_backward();
    return std::min(backward_reply, room.size());
  }
  void on_transport_closed(Error error, const std::string& text) override {
    ++closed;
    why = error;
    detail = text;
  }
};

}  // namespace nfsrdma::test
