// SPDX-License-Identifier: Apache-2.0
// FileLocks: CLOSE of files that nobody has open any more. They are gathered for a moment and go
// several in one COMPOUND: programs that look at many files would send as many CLOSEs as OPENs
// otherwise. What is opened again meanwhile just stays open. Files with locks, or with anything
// that is not known for sure, are closed each in a request of its own (file_locks.cc).
#include <algorithm>

#include "client/nfs4/call.h"
#include "client/nfs4/convert.h"
#include "client/nfs4/file_request.h"
#include "client/nfs4/stateid_check.h"

namespace nfsrdma::nfs4 {
namespace {

using xdr::nfs_opnum4;
using xdr::nfsstat4;

/// With PUTFH and SEQUENCE, 15 operations: servers may allow as few as 16 in a COMPOUND.
constexpr std::size_t kMostTogether = 7;

}  // namespace

bool FileLocks::nothing_there(const File& file) {
  return file.lockers.empty() && file.loose.empty() &&
         std::none_of(file.opens.begin(), file.opens.end(),
                      [](const OpenRef& open) { return open->stateid || open->doubtful != 0; });
}

bool FileLocks::closes_simply(const File& file) const {
  const bool idle = !file.busy && file.turn.empty() && file.closings == 0;
  return idle && session_.minor() > 0 && file.lockers.empty() && file.loose.empty() &&
         file.opens.size() == 1 && file.opens.front()->stateid &&
         file.opens.front()->doubtful == 0 && !file.opens.front()->unfinished;
}

void FileLocks::close(const FileHandle& handle) {
  const FileRef file = find(handle);
  if (file == nullptr || stopped_) return;
  if (!file->busy && nothing_there(*file)) {
    // Under a delegation. Nobody was told.
    file->in_use = false;
    file->opens.clear();
    file->lost = {};
    file->undone_denials.clear();
    note_released(*file);
    return drop_unless_used(file);
  }
  // Whoever opens it meanwhile says for what.
  for (const OpenRef& open : file->opens)
    if (!open->unfinished) open->wanted = 0;
  leaving_.push_back({file, file->opens_asked});
  file->leaving_as_of = file->opens_asked;
  if (leaving_.size() >= kMostTogether) return close_what_leaves();
  if (!gathering_) tasks_.spawn(gather());
}

Task<void> FileLocks::gather() {
  gathering_ = true;
  co_await pauses_.pause(kGather, &stopping_);
  gathering_ = false;
  if (!stopped_) close_what_leaves();
}

void FileLocks::close_what_leaves() {
  std::vector<FileRef> together;
  for (const Leaving& leaving : std::exchange(leaving_, {})) {
    File& file = *leaving.file;
    // It was opened again since. Who did that closes it.
    if (leaving.as_of != file.opens_asked) {
      narrow_soon(leaving.file);
      continue;
    }
    const auto same_identity = [&] {
      return together.empty() ||
             together.front()->opens.front()->identity == file.opens.front()->identity;
    };
    if (!closes_simply(file) || !same_identity()) {
      auto request = std::make_shared<Request>(Request::What::kClose, leaving.file, AuthSys{});
      request->as_of = leaving.as_of;
      tasks_.spawn(carry_out(std::move(request)));
      continue;
    }
    file.busy = true;
    file.closing = true;
    file.in_use = false;
    file.opens.front()->wanted = 0;
    together.push_back(leaving.file);
  }
  if (!together.empty()) tasks_.spawn(close_together(std::move(together)));
}

Task<void> FileLocks::close_together(std::vector<FileRef> files) {
  OpContext op;
  op.identity = files.front()->opens.front()->identity;
  op.cancel = &stopping_;
  // The server may have lost one of them meanwhile, and been told of all again.
  const auto stands = [](const File& file) { return file.opens.front()->stateid.has_value(); };
  bool asking = true;
  while (asking) {
    std::vector<FileRef> asked;
    auto build = [&](CompoundWriter& out) {
      asked.clear();
      for (const FileRef& file : files) {
        if (!stands(*file)) continue;
        asked.push_back(file);
        out.op(nfs_opnum4::OP_PUTFH, put(file->handle));
        out.op(nfs_opnum4::OP_CLOSE,
               xdr::CLOSE4args{0, newest(session_, file->opens.front()->stateid)});
      }
      // A COMPOUND of SEQUENCE alone is none that call() reads.
      if (asked.empty()) out.op(nfs_opnum4::OP_PUTFH, put(files.front()->handle));
    };
    auto parse = [&](CompoundReader& in) {
      if (asked.empty()) in.next(nfs_opnum4::OP_PUTFH);
      for (const FileRef& file : asked) {
        xdr::CLOSE4res got;
        if (!in.next(nfs_opnum4::OP_PUTFH) || !in.next(nfs_opnum4::OP_CLOSE, got)) return;
        file->opens.front()->stateid.reset();
        file->opens.front()->access = 0;
      }
    };
    Result<Ending> done = co_await call(session_, op, {}, build, parse);
    const auto failed = std::find_if(asked.begin(), asked.end(),
                                     [&](const FileRef& file) { return stands(*file); });
    asking = done.ok() && done->status != nfsstat4::NFS4_OK && failed != asked.end();
    if (!asking) continue;
    // The others go on without it.
    const bool gone = state_is_gone(done->status) || errno_of(done->status) == ESTALE;
    if (gone) {
      Open& open = *(*failed)->opens.front();
      free_if_revoked(done->status, open, open.stateid);
      open.stateid.reset();
      open.access = 0;
    }
    if (!gone) std::erase(files, FileRef(*failed));
    if (!gone) over_with(*failed);
    asking = !files.empty();
  }
  for (const FileRef& file : files)
    over_with(file);
}

void FileLocks::over_with(FileRef file) {
  const bool closed = !file->opens.front()->stateid;
  file->closings = closed ? 0 : file->closings + 1;
  file->closing = false;
  if (closed) {
    drop_empty_opens(*file);
    file->lost = {};
    file->undone_denials.clear();
  } else if (!stopped_) {
    tasks_.spawn(close_later(file));
  }
  file->busy = false;
  file->turn.pass(file->busy);
  drop_unless_used(file);
}

}  // namespace nfsrdma::nfs4
