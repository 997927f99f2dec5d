// SPDX-License-Identifier: Apache-2.0
// The fast paths take nothing from the heap. This file replaces the test program's operator new
// with one that counts per thread.
#include <cstdlib>
#include <new>

#include "tests/support/nfs3_harness.h"

namespace {
thread_local std::size_t t_allocations = 0;
}

void* operator new(std::size_t size) {
  ++t_allocations;
  if (void* p = std::malloc(size != 0 ? size : 1)) return p;
  throw std::bad_alloc();
}
// std::stable_sort's buffer comes this way.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++t_allocations;
  return std::malloc(size != 0 ? size : 1);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace nfsrdma::test {
namespace {

class Allocations : public ::testing::Test {
 protected:
  void SetUp() override {
    file = nfs.create(nfs.root(), "f");
    ASSERT_EQ(nfs.write(file, 0, std::string(1 << 20, 'x')), NFS3_OK);
  }
  /// Heap allocations of the third of three identical calls (the first ones warm the caches up).
  template <typename Args>
  std::size_t of(nfsproc3 number, const Args& args) {
    std::vector<std::byte> room(std::size_t{5} << 20);
    xdr::Encoder encoder(room);
    xdr::encode(encoder, args);
    std::size_t counted = 0;
    nfs.on_serving_thread([&] {
      for (int round = 0; round < 3; ++round) {
        StubCall call(nfs.connection(), flatten(encoder));
        Request request;
        request.call = &call;
        request.credentials = user(0, 0, {1, 2, 3});
        xdr::Encoder result(call.reply_room());
        xdr::Decoder decoder = call.decoder();
        const auto& row = nfs3::program_table().procedures[static_cast<std::size_t>(number)];
        const std::size_t before = t_allocations;
        EXPECT_EQ(row.run(nfs.server(), request, decoder, result), Outcome::kReply);
        counted = t_allocations - before;
        EXPECT_EQ(xdr::Decoder(result.bytes()).u32(), 0u);
      }
    });
    return counted;
  }
  Nfs3Harness nfs;
  FileHandle file;
};

TEST_F(Allocations, NoneInRead) {
  EXPECT_EQ(of(nfsproc3::NFSPROC3_READ, xdr::READ3args{nfs.fh(file), 0, 1u << 20}), 0u);
}

TEST_F(Allocations, NoneInWrite) {
  const std::string data(1 << 20, 'y');
  xdr::WRITE3args args;
  args.file = nfs.fh(file);
  args.count = 1u << 20;
  args.data.bytes = as_bytes(data);
  EXPECT_EQ(of(nfsproc3::NFSPROC3_WRITE, args), 0u);
}

TEST_F(Allocations, NoneInGetattr) {
  EXPECT_EQ(of(nfsproc3::NFSPROC3_GETATTR, xdr::GETATTR3args{nfs.fh(file)}), 0u);
}

TEST_F(Allocations, NoneInLookupOfAnOpenFile) {
  if (nfs.acts_as_callers()) {  // without kernel handles the path table is asked
    EXPECT_EQ(of(nfsproc3::NFSPROC3_LOOKUP, xdr::LOOKUP3args{{nfs.fh(nfs.root()), "f"}}), 0u);
  } else {
    GTEST_SKIP() << "needs the kernel's handles";
  }
}

TEST_F(Allocations, NoneInAccess) {
  EXPECT_EQ(of(nfsproc3::NFSPROC3_ACCESS, xdr::ACCESS3args{nfs.fh(file), 0x3f}), 0u);
}

}  // namespace
}  // namespace nfsrdma::test
