// SPDX-License-Identifier: Apache-2.0
// Attributes of NFSv4 by the rules of RFC 7530 5, RFC 8881 5 and 6.2, RFC 7862 12, RFC 8275.
#include "server/nfs4/attributes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <vector>

#include "rpcrdma/base/unique_fd.h"
#include "server/files/set_attributes.h"

namespace nfsrdma::nfs4 {
namespace {

using xdr::bitmap4;
using xdr::fattr4_number;
using xdr::FileAttributes4;
using xdr::nfsstat4;
using enum xdr::fattr4_number;
using enum xdr::nfsstat4;

class FakeNames final : public NameService {
 public:
  std::optional<std::uint32_t> uid_of(const std::string& user) override {
    if (user == "alice") return 1000;
    return std::nullopt;
  }
  std::optional<std::uint32_t> gid_of(const std::string& group) override {
    if (group == "staff") return 50;
    return std::nullopt;
  }
  std::optional<std::string> user_of(std::uint32_t uid) override {
    if (uid == 1000) return "alice";
    return std::nullopt;
  }
  std::optional<std::string> group_of(std::uint32_t gid) override {
    if (gid == 50) return "staff";
    return std::nullopt;
  }
};

OwnerNames make_names(bool send_names) {
  OwnerNames::Options options;
  options.domain = "example.org";
  options.send_names = send_names;
  return OwnerNames(std::move(options), std::make_unique<FakeNames>());
}

/// What a client sends: a mask and values of its own making.
struct Sent {
  std::vector<std::byte> bytes;
  xdr::fattr4 fattr;
  explicit Sent(const FileAttributes4& values) : bytes(8192) {
    xdr::Encoder encoder(bytes);
    xdr::detail::EncodeArchive archive(encoder);
    xdr::visit_attribute_values(archive, values);
    EXPECT_FALSE(encoder.overflowed());
    bytes.resize(encoder.size());
    fattr = {values.attrmask, bytes};
  }
  Sent(const bitmap4& mask, std::vector<std::uint32_t> words) : bytes(words.size() * 4) {
    for (std::size_t i = 0; i < words.size(); ++i)
      store_be32(bytes.data() + i * 4, words[i]);
    fattr = {mask, bytes};
  }
};

FileAttributes4 with(std::initializer_list<fattr4_number> numbers) {
  FileAttributes4 out;
  out.attrmask = bitmap4::of(numbers);
  return out;
}

class AttributesTest : public ::testing::Test {
 protected:
  AttributesTest() {
    fd.reset(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0640));
    if (!fd) fd.reset(::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0640));
    EXPECT_EQ(::ftruncate(fd.get(), 5000), 0);
    EXPECT_EQ(::fstat(fd.get(), &facts.attributes), 0);
    for (std::size_t i = 0; i < sizeof handle; ++i)
      handle[i] = static_cast<std::byte>(i);
    facts.minor_version = 2;
    facts.change = 4711;
    facts.fsid = 99;
    facts.handle = handle;
    facts.lease_seconds = 90;
    facts.rtmax = 1 << 20;
    facts.wtmax = 1 << 19;
    facts.path_fd = fd.get();
  }
  FileAttributes4 fill(const bitmap4& requested) {
    FileAttributes4 out;
    EXPECT_EQ(fill_attributes(facts, requested, names, true, scratch, &out), 0);
    return out;
  }
  FileAttributes4 fill_all() { return fill(supported_attributes(facts.minor_version)); }
  nfsstat4 decode(const Sent& sent, Setting setting = Setting::kSetattr, bool may_block = true) {
    return decode_wanted(sent.fattr, setting, facts.minor_version, names, may_block, &wanted);
  }
  nfsstat4 compare(const Sent& sent, bool may_block = true) {
    return compare_attributes(sent.fattr, facts, names, may_block);
  }

  UniqueFd fd;
  std::byte handle[40];
  AttributeFacts facts;
  AttributeScratch scratch;
  OwnerNames names = make_names(false);
  WantedAttributes wanted;
};

TEST(SupportedAttributes, HaveAllThatAreRequired) {
  // RFC 7530 5.6, RFC 8881 5.6.
  constexpr std::uint32_t kRequired[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 19};
  for (std::uint32_t minor = 0; minor <= 2; ++minor) {
    for (std::uint32_t number : kRequired)
      EXPECT_TRUE(supported_attributes(minor).has(number)) << minor << " " << number;
    EXPECT_EQ(supported_attributes(minor).has(FATTR4_SUPPATTR_EXCLCREAT), minor >= 1);
  }
}

