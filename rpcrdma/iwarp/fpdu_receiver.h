// SPDX-License-Identifier: Apache-2.0
// The receiving half of MPA for one connection: a state machine that takes the TCP stream in any
// pieces and finds the FPDUs in it. Pure: it makes no system call, but tells the driver where the
// next bytes of the socket should go (plan()), so that tagged payload lands in its target straight
// from the kernel.
//
// Predicted scatter: when a tagged message is known to go on, the plan assumes that FPDUs of the
// same size with consecutive offsets follow and interleaves their targets with small gaps for
// trailer and header. After the read every header is checked; on the first that differs, the bytes
// that went to the wrong place are gathered and parsed again as a stream. Nothing that was placed
// before is overwritten: the handler's `beyond` counts only bytes that nothing was placed in yet.
//
// One ReceiveScratch serves all connections of a loop; a connection keeps only the header or
// trailer it is in the middle of.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "rpcrdma/iwarp/crc32c.h"
#include "rpcrdma/iwarp/ddp_wire.h"
#include "rpcrdma/iwarp/terminate.h"

namespace nfsrdma::iwarp {

/// What an FPDU's header means for its payload.
struct Placement {
  enum class Action : std::uint8_t {
    kPlace,    // payload goes to `target`
    kDiscard,  // payload is skipped
    kWait,     // no receive buffer: stop here until resume()
    kFail,     // the connection is over
  };
  Action action = Action::kFail;
  std::byte* target = nullptr;
  /// Tagged, not last: bytes right behind this payload that may be written to on a guess.
  std::uint64_t beyond = 0;
};

class FpduHandler {
 public:
  virtual ~FpduHandler() = default;
  virtual Placement begin_fpdu(const FpduHeader& header) = 0;
  /// All payload is in place and the CRC, where used, is right. False: the connection is over.
  virtual bool end_fpdu() = 0;
  virtual void fpdu_error(TerminateCode code) = 0;
};

struct ReceiveScratch {
  static constexpr std::size_t kBuffer = 64 * 1024;
  static constexpr int kMaxPredicted = 256;
  static constexpr std::size_t kGap = kMaxTrailer + kTaggedHeader;
  /// Bytes that one read places on a guess at most.
  static constexpr std::size_t kMaxPlan = 1280 * 1024;

  std::unique_ptr<std::byte[]> buffer = std::make_unique<std::byte[]>(kBuffer);
  std::array<std::array<std::byte, kGap>, kMaxPredicted> gaps;
  std::array<iovec, 2 * kMaxPredicted + 2> iov;
  std::vector<std::byte> gathered;  // grows on the first misprediction
  /// Filled by plan().
  int count = 0;
  std::size_t bytes = 0;
};

enum class ReceiveStatus : std::uint8_t { kMore, kWait, kFailed };

class FpduReceiver {
 public:
  explicit FpduReceiver(FpduHandler& handler) : handler_(handler) {}

  void set_crc(bool on) { crc_on_ = on; }

  /// Fills scratch.iov with where the next bytes of the stream should go. Not while waiting().
  void plan(ReceiveScratch& scratch);
  /// The read that was planned gave `size` bytes.
  ReceiveStatus on_bytes(ReceiveScratch& scratch, std::size_t size);
  /// Takes stream bytes from anywhere. What is left when it waits is kept.
  ReceiveStatus feed(const std::byte* data, std::size_t size);
  /// After kWait: asks the handler again and goes on with what was kept.
  ReceiveStatus resume();

  bool waiting() const { return state_ == State::kWaiting; }
  /// Between two FPDUs.
  bool at_boundary() const { return state_ == State::kHeader && have_ == 0; }
  /// Payload still to come for the current FPDU goes nowhere: its target is gone.
  void discard_payload();
  /// FPDUs that were complete and right.
  std::uint64_t fpdus() const { return fpdus_; }
  /// Bytes that a wrong guess had to gather (for tests and statistics).
  std::uint64_t gathered_bytes() const { return gathered_bytes_; }
  /// Payload bytes that plan() sent straight to their target.
  std::uint64_t direct_bytes() const { return direct_bytes_; }

 private:
  enum class State : std::uint8_t { kHeader, kWaiting, kPayload, kTrailer, kFailed };

  ReceiveStatus parse(const std::byte* data, std::size_t size, std::size_t* used);
  bool take_header(const std::byte*& p, const std::byte* end);
  ReceiveStatus begin();
  ReceiveStatus finish();
  void take_payload(const std::byte*& p, const std::byte* end);
  /// `size` bytes of payload are at target_ already.
  void placed(std::size_t size);
  void payload_done();
  bool as_predicted(const iovec& target) const;
  ReceiveStatus gather(ReceiveScratch& scratch, int from, std::size_t size);

  FpduHandler& handler_;
  State state_ = State::kHeader;
  bool crc_on_ = false;
  bool last_ = false;
  bool tagged_ = false;
  bool bulk_ = false;  // large tagged messages of late: read little on speculation
  std::uint8_t have_ = 0;
  std::uint8_t trailer_size_ = 0;
  std::uint32_t payload_ = 0;    // of the current FPDU
  std::uint32_t remaining_ = 0;  // of it
  std::byte* target_ = nullptr;
  std::uint64_t beyond_ = 0;
  Crc32c crc_;
  std::array<std::byte, kMaxFpduHeader> header_;
  std::array<std::byte, kMaxTrailer> trailer_;
  std::vector<std::byte> kept_;
  std::uint64_t fpdus_ = 0;
  std::uint64_t gathered_bytes_ = 0;
  std::uint64_t direct_bytes_ = 0;
};

}  // namespace nfsrdma::iwarp
