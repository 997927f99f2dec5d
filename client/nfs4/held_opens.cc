// SPDX-License-Identifier: Apache-2.0
// FileLocks: what applications have open, from open(2) to the last close(2). The server is told of
// it but under a delegation, and told again when it has lost it.
#include <algorithm>

#include "client/nfs4/file_request.h"

namespace nfsrdma::nfs4 {
namespace {

/// A stateid that is refused as often is not shown any more: the server gives ones that it does not
/// honour.
constexpr unsigned kRefusals = 3;

}  // namespace

Task<Result<void>> FileLocks::open(const OpContext& op, const FileHandle& handle,
                                   std::uint32_t access, std::shared_ptr<OpenCompanion> with,
                                   ShareDenial deny) {
  const FileRef file = file_of(handle);
  ++file->opens_asked;
  if (op.place != nullptr) file->place = *op.place;
  auto request = std::make_shared<Request>(Request::What::kOpen, file, op.identity);
  request->access = access;
  request->with = std::move(with);
  request->deny = deny;
  Result<void> done = co_await perform(request, op.cancel);
  drop_unless_used(file);
  co_return done;
}

Task<Result<void>> FileLocks::open_now(File& file, const OpContext& op, Request& request) {
  if (request.abandoned) co_return request.result;
  if (request.deny.access != 0) co_return co_await deny_now(file, op, request);
  const OpenRef open = open_of(file, request.identity);
  Result<void> opened = co_await ensure_open(file, op, *open, request.access, request.with.get());
  if (opened.ok() && !request.abandoned) {
    open->wanted |= request.access;
    file.in_use = true;
    co_return opened;
  }
  drop_empty_opens(file);
  narrow_soon(request.file);
  // Nobody will close what nobody has.
  const bool unused = !file.in_use && file.lockers.empty() && !file.opens.empty();
  if (unused) close_unused(request.file);
  co_return opened;
}

void FileLocks::close_unused(const FileRef& file) {
  if (stopped_) return;
  tasks_.spawn(carry_out(std::make_shared<Request>(Request::What::kClose, file, AuthSys{})));
}

bool FileLocks::open_already(const AuthSys& identity, const FileHandle& handle,
                             std::uint32_t access) {
  const FileRef file = files_.empty() ? nullptr : find(handle);
  if (file == nullptr || file->closing) return false;
  for (const OpenRef& open : file->opens) {
    const bool enough = open->stateid && !open->closing && (open->access & access) == access;
    if (!enough || open->deny.access != 0 || !(open->identity == identity)) continue;
    ++file->opens_asked;
    open->wanted |= access;
    file->in_use = true;
    return true;
  }
  return false;
}

void FileLocks::note_open(const AuthSys& identity, const FileHandle& handle, std::uint32_t access) {
  if (stopped_ || session_.minor() == 0) return;
  const FileRef file = file_of(handle);
  ++file->opens_asked;
  // While all is being closed it is not to be among that.
  open_of(*file, identity)->wanted |= access;
  file->in_use = true;
}

void FileLocks::adopt(const FileHandle& handle, const AuthSys& identity, std::uint64_t owner,
                      std::uint32_t access, ShareDenial deny, const xdr::stateid4& stateid,
                      bool unfinished) {
  const FileRef file = file_of(handle);
  ++file->opens_asked;
  auto open = std::make_shared<Open>();
  open->identity = identity;
  open->owner = owner;
  open->access = access;
  open->wanted = access;
  open->deny = deny;
  open->asked = 1u << access;
  open->stateid = stateid;
  open->unfinished = unfinished;
  file->opens.push_back(std::move(open));
  file->in_use = true;
}

void FileLocks::finish_new(const FileHandle& handle, bool good) {
  const FileRef file = find(handle);
  if (file == nullptr) return;
  const auto open = std::find_if(file->opens.begin(), file->opens.end(),
                                 [](const OpenRef& one) { return one->unfinished; });
  if (open == file->opens.end()) return;
  (*open)->unfinished = false;
  if (good) return;
  // Whoever else has the file open closes this one, too.
  (*open)->wanted = 0;
  file->in_use = is_used(*file);
  if (!file->in_use) close_unused(file);
}

void FileLocks::drop_empty_opens(File& file) {
  std::erase_if(file.opens, [&](const OpenRef& open) {
    const bool carries = std::any_of(file.lockers.begin(), file.lockers.end(),
                                     [&](const LockerRef& locker) { return locker->open == open; });
    return !open->stateid && open->doubtful == 0 && open->wanted == 0 && !carries;
  });
}

Task<void> FileLocks::claim(FileHandle handle, xdr::stateid4 by) {
  const FileRef file = find(handle);
  if (file == nullptr || !file->in_use || file->busy) co_return;
  auto request = std::make_shared<Request>(Request::What::kClaim, file, AuthSys{});
  request->by = by;
  [[maybe_unused]] Result<void> done = co_await perform(request, &stopping_);
}

Task<void> FileLocks::claim_now(File& file, const OpContext& op, const xdr::stateid4* by) {
  const std::vector<OpenRef> opens = file.opens;
  for (const OpenRef& open : opens) {
    const bool enough = open->stateid && (open->wanted & ~open->access) == 0;
    if (!file.in_use || open->wanted == 0 || enough) continue;
    OpContext as_opener = op;
    as_opener.identity = open->identity;
    // Who is refused has the file open all the same: the server decides about each READ and WRITE.
    [[maybe_unused]] Result<void> done =
        co_await ensure_open(file, as_opener, *open, open->wanted, nullptr, by);
  }
}

void FileLocks::claim_later(const FileHandle& handle) {
  const FileRef file = find(handle);
  if (file == nullptr || !file->in_use || file->claiming || stopped_) return;
  file->claiming = true;
  tasks_.spawn(carry_out(std::make_shared<Request>(Request::What::kClaim, file, AuthSys{})));
}

xdr::stateid4 FileLocks::stateid_of_open(const FileHandle& handle, std::uint32_t access,
                                         const AuthSys& identity) const {
  const FileRef file = files_.empty() ? nullptr : find(handle);
  if (file == nullptr) return {};
  const Open* best = nullptr;
  for (const OpenRef& open : file->opens) {
    const bool good = open->stateid && (open->access & access) == access && !file->closing;
    if (!good || open->closing || open->refused >= kRefusals) continue;
    // In minor version 0 others are there for locks alone.
    if (session_.minor() == 0 && (open->deny.access == 0 || open->unsettled)) continue;
    if (best == nullptr || open->identity == identity) best = open.get();
    if (open->identity == identity) break;
  }
  return best == nullptr ? xdr::stateid4{} : newest(session_, best->stateid);
}

}  // namespace nfsrdma::nfs4
