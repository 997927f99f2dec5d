// SPDX-License-Identifier: Apache-2.0
// Locks and shares of NFSv3, among hosts, against NFSv4 and against processes of this machine.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "server/nfs4/state_report.h"
#include "server/vfs/record_locks.h"
#include "tests/support/nlm_harness.h"

namespace nfsrdma::test {
namespace {

using enum xdr::nlm4_stats;
using xdr::fsh4_access;
using xdr::fsh4_mode;
using xdr::nlmproc4;
using Kind = RecordLock::Kind;

constexpr std::uint32_t kGrantedProcedure = 5;
const NlmOwner kFirst{"host", 1};
const NlmOwner kSecond{"host", 2};
const NlmOwner kElsewhere{"other", 1};

class NlmLocks : public ::testing::Test {
 protected:
  /// Could a process of this machine lock so?
  bool local_may(Kind kind, std::uint64_t first, std::uint64_t last) {
    const UniqueFd fd(::open(harness.nfs4.path("file").c_str(), O_RDWR | O_CLOEXEC));
    RecordLock found;
    pid_t pid = 0;
    return !find_record_lock(fd.get(), {kind, first, last}, &found, &pid);
  }
  NlmHarness harness;
  FileHandle file = harness.make_file("file");
};

TEST_F(NlmLocks, OneOwnerKeepsOthersOut) {
  EXPECT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kFirst), NLM4_GRANTED) << "its own it may have again";
  EXPECT_EQ(harness.lock(file, kSecond, false), NLM4_DENIED);
  EXPECT_EQ(harness.lock(file, kElsewhere, false), NLM4_DENIED);
  EXPECT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_GRANTED);
}

TEST_F(NlmLocks, AreOfBytes) {
  EXPECT_EQ(harness.lock(file, kFirst, true, {0, 100}), NLM4_GRANTED);
  EXPECT_EQ(harness.unlock(file, kFirst, {40, 20}), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kSecond, true, {40, 20}), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kSecond, true, {39, 1}), NLM4_DENIED);
  EXPECT_EQ(harness.lock(file, kSecond, true, {100, 0}), NLM4_GRANTED);
}

TEST_F(NlmLocks, ToReadAreShared) {
  EXPECT_EQ(harness.lock(file, kFirst, false), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kElsewhere, false), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kElsewhere, true), NLM4_DENIED);
}

TEST_F(NlmLocks, TestTellsWhoseItIs) {
  EXPECT_EQ(harness.test(file, kSecond).stat, NLM4_GRANTED);
  ASSERT_EQ(harness.lock(file, kFirst, true, {10, 5}), NLM4_GRANTED);
  const xdr::nlm4_testrply found = harness.test(file, kSecond, false);
  ASSERT_EQ(found.stat, NLM4_DENIED);
  EXPECT_TRUE(found.holder.exclusive);
  EXPECT_EQ(found.holder.svid, 1u);
  EXPECT_EQ(std::string(as_text(found.holder.oh)), "oh");
  EXPECT_EQ(found.holder.l_offset, 10u);
  EXPECT_EQ(found.holder.l_len, 5u);
}

TEST_F(NlmLocks, RangesThatAreNoneAreRefused) {
  EXPECT_EQ(harness.lock(file, kFirst, true, {UINT64_MAX, 2}), NLM4_FBIG);
  EXPECT_EQ(harness.lock(file, kFirst, true, {UINT64_MAX - 1, 1}), NLM4_GRANTED);
}

TEST_F(NlmLocks, OfWhatIsNoFileAreRefused) {
  FileHandle bad = file;
  bad.data[20] ^= std::byte{1};
  EXPECT_EQ(harness.lock(bad, kFirst), NLM4_STALE_FH);
  EXPECT_EQ(harness.lock(harness.nfs4.root(), kFirst), NLM4_FAILED);
  ASSERT_EQ(::unlink(harness.nfs4.path("file").c_str()), 0);
  EXPECT_EQ(harness.lock(file, kFirst), NLM4_STALE_FH);
}

TEST_F(NlmLocks, ToWriteWhereNothingMayBeWrittenAreRefused) {
  ExportOptions options = HarnessOptions::writable();
  options.read_only = true;
  harness.nfs4.export_with(options);
  EXPECT_EQ(harness.lock(file, kFirst, true), NLM4_ROFS);
  EXPECT_EQ(harness.lock(file, kFirst, false), NLM4_GRANTED);
}

