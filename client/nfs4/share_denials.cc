// SPDX-License-Identifier: Apache-2.0
// FileLocks: opens that deny something to others (RFC 8881, 9.7 and 18.16). Each is of an
// open-owner of its own, and so none of it is this client's business alone: the server refuses what
// does not go together, whoever has it open. One that the server has lost is not made again: others
// may have read and written meanwhile what they were to keep away from. The file cannot be used
// then until the open's owner ends it.
#include <algorithm>

#include "client/nfs4/convert.h"
#include "client/nfs4/file_request.h"
#include "client/nfs4/owner_bytes.h"
#include "client/request_ends.h"

namespace nfsrdma::nfs4 {
namespace {

/// Until the end of one that the server has not heard of is tried again, and how often: it keeps
/// others from the file, while this one is in use.
constexpr Duration kEndAgain = std::chrono::seconds(15);
constexpr unsigned kEndings = 8;

}  // namespace

FileLocks::OpenRef FileLocks::denying_open(const File& file, LockOwnerId owner) {
  const auto found = std::find_if(file.opens.begin(), file.opens.end(), [&](const OpenRef& open) {
    return open->deny.access != 0 && open->deny.owner == owner;
  });
  return found == file.opens.end() ? nullptr : *found;
}

bool FileLocks::denial_is_undone(const File& file, LockOwnerId owner) {
  return std::any_of(file.undone_denials.begin(), file.undone_denials.end(),
                     [&](const UndoneDenial& one) { return one.owner == owner; });
}

bool FileLocks::is_used(const File& file) {
  return !file.undone_denials.empty() ||
         std::any_of(file.opens.begin(), file.opens.end(),
                     [](const OpenRef& open) { return open->wanted != 0; });
}

xdr::stateid4 FileLocks::stateid_of_denial(const FileHandle& handle, std::uint32_t access) const {
  const FileRef file = files_.empty() ? nullptr : find(handle);
  if (file == nullptr) return {};
  if (const auto refused = refused_by(*file)) return *refused;
  for (const OpenRef& open : file->opens) {
    const bool good = open->deny.access != 0 && open->stateid && !open->unsettled;
    if (good && (open->access & access) == access) return newest(session_, open->stateid);
  }
  return {};
}

Task<Result<void>> FileLocks::deny_now(File& file, const OpContext& op, Request& request) {
  // What this client has let go of, and the server has not heard of yet, would be in the way.
  file.in_use = true;
  co_await narrow_now(file, op);
  const OpenRef open = open_of(file, request.identity, request.deny);
  Result<void> opened = co_await ensure_open(file, op, *open, request.access);
  const bool kept = opened.ok() && !request.abandoned;
  if (kept) open->wanted = request.access;
  // Also one that has had no answer, as on soft mounts: it may stand.
  if (!kept) co_await end_denial_now(file, op, request.deny.owner);
  co_return opened;
}

Task<void> FileLocks::end_denial_now(File& file, const OpContext& op, LockOwnerId owner) {
  std::erase_if(file.undone_denials, [&](const UndoneDenial& one) { return one.owner == owner; });
  if (const OpenRef open = denying_open(file, owner)) {
    open->wanted = 0;
    // A server may refuse to close what has locks (RFC 8881, 18.2.3).
    const FileLock all{owner, LockKind::kWrite, kAllBytes};
    [[maybe_unused]] Result<void> unlocked = co_await unlock_now(file, op, all);
    if (in_doubt(file, owner)) let_go_later(find(file.handle), {all, true});
    [[maybe_unused]] const bool closed = co_await close_what_may_stand(file, op, *open);
    drop_empty_opens(file);
  }
  file.in_use = is_used(file);
  const FileRef self = find(file.handle);
  if (self == nullptr) co_return;
  if (const OpenRef open = denying_open(file, owner)) {
    // What stands all the same is closed with the file, at the latest.
    const bool again = !stopped_ && ++open->endings < kEndings;
    if (again) tasks_.spawn(end_denial_later(self, owner));
  }
  narrow_soon(self);
  if (!file.in_use && file.lockers.empty() && !file.opens.empty()) close_unused(self);
}

Task<void> FileLocks::end_denial_later(FileRef file, LockOwnerId owner) {
  co_await pauses_.pause(kEndAgain, &stopping_);
  if (stopped_) co_return;
  auto request = std::make_shared<Request>(Request::What::kEndDenial, file, AuthSys{});
  request->deny.owner = owner;
  co_await carry_out(std::move(request));
}

Task<void> FileLocks::end_denial(const OpContext& op, const FileHandle& handle, LockOwnerId owner) {
  const FileRef file = find(handle);
  if (file == nullptr) co_return;
  auto request = std::make_shared<Request>(Request::What::kEndDenial, file, op.identity);
  request->deny.owner = owner;
  [[maybe_unused]] Result<void> done = co_await perform(request, op.cancel);
}

void FileLocks::drop_denial(const FileHandle& handle, LockOwnerId owner) {
  const FileRef file = find(handle);
  if (file == nullptr || stopped_) return;
  auto request = std::make_shared<Request>(Request::What::kEndDenial, file, AuthSys{});
  request->deny.owner = owner;
  tasks_.spawn(carry_out(std::move(request)));
}

}  // namespace nfsrdma::nfs4
