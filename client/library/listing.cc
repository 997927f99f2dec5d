// SPDX-License-Identifier: Apache-2.0
#include "client/library/listing.h"

namespace nfsrdma::client {

bool Listing::room_for(std::size_t bytes) {
  bytes_ += bytes;
  return bytes_ <= most_;
}

bool Listing::on_entry(const nfsrdma::DirectoryEntry& entry) {
  if (!room_for(sizeof(DirectoryEntry) + entry.name.size())) return false;
  if (entry.name == "." || entry.name == "..") return true;
  DirectoryEntry& mine = entries_.emplace_back();
  mine.name = std::string(entry.name);
  mine.fileid = entry.fileid;
  if (entry.attributes != nullptr) mine.attributes = to_stat(*entry.attributes);
  return true;
}

nfsrdma::Result<void> Listing::end_page(const DirectoryPage& page) {
  // So that pages of nothing but names that are left out come to an end, too.
  if (!room_for(sizeof(DirectoryEntry))) return kTooMuchListed;
  if (!page.eof && circle_.closes(page.cookie)) return kListedInACircle;
  return {};
}

}  // namespace nfsrdma::client
