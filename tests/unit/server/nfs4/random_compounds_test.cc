// SPDX-License-Identifier: Apache-2.0
// COMPOUNDs of random operations with random arguments, some of them about real handles and
// stateids: whatever comes, there is a reply that can be read, its last result has its status, and
// the server goes on.
#include <gtest/gtest.h>

#include "tests/support/nfs4_harness.h"
#include "xdr/random.h"

namespace nfsrdma::test {
namespace {

constexpr int kCompounds = 600;

/// One operation, its number and arguments encoded.
std::vector<std::byte> random_operation(xdr::RandomSource& source) {
  const auto number =
      static_cast<nfs_opnum4>(xdr::kNfs4FirstOperation +
                              source.below(xdr::kNfs4LastOperation - xdr::kNfs4FirstOperation + 1));
  std::vector<std::byte> room(1u << 20);
  xdr::Encoder encoder(room);
  encoder.u32(static_cast<std::uint32_t>(number));
  xdr::with_operation(number, [&](auto row) {
    using Args = typename decltype(row)::Args;
    if constexpr (!std::is_same_v<Args, xdr::Void>) {
      xdr::encode(encoder, source.make<Args>());
    }
  });
  return flatten(encoder);
}

/// A step that leads somewhere, so that not all operations stop at a bad handle.
void add_sensible(Operations4& operations, xdr::RandomSource& source, const FileHandle& root,
                  const Open4& file) {
  switch (source.below(6)) {
    case 0:
      operations.putfh(root);
      break;
    case 1:
      operations.putfh(file.handle);
      break;
    case 2:
      operations.add<OP_SAVEFH>();
      break;
    case 3:
      operations.add<OP_PUTROOTFH>();
      break;
    case 4:
      operations.add<OP_READ>({file.stateid, source.below(10), 100});
      break;
    default:
      operations.add<OP_GETFH>();
  }
}

void run_some(std::uint64_t seed, std::uint32_t minor_version) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Nfs4Harness harness;
  const Open4 file = harness.open(harness.root(), "file");
  ASSERT_EQ(file.status, NFS4_OK);
  ASSERT_EQ(harness.write(file, 0, "some bytes"), NFS4_OK);
  Session4 session = harness.connect("random", std::max(1u, minor_version));
  xdr::RandomSource source(seed, 600);
  for (int i = 0; i < kCompounds; ++i) {
    Operations4 operations;
    const std::uint64_t length = source.below(6);
    for (std::uint64_t n = 0; n < length; ++n) {
      add_sensible(operations, source, harness.root(), file);
      operations.add_encoded(random_operation(source));
    }
    const Reply4 reply = minor_version == 0 || source.below(4) == 0
                             ? harness.run_bare(operations, minor_version)
                             : harness.run(session, operations);
    ASSERT_TRUE(reply.outcome == Outcome::kReply || reply.outcome == Outcome::kGarbageArgs);
    if (reply.status == NFS4ERR_BADSESSION && minor_version != 0) {
      session = harness.connect("random " + std::to_string(i), minor_version);
    }
    if (::testing::Test::HasFailure()) return;
  }
  // It still serves.
  session = harness.connect("afterwards", std::max(1u, minor_version));
  EXPECT_EQ(harness.run(session, Operations4().add<OP_PUTROOTFH>()).status, NFS4_OK);
}

TEST(RandomCompounds, MinorVersion0) {
  run_some(401, 0);
}
TEST(RandomCompounds, MinorVersion1) {
  run_some(411, 1);
}
TEST(RandomCompounds, MinorVersion2) {
  run_some(421, 2);
}

}  // namespace
}  // namespace nfsrdma::test
