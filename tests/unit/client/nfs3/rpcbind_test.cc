// SPDX-License-Identifier: Apache-2.0
// What is asked of a rpcbind, and what is made of its answers.
#include "client/nfs3/rpcbind.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include "tests/unit/client/fake_environment.h"
#include "xdr/rpcb.h"

namespace nfsrdma {
namespace {

class RpcbindTest : public testing::Test {
 protected:
  void ask(const char* server) {
    done_.reset();
    auto environment = std::make_unique<FakeEnvironment>();
    environment_ = environment.get();
    RpcClientOptions options = impatient_options(true);
    options.candidates = {
        {TransportKind::kTcp, SocketAddress::parse(server, 111).value(), nullptr}};
    rpc_ = std::make_unique<RpcClient>(std::move(environment), options);
    group_.spawn(keep());
    environment_->settle();
  }
  Task<void> keep() { done_ = co_await nfs3::ask_rpcbind(*rpc_, 100021, 4, nullptr, &detail_); }

  /// The version of the call that is out, and its arguments.
  template <typename Args>
  std::uint32_t asked(Args* args) {
    xdr::Decoder in(environment_->transport()->out().front()->head);
    xdr::rpc_msg header;
    EXPECT_TRUE(xdr::decode(in, header));
    EXPECT_EQ(header.cbody.prog, xdr::kRpcbProgram);
    EXPECT_EQ(header.cbody.proc, 3u);  // GETPORT and GETADDR
    EXPECT_TRUE(xdr::decode(in, *args));
    return header.cbody.vers;
  }
  template <typename Res>
  void answer(const Res& res) {
    environment_->transport()->answer([&](xdr::Encoder& out) { xdr::encode(out, res); });
  }
  void expect_port(std::uint32_t port) {
    ASSERT_TRUE(done_.has_value());
    ASSERT_TRUE(done_->ok()) << done_->error().message();
    ASSERT_TRUE(done_->value().has_value());
    EXPECT_EQ(done_->value()->port(), port);
  }

  FakeEnvironment* environment_ = nullptr;
  std::unique_ptr<RpcClient> rpc_;
  std::string detail_;
  std::optional<Result<std::optional<SocketAddress>>> done_;
  TaskGroup group_;
};

TEST_F(RpcbindTest, OverIPv4ItIsAskedForThePort) {
  ask("192.0.2.1");
  environment_->transport()->accept();
  xdr::mapping args;
  EXPECT_EQ(asked(&args), xdr::kPmapVersion);
  EXPECT_EQ(args.prog, 100021u);
  EXPECT_EQ(args.vers, 4u);
  EXPECT_EQ(args.prot, static_cast<std::uint32_t>(IPPROTO_TCP));
  answer(xdr::PmapPort{32803});
  expect_port(32803);
  EXPECT_EQ(done_->value()->host_text(), "192.0.2.1");
}

TEST_F(RpcbindTest, OverIPv6ForTheAddressOfWhichThePortCounts) {
  ask("2001:db8::1");
  environment_->transport()->accept();
  xdr::rpcb args;
  EXPECT_EQ(asked(&args), xdr::kRpcbVersion4);
  EXPECT_EQ(args.r_netid, "tcp6");
  answer(xdr::RpcbAddress{"::.128.35"});
  expect_port(32803);
  EXPECT_EQ(done_->value()->host_text(), "2001:db8::1");
}

TEST_F(RpcbindTest, AnOldOneIsAskedForThePortOverIPv6Too) {
  ask("2001:db8::1");
  environment_->transport()->accept();
  environment_->transport()->answer({}, xdr::accept_stat::PROG_MISMATCH);
  xdr::mapping args;
  EXPECT_EQ(asked(&args), xdr::kPmapVersion);
  answer(xdr::PmapPort{2049});
  expect_port(2049);
}

TEST_F(RpcbindTest, WhatIsNotRegisteredIsNowhere) {
  for (const char* server : {"192.0.2.1", "2001:db8::1"}) {
    ask(server);
    environment_->transport()->accept();
    const bool v6 = std::string_view(server).find(':') != std::string_view::npos;
    if (v6) answer(xdr::RpcbAddress{""});
    if (!v6) answer(xdr::PmapPort{0});
    ASSERT_TRUE(done_.has_value() && done_->ok());
    EXPECT_FALSE(done_->value().has_value());
  }
}

TEST_F(RpcbindTest, NonsenseIsAnError) {
  ask("192.0.2.1");
  environment_->transport()->accept();
  answer(xdr::PmapPort{65536 + 111});
  ASSERT_TRUE(done_.has_value());
  EXPECT_FALSE(done_->ok());
  EXPECT_NE(detail_, "");
  for (const char* text : {"nowhere", "::.1", "::.256.1", ".1.2"}) {
    ask("2001:db8::1");
    environment_->transport()->accept();
    answer(xdr::RpcbAddress{text});
    ASSERT_TRUE(done_.has_value());
    EXPECT_FALSE(done_->ok()) << text;
  }
}

TEST_F(RpcbindTest, NobodyThereIsAnErrorThatSaysSo) {
  ask("192.0.2.1");
  environment_->transport()->refuse(ECONNREFUSED);
  environment_->settle();
  ASSERT_TRUE(done_.has_value());
  EXPECT_FALSE(done_->ok());
  EXPECT_NE(detail_.find("192.0.2.1:111"), std::string::npos) << detail_;
}

}  // namespace
}  // namespace nfsrdma
