// SPDX-License-Identifier: Apache-2.0
// LockWaits: who was refused a lock, and is to be told when it is worth asking again
// (CB_NOTIFY_LOCK, RFC 8881 20.11). Nothing is reserved for them: who asks first gets it. They ask
// now and then anyway, so that forgetting one costs time alone.
//
// Pure: no I/O, no clock. The caller serialises.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rpcrdma/base/bytes.h"
#include "server/nfs4/state/file_state.h"

namespace nfsrdma::nfs4 {

struct LockWait {
  ClientId client = 0;
  std::string owner;  // the lock-owner's name
  LockKind kind{};
  ByteRange range;
  /// As the client knows the file: what CB_NOTIFY_LOCK names.
  std::vector<std::byte> handle;
};

class LockWaits {
 public:
  struct Limits {
    std::size_t per_client = 1024;
    std::size_t all = 16384;
    std::size_t per_file = 64;  // each is looked at when a lock of the file ends
  };
  explicit LockWaits(const Limits& limits) : limits_(limits) {}

  /// In place of what that owner waited for in that file. Forgotten when there are too many.
  void add(const FileKey& file, LockWait wait);
  /// It waits no more: it has a lock now, or asks for one that it would not wait for.
  void remove(const FileKey& file, ClientId client, const std::string& owner);
  void end_client(ClientId client);
  /// Takes out those of the file that `free` is true of, in the order in which they came.
  std::vector<LockWait> take(const FileKey& file, const std::function<bool(const LockWait&)>& free);

  std::vector<FileKey> files() const;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  using List = std::vector<LockWait>;
  void count(ClientId client, std::size_t less);
  void remove_if(List* list, const std::function<bool(const LockWait&)>& gone);

  const Limits limits_;
  std::size_t size_ = 0;
  std::map<FileKey, List> files_;
  std::map<ClientId, std::size_t> by_client_;
};

}  // namespace nfsrdma::nfs4
