// SPDX-License-Identifier: Apache-2.0
// AsyncMount: READ, WRITE and COMMIT. A large request is cut into pieces of read_size() or
// write_size() that a bounded number of workers carry out, each taking the next piece when it is
// done with one.
#include <algorithm>

#include "client/async_mount.h"
#include "client/nfs3/call.h"

namespace nfsrdma {
namespace {

using nfs3::Answer;
using nfs3::call;
using nfs3::from_wire;
using nfs3::status_error;
using nfs3::to_wire;
using xdr::nfsproc3;
using xdr::nfsstat3;

/// Pieces of one request under way at once.
constexpr std::size_t kMaxPieces = 32;

struct ReadJob {
  RpcClient& rpc;
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

/// One READ of at most `into.size()` bytes.
Task<Result<ReadResult>> read_once(RpcClient& rpc, const OpContext& op, const FileHandle& file,
                                   std::uint64_t offset, MutableByteSpan into) {
  const xdr::READ3args args{to_wire(file), offset, static_cast<std::uint32_t>(into.size())};
  NFSRDMA_CO_TRY(
      Answer<xdr::READ3res> answer,
      co_await call<xdr::READ3res>(rpc, op, nfsproc3::NFSPROC3_READ, args, {.sink = into}));
  if (answer.value.status != nfsstat3::NFS3_OK) {
    co_return status_error(answer.value.status, "READ");
  }
  const xdr::READ3resok& ok = answer.value.resok;
  const ByteSpan data = ok.data.bytes;
  if (data.size() != ok.count || data.size() > into.size()) {
    co_return Error{Errc::kProtocol, EIO, "READ: wrong length in the reply"};
  }
  // In line: the reply's bytes go away. In a chunk or read by the TCP transport: already there.
  if (!data.empty() && data.data() != into.data()) {
    std::memcpy(into.data(), data.data(), data.size());
  }
  co_return ReadResult{data.size(), ok.eof, from_wire(ok.file_attributes)};
}

/// Reads [begin, begin + length) of the job, however many calls that takes.
Task<void> read_piece(ReadJob& job, std::size_t begin, std::size_t length) {
  std::size_t done = 0;
  while (done < length && !job.error) {
    Result<ReadResult> part =
        co_await read_once(job.rpc, job.op, job.file, job.offset + begin + done,
                           job.into.subspan(begin + done, length - done));
    if (!part.ok()) {
      job.error = part.error();
      co_return;
    }
    if (part->attributes) job.attributes = part->attributes;
    done += part->count;
    if (part->eof || part->count == 0) {
      if (begin + done < job.end || (begin + done == job.end && part->eof)) {
        job.end = begin + done;
        job.eof = true;
      }
      co_return;
    }
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
  RpcClient& rpc;
  const OpContext& op;
  const FileHandle& file;
  std::uint64_t offset;
  ByteSpan data;
  xdr::stable_how how;
  std::uint32_t piece_bytes;
  // State of the workers:
  std::size_t next = 0;
  bool any = false;
  WriteResult result{};
  std::optional<Error> error{};
};

void note_written(WriteJob& job, const xdr::WRITE3resok& ok) {
  const std::uint64_t verifier = load_be64(ok.verf.data());
  const Stability stability = from_wire(ok.committed);
  Wcc wcc = from_wire(ok.file_wcc);
  if (!job.any) {
    job.result.verifier = verifier;
    job.result.stability = stability;
    job.result.wcc = wcc;
    job.any = true;
    return;
  }
  job.result.verifier_changed |= verifier != job.result.verifier;
  job.result.stability = std::min(job.result.stability, stability);
  // Of pieces that overtake each other only the state afterwards says something.
  job.result.wcc.before.reset();
  if (wcc.after) job.result.wcc.after = wcc.after;
}

Task<void> write_piece(WriteJob& job, std::size_t begin, std::size_t length) {
  std::size_t done = 0;
  do {
    const ByteSpan data = job.data.subspan(begin + done, length - done);
    const xdr::WRITE3args args{to_wire(job.file),
                               job.offset + begin + done,
                               static_cast<std::uint32_t>(data.size()),
                               job.how,
                               {data}};
    auto answer = co_await call<xdr::WRITE3res>(job.rpc, job.op, nfsproc3::NFSPROC3_WRITE, args);
    if (!answer.ok()) {
      job.error = answer.error();
      co_return;
    }
    const xdr::WRITE3res& value = answer->value;
    if (value.status != nfsstat3::NFS3_OK) {
      job.error = status_error(value.status, "WRITE");
      co_return;
    }
    if (value.resok.count > data.size() || (value.resok.count == 0 && !data.empty())) {
      job.error = Error{Errc::kProtocol, EIO, "WRITE: wrong count in the reply"};
      co_return;
    }
    note_written(job, value.resok);
    done += value.resok.count;
    job.result.count += value.resok.count;
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

}  // namespace

Task<Result<ReadResult>> AsyncMount::read(const OpContext& op, const FileHandle& file,
                                          std::uint64_t offset, MutableByteSpan into) {
  ReadJob job{.rpc = *rpc_,
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
  WriteJob job{.rpc = *rpc_,
               .op = op,
               .file = file,
               .offset = offset,
               .data = data,
               .how = to_wire(stability),
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

Task<Result<CommitResult>> AsyncMount::commit(const OpContext& op, const FileHandle& file,
                                              std::uint64_t offset, std::uint32_t count) {
  const xdr::COMMIT3args args{to_wire(file), offset, count};
  NFSRDMA_CO_TRY(Answer<xdr::COMMIT3res> answer,
                 co_await call<xdr::COMMIT3res>(*rpc_, op, nfsproc3::NFSPROC3_COMMIT, args));
  if (answer.value.status != nfsstat3::NFS3_OK) {
    co_return status_error(answer.value.status, "COMMIT");
  }
  co_return CommitResult{load_be64(answer.value.resok.verf.data()),
                         from_wire(answer.value.resok.file_wcc)};
}

}  // namespace nfsrdma
