// SPDX-License-Identifier: Apache-2.0
// COMPOUNDs as tests write and read them: Operations4 encodes what is asked, Reply4 has the
// results.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/procedure.h"
#include "tests/support/fake_call.h"
#include "xdr/nfs4.h"

namespace nfsrdma::test {

using xdr::nfs_opnum4;
using xdr::nfsstat4;
using enum xdr::nfs_opnum4;
using enum xdr::nfsstat4;

/// The row of an operation in the table of types.
template <nfs_opnum4 kNumber>
using OperationRow = std::tuple_element_t<static_cast<std::size_t>(kNumber) -
                                              static_cast<std::size_t>(xdr::kNfs4FirstOperation),
                                          xdr::Nfs4Operations>;

/// Operations, encoded as they are added: what their arguments refer to may go then.
class Operations4 {
 public:
  template <nfs_opnum4 kNumber>
  Operations4& add(const typename OperationRow<kNumber>::Args& args = {}) {
    static_assert(OperationRow<kNumber>::number == kNumber);
    // Not one per operation: a sanitizer takes longer over its pages than over all the rest.
    static thread_local std::vector<std::byte> room(kRoom);
    xdr::Encoder encoder(room);
    encoder.u32(static_cast<std::uint32_t>(kNumber));
    if constexpr (!std::is_same_v<typename OperationRow<kNumber>::Args, xdr::Void>) {
      xdr::encode(encoder, args);
    }
    EXPECT_FALSE(encoder.overflowed());
    return add_encoded(flatten(encoder));
  }
  Operations4& putfh(const FileHandle& handle) { return add<OP_PUTFH>({{handle.bytes()}}); }
  /// Number and arguments as they are: for what no type can say.
  Operations4& add_encoded(const std::vector<std::byte>& bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    ++count_;
    return *this;
  }
  Operations4& add(const Operations4& others) {
    bytes_.insert(bytes_.end(), others.bytes_.begin(), others.bytes_.end());
    count_ += others.count_;
    return *this;
  }
  std::uint32_t count() const { return count_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kRoom = 256u << 10;  // payload comes by reference
  std::vector<std::byte> bytes_;
  std::uint32_t count_ = 0;
};

/// The results, and the bytes that they refer to.
struct Reply4 {
  std::vector<std::byte> bytes;
  Outcome outcome = Outcome::kDrop;
  nfsstat4 status = NFS4_OK;
  bool waited_for_disk = false;
  bool ran_on_worker = false;
  bool shows_pages = false;  // its payload is a window
  int grew = 0;              // so often it was given more room
  struct Result {
    nfs_opnum4 number;
    nfsstat4 status;
    std::size_t at;  // behind the number
  };
  std::vector<Result> results;

  /// The first result of that operation, or the one of that place among them. It has to be there.
  template <nfs_opnum4 kNumber>
  auto get(std::size_t nth = 0) const {
    typename OperationRow<kNumber>::Res res{};
    for (const Result& result : results) {
      if (result.number != kNumber || nth-- != 0) continue;
      xdr::Decoder decoder(ByteSpan(bytes).subspan(result.at));
      EXPECT_TRUE(xdr::decode(decoder, res));
      return res;
    }
    ADD_FAILURE() << "no result of operation " << static_cast<std::uint32_t>(kNumber)
                  << "; the status is " << static_cast<std::uint32_t>(status);
    res.status = NFS4ERR_SERVERFAULT;
    return res;
  }

  /// Takes COMPOUND4res apart; everything in it has to decode, and nothing may be left.
  void parse() {
    xdr::Decoder decoder(bytes);
    xdr::COMPOUND4res head;
    ASSERT_TRUE(xdr::decode(decoder, head));
    status = head.status;
    for (std::uint32_t i = 0; i < head.resarray_len; ++i) {
      const auto number = static_cast<nfs_opnum4>(decoder.u32());
      const std::size_t at = bytes.size() - decoder.rest().size();
      const bool known = xdr::with_operation(number, [&](auto row) {
        typename decltype(row)::Res res{};
        ASSERT_TRUE(xdr::decode(decoder, res)) << static_cast<std::uint32_t>(number);
        results.push_back({number, res.status, at});
      });
      ASSERT_TRUE(known) << static_cast<std::uint32_t>(number);
    }
    EXPECT_TRUE(decoder.at_end()) << "the reply has trailing bytes";
    if (!results.empty()) {
      EXPECT_EQ(results.back().status, status);
    }
  }
};

}  // namespace nfsrdma::test
