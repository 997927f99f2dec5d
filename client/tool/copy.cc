// SPDX-License-Identifier: Apache-2.0
// Plan first (all that is there is collected, sizes are added up), then make the directories and
// the links, copy the files with a few workers, and set the directories' times, deepest first. So
// what is copied into itself, perhaps by way of another server, comes to an end.
#include "client/tool/copy.h"

#include <algorithm>
#include <cstring>

#include "client/tool/arguments.h"
#include "rpcrdma/base/lasting_memory.h"

namespace nfsrdma::tool {
namespace {

constexpr std::size_t kBlock = 1 << 20;
constexpr std::size_t kBlocksInFlight = 8;  // of one file
constexpr std::size_t kFilesInFlight = 8;

const Error kOtherSize{Errc::kProtocol, EIO, "the copy's size differs from what was written"};

/// "": all of the side.
bool lies_below(const std::string& path, const std::string& directory) {
  return directory.empty() ? !path.empty() : path.starts_with(directory + "/");
}

}  // namespace

/// One file being copied by several workers.
struct Copier::Blocks {
  SideFile& from;
  SideFile& to;
  std::uint64_t next = 0;
  std::uint64_t copied = 0;
  bool end = false;
  std::optional<Error> error{};
};

std::string Copier::shown_from(const std::string& path) const {
  return path.empty() ? from_shown_ : path;
}

std::string Copier::shown_to(const std::string& path) const {
  return path.empty() ? to_shown_ : path;
}

void Copier::failed(const std::string& path, const Error& error) {
  progress_.clear();
  complain("cp", path + ": " + std::strerror(errno_of(error)) +
                     (error.where[0] != 0 ? std::string(" (") + error.where + ")" : ""));
  all_well_ = false;
}

Task<bool> Copier::copy(Place from, Place to) {
  from_shown_ = from.shown;
  to_shown_ = to.shown;
  // Without -r a link stands for its file; with it, links inside the tree stay links.
  auto status = co_await from.side->status(from.path, true);
  if (!status.ok()) {
    failed(from.shown, status.error());
    co_return false;
  }
  if (S_ISDIR(status->st_mode) && !options_.recursive) {
    complain("cp", from.shown + ": is a directory (use -r)");
    co_return false;
  }
  Job job{from.path, to.path, *status};
  auto target = co_await to.side->status(to.path, true);
  if (target.ok() && S_ISDIR(target->st_mode)) {
    const std::string name = last_component(from.path.empty() ? from.shown : from.path);
    if (!name.empty() && name != "." && name != "..") job.to = join(to.path, name);
  }
  co_await plan(*from.side, std::move(job));
  co_await make_directories(*to.side);
  for (const Job& link : link_jobs_)
    co_await copy_link(*from.side, *to.side, link);
  std::uint64_t total = 0;
  for (const Job& one : file_jobs_)
    total += static_cast<std::uint64_t>(one.status.st_size);
  progress_.set_total(total);
  TaskGroup workers;
  for (std::size_t i = 0; i < std::min(kFilesInFlight, file_jobs_.size()); ++i) {
    workers.spawn(file_worker(*from.side, *to.side));
  }
  co_await workers.wait();
  if (options_.preserve) {
    for (auto it = directories_.rbegin(); it != directories_.rend(); ++it) {
      auto done = co_await to.side->set_metadata(it->to, it->status);
      if (!done.ok()) failed(it->to, done.error());
    }
  }
  co_return all_well_;
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
      complain("cp", shown_from(job.from) + ": skipped, neither file, directory nor link");
      all_well_ = false;
  }
}

Task<void> Copier::plan_directory(Side& from, const Job& job) {
  directories_.push_back(job);
  auto entries = co_await from.list(job.from);
  if (!entries.ok()) {
    failed(shown_from(job.from), entries.error());
    co_return;
  }
  for (SideEntry& entry : *entries) {
    if (!entry.referral.empty()) {
      // Of where it leads, not of what stands for it until somebody goes there.
      auto there = co_await from.status(join(job.from, entry.name), true);
      if (!there.ok()) {
        failed(join(shown_from(job.from), entry.name), there.error());
        continue;
      }
      entry.status = *there;
    }
    Job child{join(job.from, entry.name), join(job.to, entry.name), entry.status};
    co_await plan(from, std::move(child));
  }
}

