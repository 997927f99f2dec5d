// SPDX-License-Identifier: Apache-2.0
// Side: a tree of files that the tool reads or writes, local or on a server. Coroutines on both, so
// that ls, cat, stat and cp are written once; local ones never wait.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/library/loop_driver.h"
#include "client/nfs_types.h"
#include "client/tool/hand_over.h"
#include "rpcrdma/base/task.h"

namespace nfsrdma::tool {

struct SideEntry {
  std::string name;
  struct stat status {};
  std::string referral{};        // where it leads, if it is one
  std::optional<Error> error{};  // why `status` says nothing: it is there and cannot be looked at
};

/// What stands where a name of a tree should be.
inline constexpr Error kLinkInTheWay{Errc::kSystem, ELOOP, "a symbolic link is in the way"};
inline constexpr Error kNoFile{Errc::kSystem, EEXIST, "no file"};

/// Which file it is, as far as one can tell.
struct FileIdentity {
  struct stat status {};
  std::string server{};  // as it was asked for, with its ports; "": the file is local
  std::string peer{};    // the address that answers; "": nobody does now
};
enum class Sameness : std::uint8_t {
  kDifferent,
  kPerhaps,  // the same by all that can be seen, which two servers may show of two files
  kSame,
};
/// A server has many names and addresses, and its files are local files somewhere: kSame is said
/// only where it is certain.
Sameness sameness(const FileIdentity& one, const FileIdentity& other);

/// Was it removed since its name was read?
bool is_gone(const Error& error);

/// The mode for a copy of what has `mode`. Not `given`: the owner or the group of the original
/// could not be set, and nobody is to run it with the rights of another one instead.
inline mode_t mode_to_keep(mode_t mode, bool given) {
  return mode & (given ? 07777u : 01777u);
}

class SideFile {
 public:
  /// `found`: what was there when it was opened; none: it was made then.
  explicit SideFile(std::optional<FileIdentity> found) : found_(std::move(found)) {}
  virtual ~SideFile() = default;
  const std::optional<FileIdentity>& found() const { return found_; }
  virtual Task<Result<std::size_t>> read(std::span<std::byte> into, std::uint64_t offset) = 0;
  virtual Task<Result<void>> write(std::span<const std::byte> data, std::uint64_t offset) = 0;
  virtual Task<Result<void>> truncate(std::uint64_t size) = 0;
  /// Everything is on stable storage (remote) or handed over (local); the size the file has now.
  virtual Task<Result<std::uint64_t>> finish() = 0;
  /// As Side::set_metadata().
  virtual Task<Result<void>> set_metadata(struct stat from) = 0;

 private:
  std::optional<FileIdentity> found_;
};

class Side {
 public:
  virtual ~Side() = default;
  /// Without `follow`, of a symbolic link or a referral itself. *referral (which may be null, else
  /// outlives the Task): where that leads; "": it is none.
  virtual Task<Result<struct stat>> status(std::string path, bool follow,
                                           std::string* referral = nullptr) = 0;
  /// status(), following links, and whose it is.
  virtual Task<Result<FileIdentity>> identity(std::string path) = 0;
  /// The directory `path` as a side of its own, where paths begin in it and no symbolic link below
  /// it is followed: ELOOP, or ENOTDIR. "" is the directory itself. For trees whose names somebody
  /// else has chosen.
  virtual Task<Result<std::shared_ptr<Side>>> below(std::string path) = 0;
  /// In the directory's order, without "." and "..", and without what is_gone().
  virtual Task<Result<std::vector<SideEntry>>> list(std::string path) = 0;
  virtual Task<Result<std::unique_ptr<SideFile>>> open(std::string path) = 0;
  /// For writing. What is in an existing file stays.
  virtual Task<Result<std::unique_ptr<SideFile>>> create(std::string path, mode_t mode) = 0;
  /// Bytes of a file for which create_with() is there. 0: none.
  virtual std::size_t most_with_create() const { return 0; }
  /// create(), truncate(0), write() and finish() in one.
  virtual Task<Result<std::uint64_t>> create_with(std::string, mode_t, std::span<const std::byte>) {
    co_return Error{Errc::kUnsupported, ENOSYS, "create"};
  }
  virtual Task<Result<std::string>> readlink(std::string path) = 0;
  virtual Task<Result<void>> symlink(std::string target, std::string path) = 0;
  virtual Task<Result<void>> mkdir(std::string path, mode_t mode) = 0;
  virtual Task<Result<void>> remove(std::string path) = 0;
  virtual Task<Result<void>> rmdir(std::string path) = 0;
  /// Owner (where we may), mode (not of links; without set-user-id and set-group-id where the owner
  /// is another one now) and times. Of a link itself, unless `follow`.
  virtual Task<Result<void>> set_metadata(std::string path, struct stat from, bool follow) = 0;
  virtual bool remote() const = 0;
};

/// What an operand of the command line means: a side, and a path on it.
struct Place {
  std::shared_ptr<Side> side;
  std::string path;
  std::string shown;  // as the user wrote it
  std::string name;   // the last component, without percent signs; "": there is none
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

/// `close_file`: see hand_over().
std::shared_ptr<Side> make_local_side(CloseFile close_file = ::close);

}  // namespace nfsrdma::tool
