// SPDX-License-Identifier: Apache-2.0
// READDIR and READDIRPLUS.
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <map>
#include <optional>
#include <set>

#include "tests/support/held_calls.h"
#include "tests/support/nfs3_harness.h"

namespace nfsrdma::test {
namespace {

class Directories : public ::testing::Test {
 protected:
  struct Listed {
    std::multiset<std::string> names;
    std::size_t calls = 0;
    nfsstat3 status = NFS3_OK;
  };
  /// Everything, in as many READDIRs as `count` makes necessary.
  Listed list(const FileHandle& dir, std::uint32_t count, std::function<void()> between = {}) {
    Listed out;
    std::uint64_t cookie = 0;
    for (bool eof = false; !eof;) {
      auto reply = nfs.call<nfsproc3::NFSPROC3_READDIR>({nfs.fh(dir), cookie, {}, count});
      ++out.calls;
      out.status = reply.status();
      if (out.status != NFS3_OK) break;
      EXPECT_LE(reply.bytes.size(), count + 4u);
      for (const xdr::entry3& entry : reply.res.resok.reply.entries) {
        out.names.insert(std::string(entry.name));
        cookie = entry.cookie;
      }
      eof = reply.res.resok.reply.eof;
      if (between) between();
    }
    return out;
  }
  void fill(const std::string& directory, int files) {
    for (int i = 0; i < files; ++i)
      put_file(directory + "/file" + std::to_string(i), "");
  }
  Nfs3Harness nfs;
};

TEST_F(Directories, AnEmptyDirectoryHasTheTwoDots) {
  const Listed listed = list(nfs.root(), 4096);
  EXPECT_EQ(listed.names, (std::multiset<std::string>{".", ".."}));
}

TEST_F(Directories, TenThousandEntriesComeExactlyOnce) {
  fill(nfs.directory(), 10'000);
  const Listed listed = list(nfs.root(), 4096);
  EXPECT_EQ(listed.names.size(), 10'002u);
  EXPECT_EQ(std::set<std::string>(listed.names.begin(), listed.names.end()).size(), 10'002u);
  EXPECT_GT(listed.calls, 50u);
}

TEST_F(Directories, TwoListingsAtOnceDoNotDisturbEachOther) {
  fill(nfs.directory(), 1000);
  const Listed listed = list(nfs.root(), 2048, [this] {
    nfs.call<nfsproc3::NFSPROC3_READDIR>({nfs.fh(nfs.root()), 0, {}, 1024});
  });
  EXPECT_EQ(listed.names.size(), 1002u);
}

/// Where the file system gives a new file the inode number of the one that was removed just now,
/// and anywhere else.
TEST_F(Directories, AHandleHasTheAttributesOfItsOwnFile) {
  NFSRDMA_NEEDS_ROOT();
  const std::string path = nfs.path("f");
  put_file(path, "");
  const ino_t inode = stat_of(path).st_ino;
  std::atomic<std::size_t> size{0};
  const auto replace = [&] {
    ::unlink(path.c_str());
    const std::string content(++size, 'x');
    put_file(path, content);
    // Others make files there as well; a few more of ours, and the number comes round.
    for (int i = 0; i < 64 && stat_of(path).st_ino != inode; ++i) {
      const std::string other = nfs.path("other" + std::to_string(i));
      put_file(other, content);
      if (stat_of(other).st_ino == inode) ::rename(other.c_str(), path.c_str());
    }
  };
  std::optional<HeldCalls> held;
  nfs.on_serving_thread([&] { held.emplace(SYS_name_to_handle_at, replace); });
  auto reply = nfs.call<nfsproc3::NFSPROC3_READDIRPLUS>({nfs.fh(nfs.root()), 0, {}, 4096, 16384});
  ASSERT_EQ(reply.status(), NFS3_OK);
  EXPECT_GT(size, 0u);
  for (const xdr::entryplus3& entry : reply.res.resok.reply.entries) {
    if (entry.name != "f" || !entry.name_handle.handle_follows) continue;
    const auto found = nfs.getattr(to_handle(entry.name_handle.handle.data));
    // It may be gone by now. What is there has to be what was shown.
    if (found.status != NFS3_OK) {
      EXPECT_EQ(found.status, NFS3ERR_STALE);
      continue;
    }
    EXPECT_EQ(found.resok.obj_attributes.size, entry.name_attributes.attributes.size);
    EXPECT_EQ(found.resok.obj_attributes.fileid, entry.name_attributes.attributes.fileid);
  }
}

TEST_F(Directories, AnyCookieIsAGoodStart) {
  fill(nfs.directory(), 100);
  auto from = [this](std::uint64_t cookie, std::uint32_t count) {
    auto reply = nfs.call<nfsproc3::NFSPROC3_READDIR>({nfs.fh(nfs.root()), cookie, {}, count});
    std::vector<std::pair<std::string, std::uint64_t>> found;
    for (const xdr::entry3& entry : reply.res.resok.reply.entries)
      found.emplace_back(std::string(entry.name), entry.cookie);
    return found;
  };
  const auto all = from(0, 32768);
  ASSERT_EQ(all.size(), 102u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    // Between them a short listing, which leaves the directory's stream somewhere in the middle.
    const std::size_t next = from(0, 600 + 8 * static_cast<std::uint32_t>(i)).size();
    ASSERT_LT(next, all.size());
    for (const std::size_t start : {i, next}) {
      const auto rest = from(all[start].second, 32768);
      ASSERT_EQ(rest.size(), all.size() - start - 1) << start;
      EXPECT_TRUE(std::equal(rest.begin(), rest.end(), all.begin() + static_cast<long>(start) + 1));
    }
  }
}

TEST_F(Directories, CookiesOutliveARestart) {
  fill(nfs.directory(), 1000);
  const Listed listed = list(nfs.root(), 8192, [this] { nfs.restart(); });
  EXPECT_EQ(listed.names.size(), 1002u);
}

TEST_F(Directories, EntriesRemovedBetweenCallsHideNoOthers) {
  fill(nfs.directory(), 1000);
  int next = 0;
  const Listed listed =
      list(nfs.root(), 4096, [&] { ::unlink(nfs.path("file" + std::to_string(next++)).c_str()); });
  for (int i = next; i < 1000; ++i) {
    EXPECT_EQ(listed.names.count("file" + std::to_string(i)), 1u) << i;
  }
}

TEST_F(Directories, DotDotOfTheExportShowsItsOwnNumber) {
  auto reply = nfs.call<nfsproc3::NFSPROC3_READDIR>({nfs.fh(nfs.root()), 0, {}, 4096});
  for (const xdr::entry3& entry : reply.res.resok.reply.entries) {
    EXPECT_EQ(entry.fileid, stat_of(nfs.directory()).st_ino) << entry.name;
  }
}

TEST_F(Directories, TooLittleRoomForOneEntryIsToosmall) {
  put_file(nfs.path(std::string(255, 'n')), "");
  EXPECT_EQ(list(nfs.root(), 8).status, NFS3ERR_TOOSMALL);
}

TEST_F(Directories, ListingAFileIsNotdir) {
  EXPECT_EQ(list(nfs.create(nfs.root(), "f"), 4096).status, NFS3ERR_NOTDIR);
}

TEST_F(Directories, ListingNeedsReadPermission) {
  NFSRDMA_NEEDS_ROOT();
  const FileHandle dir = nfs.mkdir(nfs.root(), "d", 0711);
  EXPECT_EQ(list(dir, 4096).status, NFS3_OK);
  nfs.set_caller(user(1000, 1000));
  EXPECT_EQ(list(dir, 4096).status, NFS3ERR_ACCES);
}

TEST_F(Directories, NewEntriesShowInAFreshListing) {
  EXPECT_EQ(list(nfs.root(), 4096).names.size(), 2u);
  nfs.create(nfs.root(), "f");
  EXPECT_EQ(list(nfs.root(), 4096).names.size(), 3u);
}

TEST_F(Directories, ReaddirplusGivesHandlesAndAttributesOfAll) {
  fill(nfs.directory(), 300);
  std::map<std::string, FileHandle> found;
  std::uint64_t cookie = 0;
  for (bool eof = false; !eof;) {
    auto reply =
        nfs.call<nfsproc3::NFSPROC3_READDIRPLUS>({nfs.fh(nfs.root()), cookie, {}, 4096, 16384});
    ASSERT_EQ(reply.status(), NFS3_OK);
    EXPECT_LE(reply.bytes.size(), 16384u + 4);
    for (const xdr::entryplus3& entry : reply.res.resok.reply.entries) {
      cookie = entry.cookie;
      if (entry.name.starts_with(".")) continue;
      ASSERT_TRUE(entry.name_attributes.attributes_follow);
      ASSERT_TRUE(entry.name_handle.handle_follows);
      EXPECT_EQ(entry.name_attributes.attributes.fileid, entry.fileid);
      found[std::string(entry.name)] = to_handle(entry.name_handle.handle.data);
    }
    eof = reply.res.resok.reply.eof;
  }
  EXPECT_EQ(found.size(), 300u);
  EXPECT_EQ(found["file7"], nfs.lookup(nfs.root(), "file7"));
}

TEST_F(Directories, ReaddirplusInShortRepliesGivesEveryEntryOnce) {
  fill(nfs.directory(), 500);
  for (const std::uint32_t bytes : {600u, 1000u, 4000u, 8192u, 40000u}) {
    std::multiset<std::string> names;
    std::uint64_t cookie = 0;
    for (bool eof = false; !eof;) {
      auto reply =
          nfs.call<nfsproc3::NFSPROC3_READDIRPLUS>({nfs.fh(nfs.root()), cookie, {}, bytes, bytes});
      ASSERT_EQ(reply.status(), NFS3_OK);
      for (const xdr::entryplus3& entry : reply.res.resok.reply.entries) {
        cookie = entry.cookie;
        names.insert(std::string(entry.name));
      }
      eof = reply.res.resok.reply.eof;
    }
    EXPECT_EQ(names.size(), 502u) << bytes;
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 502u) << bytes;
  }
}

TEST_F(Directories, WhatIsRemovedBetweenTwoRepliesIsNotListed) {
  fill(nfs.directory(), 500);
  // The server has read beyond this reply.
  auto first = nfs.call<nfsproc3::NFSPROC3_READDIRPLUS>({nfs.fh(nfs.root()), 0, {}, 8192, 8192});
  ASSERT_EQ(first.status(), NFS3_OK);
  std::uint64_t cookie = 0;
  for (const xdr::entryplus3& entry : first.res.resok.reply.entries)
    cookie = entry.cookie;
  // Until the clock that ctime is taken from has ticked.
  const struct stat listed = stat_of(nfs.directory());
  for (timespec now = listed.st_ctim;
       now.tv_sec == listed.st_ctim.tv_sec && now.tv_nsec <= listed.st_ctim.tv_nsec;) {
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  }
  for (int i = 0; i < 500; ++i)
    ASSERT_EQ(::unlink(nfs.path("file" + std::to_string(i)).c_str()), 0);
  auto second =
      nfs.call<nfsproc3::NFSPROC3_READDIRPLUS>({nfs.fh(nfs.root()), cookie, {}, 8192, 8192});
  ASSERT_EQ(second.status(), NFS3_OK);
  for (const xdr::entryplus3& entry : second.res.resok.reply.entries)
    EXPECT_TRUE(entry.name.starts_with(".")) << entry.name;
}

TEST_F(Directories, HandlesFromReaddirplusWorkAfterARestart) {
  put_file(nfs.path("f"), "content");
  FileHandle file;
  auto reply = nfs.call<nfsproc3::NFSPROC3_READDIRPLUS>({nfs.fh(nfs.root()), 0, {}, 4096, 16384});
  for (const xdr::entryplus3& entry : reply.res.resok.reply.entries) {
    if (entry.name == "f") file = to_handle(entry.name_handle.handle.data);
  }
  nfs.restart();
  EXPECT_EQ(nfs.read(file, 0, 100), "content");
}

TEST_F(Directories, DircountBoundsTheNamesAlone) {
  fill(nfs.directory(), 300);
  auto reply = nfs.call<nfsproc3::NFSPROC3_READDIRPLUS>({nfs.fh(nfs.root()), 0, {}, 512, 65536});
  const std::size_t count = reply.res.resok.reply.entries.count;
  EXPECT_GT(count, 5u);
  EXPECT_LE(count, 512u / 24);
}

TEST_F(Directories, ReplyRoomCoversTheCount) {
  std::array<std::byte, 256> bytes;
  xdr::Encoder encoder(bytes);
  xdr::encode(encoder, xdr::READDIR3args{nfs.fh(nfs.root()), 0, {}, 32768});
  EXPECT_GE(nfs3::readdir_reply_bytes(nfs.server(), xdr::Decoder(encoder.bytes())), 32768u);
}

}  // namespace
}  // namespace nfsrdma::test
