// SPDX-License-Identifier: Apache-2.0
// Operations that change nothing: the change attribute of the directory stays (RFC 8881 3.3.3,
// 5.8.1.4), and so does what the client had open.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/nfs4_harness.h"

namespace nfsrdma::test {
namespace {

/// A program that runs, so that the kernel lets nobody write its file.
class RunningProgram {
 public:
  explicit RunningProgram(const std::string& path) {
    std::filesystem::copy_file("/bin/sleep", path);
    int started[2];
    EXPECT_EQ(::pipe2(started, O_CLOEXEC), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::execl(path.c_str(), "sleep", "600", nullptr);
      ::_exit(1);
    }
    ::close(started[1]);
    char none;
    EXPECT_EQ(::read(started[0], &none, 1), 0) << "closed by the program's start";
    ::close(started[0]);
  }
  ~RunningProgram() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

 private:
  pid_t child_ = -1;
};

class FailedChanges : public ::testing::Test {
 protected:
  xdr::OPEN4args opening(std::string_view name, std::uint32_t access) {
    xdr::OPEN4args args;
    args.share_access = access | xdr::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
    args.owner = {nfs_.session.client, as_bytes(std::string_view("owner"))};
    args.openhow.opentype = xdr::opentype4::OPEN4_CREATE;
    args.claim.file = name;
    return args;
  }
  Reply4 open(const xdr::OPEN4args& args) {
    return nfs_.run(Operations4().putfh(nfs_.root()).add<OP_OPEN>(args));
  }
  Nfs4Harness nfs_;
};

TEST_F(FailedChanges, AnOpenOfAnExistingFileDoesNotChangeItsDirectory) {
  ASSERT_EQ(nfs_.open(nfs_.root(), "file").status, NFS4_OK);
  const std::uint64_t before = nfs_.change(nfs_.root());
  const Reply4 again = open(opening("file", xdr::OPEN4_SHARE_ACCESS_READ));
  ASSERT_EQ(again.status, NFS4_OK);
  const xdr::change_info4 info = again.get<OP_OPEN>().resok4.cinfo;
  EXPECT_EQ(info.before, before);
  EXPECT_EQ(info.after, before);
  EXPECT_TRUE(info.atomic);
  EXPECT_EQ(nfs_.change(nfs_.root()), before);

  const Reply4 made = open(opening("new", xdr::OPEN4_SHARE_ACCESS_READ));
  ASSERT_EQ(made.status, NFS4_OK);
  EXPECT_EQ(made.get<OP_OPEN>().resok4.cinfo.before, before);
  EXPECT_GT(made.get<OP_OPEN>().resok4.cinfo.after, before);
  EXPECT_EQ(nfs_.change(nfs_.root()), made.get<OP_OPEN>().resok4.cinfo.after);
}

TEST_F(FailedChanges, WhatFailsChangesNoDirectory) {
  const Open4 file = nfs_.open(nfs_.root(), "file");
  ASSERT_EQ(file.status, NFS4_OK);
  xdr::CREATE4args directory;
  directory.objtype.type = xdr::nfs_ftype4::NF4DIR;
  directory.objname = "directory";
  ASSERT_EQ(nfs_.on<OP_CREATE>(nfs_.root(), directory).status, NFS4_OK);
  ASSERT_EQ(nfs_.open(nfs_.lookup(nfs_.root(), "directory"), "file").status, NFS4_OK);
  const std::uint64_t before = nfs_.change(nfs_.root());
  const std::uint64_t file_before = nfs_.change(file.handle);

  EXPECT_EQ(nfs_.on<OP_REMOVE>(nfs_.root(), {"none"}).status, NFS4ERR_NOENT);
  EXPECT_EQ(nfs_.change(nfs_.root()), before) << "REMOVE";
  EXPECT_EQ(nfs_.on<OP_REMOVE>(nfs_.root(), {"directory"}).status, NFS4ERR_NOTEMPTY);
  EXPECT_EQ(nfs_.change(nfs_.root()), before) << "REMOVE of a directory";
  EXPECT_EQ(nfs_.on<OP_CREATE>(nfs_.root(), directory).status, NFS4ERR_EXIST);
  EXPECT_EQ(nfs_.change(nfs_.root()), before) << "CREATE";
  const auto two = [&](const FileHandle& first) {
    return Operations4().putfh(first).add<OP_SAVEFH>().putfh(nfs_.root());
  };
  EXPECT_EQ(nfs_.run(two(nfs_.root()).add<OP_RENAME>({"none", "other"})).status, NFS4ERR_NOENT);
  EXPECT_EQ(nfs_.change(nfs_.root()), before) << "RENAME";
  EXPECT_EQ(nfs_.run(two(file.handle).add<OP_LINK>({"directory"})).status, NFS4ERR_EXIST);
  EXPECT_EQ(nfs_.change(nfs_.root()), before) << "LINK";
  EXPECT_EQ(nfs_.change(file.handle), file_before) << "LINK";
  xdr::OPEN4args guarded = opening("file", xdr::OPEN4_SHARE_ACCESS_READ);
  guarded.openhow.how.mode = xdr::createmode4::GUARDED4;
  EXPECT_EQ(open(guarded).status, NFS4ERR_EXIST);
  EXPECT_EQ(nfs_.change(nfs_.root()), before) << "OPEN";

  EXPECT_EQ(nfs_.on<OP_REMOVE>(nfs_.root(), {"file"}).status, NFS4_OK);
  EXPECT_GT(nfs_.change(nfs_.root()), before);
}

TEST_F(FailedChanges, AnOpenWhoseFileCannotBeCutLeavesTheOneBefore) {
  const RunningProgram program(nfs_.path("program"));
  ::chmod(nfs_.path("program").c_str(), 0777);
  const Open4 read = nfs_.open(nfs_.root(), "program", xdr::OPEN4_SHARE_ACCESS_READ, false);
  ASSERT_EQ(read.status, NFS4_OK);
  std::array<std::byte, 8> none{};
  xdr::OPEN4args cut = opening("program", xdr::OPEN4_SHARE_ACCESS_WRITE);
  cut.share_deny = xdr::OPEN4_SHARE_DENY_WRITE;
  cut.openhow.how.createattrs.attrmask.set(xdr::fattr4_number::FATTR4_SIZE);
  cut.openhow.how.createattrs.attr_vals = none;
  ASSERT_NE(open(cut).status, NFS4_OK);
  // The share is what it was, and so is the stateid.
  EXPECT_EQ(nfs_.write(read, 0, "x"), NFS4ERR_OPENMODE);
  EXPECT_EQ(nfs_.read(read, 1, 3), "ELF");
  nfs_.session = nfs_.connect("second");
  const Open4 other = nfs_.open(nfs_.root(), "program", xdr::OPEN4_SHARE_ACCESS_WRITE, false);
  EXPECT_EQ(other.status, NFS4_OK) << "writing is denied to nobody";
}

/// An OPEN that reads, but cuts the file, writes it.
class CuttingOpens : public FailedChanges {
 protected:
  void SetUp() override {
    put_file(nfs_.path("file"), "content");
    xdr::OPEN4args denies = opening("file", xdr::OPEN4_SHARE_ACCESS_READ);
    denies.openhow.opentype = xdr::opentype4::OPEN4_NOCREATE;
    denies.share_deny = xdr::OPEN4_SHARE_DENY_WRITE;
    ASSERT_EQ(open(denies).status, NFS4_OK);
  }
  Reply4 cut(std::string_view owner) {
    xdr::OPEN4args args = opening("file", xdr::OPEN4_SHARE_ACCESS_READ);
    args.owner.owner = as_bytes(owner);
    args.openhow.how.createattrs.attrmask.set(xdr::fattr4_number::FATTR4_SIZE);
    args.openhow.how.createattrs.attr_vals = zero_;
    return open(args);
  }
  std::uintmax_t size() { return std::filesystem::file_size(nfs_.path("file")); }
  std::array<std::byte, 8> zero_{};
};

TEST_F(CuttingOpens, CutNothingThatOthersDenyWriting) {
  EXPECT_EQ(cut("another").status, NFS4ERR_SHARE_DENIED);
  EXPECT_EQ(size(), 7u);
  const Session4 first = nfs_.session;
  nfs_.session = nfs_.connect("second");
  EXPECT_EQ(cut("owner").status, NFS4ERR_SHARE_DENIED);
  EXPECT_EQ(size(), 7u);
  EXPECT_EQ(nfs_.state().opens.held(nfs_.session.client).opens, 0u);
  EXPECT_EQ(nfs_.open(nfs_.root(), "file", xdr::OPEN4_SHARE_ACCESS_READ).status, NFS4_OK)
      << "reading alone is denied to nobody";
  // Who denies it to others may do it himself.
  nfs_.session = first;
  EXPECT_EQ(cut("owner").status, NFS4_OK);
  EXPECT_EQ(size(), 0u);
}

TEST_F(CuttingOpens, WhoIsGoneDeniesNothing) {
  nfs_.clock.move(std::chrono::seconds(91));
  const std::uint64_t gone = nfs_.session.client;
  nfs_.session = nfs_.connect("second");
  EXPECT_EQ(cut("owner").status, NFS4_OK);
  EXPECT_EQ(size(), 0u);
  EXPECT_EQ(nfs_.state().opens.held(gone).opens, 0u);
}

}  // namespace
}  // namespace nfsrdma::test
