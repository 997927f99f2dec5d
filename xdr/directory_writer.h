// SPDX-License-Identifier: Apache-2.0
// DirectoryWriter: streams the successful result of READDIR or READDIRPLUS, of any NFS version: the
// status, a head, entries as long as they fit, the end.
//
//   DirectoryWriter<entry3> writer(result, {.result_bytes = args.count});
//   if (!writer.start({dir_attributes, cookieverf})) -> TOOSMALL
//   while (more) { if (!writer.try_add(entry)) break; }
//   if (writer.count() == 0 && more) { writer.abandon(); -> TOOSMALL }
//   writer.finish(eof);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "xdr/encoded_list.h"
#include "xdr/encoder.h"

namespace nfsrdma::xdr {

/// What the client allows a directory reply to be.
struct DirectoryLimits {
  std::size_t result_bytes = 0;  // count, or maxcount: of everything behind the status
  /// dircount: Entry::kDirectoryBytes and name of all entries. Some clients send less than one
  /// entry takes; one entry is always let in (the RFCs call it a hint).
  std::size_t directory_bytes = static_cast<std::size_t>(-1);
};

/// `Entry::kDirectoryBytes`: what dircount counts of each entry beside the name's characters.
/// `Entry::Head`: what stands between the status and the entries.
template <typename Entry>
class DirectoryWriter {
 public:
  DirectoryWriter(Encoder& encoder, DirectoryLimits limits)
      : encoder_(encoder), limits_(limits), begin_(encoder.mark()) {}

  /// The status and what comes before the entries. False when not even an empty list fits: then
  /// nothing was written.
  [[nodiscard]] bool start(const typename Entry::Head& head) {
    encoder_.u32(0);  // NFS3_OK, NFS4_OK
    std::size_t result_begin = encoder_.size();
    encode(encoder_, head);
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
    std::size_t bytes = Entry::kDirectoryBytes + ((entry.name.size() + 3) & ~std::size_t{3});
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

  Encoder& encoder_;
  DirectoryLimits limits_;
  std::size_t begin_;
  std::size_t directory_bytes_ = 0;
  std::optional<ListWriter<Entry>> entries_;
};

}  // namespace nfsrdma::xdr
