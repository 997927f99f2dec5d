// SPDX-License-Identifier: Apache-2.0
// Plan first (all that is there is collected, sizes are added up), then make the directories and
// the links, copy the files with a few workers, and set the directories' times, deepest first. So
// what is copied into itself by way of another server, which nobody can see, comes to an end.
//
// A server says what names a tree has, and whether they are links. So that it cannot have files
// written outside of the target, nothing in there is reached through a link: Side::below().
#include "client/tool/copy.h"

#include <algorithm>
#include <cstring>

#include "client/tool/arguments.h"
#include "rpcrdma/base/lasting_memory.h"
#include "rpcrdma/base/path_text.h"

namespace nfsrdma::tool {
namespace {

constexpr std::size_t kBlock = 1 << 20;
constexpr std::size_t kBlocksInFlight = 8;  // of one file
constexpr std::size_t kFilesInFlight = 8;

const Error kOtherSize{Errc::kProtocol, EIO, "the copy's size differs from what was written"};

/// Bytes of a path: a server may have levels without end.
constexpr std::size_t kLongestPath = 4000;

/// How many levels `directory` lies above `path`, 0: it is that. None: it does not.
Task<std::optional<std::size_t>> levels_above(FileIdentity directory, Side& side,
                                              std::string path) {
  std::optional<FileIdentity> before;
  for (std::size_t level = 0; path.size() < kLongestPath; ++level) {
    auto here = co_await side.identity(path);
    if (!here.ok()) break;
    if (sameness(directory, *here) == Sameness::kSame) co_return level;
    // Nothing is above the root but itself.
    if (before && sameness(*before, *here) == Sameness::kSame) break;
    before = *here;
    path = join(path, "..");
  }
  co_return std::nullopt;
}

Sameness sameness(const SideFile& source, const SideFile& target) {
  if (!source.found() || !target.found()) return Sameness::kDifferent;
  return sameness(*source.found(), *target.found());
}

bool has_something(const SideFile& target) {
  if (!target.found()) return false;
  const struct stat& st = target.found()->status;
  return S_ISREG(st.st_mode) && st.st_size > 0;
}

/// A device has no size that says something.
bool is_regular(const SideFile& target) {
  return !target.found() || S_ISREG(target.found()->status.st_mode);
}

bool has_holes(const struct stat& st) {
  constexpr std::int64_t kStatBlock = 512;
  return st.st_blocks * kStatBlock < st.st_size;
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

bool leads_into(const std::string& name) {
  return !name.empty() && name != "." && name != "..";
}

}  // namespace

/// One file being copied by several workers.
struct Copier::Blocks {
  SideFile& from;
  SideFile& to;
  bool sparse = false;  // zeros need not be written
  std::uint64_t next = 0;
  std::uint64_t copied = 0;
  bool end = false;
  std::optional<Error> error{};
};

std::string Copier::shown_from(const std::string& path) const {
  if (!from_remote_) return path;
  return path.empty() ? from_shown_ : join(from_shown_, path);
}

std::string Copier::shown_to(const std::string& path) const {
  return !is_tree_ || path.empty() ? to_shown_ : join(to_shown_, path);
}

void Copier::failed(const std::string& path, const Error& error) {
  refuse(path + ": " + std::strerror(errno_of(error)) +
         (error.where[0] != 0 ? std::string(" (") + error.where + ")" : ""));
}

void Copier::refuse(const std::string& what) {
  progress_.clear();
  complain("cp", what);
  all_well_ = false;
}

Task<bool> Copier::copy(Place from, Place to) {
  from_shown_ = from.shown;
  to_shown_ = to.shown;
  from_remote_ = from.side->remote();
  // Without -r a link stands for its file; with it, links stay links, as with cp(1).
  const bool follow = !options_.recursive || from.shown.ends_with('/');
  auto status = co_await from.side->status(from.path, follow);
  if (!status.ok()) {
    failed(from.shown, status.error());
    co_return false;
  }
  is_tree_ = S_ISDIR(status->st_mode);
  if (is_tree_ && !options_.recursive) {
    refuse(from.shown + ": is a directory (use -r)");
    co_return false;
  }
  std::string path = to.path;
  auto target = co_await to.side->status(to.path, true);
  const bool into = target.ok() && S_ISDIR(target->st_mode) && leads_into(from.name);
  if (into) {
    path = join(to.path, from.name);
    to_shown_ = join(to.shown, from.name);
  }
  if (links_.contains(to_shown_)) {
    refuse("'" + from_shown_ + "' is not copied through '" + to_shown_ +
           "', a symbolic link that was just made");
    co_return false;
  }
  if (S_ISLNK(status->st_mode)) {
    // It would take the place of what it leads to.
    const bool itself = co_await is_same(*from.side, from.path, *to.side, path);
    if (itself) {
      refuse("'" + from_shown_ + "' and '" + to_shown_ + "' are the same file");
      co_return false;
    }
  }
  Job job{from.path, path, *status};
  if (is_tree_) job.to.clear();
  co_await plan(*from.side, std::move(job));
  std::shared_ptr<Side> side = to.side;
  if (is_tree_) side = co_await make_top(*from.side, *to.side, path, !into);
  if (side) co_await copy_all(*from.side, *side);
  co_return all_well_;
}

Task<void> Copier::copy_all(Side& from, Side& to) {
  co_await make_directories(to);
  for (const Job& link : link_jobs_)
    co_await copy_link(from, to, link);
  std::uint64_t total = 0;
  for (const Job& one : file_jobs_)
    total += static_cast<std::uint64_t>(one.status.st_size);
  progress_.set_total(total);
  TaskGroup workers;
  for (std::size_t i = 0; i < std::min(kFilesInFlight, file_jobs_.size()); ++i) {
    workers.spawn(file_worker(from, to));
  }
  co_await workers.wait();
  if (!options_.preserve) co_return;
  for (auto it = directories_.rbegin(); it != directories_.rend(); ++it) {
    auto done = co_await to.set_metadata(it->to, it->status, false);
    if (!done.ok()) failed(shown_to(it->to), done.error());
  }
}

Task<void> Copier::plan(Side& from, Job job) {
  switch (job.status.st_mode & S_IFMT) {
    case S_IFDIR:
      co_await plan_directory(from, job);
      break;
    case S_IFLNK:
      link_jobs_.push_back(std::move(job));
      break;
    case S_IFREG:
      file_jobs_.push_back(std::move(job));
      break;
    default:
      refuse(shown_from(job.from) + ": skipped, neither file, directory nor link");
  }
}

Task<void> Copier::plan_directory(Side& from, const Job& job) {
  if (job.from.size() > kLongestPath) {
    failed(shown_from(job.from), {Errc::kSystem, ENAMETOOLONG, ""});
    co_return;
  }
  directories_.push_back(job);
  auto entries = co_await from.list(job.from);
  if (!entries.ok()) {
    failed(shown_from(job.from), entries.error());
    co_return;
  }
  std::set<std::string> names;
  for (SideEntry& entry : *entries) {
    const std::string path = join(job.from, entry.name);
    if (entry.error) {
      failed(shown_from(path), *entry.error);
      continue;
    }
    // One of them a link, the other a file: that would be written to where the link leads.
    if (!names.insert(entry.name).second) {
      refuse(shown_from(path) + ": left out, the directory lists this name twice");
      continue;
    }
    if (!entry.referral.empty()) {
      // Of where it leads, not of what stands for it until somebody goes there.
      auto there = co_await from.status(path, true);
      if (!there.ok()) {
        failed(shown_from(path), there.error());
        continue;
      }
      entry.status = *there;
    }
    Job child{path, join(job.to, entry.name), entry.status};
    co_await plan(from, std::move(child));
  }
}

Task<Copier::Made> Copier::make_directory(Side& to, std::string path, const Job& job, bool follow) {
  // Writable for us while we fill it, whatever it will be in the end.
  const mode_t mode =
      options_.preserve ? 0700 : (job.status.st_mode & 0777 & ~options_.umask) | 0700;
  auto made = co_await to.mkdir(path, mode);
  if (made.ok()) co_return Made::kYes;
  auto there = co_await to.status(path, follow);
  if (there.ok() && S_ISDIR(there->st_mode)) co_return Made::kWasThere;
  if (there.ok()) {
    refuse("cannot overwrite non-directory '" + shown_to(job.to) + "' with directory '" +
           shown_from(job.from) + "'");
  } else {
    failed(shown_to(job.to), made.error());
  }
  co_return Made::kNo;
}

Task<bool> Copier::is_same(Side& from, std::string one, Side& to, std::string other) {
  if (from.remote() != to.remote()) co_return false;
  auto source = co_await from.identity(std::move(one));
  if (!source.ok()) co_return false;
  auto target = co_await to.identity(std::move(other));
  co_return target.ok() && sameness(*source, *target) == Sameness::kSame;
}

Task<bool> Copier::is_itself(Side& from, const Job& job, Side& to, std::string path) {
  if (from.remote() != to.remote()) co_return false;
  auto source = co_await from.identity(job.from);
  if (!source.ok()) co_return false;
  const std::optional<std::size_t> level = co_await levels_above(*source, to, std::move(path));
  if (!level) co_return false;
  if (*level == 0) {
    refuse("'" + shown_from(job.from) + "' and '" + to_shown_ + "' are the same file");
  } else {
    refuse("cannot copy a directory, '" + shown_from(job.from) + "', into itself, '" + to_shown_ +
           "'");
  }
  co_return true;
}

Task<std::shared_ptr<Side>> Copier::make_top(Side& from, Side& to, std::string path, bool follow) {
  const Job job = directories_.front();
  const Made made = co_await make_directory(to, path, job, follow);
  if (made == Made::kNo) co_return nullptr;
  // The way up from it is there only now.
  const bool itself = co_await is_itself(from, job, to, path);
  if (itself) {
    if (made == Made::kYes) {
      [[maybe_unused]] const Result<void> removed = co_await to.rmdir(path);
    }
    co_return nullptr;
  }
  auto tree = co_await to.below(path);
  if (tree.ok()) co_return std::move(*tree);
  failed(to_shown_, tree.error());
  co_return nullptr;
}

/// All but the first, which is there.
Task<void> Copier::make_directories(Side& to) {
  std::vector<std::string> missing;
  const auto is_missing = [&missing](const Job& job) {
    return std::any_of(missing.begin(), missing.end(),
                       [&job](const std::string& one) { return lies_in(job.to, one); });
  };
  for (std::size_t i = 1; i < directories_.size(); ++i) {
    const Job& job = directories_[i];
    if (is_missing(job)) continue;
    const Made made = co_await make_directory(to, job.to, job, false);
    if (made == Made::kNo) missing.push_back(job.to);
  }
  if (missing.empty()) co_return;
  // Nothing is said of what would have been in them.
  std::erase_if(directories_, [&](const Job& job) {
    return is_missing(job) || std::find(missing.begin(), missing.end(), job.to) != missing.end();
  });
  std::erase_if(file_jobs_, is_missing);
  std::erase_if(link_jobs_, is_missing);
}

Task<void> Copier::copy_link(Side& from, Side& to, const Job& job) {
  auto text = co_await from.readlink(job.from);
  if (!text.ok()) {
    failed(shown_from(job.from), text.error());
    co_return;
  }
  auto made = co_await to.symlink(*text, job.to);
  if (!made.ok() && errno_of(made.error()) == EEXIST) {
    auto removed = co_await to.remove(job.to);
    if (removed.ok()) made = co_await to.symlink(*text, job.to);
  }
  if (!made.ok()) {
    failed(shown_to(job.to), made.error());
    co_return;
  }
  ++files_;
  links_.insert(shown_to(job.to));
  if (!options_.preserve) co_return;
  auto set = co_await to.set_metadata(job.to, job.status, false);
  if (!set.ok()) failed(shown_to(job.to), set.error());
}

Task<void> Copier::file_worker(Side& from, Side& to) {
  while (next_job_ < file_jobs_.size()) {
    const Job job = file_jobs_[next_job_++];
    Result<Copied> done = co_await copy_file(from, to, job);
    if (!done.ok()) {
      failed(shown_from(job.from) + " to " + shown_to(job.to), done.error());
    } else if (*done == Copied::kSameFile) {
      refuse("'" + shown_from(job.from) + "' and '" + shown_to(job.to) + "' are the same file");
    } else {
      ++files_;
    }
  }
}

Task<void> Copier::block_worker(Blocks& blocks) {
  std::vector<std::byte> buffer(kBlock);
  const LastingMemory lasting(buffer);
  while (!blocks.end && !blocks.error) {
    const std::uint64_t offset = blocks.next;
    blocks.next += kBlock;
    auto count = co_await blocks.from.read(buffer, offset);
    if (!count.ok()) {
      blocks.error = count.error();
      co_return;
    }
    if (*count < kBlock) blocks.end = true;
    if (*count == 0) co_return;
    const std::span<const std::byte> data(buffer.data(), *count);
    const bool hole = blocks.sparse && all_zero(data);
    Result<void> written;
    if (!hole) written = co_await blocks.to.write(data, offset);
    if (!written.ok()) {
      blocks.error = written.error();
      co_return;
    }
    blocks.copied += *count;
    progress_.advance(*count);
  }
}

Task<Result<Copier::Copied>> Copier::copy_blocks(SideFile& source, Side& to, const Job& job,
                                                 mode_t mode) {
  NFSRDMA_CO_TRY(std::unique_ptr<SideFile> target, co_await to.create(job.to, mode));
  const Sameness same = sameness(source, *target);
  if (same == Sameness::kSame) co_return Copied::kSameFile;
  // What may be the source by another way keeps all that has not been read yet: then every block is
  // written over itself.
  const bool keep = same == Sameness::kPerhaps;
  if (!keep && has_something(*target)) NFSRDMA_CO_CHECK_OK(co_await target->truncate(0));
  Blocks blocks{source, *target};
  blocks.sparse = !keep && is_regular(*target) && has_holes(job.status);
  {
    TaskGroup workers;
    const auto size = static_cast<std::uint64_t>(job.status.st_size);
    const std::size_t count = std::min<std::uint64_t>(size / kBlock + 1, kBlocksInFlight);
    for (std::size_t i = 0; i < count; ++i)
      workers.spawn(block_worker(blocks));
    co_await workers.wait();
  }
  if (blocks.error) co_return *blocks.error;
  // A hole at the end has not made it longer.
  if (blocks.sparse) NFSRDMA_CO_CHECK_OK(co_await target->truncate(blocks.copied));
  NFSRDMA_CO_TRY(std::uint64_t size_now, co_await target->finish());
  if (keep && size_now > blocks.copied) {
    NFSRDMA_CO_CHECK_OK(co_await target->truncate(blocks.copied));
    size_now = blocks.copied;
  }
  if (size_now != blocks.copied && is_regular(*target)) co_return kOtherSize;
  bytes_ += blocks.copied;
  if (options_.preserve) NFSRDMA_CO_CHECK_OK(co_await target->set_metadata(job.status));
  co_return Copied::kYes;
}

Task<Result<Copier::Copied>> Copier::copy_small(SideFile& source, Side& to, const Job& job,
                                                mode_t mode) {
  const auto size = static_cast<std::uint64_t>(job.status.st_size);
  if (to.most_with_create() == 0 || size > to.most_with_create()) co_return Copied::kNo;
  // A byte more shows that it has grown.
  std::vector<std::byte> buffer(size + 1);
  NFSRDMA_CO_TRY(const std::size_t count, co_await source.read(buffer, 0));
  if (count > size) co_return Copied::kNo;
  // All of it has been read, and so nothing is lost where nobody sees that it is the source.
  // Between servers one can see it; a local file is worth no request.
  if (from_remote_ && source.found()) {
    auto target = co_await to.identity(job.to);
    if (target.ok() && sameness(*source.found(), *target) == Sameness::kSame) {
      co_return Copied::kSameFile;
    }
  }
  const std::span<const std::byte> data(buffer.data(), count);
  NFSRDMA_CO_TRY(const std::uint64_t size_now, co_await to.create_with(job.to, mode, data));
  progress_.advance(count);
  if (size_now != count) co_return kOtherSize;
  bytes_ += count;
  if (options_.preserve) {
    NFSRDMA_CO_CHECK_OK(co_await to.set_metadata(job.to, job.status, true));
  }
  co_return Copied::kYes;
}

Task<Result<Copier::Copied>> Copier::copy_file(Side& from, Side& to, const Job& job) {
  NFSRDMA_CO_TRY(std::unique_ptr<SideFile> source, co_await from.open(job.from));
  // An unreadable copy in the making is better than one readable by too many.
  const mode_t first_mode = options_.preserve ? 0600 : job.status.st_mode & 0777 & ~options_.umask;
  NFSRDMA_CO_TRY(const Copied copied, co_await copy_small(*source, to, job, first_mode));
  if (copied != Copied::kNo) co_return copied;
  co_return co_await copy_blocks(*source, to, job, first_mode);
}

}  // namespace nfsrdma::tool
