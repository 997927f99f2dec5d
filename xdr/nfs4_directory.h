// SPDX-License-Identifier: Apache-2.0
// NFS version 4: READDIR.
//
// The client decodes READDIR4res and walks resok4.reply.entries, a list that stays encoded. The
// server does not build such a value but streams, with
//
//   DirectoryWriter4 writer(result, {.result_bytes = args.maxcount, .names_bytes = args.dircount});
//   writer.start(cookieverf);
//   while (more) { if (!writer.try_add(entry)) break; }
//   if (writer.count() == 0 && more) { writer.abandon(); -> NFS4ERR_TOOSMALL }
//   writer.finish(eof);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "xdr/nfs4_attributes.h"
#include "xdr/nfs4_types.h"

namespace nfsrdma::xdr {

struct READDIR4args {
  std::uint64_t cookie = 0;
  verifier4 cookieverf{};
  std::uint32_t dircount = 0;  // of names and cookies alone, a hint
  std::uint32_t maxcount = 0;  // of READDIR4resok, in bytes of XDR
  bitmap4 attr_request{};
};
template <typename A, Is<READDIR4args> V>
void visit(A& ar, V& v) {
  ar("cookie", v.cookie);
  ar("cookieverf", v.cookieverf);
  ar("dircount", v.dircount);
  ar("maxcount", v.maxcount);
  ar("attr_request", v.attr_request);
}

struct entry4 {
  std::uint64_t cookie = 0;
  std::string_view name{};
  fattr4 attrs{};
};
template <typename A, Is<entry4> V>
void visit(A& ar, V& v) {
  ar("cookie", v.cookie);
  ar.string("name", v.name, kNfs4MaxName);
  ar("attrs", v.attrs);
}

struct dirlist4 {
  EncodedList<entry4> entries{};
  bool eof = false;
};
template <typename A, Is<dirlist4> V>
void visit(A& ar, V& v) {
  ar.list("entries", v.entries, kNfs4MaxDirectoryEntries);
  ar("eof", v.eof);
}

struct READDIR4resok {
  verifier4 cookieverf{};
  dirlist4 reply{};
};
template <typename A, Is<READDIR4resok> V>
void visit(A& ar, V& v) {
  ar("cookieverf", v.cookieverf);
  ar("reply", v.reply);
}

using READDIR4res = Nfs4Result<READDIR4resok>;

/// entry4 with its attributes as values, for the server to encode.
struct AttributedEntry4 {
  std::uint64_t cookie = 0;
  std::string_view name{};
  FileAttributes4 attrs{};
};
template <typename A, Is<AttributedEntry4> V>
void visit(A& ar, V& v) {
  ar("cookie", v.cookie);
  ar.string("name", v.name, kNfs4MaxName);
  ar("attrs", v.attrs);
}

/// What the client allows a directory reply to be.
struct DirectoryLimits4 {
  std::size_t result_bytes = 0;  // maxcount: of everything behind the status
  /// dircount: cookie and name of all entries; 0 is no limit (RFC 8881, 18.23.3). A hint: one entry
  /// is always let in.
  std::size_t names_bytes = 0;
};

/// Streams READDIR4res with status NFS4_OK.
class DirectoryWriter4 {
 public:
  DirectoryWriter4(Encoder& encoder, DirectoryLimits4 limits)
      : encoder_(encoder), limits_(limits), begin_(encoder.mark()) {}

  /// The status and what comes before the entries. False when not even an empty list fits: then
  /// nothing was written.
  [[nodiscard]] bool start(const verifier4& cookieverf) {
    encode(encoder_, nfsstat4::NFS4_OK);
    encode(encoder_, cookieverf);
    if (encoder_.overflowed() || encoder_.room() < kEndBytes ||
        limits_.result_bytes < kNfs4VerifierBytes + kEndBytes) {
      abandon();
      return false;
    }
    entries_.emplace(encoder_, limits_.result_bytes - kNfs4VerifierBytes, kEofBytes);
    return true;
  }
  /// False, and nothing written, when the entry does not fit any more. After start() only.
  [[nodiscard]] bool try_add(const AttributedEntry4& entry) {
    std::size_t bytes = kNamesBytesPerEntry + ((entry.name.size() + 3) & ~std::size_t{3});
    bool limited = limits_.names_bytes != 0 && entries_->count() > 0;
    if (limited &&
        (names_bytes_ > limits_.names_bytes || bytes > limits_.names_bytes - names_bytes_)) {
      return false;
    }
    if (!entries_->try_add(entry)) return false;
    names_bytes_ += bytes;
    return true;
  }
  /// The end; it always fits.
  void finish(bool eof) {
    entries_->finish();
    encoder_.boolean(eof);
  }
  /// Takes everything back, for an error status instead.
  void abandon() { encoder_.rewind(begin_); }

  std::size_t count() const { return entries_ ? entries_->count() : 0; }

 private:
  static constexpr std::size_t kEofBytes = 4;
  static constexpr std::size_t kEndBytes = 4 + kEofBytes;
  static constexpr std::size_t kNamesBytesPerEntry = 8 + 4;  // cookie, length

  Encoder& encoder_;
  DirectoryLimits4 limits_;
  std::size_t begin_;
  std::size_t names_bytes_ = 0;
  std::optional<ListWriter<AttributedEntry4>> entries_;
};

}  // namespace nfsrdma::xdr
