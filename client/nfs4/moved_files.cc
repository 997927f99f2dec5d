// SPDX-License-Identifier: Apache-2.0
// FileLocks when a file system has moved to another server (RFC 8881 11.11, RFC 7530 8.4): what
// applications have open there is opened on the other one, whose FileLocks takes it over, and this
// one forgets it.
//
// Nothing waits for the server that is left, which may be about to go: what is under way there goes
// on in the old File, which is nobody's then, and ends with kMovedAway whatever comes of it. Who
// asked for it asks the other server.
//
// The other server knows neither the client nor its state, and grants no reclaim; so it is as
// behind the end of a lease: opens are claimed anew, locks and share denials are lost, since others
// may have had them in between. State that the servers hand to each other (transparent state
// migration) is not looked for.
#include <algorithm>
#include <utility>

#include "client/nfs4/file_request.h"

namespace nfsrdma::nfs4 {

class FileLocks::Moved final : public MovedState {
 public:
  std::vector<FileRef> files;
};

FileLocks::FileRef FileLocks::copy_of(const File& file) {
  auto copy = std::make_shared<File>(file.handle);
  copy->held = file.held;
  copy->lost = file.lost;
  copy->undone_denials = file.undone_denials;
  copy->in_use = file.in_use;
  copy->opens_asked = file.opens_asked;
  copy->locks_asked = file.locks_asked;
  copy->place = file.place;
  for (const OpenRef& open : file.opens) {
    // One that its creator does not know of is given up there, and made anew by whoever asks again.
    if (open->unfinished) continue;
    auto anew = std::make_shared<Open>();
    anew->identity = open->identity;
    anew->wanted = open->wanted;
    anew->deny = open->deny;
    anew->stateid = open->stateid;
    for (const LockerRef& locker : file.lockers) {
      if (locker->open != open) continue;
      auto its = std::make_shared<Locker>();
      its->owner = locker->owner;
      its->open = anew;
      copy->lockers.push_back(std::move(its));
    }
    copy->opens.push_back(std::move(anew));
  }
  // What nobody will give up there.
  const std::vector<ByteRangeLocks::Held> held = copy->held.held();
  for (const ByteRangeLocks::Held& one : held) {
    if (find_locker(*copy, one.owner) != nullptr) continue;
    copy->lost.put(one.owner, one.kind, one.range);
    copy->held.unlock(one.owner, one.range);
  }
  return copy;
}

std::unique_ptr<MovedState> FileLocks::hand_over(const WhichFiles& which) {
  auto moved = std::make_unique<Moved>();
  for (const FileRef& file : all_files()) {
    if (!which(file->handle)) continue;
    const bool leaves = file->leaving_as_of == file->opens_asked;
    if (!leaves) moved->files.push_back(copy_of(*file));
    file->moved = true;
    file->loose.clear();
    files_.erase(file->handle);
    note_released(*file);  // who waits for a lock waits there
  }
  if (files_.empty()) emptied_.wake_all();
  return moved;
}

void FileLocks::take_over(std::unique_ptr<MovedState> state) {
  const auto* const moved = dynamic_cast<const Moved*>(state.get());
  if (moved == nullptr || stopped_) return;
  for (const FileRef& file : moved->files) {
    if (!files_.try_emplace(file->handle, file).second) continue;
    const std::vector<OpenRef> opens = file->opens;
    for (const OpenRef& open : opens) {
      open->owner = ++next_owner_;
      lose(*file, *open, kLostByMoving);
    }
    drop_empty_opens(*file);
    drop_unless_used(file);
  }
}

}  // namespace nfsrdma::nfs4
