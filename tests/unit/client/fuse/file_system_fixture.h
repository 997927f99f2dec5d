// SPDX-License-Identifier: Apache-2.0
// FileSystemTest: a FileSystem over a server in memory, with an event loop of its own.
#pragma once

#include "client/fuse/file_system.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "tests/unit/client/fuse/memory_remote.h"

namespace nfsrdma {

inline CallerRef caller(uid_t uid) {
  return std::make_shared<const Caller>(Caller{uid, uid, {}});
}

class FileSystemTest : public testing::Test {
 protected:
  void SetUp() override {
    loop_ = std::move(EventLoop::create()).value();
    build({});
  }
  void TearDown() override {
    remote_.release();
    run(fs_->finish());
    fs_.reset();
  }
  void build(FileSystemOptions options) {
    if (fs_ != nullptr) run(fs_->finish());
    KernelCache kernel;
    kernel.drop_data = [this](std::uint64_t id, std::function<void()> done) {
      invalidated_.push_back(id);
      if (hold_kernel_) {
        kernel_waits_.push_back(std::move(done));
      } else {
        done();
      }
    };
    kernel.drop_attributes = [this](std::uint64_t id) { outdated_.push_back(id); };
    kernel.drop_attributes_soon = kernel.drop_attributes;
    kernel.expire_name = [this](std::uint64_t, const std::string& name) {
      expired_.push_back(name);
    };
    fs_ = std::make_unique<FileSystem>(*loop_, remote_, options, std::move(kernel));
    ASSERT_EQ(run(fs_->start(me_)), 0);
  }
  template <typename T>
  T run(Task<T> task) {
    return run_to_completion(*loop_, std::move(task));
  }
  /// Runs `task` as far as it gets while answers are held back.
  void start(Task<int> task, int* result) {
    struct Store {
      static Task<void> run(Task<int> inner, int* out) { *out = co_await std::move(inner); }
    };
    started_.spawn(Store::run(std::move(task), result));
  }
  NodeRef look(const std::string& name, RequestContext context) {
    NodeRef node;
    last_error_ = run(fs_->lookup(std::move(context), fs_->root, name, &node));
    if (node != nullptr) fs_->nodes.reference(node);
    return node;
  }
  NodeRef look(const std::string& name) { return look(name, me_); }
  struct Changed {
    MemoryRemote::ObjectRef file;
    NodeRef node;
  };
  /// A file that was looked at, and then changed by others.
  Changed changed_elsewhere(const std::string& before, const std::string& now) {
    const auto file = remote_.add_file("a", before);
    age(fs_->root);
    const NodeRef node = look("a");
    remote_.write_elsewhere(*file, now);
    return {file, node};
  }
  NodeRef opened(const std::string& name) {
    NodeRef node = look(name);
    bool keep = false;
    EXPECT_EQ(run(fs_->open(me_, node, O_RDWR, &keep)), 0);
    return node;
  }
  void close(const NodeRef& node, int flags = O_RDWR) { fs_->close(node, me_.caller, flags); }
  int write(const NodeRef& node, std::uint64_t offset, const std::string& text) {
    return run(fs_->writer_of(*node).write(me_, node, offset, as_bytes(text), nullptr));
  }
  /// Of a byte each, with gaps, so that each is a WRITE of its own.
  void write_in_pieces(const NodeRef& node, std::uint64_t pieces) {
    for (std::uint64_t i = 0; i < pieces; ++i)
      ASSERT_EQ(write(node, 2 * i, "x"), 0);
  }
  /// A file "a" that is open, into which "abcdefgh" was written, unstable, before the server
  /// restarted and lost it.
  NodeRef written_before_a_restart() {
    remote_.set_write_size(4);
    remote_.add_file("a");
    age(fs_->root);
    NodeRef node = opened("a");
    EXPECT_EQ(write(node, 0, "abcdefgh"), 0);
    remote_.restart();
    return node;
  }
  std::string read(const NodeRef& node, std::uint64_t offset, std::size_t size) {
    std::string out(size, '?');
    std::size_t count = 0;
    MutableByteSpan sink(reinterpret_cast<std::byte*>(out.data()), size);
    EXPECT_EQ(run(fs_->read(me_, node, offset, sink, &count)), 0);
    out.resize(count);
    return out;
  }
  int fsync(const NodeRef& node) {
    FileWriter& writer = fs_->writer_of(*node);
    const int error = run(writer.flush(me_, node, true));
    return error != 0 ? error : writer.take_error(&errors_told_[node.get()]);
  }
  void age(const NodeRef& node) { node->timer.expire(); }
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& [name, object] : remote_.root_object()->names)
      out.push_back(name);
    return out;
  }

  MemoryRemote remote_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<FileSystem> fs_;
  TaskGroup started_;
  std::vector<std::uint64_t> invalidated_;
  bool hold_kernel_ = false;
  std::vector<std::function<void()>> kernel_waits_;
  std::vector<std::uint64_t> outdated_;
  std::vector<std::string> expired_;
  RequestContext me_{caller(0), nullptr};
  RequestContext other_{caller(1000), nullptr};
  int last_error_ = 0;
  std::map<const Node*, std::uint64_t> errors_told_;  // one open file each
};

}  // namespace nfsrdma
