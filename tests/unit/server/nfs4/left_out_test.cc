// SPDX-License-Identifier: Apache-2.0
// The operations that this server leaves out: each answers NFS4ERR_NOTSUPP wherever it may stand,
// and the list of them in server/nfs4/README.md, with the reasons, is whole.
#include <fstream>
#include <set>
#include <sstream>

#include "server/nfs4/operations.h"
#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

std::string_view name_of(std::uint32_t number) {
  return xdr::enum_name(static_cast<nfs_opnum4>(number)).substr(std::strlen("OP_"));
}

std::vector<std::uint32_t> left_out() {
  std::vector<std::uint32_t> out;
  for (std::uint32_t number = xdr::kNfs4FirstOperation; number <= xdr::kNfs4LastOperation;
       ++number) {
    if (nfs4::runner_of(number) == nullptr) out.push_back(number);
  }
  return out;
}

/// The first cells of the table under that heading: names between commas, "NAME*" for several.
std::vector<std::string> listed() {
  std::ifstream in(NFSRDMA_SOURCE_DIR "/server/nfs4/README.md");
  EXPECT_TRUE(in);
  std::vector<std::string> out;
  bool here = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) here = line.find("NFS4ERR_NOTSUPP") != line.npos;
    if (!here || !line.starts_with("| ") || line.starts_with("| ---")) continue;
    std::istringstream cell(line.substr(2, line.find(" |") - 2));
    for (std::string name; std::getline(cell, name, ',');) {
      name.erase(0, name.find_first_not_of(' '));
      out.push_back(name);
    }
  }
  EXPECT_EQ(out.empty() ? "" : out.front(), "Operation");
  if (!out.empty()) out.erase(out.begin());
  return out;
}

TEST(LeftOut, TheListIsWhole) {
  std::set<std::string> named;
  for (const std::string& name : listed()) {
    // Of operations that are there, what is not: "COPY with ...", and claims of OPEN.
    if (name.find(' ') != name.npos || name.starts_with("CLAIM_")) continue;
    const std::size_t before = named.size();
    for (std::uint32_t number = xdr::kNfs4FirstOperation; number <= xdr::kNfs4LastOperation;
         ++number) {
      const std::string_view known = name_of(number);
      const bool several = name.ends_with('*');
      if (several ? known.starts_with(name.substr(0, name.size() - 1)) : known == name) {
        named.emplace(known);
      }
    }
    EXPECT_GT(named.size(), before) << name << " is no operation, or named twice";
  }
  std::set<std::string> missing;
  for (const std::uint32_t number : left_out())
    missing.emplace(name_of(number));
  EXPECT_EQ(named, missing);
}

/// Whatever its arguments are: they are not looked at.
TEST(LeftOut, EachAnswersNotSupp) {
  Nfs4Harness nfs;
  const Open4 file = nfs.open(nfs.root(), "file");
  int tried = 0;
  for (const std::uint32_t number : left_out()) {
    const nfs4::Operation& operation = *nfs4::find_operation(number);
    std::vector<std::byte> encoded(4);
    store_be32(encoded.data(), number);
    const Operations4 compound =
        Operations4().putfh(file.handle).add<OP_SAVEFH>().add_encoded(encoded);
    for (std::uint32_t minor = operation.since; minor <= nfs4::kLastMinorVersion; ++minor) {
      Session4 session =
          minor == 0 ? Session4() : nfs.connect("client of 4." + std::to_string(minor), minor);
      const Reply4 reply = minor == 0 ? nfs.run_bare(compound, 0) : nfs.run(session, compound);
      EXPECT_EQ(reply.status, NFS4ERR_NOTSUPP) << name_of(number) << " in 4." << minor;
      EXPECT_EQ(reply.results.back().number, operation.number);
      ++tried;
    }
  }
  EXPECT_GE(tried, 20);
}

}  // namespace
}  // namespace nfsrdma::test
