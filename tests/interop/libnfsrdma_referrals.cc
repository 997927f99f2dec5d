// SPDX-License-Identifier: Apache-2.0
// Referrals below the path of a URL, which the library follows: all that can be done with a path
// is done behind one; several threads of one Mount, some of which meet it, hear each of its own
// path alone; and a Mount whose directory moves to another server goes along.
//
//   libnfsrdma_referrals URL REFERRAL FILE FAR     names in the directory that the URL stands for;
//                                                  FAR is a file behind the referral
//   libnfsrdma_referrals --moves URL BEFORE AFTER  says "ready" once there is a file BEFORE, and
//                                                  waits for a line; then there is AFTER instead,
//                                                  if it is another name
//   libnfsrdma_referrals --leads URL BEFORE AFTER  the same of a referral that leads elsewhere:
//                                                  what is open stays so
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "nfsrdma/client.h"

namespace {

using nfsrdma::client::Mount;

constexpr int kTimes = 500;
std::atomic<int> g_wrong{0};

void expect(bool right, const char* what, const std::string& name) {
  if (right || g_wrong.fetch_add(1) >= 5) return;
  std::fprintf(stderr, "wrong: %s of %s\n", what, name.c_str());
}

void look_at_file(Mount& mount, const std::string& name) {
  for (int i = 0; i < kTimes; ++i) {
    const auto st = mount.lstat(name);
    expect(st.ok() && S_ISREG(st->st_mode), "lstat()", name);
    const auto leads = mount.referral(name);
    expect(leads.ok() && leads->empty(), "referral()", name);
    const auto missing = mount.lstat(name + ".missing");
    expect(!missing.ok() && missing.error().value() == ENOENT, "lstat() of nothing", name);
  }
}

void look_at_referral(Mount& mount, const std::string& name, const std::string& far) {
  const std::string behind = name + "/" + far;
  const std::string nothing = behind + ".missing";
  for (int i = 0; i < kTimes; ++i) {
    const auto st = mount.lstat(name);
    expect(st.ok() && S_ISDIR(st->st_mode), "lstat()", name);
    const auto leads = mount.referral(name);
    expect(leads.ok() && leads->size() == 1, "referral()", name);
    const auto below = mount.stat(behind);
    expect(below.ok() && S_ISREG(below->st_mode), "stat() behind", name);
    const auto missing = mount.stat(nothing);
    expect(!missing.ok() && missing.error().value() == ENOENT, "stat() of nothing behind", name);
  }
}

/// Says what it failed with.
template <typename T>
bool works(const T& result) {
  if (!result.ok()) std::fprintf(stderr, "%s\n", result.error().message().c_str());
  return result.ok();
}

template <typename T>
bool fails(const T& result, int number) {
  return !result.ok() && result.error().value() == number;
}

bool lists(Mount& mount, const std::string& directory, const std::string& name) {
  const auto entries = mount.readdir(directory);
  if (!entries.ok()) return false;
  for (const auto& entry : *entries)
    if (entry.name == name) return true;
  return false;
}

std::string content(Mount& mount, const std::string& path) {
  auto file = mount.open(path, O_RDONLY);
  std::array<std::byte, 100> buffer{};
  const auto count = file.ok() ? file->pread(buffer, 0) : nfsrdma::client::Result<std::size_t>(0);
  if (!count.ok()) return "";
  return {reinterpret_cast<const char*>(buffer.data()), *count};
}

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text));
}

