// SPDX-License-Identifier: Apache-2.0
#include "server/filehandle.h"

#include <sys/stat.h>

#include "tests/support/nfs3_harness.h"

namespace nfsrdma::test {
namespace {

HandleParts some_parts(std::uint8_t body_size) {
  HandleParts parts;
  parts.kernel_type = 1;
  parts.export_id = 0x1122334455667788;
  parts.mount_key = 0x99aabbcc;
  parts.body_size = body_size;
  for (std::size_t i = 0; i < body_size; ++i)
    parts.body[i] = static_cast<std::byte>(i + 1);
  return parts;
}

class FileHandles : public ::testing::Test {
 protected:
  HandleCodec codec{HandleCodec::Key{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
};

TEST_F(FileHandles, OpenGivesWhatWasSealed) {
  for (std::uint8_t size = 0; size <= HandleParts::kMaxBody; ++size) {
    const HandleParts in = some_parts(size);
    const FileHandle handle = codec.seal(in);
    EXPECT_LE(handle.size, FileHandle::kMaxBytes);
    HandleParts out;
    ASSERT_TRUE(codec.open(handle.bytes(), &out)) << unsigned{size};
    EXPECT_EQ(out.export_id, in.export_id);
    EXPECT_EQ(out.mount_key, in.mount_key);
    EXPECT_EQ(out.kernel_type, in.kernel_type);
    EXPECT_TRUE(std::ranges::equal(out.body_bytes(), in.body_bytes()));
  }
}

TEST_F(FileHandles, AnotherKeyDoesNotOpenIt) {
  const FileHandle handle = codec.seal(some_parts(8));
  HandleParts out;
  EXPECT_FALSE(HandleCodec(HandleCodec::Key{9}).open(handle.bytes(), &out));
}

TEST_F(FileHandles, EveryFlippedBitIsNoticed) {
  const FileHandle good = codec.seal(some_parts(13));
  for (unsigned bit = 0; bit < good.size * 8u; ++bit) {
    FileHandle bad = good;
    bad.data[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    HandleParts out;
    EXPECT_FALSE(codec.open(bad.bytes(), &out)) << bit;
  }
}

TEST_F(FileHandles, EveryOtherLengthIsNoticed) {
  const FileHandle good = codec.seal(some_parts(8));
  HandleParts out;
  for (std::size_t size = 0; size <= FileHandle::kMaxBytes; ++size) {
    if (size == good.size) continue;
    EXPECT_FALSE(codec.open(ByteSpan(good.data).first(size), &out)) << size;
  }
}

TEST_F(FileHandles, PseudoNodesHaveHandlesOfTheirOwn) {
  const FileHandle handle = codec.seal(HandleParts::of_pseudo_node(0x1122334455667788));
  EXPECT_EQ(handle.size, 40);
  EXPECT_EQ(handle.data[1], std::byte{3});  // scheme
  HandleParts out;
  ASSERT_TRUE(codec.open(handle.bytes(), &out));
  EXPECT_EQ(out.scheme, HandleScheme::kPseudo);
  EXPECT_EQ(out.pseudo_node(), 0x1122334455667788u);
  EXPECT_EQ(out.export_id, 0u);
  EXPECT_EQ(out.mount_key, 0u);
}

TEST_F(FileHandles, PseudoNodesOfAnotherLengthAreNone) {
  for (std::uint8_t size = 0; size <= HandleParts::kMaxBody; ++size) {
    HandleParts in = some_parts(size);
    in.scheme = HandleScheme::kPseudo;
    HandleParts out;
    EXPECT_EQ(codec.open(codec.seal(in).bytes(), &out), size == 8) << unsigned{size};
  }
}

TEST_F(FileHandles, OtherSchemesAreNone) {
  for (unsigned scheme = 0; scheme < 256; ++scheme) {
    HandleParts in = some_parts(8);
    in.scheme = static_cast<HandleScheme>(scheme);
    HandleParts out;
    EXPECT_EQ(codec.open(codec.seal(in).bytes(), &out), scheme >= 1 && scheme <= 3) << scheme;
  }
}

TEST_F(FileHandles, LayoutIsTheDocumentedOne) {
  const FileHandle handle = codec.seal(some_parts(8));
  EXPECT_EQ(handle.size, 40);
  EXPECT_EQ(handle.data[0], std::byte{1});  // version
  EXPECT_EQ(handle.data[1], std::byte{1});  // scheme
  EXPECT_EQ(handle.data[3], std::byte{8});  // body
  EXPECT_EQ(load_be64(handle.data.data() + 4), 0x1122334455667788u);
  EXPECT_EQ(load_be32(handle.data.data() + 12), 0x99aabbccu);
}

TEST(HandleKey, IsMadeOnceAndKept) {
  TemporaryDirectory home;
  const std::string state = home.path() + "/state";
  auto first = HandleCodec::load_or_create_key(state);
  auto again = HandleCodec::load_or_create_key(state);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(first.value(), again.value());
}

TEST(HandleKey, IsForTheServerAlone) {
  TemporaryDirectory home;
  ASSERT_TRUE(HandleCodec::load_or_create_key(home.path() + "/state").ok());
  EXPECT_EQ(stat_of(home.path() + "/state/handle-key").st_mode & 07777, 0600u);
  EXPECT_EQ(stat_of(home.path() + "/state").st_mode & 07777, 0700u);
}

TEST(HandleKey, TwoServersDiffer) {
  TemporaryDirectory home;
  EXPECT_NE(HandleCodec::load_or_create_key(home.path() + "/a").value(),
            HandleCodec::load_or_create_key(home.path() + "/b").value());
}

TEST(HandleKey, AFileOfAnotherVersionIsRefused) {
  TemporaryDirectory home;
  put_file(home.path() + "/handle-key", "nfs-rdma handle key 2\n0123456789abcdef");
  EXPECT_FALSE(HandleCodec::load_or_create_key(home.path()).ok());
}

TEST(HandleKey, ACutFileIsRefused) {
  TemporaryDirectory home;
  put_file(home.path() + "/handle-key", "nfs-rdma handle key 1\n0123");
  EXPECT_FALSE(HandleCodec::load_or_create_key(home.path()).ok());
}

}  // namespace
}  // namespace nfsrdma::test