TEST_F(NlmLocks, WhoMayNotReadTheFileMayNotLockIt) {
  NFSRDMA_NEEDS_ROOT();
  const FileHandle secret = harness.make_file("secret", 0600);
  harness.set_caller(user(4711, 4711));
  EXPECT_EQ(harness.lock(secret, kFirst, false), NLM4_DENIED_NOLOCKS);
  ExportOptions options = HarnessOptions::writable();
  options.insecure_locks = true;
  harness.nfs4.export_with(options);
  EXPECT_EQ(harness.lock(secret, kFirst, false), NLM4_GRANTED);
}

TEST_F(NlmLocks, UnlockingWhatIsNotLockedIsGranted) {
  EXPECT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  EXPECT_EQ(harness.unlock(file, kSecond), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kSecond), NLM4_DENIED) << "another owner's unlock took it away";
}

TEST_F(NlmLocks, AndThoseOfLocalProcessesKeepEachOtherOut) {
  ASSERT_EQ(harness.lock(file, kFirst, true, {0, 10}), NLM4_GRANTED);
  EXPECT_FALSE(local_may(Kind::kRead, 0, 0));
  EXPECT_TRUE(local_may(Kind::kWrite, 10, kLastByte));
  EXPECT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  EXPECT_TRUE(local_may(Kind::kWrite, 0, kLastByte));
  const UniqueFd local(::open(harness.nfs4.path("file").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(set_record_lock(local.get(), {Kind::kWrite, 5, 7}), 0);
  EXPECT_EQ(harness.lock(file, kFirst, false, {7, 1}), NLM4_DENIED);
  const auto found = harness.test(file, kFirst);
  ASSERT_EQ(found.stat, NLM4_DENIED);
  EXPECT_EQ(found.holder.l_offset, 5u);
  EXPECT_EQ(found.holder.l_len, 3u);
}

TEST_F(NlmLocks, AndThoseOfVersion4KeepEachOtherOut) {
  const Open4 open = harness.nfs4.open(harness.nfs4.root(), "file");
  ASSERT_EQ(open.status, NFS4_OK);
  xdr::LOCK4args wanted;
  wanted.locktype = xdr::nfs_lock_type4::WRITE_LT;
  wanted.length = 10;
  wanted.locker.new_lock_owner = true;
  wanted.locker.open_owner.open_stateid = open.stateid;
  wanted.locker.open_owner.lock_owner = {harness.nfs4.session.client,
                                         as_bytes(std::string_view("four"))};
  ASSERT_EQ(harness.lock(file, kFirst, true, {9, 1}), NLM4_GRANTED);
  EXPECT_EQ(harness.nfs4.on<OP_LOCK>(file, wanted).status, NFS4ERR_DENIED);
  ASSERT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  ASSERT_EQ(harness.nfs4.on<OP_LOCK>(file, wanted).status, NFS4_OK);
  EXPECT_EQ(harness.lock(file, kFirst, false, {9, 1}), NLM4_DENIED);
  const auto found = harness.test(file, kFirst);
  ASSERT_EQ(found.stat, NLM4_DENIED);
  EXPECT_EQ(std::string(as_text(found.holder.oh)), "four");
}

TEST_F(NlmLocks, AClientOfVersion4CannotTakeTheNameOfAHost) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  xdr::EXCHANGE_ID4args who;
  const std::string name = nfs4::ClientTable::host_owner("127.0.0.1 host");
  who.eia_clientowner.co_ownerid = as_bytes(name);
  EXPECT_EQ(harness.nfs4.run_bare(Operations4().add<OP_EXCHANGE_ID>(who)).status, NFS4ERR_INVAL);
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_DENIED);
}

TEST_F(NlmLocks, AreGivenToWhoWaitsWhenTheyAreFree) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kElsewhere, true, {3, 4}, true), NLM4_BLOCKED);
  ASSERT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  const HostPrograms::Seen call = harness.programs.next();
  EXPECT_EQ(call.program, xdr::kNlmProgram);
  ASSERT_EQ(call.procedure, kGrantedProcedure);
  const auto args = call.as<xdr::nlm4_testargs>();
  EXPECT_TRUE(args.exclusive);
  EXPECT_EQ(args.alock.svid, 1u);
  EXPECT_EQ(std::string(as_text(args.alock.oh)), "oh");
  EXPECT_EQ(args.alock.l_offset, 3u);
  EXPECT_EQ(args.alock.l_len, 4u);
  EXPECT_EQ(to_handle(args.alock.fh).bytes().size(), file.bytes().size());
  EXPECT_EQ(harness.lock(file, kFirst, true, {3, 1}), NLM4_DENIED);
}

