// SPDX-License-Identifier: Apache-2.0
// What the operations share: attributes as struct stat, the greeting of the kernel, interrupts.
#include "client/fuse/fuse_operations.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <bit>

namespace nfsrdma {
namespace {

// A signal that ends the process may follow one that does not: looked at again until answered.
constexpr std::chrono::milliseconds kLookAgain{200};
constexpr unsigned kBackgroundRequests = 128;
constexpr std::uint32_t kLeastBlock = 4096;
/// As much as FUSE takes at once.
constexpr std::uint32_t kLargestBlock = 1u << 20;

void choose(fuse_conn_info* connection, unsigned capability, bool wanted) {
  if (wanted && (connection->capable & capability) != 0) {
    connection->want |= capability;
  } else {
    connection->want &= ~capability;
  }
}

}  // namespace

FuseOperations::FuseOperations(FileSystem& file_system, FuseOperationsOptions options,
                               std::function<void()> ready)
    : fs(file_system),
      options_(options),
      ready_(std::move(ready)),
      interrupt_timer_([this] { check_interrupts(); }) {}

FuseOperations::~FuseOperations() = default;

void FuseOperations::init(fuse_conn_info* connection) {
  connection->max_readahead = std::max(connection->max_readahead, 1u << 20);
  connection->max_background = std::max(kBackgroundRequests, options_.requests);
  connection->congestion_threshold = connection->max_background * 3 / 4;
  connection->time_gran = 1;
  // The kernel would trust its own sizes and times (decisions.md 19).
  choose(connection, FUSE_CAP_WRITEBACK_CACHE, false);
  // Truncation comes as SETATTR, ordered with writes by the kernel's inode lock.
  choose(connection, FUSE_CAP_ATOMIC_O_TRUNC, false);
  // The kernel would drop a file's pages after every write of ours, since the server's time moves
  // on; FileSystem tells our changes from those of others and invalidates. With noac the
  // application asks for a look at the server before each read, and that is what the kernel's way
  // does.
  choose(connection, FUSE_CAP_AUTO_INVAL_DATA, !options_.attribute_cache);
  choose(connection, FUSE_CAP_EXPLICIT_INVAL_DATA, options_.attribute_cache);
  choose(connection, FUSE_CAP_ASYNC_READ, true);
  choose(connection, FUSE_CAP_ASYNC_DIO, true);
  choose(connection, FUSE_CAP_PARALLEL_DIROPS, true);
  choose(connection, FUSE_CAP_READDIRPLUS, options_.readdirplus);
  choose(connection, FUSE_CAP_READDIRPLUS_AUTO, options_.readdirplus);
  // The server clears set-id bits, since it runs each write as the caller.
  choose(connection, FUSE_CAP_HANDLE_KILLPRIV, true);
  // Data is received where write-behind keeps it, and sent from where RDMA put it.
  choose(connection, FUSE_CAP_SPLICE_READ, false);
  choose(connection, FUSE_CAP_SPLICE_WRITE, false);
  choose(connection, FUSE_CAP_SPLICE_MOVE, false);
  // Else the kernel's own, for this host alone.
  const bool locks = fs.remote.has_locks();
  choose(connection, FUSE_CAP_POSIX_LOCKS, locks && !options_.local_posix_locks);
  choose(connection, FUSE_CAP_FLOCK_LOCKS, locks && !options_.local_flock);
  // Where there may be default ACLs the umask is not for the kernel to apply.
  choose(connection, FUSE_CAP_DONT_MASK, fs.remote.has_posix_acls());
  masks_modes_ = (connection->want & FUSE_CAP_DONT_MASK) != 0;
  if (ready_) fs.loop.post(ready_);
}

/// One device number stands for all file systems behind the mount: numbers from others than the
/// root's are moved, so that two files never look like one.
std::uint64_t FuseOperations::inode_number(std::uint64_t fsid, std::uint64_t fileid) const {
  if (fsid == fs.root->attributes.fsid) return fileid;
  return fileid ^ (fsid * 0x9e3779b97f4a7c15u | std::uint64_t{1} << 63);
}

/// Kernels before 6.17 make i_blkbits of it, later ones keep it for stat(2) alone. More than a page
/// is no harm there: FUSE asks for i_blkbits with DAX only, and Linux's NFS client has as many, by
/// its wsize (fs/nfs/super.c), so that what file systems share gets along with them.
blksize_t FuseOperations::block_size(FileType type, std::uint32_t write_size) {
  // Whoever reads a directory would have the kernel ask for as much.
  if (type != FileType::kRegular) return kLeastBlock;
  return static_cast<blksize_t>(std::bit_floor(std::clamp(write_size, kLeastBlock, kLargestBlock)));
}

struct stat FuseOperations::stat_of(const Node& node) const {
  const Attributes attributes = fs.visible(node);
  struct stat out = to_stat(attributes);
  out.st_ino = inode_number(attributes.fsid, attributes.fileid);
  out.st_blksize = block_size(attributes.type, fs.remote.write_size());
  return out;
}

fuse_entry_param FuseOperations::entry_of(const Node& node, const Node& directory) const {
  fuse_entry_param entry{};
  entry.ino = node.id;
  entry.generation = 1;  // numbers are never used again
  entry.attr = stat_of(node);
  entry.attr_timeout = fs.attribute_seconds(node);
  entry.entry_timeout = fs.entry_seconds(directory);
  return entry;
}

void FuseOperations::reply_entry(Request& request, const NodeRef& node, const Node& directory) {
  const fuse_entry_param entry = entry_of(*node, directory);
  fs.nodes.reference(node);
  fs.told(*node, request.interrupt().pid);
  if (!request.entry(entry)) fs.nodes.forget(node->id, 1);
}

void FuseOperations::reply_attributes(Request& request, Node& node) {
  fs.told(node, request.interrupt().pid);
  request.attributes(stat_of(node), fs.attribute_seconds(node));
}

void FuseOperations::watch(Interrupt& interrupt) {
  interrupted_.push_back(interrupt);
  if (!interrupt_timer_.armed()) interrupt_timer_.arm_after(fs.loop, kLookAgain);
}

void FuseOperations::interrupted(Interrupt& interrupt) {
  interrupted_.push_back(interrupt);
  fs.loop.defer(interrupt_check_);
}

void FuseOperations::check_interrupts() {
  // Raising one may finish other requests too: each is taken off the list before it is touched.
  IntrusiveList<Interrupt> batch;
  batch.splice_back(interrupted_);
  while (Interrupt* interrupt = batch.pop_front()) {
    if (interrupt->by_any_signal || fatal_signal_pending(interrupt->pid)) {
      interrupt->raise();
    } else {
      interrupted_.push_back(*interrupt);
    }
  }
  if (!interrupted_.empty()) interrupt_timer_.arm_after(fs.loop, kLookAgain);
}

}  // namespace nfsrdma
