// SPDX-License-Identifier: Apache-2.0
// One capture at a time, from the request to the last block.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpcrdma/base/log.h"
#include "server/capture/capture.h"
#include "server/shard.h"

namespace nfsrdma {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class FakeStream final : public ControlStream {
 public:
  bool send(std::string_view bytes) override {
    if (!open_ || !has_room) return false;
    sent += bytes;
    return true;
  }
  bool open() const override { return open_; }
  void finish() override {
    finished = true;
    open_ = false;
  }
  void on_gone(std::function<void()> gone) override { gone_ = std::move(gone); }
  void leave() {
    open_ = false;
    if (auto gone = std::exchange(gone_, nullptr)) gone();
  }
  std::string sent;
  bool finished = false;
  bool has_room = true;

 private:
  bool open_ = true;
  std::function<void()> gone_;
};

class CaptureSessionTest : public testing::Test {
 protected:
  std::shared_ptr<FakeStream> start(const std::string& request) {
    auto stream = std::make_shared<FakeStream>();
    capture_.start(*JsonValue::parse(request), stream);
    return stream;
  }
  std::string stop(const std::string& id) {
    return capture_.stop(*JsonValue::parse(R"({"id":")" + id + "\"}"));
  }
  static bool ends_with_statistics(const std::string& sent) {
    return sent.size() > 76 &&
           sent.substr(sent.size() - 76, 8) == std::string("\5\0\0\0\x4c\0\0\0", 8);
  }
  std::unique_ptr<EventLoop> loop_ = std::move(EventLoop::create()).value();
  std::vector<std::unique_ptr<Shard>> shards_;
  Capture capture_{*loop_, shards_};
};

TEST_F(CaptureSessionTest, BeginsWithTheHeadAndEndsWithStatistics) {
  const auto stream = start(R"({"id":"me"})");
  EXPECT_THAT(stream->sent, StartsWith("\x0a\x0d\x0d\x0a"));
  EXPECT_THAT(stream->sent, HasSubstr("nfs-rdmad "));
  EXPECT_FALSE(ends_with_statistics(stream->sent));
  EXPECT_EQ(stop("me"), R"({"version":1})");
  EXPECT_TRUE(ends_with_statistics(stream->sent));
  EXPECT_TRUE(stream->finished);
}

TEST_F(CaptureSessionTest, OneAtATime) {
  const auto first = start(R"({"id":"first"})");
  const auto second = start(R"({"id":"second"})");
  EXPECT_THAT(second->sent, HasSubstr("another capture is under way"));
  EXPECT_TRUE(second->finished);
  EXPECT_THAT(stop("second"), HasSubstr("no such capture"));
  EXPECT_FALSE(first->finished);
  stop("first");
  EXPECT_THAT(start(R"({"id":"third"})")->sent, HasSubstr("nfs-rdmad "));
}

TEST_F(CaptureSessionTest, AReaderThatGoesMakesRoomForTheNext) {
  const auto first = start(R"({"id":"first"})");
  first->leave();
  const auto second = start(R"({"id":"second"})");
  EXPECT_THAT(second->sent, HasSubstr("nfs-rdmad "));
  EXPECT_THAT(stop("first"), HasSubstr("no such capture"));
}

std::string& logged() {
  static std::string text;
  return text;
}

/// However it ends: nfs-rdma-security(7) promises it.
TEST_F(CaptureSessionTest, TheEndIsLoggedOnce) {
  set_log_sink([](int, std::string_view line, std::span<const LogField>) {
    logged() += std::string(line) + "\n";
  });
  const auto first = start(R"({"id":"first"})");
  logged().clear();
  first->leave();
  EXPECT_EQ(logged(), "the capture ended, since its reader has gone: 0 packets, 0 lost\n");
  start(R"({"id":"second"})");
  logged().clear();
  stop("second");
  EXPECT_EQ(logged(), "the capture ended: 0 packets, 0 lost\n");
  logged().clear();
  {
    Capture short_lived(*loop_, shards_);
    short_lived.start(*JsonValue::parse("{}"), std::make_shared<FakeStream>());
    logged().clear();
  }
  EXPECT_EQ(logged(), "the capture ended with the server: 0 packets, 0 lost\n");
  set_log_sink(nullptr);
}

TEST_F(CaptureSessionTest, TheEndWaitsUntilTheReaderHasRoom) {
  const auto stream = start(R"({"id":"me"})");
  stream->has_room = false;
  stop("me");
  EXPECT_FALSE(stream->finished);
  stream->has_room = true;
  for (int i = 0; i < 100 && !stream->finished; ++i)
    loop_->turn(std::chrono::milliseconds(100));
  EXPECT_TRUE(stream->finished);
  EXPECT_TRUE(ends_with_statistics(stream->sent));
}

/// The last second is what somebody who looks for the reason of an end wants to see.
TEST_F(CaptureSessionTest, TheServersEndWaitsForTheReaderAndIsLoggedAsThat) {
  set_log_sink([](int, std::string_view line, std::span<const LogField>) {
    logged() += std::string(line) + "\n";
  });
  const auto stream = start(R"({"id":"me"})");
  stream->has_room = false;
  logged().clear();
  loop_->post([&] { loop_->post([&] { stream->has_room = true; }); });
  capture_.end(std::chrono::steady_clock::now() + std::chrono::seconds(60));
  EXPECT_TRUE(stream->finished);
  EXPECT_TRUE(ends_with_statistics(stream->sent));
  EXPECT_EQ(logged(), "the capture ended with the server: 0 packets, 0 lost\n");
  set_log_sink(nullptr);
}

TEST_F(CaptureSessionTest, TheServersEndDoesNotWaitForeverForAReader) {
  set_log_sink([](int, std::string_view line, std::span<const LogField>) {
    logged() += std::string(line) + "\n";
  });
  const auto stream = start(R"({"id":"me"})");
  stream->has_room = false;
  logged().clear();
  capture_.end(std::chrono::steady_clock::now());
  stream->leave();
  EXPECT_EQ(logged(),
            "the capture ended with the server: 0 packets, 0 lost\n"
            "the last packets are missing in the capture: its reader did not take them in time\n");
  set_log_sink(nullptr);
}

TEST_F(CaptureSessionTest, ABadRequestIsRefused) {
  const auto stream = start(R"({"id":"me","fabric":"ether"})");
  EXPECT_THAT(stream->sent, HasSubstr("'ether' is none of"));
  EXPECT_TRUE(stream->finished);
  EXPECT_THAT(stop("me"), HasSubstr("no such capture"));
}

}  // namespace
}  // namespace nfsrdma
