// SPDX-License-Identifier: Apache-2.0
// The parts of OpenStates (open_states.h): files, owners, opens and locks, tied to each other.
//
// Lifetimes: OpenStates owns all of them. A file lives as long as anybody has it open; an open as
// long as CLOSE or the end of its client; a lock state as long as its open, FREE_STATEID or
// RELEASE_LOCKOWNER; an owner as long as it has an open or a lock state. (The sequence ids of minor
// version 0, OwnerSequence, have to be known for longer, and are kept apart.)
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "rpcrdma/base/byte_range_locks.h"
#include "server/nfs4/state/client_table.h"
#include "server/nfs4/state/share_reservations.h"
#include "server/nfs4/state/stateid_rules.h"

namespace nfsrdma::nfs4 {

/// What two names of one file have in common: the file handle without what differs by export.
using FileKey = std::string;

struct OpenState;
struct LockState;

struct FileState {
  explicit FileState(FileKey its_key) : key(std::move(its_key)) {}

  const FileKey key;
  ShareReservations shares;
  ByteRangeLocks locks;
  std::map<std::uint64_t, OpenState*> opens;        // by the open-owner's id
  std::map<std::uint64_t, LockState*> lock_states;  // by the lock-owner's id
  std::map<ClientId, std::size_t> clients;          // with how many opens
};

/// An open-owner or a lock-owner: a name within a client.
struct StateOwner {
  std::uint64_t id = 0;
  ClientId client = 0;
  std::string name;
  std::set<std::uint64_t> states;  // numbers of its opens, or of its lock states
};

struct OpenState {
  std::uint64_t number = 0;  // in its stateid
  std::uint32_t seqid = 0;
  StateOwner* owner = nullptr;
  FileState* file = nullptr;
  std::set<LockState*> lock_states;
};

/// The locks of one lock-owner on one file. It ends with the open by way of which it began.
struct LockState {
  std::uint64_t number = 0;
  std::uint32_t seqid = 0;
  StateOwner* owner = nullptr;
  OpenState* open = nullptr;
  std::uint8_t access = 0;  // of all opens by way of which it was asked for locks: kShareRead, ...
};

}  // namespace nfsrdma::nfs4