TEST(SupportedAttributes, AreOnlyThoseOfTheMinorVersion) {
  constexpr std::uint32_t kLast[] = {55, 76, 86};  // RFC 7531, 5662, 9754
  for (std::uint32_t minor = 0; minor <= 2; ++minor) {
    supported_attributes(minor).for_each(
        [&](std::uint32_t number) { EXPECT_LE(number, kLast[minor]) << minor; });
    if (minor > 0) {
      EXPECT_TRUE(supported_attributes(minor - 1).without(supported_attributes(minor)).empty());
    }
  }
  EXPECT_TRUE(supported_attributes(2).has(FATTR4_XATTR_SUPPORT));
  EXPECT_TRUE(supported_attributes(2).has(FATTR4_CHANGE_ATTR_TYPE));
  EXPECT_TRUE(supported_attributes(0).has(FATTR4_ACL));
  EXPECT_FALSE(supported_attributes(2).has(FATTR4_DACL));
}

TEST_F(AttributesTest, WhatOpenTakesIsSaid) {
  const FileAttributes4 out = fill(bitmap4::of({FATTR4_OPEN_ARGUMENTS}));
  EXPECT_EQ(out.open_arguments.oa_open_claim, bitmap4::of({0, 1, 2, 4, 5})) << "not _PREV";
  EXPECT_EQ(out.open_arguments.oa_share_access_want, bitmap4::of({3, 4, 5}));
  EXPECT_EQ(out.open_arguments.oa_share_deny, bitmap4::of({0, 1, 2, 3}));
}

TEST(SupportedAttributes, SetOnlyOnesCannotBeAskedFor) {
  using Numbers = std::vector<fattr4_number>;
  for (fattr4_number number : Numbers{FATTR4_TIME_ACCESS_SET, FATTR4_TIME_MODIFY_SET,
                                      FATTR4_MODE_SET_MASKED, FATTR4_MODE_UMASK}) {
    EXPECT_EQ(check_requested(bitmap4::of({FATTR4_TYPE, number}), 2), NFS4ERR_INVAL);
  }
  EXPECT_EQ(check_requested(supported_attributes(2).without(set_only_attributes(2)), 2), NFS4_OK);
  // An attribute that 4.0 does not have is not returned, and no error.
  EXPECT_EQ(check_requested(bitmap4::of({FATTR4_MODE_UMASK}), 0), NFS4_OK);
  EXPECT_EQ(check_requested(bitmap4::of({FATTR4_DACL, FATTR4_QUOTA_USED}), 1), NFS4_OK);
}

TEST(SupportedAttributes, ExclusiveCreateLeavesTheVerifierItsPlace) {
  for (std::uint32_t minor = 1; minor <= 2; ++minor) {
    const bitmap4 mask = exclusive_create_attributes(minor);
    EXPECT_TRUE(mask.has(FATTR4_MODE));
    EXPECT_FALSE(mask.has(FATTR4_TIME_ACCESS_SET));
    EXPECT_FALSE(mask.has(FATTR4_TIME_MODIFY_SET));
    EXPECT_FALSE(mask.has(FATTR4_SIZE));
    EXPECT_EQ(mask.has(FATTR4_MODE_UMASK), minor == 2);
  }
}

TEST_F(AttributesTest, FillsAllThatCanBeReadAndEncodes) {
  for (std::uint32_t minor = 0; minor <= 2; ++minor) {
    facts.minor_version = minor;
    const FileAttributes4 out = fill_all();
    bitmap4 expected = supported_attributes(minor).without(set_only_attributes(minor));
    if (!out.supported_attrs.has(FATTR4_TIME_CREATE)) expected.clear(FATTR4_TIME_CREATE);
    EXPECT_EQ(out.attrmask, expected) << minor;
    std::vector<std::byte> room(4096);
    xdr::Encoder encoder(room);
    xdr::encode(encoder, out);
    EXPECT_FALSE(encoder.overflowed());
  }
}

TEST_F(AttributesTest, FillsWhatIsAskedForAndNothingElse) {
  for (std::uint32_t number = 0; number < bitmap4::kBits; ++number) {
    bitmap4 one;
    one.set(number);
    const FileAttributes4 out = fill(one);
    const bool readable =
        supported_attributes(2).has(number) && !set_only_attributes(2).has(number);
    if (number == 50) continue;  // time_create: below
    EXPECT_EQ(out.attrmask, readable ? one : bitmap4{}) << number;
  }
}

