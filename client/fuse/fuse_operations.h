// SPDX-License-Identifier: Apache-2.0
// FuseOperations: turns FUSE requests into operations of FileSystem, each a coroutine, and answers
// them. op_names.cc, op_files.cc, op_directories.cc hold them by kind; operation_table.cc has the C
// functions that libfuse calls. Everything on the loop's thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/cookie_circle.h"
#include "client/fuse/channel.h"
#include "client/fuse/file_system.h"
#include "client/fuse/fuse_api.h"
#include "client/fuse/request.h"

namespace nfsrdma {

/// What fuse_file_info::fh of a file points to, from open to release.
struct OpenFile {
  NodeRef node;
  CallerRef caller;  // writes and reads carry the opener's credentials
  int flags = 0;     // of open(2)
  /// Who locked by this open file and has not closed it: at the end those that are no process, but
  /// the open file itself (flock(2), F_OFD_SETLK), whose locks go with it.
  std::vector<LockOwnerId> lockers{};
  /// FileWriter::take_error().
  std::uint64_t errors_told = node->writer != nullptr ? node->writer->errors_told() : 0;

  bool writes() const { return (flags & O_ACCMODE) != O_RDONLY; }
};

/// What fuse_file_info::fh of a directory points to.
struct OpenDirectory {
  NodeRef node;
  CallerRef caller;
  std::vector<ListedName> page;
  std::uint64_t page_start = 0;  // the cookie that the page was asked with
  std::uint64_t verifier = 0;
  bool have_page = false;
  bool last_page = false;
  CookieCircle circle{};

  /// Where in the page at hand whoever reads from `cookie` goes on; none: in another page.
  std::optional<std::size_t> place_of(std::uint64_t cookie) const;
  /// The page that was asked for with `cookie` has come. False: the server goes in a circle.
  bool turn_page(std::uint64_t cookie);
};

struct FuseOperationsOptions {
  bool readdirplus = true;
  bool attribute_cache = true;
  bool local_posix_locks = false;  // locks of fcntl() are for this host alone
  bool local_flock = false;        // those of flock()
  unsigned requests = 0;           // reads and writes that the kernel has under way; 0: the usual
};

class FuseOperations {
 public:
  /// `ready` is called when the kernel has said hello (INIT).
  FuseOperations(FileSystem& file_system, FuseOperationsOptions options,
                 std::function<void()> ready);
  ~FuseOperations();

  /// The functions for fuse_session_new(), whose userdata is a FuseOperations.
  static const fuse_lowlevel_ops& table();

  void init(fuse_conn_info* connection);

  /// st_blksize, bytes, where WRITEs have `write_size`: in what sizes programs write best (Python's
  /// files and cp(1) do as it says, stdio's up to 8 KiB). A power of two.
  static blksize_t block_size(FileType type, std::uint32_t write_size);