TEST_F(NlmLocks, AreGivenWhenALocalProcessLetsGo) {
  UniqueFd local(::open(harness.nfs4.path("file").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(set_record_lock(local.get(), {Kind::kWrite, 0, kLastByte}), 0);
  EXPECT_EQ(harness.lock(file, kFirst, true, {}, true), NLM4_BLOCKED);
  local.reset();
  EXPECT_EQ(harness.programs.next().procedure, kGrantedProcedure);
  EXPECT_FALSE(local_may(Kind::kRead, 0, 0));
}

TEST_F(NlmLocks, AnOwnerWaitsForSeveralRangesAtATime) {
  ASSERT_EQ(harness.lock(file, kFirst, true, {0, 10}), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kElsewhere, true, {0, 10}, true), NLM4_BLOCKED);
  EXPECT_EQ(harness.lock(file, kElsewhere, true, {100, 10}), NLM4_GRANTED);
  ASSERT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  EXPECT_EQ(harness.programs.next().procedure, kGrantedProcedure);
}

TEST_F(NlmLocks, WhoOnlyWaitsIsNotForgotten) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kElsewhere, true, {}, true), NLM4_BLOCKED);
  const auto renewed = [this] {
    std::lock_guard guard(harness.nfs4.state().mutex);
    const nfs4::Client* client = harness.nfs4.state().clients.find_host("127.0.0.1 other");
    return client != nullptr && client->renewed == harness.nfs4.clock.now();
  };
  harness.nfs4.clock.move(std::chrono::seconds(80));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!renewed() && std::chrono::steady_clock::now() < end) {
  }
  EXPECT_TRUE(renewed());
}

TEST_F(NlmLocks, OneAddressHasOnlySoManyHosts) {
  xdr::nlm4_stats last = NLM4_GRANTED;
  int taken = 0;
  for (; taken < 1000; ++taken) {
    const auto at = static_cast<std::uint64_t>(taken);
    last = harness.lock(file, {"h" + std::to_string(taken), 1}, true, {at, 1});
    if (last != NLM4_GRANTED) break;
  }
  EXPECT_EQ(last, NLM4_DENIED_NOLOCKS);
  EXPECT_EQ(taken, 64);
  ASSERT_EQ(harness.unlock(file, {"h7", 1}, {7, 1}), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, {"new", 1}, true, {7, 1}), NLM4_GRANTED) << "h7 holds nothing";
  harness.set_peer("127.0.0.2");
  EXPECT_EQ(harness.lock(file, kFirst, true, {5000, 1}), NLM4_GRANTED) << "another's are its own";
}

TEST_F(NlmLocks, WhatIsLockedMayBeUnlockedWhateverTheExportsSayNow) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  ConfigProblems problems;
  harness.nfs4.server().exports.reload({}, &problems);
  EXPECT_EQ(harness.lock(file, kElsewhere), NLM4_STALE_FH);
  EXPECT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  std::lock_guard guard(harness.nfs4.state().mutex);
  EXPECT_TRUE(harness.nfs4.state().opens.empty());
}

/// An ordinary user of the host has no privileged port.
TEST_F(NlmLocks, OnlyAPortThatTheExportAdmitsLetsGoOfThem) {
  harness.nfs4.connection().set_transport(TransportKind::kTcp);
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  ASSERT_EQ(harness.lock(file, kSecond, true, {}, true), NLM4_BLOCKED);
  ASSERT_EQ(harness.share(file, "a", fsh4_access::FSA_R, fsh4_mode::FSM_DW), NLM4_GRANTED);
  harness.set_peer("127.0.0.1", 40000);
  EXPECT_EQ(harness.unlock(file, kFirst), NLM4_FAILED);
  EXPECT_EQ(harness.cancel(file, kSecond), NLM4_FAILED);
  EXPECT_EQ(harness.unshare(file, "a"), NLM4_FAILED);
  ExportOptions options = HarnessOptions::writable();
  options.secure = false;
  harness.nfs4.export_with(options);
  EXPECT_EQ(harness.cancel(file, kSecond), NLM4_GRANTED);
  EXPECT_EQ(harness.unshare(file, "a"), NLM4_GRANTED);
  ConfigProblems problems;
  harness.nfs4.server().exports.reload({}, &problems);
  EXPECT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED) << "not exported any more";
}

