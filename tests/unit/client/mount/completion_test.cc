// SPDX-License-Identifier: Apache-2.0
// The mount options that bash completes (config/files/nfs-rdma.bash-completion) are those of the
// table.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "client/mount/option_table.h"

namespace nfsrdma {
namespace {

/// The words of the list in the file.
std::vector<std::string> completed_words() {
  std::ifstream file(NFSRDMA_COMPLETION);
  std::stringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  const std::string begin = "\n_nfs_rdma_mount_options='";
  const std::size_t from = text.find(begin);
  const std::size_t to = text.find('\'', from + begin.size());
  if (from == std::string::npos || to == std::string::npos) return {};
  std::istringstream list(text.substr(from + begin.size(), to - from - begin.size()));
  std::vector<std::string> words;
  for (std::string word; list >> word;)
    words.push_back(word);
  return words;
}

std::string name_of(const std::string& word) {
  return word.substr(0, word.find('='));
}

/// Accepted, but for what is pasted from elsewhere: they change nothing, are always refused, or
/// belong to the kernel's side of a mount.
const std::set<std::string_view> kNotOffered = {
    "udp",
    "v2",
    "intr",
    "nointr",
    "max_connect",
    "migration",
    "nomigration",
    "softreval",
    "nosoftreval",
    "trunkdiscovery",
    "notrunkdiscovery",
    "fsc",
    "nofsc",
    "sharecache",
    "nosharecache",
    "atime",
    "diratime",
    "relatime",
    "norelatime",
    "strictatime",
    "nostrictatime",
    "lazytime",
    "nolazytime",
    "user_id",
    "group_id",
    "default_permissions",
    "max_read",
    "blksize",
    "comment",
    "addr",
};

TEST(Completion, OffersEveryMountOption) {
  std::set<std::string> offered;
  for (const std::string& word : completed_words())
    offered.insert(name_of(word));
  ASSERT_FALSE(offered.empty()) << NFSRDMA_COMPLETION;
  for (const OptionRow& row : mount_option_table()) {
    const std::string name(row.name);
    EXPECT_NE(offered.contains(name), kNotOffered.contains(row.name)) << name;
  }
}

TEST(Completion, OffersOnlyWhatIsAccepted) {
  const auto table = mount_option_table();
  for (const std::string& word : completed_words()) {
    const auto row = std::ranges::find(table, name_of(word), &OptionRow::name);
    ASSERT_NE(row, table.end()) << word;
    const bool with_value = word.find('=') != std::string::npos;
    EXPECT_NE(row->value, with_value ? OptionRow::Value::kNone : OptionRow::Value::kRequired)
        << word;
    // "port=" is for the user to go on with.
    if (word.ends_with('=')) continue;
    MountOptions options;
    std::string error;
    EXPECT_TRUE(parse_mount_options(word, false, &options, &error)) << word << ": " << error;
  }
}

TEST(Completion, ListsWhatItLeavesOutOnce) {
  const auto table = mount_option_table();
  for (const std::string_view name : kNotOffered) {
    EXPECT_NE(std::ranges::find(table, name, &OptionRow::name), table.end()) << name;
  }
}

}  // namespace
}  // namespace nfsrdma
