// SPDX-License-Identifier: Apache-2.0
// What Linux's client and server said to each other (tests/golden/nfs4/compounds.txt), read with
// our types to its end and written again.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/xdr_bytes.h"
#include "xdr/nfs4.h"
#include "xdr/print.h"

namespace nfsrdma::xdr {
namespace {

using nfsrdma::testing::encode_flat;

struct Captured {
  std::uint32_t minor = 0;
  bool is_call = false;
  std::vector<std::byte> bytes;
  std::vector<std::byte> payload;  // the capture has not kept it: zeros
  std::vector<ReducedItem> reduced;
};

std::vector<Captured> read_captures() {
  std::vector<Captured> all;
  std::ifstream file(NFSRDMA_NFS4_COMPOUNDS);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string direction, position, hex;
    Captured one;
    fields >> one.minor >> direction >> position >> hex;
    one.is_call = direction == "call";
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
      one.bytes.push_back(static_cast<std::byte>(std::stoul(hex.substr(i, 2), nullptr, 16)));
    all.push_back(std::move(one));
    if (position == "-") continue;
    Captured& added = all.back();
    std::size_t at = std::stoul(position);
    Decoder length(std::span(added.bytes).subspan(at - 4));
    added.payload.resize(length.u32());
    added.reduced.push_back({at, added.payload});
  }
  return all;
}

/// Bytes from `start` to `end` of the unreduced stream are those of `value`. A word less is right
/// where the other side sent a bitmap with an empty word at its end: then the value must be the
/// same.
template <typename T>
void expect_same_bytes(const T& value, const Captured& from, std::size_t start, std::size_t end) {
  std::vector<std::byte> again = encode_flat(value);
  if (again.size() != end - start) {
    ASSERT_EQ(again.size() + 4, end - start) << print(value);
    T back{};
    ASSERT_TRUE(testing::decode_exactly(again, back));
    ASSERT_EQ(print(back), print(value));
    return;
  }
  if (!from.reduced.empty() && end > from.reduced[0].xdr_position) return;
  EXPECT_TRUE(std::equal(again.begin(), again.end(), from.bytes.begin() + std::ptrdiff_t(start)))
      << print(value);
}

template <typename T>
bool read_item(Decoder& decoder, const Captured& from, T& value) {
  std::size_t start = decoder.xdr_position();
  if (!decode(decoder, value)) return false;
  expect_same_bytes(value, from, start, decoder.xdr_position());
  return true;
}

/// Attributes inside of an operation, in their typed form.
void expect_known_attributes(const fattr4& attributes) {
  FileAttributes4 values;
  EXPECT_EQ(decode_attributes(attributes, values).outcome, AttributeDecoding::kOk);
  EXPECT_EQ(encode_flat(values), encode_flat(attributes)) << print(values);
}
template <typename T>
void look_inside(const T&) {}
void look_inside(const GETATTR4res& result) {
  if (result.status == nfsstat4::NFS4_OK) expect_known_attributes(result.resok4.obj_attributes);
}
void look_inside(const SETATTR4args& args) {
  expect_known_attributes(args.obj_attributes);
}
void look_inside(const READDIR4res& result) {
  if (result.status != nfsstat4::NFS4_OK) return;
  for (const entry4& entry : result.resok4.reply.entries)
    expect_known_attributes(entry.attrs);
}

/// Operations that were read; every one must be known and sound.
std::size_t read_operations(Decoder& decoder, const Captured& from, std::uint32_t count,
                            bool is_call) {
  std::size_t read = 0;
  for (; read < count; ++read) {
    nfs_opnum4 number{};
    if (!decode(decoder, number)) break;
    bool sound = false;
    bool known = with_operation(number, [&](auto operation) {
      using Row = decltype(operation);
      if (is_call) {
        typename Row::Args args{};
        sound = read_item(decoder, from, args);
        look_inside(args);
      } else {
        typename Row::Res result{};
        sound = read_item(decoder, from, result);
        look_inside(result);
      }
    });
    if (!known || !sound) {
      ADD_FAILURE() << "operation " << read << ": " << enum_name(number);
      break;
    }
  }
  return read;
}

TEST(Nfs4Capture, EveryCompoundReadsToItsEndAndWritesTheSameBytes) {
  std::vector<Captured> all = read_captures();
  ASSERT_GT(all.size(), 100u);
  std::size_t operations = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE("message " + std::to_string(i) + " of compounds.txt");
    const Captured& captured = all[i];
    Decoder decoder(captured.bytes, captured.reduced);
    std::uint32_t count = 0;
    if (captured.is_call) {
      COMPOUND4args head;
      ASSERT_TRUE(read_item(decoder, captured, head));
      EXPECT_EQ(head.minorversion, captured.minor);
      count = head.argarray_len;
    } else {
      COMPOUND4res head;
      ASSERT_TRUE(read_item(decoder, captured, head));
      count = head.resarray_len;
    }
    EXPECT_EQ(read_operations(decoder, captured, count, captured.is_call), count);
    EXPECT_TRUE(decoder.at_end());
    EXPECT_EQ(decoder.reduced_left(), 0u);
    operations += count;
  }
  EXPECT_GT(operations, 300u);
}

}  // namespace
}  // namespace nfsrdma::xdr
