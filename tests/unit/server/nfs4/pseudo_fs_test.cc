// SPDX-License-Identifier: Apache-2.0
// The pseudo file system over many sets of exports (RFC 7530 7, RFC 8881 7.3), by hand and at
// random against a model that knows nothing but paths.
#include "server/nfs4/pseudo_fs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace nfsrdma::nfs4 {
namespace {

using Place = PseudoFs::Place;
using Kind = Place::Kind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr std::uint64_t kChange = 1'700'000'000'123'456'789;

Allowed everything(std::uint64_t) {
  return Allowed::kYes;
}
Allowed nothing(std::uint64_t) {
  return Allowed::kNo;
}
PseudoFs::Allow only(std::set<std::uint64_t> ids) {
  return [ids = std::move(ids)](std::uint64_t id) {
    return ids.contains(id) ? Allowed::kYes : Allowed::kNo;
  };
}

/// Exports with ids 1, 2, ...; a path that starts with "0" is that of fsid=0.
std::vector<PseudoExport> exports_of(std::initializer_list<std::string_view> paths) {
  std::vector<PseudoExport> out;
  for (std::string_view path : paths) {
    const bool is_root = path.starts_with('0');
    out.push_back({out.size() + 1, std::string(path.substr(is_root ? 1 : 0)), is_root});
  }
  return out;
}
PseudoFs make(std::initializer_list<std::string_view> paths) {
  return PseudoFs(exports_of(paths), kChange);
}

std::string text(const Place& place) {
  switch (place.kind) {
    case Kind::kNothing:
      return "nothing";
    case Kind::kWouldBlock:
      return "would block";
    case Kind::kNode:
      return "node";
    case Kind::kExport:
      break;
  }
  return "export " + std::to_string(place.export_id) +
         (place.path.empty() ? "" : " at " + std::string(place.path));
}

/// Walks from the root through nodes, for clients whose root is one.
Place walk(const PseudoFs& fs, std::initializer_list<std::string_view> names,
           const PseudoFs::Allow& allow = everything) {
  Place place = fs.root(allow);
  for (std::string_view name : names) {
    EXPECT_EQ(place.kind, Kind::kNode) << "before " << name;
    place = fs.lookup(place.node, name, allow);
  }
  return place;
}

std::vector<std::string> names_in(const PseudoFs& fs, PseudoFs::NodeId node,
                                  const PseudoFs::Allow& allow = everything) {
  std::vector<std::string> out;
  EXPECT_EQ(fs.list(node, 0, allow,
                    [&](const PseudoFs::Entry& entry) {
                      out.push_back(std::string(entry.name) + ": " + text(entry.place));
                      return true;
                    }),
            PseudoFs::Listing::kEnd);
  return out;
}

TEST(PseudoFs, EveryComponentAboveAnExportIsADirectory) {
  const PseudoFs fs = make({"/srv/data/a", "/srv/data/b", "/home"});
  EXPECT_EQ(text(fs.root(everything)), "node");
  EXPECT_EQ(text(walk(fs, {"srv"})), "node");
  EXPECT_EQ(text(walk(fs, {"srv", "data"})), "node");
  EXPECT_EQ(text(walk(fs, {"srv", "data", "a"})), "export 1");
  EXPECT_EQ(text(walk(fs, {"srv", "data", "b"})), "export 2");
  EXPECT_EQ(text(walk(fs, {"home"})), "export 3");
  EXPECT_THAT(names_in(fs, fs.root(everything).node),
              UnorderedElementsAre("srv: node", "home: export 3"));
}

TEST(PseudoFs, OtherNamesAreNotThere) {
  const PseudoFs fs = make({"/srv/data"});
  const PseudoFs::NodeId root = fs.root(everything).node;
  for (std::string_view name : {"", ".", "..", "/", "srv/data", "sr", "srvv", "data", "SRV"})
    EXPECT_EQ(text(fs.lookup(root, name, everything)), "nothing") << name;
  EXPECT_EQ(text(fs.lookup(12345, "srv", everything)), "nothing");
}

TEST(PseudoFs, WithoutExportsThereIsAnEmptyRoot) {
  const PseudoFs fs = make({});
  EXPECT_EQ(text(fs.root(everything)), "node");
  EXPECT_THAT(names_in(fs, fs.root(everything).node), IsEmpty());
}

TEST(PseudoFs, ClientsSeeOnlyWhatLeadsToTheirExports) {
  const PseudoFs fs = make({"/srv/a", "/srv/b", "/home/x"});
  const auto allow = only({2});
  EXPECT_THAT(names_in(fs, fs.root(allow).node, allow), ElementsAre("srv: node"));
  EXPECT_THAT(names_in(fs, walk(fs, {"srv"}, allow).node, allow), ElementsAre("b: export 2"));
  EXPECT_EQ(text(walk(fs, {"home"}, allow)), "nothing");
  EXPECT_EQ(text(walk(fs, {"srv", "a"}, allow)), "nothing");
  // A handle that it was given while it was allowed, or made up.
  EXPECT_EQ(text(fs.find(walk(fs, {"home"}).node, allow)), "nothing");
  EXPECT_EQ(text(fs.find(walk(fs, {"srv"}).node, allow)), "node");
}

TEST(PseudoFs, WhoMayUseNothingGetsAnEmptyRoot) {
  const PseudoFs fs = make({"/srv/a", "/home"});
  EXPECT_EQ(text(fs.root(nothing)), "node");
  EXPECT_EQ(text(fs.find(fs.root(nothing).node, nothing)), "node");
  EXPECT_THAT(names_in(fs, fs.root(nothing).node, nothing), IsEmpty());
}

TEST(PseudoFs, AnExportThatIsNotAllowedIsADirectoryOnTheWayToOneThatIs) {
  const PseudoFs fs = make({"/srv", "/srv/deep/data"});
  const auto allow = only({2});
  EXPECT_EQ(text(walk(fs, {"srv"}, allow)), "node");
  EXPECT_EQ(text(walk(fs, {"srv", "deep", "data"}, allow)), "export 2");
  EXPECT_EQ(text(walk(fs, {"srv"}, everything)), "export 1");
  EXPECT_EQ(text(fs.above_export(2, everything)), "export 1 at deep");
  EXPECT_EQ(text(fs.above_export(2, allow)), "node");
}

TEST(PseudoFs, TheFsidZeroExportIsTheRoot) {
  const PseudoFs fs = make({"/home", "0/srv/nfs", "/srv/nfs/data", "/srv/nfs/data/deep"});
  EXPECT_EQ(text(fs.root(everything)), "export 2");
  EXPECT_EQ(text(fs.above_export(2, everything)), "nothing");
  EXPECT_EQ(text(fs.above_export(3, everything)), "export 2");
  EXPECT_EQ(text(fs.above_export(4, everything)), "export 3");
  // Elsewhere: mounted by version 3 only.
  EXPECT_EQ(text(fs.above_export(1, everything)), "nothing");
  EXPECT_EQ(fs.mounted_on_fileid(2, everything), std::nullopt);
}

TEST(PseudoFs, WhoMayNotUseTheFsidZeroExportGetsThePlainTree) {
  const PseudoFs fs = make({"0/srv/nfs", "/srv/nfs/data", "/home"});
  const auto allow = only({2, 3});
  EXPECT_EQ(text(fs.root(allow)), "node");
  EXPECT_EQ(text(walk(fs, {"srv", "nfs", "data"}, allow)), "export 2");
  EXPECT_EQ(text(walk(fs, {"home"}, allow)), "export 3");
}

TEST(PseudoFs, AnExportOfTheRootDirectoryIsTheRoot) {
  const PseudoFs fs = make({"/srv/data", "/"});
  EXPECT_EQ(text(fs.root(everything)), "export 2");
  EXPECT_EQ(text(fs.above_export(1, everything)), "export 2 at srv");
  EXPECT_EQ(text(fs.above_export(2, everything)), "nothing");
  EXPECT_TRUE(fs.is_inside(1, 2));
  EXPECT_FALSE(fs.is_inside(2, 1));
  EXPECT_EQ(text(fs.root(only({1}))), "node");
  EXPECT_EQ(text(walk(fs, {"srv", "data"}, only({1}))), "export 1");
}

TEST(PseudoFs, FsidZeroGoesBeforeTheRootDirectory) {
  const PseudoFs fs = make({"/", "0/srv"});
  EXPECT_EQ(text(fs.root(everything)), "export 2");
  EXPECT_EQ(text(fs.root(only({1}))), "export 1");
}

TEST(PseudoFs, TheWayBackIsTheWayThere) {
  const PseudoFs fs = make({"/srv/data/a"});
  const Place data = fs.above_export(1, everything);
  EXPECT_EQ(data.node, walk(fs, {"srv", "data"}).node);
  const Place srv = fs.parent(data.node);
  EXPECT_EQ(srv.node, walk(fs, {"srv"}).node);
  EXPECT_EQ(fs.parent(srv.node).node, fs.root(everything).node);
  EXPECT_EQ(text(fs.parent(fs.root(everything).node)), "nothing");
  EXPECT_EQ(text(fs.parent(777)), "nothing");
  EXPECT_EQ(text(fs.above_export(777, everything)), "nothing");
}

TEST(PseudoFs, InnerExportsAreThoseBelowAndNotThoseBeside) {
  const PseudoFs fs = make({"/srv", "/srv/a", "/srv/a/b", "/srvx", "/sr"});
  std::set<std::pair<std::uint64_t, std::uint64_t>> inside;
  for (std::uint64_t inner = 0; inner < 7; ++inner) {
    for (std::uint64_t outer = 0; outer < 7; ++outer) {
      if (fs.is_inside(inner, outer)) inside.insert({inner, outer});
    }
  }
  EXPECT_EQ(inside, (std::set<std::pair<std::uint64_t, std::uint64_t>>{{2, 1}, {3, 1}, {3, 2}}));
}

TEST(PseudoFs, PathsAreThoseThatTheClientFinds) {
  const PseudoFs plain = make({"/srv", "/srv/a"});
  EXPECT_EQ(plain.path_from_root(2, everything), "/srv/a");
  EXPECT_EQ(plain.path_from_root(99, everything), "/");
  const PseudoFs top = make({"0/srv", "/srv/a/b", "/home"});
  EXPECT_EQ(top.path_from_root(1, everything), "/");
  EXPECT_EQ(top.path_from_root(2, everything), "/a/b");
  EXPECT_EQ(top.path_from_root(2, only({2})), "/srv/a/b");
  EXPECT_EQ(top.path_from_root(3, everything), "/home");
  const PseudoFs all = make({"/", "/srv/a"});
  EXPECT_EQ(all.path_from_root(1, everything), "/");
  EXPECT_EQ(all.path_from_root(2, everything), "/srv/a");
}

TEST(PseudoFs, IdsAreTheSameWhateverElseIsExported) {
  const PseudoFs fs = make({"/srv/data/a"});
  const PseudoFs again(exports_of({"/home", "/srv/other", "/srv/data/a"}), kChange + 1);
  EXPECT_EQ(walk(fs, {"srv"}).node, walk(again, {"srv"}).node);
  EXPECT_EQ(walk(fs, {"srv", "data"}).node, walk(again, {"srv", "data"}).node);
  EXPECT_EQ(fs.mounted_on_fileid(1, everything), again.mounted_on_fileid(3, everything));
  // Written down: a change here makes clients' handles stale.
  EXPECT_EQ(fs.root(everything).node, 6466431919459372861u);
  EXPECT_EQ(walk(fs, {"srv"}).node, 7322588487195544962u);
}

TEST(PseudoFs, PathsAreTakenWithSlashesToSpare) {
  const PseudoFs fs = make({"//srv///data/"});
  EXPECT_EQ(text(walk(fs, {"srv", "data"})), "export 1");
}

TEST(PseudoFs, TheFirstOfTwoExportsWithOnePathCounts) {
  const PseudoFs fs = make({"/srv", "/srv/"});
  EXPECT_EQ(text(walk(fs, {"srv"})), "export 1");
  EXPECT_EQ(text(fs.above_export(2, everything)), "nothing");
}

TEST(PseudoFs, ListingGoesOnBehindACookieAlsoOfAnEntryThatIsGone) {
  const PseudoFs fs = make({"/a", "/b", "/c", "/d", "/e"});
  const PseudoFs::NodeId root = fs.root(everything).node;
  std::vector<PseudoFs::Entry> all;
  fs.list(root, 0, everything, [&](const PseudoFs::Entry& entry) {
    all.push_back(entry);
    return true;
  });
  ASSERT_EQ(all.size(), 5u);
  for (std::size_t gone = 0; gone < all.size(); ++gone) {
    std::vector<PseudoExport> left;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (i != gone) left.push_back({i + 10, "/" + std::string(all[i].name)});
    const PseudoFs after(left, kChange + 1);
    std::vector<std::string> rest;
    after.list(root, all[gone].cookie, everything, [&](const PseudoFs::Entry& entry) {
      rest.emplace_back(entry.name);
      return true;
    });
    std::vector<std::string> expected;
    for (std::size_t i = gone + 1; i < all.size(); ++i)
      expected.emplace_back(all[i].name);
    EXPECT_EQ(rest, expected);
  }
}

TEST(PseudoFs, ListingStopsWhereToldAndCookiesAreInOrder) {
  const PseudoFs fs = make({"/a", "/b", "/c"});
  const PseudoFs::NodeId root = fs.root(everything).node;
  std::uint64_t cookie = 0;
  std::set<std::string> seen;
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t before = cookie;
    EXPECT_EQ(fs.list(root, cookie, everything,
                      [&](const PseudoFs::Entry& entry) {
                        cookie = entry.cookie;
                        seen.emplace(entry.name);
                        return false;
                      }),
              PseudoFs::Listing::kStopped);
    EXPECT_GT(cookie, before);
    EXPECT_GE(cookie, 3u);
    EXPECT_LT(cookie, std::uint64_t{1} << 63);
  }
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(fs.list(root, cookie, everything, [](const PseudoFs::Entry&) { return true; }),
            PseudoFs::Listing::kEnd);
}

