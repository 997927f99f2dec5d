// SPDX-License-Identifier: Apache-2.0
// A peer's bytes against the MPA frame decoder and against an engine with work under way. The first
// byte chooses the set-up, the second the size of the pieces in which the stream arrives; what the
// engine makes of it must not depend on the pieces.
#include <cstdlib>

#include "rpcrdma/iwarp/mpa_connect.h"
#include "tests/unit/rpcrdma/iwarp/engine_pair.h"

namespace nfsrdma::iwarp::test {
namespace {

struct NoDomain final : ProtectionDomain {
  Result<MemoryRegion> register_memory(MutableByteSpan, Access, const QueuePair*) override {
    return Error{};
  }
  void deregister(MemoryRegion&) override {}
};

EngineOptions options_of(unsigned setup) {
  EngineOptions options;
  options.initiator = (setup & 1) != 0;
  options.crc = (setup & 2) != 0;
  options.coalesce = (setup & 4) != 0;
  options.expected_rtr = (setup & 8) != 0 ? RtrKind::kSend : RtrKind::kNone;
  options.ird = 2;
  options.ord = 2;
  return options;
}

struct Run {
  explicit Run(unsigned setup) : rig(options_of(setup)) {
    rig.post_receives((setup & 16) != 0 ? 2 : 32, 48);
    rig.stags.add(0xabcdef01, 0x100001000, 64, Access::kRemoteWrite);
    rig.stags.add(0x1122aa55, 0x1000, 20'000, Access::kRemoteWrite);
    rig.stags.add(0x00123456, 0, 64, Access::kRemoteWrite);
    rig.stags.add(0x22222202, 0x100003000, 64, Access::kRemoteRead);
    std::vector<std::byte>& sink = rig.stags.add(0x11111101, 0x2000, 5000, Access::kReadSink);
    region = MemoryRegion(domain, sink, 0, 0x11111101, 0x2000, 0);
    for (std::uint32_t size : {16u, 5000u}) {
      const Sge sge{sink.data(), size, 0};
      WorkRequest request;
      request.wr_id = size;
      request.opcode = WorkOpcode::kRead;
      request.sges = {&sge, 1};
      request.read_sink = &region;
      std::size_t posted = 0;
      if (!rig.engine.post({&request, 1}, &posted).ok()) std::abort();
    }
    rig.drain();
  }
  /// Everything that must not depend on how the stream was cut.
  std::vector<std::string> outcome() {
    std::vector<std::string> out = rig.events;
    out.push_back(rig.engine.failed() ? rig.engine.failure().where : "alive");
    out.push_back(std::to_string(rig.engine.receiver().fpdus()));
    rig.engine.flush();
    if (rig.failures > 1) std::abort();
    if (!rig.engine.failed()) std::abort();
    return out;
  }

  EngineRig rig;
  NoDomain domain;
  MemoryRegion region;
};

void try_frame(ByteSpan bytes, bool reply) {
  std::size_t need = 0;
  MpaFrame frame;
  if (decode_mpa_frame(bytes, reply, &need, &frame) != MpaParse::kDone) return;
  MpaFrameBytes out;
  const std::size_t size = encode_mpa_frame(frame, out);
  MpaFrame again;
  if (decode_mpa_frame({out.data(), size}, reply, &need, &again) != MpaParse::kDone) std::abort();
  MpaFrame answer;
  const MpaLimits limits{false, 8, 8};
  if (reply) {
    auto agreed = conclude_reply(make_request(MpaAttempt::kPeerToPeer, limits), frame, limits);
    if (agreed.ok() && agreed->ord > kMpaMaxDepth) std::abort();
  } else if (answer_request(frame, limits, &answer).ord > peer_inbound_reads(frame)) {
    std::abort();
  }
}

}  // namespace
}  // namespace nfsrdma::iwarp::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nfsrdma::iwarp::test;
  if (size < 2) return 0;
  const nfsrdma::ByteSpan stream{reinterpret_cast<const std::byte*>(data + 2), size - 2};
  try_frame(stream, false);
  try_frame(stream, true);

  Run whole(data[0]);
  whole.rig.feed(stream);
  Run pieces(data[0]);
  pieces.rig.feed_in_steps(stream, 1 + data[1]);
  // A responder that becomes established midway sends its Read Requests only then, so the
  // time at which responses are accepted depends on the pieces; an initiator has no such moment.
  if ((data[0] & 1) != 0 && whole.outcome() != pieces.outcome()) std::abort();
  whole.rig.drain();
  return 0;
}