TEST_F(AttributesTest, ValuesAreThoseOfTheObject) {
  struct stat& st = facts.attributes;
  st.st_rdev = makedev(8, 17);
  const FileAttributes4 out = fill_all();
  EXPECT_EQ(out.type, xdr::nfs_ftype4::NF4REG);
  EXPECT_EQ(out.change, 4711u);
  EXPECT_EQ(out.size, 5000u);
  EXPECT_EQ(out.fsid.major, 99u);
  EXPECT_EQ(out.fsid.minor, 0u);
  EXPECT_EQ(out.fileid, st.st_ino);
  EXPECT_EQ(out.mounted_on_fileid, st.st_ino);
  EXPECT_EQ(out.mode, 0640u);
  EXPECT_EQ(out.numlinks, 0u);
  EXPECT_EQ(out.owner, std::to_string(st.st_uid));
  EXPECT_EQ(out.owner_group, std::to_string(st.st_gid));
  EXPECT_EQ(out.rawdev.specdata1, 8u);
  EXPECT_EQ(out.rawdev.specdata2, 17u);
  EXPECT_EQ(out.space_used, static_cast<std::uint64_t>(st.st_blocks) * 512);
  EXPECT_EQ(out.time_modify.seconds, st.st_mtim.tv_sec);
  EXPECT_EQ(out.time_modify.nseconds, st.st_mtim.tv_nsec);
  EXPECT_EQ(out.time_metadata.nseconds, st.st_ctim.tv_nsec);
  EXPECT_EQ(out.time_access.seconds, st.st_atim.tv_sec);
  EXPECT_EQ(out.filehandle.data.data(), handle);
  EXPECT_EQ(out.filehandle.data.size(), sizeof handle);
}

TEST_F(AttributesTest, ValuesAreThoseOfTheServer) {
  const FileAttributes4 out = fill_all();
  EXPECT_EQ(out.lease_time, 90u);
  EXPECT_EQ(out.maxread, 1u << 20);
  EXPECT_EQ(out.maxwrite, 1u << 19);
  EXPECT_EQ(out.fh_expire_type, 0u);
  EXPECT_EQ(out.aclsupport, xdr::ACL4_SUPPORT_ALLOW_ACL | xdr::ACL4_SUPPORT_DENY_ACL);
  EXPECT_TRUE(out.link_support && out.symlink_support && out.unique_handles && out.cansettime);
  EXPECT_TRUE(out.case_preserving && out.chown_restricted && out.homogeneous && out.no_trunc);
  EXPECT_FALSE(out.case_insensitive || out.named_attr);
  EXPECT_EQ(out.rdattr_error, NFS4_OK);
  EXPECT_EQ(out.suppattr_exclcreat, exclusive_create_attributes(2));
  EXPECT_EQ(out.change_attr_type, xdr::change_attr_type4::NFS4_CHANGE_TYPE_IS_TIME_METADATA);
  EXPECT_EQ(out.maxfilesize, 0x7fffffffffffffffu);
}

TEST_F(AttributesTest, ValuesAreThoseOfTheFileSystem) {
  const FileAttributes4 out = fill_all();
  struct statvfs fs;
  ASSERT_EQ(::fstatvfs(fd.get(), &fs), 0);
  EXPECT_EQ(out.maxname, fs.f_namemax);
  EXPECT_EQ(out.space_total, fs.f_blocks * fs.f_frsize);
  EXPECT_EQ(out.files_total, fs.f_files);
  EXPECT_EQ(out.clone_blksize, fs.f_bsize);
  struct statx stx;
  ASSERT_EQ(::statx(fd.get(), "", AT_EMPTY_PATH, STATX_BTIME, &stx), 0);
  const bool has_birth = (stx.stx_mask & STATX_BTIME) != 0;
  EXPECT_EQ(out.attrmask.has(FATTR4_TIME_CREATE), has_birth);
  EXPECT_EQ(out.supported_attrs.has(FATTR4_TIME_CREATE), has_birth);
  bitmap4 rest = out.supported_attrs;
  rest.set(FATTR4_TIME_CREATE);
  EXPECT_EQ(rest, supported_attributes(2));
  if (has_birth) {
    EXPECT_EQ(out.time_create.seconds, stx.stx_btime.tv_sec);
  }
}

