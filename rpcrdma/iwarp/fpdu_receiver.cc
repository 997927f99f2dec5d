// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/iwarp/fpdu_receiver.h"

#include <algorithm>

namespace nfsrdma::iwarp {
namespace {

/// Below this a copy out of the scratch buffer is cheaper than longer iovecs.
constexpr std::size_t kDirectMin = 2048;
constexpr std::size_t kBulkMessage = 16 * 1024;
/// Read ahead while bulk data flows: a trailer, a small Send and the next header fit.
constexpr std::size_t kBulkTail = 1024;

}  // namespace

void FpduReceiver::plan(ReceiveScratch& scratch) {
  int count = 0;
  std::size_t bytes = 0;
  auto push = [&](std::byte* base, std::size_t size) {
    scratch.iov[static_cast<std::size_t>(count++)] = {base, size};
    bytes += size;
  };
  const std::uint64_t beyond = last_ ? 0 : beyond_;
  if (state_ == State::kPayload && target_ != nullptr && remaining_ + beyond >= kDirectMin) {
    push(target_, remaining_);
    std::byte* next = target_ + remaining_;
    std::uint64_t left = beyond;
    const std::size_t gap = fpdu_trailer(kTaggedHeader + payload_) + kTaggedHeader;
    for (int i = 0; left > 0 && payload_ > 0 && i < ReceiveScratch::kMaxPredicted; ++i) {
      const std::size_t piece = std::min<std::uint64_t>(payload_, left);
      if (bytes + gap + piece > ReceiveScratch::kMaxPlan) break;
      push(scratch.gaps[static_cast<std::size_t>(i)].data(), gap);
      push(next, piece);
      next += piece;
      left -= piece;
    }
  }
  push(scratch.buffer.get(), bulk_ ? kBulkTail : ReceiveScratch::kBuffer);
  scratch.count = count;
  scratch.bytes = bytes;
}

ReceiveStatus FpduReceiver::on_bytes(ReceiveScratch& scratch, std::size_t size) {
  const bool filled = size == scratch.bytes;
  if (scratch.count == 1) {
    const std::uint64_t before = direct_bytes_;
    const bool was_bulk = bulk_;
    ReceiveStatus status = feed(scratch.buffer.get(), size);
    // A full small read that met no bulk data: small messages flow, read more at a time.
    if (was_bulk && filled && state_ != State::kPayload && before == direct_bytes_) bulk_ = false;
    return status;
  }
  for (int i = 0; size > 0; ++i) {
    const iovec& piece = scratch.iov[static_cast<std::size_t>(i)];
    const std::size_t got = std::min(size, piece.iov_len);
    const bool is_payload = i % 2 == 0 && i + 1 < scratch.count;
    if (is_payload) {
      if (i > 0 && !as_predicted(piece)) return gather(scratch, i, size);
      direct_bytes_ += got;
      placed(got);
    } else {
      std::size_t used = 0;
      const auto* base = static_cast<const std::byte*>(piece.iov_base);
      ReceiveStatus status = parse(base, got, &used);
      if (status == ReceiveStatus::kFailed) return status;
      if (status == ReceiveStatus::kWait) {
        // Only a Send waits, so whatever was predicted behind it is wrong: keep it all in order.
        kept_.assign(base + used, base + got);
        if (i + 1 < scratch.count && size > got) return gather(scratch, i + 1, size - got);
        return status;
      }
    }
    size -= got;
  }
  return ReceiveStatus::kMore;
}

bool FpduReceiver::as_predicted(const iovec& target) const {
  return state_ == State::kPayload && target_ == target.iov_base && remaining_ == target.iov_len;
}

ReceiveStatus FpduReceiver::gather(ReceiveScratch& scratch, int from, std::size_t size) {
  gathered_bytes_ += size;
  std::vector<std::byte>& bytes = scratch.gathered;
  bytes.clear();
  for (int i = from; size > 0; ++i) {
    const iovec& piece = scratch.iov[static_cast<std::size_t>(i)];
    const std::size_t got = std::min(size, piece.iov_len);
    const auto* base = static_cast<const std::byte*>(piece.iov_base);
    bytes.insert(bytes.end(), base, base + got);
    size -= got;
  }
  return feed(bytes.data(), bytes.size());
}

ReceiveStatus FpduReceiver::feed(const std::byte* data, std::size_t size) {
  if (state_ == State::kWaiting) {
    kept_.insert(kept_.end(), data, data + size);
    return ReceiveStatus::kWait;
  }
  std::size_t used = 0;
  ReceiveStatus status = parse(data, size, &used);
  if (status == ReceiveStatus::kWait) kept_.assign(data + used, data + size);
  return status;
}

ReceiveStatus FpduReceiver::resume() {
  if (state_ != State::kWaiting) return ReceiveStatus::kMore;
  state_ = State::kHeader;
  ReceiveStatus status = begin();
  if (status != ReceiveStatus::kMore) return status;
  std::vector<std::byte> bytes;
  bytes.swap(kept_);
  return feed(bytes.data(), bytes.size());
}

void FpduReceiver::discard_payload() {
  target_ = nullptr;
  beyond_ = 0;
}

ReceiveStatus FpduReceiver::parse(const std::byte* data, std::size_t size, std::size_t* used) {
  const std::byte* p = data;
  const std::byte* const end = data + size;
  ReceiveStatus status = ReceiveStatus::kMore;
  // An FPDU without payload has work left when no bytes are.
  while (status == ReceiveStatus::kMore && p != end) {
    switch (state_) {
      case State::kHeader:
        if (take_header(p, end)) status = begin();
        break;
      case State::kPayload:
        take_payload(p, end);
        break;
      case State::kTrailer: {
        const std::size_t take =
            std::min<std::size_t>(static_cast<std::size_t>(end - p), trailer_size_ - have_);
        std::memcpy(trailer_.data() + have_, p, take);
        have_ = static_cast<std::uint8_t>(have_ + take);
        p += take;
        if (have_ == trailer_size_) status = finish();
        break;
      }
      case State::kWaiting:
        status = ReceiveStatus::kWait;
        break;
      case State::kFailed:
        status = ReceiveStatus::kFailed;
        break;
    }
  }
  *used = static_cast<std::size_t>(p - data);
  return status;
}

/// True when the header is complete.
bool FpduReceiver::take_header(const std::byte*& p, const std::byte* end) {
  auto take_to = [&](std::size_t want) {
    const std::size_t take = std::min<std::size_t>(static_cast<std::size_t>(end - p), want - have_);
    std::memcpy(header_.data() + have_, p, take);
    have_ = static_cast<std::uint8_t>(have_ + take);
    p += take;
    return have_ == want;
  };
  if (have_ < kFpduPeek && !take_to(kFpduPeek)) return false;
  return take_to(fpdu_header_size(static_cast<std::uint8_t>(header_[2])));
}

ReceiveStatus FpduReceiver::begin() {
  const FpduHeader header = load_fpdu_header(header_.data());
  if (header.ulpdu_length + kMpaLengthSize < header.size()) {
    state_ = State::kFailed;
    handler_.fpdu_error(kTermMpaLength);
    return ReceiveStatus::kFailed;
  }
  const Placement placement = handler_.begin_fpdu(header);
  switch (placement.action) {
    case Placement::Action::kFail:
      state_ = State::kFailed;
      return ReceiveStatus::kFailed;
    case Placement::Action::kWait:
      state_ = State::kWaiting;
      return ReceiveStatus::kWait;
    case Placement::Action::kPlace:
    case Placement::Action::kDiscard:
      break;
  }
  const bool place = placement.action == Placement::Action::kPlace;
  target_ = place ? placement.target : nullptr;
  beyond_ = place ? placement.beyond : 0;
  payload_ = remaining_ = header.payload();
  last_ = header.last();
  tagged_ = header.tagged();
  if (tagged_ && payload_ > 0) bulk_ = payload_ + beyond_ >= kBulkMessage;
  trailer_size_ = static_cast<std::uint8_t>(fpdu_trailer(header.size() + payload_));
  if (crc_on_) {
    crc_.reset();
    crc_.add(header_.data(), header.size());
  }
  state_ = State::kPayload;
  if (remaining_ == 0) payload_done();
  return ReceiveStatus::kMore;
}

void FpduReceiver::take_payload(const std::byte*& p, const std::byte* end) {
  const std::size_t take = std::min<std::size_t>(static_cast<std::size_t>(end - p), remaining_);
  if (target_ != nullptr) {
    std::memcpy(target_, p, take);
    placed(take);
  } else {
    if (crc_on_) crc_.add(p, take);
    remaining_ -= static_cast<std::uint32_t>(take);
    if (remaining_ == 0) payload_done();
  }
  p += take;
}

void FpduReceiver::placed(std::size_t size) {
  if (crc_on_) crc_.add(target_, size);
  target_ += size;
  remaining_ -= static_cast<std::uint32_t>(size);
  if (remaining_ == 0) payload_done();
}

void FpduReceiver::payload_done() {
  state_ = State::kTrailer;
  have_ = 0;
}

ReceiveStatus FpduReceiver::finish() {
  if (crc_on_) {
    const std::size_t pad = trailer_size_ - kMpaCrcSize;
    crc_.add(trailer_.data(), pad);
    std::byte expected[kMpaCrcSize];
    store_le32(expected, crc_.value());
    if (std::memcmp(expected, trailer_.data() + pad, kMpaCrcSize) != 0) {
      state_ = State::kFailed;
      handler_.fpdu_error(kTermMpaCrc);
      return ReceiveStatus::kFailed;
    }
  }
  state_ = State::kHeader;
  have_ = 0;
  if (!handler_.end_fpdu()) {
    state_ = State::kFailed;
    return ReceiveStatus::kFailed;
  }
  ++fpdus_;
  return ReceiveStatus::kMore;
}

}  // namespace nfsrdma::iwarp
