// SPDX-License-Identifier: Apache-2.0
#include "rpcrdma/base/file_window.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/refused_calls.h"

namespace nfsrdma {
namespace {

constexpr std::size_t kPages = 8;

class FileWindowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(file_ && window_ != nullptr);
    for (std::size_t i = 0; i < text_.size(); ++i)
      text_[i] = static_cast<char>('a' + (i / 7) % 23);
    ASSERT_EQ(::pwrite(file_.get(), text_.data(), text_.size(), 0),
              static_cast<ssize_t>(text_.size()));
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    out_.reset(ends[0]);
    in_.reset(ends[1]);
    ASSERT_GE(::fcntl(in_.get(), F_SETPIPE_SZ, 1 << 20), 1 << 20);
  }
  /// What the kernel reads there, as a socket would; less where it cannot.
  std::string sent(std::size_t size) {
    const ssize_t n = ::write(in_.get(), window_->data(), size);
    if (n <= 0) return n < 0 ? std::strerror(errno) : "";
    std::string got(static_cast<std::size_t>(n), '\0');
    EXPECT_EQ(::read(out_.get(), got.data(), got.size()), n);
    return got;
  }
  static std::size_t open_files() {
    std::size_t count = 0;
    for (int fd = 0; fd < 1024; ++fd)
      count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return count;
  }
  static bool is_mapped(const std::string& name) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find(name) != std::string::npos) return true;
    }
    return false;
  }

  /// Would another thread's mmap() find a place here?
  static bool is_free(std::byte* at, std::size_t size) {
    void* place = ::mmap(at, size, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (place == MAP_FAILED) return false;
    ::munmap(place, size);
    return true;
  }
  /// On a thread for which the kernel moves no mapping.
  static void without_mremap(const std::function<void()>& work) {
    std::thread([&work] {
      test::refuse_calls(SYS_mremap, ENOMEM);
      work();
    }).join();
  }

  const std::size_t page_ = FileWindow::page_size();
  std::string text_ = std::string(kPages * page_, '\0');
  UniqueFd file_{::memfd_create("shown-in-a-window", MFD_CLOEXEC)};
  std::unique_ptr<FileWindow> window_ = FileWindow::reserve(kPages * page_);
  UniqueFd in_, out_;
};

/// The first test: what is learnt from it holds for the process. A socket refuses when the kernel
/// has cleared its place already.
TEST_F(FileWindowTest, WhatCannotBeMappedLeavesNoHole) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(window_->show(socket.get(), 0, 2 * page_), FileWindow::Shown::kNo);
    EXPECT_FALSE(is_free(window_->data(), page_));
    EXPECT_FALSE(is_free(window_->data() + page_, page_));
    EXPECT_TRUE(window_->hide());
  }
  EXPECT_EQ(window_->show(file_.get(), 0, page_), FileWindow::Shown::kAll);
  EXPECT_EQ(sent(page_), text_.substr(0, page_));
}

TEST_F(FileWindowTest, APlaceThatMayBeSomebodyElsesIsLeftAlone) {
  ASSERT_EQ(window_->show(file_.get(), 0, 2 * page_), FileWindow::Shown::kAll);
  without_mremap([this] { EXPECT_FALSE(window_->settle()); });
  EXPECT_FALSE(window_->settle());
  EXPECT_FALSE(window_->hide()) << "it must not be used again";
  EXPECT_EQ(window_->show(file_.get(), 0, page_), FileWindow::Shown::kNo);
  std::byte* const place = window_->data();
  const std::size_t size = window_->size();
  window_.reset();
  EXPECT_FALSE(is_free(place, page_));
  EXPECT_EQ(::munmap(place, size), 0);
}

TEST_F(FileWindowTest, ShowsTheFileFromAnyPageOn) {
  ASSERT_EQ(window_->show(file_.get(), 0, text_.size()), FileWindow::Shown::kAll);
  EXPECT_EQ(sent(text_.size()), text_);
  ASSERT_TRUE(window_->hide());
  ASSERT_EQ(window_->show(file_.get(), 3 * page_, page_ + 5), FileWindow::Shown::kAll);
  EXPECT_EQ(sent(page_ + 5), text_.substr(3 * page_, page_ + 5));
}

TEST_F(FileWindowTest, AnEmptyWindowCanBeReadByNobody) {
  EXPECT_EQ(sent(1), std::strerror(EFAULT));
  ASSERT_EQ(window_->show(file_.get(), 0, page_), FileWindow::Shown::kAll);
  ASSERT_TRUE(window_->hide());
  EXPECT_EQ(sent(1), std::strerror(EFAULT));
}

