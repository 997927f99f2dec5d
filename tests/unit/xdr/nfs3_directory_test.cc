// SPDX-License-Identifier: Apache-2.0
#include "xdr/nfs3_directory.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/support/xdr_bytes.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::decode_exactly;
using nfsrdma::testing::encode_flat;

constexpr std::size_t kEmptyResult = 4 + 8 + 4 + 4;     // no attributes, cookieverf, FALSE, eof
constexpr std::size_t kEntryBytes = 4 + 8 + 4 + 4 + 8;  // TRUE, fileid, name of four, cookie
constexpr entry3 kEntry{17, "name", 18};

class DirectoryWriterTest : public ::testing::Test {
 protected:
  std::array<std::byte, 1024> room_;
  Encoder encoder_{room_};
};

TEST_F(DirectoryWriterTest, WritesWhatTheClientDecodes) {
  DirectoryWriter<entry3> writer(encoder_, {.result_bytes = 512});
  ASSERT_TRUE(writer.start({{}, {std::byte{1}}}));
  ASSERT_TRUE(writer.try_add(kEntry));
  ASSERT_TRUE(writer.try_add({20, "other", 21}));
  writer.finish(true);

  READDIR3res result;
  ASSERT_TRUE(decode_exactly(encoder_.bytes(), result));
  EXPECT_EQ(result.status, nfsstat3::NFS3_OK);
  EXPECT_EQ(result.resok.cookieverf[0], std::byte{1});
  EXPECT_TRUE(result.resok.reply.eof);
  std::vector<std::string> names;
  for (const entry3& entry : result.resok.reply.entries)
    names.emplace_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{"name", "other"}));
}

TEST_F(DirectoryWriterTest, FillsTheLimitToTheLastByte) {
  DirectoryWriter<entry3> writer(encoder_, {.result_bytes = kEmptyResult + 2 * kEntryBytes});
  ASSERT_TRUE(writer.start({}));
  EXPECT_TRUE(writer.try_add(kEntry));
  EXPECT_TRUE(writer.try_add(kEntry));
  EXPECT_FALSE(writer.try_add(kEntry));
  writer.finish(false);
  EXPECT_EQ(encoder_.size(), 4 + kEmptyResult + 2 * kEntryBytes);
}

TEST_F(DirectoryWriterTest, OneByteLessIsOneEntryLess) {
  DirectoryWriter<entry3> writer(encoder_, {.result_bytes = kEmptyResult + 2 * kEntryBytes - 1});
  ASSERT_TRUE(writer.start({}));
  EXPECT_TRUE(writer.try_add(kEntry));
  EXPECT_FALSE(writer.try_add(kEntry));
}

TEST_F(DirectoryWriterTest, StopsAtTheEndOfTheRoomAndStillFinishes) {
  Encoder small{std::span(room_).first(4 + kEmptyResult + kEntryBytes + kEntryBytes - 1)};
  DirectoryWriter<entry3> writer(small, {.result_bytes = 100000});
  ASSERT_TRUE(writer.start({}));
  EXPECT_TRUE(writer.try_add(kEntry));
  EXPECT_FALSE(writer.try_add(kEntry));
  writer.finish(false);
  EXPECT_FALSE(small.overflowed());
  READDIR3res result;
  EXPECT_TRUE(decode_exactly(small.bytes(), result));
}

TEST_F(DirectoryWriterTest, ALimitBelowAnEmptyListIsRefusedWithoutATrace) {
  encoder_.u32(5);
  DirectoryWriter<entry3> writer(encoder_, {.result_bytes = kEmptyResult - 1});
  EXPECT_FALSE(writer.start({}));
  EXPECT_EQ(encoder_.size(), 4u);
  EXPECT_EQ(writer.count(), 0u);
}

TEST_F(DirectoryWriterTest, AbandonTakesEverythingBack) {
  encoder_.u32(5);
  DirectoryWriter<entry3> writer(encoder_, {.result_bytes = 512});
  ASSERT_TRUE(writer.start({}));
  ASSERT_TRUE(writer.try_add(kEntry));
  writer.abandon();
  EXPECT_EQ(encoder_.size(), 4u);
}

TEST_F(DirectoryWriterTest, DirectoryBytesAreNamesCookiesAndFileids) {
  std::size_t per_entry = 8 + 4 + 4 + 8;
  DirectoryWriter<entryplus3> writer(encoder_,
                                     {.result_bytes = 1000, .directory_bytes = 2 * per_entry});
  ASSERT_TRUE(writer.start({}));
  entryplus3 entry{.fileid = 1, .name = "name", .cookie = 2};
  entry.name_attributes.attributes_follow = true;
  EXPECT_TRUE(writer.try_add(entry));
  EXPECT_TRUE(writer.try_add(entry));
  EXPECT_FALSE(writer.try_add(entry));
}

TEST_F(DirectoryWriterTest, OneEntryIsLetInWhateverTheDirectoryBytesSay) {
  DirectoryWriter<entryplus3> writer(encoder_, {.result_bytes = 1000, .directory_bytes = 0});
  ASSERT_TRUE(writer.start({}));
  entryplus3 entry{.fileid = 1, .name = "name", .cookie = 2};
  EXPECT_TRUE(writer.try_add(entry));
  EXPECT_FALSE(writer.try_add(entry));
}

TEST_F(DirectoryWriterTest, EntriesOfReaddirplusCarryAttributesAndHandle) {
  auto handle = nfsrdma::testing::words({1, 2});
  DirectoryWriter<entryplus3> writer(encoder_, {.result_bytes = 1000});
  ASSERT_TRUE(writer.start({}));
  entryplus3 entry{.fileid = 1, .name = "name", .cookie = 2};
  entry.name_attributes = {true, {}};
  entry.name_attributes.attributes.size = 99;
  entry.name_handle = {true, {handle}};
  ASSERT_TRUE(writer.try_add(entry));
  writer.finish(true);
  READDIRPLUS3res result;
  ASSERT_TRUE(decode_exactly(encoder_.bytes(), result));
  auto back = *result.resok.reply.entries.begin();
  EXPECT_EQ(back.name_attributes.attributes.size, 99u);
  EXPECT_EQ(back.name_handle.handle.data.size(), 8u);
}

TEST(Directory, ANameLongerThanTheLimitIsRefused) {
  std::vector<std::byte> room(2048);
  Encoder encoder(room);
  std::string name(kNfs3MaxName + 1, 'n');
  DirectoryWriter<entry3> writer(encoder, {.result_bytes = 2000});
  ASSERT_TRUE(writer.start({}));
  ASSERT_TRUE(writer.try_add({1, name, 2}));
  writer.finish(true);
  READDIR3res result;
  EXPECT_FALSE(decode_exactly(encoder.bytes(), result));
}

}  // namespace
}  // namespace nfsrdma::xdr
