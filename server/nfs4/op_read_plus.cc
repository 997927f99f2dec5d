// SPDX-License-Identifier: Apache-2.0
// READ_PLUS (RFC 7862 15.10): READ that names holes in place of sending their zeros.
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "server/files/file_data.h"
#include "server/nfs4/data_file.h"
#include "server/nfs4/operations.h"
#include "server/nfs4/status.h"

namespace nfsrdma::nfs4 {

using xdr::data_content4;
using xdr::nfsstat4;
using enum xdr::nfsstat4;

namespace {

/// Number and status of the operation, rpr_eof and the count of segments; and what a segment has
/// beside its data, the pad included.
constexpr std::size_t kResultHead = 16, kSegmentHead = 24;
/// A reply has no more segments; what lies behind is for the next READ_PLUS.
constexpr std::uint32_t kMostSegments = 16;

/// What begins at `at`, before `end`.
struct Segment {
  bool is_data = true;
  std::uint64_t end = 0;
};

/// What cannot be told from a hole is data, so that an error is one of reading.
Segment segment_at(int fd, std::uint64_t at, std::uint64_t end) {
  // Nobody uses the position of a shared descriptor.
  const off_t data = ::lseek(fd, static_cast<off_t>(at), SEEK_DATA);
  if (data < 0) return {errno != ENXIO, end};
  if (static_cast<std::uint64_t>(data) > at) {
    return {false, std::min(end, static_cast<std::uint64_t>(data))};
  }
  const off_t hole = ::lseek(fd, static_cast<off_t>(at), SEEK_HOLE);
  const bool ends_before = hole > static_cast<off_t>(at) && static_cast<std::uint64_t>(hole) < end;
  return {true, ends_before ? static_cast<std::uint64_t>(hole) : end};
}

/// The segments of one result, as they are written.
class Segments {
 public:
  explicit Segments(xdr::Encoder& result) : result_(result) {
    result_.u32(static_cast<std::uint32_t>(NFS4_OK));
    eof_mark_ = result_.mark();
    result_.boolean(false);
    result_.u32(0);
  }
  void hole(std::uint64_t begin, std::uint64_t end) {
    result_.u32(static_cast<std::uint32_t>(data_content4::NFS4_CONTENT_HOLE));
    xdr::encode(result_, xdr::data_info4{begin, end - begin});
    ++count_;
  }
  void data(std::uint64_t begin, ByteSpan bytes) {
    result_.u32(static_cast<std::uint32_t>(data_content4::NFS4_CONTENT_DATA));
    result_.u64(begin);
    result_.payload(bytes);
    ++count_;
  }
  /// Is there room for one more, which may be data?
  bool is_full() const {
    return count_ == kMostSegments || result_.payloads().size() == xdr::Encoder::kMaxPayloads;
  }
  void finish(bool eof) {
    result_.patch_u32(eof_mark_, eof ? 1 : 0);
    result_.patch_u32(eof_mark_ + 4, count_);
  }

 private:
  xdr::Encoder& result_;
  std::size_t eof_mark_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace

nfsstat4 read_plus(Compound& compound, const xdr::READ_PLUS4args& args, xdr::Encoder& result) {
  // Over RDMA its data could not go where READ's goes (RFC 8267 6.1).
  if (is_rdma(compound.request().call->connection().transport())) return NFS4ERR_NOTSUPP;
  FileCall call(compound.server(), compound.request());
  CurrentHandle& handle = compound.current;
  int fd = -1;
  if (const nfsstat4 status = enter_data(compound, call, handle, args.rpa_stateid, kShareRead, &fd);
      status != NFS4_OK) {
    return status;
  }
  const auto size = static_cast<std::uint64_t>(handle.object.attributes.st_size);
  // As much as fits; where next to nothing does, the COMPOUND says how it failed.
  constexpr std::size_t kHeads = kResultHead + kMostSegments * kSegmentHead;
  const std::size_t room_left = std::max(compound.room_left(), kHeads + 4) - kHeads;
  const std::uint64_t left = args.rpa_offset < size ? size - args.rpa_offset : 0;
  const std::size_t want =
      std::min<std::uint64_t>({args.rpa_count, compound.server().rtmax(), left, room_left});
  // Also for what will turn out to be holes.
  MutableByteSpan room;
  if (want > 0) {
    const nfsstat4 status = compound.payload_room(want + kMostSegments * 4, &room);
    if (status != NFS4_OK) return status;
  }
  std::size_t used = 0;
  Segments segments(result);
  std::uint64_t at = args.rpa_offset;
  const std::uint64_t end = at + want;
  bool eof = left == 0;
  while (at < end && !segments.is_full() && !result.overflowed()) {
    const Segment next = segment_at(fd, at, end);
    if (!next.is_data) {
      segments.hole(at, next.end);
      at = next.end;
      eof = at == size;
      continue;
    }
    std::size_t got = 0;
    int error = 0;
    const MutableByteSpan bytes = room.subspan(used, next.end - at);
    const Got how = read_data(fd, compound.may_block(), bytes, at, &got, &error);
    switch (how) {
      case Got::kWouldBlock:
        return compound.retry(Outcome::kWouldBlock);
      case Got::kError:
        return status_of_errno(error);
      case Got::kData:
      case Got::kSome:
        break;
    }
    if (got > 0) segments.data(at, bytes.first(got));
    used += round_up4(got);
    at += got;
    if (how == Got::kSome) break;
    eof = got < bytes.size() || at == size;
    if (eof) break;
  }
  segments.finish(eof);
  // Otherwise it is run again, with more room for the rest of the result.
  if (!result.overflowed()) compound.use_payload(used);
  return NFS4_OK;
}

}  // namespace nfsrdma::nfs4
