// SPDX-License-Identifier: Apache-2.0
// Engines without sockets: one with recorded events, and helpers that move bytes into and out of it
// the way the TCP driver does.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rpcrdma/iwarp/crc32c.h"
#include "rpcrdma/iwarp/engine.h"

namespace nfsrdma::iwarp::test {

/// "0017 4143 00000000": hex digits, blanks ignored.
inline std::vector<std::byte> from_hex(std::string_view text) {
  std::vector<std::byte> bytes;
  int high = -1;
  for (char c : text) {
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) continue;
    if (high < 0) {
      high = digit;
    } else {
      bytes.push_back(static_cast<std::byte>(high << 4 | digit));
      high = -1;
    }
  }
  return bytes;
}

inline std::string to_hex(ByteSpan bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(bytes[i]));
    text += digits;
    if (i % 4 == 3 && i + 1 < bytes.size()) text += ' ';
  }
  return text;
}

inline std::vector<std::byte> counting(std::size_t size, std::size_t from = 0) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(from + i);
  return bytes;
}

/// STags as a test orders them, with any number and offset.
class FixedStags final : public StagDirectory {
 public:
  struct Region {
    StagEntry entry;
    std::vector<std::byte> bytes;
  };
  std::vector<std::byte>& add(std::uint32_t stag, std::uint64_t offset, std::size_t size,
                              Access access, std::uint64_t scope = 0) {
    Region& region = regions[stag];
    region.bytes.assign(size, std::byte{0});
    region.entry = {};
    region.entry.base = region.bytes.data();
    region.entry.size = size;
    region.entry.base_offset = offset;
    region.entry.scope = scope;
    region.entry.access = access;
    return region.bytes;
  }
  StagAccess check(std::uint32_t stag, std::uint64_t offset, std::uint64_t length,
                   std::uint64_t scope, Access access) override {
    auto found = regions.find(stag);
    if (found == regions.end()) return {};
    StagEntry& entry = found->second.entry;
    if (entry.scope != scope) return {StagFault::kStream};
    if (entry.access != access) return {StagFault::kAccess};
    std::uint64_t end;
    if (!checked_add(offset, length, &end)) return {StagFault::kWrap};
    if (offset < entry.base_offset ||
        !range_inside(offset - entry.base_offset, length, entry.size)) {
      return {StagFault::kBounds};
    }
    return {StagFault::kNone, &entry, offset - entry.base_offset};
  }
  bool invalidate(std::uint32_t stag, std::uint64_t) override { return regions.erase(stag) == 1; }

  std::map<std::uint32_t, Region> regions;
};

/// An engine, its environment and what happened to it, as lines of text that compare easily.
class EngineRig final : public EngineEvents {
 public:
  explicit EngineRig(const EngineOptions& given = {})
      : options(given), engine(*this, stags, pool, given) {}

  void on_completion(const WorkCompletion& c) override {
    if (c.opcode == WorkOpcode::kReceive) {
      const std::vector<std::byte>& buffer = *buffers.at(c.wr_id);
      std::string line = "receive " + to_hex({buffer.data(), c.byte_count});
      if (c.invalidated) line += " invalidated " + to_hex(be32(c.invalidated_handle));
      events.push_back(line);
      return;
    }
    const char* status = c.status == WorkStatus::kSuccess   ? " ok"
                         : c.status == WorkStatus::kFlushed ? " flushed"
                                                            : " failed";
    events.push_back("work " + std::to_string(c.wr_id) + status);
  }
  bool take_receive(std::uint64_t* wr_id, Sge* buffer) override {
    if (receives.empty()) return false;
    *wr_id = receives.front();
    receives.pop_front();
    std::vector<std::byte>& bytes = *buffers.at(*wr_id);
    *buffer = {bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0};
    return true;
  }
  void return_receive(std::uint64_t wr_id, Sge) override { receives.push_front(wr_id); }
  void on_first_fpdu() override { ++first_fpdus; }
  void on_rtr_done() override { ++rtrs; }
  void on_engine_failed() override { ++failures; }

  void post_receives(std::size_t count, std::size_t size) {
    for (std::size_t i = 0; i < count; ++i) {
      buffers.push_back(std::make_unique<std::vector<std::byte>>(size));
      receives.push_back(buffers.size() - 1);
    }
  }

