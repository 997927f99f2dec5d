// SPDX-License-Identifier: Apache-2.0
#include "server/nfs4/retries.h"

#include <sodium.h>

#include <algorithm>
#include <array>

#include "rpcrdma/call.h"
#include "xdr/nfs4.h"

namespace nfsrdma::nfs4 {

using xdr::nfs_opnum4;

namespace {

/// The beginning of a stream, and how long it is.
class Beginning {
 public:
  void take(ByteSpan bytes) {
    const std::size_t room = bytes_.size() - std::min(size_, bytes_.size());
    std::copy_n(bytes.begin(), std::min(room, bytes.size()), bytes_.end() - room);
    size_ += bytes.size();
  }
  std::size_t size() const { return size_; }
  std::uint64_t hash() const {
    constexpr unsigned char kKey[crypto_shorthash_KEYBYTES] = {};
    std::uint64_t out = 0;
    crypto_shorthash(reinterpret_cast<unsigned char*>(&out),
                     reinterpret_cast<const unsigned char*>(bytes_.data()),
                     std::min(size_, bytes_.size()), kKey);
    return out;
  }

 private:
  std::array<std::byte, 512> bytes_;
  std::size_t size_ = 0;
};

}  // namespace

std::uint64_t fingerprint_of(const Request& request, const xdr::Decoder& args) {
  constexpr std::byte kPad[3] = {};
  Beginning whole;
  ByteSpan left = args.rest();
  std::size_t position = args.xdr_position();
  for (const xdr::ReducedItem& item : request.call->reduced()) {
    // Out of place: the operations will fail by it.
    if (item.xdr_position < position + 4 || item.xdr_position - position > left.size()) break;
    const std::size_t before = item.xdr_position - position;
    // As long as the word before it says: its chunk may hold the pad as well.
    const std::size_t length = load_be32(left.data() + before - 4);
    if (length > item.bytes.size()) break;
    whole.take(left.first(before));
    whole.take(item.bytes.first(length));
    whole.take(ByteSpan(kPad).first(pad4(length)));
    left = left.subspan(before);
    position = item.xdr_position + round_up4(length);
  }
  whole.take(left);
  const RpcCredentials& who = request.credentials;
  return whole.hash() ^ whole.size() ^ (std::uint64_t{who.uid} << 32 | who.gid);
}

std::vector<ByteSpan> reducible_items(ByteSpan kept) {
  std::vector<ByteSpan> out;
  xdr::Decoder decoder(kept);
  xdr::COMPOUND4res head;
  if (!xdr::decode(decoder, head)) return out;
  for (std::uint32_t i = 0; i < head.resarray_len && decoder.ok(); ++i) {
    const auto number = static_cast<nfs_opnum4>(decoder.u32());
    const bool known = xdr::with_operation(number, [&](auto row) {
      typename decltype(row)::Res res{};
      const bool good = xdr::decode(decoder, res) && res.status == xdr::nfsstat4::NFS4_OK;
      if (!good) return;
      if constexpr (row.number == nfs_opnum4::OP_READ) out.push_back(res.resok4.data.bytes);
      if constexpr (row.number == nfs_opnum4::OP_READLINK) out.push_back(res.resok4.link.bytes);
    });
    if (!known) break;
  }
  return out;
}

}  // namespace nfsrdma::nfs4