TEST_F(AttributesTest, AFileSystemWithoutAclsSaysSo) {
  UniqueFd none(::open("/proc/self/status", O_PATH | O_CLOEXEC));
  ASSERT_EQ(::fstat(none.get(), &facts.attributes), 0);
  for (int path_fd : {none.get(), -1}) {  // and a pseudo directory
    facts.path_fd = path_fd;
    const FileAttributes4 out = fill_all();
    EXPECT_EQ(out.aclsupport, 0u);
    EXPECT_FALSE(out.attrmask.has(FATTR4_ACL));
    EXPECT_FALSE(out.supported_attrs.has(FATTR4_ACL));
    EXPECT_FALSE(out.suppattr_exclcreat.has(FATTR4_ACL));
    const Sent acl(bitmap4::of({FATTR4_ACL}), {0});
    EXPECT_EQ(compare(acl), NFS4ERR_ATTRNOTSUPP);
    ASSERT_EQ(decode(acl), NFS4_OK);
    EXPECT_EQ(check_acls(wanted.values, path_fd, S_IFREG | 0644), kNoSuchAttribute);
  }
}

TEST_F(AttributesTest, AnAclIsForWhereItMayBlock) {
  FileAttributes4 out;
  EXPECT_EQ(
      fill_attributes(facts, bitmap4::of({FATTR4_ACL}), names, /*may_block=*/false, scratch, &out),
      EAGAIN);
  EXPECT_EQ(decode(Sent(bitmap4::of({FATTR4_ACL}), {0}), Setting::kSetattr, false), NFS4ERR_DELAY);
  EXPECT_EQ(compare(Sent(bitmap4::of({FATTR4_ACL}), {0}), false), NFS4ERR_DELAY);
}

TEST_F(AttributesTest, TypesAreTranslatedAndTypeBitsAreNotInTheMode) {
  using enum xdr::nfs_ftype4;
  const std::pair<mode_t, xdr::nfs_ftype4> kTypes[] = {
      {S_IFREG, NF4REG}, {S_IFDIR, NF4DIR},   {S_IFBLK, NF4BLK}, {S_IFCHR, NF4CHR},
      {S_IFLNK, NF4LNK}, {S_IFSOCK, NF4SOCK}, {S_IFIFO, NF4FIFO}};
  for (const auto& [mode, type] : kTypes) {
    facts.attributes.st_mode = mode | 07777;
    const FileAttributes4 out = fill(bitmap4::of({FATTR4_TYPE, FATTR4_MODE}));
    EXPECT_EQ(out.type, type);
    EXPECT_EQ(out.mode, 07777u);
  }
}

TEST_F(AttributesTest, ARootOfAFileSystemIsMountedOnAnotherFileid) {
  facts.mounted_on_fileid = 12;
  const FileAttributes4 out = fill(bitmap4::of({FATTR4_FILEID, FATTR4_MOUNTED_ON_FILEID}));
  EXPECT_EQ(out.fileid, facts.attributes.st_ino);
  EXPECT_EQ(out.mounted_on_fileid, 12u);
}

TEST_F(AttributesTest, APseudoNodeHasAllThatIsAskedForButAcls) {
  facts.path_fd = -1;
  facts.fsid = 0;
  const FileAttributes4 out = fill_all();
  const bitmap4 all = supported_attributes(2).without(bitmap4::of({FATTR4_ACL}));
  EXPECT_EQ(out.attrmask, all.without(set_only_attributes(2)));
  EXPECT_EQ(out.supported_attrs, all);
  EXPECT_EQ(out.space_total, 0u);
  EXPECT_EQ(out.maxname, 255u);
  EXPECT_FALSE(out.xattr_support);
}

TEST_F(AttributesTest, NamesOfOwnersWaitForTheNameService) {
  OwnerNames by_name = make_names(true);
  facts.attributes.st_uid = 1000;
  facts.attributes.st_gid = 50;
  const bitmap4 owners = bitmap4::of({FATTR4_OWNER, FATTR4_OWNER_GROUP});
  FileAttributes4 out;
  EXPECT_EQ(fill_attributes(facts, owners, by_name, false, scratch, &out), EAGAIN);
  EXPECT_EQ(fill_attributes(facts, bitmap4::of({FATTR4_MODE}), by_name, false, scratch, &out), 0);
  EXPECT_EQ(fill_attributes(facts, owners, by_name, true, scratch, &out), 0);
  EXPECT_EQ(out.owner, "alice@example.org");
  EXPECT_EQ(out.owner_group, "staff@example.org");
  // Compared by what they mean, whatever is sent.
  FileAttributes4 numeric = with({FATTR4_OWNER, FATTR4_OWNER_GROUP});
  numeric.owner = "1000";
  numeric.owner_group = "50";
  EXPECT_EQ(compare_attributes(Sent(numeric).fattr, facts, by_name, true), NFS4ERR_SAME);
}

