// SPDX-License-Identifier: Apache-2.0
// No operation answers with an error that RFC 8881 15.2, RFC 7862 11.2, RFC 8276 8.4.5 or RFC 7530
// 13.4 does not give it:
// operations with plausible arguments on objects of every kind, by turns as root and as somebody
// without rights.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <set>

#include "tests/support/nfs4_harness.h"
#include "tests/unit/server/nfs4/valid_errors.h"
#include "xdr/random.h"

namespace nfsrdma::test {
namespace {

constexpr int kCompounds = 12000;

/// What there is to ask for, and the answers so far.
class ErrorsTest : public ::testing::Test {
 protected:
  explicit ErrorsTest(std::uint32_t minor_version = 1) {
    harness_.connection().set_transport(TransportKind::kTcp);  // for READ_PLUS
    harness_.session = harness_.connect("asker", minor_version);
    const FileHandle& root = harness_.root();
    const Open4 file = harness_.open(root, "file");
    const Open4 gone = harness_.open(root, "gone");
    closed_ = harness_.open(root, "closed");
    EXPECT_EQ(harness_.write(file, 0, "some bytes"), NFS4_OK);
    EXPECT_EQ(harness_.close(closed_), NFS4_OK);
    EXPECT_EQ(harness_.close(gone), NFS4_OK);
    const auto path = [this](const char* name) { return harness_.path(name); };
    std::filesystem::create_directories(path("full/inner"));
    std::filesystem::create_directory(path("empty"));
    std::filesystem::create_symlink("file", path("symlink"));
    EXPECT_EQ(::mkfifo(path("fifo").c_str(), 0644), 0);
    EXPECT_EQ(::mkdir(path("locked").c_str(), 0700), 0);
    for (const char* name : {"file", "full", "empty", "symlink", "fifo", "locked", "closed"})
      objects_.push_back(harness_.lookup(root, name));
    objects_.push_back(root);
    objects_.push_back(gone.handle);
    std::filesystem::remove(path("gone"));
    objects_.push_back(pseudo_root());
    stateids_ = {file.stateid, closed_.stateid, {}, {1, {}}, {UINT32_MAX, {}}};
    stateids_.push_back({file.stateid.seqid + 5, file.stateid.other});
    stateids_.push_back({0, file.stateid.other});
    stateids_.emplace_back().other.fill(std::byte{0xff});
    stateids_.back().seqid = UINT32_MAX;
    stateids_.emplace_back().other.fill(std::byte{7});
    stateids_.push_back(lock(file));
    session_ = harness_.session;
  }

  FileHandle pseudo_root() {
    const Reply4 reply = harness_.run(Operations4().add<OP_PUTROOTFH>().add<OP_GETFH>());
    return to_handle(reply.get<OP_GETFH>().resok4.object.data);
  }
  xdr::stateid4 lock(const Open4& file) {
    xdr::LOCK4args args;
    args.length = 4;
    args.locker.new_lock_owner = true;
    args.locker.open_owner.open_stateid = file.stateid;
    args.locker.open_owner.lock_owner.owner = as_bytes("owner");
    const Reply4 reply = harness_.on<OP_LOCK>(file.handle, args);
    EXPECT_EQ(reply.status, NFS4_OK);
    return reply.get<OP_LOCK>().resok4.lock_stateid;
  }

  template <typename T>
  const T& one_of(const std::vector<T>& list) {
    return list[source_.below(list.size())];
  }
  xdr::fattr4 attributes() {
    static constexpr std::array<std::byte, 8> kZero{};
    xdr::fattr4 out;
    if (source_.below(2) == 0) {
      out.attrmask.set(xdr::fattr4_number::FATTR4_MODE);
      out.attr_vals = std::span(kZero).first(4);
    } else {
      out.attrmask.set(xdr::fattr4_number::FATTR4_SIZE);
      out.attr_vals = kZero;
    }
    return out;
  }

