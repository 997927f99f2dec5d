// SPDX-License-Identifier: Apache-2.0
// NFS version 3 (RFC 1813): the results of READDIR and READDIRPLUS.
//
// The client decodes READDIR3res and walks resok.reply.entries, a list that stays encoded. The
// server does not build such a value but streams, with
//
//   DirectoryWriter<entry3> writer(result, {.result_bytes = args.count});
//   writer.start(dir_attributes, cookieverf);
//   while (more) { if (!writer.try_add(entry)) break; }
//   if (writer.count() == 0 && more) { writer.abandon(); -> NFS3ERR_TOOSMALL }
//   writer.finish(eof);
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "xdr/encoded_list.h"
#include "xdr/nfs3_results.h"
#include "xdr/nfs3_types.h"

namespace nfsrdma::xdr {

struct entry3 {
  std::uint64_t fileid = 0;
  std::string_view name{};
  std::uint64_t cookie = 0;
};
template <typename A, Is<entry3> V>
void visit(A& ar, V& v) {
  ar("fileid", v.fileid);
  ar.string("name", v.name, kNfs3MaxName);
  ar("cookie", v.cookie);
}

struct dirlist3 {
  EncodedList<entry3> entries{};
  bool eof = false;
};
template <typename A, Is<dirlist3> V>
void visit(A& ar, V& v) {
  ar.list("entries", v.entries, kNfs3MaxDirectoryEntries);
  ar("eof", v.eof);
}

struct READDIR3resok {
  post_op_attr dir_attributes{};
  cookieverf3 cookieverf{};
  dirlist3 reply{};
};
template <typename A, Is<READDIR3resok> V>
void visit(A& ar, V& v) {
  ar("dir_attributes", v.dir_attributes);
  ar("cookieverf", v.cookieverf);
  ar("reply", v.reply);
}

struct READDIR3resfail {
  post_op_attr dir_attributes{};
};
template <typename A, Is<READDIR3resfail> V>
void visit(A& ar, V& v) {
  ar("dir_attributes", v.dir_attributes);
}

using READDIR3res = Nfs3Result<READDIR3resok, READDIR3resfail>;

struct entryplus3 {
  std::uint64_t fileid = 0;
  std::string_view name{};
  std::uint64_t cookie = 0;
  post_op_attr name_attributes{};
  post_op_fh3 name_handle{};
};
template <typename A, Is<entryplus3> V>
void visit(A& ar, V& v) {
  ar("fileid", v.fileid);
  ar.string("name", v.name, kNfs3MaxName);
  ar("cookie", v.cookie);
  ar("name_attributes", v.name_attributes);
  ar("name_handle", v.name_handle);
}

struct dirlistplus3 {
  EncodedList<entryplus3> entries{};
  bool eof = false;
};
template <typename A, Is<dirlistplus3> V>
void visit(A& ar, V& v) {
  ar.list("entries", v.entries, kNfs3MaxDirectoryEntries);
  ar("eof", v.eof);
}

struct READDIRPLUS3resok {
  post_op_attr dir_attributes{};
  cookieverf3 cookieverf{};
  dirlistplus3 reply{};
};
template <typename A, Is<READDIRPLUS3resok> V>
void visit(A& ar, V& v) {
  ar("dir_attributes", v.dir_attributes);
  ar("cookieverf", v.cookieverf);
  ar("reply", v.reply);
}

struct READDIRPLUS3resfail {
  post_op_attr dir_attributes{};
};
template <typename A, Is<READDIRPLUS3resfail> V>
void visit(A& ar, V& v) {
  ar("dir_attributes", v.dir_attributes);
}

using READDIRPLUS3res = Nfs3Result<READDIRPLUS3resok, READDIRPLUS3resfail>;

/// What the client allows a directory reply to be.
struct DirectoryLimits {
  std::size_t result_bytes = 0;  // count, or maxcount: of everything behind the status
  /// dircount: fileid, name and cookie of all entries. Some clients send 0 or less than one entry
  /// takes; one entry is always let in (RFC 1813 calls it a hint).
  std::size_t directory_bytes = static_cast<std::size_t>(-1);
};

/// Streams READDIR3res (Entry is entry3) or READDIRPLUS3res (entryplus3) with status NFS3_OK.
template <typename Entry>
class DirectoryWriter {
 public:
  DirectoryWriter(Encoder& encoder, DirectoryLimits limits)
      : encoder_(encoder), limits_(limits), begin_(encoder.mark()) {}

  /// The status and what comes before the entries. False when not even an empty list fits: then
  /// nothing was written.
  [[nodiscard]] bool start(const post_op_attr& dir_attributes, const cookieverf3& cookieverf) {
    encode(encoder_, nfsstat3::NFS3_OK);
    std::size_t result_begin = encoder_.size();
    encode(encoder_, dir_attributes);
    encode(encoder_, cookieverf);
    std::size_t used = encoder_.size() - result_begin;
    if (encoder_.overflowed() || encoder_.room() < kEndBytes ||
        limits_.result_bytes < used + kEndBytes) {
      abandon();
      return false;
    }
    entries_.emplace(encoder_, limits_.result_bytes - used, kEofBytes);
    return true;
  }
  /// False, and nothing written, when the entry does not fit any more. After start() only.
  [[nodiscard]] bool try_add(const Entry& entry) {
    std::size_t bytes = kDirectoryBytesPerEntry + ((entry.name.size() + 3) & ~std::size_t{3});
    bool first = entries_->count() == 0;
    if (!first && (directory_bytes_ > limits_.directory_bytes ||
                   bytes > limits_.directory_bytes - directory_bytes_)) {
      return false;
    }
    if (!entries_->try_add(entry)) return false;
    directory_bytes_ += bytes;
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
  static constexpr std::size_t kDirectoryBytesPerEntry = 8 + 4 + 8;  // fileid, length, cookie

  Encoder& encoder_;
  DirectoryLimits limits_;
  std::size_t begin_;
  std::size_t directory_bytes_ = 0;
  std::optional<ListWriter<Entry>> entries_;
};

}  // namespace nfsrdma::xdr