TEST(PseudoFs, WhatTheNameServiceMustBeAskedForWouldBlock) {
  const PseudoFs fs = make({"/srv/a", "/srv/b", "0/home"});
  const auto unknown = [](std::uint64_t) { return Allowed::kWouldBlock; };
  EXPECT_EQ(text(fs.root(unknown)), "would block");
  EXPECT_EQ(text(fs.above_export(1, unknown)), "would block");
  const PseudoFs::NodeId srv = walk(fs, {"srv"}, only({1})).node;
  EXPECT_EQ(text(fs.find(srv, unknown)), "would block");
  EXPECT_EQ(text(fs.lookup(srv, "a", unknown)), "would block");
  EXPECT_EQ(fs.list(srv, 0, unknown, [](const PseudoFs::Entry&) { return true; }),
            PseudoFs::Listing::kWouldBlock);
  // One that is allowed for certain is enough for a directory above.
  const auto one_known = [](std::uint64_t id) {
    return id == 2 ? Allowed::kYes : id == 1 ? Allowed::kWouldBlock : Allowed::kNo;
  };
  EXPECT_EQ(text(fs.find(srv, one_known)), "node");
}

TEST(PseudoFs, NodesAreReadOnlyDirectoriesOfRoot) {
  const PseudoFs fs = make({"/srv/a", "/srv/b"});
  const PseudoFs::NodeId srv = walk(fs, {"srv"}).node;
  const struct stat st = fs.attributes(srv);
  EXPECT_EQ(st.st_mode, static_cast<mode_t>(S_IFDIR | 0755));
  EXPECT_EQ(st.st_ino, srv);
  EXPECT_EQ(st.st_uid, 0u);
  EXPECT_EQ(st.st_dev, 0u);
  EXPECT_EQ(st.st_nlink, 4u);
  EXPECT_EQ(st.st_ctim.tv_sec, 1'700'000'000);
  EXPECT_EQ(st.st_ctim.tv_nsec, 123'456'789);
  EXPECT_EQ(fs.change(), kChange);
}

TEST(PseudoFs, AgreesWithAModelOfPathsOnRandomExports) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    std::vector<PseudoExport> exports;
    std::map<std::string, std::uint64_t> by_path;
    for (unsigned i = random() % 8; i > 0; --i) {
      std::string path;
      for (unsigned depth = 1 + random() % 4; depth > 0; --depth)
        path += std::string("/") + "abc"[random() % 3];
      if (!by_path.emplace(path, i).second) continue;
      exports.push_back({i, path});
    }
    std::set<std::uint64_t> allowed;
    for (const PseudoExport& one : exports)
      if (random() % 2 == 0) allowed.insert(one.id);
    const PseudoFs fs(exports, kChange);
    const auto allow = only(allowed);
    // Every path up to one component deeper than any export.
    std::vector<std::pair<std::string, PseudoFs::NodeId>> left{{"", fs.root(allow).node}};
    while (!left.empty()) {
      const auto [path, node] = left.back();
      left.pop_back();
      std::set<std::string> expected;
      for (const char* name : {"a", "b", "c"}) {
        const std::string child = path + "/" + name;
        const bool is_export = by_path.contains(child) && allowed.contains(by_path[child]);
        bool leads = false;
        for (const PseudoExport& one : exports)
          leads |= allowed.contains(one.id) && (one.path + "/").starts_with(child + "/");
        const Place place = fs.lookup(node, name, allow);
        const std::string wanted = is_export ? "export " + std::to_string(by_path[child])
                                   : leads   ? "node"
                                             : "nothing";
        ASSERT_EQ(text(place), wanted) << "seed " << seed << ": " << child;
        if (wanted != "nothing") expected.insert(std::string(name) + ": " + wanted);
        if (place.kind == Kind::kNode) {
          left.emplace_back(child, place.node);
          ASSERT_EQ(fs.parent(place.node).node, node) << "seed " << seed << ": " << child;
        }
        // The way up from an export: the innermost allowed one around it, else the directory.
        if (!is_export) continue;
        ASSERT_EQ(text(fs.above_export(by_path[child], allow)), "node") << "seed " << seed;
        ASSERT_EQ(fs.above_export(by_path[child], allow).node, node) << "seed " << seed;
      }
      const std::vector<std::string> listed = names_in(fs, node, allow);
      ASSERT_EQ(std::set<std::string>(listed.begin(), listed.end()), expected) << "seed " << seed;
      ASSERT_EQ(listed.size(), expected.size()) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace nfsrdma::nfs4
