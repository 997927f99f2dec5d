// SPDX-License-Identifier: Apache-2.0
// Waits: who was answered NLM4_BLOCKED, and is to be given the lock and told so (GRANTED) when it
// is free (X/Open C702, 14.2). In the order in which they asked; a lock is given to all who can
// have it. Clients ask again now and then, in case they were forgotten.
//
// Pure: no I/O, no clock. The caller serialises (ServerState::mutex).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rpcrdma/base/bytes.h"
#include "server/nfs4/state/file_state.h"
#include "server/nlm/host.h"
#include "server/vfs/file_entry.h"

namespace nfsrdma::nlm {

/// What somebody wants to lock. `owner` is a lock-owner's name in OpenStates: owner_name().
struct Wish {
  nfs4::ClientId client = 0;
  std::string owner;
  LockKind kind{};
  ByteRange range;

  bool operator==(const Wish&) const = default;
};

struct Wait {
  std::uint64_t id = 0;  // the table's
  Wish wish;
  nfs4::FileKey file;
  Host host;
  /// As the client knows the file.
  std::vector<std::byte> handle;
  std::shared_ptr<FilePin> pin;
  /// A process of this machine had it, which nobody tells us the end of: it is looked at again now
  /// and then.
  bool local_holder = false;
};

class Waits {
 public:
  struct Limits {
    std::size_t per_client = 1024;
    std::size_t all = 16384;
    std::size_t per_file = 256;  // each is looked at when a lock of the file ends
  };
  explicit Waits(const Limits& limits) : limits_(limits) {}

  /// What is there already for the same wish keeps its place. False: too many.
  bool add(Wait wait);
  /// Of CANCEL: the very same wish. False: there is none.
  bool cancel(const nfs4::FileKey& file, const Wish& wish);
  /// What the wish's owner waits for within its range.
  void remove_within(const nfs4::FileKey& file, const Wish& wish);
  void end_client(nfs4::ClientId client);
  bool remove(std::uint64_t id);
  /// Takes out those for which `which` says yes.
  std::vector<Wait> take(const std::function<bool(const Wait&)>& which);
  /// Those who wait.
  std::vector<nfs4::ClientId> clients() const;
  bool contains(std::uint64_t id) const { return file_of_.contains(id); }

  /// In the order in which they came.
  std::vector<Wait> of_file(const nfs4::FileKey& file) const;
  bool has_file(const nfs4::FileKey& file) const { return files_.contains(file); }
  /// Files of which local processes may be in the way.
  std::vector<nfs4::FileKey> behind_local_holders() const;
  std::size_t size() const { return file_of_.size(); }
  bool empty() const { return file_of_.empty(); }

  /// Would `wish` wait for somebody who waits, by way of others, for it? `holder_of` gives who
  /// stands in the way of a wish, among clients; client 0: nobody.
  using HolderOf = std::function<Wish(const nfs4::FileKey&, const Wish&)>;
  bool closes_circle(const nfs4::FileKey& file, const Wish& wish, const HolderOf& holder_of) const;

 private:
  using List = std::vector<Wait>;
  void forget(const Wait& wait);

  const Limits limits_;
  std::uint64_t last_id_ = 0;
  std::map<nfs4::FileKey, List> files_;
  std::map<std::uint64_t, nfs4::FileKey> file_of_;
  std::map<nfs4::ClientId, std::size_t> by_client_;
};

}  // namespace nfsrdma::nlm