Task<void> Copier::make_directories(Side& to) {
  std::vector<std::string> missing;
  const auto is_missing = [&missing](const Job& job) {
    return std::any_of(missing.begin(), missing.end(),
                       [&job](const std::string& one) { return lies_below(job.to, one); });
  };
  for (const Job& job : directories_) {
    if (is_missing(job)) continue;
    // Writable for us while we fill it, whatever it will be in the end.
    const mode_t mode =
        options_.preserve ? 0700 : (job.status.st_mode & 0777 & ~options_.umask) | 0700;
    auto made = co_await to.mkdir(job.to, mode);
    if (made.ok() || errno_of(made.error()) == EEXIST) continue;
    failed(shown_to(job.to), made.error());
    missing.push_back(job.to);
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
  if (!options_.preserve) co_return;
  auto set = co_await to.set_metadata(job.to, job.status);
  if (!set.ok()) failed(shown_to(job.to), set.error());
}

Task<void> Copier::file_worker(Side& from, Side& to) {
  while (next_job_ < file_jobs_.size()) {
    const Job job = file_jobs_[next_job_++];
    Result<void> done = co_await copy_file(from, to, job);
    if (done.ok()) {
      ++files_;
    } else {
      failed(shown_from(job.from) + " to " + shown_to(job.to), done.error());
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
    auto written = co_await blocks.to.write({buffer.data(), *count}, offset);
    if (!written.ok()) {
      blocks.error = written.error();
      co_return;
    }
    blocks.copied += *count;
    progress_.advance(*count);
  }
}

Task<Result<void>> Copier::copy_blocks(SideFile& source, Side& to, const Job& job, mode_t mode) {
  NFSRDMA_CO_TRY(std::unique_ptr<SideFile> target, co_await to.create(job.to, mode));
  Blocks blocks{source, *target};
  {
    TaskGroup workers;
    const auto size = static_cast<std::uint64_t>(job.status.st_size);
    const std::size_t count = std::min<std::uint64_t>(size / kBlock + 1, kBlocksInFlight);
    for (std::size_t i = 0; i < count; ++i)
      workers.spawn(block_worker(blocks));
    co_await workers.wait();
  }
  if (blocks.error) co_return *blocks.error;
  NFSRDMA_CO_TRY(std::uint64_t size_now, co_await target->finish());
  if (size_now != blocks.copied) co_return kOtherSize;
  bytes_ += blocks.copied;
  co_return Result<void>();
}

Task<Result<bool>> Copier::copy_small(SideFile& source, Side& to, const Job& job, mode_t mode) {
  const auto size = static_cast<std::uint64_t>(job.status.st_size);
  if (to.most_with_create() == 0 || size > to.most_with_create()) co_return false;
  // A byte more shows that it has grown.
  std::vector<std::byte> buffer(size + 1);
  NFSRDMA_CO_TRY(const std::size_t count, co_await source.read(buffer, 0));
  if (count > size) co_return false;
  const std::span<const std::byte> data(buffer.data(), count);
  NFSRDMA_CO_TRY(const std::uint64_t size_now, co_await to.create_with(job.to, mode, data));
  progress_.advance(count);
  if (size_now != count) co_return kOtherSize;
  bytes_ += count;
  co_return true;
}

Task<Result<void>> Copier::copy_file(Side& from, Side& to, const Job& job) {
  NFSRDMA_CO_TRY(std::unique_ptr<SideFile> source, co_await from.open(job.from));
  // An unreadable copy in the making is better than one readable by too many.
  const mode_t first_mode = options_.preserve ? 0600 : job.status.st_mode & 0777 & ~options_.umask;
  NFSRDMA_CO_TRY(const bool copied, co_await copy_small(*source, to, job, first_mode));
  if (!copied) NFSRDMA_CO_CHECK_OK(co_await copy_blocks(*source, to, job, first_mode));
  if (options_.preserve) NFSRDMA_CO_CHECK_OK(co_await to.set_metadata(job.to, job.status));
  co_return Result<void>();
}

}  // namespace nfsrdma::tool
