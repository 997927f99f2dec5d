// SPDX-License-Identifier: Apache-2.0
// Copier: what cp does, between any two sides. Several files and several blocks of a file are under
// way at once.
#pragma once

#include <set>
#include <string>

#include "client/tool/progress.h"
#include "client/tool/side.h"

namespace nfsrdma::tool {

struct CopyOptions {
  bool recursive = false;
  bool preserve = false;  // mode, times, owner where we may
  mode_t umask = 022;
};

class Copier {
 public:
  /// `progress` outlives this, and so does `links`: the links that this command has made, of all
  /// its sources. Nothing is written through one of them.
  Copier(CopyOptions options, Progress& progress, std::set<std::string>& links)
      : options_(options), progress_(progress), links_(links) {}

  /// Copies `from` to `to`; into it when it is a directory. Complains about what goes wrong and
  /// goes on with the rest. False when anything did. Once.
  Task<bool> copy(Place from, Place to);

  std::uint64_t files() const { return files_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Job {
    std::string from, to;
    struct stat status {};
  };
  struct Blocks;
  enum class Copied : std::uint8_t { kNo, kYes, kSameFile };

  Task<void> plan(Side& from, Job job);
  Task<void> plan_directory(Side& from, const Job& job);
  /// The directory that the tree is copied to, below which all others are. None: why not was said.
  Task<std::shared_ptr<Side>> make_top(Side& from, Side& to, std::string path, bool follow);
  /// Are they one file, or lead to one?
  static Task<bool> is_same(Side& from, std::string one, Side& to, std::string other);
  /// Would the tree be copied into itself at the directory `path`? If so, that was said.
  Task<bool> is_itself(Side& from, const Job& job, Side& to, std::string path);
  enum class Made : std::uint8_t { kNo, kWasThere, kYes };
  /// The directory `path` for that of `job`. kNo: why not has been said. A symbolic link to one
  /// will do only with `follow`.
  Task<Made> make_directory(Side& to, std::string path, const Job& job, bool follow);
  Task<void> make_directories(Side& to);
  Task<void> copy_all(Side& from, Side& to);
  Task<void> file_worker(Side& from, Side& to);
  Task<Result<Copied>> copy_file(Side& from, Side& to, const Job& job);
  /// copy_file() of one that fits into the request that makes it. kNo: it does not.
  Task<Result<Copied>> copy_small(SideFile& source, Side& to, const Job& job, mode_t mode);
  Task<Result<Copied>> copy_blocks(SideFile& source, Side& to, const Job& job, mode_t mode);
  Task<void> block_worker(Blocks& blocks);
  Task<void> copy_link(Side& from, Side& to, const Job& job);
  void failed(const std::string& path, const Error& error);
  /// Something is wrong that is no error of a side.
  void refuse(const std::string& what);
  /// A path of either side, in the words of the command line.
  std::string shown_from(const std::string& path) const;
  std::string shown_to(const std::string& path) const;

  CopyOptions options_;
  Progress& progress_;
  std::set<std::string>& links_;
  std::string from_shown_, to_shown_;  // what is copied, and where
  bool from_remote_ = false;
  bool is_tree_ = false;  // then the targets of jobs are paths in it
  std::vector<Job> file_jobs_;
  std::vector<Job> link_jobs_;
  std::size_t next_job_ = 0;
  std::vector<Job> directories_;  // parents first
  std::uint64_t files_ = 0, bytes_ = 0;
  bool all_well_ = true;
};

}  // namespace nfsrdma::tool