/// Files and directories behind the referral `name`, beside the file `near`.
void use(Mount& mount, const std::string& name, const std::string& near) {
  const std::string text = "written behind a referral";
  const std::string small = name + "/small", large = name + "/large", dir = name + "/dir";
  expect(works(mount.write_file(small, bytes(text))), "write_file()", small);
  expect(content(mount, small) == text, "what was written", small);
  {
    auto file = mount.open(large, O_RDWR | O_CREAT | O_EXCL, 0644);
    const bool open = file.ok();
    expect(works(file) && works(file->pwrite(bytes(text), 1 << 20)) && works(file->fsync()),
           "pwrite()", large);
    const auto st = mount.stat(large);
    expect(st.ok() && st->st_size == (1 << 20) + static_cast<off_t>(text.size()), "size", large);
    expect(fails(mount.open(large, O_RDWR | O_CREAT | O_EXCL), EEXIST), "O_EXCL", large);
    auto other = mount.open(near, O_RDONLY);
    expect(open && other.ok() && fails(other->copy_range(0, *file, 0, 1), EXDEV), "copy", large);
  }
  expect(mount.mkdir(dir).ok() && lists(mount, name, "dir"), "mkdir()", dir);
  expect(mount.rename(large, dir + "/moved").ok() && lists(mount, dir, "moved"), "rename()", large);
  expect(fails(mount.rename(small, "small"), EXDEV), "rename() from behind", small);
  expect(fails(mount.rename(near, dir + "/near"), EXDEV), "rename() to behind", near);
  expect(fails(mount.link(near, dir + "/near"), EXDEV), "link() to behind", near);
  expect(mount.link(small, dir + "/linked").ok(), "link()", small);
  expect(mount.symlink("dir/linked", name + "/inside").ok(), "symlink()", name);
  expect(content(mount, name + "/inside") == text, "link inside", name);
  expect(mount.symlink("../" + near, name + "/outside").ok(), "symlink()", name);
  expect(fails(mount.stat(name + "/outside"), EXDEV), "link to outside", name);
  expect(fails(mount.stat(name + "/../" + near), EXDEV), "way to outside", name);
  expect(content(mount, name + "/dir/../small") == text, "way back", name);
  const auto led = mount.readlink(name + "/inside");
  expect(led.ok() && *led == "dir/linked", "readlink()", name);
  expect(mount.chmod(small, 0600).ok() && mount.truncate(small, 3).ok(), "attributes", small);
  const auto st = mount.stat(small);
  expect(st.ok() && (st->st_mode & 07777) == 0600 && st->st_size == 3, "attributes", small);
  expect(mount.statfs(name).ok(), "statfs()", name);
  expect(mount.connections().size() >= 2, "connections()", name);
  for (const char* one : {"/inside", "/outside", "/small", "/dir/linked", "/dir/moved"})
    expect(mount.unlink(name + one).ok(), "unlink()", one);
  expect(mount.rmdir(dir).ok() && !lists(mount, name, "dir"), "rmdir()", dir);
}

int move(const char* url, const std::string& before, const std::string& after, bool stays) {
  std::string detail;
  auto mount = Mount::open(url, &detail);
  auto file = mount.ok() ? mount->open(before, O_RDONLY)
                         : nfsrdma::client::Result<nfsrdma::client::File>(mount.error());
  if (!file.ok()) {
    std::fprintf(stderr, "%s: %s\n", url, detail.c_str());
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  std::getchar();
  const auto there = mount->stat(after);
  expect(there.ok() && S_ISREG(there->st_mode), "what is there", after);
  const bool goes = before != after;
  expect(!goes || fails(mount->stat(before), ENOENT), "what was before", before);
  std::array<std::byte, 10> buffer{};
  const auto read = file->pread(buffer, 0);
  expect(stays ? read.ok() : fails(read, EREMOTE), "what is open", before);
  return g_wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr,
                 "usage: libnfsrdma_referrals URL REFERRAL FILE FAR\n"
                 "       libnfsrdma_referrals --moves|--leads URL BEFORE AFTER\n");
    return 2;
  }
  const std::string what = argv[1];
  if (what == "--moves" || what == "--leads") {
    return move(argv[2], argv[3], argv[4], what == "--leads");
  }
  std::string detail;
  auto mount = Mount::open(argv[1], &detail);
  if (!mount.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[1], detail.c_str());
    return 1;
  }
  const std::string referral = argv[2], file = argv[3], far = argv[4];
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] { look_at_file(*mount, file); });
    threads.emplace_back([&] { look_at_referral(*mount, referral, far); });
  }
  for (std::thread& thread : threads)
    thread.join();
  use(*mount, referral, file);
  return g_wrong == 0 ? 0 : 1;
}