TEST_F(NlmLocks, WithoutDescriptorsIsLater) {
  harness.nfs4.server().files.forget(file);
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const xdr::nlm4_stats meanwhile = harness.lock(file, kFirst);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(meanwhile, NLM4_DENIED_GRACE_PERIOD);
  EXPECT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
}

TEST_F(NlmLocks, WhatAnAdministratorReleasesIsGivenToWhoWaits) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  ASSERT_EQ(harness.lock(file, kSecond, true, {}, true), NLM4_BLOCKED);
  std::map<nfs4::ClientId, nfs4::ServerState::Lost> lost;
  {
    std::lock_guard guard(harness.nfs4.state().mutex);
    const FilePin held = harness.nfs4.state().held_file(file.bytes());
    ASSERT_TRUE(held);
    EXPECT_TRUE(harness.nfs4.state().revoke_file(nfs4::file_key(*held), &lost));
  }
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost.begin()->second.locks, 1u);
  EXPECT_EQ(lost.begin()->second.opens, 0u) << "it has none";
  const HostPrograms::Seen call = harness.programs.next();
  EXPECT_EQ(call.as<xdr::nlm4_testargs>().alock.svid, kSecond.svid);
  EXPECT_EQ(harness.lock(file, kFirst), NLM4_DENIED);
}

TEST_F(NlmLocks, NobodyWaitsForWhatIsReleasedAndNotServedAnyMore) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  ASSERT_EQ(harness.lock(file, kSecond, true, {}, true), NLM4_BLOCKED);
  FileScope files;
  {
    std::lock_guard guard(harness.nfs4.state().mutex);
    const FilePin held = harness.nfs4.state().held_file(file.bytes());
    files = {{held->device()}, held->inode()};
  }
  harness.service().release(files, false);
  EXPECT_EQ(harness.cancel(file, kSecond), NLM4_GRANTED) << "it waited";
  ASSERT_EQ(harness.lock(file, kSecond, true, {}, true), NLM4_BLOCKED);
  harness.service().release(files, true);
  EXPECT_EQ(harness.cancel(file, kSecond), NLM4_DENIED) << "it does not wait any more";
  ASSERT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  EXPECT_EQ(harness.programs.waiting(), 0u);
}

TEST_F(NlmLocks, StrangersAreNotCalled) {
  FileHandle bad = file;
  bad.data[20] ^= std::byte{1};
  const xdr::nlm4_lockargs args{{}, false, true, harness.name(bad, kFirst, {}), false, 0};
  harness.run(nlm4_program(), static_cast<std::uint32_t>(nlmproc4::NLMPROC4_LOCK_MSG), args);
  // One that is called comes behind it.
  const xdr::nlm4_lockargs good{{}, false, true, harness.name(file, kFirst, {}), false, 0};
  harness.run(nlm4_program(), static_cast<std::uint32_t>(nlmproc4::NLMPROC4_LOCK_MSG), good);
  xdr::nlm4_res res;
  const HostPrograms::Seen call = harness.programs.next();
  xdr::Decoder decoder{ByteSpan(call.arguments)};
  ASSERT_TRUE(xdr::decode(decoder, res));
  EXPECT_EQ(res.stat, NLM4_GRANTED);
  EXPECT_EQ(harness.programs.waiting(), 0u);
}

TEST_F(NlmLocks, WaitingEndsWithCancel) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kSecond, true, {}, true), NLM4_BLOCKED);
  EXPECT_EQ(harness.cancel(file, kSecond, false), NLM4_DENIED) << "that it does not wait for";
  EXPECT_EQ(harness.cancel(file, kSecond), NLM4_GRANTED);
  EXPECT_EQ(harness.cancel(file, kSecond), NLM4_DENIED);
  ASSERT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  EXPECT_EQ(harness.programs.waiting(), 0u);
}

TEST_F(NlmLocks, WhoDoesNotWantItAnyMoreGivesItBack) {
  harness.programs.answer_granted(NLM4_DENIED);
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kElsewhere, true, {}, true), NLM4_BLOCKED);
  ASSERT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  ASSERT_EQ(harness.programs.next().procedure, kGrantedProcedure);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  auto got = NLM4_DENIED;
  while (got == NLM4_DENIED && std::chrono::steady_clock::now() < end)
    got = harness.lock(file, kFirst);
  EXPECT_EQ(got, NLM4_GRANTED);
}

