// SPDX-License-Identifier: Apache-2.0
// Directories in memory: what servers can do to whoever lists them.
#include "client/library/listing.h"

#include "tests/unit/client/mount_impl_fixture.h"

namespace nfsrdma {
namespace {

using client::Listing;

/// How many entries of one letter's name a Listing takes.
std::size_t fill(Listing* listing, const char* name) {
  for (std::size_t taken = 0;; ++taken)
    if (taken == 1000 || !listing->on_entry({1, name, taken, nullptr, nullptr})) return taken;
}

TEST(Listing, TakesNoMoreThanItMay) {
  Listing listing(10 * (sizeof(client::DirectoryEntry) + 1));
  EXPECT_EQ(fill(&listing, "a"), 10u);
  const Result<void> ended = listing.end_page({});
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().sys, EFBIG);
}

TEST(Listing, WhatIsLeftOutCountsToo) {
  Listing listing(10 * (sizeof(client::DirectoryEntry) + 1));
  EXPECT_EQ(fill(&listing, "."), 10u);
  EXPECT_TRUE(listing.take().empty());
}

TEST(Listing, PagesWithoutEntriesComeToAnEnd) {
  Listing listing(10 * sizeof(client::DirectoryEntry));
  DirectoryPage page;
  for (page.cookie = 1; page.cookie <= 10; ++page.cookie)
    ASSERT_TRUE(listing.end_page(page).ok());
  EXPECT_EQ(listing.end_page(page).error().sys, EFBIG);
}

/// The root of a server whose pages are of one entry, each.
class ListPath : public MountImplFixture {
 protected:
  /// Behind `cookie` comes next(cookie), and nothing behind that when it is `end`.
  void list(const std::function<std::uint64_t(std::uint64_t)>& next, std::uint64_t end) {
    group_.spawn(keep(client::list_path(*impl_, "", false), &listed_));
    xdr::GETATTR3res root;
    root.resok.obj_attributes.type = xdr::ftype3::NF3DIR;
    answer(root);
    for (int pages = 0; pages < 1000 && !listed_; ++pages) {
      const auto args = next_call<xdr::READDIR3args>(xdr::nfsproc3::NFSPROC3_READDIR);
      const std::uint64_t cookie = next(args.cookie);
      transport().answer([&](xdr::Encoder& encoder) {
        xdr::DirectoryWriter<xdr::entry3> writer(encoder, {.result_bytes = 4096});
        ASSERT_TRUE(writer.start({}));
        ASSERT_TRUE(writer.try_add({cookie, "name", cookie}));
        writer.finish(cookie == end);
      });
    }
  }

  std::optional<Result<std::vector<client::DirectoryEntry>>> listed_;
};

TEST_F(ListPath, ReadsPageAfterPageToTheEnd) {
  list([](std::uint64_t cookie) { return cookie + 1; }, 200);
  ASSERT_TRUE(listed_ && listed_->ok());
  EXPECT_EQ((*listed_)->size(), 200u);
  EXPECT_EQ((*listed_)->back().fileid, 200u);
}

TEST_F(ListPath, AServerThatGivesTheSameCookieForEverIsAnError) {
  list([](std::uint64_t) { return 7; }, 0);
  ASSERT_TRUE(listed_ && !listed_->ok());
  EXPECT_EQ(listed_->error().sys, EIO);
  EXPECT_EQ(listed_->error().message(),
            "the server lists the directory in a circle: Input/output error");
}

TEST_F(ListPath, SoIsOneThatLeadsBackToAnEarlierPage) {
  list([](std::uint64_t cookie) { return cookie < 30 ? cookie + 1 : 20; }, 0);
  ASSERT_TRUE(listed_ && !listed_->ok());
  EXPECT_EQ(listed_->error().sys, EIO);
}

TEST_F(ListPath, SoIsOneThatLeadsBackToTheBeginning) {
  list([](std::uint64_t cookie) { return cookie < 3 ? cookie + 1 : 0; }, 100);
  ASSERT_TRUE(listed_ && !listed_->ok());
  EXPECT_EQ(listed_->error().sys, EIO);
}

}  // namespace
}  // namespace nfsrdma
