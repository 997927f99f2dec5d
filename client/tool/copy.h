// SPDX-License-Identifier: Apache-2.0
// Copier: what cp does, between any two sides. Several files and several blocks of a file are under
// way at once.
#pragma once

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
  /// `progress` outlives this.
  Copier(CopyOptions options, Progress& progress) : options_(options), progress_(progress) {}

  /// Copies `from` to `to`; into it when it is a directory. Complains about what goes wrong and
  /// goes on with the rest. False when anything did.
  Task<bool> copy(Place from, Place to);

  std::uint64_t files() const { return files_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Job {
    std::string from, to;
    struct stat status {};
  };
  struct Blocks;

  Task<void> plan(Side& from, Job job);
  Task<void> plan_directory(Side& from, const Job& job);
  Task<void> make_directories(Side& to);
  Task<void> file_worker(Side& from, Side& to);
  Task<Result<void>> copy_file(Side& from, Side& to, const Job& job);
  /// copy_file() of one that fits into the request that makes it. False: it does not.
  Task<Result<bool>> copy_small(SideFile& source, Side& to, const Job& job, mode_t mode);
  Task<Result<void>> copy_blocks(SideFile& source, Side& to, const Job& job, mode_t mode);
  Task<void> block_worker(Blocks& blocks);
  Task<void> copy_link(Side& from, Side& to, const Job& job);
  void failed(const std::string& path, const Error& error);
  /// A path of either side; "": what the command line names.
  std::string shown_from(const std::string& path) const;
  std::string shown_to(const std::string& path) const;

  CopyOptions options_;
  Progress& progress_;
  std::string from_shown_, to_shown_;
  std::vector<Job> file_jobs_;
  std::vector<Job> link_jobs_;
  std::size_t next_job_ = 0;
  std::vector<Job> directories_;  // parents first
  std::uint64_t files_ = 0, bytes_ = 0;
  bool all_well_ = true;
};

}  // namespace nfsrdma::tool
