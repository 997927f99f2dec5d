// SPDX-License-Identifier: Apache-2.0
// AsyncMount: reading and writing of any length. A large request is cut into pieces of read_size()
// or write_size() that a bounded number of workers carry out, each taking the next piece when it is
// done with one.
#include <algorithm>

#include "client/async_mount.h"

namespace nfsrdma {
namespace {

/// Pieces of one request under way at once.
constexpr std::size_t kMaxPieces = 32;

struct ReadJob {
  NfsOperations& nfs;
  const OpContext& op;
  const FileHandle& file;
  std::uint64_t offset;
  MutableByteSpan into;
  std::uint32_t piece_bytes;
  // State of the workers:
  std::size_t next = 0;  // first byte of `into` that nobody has taken
  std::size_t end;       // no data behind this: the shortest piece that met the end of file
  bool eof = false;
  std::optional<Error> error{};
  std::optional<Attributes> attributes{};
};

/// Reads [begin, begin + length) of the job, however many calls that takes.
Task<void> read_piece(ReadJob& job, std::size_t begin, std::size_t length) {
  std::size_t done = 0;
  while (done < length && !job.error) {
    Result<ReadResult> part = co_await job.nfs.read_once(
        job.op, job.file, job.offset + begin + done, job.into.subspan(begin + done, length - done));
    if (!part.ok()) {
      job.error = part.error();
      co_return;
    }
    if (part->attributes) job.attributes = part->attributes;
    done += part->count;
    if (part->eof) {
      if (begin + done <= job.end) {
        job.end = begin + done;
        job.eof = true;
      }
      co_return;
    }
    // Taken for the end it would pass for zeros, or for a shorter file.
    if (part->count == 0)
      job.error = Error{Errc::kProtocol, EIO, "READ of no bytes, not at the end"};
  }
}

Task<void> read_worker(ReadJob& job) {
  while (job.next < job.into.size() && job.next < job.end && !job.error) {
    const std::size_t begin = job.next;
    const std::size_t length = std::min<std::size_t>(job.piece_bytes, job.into.size() - begin);
    job.next += length;
    co_await read_piece(job, begin, length);
  }
}

struct WriteJob {
  NfsOperations& nfs;
  const OpContext& op;
  const FileHandle& file;
  std::uint64_t offset;
  ByteSpan data;
  Stability stability;
  std::uint32_t piece_bytes;
  // State of the workers:
  std::size_t next = 0;
  bool any = false;
  WriteResult result{};
  std::optional<Error> error{};
};

void note_written(WriteJob& job, const WriteResult& part) {
  if (!job.any) {
    job.result = part;
    job.any = true;
    return;
  }
  job.result.count += part.count;
  job.result.verifier_changed |= part.verifier != job.result.verifier;
  job.result.stability = std::min(job.result.stability, part.stability);
  // Of pieces that overtake each other only the state afterwards says something.
  job.result.wcc.before.reset();
  if (part.wcc.after) job.result.wcc.after = part.wcc.after;
}

Task<void> write_piece(WriteJob& job, std::size_t begin, std::size_t length) {
  std::size_t done = 0;
  do {
    const ByteSpan data = job.data.subspan(begin + done, length - done);
    Result<WriteResult> part = co_await job.nfs.write_once(
        job.op, job.file, job.offset + begin + done, data, job.stability);
    if (!part.ok()) {
      job.error = part.error();
      co_return;
    }
    note_written(job, *part);
    done += part->count;
  } while (done < length && !job.error);
}

Task<void> write_worker(WriteJob& job) {
  while (job.next < job.data.size() && !job.error) {
    const std::size_t begin = job.next;
    const std::size_t length = std::min<std::size_t>(job.piece_bytes, job.data.size() - begin);
    job.next += length;
    co_await write_piece(job, begin, length);
  }
}

/// Pieces behind 2^64 - 1 would begin at the file's first bytes, which are others'.
constexpr Error kWraps{Errc::kInvalid, EINVAL, "bytes behind 2^64 - 1"};

bool wraps(std::uint64_t offset, std::uint64_t length) {
  std::uint64_t end = 0;
  return !checked_add(offset, length, &end);
}

}  // namespace

Task<Result<ReadResult>> AsyncMount::read(const OpContext& op, const FileHandle& file,
                                          std::uint64_t offset, MutableByteSpan into) {
  if (wraps(offset, into.size())) co_return kWraps;
  ReadJob job{.nfs = *operations_,
              .op = op,
              .file = file,
              .offset = offset,
              .into = into,
              .piece_bytes = read_size_,
              .end = into.size()};
  if (into.size() <= read_size_) {
    co_await read_piece(job, 0, into.size());
  } else {
    TaskGroup workers;
    const std::size_t pieces = (into.size() + read_size_ - 1) / read_size_;
    for (std::size_t i = 0; i < std::min(pieces, kMaxPieces); ++i)
      workers.spawn(read_worker(job));
    co_await workers.wait();
  }
  if (job.error) co_return *job.error;
  co_return ReadResult{job.end, job.eof, job.attributes};
}

Task<Result<WriteResult>> AsyncMount::write(const OpContext& op, const FileHandle& file,
                                            std::uint64_t offset, ByteSpan data,
                                            Stability stability) {
  if (wraps(offset, data.size())) co_return kWraps;
  WriteJob job{.nfs = *operations_,
               .op = op,
               .file = file,
               .offset = offset,
               .data = data,
               .stability = stability,
               .piece_bytes = write_size_};
  if (data.size() <= write_size_) {
    co_await write_piece(job, 0, data.size());
  } else {
    TaskGroup workers;
    const std::size_t pieces = (data.size() + write_size_ - 1) / write_size_;
    for (std::size_t i = 0; i < std::min(pieces, kMaxPieces); ++i) {
      workers.spawn(write_worker(job));
    }
    co_await workers.wait();
  }
  if (job.error) co_return *job.error;
  co_return job.result;
}

}  // namespace nfsrdma