TEST_F(AttributesTest, AFileSystemThatDoesNotAnswerIsAnError) {
  facts.path_fd = 1'000'000;
  FileAttributes4 out;
  EXPECT_EQ(fill_attributes(facts, bitmap4::of({FATTR4_SPACE_FREE}), names, true, scratch, &out),
            EBADF);
  EXPECT_EQ(fill_attributes(facts, bitmap4::of({FATTR4_TIME_CREATE}), names, true, scratch, &out),
            EBADF);
  EXPECT_EQ(fill_attributes(facts, bitmap4::of({FATTR4_SIZE}), names, true, scratch, &out), 0);
}

TEST(EntryErrors, GoIntoTheEntryWhereTheClientAskedForThem) {
  FileAttributes4 out;
  EXPECT_FALSE(fill_entry_error(bitmap4::of({FATTR4_TYPE}), NFS4ERR_ACCESS, 5, &out));
  EXPECT_TRUE(fill_entry_error(bitmap4::of({FATTR4_TYPE, FATTR4_RDATTR_ERROR, FATTR4_SIZE}),
                               NFS4ERR_ACCESS, 5, &out));
  EXPECT_EQ(out.attrmask, bitmap4::of({FATTR4_RDATTR_ERROR}));
  EXPECT_EQ(out.rdattr_error, NFS4ERR_ACCESS);
  EXPECT_TRUE(fill_entry_error(bitmap4::of({FATTR4_RDATTR_ERROR, FATTR4_MOUNTED_ON_FILEID}),
                               NFS4ERR_IO, 5, &out));
  EXPECT_TRUE(out.attrmask.has(FATTR4_MOUNTED_ON_FILEID));
  EXPECT_EQ(out.mounted_on_fileid, 5u);
}