TEST_F(FileWindowTest, HidingLetsGoOfTheFile) {
  const std::size_t before = open_files();
  ASSERT_EQ(window_->show(file_.get(), 0, page_), FileWindow::Shown::kAll);
  EXPECT_TRUE(is_mapped("shown-in-a-window"));
  EXPECT_EQ(open_files(), before + 1);
  ASSERT_TRUE(window_->hide());
  EXPECT_FALSE(is_mapped("shown-in-a-window"));
  EXPECT_EQ(open_files(), before);
  ASSERT_EQ(window_->show(file_.get(), 0, page_), FileWindow::Shown::kAll);
  window_.reset();
  EXPECT_FALSE(is_mapped("shown-in-a-window"));
  EXPECT_EQ(open_files(), before);
}

TEST_F(FileWindowTest, WhatWouldHaveToBeReadIsNotShown) {
  ASSERT_EQ(::ftruncate(file_.get(), static_cast<off_t>(16 * page_)), 0);
  EXPECT_EQ(window_->show(file_.get(), 6 * page_, 4 * page_), FileWindow::Shown::kNotCached);
  ASSERT_TRUE(window_->hide());
  EXPECT_EQ(window_->show(file_.get(), 6 * page_, 2 * page_), FileWindow::Shown::kAll);
}

TEST_F(FileWindowTest, WhatCannotBeMappedIsSaid) {
  EXPECT_EQ(window_->show(in_.get(), 0, page_), FileWindow::Shown::kNo);
  EXPECT_EQ(window_->show(-1, 0, page_), FileWindow::Shown::kNo);
  EXPECT_EQ(window_->show(file_.get(), 0, (kPages + 1) * page_), FileWindow::Shown::kNo);
}

TEST_F(FileWindowTest, SettledItStaysAsItWas) {
  ASSERT_EQ(window_->show(file_.get(), 0, text_.size()), FileWindow::Shown::kAll);
  const std::size_t before = open_files();
  ASSERT_TRUE(window_->settle());
  EXPECT_EQ(open_files(), before - 1);
  ASSERT_EQ(::ftruncate(file_.get(), 0), 0);
  EXPECT_EQ(std::memcmp(window_->data(), text_.data(), text_.size()), 0);
  EXPECT_TRUE(window_->settle());  // again changes nothing
  EXPECT_EQ(sent(text_.size()), text_);
  ASSERT_TRUE(window_->hide());
  EXPECT_EQ(sent(1), std::strerror(EFAULT));
}

TEST_F(FileWindowTest, WhatAShorterFileHasNoMoreIsZeros) {
  ASSERT_EQ(window_->show(file_.get(), page_, 5 * page_), FileWindow::Shown::kAll);
  ASSERT_EQ(::ftruncate(file_.get(), static_cast<off_t>(3 * page_ + 100)), 0);
  EXPECT_EQ(sent(5 * page_).size(), 3 * page_);  // and not SIGBUS
  const iovec pieces[] = {{text_.data(), 10}, {window_->data() + 4 * page_, page_}};
  ASSERT_TRUE(FileWindow::settle(pieces));
  std::string expected = text_.substr(page_, 2 * page_ + 100);
  expected.resize(5 * page_, '\0');
  EXPECT_EQ(sent(5 * page_), expected);
}

TEST_F(FileWindowTest, WhatCannotBeReadForAnotherReasonIsNotZeros) {
  ASSERT_EQ(window_->show(file_.get(), 0, 4 * page_), FileWindow::Shown::kAll);
  // As a page whose data the disk does not give any more: the file has it, the kernel has not.
  ASSERT_EQ(::mprotect(window_->data() + page_, page_, PROT_NONE), 0);
  EXPECT_FALSE(window_->settle());
  const iovec piece{window_->data(), page_};
  EXPECT_FALSE(FileWindow::settle({&piece, 1}));
  EXPECT_EQ(sent(4 * page_).size(), page_);
}

TEST_F(FileWindowTest, OtherMemoryHasNoWindowToSettle) {
  ASSERT_EQ(window_->show(file_.get(), 0, page_), FileWindow::Shown::kAll);
  const iovec piece{text_.data(), page_};
  EXPECT_FALSE(FileWindow::settle({&piece, 1}));
  std::unique_ptr<FileWindow> other = FileWindow::reserve(page_);
  ASSERT_NE(other, nullptr);
  const iovec of_other{other->data(), 1};
  EXPECT_FALSE(FileWindow::settle({&of_other, 1}));  // it shows nothing
}

}  // namespace
}  // namespace nfsrdma
