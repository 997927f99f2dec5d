// SPDX-License-Identifier: Apache-2.0
// Several threads of one Mount, some of which meet a referral: each hears of its own path alone.
//
//   libnfsrdma_referrals URL REFERRAL FILE     names in the directory that the URL stands for
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
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

void look_at_referral(Mount& mount, const std::string& name) {
  for (int i = 0; i < kTimes; ++i) {
    const auto st = mount.lstat(name);
    expect(st.ok() && S_ISDIR(st->st_mode), "lstat()", name);
    const auto leads = mount.referral(name);
    expect(leads.ok() && leads->size() == 1, "referral()", name);
    const auto below = mount.stat(name + "/file");
    expect(!below.ok() && below.error().value() == EREMOTE, "stat() behind", name);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: libnfsrdma_referrals URL REFERRAL FILE\n");
    return 2;
  }
  std::string detail;
  auto mount = Mount::open(argv[1], &detail);
  if (!mount.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[1], detail.c_str());
    return 1;
  }
  const std::string referral = argv[2], file = argv[3];
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] { look_at_file(*mount, file); });
    threads.emplace_back([&] { look_at_referral(*mount, referral); });
  }
  for (std::thread& thread : threads)
    thread.join();
  return g_wrong == 0 ? 0 : 1;
}