  // Names.
  Task<void> lookup(fuse_req_t raw, fuse_ino_t parent, std::string name);
  Task<void> mkdir(fuse_req_t raw, fuse_ino_t parent, std::string name, mode_t mode);
  Task<void> mknod(fuse_req_t raw, fuse_ino_t parent, std::string name, mode_t mode, dev_t device);
  Task<void> symlink(fuse_req_t raw, std::string text, fuse_ino_t parent, std::string name);
  Task<void> link(fuse_req_t raw, fuse_ino_t ino, fuse_ino_t parent, std::string name);
  Task<void> unlink(fuse_req_t raw, fuse_ino_t parent, std::string name);
  Task<void> rmdir(fuse_req_t raw, fuse_ino_t parent, std::string name);
  Task<void> rename(fuse_req_t raw, fuse_ino_t parent, std::string name, fuse_ino_t new_parent,
                    std::string new_name, unsigned flags);
  Task<void> readlink(fuse_req_t raw, fuse_ino_t ino);
  // Attributes.
  Task<void> getattr(fuse_req_t raw, fuse_ino_t ino);
  Task<void> setattr(fuse_req_t raw, fuse_ino_t ino, struct stat wanted, int which, OpenFile* file);
  Task<void> access(fuse_req_t raw, fuse_ino_t ino, int mask);
  Task<void> statfs(fuse_req_t raw, fuse_ino_t ino);
  Task<void> getxattr(fuse_req_t raw, fuse_ino_t ino, std::string name, std::size_t size);
  Task<void> setxattr(fuse_req_t raw, fuse_ino_t ino, std::string name, std::string value,
                      int flags);
  Task<void> listxattr(fuse_req_t raw, fuse_ino_t ino, std::size_t size);
  Task<void> removexattr(fuse_req_t raw, fuse_ino_t ino, std::string name);
  // Files.
  Task<void> create(fuse_req_t raw, fuse_ino_t parent, std::string name, mode_t mode,
                    fuse_file_info info);
  Task<void> open(fuse_req_t raw, fuse_ino_t ino, fuse_file_info info);
  Task<void> read(fuse_req_t raw, OpenFile* file, std::size_t size, std::uint64_t offset,
                  fuse_file_info info);
  Task<void> write(fuse_req_t raw, OpenFile* file, ByteSpan data, std::uint64_t offset,
                   fuse_file_info info, BlockRef block);
  Task<void> flush(fuse_req_t raw, OpenFile* file, LockOwnerId owner);
  Task<void> fsync(fuse_req_t raw, OpenFile* file);
  void release(fuse_req_t raw, OpenFile* file);
  Task<void> getlk(fuse_req_t raw, OpenFile* file, LockOwnerId owner, struct flock asked);
  Task<void> setlk(fuse_req_t raw, OpenFile* file, LockOwnerId owner, struct flock asked,
                   LockWait wait);
  Task<void> flock(fuse_req_t raw, OpenFile* file, LockOwnerId owner, int operation);
  Task<void> lseek(fuse_req_t raw, OpenFile* file, std::uint64_t offset, int whence);
  Task<void> fallocate(fuse_req_t raw, OpenFile* file, int mode, std::uint64_t offset,
                       std::uint64_t length);
  Task<void> copy_file_range(fuse_req_t raw, OpenFile* from, std::uint64_t from_offset,
                             OpenFile* to, std::uint64_t to_offset, std::size_t size);
  // Directories.
  Task<void> opendir(fuse_req_t raw, fuse_ino_t ino, fuse_file_info info);
  Task<void> readdir(fuse_req_t raw, OpenDirectory* directory, std::size_t size,
                     std::uint64_t offset, bool plus);

  /// The kernel says that the asking process got a signal.
  void interrupted(Interrupt& interrupt);
  /// For requests that the kernel does not report as interrupted: FLUSH of a process that is
  /// ending.
  void watch(Interrupt& interrupt);
  void spawn(Task<void> task) { running_.spawn(std::move(task)); }
  /// Until no request is being worked on.
  TaskGroup::Waiter idle() { return running_.wait(); }
  /// Where the request being dispatched lies.
  BlockRef request_block() const { return channel != nullptr ? channel->block() : nullptr; }

  FileSystem& fs;
  CallerCache callers;
  BlockPool blocks;
  Channel* channel = nullptr;

 private:
  class InterruptCheck : public Deferred {
   public:
    explicit InterruptCheck(FuseOperations& operations) : operations_(operations) {}
    void run_deferred() override { operations_.check_interrupts(); }

   private:
    FuseOperations& operations_;
  };

  struct stat stat_of(const Node& node) const;
  std::uint64_t inode_number(std::uint64_t fsid, std::uint64_t fileid) const;
  fuse_entry_param entry_of(const Node& node, const Node& directory) const;
  void reply_entry(Request& request, const NodeRef& node, const Node& directory);
  void reply_attributes(Request& request, Node& node);
  Task<void> make(Request& request, NodeRef parent, std::string name, FileSystem::Maker maker);
  /// What is left of *mode for an object made in `parent`.
  Task<int> mask_mode(Request& request, NodeRef parent, mode_t* mode);
  /// One of the two as an extended attribute has it.
  Task<int> get_posix_acl(Request& request, NodeRef node, bool initial, std::string* value);
  Task<int> set_posix_acl(Request& request, NodeRef node, bool initial, std::string value);
  Task<int> make_file(Request& request, NodeRef parent, std::string name, mode_t mode, int flags,
                      NodeRef* node, bool* keep_cache);
  Task<int> fetch_page(Request& request, OpenDirectory& directory, std::uint64_t cookie, bool plus);
  void check_interrupts();

  FuseOperationsOptions options_;
  std::function<void()> ready_;
  bool masks_modes_ = false;  // the kernel leaves that to us
  TaskGroup running_;
  IntrusiveList<Interrupt> interrupted_;
  InterruptCheck interrupt_check_{*this};
  Timer interrupt_timer_;
};

}  // namespace nfsrdma
