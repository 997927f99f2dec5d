// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/program.h"

#include <gtest/gtest.h>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

Replay replay_of(std::uint32_t minor_version, const Operations4& operations,
                 std::uint32_t missing = 0) {
  std::vector<std::byte> arguments(64);
  xdr::Encoder encoder(arguments);
  xdr::encode(encoder, xdr::COMPOUND4args{"tag", minor_version, operations.count() + missing});
  arguments.resize(encoder.size());
  arguments.insert(arguments.end(), operations.bytes().begin(), operations.bytes().end());
  return nfs4::program_table().procedures[xdr::NFSPROC4_COMPOUND].replay_of(
      xdr::Decoder(arguments));
}

TEST(Nfs4Program, WhatMayRunAgainIsNotRemembered) {
  FileHandle file;
  file.size = 24;
  const auto on_file = [&file] { return Operations4().putfh(file); };
  EXPECT_EQ(replay_of(0, on_file().add<OP_GETATTR>()), Replay::kIdempotent);
  EXPECT_EQ(replay_of(0, on_file().add<OP_LOOKUP>({"name"}).add<OP_GETFH>().add<OP_GETATTR>()),
            Replay::kIdempotent);
  EXPECT_EQ(replay_of(0, on_file().add<OP_READ>({{}, 0, 100})), Replay::kIdempotent);
  EXPECT_EQ(replay_of(0, on_file().add<OP_GETATTR>().add<OP_REMOVE>({"name"})), Replay::kCached);
  EXPECT_EQ(replay_of(0, on_file().add<OP_CREATE>()), Replay::kCached);
  EXPECT_EQ(replay_of(0, on_file().add<OP_WRITE>().add<OP_GETATTR>()), Replay::kCachedBriefly);
  EXPECT_EQ(replay_of(0, on_file().add<OP_WRITE>().add<OP_REMOVE>({"name"})), Replay::kCached);
  // These have sequence ids.
  EXPECT_EQ(replay_of(0, on_file().add<OP_OPEN>({1, 1, 0, {7, {}}, {}, {}}).add<OP_GETFH>()),
            Replay::kIdempotent);
  xdr::OPEN4args creating;
  creating.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
  creating.claim.file = "file";
  EXPECT_EQ(replay_of(0, on_file().add<OP_OPEN>(creating).add<OP_GETFH>()), Replay::kCached)
      << "its reply waits for the disk, and the owner's replay would not";
  EXPECT_EQ(replay_of(0, on_file().add<OP_CLOSE>({})), Replay::kIdempotent);
  EXPECT_EQ(replay_of(0, on_file().add<OP_LOCKU>({})), Replay::kIdempotent);
  EXPECT_EQ(replay_of(0, on_file().add<OP_LOCK>({})), Replay::kOneAtATime)
      << "until it is done its owner cannot replay it";
  EXPECT_EQ(replay_of(0, on_file().add<OP_LOCK>({}).add<OP_WRITE>()), Replay::kCachedBriefly);
  EXPECT_EQ(replay_of(0, on_file().add<OP_OPEN>().add<OP_SETATTR>({})), Replay::kCached);
  EXPECT_EQ(replay_of(0, on_file().add<OP_GETATTR>(), 1), Replay::kCached) << "one is missing";
  Operations4 many;
  for (int i = 0; i < 17; ++i)
    many.add<OP_PUTROOTFH>();
  EXPECT_EQ(replay_of(0, many), Replay::kCached) << "not looked at to the end";
  EXPECT_EQ(replay_of(1, on_file().add<OP_REMOVE>({"name"})), Replay::kIdempotent)
      << "that is for the session";
}

}  // namespace
}  // namespace nfsrdma::test
