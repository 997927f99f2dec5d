// SPDX-License-Identifier: Apache-2.0
// ChunkedCompound: a COMPOUND as an RPC message made by hand, in which items may be left to Read
// chunks; and what came back for it, over whichever transport, put together again.
#pragma once

#include "rpcrdma/header.h"
#include "tests/support/exported_directory.h"
#include "tests/support/nfs4_compound.h"
#include "xdr/nfs3_constants.h"
#include "xdr/rpc.h"

namespace nfsrdma::test {

/// Results by whose data RFC 8267 lets a server write into chunks.
inline bool has_reducible_item(nfs_opnum4 number, nfsstat4 status) {
  return status == NFS4_OK && (number == OP_READ || number == OP_READLINK);
}

class ChunkedCompound {
 public:
  explicit ChunkedCompound(std::uint32_t minor_version) : minor_version_(minor_version) {}

  template <nfs_opnum4 kNumber>
  ChunkedCompound& add(const typename OperationRow<kNumber>::Args& args = {}) {
    return append<kNumber>(args, false);
  }
  /// Its payload goes by a Read chunk, where there are any.
  template <nfs_opnum4 kNumber>
  ChunkedCompound& add_reduced(const typename OperationRow<kNumber>::Args& args) {
    return append<kNumber>(args, true);
  }
  ChunkedCompound& putfh(const FileHandle& handle) { return add<OP_PUTFH>({{handle.bytes()}}); }

  /// The message in one piece, as over TCP.
  std::vector<std::byte> whole(std::uint32_t xid) const {
    std::vector<std::byte> out = head(xid);
    for (const Piece& piece : pieces_)
      out.insert(out.end(), piece.bytes.begin(), piece.bytes.end());
    return out;
  }
  /// The message without the items that are reduced, and those with their positions.
  struct Item {
    std::uint32_t position = 0;
    std::vector<std::byte> bytes;  // without pad
  };
  std::vector<std::byte> reduced(std::uint32_t xid, std::vector<Item>& items) const {
    std::vector<std::byte> out = head(xid);
    std::size_t position = out.size();
    for (const Piece& piece : pieces_) {
      if (piece.item_bytes > 0) {
        const auto end = piece.bytes.begin() + static_cast<std::ptrdiff_t>(piece.item_bytes);
        items.push_back({static_cast<std::uint32_t>(position), {piece.bytes.begin(), end}});
      } else {
        out.insert(out.end(), piece.bytes.begin(), piece.bytes.end());
      }
      position += piece.bytes.size();
    }
    return out;
  }

 private:
  struct Piece {
    std::vector<std::byte> bytes;
    std::size_t item_bytes = 0;  // 0: in line
  };

  template <nfs_opnum4 kNumber>
  ChunkedCompound& append(const typename OperationRow<kNumber>::Args& args, bool reduce) {
    std::vector<std::byte> room(64u << 10);
    xdr::Encoder encoder(room);
    encoder.u32(static_cast<std::uint32_t>(kNumber));
    if constexpr (!std::is_same_v<typename OperationRow<kNumber>::Args, xdr::Void>) {
      xdr::encode(encoder, args);
    }
    EXPECT_FALSE(encoder.overflowed());
    ++count_;
    std::size_t done = 0;
    auto add_piece = [this](ByteSpan bytes, std::size_t item_bytes) {
      Piece& piece = pieces_.emplace_back();
      piece.bytes.assign(bytes.begin(), bytes.end());
      piece.bytes.resize(round_up4(bytes.size()));
      piece.item_bytes = item_bytes;
    };
    for (const xdr::PayloadReference& payload : encoder.payloads()) {
      add_piece(encoder.bytes().subspan(done, payload.head_bytes - done), 0);
      add_piece(payload.bytes, reduce ? payload.bytes.size() : 0);
      done = payload.head_bytes;
    }
    add_piece(encoder.bytes().subspan(done), 0);
    return *this;
  }