  /// Bytes from the peer, placed where the engine planned them.
  ReceiveStatus feed(ByteSpan bytes) {
    while (!bytes.empty()) {
      FpduReceiver& receiver = engine.receiver();
      if (engine.failed()) return ReceiveStatus::kFailed;
      if (receiver.waiting()) return receiver.feed(bytes.data(), bytes.size());
      receiver.plan(*scratch);
      std::size_t taken = 0;
      for (int i = 0; i < scratch->count && taken < bytes.size(); ++i) {
        const iovec& piece = scratch->iov[static_cast<std::size_t>(i)];
        const std::size_t n = std::min(piece.iov_len, bytes.size() - taken);
        std::memcpy(piece.iov_base, bytes.data() + taken, n);
        taken += n;
      }
      const ReceiveStatus status = receiver.on_bytes(*scratch, taken);
      bytes = bytes.subspan(taken);
      if (status == ReceiveStatus::kFailed) return status;
    }
    return engine.receiver().waiting() ? ReceiveStatus::kWait : ReceiveStatus::kMore;
  }
  /// In pieces of `step` bytes.
  ReceiveStatus feed_in_steps(ByteSpan bytes, std::size_t step) {
    ReceiveStatus status = ReceiveStatus::kMore;
    for (std::size_t at = 0; at < bytes.size() && status == ReceiveStatus::kMore; at += step) {
      status = feed(bytes.subspan(at, std::min(step, bytes.size() - at)));
    }
    return status;
  }

  /// Everything that the engine wants to send; a socket that takes `most` bytes per call.
  std::vector<std::byte> drain(std::size_t most = SIZE_MAX) {
    std::vector<std::byte> out;
    for (;;) {
      engine.fill(*transmit);
      if (transmit->fpdu_count == 0) break;
      std::size_t left = most;
      const std::size_t before = out.size();
      for (std::size_t i = 0; i < transmit->iov_count; ++i) {
        const iovec& piece = transmit->iov[i];
        const std::size_t n = std::min(left, piece.iov_len);
        const auto* data = static_cast<const std::byte*>(piece.iov_base);
        out.insert(out.end(), data, data + n);
        left -= n;
      }
      engine.on_sent(out.size() - before);
    }
    return out;
  }

  static std::vector<std::byte> be32(std::uint32_t v) {
    std::vector<std::byte> bytes(4);
    store_be32(bytes.data(), v);
    return bytes;
  }

  EngineOptions options;
  FixedStags stags;
  WorkPool pool;
  std::unique_ptr<ReceiveScratch> scratch = std::make_unique<ReceiveScratch>();
  std::unique_ptr<TransmitScratch> transmit = std::make_unique<TransmitScratch>();
  std::vector<std::unique_ptr<std::vector<std::byte>>> buffers;
  std::deque<std::uint64_t> receives;
  std::vector<std::string> events;
  int first_fpdus = 0;
  int rtrs = 0;
  int failures = 0;
  Engine engine;
};

/// One FPDU. `payload` goes behind the header.
inline std::vector<std::byte> make_fpdu(FpduHeader header, ByteSpan payload, bool crc) {
  header.ulpdu_length = static_cast<std::uint16_t>(header.size() - kMpaLengthSize + payload.size());
  std::vector<std::byte> out(header.size());
  store_fpdu_header(out.data(), header);
  out.insert(out.end(), payload.begin(), payload.end());
  out.resize(round_up4(out.size()));
  Crc32c sum;
  sum.add(out);
  out.resize(out.size() + kMpaCrcSize);
  if (crc) store_le32(out.data() + out.size() - kMpaCrcSize, sum.value());
  return out;
}

inline FpduHeader untagged(RdmapOpcode opcode, std::uint32_t queue, std::uint32_t msn,
                           std::uint32_t offset = 0, bool last = true) {
  FpduHeader header;
  header.ddp_control = static_cast<std::uint8_t>(kDdpVersion | (last ? kDdpLast : 0));
  header.rdmap_control = static_cast<std::uint8_t>(kRdmapVersion | static_cast<int>(opcode));
  header.queue = queue;
  header.msn = msn;
  header.message_offset = offset;
  return header;
}
inline FpduHeader send_header(std::uint32_t msn, std::uint32_t offset = 0, bool last = true) {
  return untagged(RdmapOpcode::kSend, kQueueSend, msn, offset, last);
}
inline FpduHeader tagged(RdmapOpcode opcode, std::uint32_t stag, std::uint64_t offset,
                         bool last = true) {
  FpduHeader header;
  header.ddp_control = static_cast<std::uint8_t>(kDdpTagged | kDdpVersion | (last ? kDdpLast : 0));
  header.rdmap_control = static_cast<std::uint8_t>(kRdmapVersion | static_cast<int>(opcode));
  header.stag = stag;
  header.offset = offset;
  return header;
}

/// Code of the Terminate that the engine wants to send, as "layer/type/code", "none" without one.
inline std::string terminate_code(const Engine& engine) {
  const ByteSpan fpdu = engine.terminate();
  if (fpdu.size() < kUntaggedHeader + 4) return "none";
  const auto first = static_cast<unsigned>(fpdu[kUntaggedHeader]);
  char text[16];
  std::snprintf(text, sizeof text, "%u/%u/%02x", first >> 4, first & 15,
                static_cast<unsigned>(fpdu[kUntaggedHeader + 1]));
  return text;
}

}  // namespace nfsrdma::iwarp::test