TEST_F(NlmLocks, AHostThatCannotBeCalledDoesNotKeepWhatItWasGiven) {
  harness.programs.register_programs(false);
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kElsewhere, true, {}, true), NLM4_BLOCKED);
  ASSERT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  // First it is given to whoever waits, and then it is free.
  while (harness.test(file, kFirst).stat == NLM4_GRANTED &&
         std::chrono::steady_clock::now() < end) {
  }
  while (harness.test(file, kFirst).stat != NLM4_GRANTED &&
         std::chrono::steady_clock::now() < end) {
  }
  EXPECT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
}

TEST_F(NlmLocks, WhoAsksAgainIsToldOfWhatItWasGiven) {
  harness.programs.answer_granted(NLM4_DENIED_GRACE_PERIOD);
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kElsewhere, true, {}, true), NLM4_BLOCKED);
  ASSERT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  ASSERT_EQ(harness.programs.next().procedure, kGrantedProcedure);
  ASSERT_EQ(harness.programs.next().procedure, kGrantedProcedure) << "and is called again";
  EXPECT_EQ(harness.lock(file, kElsewhere, true, {}, true), NLM4_GRANTED);
}

TEST_F(NlmLocks, ACircleOfThoseWhoWaitIsRefused) {
  const FileHandle second = harness.make_file("second");
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  ASSERT_EQ(harness.lock(second, kElsewhere), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kElsewhere, true, {}, true), NLM4_BLOCKED);
  EXPECT_EQ(harness.lock(second, kFirst, true, {}, true), NLM4_DEADLCK);
  EXPECT_EQ(harness.lock(second, kFirst), NLM4_DENIED) << "not to wait is no circle";
}

TEST_F(NlmLocks, NonMonitoredOnesDoNotWait) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  const xdr::nlm4_lockargs args{{}, true, true, harness.name(file, kSecond, {}), false, 0};
  EXPECT_EQ(harness.call<xdr::nlm4_res>(nlmproc4::NLMPROC4_NM_LOCK, args).stat, NLM4_DENIED);
}

TEST_F(NlmLocks, ResultsOfMessagesAreCalls) {
  const xdr::nlm4_lockargs args{{}, false, true, harness.name(file, kFirst, {}), false, 0};
  harness.run(nlm4_program(), static_cast<std::uint32_t>(nlmproc4::NLMPROC4_LOCK_MSG), args);
  const HostPrograms::Seen call = harness.programs.next();
  EXPECT_EQ(call.procedure, static_cast<std::uint32_t>(nlmproc4::NLMPROC4_LOCK_RES));
  xdr::nlm4_res res;
  xdr::Decoder decoder{ByteSpan(call.arguments)};
  ASSERT_TRUE(xdr::decode(decoder, res));
  EXPECT_EQ(res.stat, NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kSecond), NLM4_DENIED);
}

TEST_F(NlmLocks, SharesDenyWhatTheySay) {
  EXPECT_EQ(harness.share(file, "a", fsh4_access::FSA_R, fsh4_mode::FSM_DW), NLM4_GRANTED);
  EXPECT_EQ(harness.share(file, "b", fsh4_access::FSA_W, fsh4_mode::FSM_DN), NLM4_DENIED);
  EXPECT_EQ(harness.share(file, "b", fsh4_access::FSA_R, fsh4_mode::FSM_DN), NLM4_GRANTED);
  EXPECT_EQ(harness.share(file, "a", fsh4_access::FSA_R, fsh4_mode::FSM_DR), NLM4_DENIED);
  EXPECT_EQ(harness.unshare(file, "b"), NLM4_GRANTED);
  EXPECT_EQ(harness.share(file, "a", fsh4_access::FSA_NONE, fsh4_mode::FSM_DRW), NLM4_GRANTED)
      << "in place of what it had";
  EXPECT_EQ(harness.nfs4.open(harness.nfs4.root(), "file").status, NFS4ERR_SHARE_DENIED);
  EXPECT_EQ(harness.unshare(file, "a"), NLM4_GRANTED);
  EXPECT_EQ(harness.nfs4.open(harness.nfs4.root(), "file").status, NFS4_OK);
}

