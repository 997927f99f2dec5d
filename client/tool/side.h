// SPDX-License-Identifier: Apache-2.0
// Side: a tree of files that the tool reads or writes, local or on a server. Coroutines on both, so
// that ls, cat, stat and cp are written once; local ones never wait.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/library/loop_driver.h"
#include "client/nfs_types.h"
#include "rpcrdma/base/task.h"

namespace nfsrdma::tool {

struct SideEntry {
  std::string name;
  struct stat status {};
  std::string referral;  // where it leads, if it is one
};

class SideFile {
 public:
  virtual ~SideFile() = default;
  virtual Task<Result<std::size_t>> read(std::span<std::byte> into, std::uint64_t offset) = 0;
  virtual Task<Result<void>> write(std::span<const std::byte> data, std::uint64_t offset) = 0;
  /// Everything is on stable storage (remote) or handed over (local); the size the file has now.
  virtual Task<Result<std::uint64_t>> finish() = 0;
};

class Side {
 public:
  virtual ~Side() = default;
  /// Without `follow`, of a symbolic link or a referral itself. *referral (which may be null, else
  /// outlives the Task): where that leads; "": it is none.
  virtual Task<Result<struct stat>> status(std::string path, bool follow,
                                           std::string* referral = nullptr) = 0;
  /// In the directory's order, without "." and "..".
  virtual Task<Result<std::vector<SideEntry>>> list(std::string path) = 0;
  virtual Task<Result<std::unique_ptr<SideFile>>> open(std::string path) = 0;
  virtual Task<Result<std::unique_ptr<SideFile>>> create(std::string path, mode_t mode) = 0;
  /// Bytes of a file for which create_with() is there. 0: none.
  virtual std::size_t most_with_create() const { return 0; }
  /// create(), write() and finish() in one.
  virtual Task<Result<std::uint64_t>> create_with(std::string, mode_t, std::span<const std::byte>) {
    co_return Error{Errc::kUnsupported, ENOSYS, "create"};
  }
  virtual Task<Result<std::string>> readlink(std::string path) = 0;
  virtual Task<Result<void>> symlink(std::string target, std::string path) = 0;
  virtual Task<Result<void>> mkdir(std::string path, mode_t mode) = 0;
  virtual Task<Result<void>> remove(std::string path) = 0;
  /// Owner (where we may), mode (not of links) and times.
  virtual Task<Result<void>> set_metadata(std::string path, struct stat from) = 0;
  virtual bool remote() const = 0;
};

/// What an operand of the command line means: a side, and a path on it.
struct Place {
  std::shared_ptr<Side> side;
  std::string path;
  std::string shown;  // as the user wrote it
};

/// Mounts when `operand` is a URL, following referrals on the way. False with a line in *error.
bool open_place(const std::string& operand, const std::shared_ptr<LoopDriver>& driver, Place* place,
                std::string* error);
/// The same, but for a referral at the end of the way.
bool open_place_itself(const std::string& operand, const std::shared_ptr<LoopDriver>& driver,
                       Place* place, std::string* error);

/// "dir" + "name" -> "dir/name".
std::string join(const std::string& directory, const std::string& name);
/// The last component; "" for "/" and for an empty path.
std::string last_component(const std::string& path);

std::shared_ptr<Side> make_local_side();

}  // namespace nfsrdma::tool