  /// Of what came with minor version 2. Ranges are short, or longer than any file can be.
  template <typename Args>
  void make_plausible42(Args& args, bool tame) {
    const std::uint64_t from = source_.below(20);
    const std::uint64_t count = tame ? source_.below(20) : ~source_.below(2);
    if constexpr (requires { args.aa_stateid; }) {
      args = {one_of(stateids_), from, count};
    }
    if constexpr (requires { args.da_stateid; }) {
      args = {one_of(stateids_), from, count};
    }
    if constexpr (requires { args.rpa_stateid; }) {
      args = {one_of(stateids_), from, static_cast<std::uint32_t>(count)};
    }
    if constexpr (requires { args.sa_stateid; }) {
      args.sa_stateid = one_of(stateids_);
      if (tame) args.sa_offset = from;
    }
    if constexpr (requires { args.iaa_stateid; }) args.iaa_stateid = one_of(stateids_);
    if constexpr (requires { args.ca_src_stateid; }) {
      args.ca_src_stateid = one_of(stateids_);
      args.ca_dst_stateid = one_of(stateids_);
      args.ca_src_offset = from;
      args.ca_count = count;
      if (tame) args.ca_source_server = {};
      if (tame) args.ca_dst_offset = source_.below(20);
    }
    if constexpr (requires { args.cl_src_stateid; }) {
      args = {one_of(stateids_), one_of(stateids_), from, source_.below(20), count};
    }
    if constexpr (requires { args.oca_stateid; }) args.oca_stateid = one_of(stateids_);
    if constexpr (requires { args.osa_stateid; }) args.osa_stateid = one_of(stateids_);
    if constexpr (requires { args.gxa_name; }) args.gxa_name = one_of(names_);
    if constexpr (requires { args.sxa_key; }) args.sxa_key = one_of(names_);
    if constexpr (requires { args.rxa_name; }) args.rxa_name = one_of(names_);
    if constexpr (requires { args.lxa_cookie; }) {
      args = {source_.below(3), static_cast<std::uint32_t>(source_.below(100))};
    }
  }

  /// Most random arguments mean nothing here; these do.
  template <typename Args>
  void make_plausible(Args& args) {
    if constexpr (requires { args.objname; }) args.objname = one_of(names_);
    if constexpr (requires { args.target; }) args.target = one_of(names_);
    if constexpr (requires { args.name; }) args.name = one_of(names_);
    if constexpr (requires { args.newname; }) args.newname = one_of(names_);
    if constexpr (requires { args.oldname; }) args.oldname = one_of(names_);
    if constexpr (requires { args.stateid; }) args.stateid = one_of(stateids_);
    if constexpr (requires { args.open_stateid; }) args.open_stateid = one_of(stateids_);
    if constexpr (requires { args.lock_stateid; }) args.lock_stateid = one_of(stateids_);
    if constexpr (requires { args.deleg_stateid; }) args.deleg_stateid = one_of(stateids_);
    if constexpr (requires { args.fsa_stateid; }) args.fsa_stateid = one_of(stateids_);
    const bool tame = source_.below(4) != 0;
    make_plausible42(args, tame);
    if constexpr (requires { args.createattrs; }) {
      if (tame) args.createattrs = attributes();
    }
    if constexpr (requires { args.obj_attributes; }) {
      if (tame) args.obj_attributes = attributes();
    }
    if constexpr (requires { args.lock_owner.clientid; }) {
      args.lock_owner = {harness_.session.client, as_bytes("owner")};
    }
    if constexpr (requires { args.locker; }) {
      args.locker.open_owner.open_stateid = one_of(stateids_);
      args.locker.lock_owner.lock_stateid = one_of(stateids_);
      args.reclaim = source_.below(4) == 0;
    }
    if constexpr (requires { args.maxcount; }) {
      args.cookie = tame ? 0 : args.cookie;
      args.cookieverf = {};
    }
    if constexpr (requires { args.share_deny; }) {
      args.share_access = 1 + static_cast<std::uint32_t>(source_.below(3));
      if (tame) args.share_deny = 0;
    }
    if constexpr (requires { args.claim; }) {
      args.owner = {harness_.session.client, as_bytes("owner")};
      if (tame) args.claim = {};
      if (args.claim.claim == xdr::open_claim_type4::CLAIM_NULL) args.claim.file = one_of(names_);
      args.openhow = {};
      args.openhow.opentype = static_cast<xdr::opentype4>(source_.below(2));
      args.openhow.how.createattrs = attributes();
      if (!tame) args.openhow.how.mode = xdr::createmode4::EXCLUSIVE4;
    }
  }

