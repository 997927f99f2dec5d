// SPDX-License-Identifier: Apache-2.0
// One COMPOUND of the client (RFC 8881, section 16): operations out, results in.
//
//   CompoundWriter out(call->encoder(), minor);
//   out.op(nfs_opnum4::OP_PUTFH, PUTFH4args{to_wire(file)});
//   out.op(nfs_opnum4::OP_GETATTR, GETATTR4args{mask});
//   out.finish();
//   ...
//   CompoundReader in(call->results());
//   PUTFH4res put;
//   GETATTR4res got;
//   if (in.next(nfs_opnum4::OP_PUTFH, put) && in.next(nfs_opnum4::OP_GETATTR, got)) ...
//
// Results hold views into the reply: use them up before the next co_await.
#pragma once

#include <cstdint>

#include "xdr/nfs4.h"

namespace nfsrdma::nfs4 {

/// The current stateid (RFC 8881, section 16.2.3.1.2): that of the OPEN before.
inline constexpr xdr::stateid4 kCurrentStateid{1, {}};
/// One that is none, in each minor version (RFC 8881, 8.2.3): NFS4ERR_BAD_STATEID.
inline constexpr xdr::stateid4 kRefusedStateid{UINT32_MAX, {}};

class CompoundWriter {
 public:
  CompoundWriter(xdr::Encoder& encoder, std::uint32_t minor) : encoder_(encoder) {
    xdr::encode(encoder_, xdr::COMPOUND4args{{}, minor, 0});
    count_mark_ = encoder_.mark() - 4;  // the last word of the head
  }
  template <typename Args>
  void op(xdr::nfs_opnum4 number, const Args& args) {
    encoder_.u32(static_cast<std::uint32_t>(number));
    xdr::encode(encoder_, args);
    ++count_;
  }
  void op(xdr::nfs_opnum4 number) { op(number, xdr::Void{}); }
  void finish() { encoder_.patch_u32(count_mark_, count_); }

 private:
  xdr::Encoder& encoder_;
  std::size_t count_mark_ = 0;
  std::uint32_t count_ = 0;
};

class CompoundReader {
 public:
  explicit CompoundReader(xdr::Decoder& decoder) : decoder_(decoder) {
    sound_ = xdr::decode(decoder_, head_);
  }
  /// The next result, which must be that of `number`. False when there is none, when it cannot be
  /// decoded, or when the operation failed: nothing comes behind it then.
  template <typename Res>
  bool next(xdr::nfs_opnum4 number, Res& result) {
    if (!sound_ || failed_ || taken_ == head_.resarray_len) {
      // A COMPOUND that ended well has a result for each operation.
      if (!failed_ && head_.status == xdr::nfsstat4::NFS4_OK) sound_ = false;
      return false;
    }
    const auto which = static_cast<xdr::nfs_opnum4>(decoder_.u32());
    if (which == xdr::nfs_opnum4::OP_ILLEGAL) {
      // The server does not know the operation (RFC 8881, 15.2.3.1).
      xdr::Nfs4Result<xdr::Void> unknown;
      sound_ = xdr::decode(decoder_, unknown) && unknown.status != xdr::nfsstat4::NFS4_OK;
      result.status = unknown.status;
    } else {
      sound_ = which == number && xdr::decode(decoder_, result);
    }
    if (!sound_) return false;
    ++taken_;
    last_ = number;
    failed_ = result.status != xdr::nfsstat4::NFS4_OK;
    if (failed_ && result.status != head_.status) sound_ = false;
    return sound_ && !failed_;
  }
  /// For operations whose result is a status alone.
  bool next(xdr::nfs_opnum4 number) {
    xdr::Nfs4Result<xdr::Void> result;
    return next(number, result);
  }
  /// Decodable so far, and as many results as there should be.
  bool sound() const { return sound_; }
  /// Of the operation that failed, or NFS4_OK.
  xdr::nfsstat4 status() const { return head_.status; }
  /// Results that were read, the one that failed included.
  std::uint32_t taken() const { return taken_; }
  /// Whose result was read last: of the operation that failed, if one did.
  xdr::nfs_opnum4 last() const { return last_; }

 private:
  xdr::Decoder& decoder_;
  xdr::COMPOUND4res head_{};
  std::uint32_t taken_ = 0;
  xdr::nfs_opnum4 last_ = xdr::nfs_opnum4::OP_ILLEGAL;
  bool failed_ = false;
  bool sound_ = false;
};

}  // namespace nfsrdma::nfs4
