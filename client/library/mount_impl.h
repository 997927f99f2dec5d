// SPDX-License-Identifier: Apache-2.0
// What a Mount of the library stands on, and its operations as coroutines over paths.
#pragma once

#include "client/default_fabrics.h"
#include "client/follow_referral.h"
#include "client/library/file_state.h"
#include "client/library/loop_driver.h"
#include "client/path_tree.h"
#include "nfsrdma/client.h"

namespace nfsrdma::client {

std::error_code to_error_code(const Error& error);

class ReferredTrees;

struct Mount::Impl : std::enable_shared_from_this<Mount::Impl> {
  /// `asked`: as the URL has it.
  Impl(std::shared_ptr<LoopDriver> its_driver, MountSettings asked);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  /// Runs the loop: not on it. One whose mount is not open is as good as any.
  ~Impl();

  const std::shared_ptr<LoopDriver> driver;  // several mounts may share one
  const MountSettings asked;
  OpContext op;
  std::unique_ptr<AsyncMount> mount;
  std::unique_ptr<PathTree> tree;
  // Touched on the driven loop only:
  UnstableBudget budget;
  std::unique_ptr<OpenFiles> opens;
  std::optional<ReferralTrail> trail;  // of the referrals that led here
  std::shared_ptr<std::size_t> trees;  // behind referrals, of all of a mount: how many there are
  std::unique_ptr<ReferredTrees> referred;
  bool left = false;  // the server has been told

  /// What the server holds of the file now lives as long as the lease, which somebody must renew.
  void keep(const FileHandle& file) {
    if (mount->holds(file)) driver->keep();
  }

  /// Runs `task` and translates its outcome.
  template <typename T>
  Result<T> run(Task<nfsrdma::Result<T>> task) {
    nfsrdma::Result<T> result = driver->run(std::move(task));
    if (!result.ok()) return to_error_code(result.error());
    if constexpr (std::is_void_v<T>) {
      return {};
    } else {
      return std::move(*result);
    }
  }
};

struct File::Impl {
  std::shared_ptr<Mount::Impl> mount;
  std::shared_ptr<FileState> state;
  bool writable = false;
  bool readable = false;
};

/// Is a referral that the path of a URL ends in followed?
enum class LastReferral : std::uint8_t { kFollow, kStay };
/// Mounts `url` on `driver`'s loop. *detail gets a line on errors.
nfsrdma::Result<std::shared_ptr<Mount::Impl>> open_impl(std::string_view url,
                                                        std::shared_ptr<LoopDriver> driver,
                                                        LastReferral last, std::string* detail);

// --- path operations; all run on the driven loop, arguments by value. They go where their paths
// lead, over referrals to other servers, too (referred_trees.h) ---
struct Opened {
  std::shared_ptr<Mount::Impl> mount;  // whose file it is
  std::shared_ptr<FileState> state;
  std::optional<Attributes> found{};  // of what was there; none: it was made
};
/// `deny`: to others while it is open, access_bits::kRead and kModify.
Task<nfsrdma::Result<Opened>> open_path(Mount::Impl& impl, std::string path, int flags, mode_t mode,
                                        std::uint32_t deny = 0);
/// open_path() with O_WRONLY | O_CREAT | O_TRUNC, all of `data`, and on stable storage; in fewer
/// requests where that is a small file. The size of the file then. Without `follow` a symbolic link
/// that the path ends in is ELOOP.
Task<nfsrdma::Result<std::uint64_t>> write_path(Mount::Impl& impl, std::string path, ByteSpan data,
                                                mode_t mode, bool follow = true);
/// Without `follow` a referral that the path ends in is looked at itself, and *leads (which may be
/// null, else outlives the Task) gets Referral::text() of it; "" where it ends in none.
Task<nfsrdma::Result<struct stat>> stat_path(Mount::Impl& impl, std::string path, bool follow,
                                             std::string* leads = nullptr);
/// stat_path(), following links, and whose file it is.
struct Looked {
  std::shared_ptr<Mount::Impl> mount;
  struct stat status {};
};
Task<nfsrdma::Result<Looked>> look_path(Mount::Impl& impl, std::string path);
Task<nfsrdma::Result<std::vector<DirectoryEntry>>> list_path(Mount::Impl& impl, std::string path,
                                                             bool plus);
Task<nfsrdma::Result<void>> rename_path(Mount::Impl& impl, std::string from, std::string to);
Task<nfsrdma::Result<void>> unlink_path(Mount::Impl& impl, std::string path);
Task<nfsrdma::Result<void>> mkdir_path(Mount::Impl& impl, std::string path, mode_t mode);
Task<nfsrdma::Result<void>> rmdir_path(Mount::Impl& impl, std::string path);
Task<nfsrdma::Result<void>> symlink_path(Mount::Impl& impl, std::string target, std::string path);
Task<nfsrdma::Result<void>> link_path(Mount::Impl& impl, std::string existing, std::string path);
Task<nfsrdma::Result<std::string>> readlink_path(Mount::Impl& impl, std::string path);
Task<nfsrdma::Result<void>> setattr_path(Mount::Impl& impl, std::string path, SetAttributes set,
                                         bool follow);
Task<nfsrdma::Result<std::vector<ReferralTarget>>> referral_path(Mount::Impl& impl,
                                                                 std::string path);
Task<nfsrdma::Result<FileSystemInfo>> statfs_path(Mount::Impl& impl, std::string path);

}  // namespace nfsrdma::client