  void add_random(Operations4& operations) {
    const auto rows = valid_errors(session_.minor_version);
    const ValidErrors& row = rows[source_.below(rows.size())];
    xdr::Encoder encoder(room_);
    encoder.u32(static_cast<std::uint32_t>(row.operation));
    xdr::with_operation(row.operation, [&](auto its) {
      using Args = typename decltype(its)::Args;
      if constexpr (!std::is_same_v<Args, xdr::Void>) {
        Args args = source_.make<Args>();
        make_plausible(args);
        xdr::encode(encoder, args);
      }
    });
    operations.add_encoded(flatten(encoder));
  }

  void run_some() {
    for (int i = 0; i < kCompounds; ++i) {
      Operations4 operations;
      if (source_.below(3) == 0) operations.putfh(one_of(objects_)).add<OP_SAVEFH>();
      if (source_.below(8) != 0) operations.putfh(one_of(objects_));
      add_random(operations);
      harness_.set_caller(source_.below(3) == 0 ? user(1234, 1234) : user(0, 0));
      const std::uint32_t minor_version = session_.minor_version;
      const Reply4 reply = minor_version == 0 || source_.below(16) == 0
                               ? harness_.run_bare(operations, minor_version)
                               : harness_.run(session_, operations);
      for (const Reply4::Result& result : reply.results) {
        ++seen_[result.number];
        if (is_valid_error(minor_version, result.number, result.status)) continue;
        wrong_.insert(std::string(xdr::enum_name(result.number)) + ' ' +
                      std::string(xdr::enum_name(result.status)));
      }
      if (reply.status != NFS4ERR_BADSESSION) continue;
      harness_.set_caller(user(0, 0));
      session_ = harness_.connect("another " + std::to_string(i), minor_version);
    }
  }

  Nfs4Harness harness_;
  xdr::RandomSource source_{77, 64};
  Session4 session_;
  Open4 closed_;
  std::vector<FileHandle> objects_;
  std::vector<xdr::stateid4> stateids_;
  const std::string long_name_ = std::string(300, 'n');
  const std::vector<std::string_view> names_ = {
      "file", "full", "empty", "symlink", "fifo", "locked",   "inner",   "missing",
      "new",  "",     ".",     "..",      "a/b",  "\xff\xfe", long_name_};
  std::vector<std::byte> room_ = std::vector<std::byte>(1u << 20);
  std::map<nfs_opnum4, int> seen_;
  std::set<std::string> wrong_;
};

TEST_F(ErrorsTest, NoOperationAnswersWithAnErrorThatItDoesNotHave) {
  run_some();
  for (const ValidErrors& row : kValidErrors41)
    EXPECT_GT(seen_[row.operation], 0) << xdr::enum_name(row.operation);
  EXPECT_TRUE(wrong_.empty()) << ::testing::PrintToString(wrong_);
}

TEST_F(ErrorsTest, NorDoesOneOfMinorVersion0) {
  session_.minor_version = 0;
  run_some();
  EXPECT_TRUE(wrong_.empty()) << ::testing::PrintToString(wrong_);
}

class Errors42Test : public ErrorsTest {
 protected:
  Errors42Test() : ErrorsTest(2) {}
};

TEST_F(Errors42Test, NorDoesOneThatCameWithMinorVersion2) {
  run_some();
  for (const ValidErrors& row : kValidErrors42)
    EXPECT_GT(seen_[row.operation], 0) << xdr::enum_name(row.operation);
  EXPECT_TRUE(wrong_.empty()) << ::testing::PrintToString(wrong_);
}

TEST_F(Errors42Test, NorOnAReadOnlyExport) {
  ExportOptions options = HarnessOptions::writable();
  options.read_only = true;
  harness_.export_with(options);
  run_some();
  EXPECT_TRUE(wrong_.empty()) << ::testing::PrintToString(wrong_);
}

TEST_F(ErrorsTest, NorOnAReadOnlyExport) {
  ExportOptions options = HarnessOptions::writable();
  options.read_only = true;
  harness_.export_with(options);
  run_some();
  EXPECT_TRUE(wrong_.empty()) << ::testing::PrintToString(wrong_);
}

}  // namespace
}  // namespace nfsrdma::test
