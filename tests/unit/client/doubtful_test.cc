// SPDX-License-Identifier: Apache-2.0
// The table of doubtful answers (decisions.md 11).
#include "client/doubtful.h"

#include <gtest/gtest.h>

namespace nfsrdma {
namespace {

FileHandle handle(int n) {
  const std::array<std::byte, 2> bytes{std::byte{1}, static_cast<std::byte>(n)};
  return FileHandle(bytes);
}

Found found(int n, FileType type) {
  Attributes attributes;
  attributes.type = type;
  attributes.nlink = 1;
  return {handle(n), attributes};
}

TEST(Doubtful, OnlyResentCallsAreDoubtful) {
  const Error absent{Errc::kSystem, ENOENT, ""};
  EXPECT_TRUE(doubtful_absence(true, absent));
  EXPECT_FALSE(doubtful_absence(false, absent));
  const Error there{Errc::kSystem, EEXIST, ""};
  EXPECT_TRUE(doubtful_presence(true, there));
  EXPECT_FALSE(doubtful_presence(false, there));
  EXPECT_FALSE(doubtful_presence(true, {Errc::kSystem, EACCES, ""}));
}

TEST(Doubtful, RemovalHappenedWhenTheNameIsGone) {
  EXPECT_TRUE(removal_happened(std::nullopt, nullptr));
}

TEST(Doubtful, RemovalHappenedWhenTheNameIsAnotherObject) {
  const FileHandle known = handle(1);
  EXPECT_TRUE(removal_happened(found(2, FileType::kRegular), &known));
  EXPECT_FALSE(removal_happened(found(1, FileType::kRegular), &known));
  EXPECT_FALSE(removal_happened(found(1, FileType::kRegular), nullptr));
}

TEST(Doubtful, RenameHappenedWhenTheObjectHasTheNewName) {
  const FileHandle known = handle(1);
  EXPECT_TRUE(rename_happened(std::nullopt, found(1, FileType::kRegular), &known));
  EXPECT_FALSE(rename_happened(std::nullopt, found(2, FileType::kRegular), &known));
  EXPECT_FALSE(rename_happened(std::nullopt, std::nullopt, &known));
}

TEST(Doubtful, RenameOfAnUnknownObjectNeedsTheOldNameGone) {
  EXPECT_TRUE(rename_happened(std::nullopt, found(1, FileType::kRegular), nullptr));
  EXPECT_FALSE(
      rename_happened(found(3, FileType::kRegular), found(1, FileType::kRegular), nullptr));
}

TEST(Doubtful, CreationWithDataHappenedAsFarAsTheContentGoes) {
  const auto happened = [](std::string_view content, std::uint64_t size) {
    Found made = found(1, FileType::kRegular);
    made.attributes->size = size;
    made.attributes->mode = 0640;
    SetAttributes set;
    set.mode = 0640;
    set.size = 0;  // which it was to have in front of the data
    return create_with_data_happened(made, set, as_bytes(content), as_bytes("abcdef"));
  };
  EXPECT_TRUE(happened("abcdef", 6));
  EXPECT_TRUE(happened("abc", 3));
  EXPECT_TRUE(happened("", 0));
  EXPECT_TRUE(happened(std::string_view("ab\0\0", 4), 4));
  EXPECT_FALSE(happened("abx", 3));
  EXPECT_FALSE(happened("abcdefg", 7));
  EXPECT_FALSE(happened("abc", 4));  // it changes
  Found directory = found(1, FileType::kDirectory);
  EXPECT_FALSE(create_with_data_happened(directory, {}, {}, as_bytes("abc")));
}

TEST(Doubtful, MkdirHappenedWhenAnEmptyLookingDirectoryIsThere) {
  Found made = found(1, FileType::kDirectory);
  made.attributes->nlink = 2;
  EXPECT_TRUE(mkdir_happened(made));
  made.attributes->nlink = 3;
  EXPECT_FALSE(mkdir_happened(made));
  EXPECT_FALSE(mkdir_happened(found(1, FileType::kRegular)));
}

TEST(Doubtful, SymlinkHappenedWhenItSaysTheSame) {
  EXPECT_TRUE(symlink_happened(found(1, FileType::kSymlink), "a", "a"));
  EXPECT_FALSE(symlink_happened(found(1, FileType::kSymlink), "b", "a"));
  EXPECT_FALSE(symlink_happened(found(1, FileType::kRegular), "a", "a"));
}

TEST(Doubtful, LinkHappenedWhenTheNameIsTheFile) {
  EXPECT_TRUE(link_happened(found(1, FileType::kRegular), handle(1)));
  EXPECT_FALSE(link_happened(found(2, FileType::kRegular), handle(1)));
}

TEST(Doubtful, MknodHappenedWhenTypeAndNumbersAgree) {
  Found device = found(1, FileType::kCharacter);
  device.attributes->rdev_major = 1;
  device.attributes->rdev_minor = 3;
  EXPECT_TRUE(mknod_happened(device, FileType::kCharacter, 1, 3));
  EXPECT_FALSE(mknod_happened(device, FileType::kCharacter, 1, 4));
  EXPECT_FALSE(mknod_happened(device, FileType::kBlock, 1, 3));
  EXPECT_TRUE(mknod_happened(found(1, FileType::kFifo), FileType::kFifo, 0, 0));
}

TEST(Doubtful, CreateHappenedWhenTheFileLooksJustMade) {
  Found made = found(1, FileType::kRegular);
  made.attributes->mode = 0640;
  SetAttributes set;
  set.mode = 0640;
  EXPECT_TRUE(create_happened(made, set));
  set.mode = 0600;
  EXPECT_FALSE(create_happened(made, set));
  set.mode = 0640;
  made.attributes->size = 1;
  EXPECT_FALSE(create_happened(made, set));
}

TEST(Doubtful, ExclusiveCreateIsProvenByTheVerifierInTheTimes) {
  std::array<std::byte, 8> verifier;
  store_be64(verifier.data(), 0x9234567811223344);
  Found made = found(1, FileType::kRegular);
  made.attributes->mtime.tv_sec = 0x12345678;  // without the highest bit
  made.attributes->atime.tv_sec = 0x11223344;
  EXPECT_TRUE(exclusive_create_happened(made, verifier));
  made.attributes->atime.tv_sec = 0x11223345;
  EXPECT_FALSE(exclusive_create_happened(made, verifier));
}

TEST(Doubtful, GuardedSetattrHappenedWhenEverythingIsAsWanted) {
  Attributes now;
  now.mode = 0600;
  now.size = 5;
  SetAttributes set;
  set.mode = 0600;
  EXPECT_TRUE(setattr_happened(now, set));
  set.size = 6;
  EXPECT_FALSE(setattr_happened(now, set));
}

}  // namespace
}  // namespace nfsrdma
