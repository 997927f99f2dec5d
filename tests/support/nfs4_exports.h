// SPDX-License-Identifier: Apache-2.0
// Exports4: a server with the exports that a test writes, and what NFSv4 clients find in them.
#pragma once

#include <map>
#include <memory>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {

/// Attributes of one object, or why there are none.
struct Attributes4 {
  nfsstat4 status = NFS4ERR_SERVERFAULT;
  xdr::FileAttributes4 values{};
  std::shared_ptr<const std::vector<std::byte>> bytes{};  // what `values` refers to

  bool has(xdr::fattr4_number number) const { return values.attrmask.has(number); }
  FileHandle handle() const { return to_handle(values.filehandle.data); }

  static Attributes4 of(nfsstat4 status, const xdr::fattr4& from) {
    Attributes4 out;
    out.status = status;
    out.bytes = std::make_shared<const std::vector<std::byte>>(from.attr_vals.begin(),
                                                               from.attr_vals.end());
    EXPECT_EQ(xdr::decode_attributes({from.attrmask, *out.bytes}, out.values).outcome,
              xdr::AttributeDecoding::kOk);
    return out;
  }
};

class Exports4 : public ::testing::Test {
 protected:
  /// exports(5); "@" stands for the directory of the test.
  void load(std::string_view text) {
    std::string exports;
    for (char c : text)
      exports.append(c == '@' && (exports.empty() || exports.back() == '\n') ? nfs.directory()
                                                                             : std::string(1, c));
    const ParsedExports parsed = parse_exports(exports, "test");
    ASSERT_TRUE(parsed.ok()) << parsed.problems[0].text();
    ConfigProblems problems;
    nfs.server().exports.reload(parsed.entries, &problems);
    ASSERT_TRUE(problems.empty()) << problems[0].text();
  }
  void make_directory(const std::string& name) const {
    std::filesystem::create_directories(nfs.path(name));
    ::chmod(nfs.path(name).c_str(), 0777);
  }
  std::uint64_t inode(const std::string& name) const { return stat_of(nfs.path(name)).st_ino; }

  /// PUTROOTFH and LOOKUPs down to `name` below the directory of the test, by way of whatever is
  /// exported.
  Operations4 way_to(const std::string& name) const {
    Operations4 out;
    out.add<OP_PUTROOTFH>();
    for (const auto& part : std::filesystem::path(nfs.path(name)).relative_path()) {
      if (!part.empty()) out.add<OP_LOOKUP>({part.string()});
    }
    return out;
  }
  FileHandle walk(const std::string& name) {
    const Reply4 reply = nfs.run(way_to(name).add<OP_GETFH>());
    EXPECT_EQ(reply.status, NFS4_OK) << name;
    if (reply.status != NFS4_OK) return {};
    return to_handle(reply.get<OP_GETFH>().resok4.object.data);
  }
  Attributes4 attributes(Operations4 way, const xdr::bitmap4& wanted) {
    xdr::GETATTR4args args;
    args.attr_request = wanted;
    const Reply4 reply = nfs.run(way.add<OP_GETATTR>(args));
    if (reply.status != NFS4_OK) {
      Attributes4 out;
      out.status = reply.status;
      return out;
    }
    return Attributes4::of(NFS4_OK, reply.get<OP_GETATTR>().resok4.obj_attributes);
  }
  /// By name. Without any when READDIR fails, with *failed.
  std::map<std::string, Attributes4> list(Operations4 way, const xdr::bitmap4& wanted,
                                          nfsstat4* failed = nullptr) {
    xdr::READDIR4args args;
    args.maxcount = 32u << 10;
    args.attr_request = wanted;
    const Reply4 reply = nfs.run(way.add<OP_READDIR>(args));
    if (failed != nullptr) *failed = reply.status;
    std::map<std::string, Attributes4> out;
    if (reply.status != NFS4_OK) {
      EXPECT_NE(failed, nullptr) << "READDIR: " << static_cast<unsigned>(reply.status);
      return out;
    }
    const auto res = reply.get<OP_READDIR>();
    for (const xdr::entry4& entry : res.resok4.reply.entries)
      out[std::string(entry.name)] = Attributes4::of(NFS4_OK, entry.attrs);
    EXPECT_TRUE(res.resok4.reply.eof);
    return out;
  }

  Nfs4Harness nfs;
};

}  // namespace nfsrdma::test
