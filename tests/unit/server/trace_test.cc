// SPDX-License-Identifier: Apache-2.0
// What is told of calls: records as text, filters, batches of a shard.
#include "server/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/call_record.h"
#include "server/call_tap.h"
#include "xdr/nfs4_operations.h"

namespace nfsrdma {
namespace {

using ::testing::HasSubstr;

CallRecord read_record() {
  CallRecord record;
  record.connection = 7;
  record.peer = SocketAddress::parse("192.0.2.7", 700).value();
  record.transport = TransportKind::kIwarp;
  record.xid = 99;
  record.program = "NFSv3";
  record.procedure = "READ";
  record.uid = 1000;
  record.has_status = true;
  record.request_bytes = 120;
  record.reply_bytes = 4216;
  record.stages = {.arrived = 1'000'000,
                   .dispatched = 1'011'000,
                   .begun = 1'033'000,
                   .ran = 1'077'000,
                   .committed = 1'132'000,
                   .replied = 1'198'000};
  return record;
}

CallRecord compound_record() {
  CallRecord record = read_record();
  record.program = "NFSv4";
  record.procedure = "COMPOUND";
  record.operations[0] = static_cast<std::uint8_t>(xdr::nfs_opnum4::OP_SEQUENCE);
  record.operations[1] = static_cast<std::uint8_t>(xdr::nfs_opnum4::OP_PUTFH);
  record.operations[2] = static_cast<std::uint8_t>(xdr::nfs_opnum4::OP_WRITE);
  record.operation_count = 3;
  record.more_operations = 2;
  record.status = 70;  // NFS4ERR_STALE
  return record;
}

TraceFilter filter(const std::string& request) {
  TraceFilter out;
  std::string problem;
  EXPECT_TRUE(TraceFilter::parse(*JsonValue::parse(request), &out, &problem)) << problem;
  return out;
}

TEST(CallRecordText, StagesAreTimesAndNotMoments) {
  const std::string text = describe_call(read_record());
  EXPECT_THAT(text, HasSubstr("NFSv3 READ of 192.0.2.7:700 over iwarp by uid 1000 took 198 us: "
                              "receive 11, wait 22, run 44, commit 55; OK"));
  const JsonValue json = *JsonValue::parse(call_json(read_record()));
  EXPECT_EQ(json["receive_us"].count(), 11u);
  EXPECT_EQ(json["wait_us"].count(), 22u);
  EXPECT_EQ(json["run_us"].count(), 44u);
  EXPECT_EQ(json["commit_us"].count(), 55u);
  EXPECT_EQ(json["total_us"].count(), 198u);
  EXPECT_EQ(json["request_bytes"].count(), 120u);
  EXPECT_EQ(json["reply_bytes"].count(), 4216u);
  EXPECT_EQ(json["client"].text(), "192.0.2.7");
}

TEST(CallRecordText, AStageThatWasNotComeToTookNoTime) {
  CallRecord record = read_record();
  record.stages.committed = 0;
  record.stages.dispatched = 0;
  const JsonValue json = *JsonValue::parse(call_json(record));
  EXPECT_EQ(json["commit_us"].count(), 0u);
  EXPECT_EQ(json["receive_us"].count(), 0u);
  EXPECT_EQ(json["wait_us"].count(), 0u);
}

TEST(CallRecordText, OperationsAndStatusHaveTheirNames) {
  EXPECT_EQ(describe_operations(compound_record()), "SEQUENCE PUTFH WRITE and 2 more");
  EXPECT_EQ(describe_status(compound_record()), "STALE");
  EXPECT_EQ(describe_operations(read_record()), "READ");
  CallRecord record = read_record();
  record.status = 2;
  EXPECT_EQ(describe_status(record), "NOENT");
  record.status = 4711;
  EXPECT_EQ(describe_status(record), "4711");
  record.has_status = false;
  EXPECT_EQ(describe_status(record), "-");
  CallRecord illegal = compound_record();
  illegal.operations[1] = 255;
  EXPECT_EQ(describe_operations(illegal), "SEQUENCE ILLEGAL WRITE and 2 more");
}

TEST(TraceFilterTest, WithoutConditionsAllMatch) {
  EXPECT_TRUE(filter("{}").matches(read_record()));
}

TEST(TraceFilterTest, EachConditionHasToHold) {
  EXPECT_TRUE(filter(R"({"client":"192.0.2.7"})").matches(read_record()));
  EXPECT_FALSE(filter(R"({"client":"192.0.2.8"})").matches(read_record()));
  EXPECT_TRUE(filter(R"({"operation":"read"})").matches(read_record()));
  EXPECT_FALSE(filter(R"({"operation":"write"})").matches(read_record()));
  EXPECT_TRUE(filter(R"({"operation":"WRITE"})").matches(compound_record()));
  EXPECT_TRUE(filter(R"({"operation":"compound"})").matches(compound_record()));
  EXPECT_FALSE(filter(R"({"operation":"READ"})").matches(compound_record()));
  EXPECT_TRUE(filter(R"({"fabric":"iwarp"})").matches(read_record()));
  EXPECT_FALSE(filter(R"({"fabric":"tcp"})").matches(read_record()));
  EXPECT_TRUE(filter(R"({"slower_than_us":198})").matches(read_record()));
  EXPECT_FALSE(filter(R"({"slower_than_us":199})").matches(read_record()));
  EXPECT_FALSE(filter(R"({"slower_than_us":18446744073709552})").matches(read_record()));
  EXPECT_FALSE(filter(R"({"errors":true})").matches(read_record()));
  EXPECT_TRUE(filter(R"({"errors":true})").matches(compound_record()));
}

TEST(TraceFilterTest, AnAddressIsTakenInAnyForm) {
  CallRecord record = read_record();
  record.peer = SocketAddress::parse("2001:db8::1", 700).value();
  EXPECT_TRUE(filter(R"({"client":"2001:DB8:0::1"})").matches(record));
}

TEST(TraceFilterTest, ANameIsNoAddress) {
  TraceFilter out;
  std::string problem;
  EXPECT_FALSE(
      TraceFilter::parse(*JsonValue::parse(R"({"client":"host.example"})"), &out, &problem));
  EXPECT_THAT(problem, HasSubstr("'host.example' is no numeric address"));
}

TEST(TraceFilterTest, AFabricIsOneThatThereIs) {
  TraceFilter out;
  std::string problem;
  EXPECT_FALSE(TraceFilter::parse(*JsonValue::parse(R"({"fabric":"foo"})"), &out, &problem));
  EXPECT_EQ(problem, "fabric: 'foo' is none of verbs, iwarp, tcp");
}

TEST(TraceFilterTest, AnOperationIsOneThatThereIs) {
  constexpr ProcedureRow kRows[] = {{.name = "NULL"}, {.name = "READDIRPLUS"}};
  const ProgramTable programs[] = {{100003, 3, "NFSv3", kRows}};
  std::string problem;
  EXPECT_TRUE(filter("{}").names_one_of(programs, &problem));
  EXPECT_TRUE(filter(R"({"operation":"readdirplus"})").names_one_of(programs, &problem));
  EXPECT_TRUE(filter(R"({"operation":"exchange_id"})").names_one_of(programs, &problem));
  EXPECT_FALSE(filter(R"({"operation":"READDIRPLUSS"})").names_one_of(programs, &problem));
  EXPECT_EQ(problem,
            "operation: 'READDIRPLUSS' is no procedure or operation of this server, did you mean "
            "READDIRPLUS?");
  EXPECT_FALSE(filter(R"({"operation":"zzzzzzzzzzzzz"})").names_one_of(programs, &problem));
  EXPECT_EQ(problem, "operation: 'ZZZZZZZZZZZZZ' is no procedure or operation of this server");
}

class CallTapTest : public testing::Test {
 protected:
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  std::vector<std::shared_ptr<const CallBatch>> batches_;
  CallTap tap_{*loop_, [this](std::shared_ptr<const CallBatch> batch) {
                 batches_.push_back(std::move(batch));
               }};
};

TEST_F(CallTapTest, FullBatchesGoAtOnceAndOthersSoon) {
  for (std::size_t i = 0; i < CallTap::kBatch + 1; ++i)
    tap_.on_call_answered(read_record());
  ASSERT_EQ(batches_.size(), 1u);
  EXPECT_EQ(batches_[0]->calls.size(), CallTap::kBatch);
  for (int i = 0; i < 100 && batches_.size() < 2; ++i)
    loop_->turn(std::chrono::milliseconds(100));
  ASSERT_EQ(batches_.size(), 2u);
  EXPECT_EQ(batches_[1]->calls.size(), 1u);
}

TEST_F(CallTapTest, WhatNobodyTakesIsCountedAndNotKept) {
  // All that may be under way, one batch that waits, and ten calls too many.
  const std::size_t kept = (CallTap::kMostUnderWay + 1) * CallTap::kBatch;
  for (std::size_t i = 0; i < kept + 10; ++i)
    tap_.on_call_answered(read_record());
  ASSERT_EQ(batches_.size(), CallTap::kMostUnderWay);
  batches_.clear();
  for (int i = 0; i < 100 && batches_.empty(); ++i)
    loop_->turn(std::chrono::milliseconds(100));
  ASSERT_EQ(batches_.size(), 1u);
  EXPECT_EQ(batches_[0]->calls.size(), CallTap::kBatch);
  EXPECT_EQ(batches_[0]->lost, 10u);
}

}  // namespace
}  // namespace nfsrdma