TEST_F(NlmLocks, ASharesValuesAreChecked) {
  EXPECT_EQ(harness.share(file, "a", static_cast<fsh4_access>(4), fsh4_mode::FSM_DN), NLM4_FAILED);
  EXPECT_EQ(harness.share(file, "a", fsh4_access::FSA_R, static_cast<fsh4_mode>(4)), NLM4_FAILED);
}

TEST_F(NlmLocks, NothingIsHeldOfAFileThatNobodyLocks) {
  ASSERT_EQ(harness.lock(file, kFirst, true, {0, 10}), NLM4_GRANTED);
  ASSERT_EQ(harness.lock(file, kFirst, true, {20, 10}), NLM4_GRANTED);
  ASSERT_EQ(harness.share(file, "a", fsh4_access::FSA_R, fsh4_mode::FSM_DN), NLM4_GRANTED);
  EXPECT_EQ(harness.unshare(file, "a"), NLM4_GRANTED);
  EXPECT_EQ(harness.unlock(file, kFirst), NLM4_GRANTED);
  std::lock_guard guard(harness.nfs4.state().mutex);
  EXPECT_TRUE(harness.nfs4.state().opens.empty());
  EXPECT_FALSE(harness.nfs4.state().held_file(file.bytes()));
}

TEST_F(NlmLocks, ArgumentsThatAreNoneAreRefused) {
  for (const std::uint32_t procedure : {1u, 2u, 3u, 4u, 6u, 7u, 8u, 9u, 16u, 20u, 21u, 22u}) {
    harness.run(nlm4_program(), procedure, xdr::nlm4_res{});
    EXPECT_EQ(harness.outcome, Outcome::kGarbageArgs) << procedure;
  }
}

TEST_F(NlmLocks, WhoHasALockMayAskForItAgainWhateverTheFilesModeIs) {
  NFSRDMA_NEEDS_ROOT();
  harness.set_caller(user(4711, 4711));
  ASSERT_EQ(harness.lock(file, kFirst, true, {0, 10}), NLM4_GRANTED);
  ASSERT_EQ(::chmod(harness.nfs4.path("file").c_str(), 0600), 0);
  EXPECT_EQ(harness.lock(file, kFirst, true, {0, 10}), NLM4_GRANTED);
  EXPECT_EQ(harness.lock(file, kSecond, true, {20, 10}), NLM4_DENIED_NOLOCKS);
}

TEST_F(NlmLocks, StatusTellsHostsFromClientsOfNfs4) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  const nfs4::StateReport all = report_state(harness.nfs4.state(), 10);
  const auto host = std::ranges::find_if(all.clients, [](const auto& c) { return c.locks_by_nlm; });
  ASSERT_NE(host, all.clients.end());
  EXPECT_EQ(host->name, "127.0.0.1 host");
  EXPECT_EQ(host->opens.locks, 1u);
  JsonWriter json;
  json.begin_object();
  json.key("nfs4");
  write_state(json, all);
  json.end_object();
  const std::string text = json.take();
  EXPECT_THAT(text, ::testing::HasSubstr("\"protocol\":\"NLM\""));
  EXPECT_THAT(text, ::testing::HasSubstr("\"protocol\":\"4.2\",\"minor_version\":2"));
}

TEST_F(NlmLocks, AreShownAsLocksAndOpensOfNfs4AsWhatTheyAre) {
  ASSERT_EQ(harness.lock(file, kFirst), NLM4_GRANTED);
  ASSERT_EQ(harness.nfs4.open(harness.nfs4.root(), "file", xdr::OPEN4_SHARE_ACCESS_READ).status,
            NFS4_OK);
  const auto shown = [this] {
    std::lock_guard guard(harness.nfs4.state().mutex);
    nfs4::FileKey key;
    harness.nfs4.state().visit_held({}, 1, [&key](const nfs4::FileKey& its, const FileEntry&) {
      key = its;
      return false;
    });
    return harness.nfs4.state().opens.of_file(key);
  }();
  EXPECT_EQ(shown.locks.size(), 1u);
  ASSERT_EQ(shown.opens.size(), 1u) << "what NLM's locks stand on is nobody's open";
  EXPECT_EQ(shown.opens[0].client, harness.nfs4.session.client);
  EXPECT_EQ(shown.opens[0].share, (nfs4::Share{nfs4::kShareRead, 0}));
}

}  // namespace
}  // namespace nfsrdma::test
