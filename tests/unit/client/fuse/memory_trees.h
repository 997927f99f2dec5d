// SPDX-License-Identifier: Apache-2.0
// Servers in memory as the trees of a ReferringRemote, and the file system of a mount on it.
#pragma once

#include "client/fuse/referring_remote.h"
#include "tests/unit/client/fuse/file_system_fixture.h"

namespace nfsrdma {

/// A server in memory as a tree.
class MemoryTree final : public OpenTree {
 public:
  MemoryTree(MemoryRemote& server, MountSettings settings, std::vector<std::string>& log)
      : server_(server), settings_(std::move(settings)), log_(log) {}
  Remote& remote() override { return server_; }
  const MountSettings& settings() const override { return settings_; }
  Task<void> end() override {
    log_.push_back("end " + settings_.host);
    co_return;
  }
  void abort() override { log_.push_back("abort " + settings_.host); }
  void stop_waiting() override {}
  std::uint64_t replies() const override { return 0; }
  void describe(JsonWriter&) const override {}

 private:
  MemoryRemote& server_;
  MountSettings settings_;
  std::vector<std::string>& log_;
};

class MemoryWays final : public TreeWays {
 public:
  Task<Result<std::unique_ptr<OpenTree>>> open(const MountSettings& from, const Referral& referral,
                                               ReferralTrail* trail, std::string* detail) override {
    const ReferralTarget& target = referral.targets.front();
    log.push_back("open " + target.text() + " from " + from.host);
    MountSettings settings = settings_at(from, target, target.path);
    NFSRDMA_CO_TRY(*trail, trail->with(settings, detail));
    while (holding)
      co_await gate.wait();
    const auto it = servers.find(target.host);
    if (it == servers.end()) {
      *detail = "nobody there";
      co_return Error{Errc::kSystem, EHOSTUNREACH, "connect"};
    }
    co_return std::unique_ptr<OpenTree>(
        std::make_unique<MemoryTree>(*it->second, std::move(settings), log));
  }
  std::size_t opened() const {
    return static_cast<std::size_t>(std::count_if(
        log.begin(), log.end(), [](const std::string& line) { return line.starts_with("open "); }));
  }

  std::map<std::string, MemoryRemote*> servers;
  std::vector<std::string> log;
  bool holding = false;
  WaitList gate;
};

inline Referral to(const std::string& host, const std::string& path = "/x") {
  Referral referral;
  referral.root = "/away";
  referral.targets = {{host, 0, path}};
  referral.fsid = 7;
  referral.mounted_on = 4242;
  return referral;
}

class MemoryTreesTest : public testing::Test {
 protected:
  MemoryTreesTest() : loop_(EventLoop::create().value()) {
    ways_.servers["b"] = &b_;
    ways_.servers["c"] = &c_;
    build(true);
  }
  ~MemoryTreesTest() override {
    if (fs_ != nullptr) run(fs_->finish());
    fs_.reset();
    remote_->stop();
    run(remote_->end(true));
  }
  void build(bool follow, bool soft = false) {
    MountSettings settings;
    settings.soft = soft;
    settings.host = "a";
    remote_ = std::make_unique<ReferringRemote>(*loop_, a_, ways_, settings, follow);
  }
  template <typename T>
  T run(Task<T> task) {
    return run_to_completion(*loop_, std::move(task));
  }
  LookupResult look(const FileHandle& directory, const std::string& name) {
    MaybeAttributes of_directory;
    auto found = run(remote_->lookup(me_, directory, name, &of_directory));
    EXPECT_TRUE(found.ok()) << name << ": " << found.error().message();
    return found.ok() ? *found : LookupResult{};
  }
  template <typename T>
  static int error_of(const Result<T>& result) {
    return result.ok() ? 0 : errno_of(result.error());
  }
  template <typename T>
  static Task<void> keep(Task<Result<T>> task, std::optional<Result<T>>* out) {
    out->emplace(co_await std::move(task));
  }
  /// A file system on it, as a mount has it.
  FileSystem& fs() {
    if (fs_ == nullptr) {
      KernelCache kernel;
      kernel.drop_data = [](std::uint64_t, std::function<void()> done) { done(); };
      kernel.drop_attributes = [](std::uint64_t) {};
      kernel.drop_attributes_soon = [](std::uint64_t) {};
      kernel.expire_name = [](std::uint64_t, const std::string&) {};
      fs_ = std::make_unique<FileSystem>(*loop_, *remote_, FileSystemOptions{}, std::move(kernel));
      EXPECT_EQ(run(fs_->start(me_)), 0);
    }
    return *fs_;
  }
  NodeRef node(const NodeRef& directory, const std::string& name) {
    NodeRef found;
    EXPECT_EQ(run(fs().lookup(me_, directory, name, &found)), 0) << name;
    if (found != nullptr) fs().nodes.reference(found);
    return found;
  }

  MemoryRemote a_, b_, c_;
  std::unique_ptr<EventLoop> loop_;
  MemoryWays ways_;
  std::unique_ptr<ReferringRemote> remote_;
  std::unique_ptr<FileSystem> fs_;
  TaskGroup group_;
  RequestContext me_{caller(0), nullptr};
};

}  // namespace nfsrdma