TEST_F(AttributesTest, SetattrTakesAllThatCanBeSet) {
  FileAttributes4 values = with({FATTR4_SIZE, FATTR4_MODE, FATTR4_OWNER, FATTR4_OWNER_GROUP,
                                 FATTR4_TIME_ACCESS_SET, FATTR4_TIME_MODIFY_SET});
  values.size = std::uint64_t{1} << 40;
  values.mode = 04755;
  values.owner = "alice@example.org";
  values.owner_group = "77";
  values.time_access_set.set_it = xdr::time_how4::SET_TO_SERVER_TIME4;
  values.time_modify_set = {xdr::time_how4::SET_TO_CLIENT_TIME4, {-5'000'000'000, 999'999'999}};
  ASSERT_EQ(decode(Sent(values)), NFS4_OK);
  EXPECT_EQ(wanted.requested, values.attrmask);
  EXPECT_EQ(wanted.values.size, std::uint64_t{1} << 40);
  EXPECT_EQ(wanted.values.mode, 04755u);
  EXPECT_EQ(wanted.values.uid, 1000u);
  EXPECT_EQ(wanted.values.gid, 77u);
  EXPECT_EQ(wanted.values.atime.value.tv_nsec, UTIME_NOW);
  EXPECT_EQ(wanted.values.mtime.value.tv_sec, -5'000'000'000);
  EXPECT_EQ(wanted.values.mtime.value.tv_nsec, 999'999'999);
  EXPECT_EQ(wanted.attributes_set(wanted.values), values.attrmask);
}

TEST_F(AttributesTest, SetattrOfNothingSetsNothing) {
  ASSERT_EQ(decode(Sent(with({}))), NFS4_OK);
  EXPECT_FALSE(wanted.values.mode || wanted.values.size || wanted.values.sets_owner() ||
               wanted.values.sets_times());
  EXPECT_TRUE(wanted.attributes_set(wanted.values).empty());
}

TEST_F(AttributesTest, EveryAttributeIsSettableOrRefusedAsTheRfcSays) {
  for (std::uint32_t minor = 0; minor <= 2; ++minor) {
    facts.minor_version = minor;
    for (std::uint32_t number = 0; number < bitmap4::kBits; ++number) {
      bitmap4 mask;
      mask.set(number);
      // Values that cannot be read: what is refused for its number is so before them.
      const Sent sent(mask, {7, 7, 7, 7});
      const bool supported = supported_attributes(minor).has(number);
      const bool settable = number == 4 || number == 12 || number == 33 || number == 36 ||
                            number == 37 || number == 48 || number == 54 || number == 74;
      EXPECT_EQ(decode(sent), !supported ? NFS4ERR_ATTRNOTSUPP
                              : settable ? NFS4ERR_BADXDR
                                         : NFS4ERR_INVAL)
          << minor << " " << number;
    }
  }
}

TEST_F(AttributesTest, BitsBeyondAllThatIsKnownAreNotSupported) {
  Sent sent(with({}));
  sent.fattr.attrmask.beyond = 200;
  EXPECT_EQ(decode(sent), NFS4ERR_ATTRNOTSUPP);
  EXPECT_EQ(compare(sent), NFS4ERR_ATTRNOTSUPP);
}

TEST_F(AttributesTest, NotSupportedGoesBeforeGetOnly) {
  EXPECT_EQ(decode(Sent(bitmap4::of({FATTR4_TYPE, FATTR4_ARCHIVE}), {1, 1})), NFS4ERR_ATTRNOTSUPP);
}

TEST_F(AttributesTest, ValuesThatAreTooShortOrTooLongCannotBeRead) {
  const bitmap4 mode = bitmap4::of({FATTR4_MODE});
  EXPECT_EQ(decode(Sent(mode, {})), NFS4ERR_BADXDR);
  EXPECT_EQ(decode(Sent(mode, {0644, 0})), NFS4ERR_BADXDR);
  EXPECT_EQ(decode(Sent(bitmap4::of({FATTR4_OWNER}), {100})), NFS4ERR_BADXDR);
  EXPECT_EQ(decode(Sent(bitmap4::of({FATTR4_TIME_MODIFY_SET}), {2})), NFS4ERR_BADXDR);
}

TEST_F(AttributesTest, ATimeHasLessThanABillionNanoseconds) {
  for (auto number : {FATTR4_TIME_ACCESS_SET, FATTR4_TIME_MODIFY_SET}) {
    FileAttributes4 values = with({number});
    values.time_access_set =
        values.time_modify_set = {xdr::time_how4::SET_TO_CLIENT_TIME4, {1, 1'000'000'000}};
    EXPECT_EQ(decode(Sent(values)), NFS4ERR_INVAL);
  }
}

TEST_F(AttributesTest, UndefinedBitsOfAModeAreInvalid) {
  FileAttributes4 values = with({FATTR4_MODE});
  values.mode = 0100644;
  EXPECT_EQ(decode(Sent(values)), NFS4ERR_INVAL);
  EXPECT_EQ(decode(Sent(values), Setting::kCreate), NFS4ERR_INVAL);
  EXPECT_EQ(compare(Sent(values)), NFS4ERR_INVAL);
  // In both words of the others, also where the mask leaves them out (RFC 8881 6.2.5).
  EXPECT_EQ(decode(Sent(bitmap4::of({FATTR4_MODE_SET_MASKED}), {010000, 0})), NFS4ERR_INVAL);
  EXPECT_EQ(decode(Sent(bitmap4::of({FATTR4_MODE_SET_MASKED}), {0, 010000})), NFS4ERR_INVAL);
  EXPECT_EQ(decode(Sent(bitmap4::of({FATTR4_MODE_UMASK}), {0100644, 022}), Setting::kCreate),
            NFS4ERR_INVAL);
  EXPECT_EQ(decode(Sent(bitmap4::of({FATTR4_MODE_UMASK}), {0644, 0100022}), Setting::kCreate),
            NFS4ERR_INVAL);
}

TEST_F(AttributesTest, ModeSetMaskedChangesItsBitsAlone) {
  ASSERT_EQ(decode(Sent(bitmap4::of({FATTR4_MODE_SET_MASKED}), {04777, 07022})), NFS4_OK);
  wanted.resolve_mode(S_IFREG | 03644);
  EXPECT_EQ(wanted.values.mode, 04666u);  // 04000 set, 03000 gone, 0022 set, the rest as it was
  EXPECT_EQ(wanted.attributes_set(wanted.values), bitmap4::of({FATTR4_MODE_SET_MASKED}));
  // A plain mode is what it is.
  ASSERT_EQ(decode(Sent(bitmap4::of({FATTR4_MODE}), {0600})), NFS4_OK);
  wanted.resolve_mode(S_IFREG | 0777);
  EXPECT_EQ(wanted.values.mode, 0600u);
}

TEST_F(AttributesTest, ModeSetMaskedIsForSetattrAndModeUmaskForMakingObjects) {
  const Sent masked(bitmap4::of({FATTR4_MODE_SET_MASKED}), {0, 0});
  EXPECT_EQ(decode(masked, Setting::kSetattr), NFS4_OK);
  EXPECT_EQ(decode(masked, Setting::kCreate), NFS4ERR_INVAL);
  EXPECT_EQ(decode(masked, Setting::kExclusiveCreate), NFS4ERR_INVAL);
  const Sent umask(bitmap4::of({FATTR4_MODE_UMASK}), {0666, 022});
  EXPECT_EQ(decode(umask, Setting::kSetattr), NFS4ERR_INVAL);
  EXPECT_EQ(decode(umask, Setting::kCreate), NFS4_OK);
  EXPECT_EQ(decode(umask, Setting::kExclusiveCreate), NFS4_OK);
}

TEST_F(AttributesTest, ThereIsOneModeAtMost) {
  EXPECT_EQ(decode(Sent(bitmap4::of({FATTR4_MODE, FATTR4_MODE_SET_MASKED}), {0, 0, 0})),
            NFS4ERR_INVAL);
  EXPECT_EQ(
      decode(Sent(bitmap4::of({FATTR4_MODE, FATTR4_MODE_UMASK}), {0, 0, 0}), Setting::kCreate),
      NFS4ERR_INVAL);
}

TEST_F(AttributesTest, TheUmaskCountsWhereTheDirectoryHasNoDefaultAcl) {
  const Sent umask(bitmap4::of({FATTR4_MODE_UMASK}), {0666, 027});
  ASSERT_EQ(decode(umask, Setting::kCreate), NFS4_OK);
  wanted.apply_umask(false);
  EXPECT_EQ(wanted.values.mode, 0640u);
  ASSERT_EQ(decode(umask, Setting::kCreate), NFS4_OK);
  wanted.apply_umask(true);
  EXPECT_EQ(wanted.values.mode, 0666u);
  EXPECT_EQ(wanted.attributes_set(wanted.values), bitmap4::of({FATTR4_MODE_UMASK}));
}

TEST_F(AttributesTest, ExclusiveCreateTakesWhatItSaysItTakes) {
  supported_attributes(2).for_each([&](std::uint32_t number) {
    bitmap4 mask;
    mask.set(number);
    EXPECT_EQ(decode(Sent(mask, {7, 7, 7, 7}), Setting::kExclusiveCreate),
              exclusive_create_attributes(2).has(number) ? NFS4ERR_BADXDR : NFS4ERR_INVAL)
        << number;
  });
}

TEST_F(AttributesTest, NoNameIsNoOwner) {
  for (fattr4_number number : {FATTR4_OWNER, FATTR4_OWNER_GROUP}) {
    EXPECT_EQ(decode(Sent(bitmap4::of({number}), {0})), NFS4ERR_INVAL);
    EXPECT_EQ(decode(Sent(bitmap4::of({number}), {0}), Setting::kCreate), NFS4ERR_INVAL);
  }
}

TEST_F(AttributesTest, OwnersThatNobodyKnowsAreBad) {
  for (std::string_view bad : {"carol@example.org", "alice@elsewhere", "alice"}) {
    FileAttributes4 values = with({FATTR4_OWNER});
    values.owner = bad;
    EXPECT_EQ(decode(Sent(values)), NFS4ERR_BADOWNER) << bad;
    values = with({FATTR4_OWNER_GROUP});
    values.owner_group = bad;
    EXPECT_EQ(decode(Sent(values)), NFS4ERR_BADOWNER) << bad;
  }
}

TEST_F(AttributesTest, WhoMayNotBlockIsDelayed) {
  FileAttributes4 values = with({FATTR4_OWNER});
  values.owner = "alice@example.org";
  EXPECT_EQ(decode(Sent(values), Setting::kSetattr, false), NFS4ERR_DELAY);
  EXPECT_EQ(compare(Sent(values), false), NFS4ERR_DELAY);
  EXPECT_EQ(decode(Sent(values), Setting::kSetattr, true), NFS4_OK);
  EXPECT_EQ(decode(Sent(values), Setting::kSetattr, false), NFS4_OK);
}

TEST_F(AttributesTest, WhatWasSetBeforeAFailureIsTold) {
  FileAttributes4 values = with({FATTR4_SIZE, FATTR4_MODE, FATTR4_OWNER});
  values.owner = "0";
  ASSERT_EQ(decode(Sent(values)), NFS4_OK);
  NewAttributes done;
  done.size = 0;
  EXPECT_EQ(wanted.attributes_set(done), bitmap4::of({FATTR4_SIZE}));
  done.uid = 0;
  done.gid = 0;  // was not asked for
  EXPECT_EQ(wanted.attributes_set(done), bitmap4::of({FATTR4_SIZE, FATTR4_OWNER}));
}

TEST_F(AttributesTest, AnObjectIsTheSameAsItself) {
  for (std::uint32_t minor = 0; minor <= 2; ++minor) {
    facts.minor_version = minor;
    FileAttributes4 all = fill_all();
    all.attrmask.clear(FATTR4_RDATTR_ERROR);
    // What other programs do to the file system shows in these.
    for (const auto number :
         {FATTR4_FILES_AVAIL, FATTR4_FILES_FREE, FATTR4_SPACE_AVAIL, FATTR4_SPACE_FREE}) {
      all.attrmask.clear(number);
    }
    EXPECT_EQ(compare(Sent(all)), NFS4ERR_SAME) << minor;
    all.attrmask.for_each([&](std::uint32_t number) {
      FileAttributes4 one = all;
      one.attrmask = {};
      one.attrmask.set(number);
      EXPECT_EQ(compare(Sent(one)), NFS4ERR_SAME) << number;
    });
  }
  EXPECT_EQ(compare(Sent(with({}))), NFS4ERR_SAME);
}

TEST_F(AttributesTest, EveryDifferenceIsSeen) {
  FileAttributes4 values = fill_all();
  values.attrmask = bitmap4::of({FATTR4_SIZE, FATTR4_CHANGE, FATTR4_FILEHANDLE, FATTR4_OWNER,
                                 FATTR4_TIME_MODIFY, FATTR4_SUPPORTED_ATTRS});
  ASSERT_EQ(compare(Sent(values)), NFS4ERR_SAME);
  FileAttributes4 other = values;
  other.size += 1;
  EXPECT_EQ(compare(Sent(other)), NFS4ERR_NOT_SAME);
  other = values;
  other.change += 1;
  EXPECT_EQ(compare(Sent(other)), NFS4ERR_NOT_SAME);
  other = values;
  other.filehandle.data = other.filehandle.data.first(36);
  EXPECT_EQ(compare(Sent(other)), NFS4ERR_NOT_SAME);
  other = values;
  other.owner = "123456";
  EXPECT_EQ(compare(Sent(other)), NFS4ERR_NOT_SAME);
  other.owner = "carol@example.org";
  EXPECT_EQ(compare(Sent(other)), NFS4ERR_NOT_SAME);
  other = values;
  other.time_modify.nseconds ^= 1;
  EXPECT_EQ(compare(Sent(other)), NFS4ERR_NOT_SAME);
  other = values;
  other.supported_attrs.set(FATTR4_DACL);
  EXPECT_EQ(compare(Sent(other)), NFS4ERR_NOT_SAME);
}

TEST_F(AttributesTest, WhatCannotBeComparedIsRefused) {
  EXPECT_EQ(compare(Sent(bitmap4::of({FATTR4_RDATTR_ERROR}), {0})), NFS4ERR_INVAL);
  EXPECT_EQ(compare(Sent(bitmap4::of({FATTR4_TIME_ACCESS_SET}), {0})), NFS4ERR_INVAL);
  EXPECT_EQ(compare(Sent(bitmap4::of({FATTR4_MODE_SET_MASKED}), {0, 0})), NFS4ERR_INVAL);
  EXPECT_EQ(compare(Sent(bitmap4::of({FATTR4_ARCHIVE}), {0})), NFS4ERR_ATTRNOTSUPP);
  EXPECT_EQ(compare(Sent(bitmap4::of({FATTR4_SIZE}), {0})), NFS4ERR_BADXDR);
  facts.minor_version = 0;
  EXPECT_EQ(compare(Sent(bitmap4::of({FATTR4_XATTR_SUPPORT}), {0})), NFS4ERR_ATTRNOTSUPP);
}

}  // namespace
}  // namespace nfsrdma::nfs4
