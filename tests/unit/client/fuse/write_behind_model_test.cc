// SPDX-License-Identifier: Apache-2.0
// Random writes, answers in any order, restarts and commits against a model: in the end the
// server's file must equal what the applications wrote, restarts may never lose or resurrect a
// byte, and at no time may two WRITEs of one byte be under way.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "client/fuse/write_behind.h"

namespace nfsrdma {
namespace {

constexpr std::size_t kFileSize = 200;

/// A server that keeps unstable data apart and loses it when it restarts.
struct ModelServer {
  std::string stable = std::string(kFileSize, '.');
  std::string cached = stable;
  std::uint64_t boot = 1;

  void write(const Extent& extent) {
    cached.replace(extent.offset, extent.length, std::string(as_text(extent.bytes())));
  }
  void commit() { stable = cached; }
  void restart() {
    cached = stable;
    ++boot;
  }
};

class ModelRun {
 public:
  explicit ModelRun(unsigned seed) : random_(seed) {}

  void step() {
    switch (random_() % 6) {
      case 0:
      case 1:
        write();
        break;
      case 2:
        send(random_() % 2 == 0);
        break;
      case 3:
        answer();
        break;
      case 4:
        commit();
        break;
      case 5:
        if (random_() % 8 == 0) server_.restart();
        break;
    }
  }
  void finish() {
    for (int rounds = 0; !behind_.stable() && rounds < 100; ++rounds) {
      send(true);
      while (!flights_.empty())
        answer();
      commit();
    }
  }
  void check() {
    ASSERT_TRUE(behind_.stable());
    EXPECT_EQ(server_.stable, expected_);
  }

 private:
  void write() {
    const std::size_t offset = random_() % kFileSize;
    const std::size_t length = 1 + random_() % std::min<std::size_t>(40, kFileSize - offset);
    std::string text(length, static_cast<char>('a' + random_() % 26));
    expected_.replace(offset, length, text);
    const CallerRef& caller = callers_[random_() % 2];
    if (random_() % 2 == 0) {
      behind_.write(offset, as_bytes(text), caller);
    } else {
      BlockRef block = std::make_shared<DataBlock>(length + 8);
      std::memcpy(block->data() + 8, text.data(), length);
      behind_.adopt(offset, block, 8, static_cast<std::uint32_t>(length), caller);
    }
  }
  void send(bool all) {
    while (auto flight = behind_.next(all)) {
      for (auto& other : flights_) {
        ASSERT_TRUE(other->extent.end() <= (*flight)->extent.offset ||
                    (*flight)->extent.end() <= other->extent.offset);
      }
      flights_.push_back(*flight);
    }
  }
  void answer() {
    if (flights_.empty()) return;
    const std::size_t at = random_() % flights_.size();
    auto flight = flights_[at];
    flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(at));
    switch (random_() % 8) {
      case 0:
        behind_.returned(flight);
        return;
      case 1:  // short
        if (flight->extent.length > 1) {
          Extent part = flight->extent;
          part.length /= 2;
          server_.write(part);
          behind_.written(flight, part.length, false, server_.boot);
          return;
        }
        [[fallthrough]];
      default:
        server_.write(flight->extent);
        behind_.written(flight, flight->extent.length, false, server_.boot);
    }
  }
  void commit() {
    const std::uint64_t mark = behind_.commit_mark();
    server_.commit();
    behind_.committed(mark, server_.boot);
  }

  std::mt19937 random_;
  WriteBehind behind_{16};
  ModelServer server_;
  std::string expected_ = std::string(kFileSize, '.');
  std::vector<WriteBehind::FlightRef> flights_;
  CallerRef callers_[2] = {std::make_shared<const Caller>(Caller{1, 1, {}}),
                           std::make_shared<const Caller>(Caller{2, 2, {}})};
};

TEST(WriteBehindModel, TheServerEndsWithWhatWasWritten) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ModelRun run(seed);
    for (int i = 0; i < 200; ++i)
      run.step();
    run.finish();
    run.check();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace nfsrdma