  /// Up to the operations; from root, as tests that switch no identity act.
  std::vector<std::byte> head(std::uint32_t xid) const {
    std::byte credential[64];
    xdr::Encoder body{MutableByteSpan(credential)};
    xdr::authsys_parms parms;
    parms.machinename = "client";
    xdr::encode(body, parms);
    xdr::rpc_msg message;
    message.xid = xid;
    message.cbody.prog = xdr::kNfsProgram;
    message.cbody.vers = 4;
    message.cbody.proc = xdr::NFSPROC4_COMPOUND;
    message.cbody.cred = {xdr::auth_flavor::AUTH_SYS, body.bytes()};
    std::vector<std::byte> out(256);
    xdr::Encoder encoder(out);
    xdr::encode(encoder, message);
    xdr::encode(encoder, xdr::COMPOUND4args{"", minor_version_, count_});
    out.resize(encoder.size());
    return out;
  }

  std::uint32_t minor_version_;
  std::uint32_t count_ = 0;
  std::vector<Piece> pieces_;
};

/// What came back. Over TCP `reply` is all of it.
struct ChunkedReply {
  std::uint32_t proc = RDMA_ERROR;  // of the RPC-over-RDMA header
  std::uint32_t error = 0;          // of RDMA_ERROR
  /// What lies in the Write chunks, as long as their segments say; in the order of the call's.
  std::vector<std::string> written;
  std::uint32_t in_reply_chunk = 0;  // bytes
  std::size_t in_line = 0;           // bytes of RPC message in the Send
  Reply4 reply;                      // nothing is missing in it

  /// Takes an RPC reply apart whose reducible results are in `written`, but where the call had a
  /// Write chunk without room (`offered`) or none.
  void take(ByteSpan message, const std::vector<std::size_t>& offered) {
    xdr::Decoder decoder(message);
    xdr::rpc_msg header;
    ASSERT_TRUE(xdr::decode(decoder, header));
    ASSERT_EQ(header.rbody.stat, xdr::reply_stat::MSG_ACCEPTED);
    ASSERT_EQ(header.rbody.areply.stat, xdr::accept_stat::SUCCESS);
    const ByteSpan body = decoder.rest();
    xdr::COMPOUND4res head;
    ASSERT_TRUE(xdr::decode(decoder, head));
    auto from = body.begin();
    auto copy_until_here = [&] {
      const auto to = body.begin() + static_cast<std::ptrdiff_t>(body.size() - decoder.remaining());
      reply.bytes.insert(reply.bytes.end(), from, to);
      from = to;
    };
    std::size_t item = 0;
    for (std::uint32_t i = 0; i < head.resarray_len; ++i) {
      xdr::Decoder ahead = decoder;
      const auto number = static_cast<nfs_opnum4>(ahead.u32());
      const auto status = static_cast<nfsstat4>(ahead.u32());
      const bool reducible = has_reducible_item(number, status);
      const std::size_t chunk = reducible ? item++ : offered.size();
      if (chunk >= offered.size() || offered[chunk] == 0) {
        decoder.u32();
        xdr::with_operation(number, [&](auto row) {
          typename decltype(row)::Res res{};
          ASSERT_TRUE(xdr::decode(decoder, res)) << static_cast<std::uint32_t>(number);
        });
        continue;
      }
      decoder.u64();
      if (number == OP_READ) decoder.u32();  // eof
      const std::uint32_t length = decoder.u32();
      ASSERT_EQ(length, written[chunk].size()) << "the chunk's length is not the item's";
      copy_until_here();
      const ByteSpan data = as_bytes(std::string_view(written[chunk]));
      reply.bytes.insert(reply.bytes.end(), data.begin(), data.end());
      reply.bytes.resize(round_up4(reply.bytes.size()));
    }
    copy_until_here();
    EXPECT_TRUE(decoder.at_end());
    // What no result belongs to stays unused.
    for (; item < written.size(); ++item)
      EXPECT_EQ(written[item], "") << "chunk " << item;
    reply.outcome = Outcome::kReply;
    reply.parse();
  }
};

}  // namespace nfsrdma::test
